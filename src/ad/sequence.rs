//! Reverse mode of what runs in order: folds, scans, products, greatest and least elements.
//!
//! A fold forwards is a scan that keeps all states. Backwards, another scan carries the adjoint of
//! the state from the last step to the first; what the steps give to other variables is then a loop
//! like any other, since state and adjoint of each step are known. What a step makes on the way is kept
//! in tables (`keep.rs`), so neither makes it again.

use super::adjoint::{Leaving, Reverse};
use super::emit::Val;
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::keep::Steps;
use super::kept::Kept;
use super::like::Like;
use super::piece::{Piece, Step};
use crate::diag::Result;
use crate::ir::{Head, Id, Monoid, Op, Scalar, Ty};

/// A fold or scan, and what is known of its result.
struct Sequence {
    steps: Steps,
    /// What its steps make, in tables.
    kept: Vec<Kept>,
    ty: Ty,
    /// The adjoint of the last state, of a fold; the zero of one, of a scan.
    last: Val,
    /// The adjoints of all states, of a scan.
    each: Option<Val>,
    /// How the loop over the steps is left.
    leaving: fn(Vec<Id>) -> Leaving,
}

impl Reverse<'_, '_> {
    /// Fold or scan.
    pub(super) fn sequence_back(&mut self, id: Id, pieces: Vec<Piece>) -> Result<()> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let ty = self.w.e.ty(kids[0]);
        if !has_floats(ty) {
            return Ok(());
        }
        let dr = self.dense(id, pieces)?;
        let (steps, kept) = self.steps(id);
        let kept = match kept {
            Some(kept) => kept,
            None => self.keep(&steps)?,
        };
        let (last, each) = match head {
            Head::Fold => (dr, None),
            _ => {
                let (of, sizes) = (self.w.e.now(steps.like.val), steps.like.sizes_now(&mut self.w.e));
                let zero = self.w.zero(of, &sizes);
                (self.w.e.val(zero), Some(dr))
            }
        };
        let last = {
            let last = self.w.e.now(last);
            self.w.e.bind(last)
        };
        let leaving = if self.over_parts.contains(&id) { Leaving::Parts } else { Leaving::Loop };
        let seq = Sequence { steps, kept, ty, last, each, leaving };
        let chain = self.chain(&seq)?;
        self.steps_back(&seq, chain, (head == Head::Fold).then_some(kids[1]))?;
        if self.w.active(kids[0]) {
            let d = self.last_or(seq.steps.n, chain, seq.last);
            let piece = self.whole(d);
            self.back(kids[0], vec![piece])?;
        }
        Ok(())
    }

    /// The steps of a fold or scan, and what is kept of them already.
    pub(super) fn steps(&mut self, id: Id) -> (Steps, Option<Vec<Kept>>) {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let kept = self.kept.get(&(id, self.w.env.len())).cloned();
        let like = self.like(kids[0]);
        let (n, elements, states) = match head {
            Head::Fold => {
                let elements = self.like(kids[1]);
                let n = elements.sizes[0];
                let states = match kept.iter().flatten().find_map(Kept::states) {
                    Some(states) => states,
                    None => self.states(n, &like, kids[2], &elements),
                };
                (n, Some(elements), states)
            }
            _ => (self.w.value(kids[1]), None, self.w.value(id)),
        };
        (Steps { n, init: like.val, body: kids[2], elements, states, like }, kept)
    }

    /// All states of a fold but the initial one.
    fn states(&mut self, n: Val, state: &Like, body: Id, elements: &Like) -> Val {
        let (outer, mark) = (self.w.e.depth(), self.w.mark());
        let (n, init) = (self.w.e.now(n), self.w.e.now(state.val));
        let ty = self.w.e.ty(init);
        let s = self.w.e.enter(ty);
        let i = self.w.e.enter(Ty::int());
        let x = self.element(i, elements.val);
        let x = self.w.e.bind(x);
        self.w.push(s);
        self.w.push(x);
        let next = self.w.translate(body);
        self.w.env.truncate(self.w.env.len() - 2);
        let next = self.w.e.close(outer + 2, next);
        self.w.e.leave(outer);
        self.w.forget(mark);
        let scan = self.w.e.put(Head::Scan, [init, n, next]);
        self.w.e.bind(scan)
    }

    /// The last of `n` elements, or another value where there are none; bound by a let.
    pub(super) fn last_or(&mut self, n: Val, of: Val, none: Val) -> Val {
        let (n, zero, one) = (self.w.e.now(n), self.w.e.int(0), self.w.e.int(1));
        let (of, none) = (self.w.e.now(of), self.w.e.now(none));
        let some = self.w.e.op(Op::Gt, [n, zero]);
        let end = self.w.e.sub(n, one);
        let last = self.w.e.put(Head::Index(1), [end, of]);
        let out = self.w.e.put(Head::If, [some, last, none]);
        self.w.e.bind(out)
    }

    /// The element of a vector.
    pub(super) fn element(&mut self, i: Val, of: Val) -> Id {
        let (i, of) = (self.w.e.now(i), self.w.e.now(of));
        self.w.e.put(Head::Index(1), [i, of])
    }

    /// The element at `k - 1`, or another value where `k` is 0.
    fn before(&mut self, k: Val, first: Val, of: Val) -> Id {
        let (k, zero, one) = (self.w.e.now(k), self.w.e.int(0), self.w.e.int(1));
        let at_start = self.w.e.op(Op::Eq, [k, zero]);
        let (first, of) = (self.w.e.now(first), self.w.e.now(of));
        let at = self.w.e.sub(k, one);
        let earlier = self.w.e.put(Head::Index(1), [at, of]);
        self.w.e.put(Head::If, [at_start, first, earlier])
    }

    /// `n - 1 - k`.
    fn mirrored(&mut self, n: Val, k: Val) -> Val {
        let (n, k, one) = (self.w.e.now(n), self.w.e.now(k), self.w.e.int(1));
        let end = self.w.e.sub(n, one);
        let m = self.w.e.op(Op::Sub, [end, k]);
        self.w.e.bind(m)
    }

    /// Brings the state and the element or index of step `k` into the scope of the source.
    pub(super) fn step_variables(&mut self, seq: &Steps, k: Val, state: Active, element: Active) -> (Val, Val) {
        let s = self.before(k, seq.init, seq.states);
        let s = self.w.e.bind(s);
        self.w.env.push(Entry { val: s, active: state, sizes: seq.like.sizes.clone() });
        let (x, sizes) = match &seq.elements {
            Some(of) => {
                let x = self.element(k, of.val);
                (self.w.e.bind(x), of.sizes.get(1..).unwrap_or_default().to_vec())
            }
            None => (k, vec![]),
        };
        self.w.env.push(Entry { val: x, active: element, sizes });
        (s, x)
    }

    /// The adjoints of the states before each step, in the order of the steps backwards.
    fn chain(&mut self, seq: &Sequence) -> Result<Val> {
        let (outer, mark) = (self.w.e.depth(), self.w.mark());
        let (n, last) = (self.w.e.now(seq.steps.n), self.w.e.now(seq.last));
        let ds = self.w.e.enter(seq.ty.tangent());
        let j = self.w.e.enter(Ty::int());
        let k = self.mirrored(seq.steps.n, j);
        let total = match seq.each {
            None => ds,
            Some(each) => {
                let own = self.element(k, each);
                let ds = self.w.e.now(ds);
                let sum = self.w.e.add(ds, own);
                self.w.e.bind(sum)
            }
        };
        let env = self.w.env.clone();
        self.w.env.iter_mut().for_each(|e| e.active = Active::No);
        let number = self.likes.len();
        let (s, _) = self.step_variables(&seq.steps, k, Active::Adjoint(number), Active::No);
        let like = Like { val: s, sizes: seq.steps.like.sizes.clone() };
        self.adjoint(seq.ty, like.clone());
        self.frames.push(Default::default());
        let piece = self.whole(total);
        self.step_back(&seq.steps, &seq.kept, k, piece)?;
        let pieces = self.take(number);
        self.frames.pop();
        self.w.env = env;
        let body = self.w.force(seq.ty, &like, pieces)?;
        let body = self.w.e.close(outer + 2, body);
        self.w.e.leave(outer);
        self.w.forget(mark);
        let scan = self.w.e.put(Head::Scan, [last, n, body]);
        Ok(self.w.e.bind(scan))
    }

    /// What the steps give to other variables than the state.
    fn steps_back(&mut self, seq: &Sequence, chain: Val, vector: Option<Id>) -> Result<()> {
        let vector = vector.filter(|v| self.w.active(*v));
        let steps = &seq.steps;
        if vector.is_none() && !self.others_active(steps.body, 2) {
            return Ok(());
        }
        let whole = match (&steps.elements, vector) {
            (Some(like), Some(v)) => Some(self.adjoint(self.w.e.ty(v), like.clone())),
            _ => None,
        };
        self.looped_as(seq.leaving, &[steps.n], |me, vars| {
            let (k, mark) = (vars[0], me.w.mark());
            let total = me.total(seq, k, chain);
            let number = me.likes.len();
            let active = if whole.is_some() { Active::Adjoint(number) } else { Active::No };
            let (_, x) = me.step_variables(steps, k, Active::No, active);
            let sizes = me.w.env.last().map(|e| e.sizes.clone()).unwrap_or_default();
            me.adjoint(me.w.e.ty(x.id), Like { val: x, sizes });
            let piece = me.whole(total);
            let done = me.step_back(steps, &seq.kept, k, piece);
            me.w.env.truncate(me.w.env.len() - 2);
            me.w.forget(mark);
            done?;
            for p in me.take(number) {
                let mut p = p.now(&mut me.w.e);
                let k = me.w.e.now(k);
                let k = me.w.e.terms.shift(k, p.loops());
                p.steps.insert(0, Step::At(vec![k]));
                if let Some(whole) = whole {
                    me.collect(whole, p);
                }
            }
            Ok(())
        })?;
        match (whole, vector) {
            (Some(whole), Some(v)) => {
                let pieces = self.take(whole);
                self.back(v, pieces)
            }
            _ => Ok(()),
        }
    }

    /// The adjoint of the state after step `k`.
    fn total(&mut self, seq: &Sequence, k: Val, chain: Val) -> Val {
        let m = self.mirrored(seq.steps.n, k);
        let later = self.before(m, seq.last, chain);
        let sum = match seq.each {
            None => later,
            Some(each) => {
                let own = self.element(k, each);
                self.w.e.add(own, later)
            }
        };
        self.w.e.bind(sum)
    }

    /// Products, and greatest and least elements, over one index.
    pub(super) fn reduction_back(&mut self, id: Id, m: Monoid, kids: &[Id], pieces: Vec<Piece>) -> Result<()> {
        let dr = self.dense(id, pieces)?;
        let n = self.w.value(kids[0]);
        if m == Monoid::Mul {
            return self.product_back(kids, n, dr);
        }
        let (count, zero) = (self.w.e.now(n), self.w.e.int(0));
        let some = self.w.e.op(Op::Gt, [count, zero]);
        let some = self.w.e.bind(some);
        self.arm(some, |me| {
            let k = me.last_extreme(m, n, kids[1]);
            let piece = me.whole(dr);
            me.under(&[k], |me| me.back(kids[1], vec![piece]))
        })
    }

    /// The last index with the greatest or least value: `max a b` is `b` where they are equal.
    fn last_extreme(&mut self, m: Monoid, n: Val, body: Id) -> Val {
        let k = self.w.last_extreme(m, n, body);
        self.w.e.bind(k)
    }

    fn product_back(&mut self, kids: &[Id], n: Val, dr: Val) -> Result<()> {
        let scalar = self.w.e.ty(kids[1]).as_scalar().unwrap_or(Scalar::F64);
        let others = self.w.products(n, kids[1], scalar);
        self.looped_over(&[n], |me, vars| {
            let by = me.w.product_of_others(n, vars[0], others, scalar);
            let dr = me.w.e.now(dr);
            let d = me.w.e.mul(dr, by);
            let d = me.w.e.bind(d);
            let piece = me.whole(d);
            me.under(vars, |me| me.back(kids[1], vec![piece]))
        })
    }
}
