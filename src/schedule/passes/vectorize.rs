//! Vector loops become vectors: a loop over blocks of as many iterations as there are lanes, and a serial loop for
//! the iterations that are left.
//!
//! What diverges is a vector; what is uniform, or only grows from lane to lane, stays a number, that of lane 0.
//! Statements that not all lanes run are done lane by lane. Where a check fails in some lane, the loop over blocks
//! is left, and the serial loop does the block again: it finds the failure that comes first. Fewer iterations than
//! lanes, and more than one, are the first lanes of one block, or vectors of fewer lanes where their number is known. Where
//! iterations may be done twice, the last block overlaps the one before.

use super::divergence::{Class, Divergence, analyse, are_masked, is_direct, is_direct_cast, is_masked, is_safe};
use crate::ir::{Op, Scalar};
use crate::machine::NARROW;
use crate::nest::stretch::Stretch;
use crate::nest::{Buf, Expr, Func, Info, Loop, LoopKind, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Makes vectors of all vector loops of a function.
pub fn vectorize(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    block(func, &mut body);
    func.body = body;
}

fn block(func: &mut Func, stmts: &mut Vec<Stmt>) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut s in stmts.drain(..) {
        s.blocks_mut().into_iter().for_each(|b| block(func, b));
        match s {
            Stmt::For(l) => match l.kind {
                LoopKind::Vector(lanes) => out.extend(vector_loop(func, *l, lanes)),
                LoopKind::Serial | LoopKind::Parallel { .. } => out.push(Stmt::For(l)),
            },
            _ => out.push(s),
        }
    }
    *stmts = out;
}

/// Bodies of more statements are not written once more for few iterations.
const MAX_FEW: usize = 60;

/// The statements of one vector loop; the loop itself, serial, where it cannot be one.
fn vector_loop(func: &mut Func, l: Loop, lanes: u32) -> Vec<Stmt> {
    let serial = Loop { kind: LoopKind::Serial, ..l };
    let (Some(known), Some(n)) = (analyse(func, &serial), serial.extent().cloned()) else {
        return vec![Stmt::For(Box::new(serial))];
    };
    let lanes_of = i64::from(lanes);
    if n.as_int() == Some(lanes_of) && known.is_plain() {
        return one_block(func, &known, &serial, lanes, 0);
    }
    if let Some(few) = n.as_int().filter(|n| (1..lanes_of).contains(n))
        && let Some(pieces) = pieces(func, &known, &serial, few)
    {
        return pieces;
    }
    let mut out = vec![];
    let n = if n.is_atom() {
        n
    } else {
        let v = func.fresh("n", Scalar::I64);
        out.push(Stmt::Let(v, n));
        Expr::Var(v)
    };
    let done = func.fresh("done", Scalar::I64);
    out.push(Stmt::Mut(done, Expr::int(0)));
    let overlap = known.may_overlap();
    let step = func.fresh("block", Scalar::I64);
    let count = |n: Expr| Expr::index_op(Op::Div, n, Expr::int(lanes_of));
    let blocks = if overlap {
        // The last block overlaps the one before: it writes the same again.
        let enough = Expr::Op(Op::Gte, Scalar::Bool, vec![n.clone(), Expr::int(lanes_of)]);
        let up = count(Expr::index_op(Op::Add, n.clone(), Expr::int(lanes_of - 1)));
        Expr::Cond(Box::new([enough, up, Expr::int(0)]))
    } else {
        count(n.clone())
    };
    let mut first = Expr::index_op(Op::Mul, Expr::Var(step), Expr::int(lanes_of));
    if overlap {
        let last = Expr::index_op(Op::Sub, n.clone(), Expr::int(lanes_of));
        first = Expr::Op(Op::Min, Scalar::I64, vec![first, last]);
    }
    let next = |var: Var| Expr::index_op(Op::Add, Expr::Var(var), Expr::int(lanes_of));
    out.push(wide(func, &known, &serial, Wide { lanes, counter: step, live: None }, (first, blocks, done), &next));
    let short = walk::count(&serial.body) <= MAX_FEW;
    if n.as_int().is_none() && short {
        let less = Expr::Op(Op::Lt, Scalar::Bool, vec![n.clone(), Expr::int(lanes_of)]);
        let more = Expr::Op(Op::Gt, Scalar::Bool, vec![n.clone(), Expr::int(1)]);
        let once =
            Expr::Cond(Box::new([Expr::Op(Op::And, Scalar::Bool, vec![less, more]), Expr::int(1), Expr::int(0)]));
        let step = func.fresh("few", Scalar::I64);
        let next = |_| n.clone();
        let live = Some(n.clone());
        out.push(wide(func, &known, &serial, Wide { lanes, counter: step, live }, (Expr::int(0), once, done), &next));
    }
    out.push(Stmt::For(Box::new(Loop { from: Expr::Var(done), to: n, ..serial })));
    out
}

