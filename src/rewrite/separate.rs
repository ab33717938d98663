//! Sums in loops take the forms that running sums are made of (`accumulate.rs`).
//!
//! | in a loop over `i` in `0..n` | becomes |
//! |---|---|
//! | `sumbuild n (lam j (if (lt j i) (f j) 0.0))`, and so for `lte`, `gt`, `gte` | a sum over the range: `sumbuild i (lam j (f j))` |
//! | `sumbuild i (lam j (mul (g i) (f j)))` | `mul (g i) (sumbuild i (lam j (f j)))` |
//! | `sumbuild i (lam j (mul (f j) (sumbuild m (lam q (mul (g i q) (h j q))))))` | `sumbuild m (lam q (mul (g i q) (sumbuild i (lam j (mul (f j) (h j q))))))` |
//!
//! Equal over the reals. What leaves a sum is evaluated though the sum be over nothing, so it must not fail. It must not
//! know whether running sums come of it.

use super::inline::bound_extents;
use super::tabulate::Known;
use crate::derive::flat::{Scope, lowered};
use crate::ir::{Head, Id, Lit, Monoid, Node, Op, Scalar, Terms, Ty, deep};
use rustc_hash::FxHashMap;

/// Deeper loops are left alone: which variables a term depends on is exact up to some sixty.
const MAX_DEPTH: usize = 48;

/// The term with its sums in such forms; the same term where none changes.
pub fn separated(known: &mut Known) -> Id {
    let id = known.id;
    let (scope, frames, memo) = Default::default();
    Walk { known, scope, frames, memo }.replace(id, 0)
}

struct Walk<'a> {
    known: &'a mut Known,
    /// The extents of the variables in scope, each right outside its variable.
    scope: Scope,
    frames: usize,
    memo: FxHashMap<(Id, usize), Id>,
}

impl Walk<'_> {
    fn replace(&mut self, id: Id, frame: usize) -> Id {
        let frame = if self.known.terms.free(id).below(self.scope.len()) { frame } else { 0 };
        if let Some(done) = self.memo.get(&(id, frame)) {
            return *done;
        }
        let Node { head, kids } = self.known.terms.node(id).clone();
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let (depth, mut inner) = (self.scope.len(), frame);
            if head.binds(k, kids.len()) > 0 {
                self.scope.extend(bound_extents(&mut self.known.terms, head, &kids));
                self.frames += 1;
                inner = self.frames;
            }
            new.push(deep(|| self.replace(*kid, inner)));
            self.scope.truncate(depth);
        }
        let mut out = self.known.terms.put(head, new);
        if self.is_sum(out) {
            out = self.ranged(out).unwrap_or(out);
            out = self.separate(out).unwrap_or(out);
        }
        if out != id {
            self.known.terms.called_as(out, id);
        }
        self.memo.insert((id, frame), out);
        out
    }

    fn is_sum(&self, id: Id) -> bool {
        let double = self.known.terms.ty(id).as_scalar() == Some(Scalar::F64);
        self.known.terms.head(id) == Head::Reduce(Monoid::Add, 1) && double && self.scope.len() <= MAX_DEPTH
    }

    /// A sum of what is 0 on one side of the variable of a loop, as a sum over the other side.
    fn ranged(&mut self, id: Id) -> Option<Id> {
        let terms = &mut self.known.terms;
        let (n, element) = (terms.kids(id)[0], terms.kids(id)[1]);
        let (Head::If, [cond, then, other]) = (terms.head(element), terms.kids(element)) else { return None };
        let (cond, then, other) = (*cond, *then, *other);
        let is_zero = |id: Id| terms.as_lit(id) == Some(Lit::float(0.0));
        let (kept, swapped) = if is_zero(other) { (then, false) } else { (other, true) };
        if !is_zero(if swapped { then } else { other }) {
            return None;
        }
        let (Head::Op(op), [a, b]) = (terms.head(cond), terms.kids(cond)) else { return None };
        let (a, b) = (*a, *b);
        let variable = |id: Id| match terms.head(id) {
            Head::Var(i, ty) if ty == Ty::int() => Some(i as usize),
            _ => None,
        };
        // The comparison with the variable of the sum on its left.
        let (op, v) = match (variable(a)?, variable(b)?) {
            (0, v) if v > 0 => (op, v - 1),
            (v, 0) if v > 0 => (op.mirrored()?, v - 1),
            _ => return None,
        };
        let op = if swapped { op.opposite()? } else { op };
        let extent = (*self.scope.get(self.scope.len().checked_sub(1 + v)?)?)?;
        if terms.shift(extent, v + 1) != n {
            return None;
        }
        let (i, one) = (terms.var(v as u32, Ty::int()), terms.int(1));
        let next = terms.op(Op::Add, [i, one]);
        let (count, from) = match op {
            Op::Lt => (i, None),
            Op::Lte => (next, None),
            Op::Gte => (terms.op(Op::Sub, [n, i]), Some(i)),
            Op::Gt => (terms.op(Op::Sub, [n, next]), Some(next)),
            _ => return None,
        };
        let element = match from {
            None => kept,
            Some(from) => {
                let (from, j) = (terms.shift(from, 1), terms.var(0, Ty::int()));
                let at = terms.op(Op::Add, [from, j]);
                terms.map_free(kept, 0, &mut |t, i, ty, under| match i {
                    0 => t.shift(at, under),
                    _ => t.var(i + under as u32, ty),
                })
            }
        };
        Some(terms.put(Head::Reduce(Monoid::Add, 1), [count, element]))
    }

    /// A sum of products, with what depends on the loop outside.
    fn separate(&mut self, id: Id) -> Option<Id> {
        let (count, element) = (self.known.terms.kids(id)[0], self.known.terms.kids(id)[1]);
        let v = (0..self.scope.len()).find(|v| self.known.terms.free(count).has(*v))?;
        self.known.total.get(&element).filter(|total| **total)?;
        outside_sum(&mut self.known.terms, count, element, v, 0)
    }
}

