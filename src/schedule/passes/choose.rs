//! Chooses the loops that run as vectors, by coarse costs: ratios of operations, and the width of vectors.

use super::divergence::{Class, Divergence, analyse, are_masked, is_direct, is_direct_cast, is_masked, is_safe};
use crate::ir::op::Class as Kind;
use crate::ir::{Op, Scalar};
use crate::machine::fitting;
use crate::nest::{Buf, Expr, Func, Loop, LoopKind, Stmt, Var, walk};

/// Makes vector loops of those that are cheaper so. `vector_bytes` is the width of vectors.
pub fn choose(func: &mut Func, vector_bytes: u32) {
    let mut body = std::mem::take(&mut func.body);
    Costs { func, vector_bytes, all: false, arms: false }.block(&mut body);
    func.body = body;
}

/// As [`choose`], of the loops of which a schedule says nothing: they are serial, and so are all loops in them.
pub fn complete(func: &mut Func, vector_bytes: u32) {
    let mut body = std::mem::take(&mut func.body);
    Costs { func, vector_bytes, all: false, arms: true }.rest(&mut body);
    func.body = body;
}

/// As [`complete`], and says so of the loops, too, of which compilers make vectors themselves: for estimates, since the loops
/// are not split.
pub fn foresee(func: &mut Func, vector_bytes: u32) {
    let mut body = std::mem::take(&mut func.body);
    Costs { func, vector_bytes, all: true, arms: true }.rest(&mut body);
    func.body = body;
}

/// How often loops run whose extents are not known.
const TRIPS: f64 = 16.0;
/// What reading one element from a place of its own costs for each lane, in loads.
const GATHER: f64 = 1.25;
/// What reading neighbours costs of which each is read by a few lanes.
const WOVEN: f64 = 3.0;
/// What waiting for the last addition costs, in additions.
const LATENCY: f64 = 3.0;
/// Bytes that a row of memory of each lane takes at most.
const ROW: i64 = 1 << 16;
/// Vectors have to save so much: estimates are coarse, and the text doubles.
const MARGIN: f64 = 0.75;

struct Costs<'a> {
    func: &'a Func,
    vector_bytes: u32,
    /// Whether loops are chosen of which compilers make vectors.
    all: bool,
    /// Whether arms are a reason to choose: where nothing is known of sizes, many loops with arms are short.
    arms: bool,
}

/// A loop as it would run in lanes.
struct Wide {
    known: Divergence,
    lanes: u32,
}

fn trips(l: &Loop) -> f64 {
    l.extent().and_then(most).or(l.likely).map_or(TRIPS, |n| n.max(0) as f64)
}

/// A number that an extent is at most: itself, or one that it is clamped to.
fn most(e: &Expr) -> Option<i64> {
    match e {
        Expr::Op(Op::Min, _, args) => args.iter().filter_map(most).min(),
        e => e.as_int(),
    }
}

fn mentions(e: &Expr, v: Var) -> bool {
    *e == Expr::Var(v) || e.kids().iter().any(|k| mentions(k, v))
}

/// The time of an operation in one lane.
fn op_cost(op: Op, ty: Scalar) -> f64 {
    match op.row().class {
        _ if op.divides() => 6.0,
        Kind::Cheap | Kind::Multiply if ty == Scalar::I64 => 0.25,
        Kind::Cheap | Kind::Multiply => 1.0,
        Kind::Divide => 6.0,
        Kind::Transcendental => 20.0,
    }
}

