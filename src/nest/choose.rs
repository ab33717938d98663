//! Chooses the loops that run in lanes, by coarse costs: ratios of operations, and no machine.

use super::lanes::{Class, LANES, Lanes, classify, is_direct, is_masked, is_safe};
use super::{Expr, Func, Loop, Stmt, Var};
use crate::ir::op::Class as Kind;
use crate::ir::{Op, Scalar};

/// Runs loops in lanes where that is cheaper.
pub fn choose(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    Costs { func }.block(&mut body);
    func.body = body;
}

/// How often loops run whose extents are not known.
const TRIPS: f64 = 16.0;
/// What reading one element for each lane from different places costs, in loads.
const GATHER: f64 = 10.0;
/// What waiting for the last addition costs, in additions.
const LATENCY: f64 = 3.0;
/// Lanes have to save so much: estimates are coarse, and the text doubles.
const MARGIN: f64 = 0.75;

struct Costs<'a> {
    func: &'a Func,
}

fn trips(l: &Loop) -> f64 {
    l.extent.as_int().map_or(TRIPS, |n| n.max(0) as f64)
}

fn mentions(e: &Expr, v: Var) -> bool {
    *e == Expr::Var(v) || e.kids().iter().any(|k| mentions(k, v))
}

/// The time of an operation in one lane.
fn op_cost(op: Op, ty: Scalar) -> f64 {
    match op.row().class {
        _ if matches!(op, Op::Div | Op::Mod) => 6.0,
        Kind::Cheap | Kind::Multiply if ty == Scalar::I64 => 0.25,
        Kind::Cheap | Kind::Multiply => 1.0,
        Kind::Divide => 6.0,
        Kind::Transcendental => 20.0,
    }
}

