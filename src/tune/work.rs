//! A nest becomes counted work: what a processor does, and waits for, at estimated sizes.
//!
//! It reads the nest that a schedule is lowered to, once later passes have said which loops run in vectors, and knows no
//! step. Guesses rank schedules; nothing rests on them.

use super::facts::{self, Facts, LoopId, Operation, Take, Touch};
use super::form::{Environment, Form};
use super::owner::Owners;
pub use super::parts::{PARTS, Work};
use super::traffic::{Access, LINE, Moved, Node};
use crate::ir::op::Class;
use crate::ir::{Op, Scalar};
use crate::machine::Machine;
use crate::nest::{Buf, Expr, Func, Loop, LoopKind, Slot, Stmt, Var};
use crate::stage::Graph;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Instructions of a kind that start in one cycle.
pub const ARITHMETIC: f64 = 2.0;
/// Loads that start in one cycle.
pub const LOADS: f64 = 2.0;
/// Cycles until the sum of an addition is there.
pub const LATENCY: f64 = 4.0;
/// What an element costs that is found lane by lane, in elements a stride apart.
pub const WILD: f64 = 10.0;
/// Small buffers are registers, where their places are known.
pub const REGISTERS: f64 = 64.0;

/// The work of a function, whose sizes and scalars are `incoming`, in the order of its parameters.
pub fn count(func: &Func, incoming: &[f64], machine: &Machine) -> Work {
    facts(func, &Graph::default(), incoming, machine).1
}

/// The same of a function that a graph was lowered to, and what is seen of it on the way.
pub fn facts(func: &Func, graph: &Graph, incoming: &[f64], machine: &Machine) -> (Facts, Work) {
    let mut known = Environment::default();
    for (slot, value) in func.params.iter().zip(incoming) {
        if let Slot::Size(v) | Slot::Scalar(v) = slot {
            known.forms.insert(*v, Form::constant(*value));
        }
    }
    // The function itself is a loop of one iteration, whose variable nothing names.
    let (none, var) = (graph.stages.len(), Var(u32::MAX));
    let root = facts::Loop { around: None, stage: none, var, trips: 1.0, lanes: 1.0, parallel: false };
    let facts = Facts { loops: vec![root], by_stage: vec![Work::default(); none + 1], ..Facts::default() };
    let (small, wild, kept) = Default::default();
    let here = Here { inside: 0, stage: none, rounds: 1.0 };
    let owners = Owners::new(func, graph);
    let mut c = Counter { func, machine, known, vector: None, small, wild, spread: false, owners, kept, here, facts };
    let node = Node { trips: 1.0, threads: 1.0, vars: vec![(var, 1.0)], ..Node::default() };
    let mut whole = Block { node, ..Block::default() };
    c.block(&func.body, &mut whole, 1.0);
    c.facts.by_stage[none].0[0] += whole.cycles(machine) - whole.inner;
    let [l1, l2, l3] = machine.caches.map(|bytes| whole.node.moved(bytes as f64, none + 1));
    let mut total = Work::default();
    for (stage, work) in c.facts.by_stage.iter_mut().enumerate() {
        // A thread has its first caches alone, the last one and memory with the others.
        let memory = |m: Moved| (m.one + m.all) / 2.0;
        (work.0[1], work.0[2], work.0[3]) = (l1[stage].one, l2[stage].one, memory(l3[stage]));
        total.0.iter_mut().zip(work.0).for_each(|(sum, n)| *sum += n);
    }
    c.facts.bytes = l3.iter().map(|m| m.all * LINE).collect();
    (c.facts, total)
}

/// What one iteration of a loop does, without the loops in it.
#[derive(Default)]
struct Block {
    arithmetic: f64,
    loads: f64,
    stores: f64,
    chains: FxHashMap<u64, Chain>,
    /// What is read already.
    read: FxHashSet<u64>,
    /// What is declared here, and so begins anew in each iteration.
    own: FxHashSet<Root>,
    /// Cycles of the loops in it.
    inner: f64,
    node: Node,
}

/// An accumulator.
struct Chain {
    of: Root,
    /// How long it waits for itself, in cycles.
    wait: f64,
    /// How many vectors it is.
    vectors: f64,
}