/// As many iterations of a loop as there are lanes, from this one on, without checks or sums: its body once, and no loop.
fn one_block(func: &mut Func, known: &Divergence, l: &Loop, lanes: u32, first: i64) -> Vec<Stmt> {
    let var = func.fresh(func.var(l.var).name.clone(), Scalar::I64);
    let mut maker = Maker::new(func, known, Wide { lanes, counter: var, live: None }, l.var, var);
    maker.first = Some((var, first));
    maker.block(&l.body)
}

/// Iterations that are left after short vectors, each written for itself, at most.
const MAX_ALONE: i64 = 3;

/// Fewer iterations than lanes, where their number is known: vectors of fewer lanes, and no loop, so that each place that is
/// written is a place of its own. Nothing where they are not so simple.
fn pieces(func: &mut Func, known: &Divergence, l: &Loop, n: i64) -> Option<Vec<Stmt>> {
    let (mut first, mut out) = (0, vec![]);
    let simple = |s: &Stmt| matches!(s, Stmt::Let(..) | Stmt::Store(..));
    if !known.is_plain() || walk::count(&l.body) > MAX_FEW || !l.body.iter().all(simple) {
        return None;
    }
    // No vector of what is computed is shorter than the shortest that there are.
    let mut bytes = NARROW;
    let mut look = |e: &Expr| bytes = bytes.min(func.ty(e).bytes().into());
    l.body.iter().flat_map(Stmt::exprs).for_each(|e| e.visit(&mut look));
    let shortest = NARROW / bytes;
    if n % shortest > MAX_ALONE {
        return None;
    }
    while first < n {
        let lanes = 1 << (n - first).ilog2();
        let (each, made) = match lanes >= shortest {
            true => (lanes, one_block(func, known, l, lanes as u32, first)),
            false => (1, one_iteration(func, known, l, first)),
        };
        out.extend(made);
        first += each;
    }
    Some(out)
}

/// One iteration of a loop, and no loop.
fn one_iteration(func: &mut Func, known: &Divergence, l: &Loop, first: i64) -> Vec<Stmt> {
    let var = func.fresh(func.var(l.var).name.clone(), Scalar::I64);
    let mut maker = Maker::new(func, known, Wide { lanes: 1, counter: var, live: None }, l.var, var);
    maker.first = Some((var, first));
    l.body.iter().flat_map(|s| maker.alone(s)).collect()
}

/// How a loop over blocks runs.
pub(super) struct Wide {
    pub lanes: u32,
    /// Its variable.
    pub counter: Var,
    /// How many lanes have iterations, where that is not all of them.
    pub live: Option<Expr>,
}

/// The loop over blocks: where the first lane starts, how many blocks there are, and which variable says how many
/// iterations are done.
fn wide(
    func: &mut Func,
    known: &Divergence,
    l: &Loop,
    how: Wide,
    (first, blocks, done): (Expr, Expr, Var),
    next: &dyn Fn(Var) -> Expr,
) -> Stmt {
    let var = func.fresh(func.var(l.var).name.clone(), Scalar::I64);
    let counter = how.counter;
    let mut maker = Maker::new(func, known, how, l.var, var);
    let mut body = vec![Stmt::Let(var, first)];
    body.extend(maker.block(&l.body));
    body.push(Stmt::Set(done, next(var)));
    Stmt::For(Box::new(Loop { takes: l.takes, ..Loop::new(counter, blocks, body) }))
}

