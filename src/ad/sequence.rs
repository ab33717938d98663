//! Reverse mode of what runs in order: folds, scans, products, greatest and least elements.
//!
//! A fold forwards is a scan that keeps all states. Backwards, another scan carries the adjoint of
//! the state from the last step to the first; what the steps give to other variables is then a loop
//! like any other, which reads what either scan has made (`keep.rs`, `backwards.rs`).

use super::adjoint::{Leaving, Reverse};
use super::contribution::Contribution;
use super::emit::Val;
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::keep::Steps;
use super::kept::Kept;
use super::like::Like;
use super::recurrence::Table;
use crate::diag::Result;
use crate::ir::{Head, Id, Monoid, Op, Scalar, Ty};

/// The elements of a vector of integers are made where they are read, rather than read, if its text has so many nodes at most.
const COUNTED: u64 = 12;

/// A fold or scan, and what is known of its result.
pub(super) struct Sequence {
    pub steps: Steps,
    /// What its steps make, in tables.
    pub kept: Vec<Kept>,
    /// Whether what its steps make is kept.
    pub keeps: bool,
    pub ty: Ty,
    /// The adjoint of the last state, of a fold; the zero of one, of a scan.
    pub last: Val,
    /// The adjoints of all states, of a scan.
    pub each: Option<Val>,
    /// What a fold goes over.
    pub vector: Option<Id>,
    /// How the loop over the steps is left.
    pub leaving: fn(Vec<Id>) -> Leaving,
}

impl Reverse<'_, '_> {
    /// Fold or scan.
    pub(super) fn sequence_back(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<()> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let ty = self.w.e.ty(kids[0]);
        if !has_floats(ty) {
            return Ok(());
        }
        self.run_once(id);
        let dr = self.dense(id, contributions)?;
        let (steps, kept) = self.steps(id);
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
        let n = steps.n;
        let leaving = if self.less.over_parts.contains(&id) { Leaving::Parts } else { Leaving::Loop };
        let vector = (head == Head::Fold).then_some(kids[1]);
        let keeps = self.keeps(id);
        let chain = self.chain(&Sequence { steps, kept, keeps, ty, last, each, vector, leaving })?;
        if self.w.active(kids[0]) {
            let d = self.last_or(n, chain, last);
            let contribution = self.whole(d);
            self.back(kids[0], vec![contribution])?;
        }
        Ok(())
    }

    /// The number of steps of a fold or scan, its first state, its elements, and what a step comes to.
    pub(super) fn sequence(&mut self, id: Id) -> (Val, Like, Option<Like>, Id) {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let like = self.like(kids[0]);
        let elements = (head == Head::Fold).then(|| self.like(kids[1]));
        let n = match &elements {
            Some(of) => of.sizes[0],
            None => self.w.value(kids[1]),
        };
        (n, like, elements, kids[2])
    }

    /// The steps of a fold or scan that has run, and what is kept of them.
    pub(super) fn steps(&mut self, id: Id) -> (Steps, Vec<Kept>) {
        let (n, like, elements, body) = self.sequence(id);
        let kept = self.kept.get(&(id, self.w.env.len())).cloned().unwrap_or_default();
        let states = match kept.iter().find_map(Kept::states) {
            Some(states) => states,
            None => Table::whole(self.w.value(id)),
        };
        let (once, first) = (self.once(id), self.w.e.terms.kids(id)[0]);
        let flows_on = self.w.active(first);
        (Steps { n, init: like.val, body, elements, states, once, flows_on, like }, kept)
    }

    /// What a fold that has run comes to.
    pub(super) fn last_state(&mut self, steps: &Steps) -> Val {
        if steps.once.is_some() {
            let last = self.w.column(&[], steps.states);
            return self.w.e.bind(last);
        }
        self.last_or(steps.n, steps.states, steps.init)
    }

    /// The last of `n` elements, or another value where there are none; bound by a let.
    pub(super) fn last_or(&mut self, n: Val, of: Table, none: Val) -> Val {
        let (n, zero, one) = (self.w.e.now(n), self.w.e.int(0), self.w.e.int(1));
        let none = self.w.e.now(none);
        let some = self.w.e.op(Op::Gt, [n, zero]);
        let end = self.w.e.sub(n, one);
        let end = self.w.e.val(end);
        let last = self.w.row(&[end], of);
        let out = self.w.e.put(Head::If, [some, last, none]);
        self.w.e.bind(out)
    }