/// What is declared: a variable or a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    Var(Var),
    Buf(Buf),
}

impl Block {
    /// Cycles of an iteration.
    fn cycles(&self, machine: &Machine) -> f64 {
        let held: f64 = self.chains.values().map(|c| c.vectors).sum();
        // What has no register is written and read again.
        let spilled = (held - registers(machine)).max(0.0);
        let waiting = self.chains.values().filter(|c| !self.own.contains(&c.of)).map(|c| c.wait).fold(0.0, f64::max);
        let ports = [self.arithmetic / ARITHMETIC, (self.loads + spilled) / LOADS, self.stores + spilled];
        ports.into_iter().fold(waiting, f64::max) + self.inner
    }
}

struct Counter<'a> {
    func: &'a Func,
    machine: &'a Machine,
    known: Environment,
    /// The variable of the vector loop around, and its lanes.
    vector: Option<(Var, u32)>,
    /// Buffers that may be registers.
    small: FxHashSet<Buf>,
    /// Variables that differ from lane to lane, and do not grow by one stride.
    wild: FxHashSet<Var>,
    /// Whether a loop around runs on threads.
    spread: bool,
    owners: Owners,
    /// What variables keep of accumulators and elements in the making.
    kept: FxHashMap<Var, Vec<Root>>,
    here: Here,
    facts: Facts,
}

/// Where the counting is.
#[derive(Clone, Copy)]
struct Here {
    /// The loop.
    inside: LoopId,
    /// The stage.
    stage: usize,
    /// How often the loop is gone through one after another, of threads by the busiest one.
    rounds: f64,
}