impl Costs<'_> {
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
            Stmt::Call(..) => 100.0,
        }
    }

    fn expr(&self, e: &Expr) -> f64 {
        let kids: f64 = e.kids().iter().map(|k| self.expr(k)).sum();
        kids + match e {
            Expr::Lit(_) | Expr::Var(_) => 0.0,
            Expr::Load(..) | Expr::Cast(..) | Expr::Cond(_) => 1.0,
            Expr::Op(op, ty, _) => op_cost(*op, *ty),
        }
    }

    /// Chooses for a loop and all in it; gives what it costs then.
    fn choose(&self, l: &mut Loop) -> f64 {
        let each = self.block(&mut l.body) + 1.0;
        let lanes = classify(self.func, l);
        let plain = match &lanes {
            // The compiler makes vectors of these itself.
            Some(lanes) if l.is_flat() && !needs_lanes(&l.body) => {
                return trips(l) * each.min(self.lane_block(lanes, &l.body, false) / LANES as f64 + 1.0);
            }
            _ => trips(l) * each + 4.0,
        };
        // The compiler unrolls a few iterations, which beats vectors that are mostly empty.
        let few = l.extent.as_int().is_some_and(|n| n < LANES as i64);
        let Some(lanes) = lanes.filter(|_| !few) else { return plain };
        let wide = trips(l) * self.lane_block(&lanes, &l.body, false) / LANES as f64 + 8.0;
        let margin = if in_lanes(&l.body) { 1.0 } else { MARGIN };
        if wide > margin * plain || !needs_lanes(&l.body) {
            return plain;
        }
        clear(&mut l.body);
        l.lanes = true;
        wide
    }

    /// What a block costs for all lanes together.
    fn lane_block(&self, lanes: &Lanes, stmts: &[Stmt], apart: bool) -> f64 {
        stmts.iter().map(|s| self.lane_stmt(lanes, s, apart)).sum()
    }

    fn lane_stmt(&self, lanes: &Lanes, s: &Stmt, apart: bool) -> f64 {
        let one = |e: &Expr| {
            if apart { LANES as f64 * (self.expr(e) + 1.0) } else { self.lane_expr(lanes, e) }
        };
        match s {
            Stmt::For(l) => {
                let apart = apart || !lanes.is_uniform(&l.extent);
                trips(l) * (self.lane_block(lanes, &l.body, apart) + 1.0)
            }
            Stmt::If(c, a, b) => {
                let apart = apart || !(lanes.is_uniform(c) || is_masked(a) && is_masked(b));
                one(c) + 1.0 + self.lane_block(lanes, a, apart).max(self.lane_block(lanes, b, apart))
            }
            Stmt::Let(_, e) | Stmt::Mut(_, e) => one(e),
            Stmt::Set(v, Expr::Op(op, ty, args)) if lanes.carries(*v) => {
                let each = op_cost(*op, *ty) + 1.0 + LATENCY;
                LANES as f64 * each + args.get(1).map_or(0.0, one)
            }
            Stmt::Set(v, e) => one(e) + if mentions(e, *v) { LATENCY } else { 0.0 },
            Stmt::Store(b, at, e) => {
                let near =
                    lanes.is_private(*b) && lanes.is_uniform(at) || lanes.class(at) == Class::Affine(Expr::int(1));
                one(e) + self.expr(at) + if near { 1.0 } else { GATHER }
            }
            Stmt::Check(ok, ..) => one(ok) + 1.0,
            // Each lane has memory of its own: rows fit, larger tensors would take much and leave the caches.
            Stmt::Alloc(_, dims) if dims.len() > 1 => f64::INFINITY,
            Stmt::Alloc(..) | Stmt::Mark(_) | Stmt::Reset(_) => 1.0,
            Stmt::Call(..) => f64::INFINITY,
        }
    }

    fn lane_expr(&self, lanes: &Lanes, e: &Expr) -> f64 {
        if lanes.class(e) != Class::Varying {
            return self.expr(e);
        }
        let kids = || e.kids().iter().map(|k| self.lane_expr(lanes, k)).sum::<f64>();
        match e {
            Expr::Lit(_) | Expr::Var(_) => 0.0,
            Expr::Load(b, at) => {
                let near =
                    lanes.is_private(*b) && lanes.is_uniform(at) || lanes.class(at) == Class::Affine(Expr::int(1));
                kids() + if near { 1.0 } else { GATHER }
            }
            Expr::Op(op, ty, args) if is_direct(self.func, *op, *ty, args) => kids() + op_cost(*op, *ty),
            Expr::Cond(parts) if is_safe(&parts[1]) && is_safe(&parts[2]) => kids() + 1.0,
            Expr::Op(op, ty, _) => kids() + LANES as f64 * (op_cost(*op, *ty) + 1.0),
            Expr::Cast(..) | Expr::Cond(_) => LANES as f64 * (self.expr(e) + 1.0),
        }
    }
}

/// Whether statements hold what a compiler makes no vectors of: loops that carry values, checks, and functions that
/// the language defines itself.
fn needs_lanes(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match s {
        Stmt::For(l) => !l.parallel || needs_lanes(&l.body),
        Stmt::If(c, a, b) => calls(c) || needs_lanes(a) || needs_lanes(b),
        Stmt::Let(_, e) | Stmt::Mut(_, e) | Stmt::Set(_, e) => calls(e),
        Stmt::Store(_, at, e) => calls(at) || calls(e),
        Stmt::Check(..) => true,
        _ => false,
    })
}

fn calls(e: &Expr) -> bool {
    matches!(e, Expr::Op(Op::Exp | Op::Log | Op::Tanh, ..)) || e.kids().iter().any(calls)
}

/// Whether a loop in a block runs in lanes.
fn in_lanes(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match s {
        Stmt::For(l) => l.lanes || in_lanes(&l.body),
        Stmt::If(_, a, b) => in_lanes(a) || in_lanes(b),
        _ => false,
    })
}

fn clear(stmts: &mut [Stmt]) {
    for s in stmts {
        match s {
            Stmt::For(l) => {
                l.lanes = false;
                clear(&mut l.body);
            }
            Stmt::If(_, a, b) => {
                clear(a);
                clear(b);
            }
            _ => {}
        }
    }
}