    /// The element of a vector.
    pub(super) fn element(&mut self, i: Val, of: Val) -> Id {
        let (i, of) = (self.w.e.now(i), self.w.e.now(of));
        self.w.e.put(Head::Index(1), [i, of])
    }

    /// The element at `k - 1`, or another value where `k` is 0.
    pub(super) fn before(&mut self, k: Val, first: Val, of: Table) -> Id {
        let (k, zero, one) = (self.w.e.now(k), self.w.e.int(0), self.w.e.int(1));
        let at_start = self.w.e.op(Op::Eq, [k, zero]);
        let first = self.w.e.now(first);
        let at = self.w.e.sub(k, one);
        let at = self.w.e.val(at);
        let earlier = self.w.row(&[at], of);
        self.w.e.put(Head::If, [at_start, first, earlier])
    }

    /// `n - 1 - k`.
    pub(super) fn mirrored(&mut self, n: Val, k: Val) -> Val {
        let (n, k, one) = (self.w.e.now(n), self.w.e.now(k), self.w.e.int(1));
        let end = self.w.e.sub(n, one);
        let m = self.w.e.op(Op::Sub, [end, k]);
        self.w.e.bind(m)
    }

    /// Brings the state and the element or index of step `k` into the scope of the source.
    pub(super) fn step_variables(&mut self, seq: &Steps, k: Val, state: Active, element: Active) -> (Val, Val) {
        let s = match seq.once {
            Some(once) => self.masked(seq, once, k),
            None => self.before(k, seq.init, seq.states),
        };
        let s = self.w.e.bind(s);
        self.w.env.push(Entry { val: s, active: state, sizes: seq.like.sizes.clone() });
        (s, self.step_element(&seq.elements, k, element))
    }

    /// Brings the element or index of step `k` into the scope of the source.
    pub(super) fn step_element(&mut self, elements: &Option<Like>, k: Val, active: Active) -> Val {
        let (x, sizes) = match elements {
            Some(of) => {
                let x = match self.counted(of.val, k) {
                    Some(x) => x,
                    None => self.element(k, of.val),
                };
                (self.w.e.bind(x), of.sizes.get(1..).unwrap_or_default().to_vec())
            }
            None => (k, vec![]),
        };
        self.w.env.push(Entry { val: x, active, sizes });
        x
    }

    /// The k-th element of a vector of integers, which says what it reads only where the vector's text stands for it.
    pub(super) fn counted(&mut self, of: Val, k: Val) -> Option<Id> {
        let Head::Var(i, _) = self.w.e.terms.head(of.id) else { return None };
        let made = self.w.e.bound_value(of)?;
        let level = of.depth - 1 - i as usize;
        let terms = &self.w.e.terms;
        if terms.head(made) != Head::Build(1) || terms.size(made) > COUNTED {
            return None;
        }
        let each = terms.kids(made)[1];
        let plain = |id: Id| matches!(terms.head(id), Head::Var(..) | Head::Const(_) | Head::Op(_));
        if terms.ty(each) != Ty::int() || !terms.reachable(each).into_iter().all(plain) {
            return None;
        }
        let (by, k) = (self.w.e.depth() - level, self.w.e.now(k));
        Some(self.w.e.terms.map_free(each, 0, &mut |t, i, ty, under| match i {
            0 => t.shift(k, under),
            i => t.var(i - 1 + (by + under) as u32, ty),
        }))
    }

    /// Products, and greatest and least elements, over one index.
    pub(super) fn reduction_back(
        &mut self,
        id: Id,
        m: Monoid,
        kids: &[Id],
        contributions: Vec<Contribution>,
    ) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        let n = self.w.value(kids[0]);
        if m == Monoid::Mul {
            return self.product_back(kids, n, dr);
        }
        let (count, zero) = (self.w.e.now(n), self.w.e.int(0));
        let some = self.w.e.op(Op::Gt, [count, zero]);
        let some = self.w.e.bind(some);
        self.arm(some, |me| {
            let k = me.last_extreme(m, n, kids[1]);
            let contribution = me.whole(dr);
            me.under(&[k], |me| me.back(kids[1], vec![contribution]))
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
            let contribution = me.whole(d);
            me.under(vars, |me| me.back(kids[1], vec![contribution]))
        })
    }
}
