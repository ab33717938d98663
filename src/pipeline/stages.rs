//! A definition becomes its stages, with what each does where sizes are told: operations by class, elements moved,
//! bytes, and whom it reads.
//!
//! That is what the graph says before a schedule puts stages where they are read. Of conditions both arms count, and
//! what data decide is taken for the assumed size: these are estimates for people. It must not know how stages run.

use super::needs::Incoming;
use crate::eval::Tally;
use crate::ir::op::Class;
use crate::ir::{Def, Lit, Op, Program, Scalar};
use crate::stage::{Bodies, Body, Definition, DimId, Graph, Node, Output, Slot, Source, Stage, StageId, extract};
use crate::tune::example::ASSUMED;
use rustc_hash::{FxHashMap, FxHashSet};

/// A stage.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its sizes, outermost first.
    pub sizes: Vec<u64>,
    /// What it does; its bytes are those of its elements.
    pub tally: Tally,
    /// The stages that it reads, by their places in the list.
    pub reads: Vec<usize>,
    /// Whether it depends on what comes in behind the arguments: tangents, or the adjoint.
    pub back: bool,
    /// Whether it is part of the result.
    pub result: bool,
}

/// The stages of a definition, producers before those that read them, and the sizes in its result.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// The stages.
    pub rows: Vec<Row>,
    /// Sizes in the result, in the order of the calling form.
    pub sizes: Vec<Option<f64>>,
}

impl Stages {
    /// What all stages do together.
    pub fn total(&self) -> Tally {
        self.rows.iter().fold(Tally::default(), |sum, row| plus(sum, row.tally))
    }

    /// The stages that read one, by their places.
    pub fn readers(&self, of: usize) -> Vec<usize> {
        (0..self.rows.len()).filter(|k| *k != of && self.rows[*k].reads.contains(&of)).collect()
    }

    /// Of a stage that the way forth makes, those of the way back that read it: for these it is kept.
    pub fn kept_for(&self, of: usize) -> Vec<usize> {
        let back = |k: &usize| self.rows[*k].back;
        if self.rows[of].back { vec![] } else { self.readers(of).into_iter().filter(back).collect() }
    }
}

fn plus(a: Tally, b: Tally) -> Tally {
    Tally {
        simple: a.simple.saturating_add(b.simple),
        divisions: a.divisions.saturating_add(b.divisions),
        transcendental: a.transcendental.saturating_add(b.transcendental),
        indices: a.indices.saturating_add(b.indices),
        read: a.read.saturating_add(b.read),
        written: a.written.saturating_add(b.written),
        bytes: a.bytes.saturating_add(b.bytes),
        peak_bytes: None,
    }
}

/// The stages of a definition by what comes in, of which so many numbers are its arguments.
///
/// # Errors
/// Why it has no stages.
pub fn stages(program: &Program, def: &Def, incoming: &Incoming, own: usize) -> Result<Stages, String> {
    let graph = extract(program, def).map_err(|why| why.reason)?;
    let numbers = Numbers::new(&graph, incoming);
    let order = graph.order();
    let at: FxHashMap<StageId, usize> = order.iter().enumerate().map(|(k, s)| (*s, k)).collect();
    let back = behind(&graph, own);
    let row = |s: &StageId| {
        let stage = graph.stage(*s);
        let sources = graph.reads(stage.bodies()).into_iter().filter_map(Source::stage);
        let mut reads: Vec<usize> = sources.filter_map(|p| at.get(&p).copied()).collect();
        reads.sort_unstable();
        reads.dedup();
        Row {
            name: stage.name.clone(),
            sizes: stage.dims.iter().map(|d| numbers.extent(*d) as u64).collect(),
            tally: numbers.work(stage),
            reads,
            back: back.contains(s),
            result: graph.handed().iter().any(|from| from.stage() == Some(*s)),
        }
    };
    let size = |o: &Output| match o {
        Output::Size(b) => Some(Some(numbers.of(*b))),
        Output::Scalar(_) | Output::Data(_) => None,
    };
    Ok(Stages { rows: order.iter().map(row).collect(), sizes: graph.outputs.iter().filter_map(size).collect() })
}

