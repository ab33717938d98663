//! Proofs about indices: linear forms over loop variables and sizes, which are never negative.
//!
//! A proof is sound in 64 bits because a loop never counts to where small multiples would wrap.

use super::{Expr, Lower, Var};
use crate::ir::{Op, Scalar};
use std::collections::BTreeMap;

/// A sum of multiples of variables and a constant.
#[derive(Clone, PartialEq, Debug, Default)]
struct Linear {
    each: BTreeMap<Var, i64>,
    rest: i64,
}

/// Coefficients and constants beyond this prove nothing.
const MOST: i64 = 1 << 20;

impl Linear {
    fn plus(mut self, other: &Linear, times: i64) -> Option<Linear> {
        for (v, c) in &other.each {
            let c = c.checked_mul(times)?;
            let sum = self.each.entry(*v).or_default();
            *sum = sum.checked_add(c)?;
            if !is_small(*sum) {
                return None;
            }
            if *sum == 0 {
                self.each.remove(v);
            }
        }
        self.rest = self.rest.checked_add(other.rest.checked_mul(times)?)?;
        is_small(self.rest).then_some(self)
    }
}

impl Lower<'_> {
    fn linear(&self, e: &Expr, fuel: usize) -> Option<Linear> {
        let fuel = fuel.checked_sub(1)?;
        match e {
            Expr::Lit(l) => {
                let rest = l.as_int().filter(|v| is_small(*v))?;
                Some(Linear { rest, ..Linear::default() })
            }
            Expr::Var(v) => {
                let base = || Some(Linear { each: BTreeMap::from([(*v, 1)]), rest: 0 });
                if self.f.extents.contains_key(v) {
                    return base();
                }
                match self.f.values.get(v) {
                    Some(value) => self.linear(value, fuel).or_else(|| self.f.sizes.contains(v).then(base)?),
                    None => base(),
                }
            }
            Expr::Op(Op::Add, Scalar::I64, args) => self.linear(&args[0], fuel)?.plus(&self.linear(&args[1], fuel)?, 1),
            Expr::Op(Op::Sub, Scalar::I64, args) => {
                self.linear(&args[0], fuel)?.plus(&self.linear(&args[1], fuel)?, -1)
            }
            Expr::Op(Op::Mul, Scalar::I64, args) => {
                let (a, b) = (self.linear(&args[0], fuel)?, self.linear(&args[1], fuel)?);
                match (a.each.is_empty(), b.each.is_empty()) {
                    (true, _) => Linear::default().plus(&b, a.rest),
                    (_, true) => Linear::default().plus(&a, b.rest),
                    _ => None,
                }
            }
            Expr::Op(op @ (Op::Min | Op::Max), Scalar::I64, args) => {
                let (a, b) = (self.linear(&args[0], fuel)?, self.linear(&args[1], fuel)?);
                let above = self.never_negative(a.clone().plus(&b, -1)?);
                let below = self.never_negative(b.clone().plus(&a, -1)?);
                match (op, above, below) {
                    (Op::Max, true, _) | (Op::Min, _, true) => Some(a),
                    (Op::Max, _, true) | (Op::Min, true, _) => Some(b),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a form is never negative: loop variables stand at the end of their range that is worse.
    fn never_negative(&self, mut form: Linear) -> bool {
        for _ in 0..12 {
            let worst = form.each.iter().find(|(v, c)| **c < 0 && self.f.extents.contains_key(v));
            let Some((v, c)) = worst.map(|(v, c)| (*v, *c)) else {
                let known = |v: &Var| self.f.extents.contains_key(v) || self.f.sizes.contains(v);
                return form.rest >= 0 && form.each.iter().all(|(v, c)| *c > 0 && known(v));
            };
            let Some(mut last) = self.f.extents.get(&v).and_then(|e| self.linear(e, 12)) else { return false };
            last.rest -= 1;
            form.each.remove(&v);
            match form.plus(&last, c) {
                Some(next) => form = next,
                None => return false,
            }
        }
        false
    }

    /// Whether an index is proved to be in range.
    pub(super) fn in_range(&self, index: &Expr, size: &Expr) -> bool {
        let Some(i) = self.linear(index, 12) else { return false };
        if !self.never_negative(i.clone()) {
            return false;
        }
        if let Expr::Var(v) = index
            && (self.f.extents.get(v).is_some_and(|e| e == size) || self.f.loops.get(v) == Some(size))
        {
            return true;
        }
        let gap = self.linear(size, 12).and_then(|n| n.plus(&i, -1));
        gap.is_some_and(|mut gap| {
            gap.rest -= 1;
            self.never_negative(gap)
        })
    }

    /// Whether two sizes are proved to be equal.
    pub(super) fn equal(&self, a: &Expr, b: &Expr) -> bool {
        a == b || matches!((self.linear(a, 12), self.linear(b, 12)), (Some(a), Some(b)) if a == b)
    }

    /// Whether a size is proved not to be negative.
    pub(super) fn is_size(&self, e: &Expr) -> bool {
        match e {
            Expr::Var(v) if self.f.sizes.contains(v) => true,
            _ => self.linear(e, 12).is_some_and(|l| self.never_negative(l)),
        }
    }

    /// What a size is, given that it is positive.
    pub(super) fn positive(&self, extent: &Expr) -> Expr {
        if let Expr::Var(v) = extent
            && let Some(Expr::Cond(parts)) = self.f.values.get(v)
            && parts[1] == Expr::int(0)
        {
            return parts[2].clone();
        }
        extent.clone()
    }
}

/// Whether a number may stand in a form; the least integer has no magnitude of its type.
fn is_small(n: i64) -> bool {
    n.unsigned_abs() <= MOST.unsigned_abs()
}
