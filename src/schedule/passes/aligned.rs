//! Quotients and remainders in loops that are one vector: where vectors begin at multiples of their lanes, and what is divided
//! by is one, all lanes have one quotient, and their remainders follow each other. So `v[i mod 32]` is a load of neighbours, and
//! `v[i / 32]` one number.
//!
//! It must not know how loops become vectors.

use crate::affine::Linear;
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Func, Loop, LoopKind, Slot, Stmt, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// Definitions are looked through so deep.
const DEEP: usize = 16;
/// Multiples of at most so many are told: of loops that end, none of these wraps.
const LARGEST: i64 = 1 << 20;

/// Takes the lanes out of quotients and remainders of a function.
pub fn align(func: &mut Func) {
    let sizes = func.params.iter().filter_map(|p| if let Slot::Size(v) = p { Some(*v) } else { None }).collect();
    let mut body = std::mem::take(&mut func.body);
    Aligned { func, defs: FxHashMap::default(), natural: sizes }.block(&mut body, None);
    func.body = body;
}

struct Aligned<'a> {
    func: &'a Func,
    /// Integer constants in scope that read no memory, by their values.
    defs: FxHashMap<Var, Expr>,
    /// Variables that are not negative.
    natural: FxHashSet<Var>,
}

impl Aligned<'_> {
    /// Statements, in a loop of one whole vector or in none: its variable, and how many lanes it has.
    fn block(&mut self, stmts: &mut [Stmt], lane: Option<(Var, i64)>) {
        for s in stmts {
            if let Some(lane) = lane {
                for e in s.exprs_mut() {
                    e.map(&mut |e| {
                        if let Some(new) = self.without_lanes(e, lane) {
                            *e = new;
                        }
                    });
                }
            }
            let mut inside = lane;
            match s {
                Stmt::Let(v, e) if self.func.var(*v).ty == Scalar::I64 && !e.loads() => {
                    self.defs.insert(*v, e.clone());
                }
                Stmt::For(l) => {
                    if l.from.as_int().is_some_and(|n| n >= 0) {
                        self.natural.insert(l.var);
                    }
                    inside = vector(l).or(lane);
                }
                _ => {}
            }
            s.blocks_mut().into_iter().for_each(|b| self.block(b, inside));
        }
    }

    /// A quotient of the first lane in the place of that of all, and a remainder as that of the first lane and the lane.
    fn without_lanes(&self, e: &Expr, (var, lanes): (Var, i64)) -> Option<Expr> {
        let Expr::Op(op @ (Op::Div | Op::Mod | Op::FloorDiv | Op::FloorMod), Scalar::I64, args) = e else {
            return None;
        };
        let by = args[1].as_int().filter(|by| *by > 0 && by % lanes == 0)?;
        let (first, own) = self.form(&args[0], DEEP)?.without(var);
        let multiple = |n: i64| (0..=LARGEST).contains(&n) && n % lanes == 0;
        let fits = own == 1
            && multiple(first.offset())
            && first.terms().all(|(v, n)| multiple(n) && self.natural.contains(&v));
        if !fits {
            return None;
        }
        let quotient = matches!(op, Op::Div | Op::FloorDiv);
        let whole = first.offset() % by == 0 && first.terms().all(|(_, n)| n % by == 0);
        Some(match (quotient, whole) {
            (true, true) => sum(&first, by),
            (true, false) => Expr::index_op(Op::Div, sum(&first, 1), args[1].clone()),
            (false, true) => Expr::Var(var),
            (false, false) => {
                let left = Expr::index_op(Op::Mod, sum(&first, 1), args[1].clone());
                Expr::index_op(Op::Add, left, Expr::Var(var))
            }
        })
    }

    /// An integer as a sum of multiples of variables that are no constants themselves.
    fn form(&self, e: &Expr, deep: usize) -> Option<Linear<Var>> {
        let deep = deep.checked_sub(1)?;
        match e {
            Expr::Lit(l) => l.as_int().map(Linear::constant),
            Expr::Var(v) => match self.defs.get(v) {
                Some(e) => self.form(e, deep),
                None => Some(Linear::atom(*v)),
            },
            Expr::Op(op @ (Op::Add | Op::Sub), Scalar::I64, args) => {
                let (a, b) = (self.form(&args[0], deep)?, self.form(&args[1], deep)?);
                a.plus(&b, if *op == Op::Add { 1 } else { -1 })
            }
            Expr::Op(Op::Mul, Scalar::I64, args) => {
                let (a, b) = (self.form(&args[0], deep)?, self.form(&args[1], deep)?);
                match (a.as_constant(), b.as_constant()) {
                    (Some(n), _) => b.times(n),
                    (_, Some(n)) => a.times(n),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The variable and the lanes of a loop that is one whole vector.
fn vector(l: &Loop) -> Option<(Var, i64)> {
    let LoopKind::Vector(lanes) = l.kind else { return None };
    let lanes = i64::from(lanes);
    (l.extent().and_then(Expr::as_int) == Some(lanes)).then_some((l.var, lanes))
}

/// A form, divided by a number that divides all of it.
fn sum(form: &Linear<Var>, by: i64) -> Expr {
    let each = form.terms().map(|(v, n)| Expr::index_op(Op::Mul, Expr::Var(v), Expr::int(n / by)));
    let all = each.chain([Expr::int(form.offset() / by)]);
    all.reduce(|a, b| Expr::index_op(Op::Add, a, b)).unwrap_or(Expr::int(0))
}