/// The stages that depend on what comes in from a place on.
fn behind(graph: &Graph, own: usize) -> FxHashSet<StageId> {
    let further = &graph.slots[own.min(graph.slots.len())..];
    let comes = |slot: Slot| further.contains(&slot);
    let mut out: FxHashSet<StageId> = FxHashSet::default();
    loop {
        let before = out.len();
        for s in graph.ids() {
            let depends = |b: Body| match graph.bodies.node(b) {
                Node::Symbol(k) => comes(Slot::Symbol(*k)),
                Node::Load(Source::Input(k), ..) => comes(Slot::Input(*k)),
                Node::Load(Source::Stage(p, _), ..) => out.contains(p),
                _ => false,
            };
            if !out.contains(&s) && graph.bodies.reachable(graph.stage(s).bodies()).into_iter().any(depends) {
                out.insert(s);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

/// What bodies are where every index is in the middle.
struct Numbers<'a> {
    graph: &'a Graph,
    known: FxHashMap<Body, f64>,
    extents: Vec<f64>,
}

impl<'a> Numbers<'a> {
    fn new(graph: &'a Graph, incoming: &Incoming) -> Numbers<'a> {
        let mut symbols = FxHashMap::default();
        for (slot, value) in graph.slots.iter().zip(incoming) {
            if let Slot::Symbol(k) = slot {
                symbols.insert(*k, value.unwrap_or(0.0));
            }
        }
        let mut n = Numbers { graph, known: FxHashMap::default(), extents: vec![] };
        // The extent of a dimension names dimensions that were made before it, or is taken for assumed.
        for d in &graph.dims {
            n.add(&symbols, d.extent);
            let extent = n.of(d.extent).max(0.0);
            n.extents.push(extent);
        }
        for o in &graph.outputs {
            if let Output::Size(b) = o {
                n.add(&symbols, *b);
            }
        }
        n
    }

    fn add(&mut self, symbols: &FxHashMap<crate::stage::SymbolId, f64>, b: Body) {
        let bodies = &self.graph.bodies;
        for at in bodies.reachable([b]) {
            if !self.known.contains_key(&at) {
                let value = self.node(bodies, symbols, at).filter(|v| v.is_finite()).unwrap_or(ASSUMED as f64);
                self.known.insert(at, value);
            }
        }
    }

    fn node(&self, bodies: &Bodies, symbols: &FxHashMap<crate::stage::SymbolId, f64>, at: Body) -> Option<f64> {
        let whole = |v: f64| if bodies.ty(at).is_int() { v.trunc() } else { v };
        match bodies.node(at) {
            Node::Lit(l) => l.to_f64(),
            Node::Symbol(k) => symbols.get(k).copied(),
            Node::Index(d) => self.extents.get(d.0 as usize).map(|n| ((n - 1.0) / 2.0).max(0.0).trunc()),
            Node::Acc(..) | Node::Load(..) => None,
            Node::Op(op, _, args) => {
                let args =
                    args.iter().map(|a| self.known.get(a).copied().map(Lit::float)).collect::<Option<Vec<Lit>>>()?;
                op.eval(&args).ok().and_then(Lit::to_f64).map(whole)
            }
            Node::Cast(_, of) => self.known.get(of).copied().map(whole),
            Node::If([c, a, b]) => {
                let arm = if *self.known.get(c)? != 0.0 { a } else { b };
                self.known.get(arm).copied()
            }
        }
    }

    fn of(&self, b: Body) -> f64 {
        self.known.get(&b).copied().unwrap_or(ASSUMED as f64)
    }

    fn extent(&self, d: DimId) -> f64 {
        self.extents.get(d.0 as usize).copied().unwrap_or(ASSUMED as f64)
    }

    fn points(&self, dims: &[DimId]) -> f64 {
        dims.iter().map(|d| self.extent(*d)).product()
    }

    /// What a stage does.
    fn work(&self, stage: &Stage) -> Tally {
        let (elements, over) = (self.points(&stage.dims), self.points(stage.over()));
        let mut t = Tally::default();
        let bytes: u32 = stage.tys.iter().map(|ty| ty.bytes()).sum();
        t.bytes = (elements * f64::from(bytes)) as u64;
        t.written = (elements * stage.tys.len() as f64) as u64;
        match &stage.def {
            Definition::Pure(each) => self.add_work(&mut t, each, elements),
            Definition::Reduce { init, next, .. } => {
                self.add_work(&mut t, init, elements);
                self.add_work(&mut t, next, elements * over);
            }
            Definition::Recur { axis, init, next, .. } => {
                let steps = stage.dims.get(*axis).map_or(1.0, |d| self.extent(*d));
                self.add_work(&mut t, init, elements / steps.max(1.0));
                self.add_work(&mut t, next, elements);
            }
            Definition::Scatter { only, at, value, .. } => {
                let points = self.points(&stage.dims[..stage.looped()]) * over;
                let all: Vec<Body> = only.iter().chain(at).chain(value).copied().collect();
                self.add_work(&mut t, &all, points);
                // What is there is read, added to, and written again.
                let numbers = (points * value.len() as f64) as u64;
                t.read = t.read.saturating_add(numbers);
                t.simple = t.simple.saturating_add(numbers);
                t.written = t.written.saturating_add(numbers);
            }
        }
        t
    }

    /// Adds what bodies do at so many points; what they share is done once.
    fn add_work(&self, t: &mut Tally, each: &[Body], points: f64) {
        let bodies = &self.graph.bodies;
        let mut one = Tally::default();
        for b in bodies.reachable(each.iter().copied()) {
            match bodies.node(b) {
                Node::Op(op, ty, args) => operation(&mut one, *op, *ty, args.iter().all(|a| is_whole(bodies.ty(*a)))),
                Node::Cast(Scalar::I64, of) if bodies.ty(*of).is_int() => one.indices += 1,
                Node::Cast(..) | Node::If(_) => one.simple += 1,
                Node::Load(..) => one.read += 1,
                Node::Lit(_) | Node::Symbol(_) | Node::Index(_) | Node::Acc(..) => {}
            }
        }
        let times = |n: u64| (n as f64 * points) as u64;
        *t = plus(
            *t,
            Tally {
                simple: times(one.simple),
                divisions: times(one.divisions),
                transcendental: times(one.transcendental),
                indices: times(one.indices),
                read: times(one.read),
                ..Tally::default()
            },
        );
    }
}

fn is_whole(ty: Scalar) -> bool {
    matches!(ty, Scalar::I64 | Scalar::Bool)
}

/// An operation by its class, as counts of runs have it.
fn operation(t: &mut Tally, op: Op, ty: Scalar, whole: bool) {
    if ty == Scalar::I64 && whole {
        t.indices += 1;
        return;
    }
    match op.row().class {
        _ if op == Op::Pi => {}
        Class::Multiply if op == Op::Fma => t.simple += 2,
        Class::Cheap | Class::Multiply => t.simple += 1,
        Class::Divide => t.divisions += 1,
        Class::Transcendental => t.transcendental += 1,
    }
}