/// So many sums within sums change places.
const MAX_INNER: usize = 3;

/// The sum of so many products, where each factor depends either on the loop of variable `v` or on the sum, or is itself
/// such a sum of products; nothing where that is not so, or where nothing depends on the loop.
fn outside_sum(terms: &mut Terms, count: Id, element: Id, v: usize, inner: usize) -> Option<Id> {
    let (mut outside, mut inside, mut both): (Vec<Id>, Vec<Id>, Vec<Id>) = Default::default();
    for factor in factors(terms, element) {
        let free = terms.free(factor);
        match (free.has(0), free.has(v + 1)) {
            (false, _) => outside.push(lowered(terms, factor, 1)?),
            (true, false) => inside.push(factor),
            (true, true) => both.push(factor),
        }
    }
    let sum = match both.as_slice() {
        [] if outside.is_empty() && inner == 0 => return None,
        [] => {
            let all = product(terms, inside);
            terms.put(Head::Reduce(Monoid::Add, 1), [count, all])
        }
        [both] if inner < MAX_INNER => exchanged(terms, (count, *both), inside, v, inner)?,
        _ => return None,
    };
    outside.push(sum);
    Some(product(terms, outside))
}

/// The sum of so many sums times factors, as a sum of sums: the inner loop comes outside.
fn exchanged(terms: &mut Terms, (count, sum): (Id, Id), factors: Vec<Id>, v: usize, inner: usize) -> Option<Id> {
    let (Head::Reduce(Monoid::Add, 1), [m, body]) = (terms.head(sum), terms.kids(sum)) else { return None };
    let (m, mut body) = (*m, *body);
    if terms.free(m).has(v + 1) {
        return None;
    }
    let m = lowered(terms, m, 1)?;
    for factor in factors {
        let factor = terms.shift(factor, 1);
        body = terms.op(Op::Mul, [factor, body]);
    }
    // The two variables change places.
    let body = terms.map_free(body, 0, &mut |t, i, ty, under| {
        let new = if i < 2 { 1 - i } else { i };
        t.var(new + under as u32, ty)
    });
    let count = terms.shift(count, 1);
    let body = deep(|| outside_sum(terms, count, body, v + 1, inner + 1))?;
    Some(terms.put(Head::Reduce(Monoid::Add, 1), [m, body]))
}

/// The product of some factors: 1 where there is none.
pub(super) fn product(terms: &mut Terms, factors: Vec<Id>) -> Id {
    let all = factors.into_iter().reduce(|a, b| terms.op(Op::Mul, [a, b]));
    all.unwrap_or_else(|| terms.lit(Lit::float(1.0)))
}

/// The factors of a product of numbers.
pub(super) fn factors(terms: &Terms, id: Id) -> Vec<Id> {
    let scalars = terms.kids(id).iter().all(|k| terms.ty(*k).as_scalar().is_some());
    if terms.head(id) != Head::Op(Op::Mul) || !scalars {
        return vec![id];
    }
    terms.kids(id).iter().flat_map(|k| deep(|| factors(terms, *k))).collect()
}