impl Counter<'_> {
    /// Adds statements, which run so many times in all.
    fn block(&mut self, stmts: &[Stmt], b: &mut Block, times: f64) {
        let around = self.here.stage;
        for (s, stage) in stmts.iter().zip(self.owners.each(stmts, around)) {
            self.here.stage = stage;
            self.note(s);
            self.stmt(s, b, times);
        }
        self.here.stage = around;
    }

    /// The work of the present stage.
    fn work(&mut self) -> &mut Work {
        let last = self.facts.by_stage.len() - 1;
        &mut self.facts.by_stage[self.here.stage.min(last)]
    }

    fn stmt(&mut self, s: &Stmt, b: &mut Block, times: f64) {
        match s {
            Stmt::Let(v, e) => {
                if self.is_wild(e) {
                    self.wild.insert(*v);
                }
                if let Some(n) = self.known.number(e).filter(|_| self.func.ty(e) == Scalar::I64) {
                    self.known.numbers.insert(*v, n);
                }
                match self.known.form(e).filter(|_| self.func.ty(e) == Scalar::I64) {
                    Some(form) => drop(self.known.forms.insert(*v, form)),
                    None => self.expr(e, b, times),
                }
            }
            Stmt::Mut(v, e) => {
                b.own.insert(Root::Var(*v));
                self.expr(e, b, times);
            }
            Stmt::Set(v, e) => {
                self.expr(e, b, times);
                self.accumulated(&Accumulator::Var(*v), e, b);
            }
            Stmt::Alloc(buf, dims) => {
                let room = dims.iter().map(|d| d.as_int().map_or(f64::INFINITY, |n| n as f64)).product::<f64>();
                let lanes = f64::from(self.machine.lanes(self.func.buf(*buf).ty));
                if room <= REGISTERS * lanes {
                    self.small.insert(*buf);
                }
                b.own.insert(Root::Buf(*buf));
            }
            Stmt::Store(buf, at, e) | Stmt::MaskedStore(buf, at, e, _) => self.store(*buf, at, e, b, times),
            Stmt::For(l) => self.run(l, b, times),
            Stmt::If(c, yes, no) => match self.known.number(c) {
                Some(holds) => self.block(if holds != 0.0 { yes } else { no }, b, times),
                None => {
                    self.expr(c, b, times);
                    self.block(yes, b, times);
                    self.block(no, b, times);
                }
            },
            Stmt::Check(e, ..) | Stmt::Leave(_, e) => self.expr(e, b, times),
            _ => s.exprs().into_iter().for_each(|e| self.expr(e, b, times)),
        }
    }

    fn run(&mut self, l: &Loop, b: &mut Block, times: f64) {
        let from = self.known.number(&l.from).unwrap_or(0.0);
        let trips = (self.known.number(&l.to).unwrap_or(16.0) - from).max(0.0);
        self.known.forms.insert(l.var, Form::var(l.var));
        self.known.middle.insert(l.var, from + (trips - 1.0).max(0.0) / 2.0);
        if trips == 0.0 {
            return;
        }
        let lanes = if let LoopKind::Vector(lanes) = l.kind { lanes } else { 1 };
        let around = self.vector;
        if lanes > 1 {
            self.vector = Some((l.var, lanes));
        }
        let before = self.here;
        let parallel = matches!(l.kind, LoopKind::Parallel { .. });
        let own = (l.var, trips, f64::from(lanes), parallel);
        self.enter(own);
        if lanes > 1 && trips <= f64::from(lanes) {
            b.node.vars.push((l.var, f64::from(lanes)));
            self.block(&l.body, b, times);
            (self.vector, self.here) = (around, before);
            return;
        }
        // Loops of which vectors are made later are not split yet.
        let steps = (trips / f64::from(lanes)).ceil();
        // Of parallel loops in each other, one runs on threads.
        let spread = parallel && !self.spread && trips > 1.0;
        let threads = if spread { self.machine.threads as f64 } else { 1.0 };
        let node = Node { trips: steps, vars: vec![(l.var, trips)], threads, ..Node::default() };
        let mut inner = Block { node, ..Block::default() };
        self.spread |= spread;
        let rounds = (steps / threads).ceil();
        self.here.rounds *= rounds;
        self.block(&l.body, &mut inner, times * steps);
        self.spread &= !spread;
        (self.vector, self.here) = (around, before);
        let cycles = inner.cycles(self.machine);
        let rounds_here = self.here.rounds;
        let work = self.work();
        work.0[0] += rounds_here * rounds * (cycles - inner.inner);
        work.0[4] += times * rounds;
        work.0[5] += if threads > 1.0 { times } else { 0.0 };
        b.inner += rounds * cycles;
        b.node.kids.push(inner.node);
    }

    /// Goes into a loop.
    fn enter(&mut self, (var, trips, lanes, parallel): (Var, f64, f64, bool)) {
        let (around, stage) = (Some(self.here.inside), self.here.stage);
        self.facts.loops.push(facts::Loop { around, stage, var, trips, lanes, parallel });
        self.here.inside = self.facts.loops.len() - 1;
    }

    fn operation(&mut self, class: Option<Class>, ty: Scalar) {
        let Here { inside, stage, .. } = self.here;
        self.facts.operations.push(Operation { stage, inside, class, ty });
    }

    /// Notes what a statement writes of its stage, and what memory it takes.
    fn note(&mut self, s: &Stmt) {
        let inside = self.here.inside;
        let mut write = None;
        match s {
            Stmt::Let(v, e) => {
                let kept = self.keeps(e);
                if !kept.is_empty() {
                    self.kept.insert(*v, kept);
                }
            }
            Stmt::Store(buf, _, e) | Stmt::MaskedStore(buf, _, e, _) => {
                if let Some((stage, tile)) = self.owners.buf(*buf) {
                    let step = self.keeps(e).contains(&Root::Buf(*buf));
                    write = Some(facts::Write { stage, inside, step, element: !tile });
                }
            }
            Stmt::Set(v, e) => {
                if let Some(stage) = self.owners.var(*v) {
                    let step = self.keeps(e).contains(&Root::Var(*v));
                    write = Some(facts::Write { stage, inside, step, element: !step });
                }
            }
            Stmt::Mut(v, _) => {
                if let Some(stage) = self.owners.var(*v) {
                    let bytes = f64::from(self.func.var(*v).ty.bytes());
                    let take = Take { stage, inside, buf: None, bytes, row: bytes, accumulators: false };
                    self.facts.takes.push(take);
                }
            }
            Stmt::Alloc(buf, dims) => {
                if let Some((stage, accumulators)) = self.owners.buf(*buf) {
                    let extents: Vec<f64> =
                        dims.iter().map(|d| self.known.number(d).unwrap_or(16.0).max(0.0)).collect();
                    let one = f64::from(self.func.buf(*buf).ty.bytes());
                    let bytes = one * extents.iter().product::<f64>();
                    let row = one * extents.last().copied().unwrap_or(1.0);
                    self.facts.takes.push(Take { stage, inside, buf: Some(*buf), bytes, row, accumulators });
                }
            }
            _ => {}
        }
        self.facts.writes.extend(write);
    }

    /// Which variables and memory of stages a value is computed from.
    fn keeps(&self, e: &Expr) -> Vec<Root> {
        let mut out: Vec<Root> = vec![];
        let mut add = |root: Root| {
            if !out.contains(&root) {
                out.push(root);
            }
        };
        e.visit(&mut |e| match e {
            Expr::Var(v) => {
                self.kept.get(v).into_iter().flatten().for_each(|r| add(*r));
                self.owners.var(*v).into_iter().for_each(|_| add(Root::Var(*v)));
            }
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) if self.owners.buf(*b).is_some() => add(Root::Buf(*b)),
            _ => {}
        });
        out
    }

    /// Instructions for the lanes of a value.
    fn instructions(&self, ty: Scalar) -> f64 {
        let lanes = self.vector.map_or(1, |(_, n)| n);
        (f64::from(lanes) * f64::from(ty.bytes()) / f64::from(self.machine.vector_bytes)).ceil().max(1.0)
    }

    fn expr(&mut self, e: &Expr, b: &mut Block, times: f64) {
        match e {
            Expr::Lit(_) | Expr::Var(_) => {}
            Expr::Load(buf, at) => self.load(*buf, at, b, times),
            Expr::MaskedLoad(buf, parts) => self.load(*buf, &parts[0], b, times),
            // Indices are counted by the compiler's induction, which costs next to nothing.
            Expr::Op(_, Scalar::I64, _) if self.known.form(e).is_some() => {}
            Expr::Op(op, ty, args) => {
                args.iter().for_each(|a| self.expr(a, b, times));
                b.arithmetic += weight(*op, *ty) * self.instructions(*ty);
                self.operation(Some(op.row().class), *ty);
            }
            Expr::Cond(parts) => {
                parts.iter().for_each(|a| self.expr(a, b, times));
                b.arithmetic += self.instructions(self.func.ty(&parts[1]));
                self.operation(None, self.func.ty(&parts[1]));
            }
            Expr::Cast(ty, inner) => {
                self.expr(inner, b, times);
                b.arithmetic += self.instructions(*ty);
                self.operation(None, *ty);
            }
            _ => e.kids().iter().for_each(|k| self.expr(k, b, times)),
        }
    }

    fn load(&mut self, buf: Buf, at: &Expr, b: &mut Block, times: f64) {
        let form = self.known.form(at);
        if form.is_none() {
            self.expr(at, b, times);
        }
        if self.in_register(buf, form.as_ref()) || !b.read.insert(key(&Accumulator::Place(buf, form.clone()))) {
            return;
        }
        self.access((buf, form), self.is_wild(at), false, b, times);
    }

    fn store(&mut self, buf: Buf, at: &Expr, e: &Expr, b: &mut Block, times: f64) {
        self.expr(e, b, times);
        let form = self.known.form(at);
        self.accumulated(&Accumulator::Place(buf, form.clone()), e, b);
        if !self.in_register(buf, form.as_ref()) {
            self.access((buf, form), self.is_wild(at), true, b, times);
        }
    }

    fn access(&mut self, (buf, at): (Buf, Option<Form>), wild: bool, store: bool, b: &mut Block, times: f64) {
        let ty = self.func.buf(buf).ty;
        let step = match (self.vector, &at) {
            _ if wild => f64::INFINITY,
            (Some((v, _)), Some(form)) => form.coefficient(v).abs(),
            (Some(_), None) => f64::INFINITY,
            (None, _) => 0.0,
        };
        let lanes = f64::from(self.vector.map_or(1, |(_, n)| n));
        let count = match step {
            0.0 => 1.0,
            1.0 => self.instructions(ty),
            _ => {
                self.work().0[6] += lanes * times * if wild { WILD } else { 1.0 };
                lanes
            }
        };
        *(if store { &mut b.stores } else { &mut b.loads }) += count;
        let access = Access { buf, bytes: f64::from(ty.bytes()), at, store, stage: self.here.stage };
        self.facts.touches.push(Touch { access: access.clone(), wild, inside: self.here.inside });
        b.node.accesses.push(access);
    }

    /// Whether an index is clamped, divided or chosen lane by lane: such elements are read one by one.
    fn is_wild(&self, e: &Expr) -> bool {
        let Some((lane, _)) = self.vector else { return false };
        let bends = |e: &Expr| match e {
            Expr::Op(op, ..) => {
                matches!(op, Op::Min | Op::Max | Op::Div | Op::FloorDiv | Op::Mod | Op::FloorMod)
            }
            Expr::Cond(_) => true,
            _ => false,
        };
        let differs = |e: &Expr| self.known.form(e).is_none_or(|f| f.coefficient(lane) != 0.0);
        e.any(&mut |e| match e {
            Expr::Var(v) => self.wild.contains(v),
            _ => bends(e) && e.kids().iter().any(differs),
        })
    }

    /// Whether an element of a small buffer is at a known place.
    fn in_register(&self, buf: Buf, at: Option<&Form>) -> bool {
        let lane = |v: Var| self.vector.is_some_and(|(w, _)| v == w);
        self.small.contains(&buf) && at.is_some_and(|f| f.terms.iter().all(|(v, _)| lane(*v)))
    }

    /// Notes that a value goes into what it is computed from.
    fn accumulated(&mut self, into: &Accumulator, e: &Expr, b: &mut Block) {
        if let Some(operations) = self.through(e, into) {
            let vectors = self.instructions(self.func.ty(e));
            let of = match into {
                Accumulator::Var(v) => Root::Var(*v),
                Accumulator::Place(buf, _) => Root::Buf(*buf),
            };
            let chain = b.chains.entry(key(into)).or_insert(Chain { of, wait: 0.0, vectors });
            chain.wait += LATENCY * operations;
        }
    }

    /// How many operations lie between what is read of an accumulator and the value.
    fn through(&self, e: &Expr, of: &Accumulator) -> Option<f64> {
        let own = match (e, of) {
            (Expr::Var(v), Accumulator::Var(w)) => v == w,
            (Expr::Load(b, at), Accumulator::Place(buf, form)) => {
                b == buf && form.is_some() && self.known.form(at) == *form
            }
            _ => false,
        };
        if own {
            return Some(0.0);
        }
        let below = e
            .kids()
            .iter()
            .filter_map(|k| self.through(k, of))
            .fold(None, |m: Option<f64>, n| Some(m.map_or(n, |m| m.max(n))))?;
        Some(below + if matches!(e, Expr::Op(..)) { 1.0 } else { 0.0 })
    }
}

/// A number for a place: accesses of one place have one.
fn key(of: &Accumulator) -> u64 {
    let mut hash = FxHasher::default();
    match of {
        Accumulator::Var(v) => v.0.hash(&mut hash),
        Accumulator::Place(buf, None) => (buf.0, "unknown").hash(&mut hash),
        Accumulator::Place(buf, Some(form)) => {
            (buf.0, form.constant.to_bits()).hash(&mut hash);
            form.terms.iter().for_each(|(v, c)| (v.0, c.to_bits()).hash(&mut hash));
        }
    }
    hash.finish()
}

/// What a value may be added to.
enum Accumulator {
    Var(Var),
    Place(Buf, Option<Form>),
}

/// Registers for what is added up: some are for what is added, of 32 where vectors have 512 bits, of 16 otherwise.
pub fn registers(machine: &Machine) -> f64 {
    if machine.vector_bytes >= 64 { 30.0 } else { 13.0 }
}

/// How many additions an operation is worth.
pub fn weight(op: Op, ty: Scalar) -> f64 {
    match op.row().class {
        Class::Cheap | Class::Multiply => 1.0,
        Class::Divide if ty == Scalar::F32 => 6.0,
        Class::Divide => 10.0,
        Class::Transcendental => 40.0,
    }
}
