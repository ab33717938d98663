//! Where in a buffer an index of a loop nest points: sums of products of variables, and the part of the buffer that one iteration
//! of some loops has for itself.
//!
//! It must not know what is stored there.

use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Func, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Sums of more products are none.
const MAX_PRODUCTS: usize = 24;

/// A sum of multiples of products of variables, modulo 2^64.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum(BTreeMap<Vec<Var>, i64>);

impl Sum {
    pub(super) fn int(v: i64) -> Sum {
        Sum(if v == 0 { BTreeMap::new() } else { BTreeMap::from([(vec![], v)]) })
    }

    fn var(v: Var) -> Sum {
        Sum(BTreeMap::from([(vec![v], 1)]))
    }

    pub(super) fn plus(&self, other: &Sum, times: i64) -> Sum {
        let mut out = self.0.clone();
        for (p, c) in &other.0 {
            let sum = out.entry(p.clone()).or_insert(0);
            *sum = sum.wrapping_add(c.wrapping_mul(times));
        }
        out.retain(|_, c| *c != 0);
        Sum(out)
    }

    pub(super) fn times(&self, other: &Sum) -> Sum {
        let mut out = Sum::default();
        for (p, c) in &self.0 {
            for (q, d) in &other.0 {
                let mut all = [p.as_slice(), q].concat();
                all.sort_unstable();
                out = out.plus(&Sum(BTreeMap::from([(all, c.wrapping_mul(*d))])), 1);
            }
        }
        out
    }

    /// What a variable is multiplied by, and the rest; nothing where it is multiplied by itself.
    fn split(&self, v: Var) -> Option<(Sum, Sum)> {
        let (mut by, mut rest) = (Sum::default(), Sum::default());
        for (p, c) in &self.0 {
            let left: Vec<Var> = p.iter().copied().filter(|w| *w != v).collect();
            match p.len() - left.len() {
                0 => drop(rest.0.insert(p.clone(), *c)),
                1 => drop(by.0.insert(left, *c)),
                _ => return None,
            }
        }
        Some((by, rest))
    }

    /// An expression of it.
    pub(super) fn expr(&self) -> Expr {
        let each = self.0.iter().map(|(p, c)| {
            let vars = p.iter().map(|v| Expr::Var(*v));
            vars.fold(Expr::int(*c), |all, v| Expr::index_op(Op::Mul, all, v))
        });
        each.fold(Expr::int(0), |all, e| Expr::index_op(Op::Add, all, e))
    }

    /// Whether it names a variable that the predicate picks.
    pub(super) fn uses(&self, which: &dyn Fn(Var) -> bool) -> bool {
        self.0.keys().flatten().any(|v| which(*v))
    }
}

/// A loop that counts from 0, and the number of its iterations.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Counted {
    pub(super) var: Var,
    pub(super) extent: Option<Sum>,
}

/// The part of a buffer that one iteration of some loops has for itself: so many elements, the first ones from a base on.
#[derive(PartialEq, Debug)]
pub(super) struct Part {
    pub(super) length: Sum,
    pub(super) base: Sum,
}

/// What integer constants of a function are made of.
pub(super) struct Sums {
    defs: FxHashMap<Var, Expr>,
    /// Variables that are set again, or declared more than once: nothing is known of them.
    changing: FxHashSet<Var>,
}

impl Sums {
    pub(super) fn of(f: &Func) -> Sums {
        let mut out = Sums { defs: FxHashMap::default(), changing: FxHashSet::default() };
        let mut seen: FxHashSet<Var> = FxHashSet::default();
        walk::visit(&f.body, &mut |s| match s {
            Stmt::Let(v, e) => {
                if !seen.insert(*v) {
                    out.changing.insert(*v);
                }
                if f.var(*v).ty == Scalar::I64 && f.var(*v).lanes == 1 {
                    out.defs.insert(*v, e.clone());
                }
            }
            Stmt::Mut(v, _) | Stmt::Set(v, _) | Stmt::SetLane(v, ..) => drop(out.changing.insert(*v)),
            Stmt::For(l) if !seen.insert(l.var) => drop(out.changing.insert(l.var)),
            _ => {}
        });
        out
    }

    /// An integer as a sum; nothing where it depends on what changes, or on elements by itself.
    pub(super) fn sum(&self, e: &Expr) -> Option<Sum> {
        let out = match e {
            Expr::Lit(_) => Sum::int(e.as_int()?),
            Expr::Var(v) if self.changing.contains(v) => return None,
            Expr::Var(v) => match self.defs.get(v) {
                Some(def @ (Expr::Lit(_) | Expr::Var(_) | Expr::Op(Op::Add | Op::Sub | Op::Mul, ..))) => {
                    self.sum(def).unwrap_or_else(|| Sum::var(*v))
                }
                _ => Sum::var(*v),
            },
            Expr::Op(op @ (Op::Add | Op::Sub), Scalar::I64, args) => {
                self.sum(&args[0])?.plus(&self.sum(&args[1])?, if *op == Op::Add { 1 } else { -1 })
            }
            Expr::Op(Op::Mul, Scalar::I64, args) => self.sum(&args[0])?.times(&self.sum(&args[1])?),
            _ => return None,
        };
        (out.0.len() <= MAX_PRODUCTS).then_some(out)
    }

    /// Takes in what a constant is, or forgets it.
    pub(super) fn tell(&mut self, v: Var, e: Option<Expr>) {
        match e {
            Some(e) => drop(self.defs.insert(v, e)),
            None => drop(self.defs.remove(&v)),
        }
    }

    /// The product of some sizes.
    pub(super) fn product(&self, sizes: &[Expr]) -> Option<Sum> {
        sizes.iter().try_fold(Sum::int(1), |all, n| Some(all.times(&self.sum(n)?)))
    }
}

/// The part of a buffer that an iteration of some loops has for itself, where an index in loops inside of these runs through all
/// of it, row by row; nothing where that is not seen. Different iterations have different parts.
pub(super) fn part(index: &Sum, around: &[Counted], inside: &[Counted]) -> Option<Part> {
    let (mut rest, mut stride) = (index.clone(), Sum::int(1));
    for l in inside.iter().rev() {
        let (by, left) = rest.split(l.var)?;
        if by == Sum::default() {
            continue;
        }
        if by != stride {
            return None;
        }
        (rest, stride) = (left, stride.times(l.extent.as_ref()?));
    }
    let length = stride.clone();
    for l in around.iter().rev() {
        let (by, left) = rest.split(l.var)?;
        if by != stride {
            return None;
        }
        (rest, stride) = (left, stride.times(l.extent.as_ref()?));
    }
    Some(Part { length, base: rest })
}