/// Makes the statements of all lanes at once of those of an iteration.
pub(super) struct Maker<'a> {
    pub func: &'a mut Func,
    pub known: &'a Divergence,
    pub how: Wide,
    /// What the body declares, in this copy of it.
    vars: FxHashMap<Var, Var>,
    bufs: FxHashMap<Buf, Buf>,
    /// Variables of statements that run lane by lane: numbers.
    own: FxHashSet<Var>,
    /// The lane, in statements and expressions that are done lane by lane.
    pub lane: Option<Var>,
    /// The lanes that run this, in arms of conditions.
    pub mask: Option<Var>,
    /// What has to stand before the statement.
    pub before: Vec<Stmt>,
    /// The iteration of lane 0, where that is known: its variable is not declared.
    first: Option<(Var, i64)>,
}

impl<'a> Maker<'a> {
    /// A copy of a body in which `var` is the iteration of lane 0 of the loop over `of`.
    fn new(func: &'a mut Func, known: &'a Divergence, how: Wide, of: Var, var: Var) -> Maker<'a> {
        Maker {
            func,
            known,
            how,
            vars: FxHashMap::from_iter([(of, var)]),
            bufs: FxHashMap::default(),
            own: FxHashSet::default(),
            lane: None,
            mask: None,
            before: vec![],
            first: None,
        }
    }
}