impl Costs<'_> {
    fn rest(&self, stmts: &mut [Stmt]) {
        for s in stmts {
            match s {
                Stmt::For(l) if l.kind == LoopKind::Serial && !has_vectors(&l.body) => drop(self.choose(l)),
                _ => s.blocks_mut().into_iter().for_each(|b| self.rest(b)),
            }
        }
    }

    /// What a block costs as it is, once the loops in it are chosen.
    fn block(&self, stmts: &mut [Stmt]) -> f64 {
        stmts.iter_mut().map(|s| self.stmt(s)).sum()
    }

    fn stmt(&self, s: &mut Stmt) -> f64 {
        match s {
            Stmt::For(l) => self.choose(l),
            Stmt::If(c, a, b) => self.expr(c) + 1.0 + self.block(a).max(self.block(b)),
            Stmt::Let(_, e) | Stmt::Mut(_, e) => self.expr(e),
            Stmt::Set(v, e) => self.expr(e) + if mentions(e, *v) { LATENCY } else { 0.0 },
            Stmt::Store(_, at, e) => self.expr(at) + self.expr(e) + 1.0,
            Stmt::Check(ok, ..) => self.expr(ok) + 1.0,
            Stmt::Alloc(..) | Stmt::Mark(_) | Stmt::Reset(_) => 1.0,
            Stmt::Call(..) | Stmt::Print(..) => 100.0,
            Stmt::Point(_, _, at) => self.expr(at) + 1.0,
            // What only vectors need is made after loops are chosen.
            Stmt::SetLane(..) | Stmt::MaskedStore(..) | Stmt::StoreLane(..) | Stmt::Leave(..) => 1.0,
        }
    }

    fn expr(&self, e: &Expr) -> f64 {
        let kids: f64 = e.kids().iter().map(|k| self.expr(k)).sum();
        kids + match e {
            Expr::Lit(_) | Expr::Var(_) => 0.0,
            Expr::Op(op, ty, _) => op_cost(*op, *ty),
            _ => 1.0,
        }
    }

    /// The loop as it would run in vectors: as many lanes as hold the widest number that differs between them.
    fn wide(&self, l: &Loop) -> Option<Wide> {
        let known = analyse(self.func, l)?;
        let mut widest = 1;
        let mut look = |e: &Expr| {
            if known.class(e) == Class::Divergent {
                widest = widest.max(self.func.ty(e).bytes());
            }
        };
        walk::visit(&l.body, &mut |s| {
            s.exprs().into_iter().for_each(|e| e.visit(&mut look));
            if let Stmt::Let(v, _) | Stmt::Mut(v, _) | Stmt::Set(v, _) = s {
                look(&Expr::Var(*v));
            }
        });
        let full = i64::from((self.vector_bytes / widest).max(2));
        let row = l.extent().and_then(Expr::as_int).unwrap_or(full);
        Some(Wide { known, lanes: fitting(full, i64::from(widest), row) as u32 })
    }

    /// Chooses for a loop and all in it; gives what it costs then.
    fn choose(&self, l: &mut Loop) -> f64 {
        let each = self.block(&mut l.body) + 1.0;
        let wide = self.wide(l);
        let plain = match &wide {
            // The compiler makes vectors of these itself.
            Some(w) if l.is_flat() && !self.needs_vectors(w, &l.body) => {
                let in_lanes = self.lane_block(w, &l.body, false) / f64::from(w.lanes) + 1.0;
                let cost = trips(l) * each.min(in_lanes);
                if self.all && in_lanes < each {
                    l.kind = LoopKind::Vector(w.lanes);
                }
                return cost;
            }
            _ => trips(l) * each + 4.0,
        };
        let Some(w) = wide else { return plain };
        // The compiler unrolls a few iterations, which beats vectors that are mostly empty.
        if l.extent().and_then(most).is_some_and(|n| n < i64::from(w.lanes)) {
            return plain;
        }
        let cost = trips(l) * self.lane_block(&w, &l.body, false) / f64::from(w.lanes) + 8.0;
        let margin = if has_vectors(&l.body) { 1.0 } else { MARGIN };
        if cost > margin * plain || !self.needs_vectors(&w, &l.body) {
            return plain;
        }
        clear(&mut l.body);
        l.kind = LoopKind::Vector(w.lanes);
        cost
    }

    /// Whether statements hold what a compiler makes no vectors of, or not always: loops that carry values, checks, arms, some
    /// operations, indices that are divided, and elements at a small stride.
    fn needs_vectors(&self, w: &Wide, stmts: &[Stmt]) -> bool {
        let mut needed = false;
        let step = |at: &Expr| match w.known.class(at) {
            Class::Affine(step) => step.as_int(),
            _ => None,
        };
        let gathers = |e: &Expr| matches!(e, Expr::Load(_, at) if w.known.class(at) == Class::Divergent);
        let moves = |s: &Stmt| match s {
            Stmt::Let(..) | Stmt::Store(..) => !s.exprs().into_iter().any(|e| e.any(&mut |e| gathers(e))),
            _ => false,
        };
        // Elements are only moved, or made of others.
        let plain = self.arms && stmts.iter().all(moves);
        let woven = |e: &Expr| match e {
            Expr::Load(_, at) if w.known.stretch(at).is_some() => true,
            Expr::Load(_, at) => plain && step(at).is_some_and(|step| is_picked(step, self.func.ty(e))),
            _ => false,
        };
        walk::visit(stmts, &mut |s| {
            needed |= match s {
                Stmt::For(l) => !l.independent,
                Stmt::Check(..) => true,
                Stmt::If(..) if self.arms => true,
                Stmt::If(..) | Stmt::Let(..) | Stmt::Mut(..) | Stmt::Set(..) | Stmt::Store(..) => {
                    s.exprs().into_iter().any(|e| calls(e, self.arms) || e.any(&mut |e| woven(e)))
                }
                _ => false,
            };
        });
        needed
    }

    /// What a block costs for all lanes together.
    fn lane_block(&self, w: &Wide, stmts: &[Stmt], apart: bool) -> f64 {
        stmts.iter().map(|s| self.lane_stmt(w, s, apart)).sum()
    }

    fn lane_stmt(&self, w: &Wide, s: &Stmt, apart: bool) -> f64 {
        let (known, lanes) = (&w.known, f64::from(w.lanes));
        let one = |e: &Expr| {
            if apart { lanes * (self.expr(e) + 1.0) } else { self.lane_expr(w, e) }
        };
        match s {
            Stmt::For(l) => {
                let apart = apart || !known.is_uniform(&l.to);
                trips(l) * (self.lane_block(w, &l.body, apart) + 1.0)
            }
            Stmt::If(c, a, b) => {
                let masked = !apart && are_masked(known, a) && are_masked(known, b);
                if masked && !known.is_uniform(c) {
                    // All lanes run both arms.
                    return one(c) + 1.0 + self.lane_block(w, a, false) + self.lane_block(w, b, false);
                }
                let apart = apart || !known.is_uniform(c);
                one(c) + 1.0 + self.lane_block(w, a, apart).max(self.lane_block(w, b, apart))
            }
            Stmt::Let(_, e) | Stmt::Mut(_, e) => one(e),
            Stmt::Set(v, Expr::Op(op, ty, args)) if known.carries(*v) => {
                let each = op_cost(*op, *ty) + 1.0 + LATENCY;
                lanes * each + args.get(1).map_or(0.0, one)
            }
            Stmt::Set(v, e) => one(e) + if mentions(e, *v) { LATENCY } else { 0.0 },
            Stmt::Store(b, at, e) => {
                let near =
                    known.is_private(*b) && known.is_uniform(at) || known.class(at) == Class::Affine(Expr::int(1));
                one(e) + self.expr(at) + if near { 1.0 } else { lanes * GATHER }
            }
            Stmt::Check(ok, ..) => one(ok) + 1.0,
            // Each lane has memory of its own: rows fit, larger tensors would take much and leave the caches.
            Stmt::Alloc(b, dims) if dims.len() > 1 || self.is_long(*b, dims, w.lanes) => f64::INFINITY,
            Stmt::Alloc(..) | Stmt::Mark(_) | Stmt::Reset(_) => 1.0,
            // The analysis refuses these.
            Stmt::Call(..)
            | Stmt::Point(..)
            | Stmt::Print(..)
            | Stmt::SetLane(..)
            | Stmt::MaskedStore(..)
            | Stmt::StoreLane(..)
            | Stmt::Leave(..) => f64::INFINITY,
        }
    }

    /// Whether rows of so many lanes are known to take more than a row may.
    fn is_long(&self, b: Buf, dims: &[Expr], lanes: u32) -> bool {
        let each = i64::from(self.func.buf(b).ty.bytes() * lanes);
        dims.iter().any(|n| n.as_int().is_some_and(|n| n.saturating_mul(each) > ROW))
    }

    fn lane_expr(&self, w: &Wide, e: &Expr) -> f64 {
        let (known, lanes) = (&w.known, f64::from(w.lanes));
        if known.class(e) != Class::Divergent {
            return self.expr(e);
        }
        let kids = || e.kids().iter().map(|k| self.lane_expr(w, k)).sum::<f64>();
        match e {
            Expr::Lit(_) | Expr::Var(_) => 0.0,
            Expr::Load(b, at) => {
                let private = known.is_private(*b) && known.is_uniform(at);
                match known.class(at) {
                    _ if private => kids() + 1.0,
                    _ if known.stretch(at).is_some() => self.expr(at) + WOVEN,
                    Class::Affine(step) => self.expr(at) + strided(step.as_int(), self.func.ty(e), lanes),
                    _ => kids() + lanes * GATHER,
                }
            }
            Expr::Op(op, ty, args) if is_direct(*op, *ty, args) => kids() + op_cost(*op, *ty),
            Expr::Cond(parts) if parts[1..].iter().all(|p| is_safe(p) || is_masked(known, p)) => kids() + 1.0,
            Expr::Cast(to, e) if is_direct_cast(*to) => kids() + 1.0,
            Expr::Op(op, ty, _) => kids() + lanes * (op_cost(*op, *ty) + 1.0),
            _ => lanes * (self.expr(e) + 1.0),
        }
    }
}

