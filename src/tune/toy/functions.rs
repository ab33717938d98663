//! The stages of a graph at stated sizes become functions as the published system has them: loops, what a point computes, and
//! what it reads.
//!
//! Its functions are pure and two-dimensional. Ours have any number of dimensions; reductions have loops over what they reduce,
//! in their order; what else there is (recurrences, scatters, rows of lengths of their own) is computed whole and left alone.

use super::counts::Counts;
use super::index::Index;
use crate::ir::Op;
use crate::ir::op::Class;
use crate::schedule::Schedule;
use crate::stage::{Body, Definition, DimId, Graph, Node, Source, StageId};

/// What one function reads of another at each point.
#[derive(Clone, Debug)]
pub struct Read {
    /// What is read.
    pub from: StageId,
    /// The index of each axis; nothing where data decide it.
    pub at: Vec<Option<Index>>,
    /// Whether first values read it, before anything is reduced; or a condition or check, which the cost does not count.
    pub when: Reading,
}

/// Which part of a function reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// What is computed at each point, and each point that is reduced over.
    Each,
    /// First values of a reduction.
    First,
    /// Conditions and checks.
    Beside,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// What it is called.
    pub name: String,
    /// How long its dimensions are, those it reduces over last.
    pub extents: Vec<i64>,
    /// How many dimensions are its own.
    pub own: usize,
    /// Its loops in the order of the source, by dimension.
    pub order: Vec<usize>,
    /// Bytes of an element.
    pub bytes: f64,
    /// Numbers of an element.
    pub components: f64,
    /// Whether it is part of the result.
    pub output: bool,
    /// Whether it may be computed where it is read.
    pub inlines: bool,
    /// Whether it may be computed in a loop of another.
    pub moves: bool,
    /// Whether its loops may be changed.
    pub loops: bool,
    /// What is computed at each point; and, of reductions, once for each element.
    pub each: Counts,
    /// The same of first values.
    pub first: Counts,
    /// What it reads.
    pub reads: Vec<Read>,
}

/// The functions of a graph, by the numbers of its stages.
#[derive(Clone, Debug)]
pub struct Functions {
    /// All of them.
    pub all: Vec<Function>,
    /// Producers before those that read them.
    pub order: Vec<StageId>,
    /// Who reads a function, and with which of its reads.
    pub readers: Vec<Vec<(StageId, usize)>>,
}

impl Functions {
    /// The functions of a schedule without steps, at the stated sizes that its graph has.
    pub fn of(s: &Schedule, special: &Graph) -> Functions {
        let all: Vec<Function> = special.ids().map(|id| function(s, special, id)).collect();
        let mut readers = vec![vec![]; all.len()];
        for (id, f) in special.ids().zip(&all) {
            for (k, r) in f.reads.iter().enumerate() {
                readers[r.from.0 as usize].push((id, k));
            }
        }
        Functions { all, order: special.order(), readers }
    }

    /// A function.
    pub fn get(&self, f: StageId) -> &Function {
        &self.all[f.0 as usize]
    }

    /// All functions.
    pub fn ids(&self) -> impl Iterator<Item = StageId> + use<> {
        (0..self.all.len() as u32).map(StageId)
    }

    /// The functions that read one.
    pub fn readers(&self, f: StageId) -> impl Iterator<Item = StageId> + '_ {
        self.readers[f.0 as usize].iter().map(|(r, _)| *r)
    }
}

fn function(s: &Schedule, g: &Graph, id: StageId) -> Function {
    let stage = g.stage(id);
    let dims: Vec<DimId> = stage.dims.iter().chain(stage.over()).copied().collect();
    let known: Vec<Option<i64>> = dims.iter().map(|d| g.bodies.as_int(g.dim(*d).extent)).collect();
    let plain = matches!(stage.def, Definition::Pure(_) | Definition::Reduce { .. }) && s.steps_of(id).is_none();
    let loops = plain && known.iter().all(Option::is_some);
    let moves = loops && !s.is_output(id) && stage.checks.is_empty();
    let order: Vec<usize> = {
        let plan = s.plan(id);
        let named = |l: &crate::schedule::plan::Loop| plan.dims.iter().position(|(n, _)| *n == l.name);
        plan.loops.iter().filter_map(named).collect()
    };
    let (first, each, beside) = bodies(g, id);
    let mut reads = vec![];
    for (when, roots) in [(Reading::Each, &each), (Reading::First, &first), (Reading::Beside, &beside)] {
        for b in g.bodies.reachable(roots.iter().copied()) {
            let Node::Load(Source::Stage(from, _), _, at) = g.bodies.node(b) else { continue };
            let at = at.iter().map(|i| Index::of(&g.bodies, *i, &dims)).collect();
            reads.push(Read { from: *from, at, when });
        }
    }
    Function {
        name: stage.name.clone(),
        extents: known.into_iter().map(|n| n.unwrap_or(1).max(0)).collect(),
        own: stage.dims.len(),
        order,
        bytes: stage.tys.iter().map(|ty| f64::from(ty.bytes())).sum(),
        components: stage.tys.len() as f64,
        output: s.is_output(id),
        inlines: moves && matches!(stage.def, Definition::Pure(_)),
        moves,
        loops,
        each: counts(g, &each),
        first: counts(g, &first),
        reads,
    }
}

/// First values, what is computed at each point, and conditions and checks.
fn bodies(g: &Graph, id: StageId) -> (Vec<Body>, Vec<Body>, Vec<Body>) {
    let stage = g.stage(id);
    let beside = stage.when.iter().chain(&stage.checks).copied().collect();
    let (first, each) = match &stage.def {
        Definition::Pure(each) => (vec![], each.clone()),
        Definition::Reduce { init, next, .. } | Definition::Recur { init, next, .. } => (init.clone(), next.clone()),
        Definition::Scatter { only, at, value, .. } => (vec![], only.iter().chain(at).chain(value).copied().collect()),
    };
    (first, each, beside)
}

/// The operations and loads of bodies; those of indices are not counted, but for what they load.
fn counts(g: &Graph, roots: &[Body]) -> Counts {
    let mut out = Counts::default();
    let all = g.bodies.reachable(roots.iter().copied());
    let loads = all.iter().filter(|b| matches!(g.bodies.node(**b), Node::Load(Source::Stage(..), ..)));
    out.loads = loads.count() as f64;
    let (mut todo, mut seen) = (roots.to_vec(), vec![]);
    while let Some(b) = todo.pop() {
        if seen.contains(&b) {
            continue;
        }
        seen.push(b);
        let node = g.bodies.node(b);
        match node {
            // Conversions are none of the published operations.
            Node::Op(Op::ToFloat | Op::BoolToFloat | Op::Truncate, ..) => {}
            Node::Op(op, ..) if *op == Op::Sqrt || op.row().class == Class::Transcendental => out.mathematics += 1.0,
            Node::Op(..) | Node::If(_) => out.arithmetic += 1.0,
            Node::Lit(_) | Node::Symbol(_) | Node::Index(_) | Node::Acc(..) | Node::Load(..) | Node::Cast(..) => {}
        }
        if !matches!(node, Node::Load(..)) {
            todo.extend(node.kids());
        }
    }
    out
}