impl Maker<'_> {
    pub fn var(&self, v: Var) -> Var {
        self.vars.get(&v).copied().unwrap_or(v)
    }

    fn buf(&self, b: Buf) -> Buf {
        self.bufs.get(&b).copied().unwrap_or(b)
    }

    fn varies(&self, v: Var) -> bool {
        self.known.class(&Expr::Var(v)) == Class::Divergent
    }

    /// The variable of this copy, declared as a number or as a vector.
    fn declare(&mut self, v: Var, lanes: u32) -> Var {
        let info = Info { lanes, ..self.func.var(v).clone() };
        let new = self.func.fresh_var(info);
        self.vars.insert(v, new);
        new
    }

    fn int(&mut self, name: &str) -> Var {
        self.func.fresh(name, Scalar::I64)
    }

    /// How many lanes have iterations.
    fn live(&self) -> Expr {
        self.how.live.clone().unwrap_or(Expr::int(self.how.lanes.into()))
    }

    pub fn block(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let outer = std::mem::take(&mut self.before);
        let mut out = vec![];
        for s in stmts {
            let made = self.stmt(s);
            out.append(&mut self.before);
            out.extend(made);
        }
        self.before = outer;
        out
    }

    /// A statement for all lanes at once.
    fn stmt(&mut self, s: &Stmt) -> Vec<Stmt> {
        let lanes = self.how.lanes;
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                let wide = self.varies(*v);
                let e = if wide { self.vector(e) } else { self.number(e) };
                let v = self.declare(*v, if wide { lanes } else { 1 });
                vec![if matches!(s, Stmt::Let(..)) { Stmt::Let(v, e) } else { Stmt::Mut(v, e) }]
            }
            Stmt::Set(v, Expr::Op(op, ty, args)) if self.known.carries(*v) => self.add(*v, *op, *ty, args),
            Stmt::Set(v, e) if self.varies(*v) => self.set(*v, e),
            Stmt::Set(v, e) => vec![Stmt::Set(self.var(*v), self.number(e))],
            Stmt::Alloc(b, dims) => {
                let dims = dims.iter().map(|d| self.number(d)).collect();
                let info = Info { lanes, ..self.func.buf(*b).clone() };
                let new = self.func.fresh_buf(info);
                self.bufs.insert(*b, new);
                vec![Stmt::Alloc(new, dims)]
            }
            Stmt::Store(b, at, e) => self.store(s, *b, at, e),
            Stmt::Check(ok, site, values) => {
                let plain = values.iter().all(|v| self.known.class(v) != Class::Divergent);
                if plain && self.known.is_uniform(ok) {
                    let values = values.iter().map(|v| self.number(v)).collect();
                    return vec![Stmt::Check(self.number(ok), *site, values)];
                }
                let every = self.every(ok);
                vec![Stmt::Leave(self.how.counter, not(every))]
            }
            Stmt::For(l) if self.known.is_uniform(&l.to) => {
                let to = self.number(&l.to);
                let var = self.declare(l.var, 1);
                let body = self.block(&l.body);
                vec![Stmt::For(Box::new(Loop { takes: l.takes, ..Loop::new(var, to, body) }))]
            }
            Stmt::If(c, a, b) if self.known.is_uniform(c) => {
                let c = self.first(c);
                vec![Stmt::If(c, self.block(a), self.block(b))]
            }
            Stmt::If(c, a, b) if self.are_masked(a) && self.are_masked(b) => self.masked(c, a, b),
            Stmt::For(_) | Stmt::If(..) => self.lane_by_lane(|m| m.alone(s)),
            Stmt::Mark(m) => vec![Stmt::Mark(*m)],
            Stmt::Reset(m) => vec![Stmt::Reset(*m)],
            // The analysis lets none of these stand here.
            Stmt::Call(..) | Stmt::Print(..) | Stmt::Point(..) => vec![],
            Stmt::SetLane(..) | Stmt::MaskedStore(..) | Stmt::StoreLane(..) | Stmt::Leave(..) => vec![],
        }
    }

    fn store(&mut self, s: &Stmt, b: Buf, at: &Expr, e: &Expr) -> Vec<Stmt> {
        if self.known.is_private(b) {
            if self.known.is_uniform(at) {
                let (at, e) = (self.number(at), self.vector(e));
                return vec![Stmt::Store(self.buf(b), at, e)];
            }
            return self.lane_by_lane(|m| m.alone(s));
        }
        let (at, e) = (self.vector(at), self.vector(e));
        match self.how.live.clone() {
            Some(live) => vec![Stmt::MaskedStore(b, at, e, Expr::PrefixMask(Box::new(live), self.how.lanes))],
            None => vec![Stmt::Store(b, at, e)],
        }
    }

    fn are_masked(&self, arm: &[Stmt]) -> bool {
        are_masked(self.known, arm)
    }

    /// Each lane adds to a variable, in the order of the iterations.
    fn add(&mut self, v: Var, op: Op, ty: Scalar, args: &[Expr]) -> Vec<Stmt> {
        let step = Info { name: "step".into(), ty: self.func.ty(&args[1]), lanes: self.how.lanes };
        let each = self.vector(&args[1]);
        let step = self.func.fresh_var(step);
        let lane = self.int("lane");
        let one = Expr::Extract(Box::new([Expr::Var(step), Expr::Var(lane)]));
        let set = Stmt::Set(v, Expr::Op(op, ty, vec![Expr::Var(v), one]));
        vec![Stmt::Let(step, each), Stmt::For(Box::new(Loop::new(lane, self.live(), vec![set])))]
    }

    /// Statements for the lanes that have iterations, one lane after another.
    fn lane_by_lane(&mut self, make: impl FnOnce(&mut Self) -> Vec<Stmt>) -> Vec<Stmt> {
        let lane = self.int("lane");
        self.lane = Some(lane);
        let body = make(self);
        self.lane = None;
        vec![Stmt::For(Box::new(Loop::new(lane, self.live(), body)))]
    }

    /// A statement for the one lane.
    fn alone(&mut self, s: &Stmt) -> Vec<Stmt> {
        let lane = Expr::Var(self.lane.unwrap_or(self.how.counter));
        let block = |m: &mut Self, stmts: &[Stmt]| stmts.iter().flat_map(|s| m.alone(s)).collect::<Vec<_>>();
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                let e = self.number(e);
                let new = self.declare(*v, 1);
                self.own.insert(*v);
                vec![if matches!(s, Stmt::Let(..)) { Stmt::Let(new, e) } else { Stmt::Mut(new, e) }]
            }
            Stmt::Set(v, e) if self.own.contains(v) => vec![Stmt::Set(self.var(*v), self.number(e))],
            Stmt::Set(v, e) => vec![Stmt::SetLane(self.var(*v), lane, self.number(e))],
            Stmt::Store(b, at, e) => {
                let (at, e) = (self.number(at), self.number(e));
                match self.known.is_private(*b) {
                    true => vec![Stmt::StoreLane(self.buf(*b), at, lane, e)],
                    false => vec![Stmt::Store(*b, at, e)],
                }
            }
            Stmt::Check(ok, ..) => vec![Stmt::Leave(self.how.counter, not(self.number(ok)))],
            Stmt::For(l) => {
                let to = self.number(&l.to);
                let var = self.declare(l.var, 1);
                self.own.insert(l.var);
                let body = block(self, &l.body);
                vec![Stmt::For(Box::new(Loop::new(var, to, body)))]
            }
            Stmt::If(c, a, b) => {
                let c = self.number(c);
                let a = block(self, a);
                vec![Stmt::If(c, a, block(self, b))]
            }
            // The analysis lets none of these stand where lanes differ.
            Stmt::Alloc(..) | Stmt::Mark(_) | Stmt::Reset(_) | Stmt::Call(..) | Stmt::Print(..) => vec![],
            Stmt::Point(..) => vec![],
            Stmt::SetLane(..) | Stmt::MaskedStore(..) | Stmt::StoreLane(..) | Stmt::Leave(..) => vec![],
        }
    }

    /// The value in the one lane; without a lane, that of lane 0 of what is uniform or grows from lane to lane.
    pub fn number(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Var(v) => {
                let own = self.var(*v);
                let first = self.first.filter(|(var, _)| *var == own);
                let new = first.map_or(Expr::Var(own), |(_, first)| Expr::int(first));
                let Some(lane) = self.lane.map(Expr::Var).filter(|_| !self.own.contains(v)) else { return new };
                match self.known.class(e) {
                    Class::Uniform => new,
                    Class::Affine(s) => {
                        let step = self.number(&s);
                        Expr::index_op(Op::Add, new, Expr::index_op(Op::Mul, lane, step))
                    }
                    Class::Divergent => Expr::Extract(Box::new([new, lane])),
                }
            }
            Expr::Load(b, at) => {
                let load = Expr::Load(self.buf(*b), Box::new(self.number(at)));
                match self.lane.filter(|_| self.known.is_private(*b)) {
                    Some(lane) => Expr::Extract(Box::new([load, Expr::Var(lane)])),
                    None => load,
                }
            }
            Expr::Op(op, ty @ Scalar::I64, args) => {
                let args = args.iter().map(|a| self.number(a)).collect();
                Expr::folded(*op, *ty, args)
            }
            _ => {
                let mut out = e.clone();
                for (to, from) in out.kids_mut().iter_mut().zip(e.kids()) {
                    *to = self.number(from);
                }
                out
            }
        }
    }

    /// The values of all lanes, computed lane by lane.
    fn each(&mut self, e: &Expr) -> Expr {
        let lane = self.int("lane");
        let outer = self.lane.replace(lane);
        let value = self.number(e);
        self.lane = outer;
        Expr::PerLane(lane, self.how.lanes, Box::new([self.live(), value]))
    }

    /// An operation that is done lane by lane on arguments that are vectors.
    fn call(&mut self, op: Op, ty: Scalar, args: &[Expr]) -> Expr {
        let lane = self.int("lane");
        let mut each = vec![];
        for a in args {
            let info = Info { name: "of".into(), ty: self.func.ty(a), lanes: self.how.lanes };
            let value = self.vector(a);
            let v = self.func.fresh_var(info);
            self.before.push(Stmt::Let(v, value));
            each.push(Expr::Extract(Box::new([Expr::Var(v), Expr::Var(lane)])));
        }
        Expr::PerLane(lane, self.how.lanes, Box::new([self.live(), Expr::Op(op, ty, each)]))
    }

    /// The values of all lanes.
    pub fn vector(&mut self, e: &Expr) -> Expr {
        let lanes = self.how.lanes;
        match self.known.class(e) {
            Class::Uniform => return Expr::Broadcast(Box::new(self.first(e)), lanes),
            Class::Affine(s) => {
                let (first, step) = (self.first(e), self.first(&s));
                return Expr::Ramp(Box::new([first, step]), lanes);
            }
            Class::Divergent => {}
        }
        match e {
            Expr::Var(v) => Expr::Var(self.var(*v)),
            Expr::Load(b, at) => self.load(e, *b, at),
            Expr::Op(op, ty, args) if is_direct(*op, *ty, args) => {
                Expr::Op(*op, *ty, args.iter().map(|a| self.vector(a)).collect())
            }
            Expr::Cast(to, a) if is_direct_cast(*to) => Expr::Cast(*to, Box::new(self.vector(a))),
            Expr::Cond(p) if is_safe(&p[1]) && is_safe(&p[2]) => self.selected(p),
            Expr::Cond(p) if p[1..].iter().all(|arm| is_masked(self.known, arm)) => {
                if self.known.is_uniform(&p[0]) {
                    self.branched(p)
                } else {
                    self.chosen(p)
                }
            }
            Expr::Op(op, ty, args) => self.call(*op, *ty, args),
            _ => self.each(e),
        }
    }

    fn load(&mut self, e: &Expr, b: Buf, at: &Expr) -> Expr {
        if self.known.is_private(b) {
            return match self.known.is_uniform(at) {
                true => Expr::Load(self.buf(b), Box::new(self.number(at))),
                false => self.each(e),
            };
        }
        let mask = self.reading();
        if mask.is_none()
            && let Some(of) = self.known.stretch(at)
        {
            let of = Stretch { base: self.number(&of.base), first: self.number(&of.first), ..of };
            return Expr::Load(b, Box::new(of.index(self.how.lanes)));
        }
        let at = self.vector(at);
        match mask {
            Some(mask) => Expr::MaskedLoad(b, Box::new([at, mask])),
            None => Expr::Load(b, Box::new(at)),
        }
    }

    /// Whether a condition holds in all lanes. What grows from lane to lane is least in the first and greatest in
    /// the last.
    fn every(&mut self, e: &Expr) -> Expr {
        if self.known.is_uniform(e) {
            return self.number(e);
        }
        let Expr::Op(op, _, args) = e else { return self.every_lane(e) };
        let step = args.first().map_or(Class::Divergent, |a| self.known.class(a));
        match (op, step) {
            (Op::And, _) => {
                let both = vec![self.every(&args[0]), self.every(&args[1])];
                Expr::Op(Op::And, Scalar::Bool, both)
            }
            (Op::Gt | Op::Gte | Op::Lt | Op::Lte, Class::Affine(s))
                if s.as_int().is_some_and(|s| (0..1 << 20).contains(&s)) && self.known.is_uniform(&args[1]) =>
            {
                let (first, bound) = (self.number(&args[0]), self.number(&args[1]));
                let last = Expr::index_op(Op::Sub, self.live(), Expr::int(1));
                let worst = match op {
                    Op::Lt | Op::Lte => Expr::index_op(Op::Add, first, Expr::index_op(Op::Mul, s, last)),
                    _ => first,
                };
                Expr::Op(*op, Scalar::Bool, vec![worst, bound])
            }
            _ => self.every_lane(e),
        }
    }

    fn every_lane(&mut self, e: &Expr) -> Expr {
        let mut mask = self.vector(e);
        if let Some(live) = self.how.live.clone() {
            let idle = not(Expr::PrefixMask(Box::new(live), self.how.lanes));
            mask = Expr::Op(Op::Or, Scalar::Bool, vec![mask, idle]);
        }
        Expr::All(Box::new(mask))
    }
}

pub(super) fn not(e: Expr) -> Expr {
    Expr::Op(Op::Not, Scalar::Bool, vec![e])
}