/// What reading elements at a stride costs. Those at a small one, which is known, are picked out of neighbouring vectors.
fn strided(step: Option<i64>, ty: Scalar, lanes: f64) -> f64 {
    match step {
        Some(1) => 1.0,
        Some(step) if is_picked(step, ty) => 2.0 * step as f64 - 1.0,
        _ => lanes * GATHER,
    }
}

/// Whether lanes at a stride are picked out of neighbouring vectors.
fn is_picked(step: i64, ty: Scalar) -> bool {
    (2..=4).contains(&step) && ty.bytes() >= 4
}

/// Whether a compiler makes no vectors of an expression: functions that the language defines itself, and, if they count, arms,
/// of which it is told to make no masks, and the least and the greatest of floats.
fn calls(e: &Expr, arms: bool) -> bool {
    e.any(&mut |e| match e {
        Expr::Op(op, ..) if op.row().class == Kind::Transcendental => true,
        Expr::Op(Op::Min | Op::Max | Op::Minimum | Op::Maximum, ty, _) => arms && ty.is_float(),
        Expr::Cond(_) => arms,
        _ => false,
    })
}

/// Whether a block has a vector loop.
fn has_vectors(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk::visit(stmts, &mut |s| found |= matches!(s, Stmt::For(l) if l.kind != LoopKind::Serial));
    found
}

fn clear(stmts: &mut [Stmt]) {
    for s in stmts {
        if let Stmt::For(l) = s {
            l.kind = LoopKind::Serial;
        }
        s.blocks_mut().into_iter().for_each(|b| clear(b));
    }
}
