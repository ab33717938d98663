//! Folds whose steps set one element of a table each, further on in every step: Cholesky's triangle row by row, a triangular
//! system solved, a series that goes on from its own past. What a step has set stays as it is, so the state before any step is
//! the last one as far as it was set by then, and the first one beyond: `(if (lt j at) (index j last) (index j first))`. The
//! last state is kept, and no table of all states. It must not know what elements are set to.

use super::adjoint::Reverse;
use super::contribution::Contribution;
use super::emit::Val;
use super::env::{Active, Entry};
use super::keep::Steps;
use super::kept::Once;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Op, Terms, Ty};
use crate::types::shape::lowered;

/// An index is looked through if its text has so many nodes at most.
const SHORT: u64 = 24;

/// Indices that grow by more than this from step to step might wrap around.
const STEEP: i64 = 1 << 16;

/// An element of a table that a step sets, and where.
struct Set {
    axis: usize,
    at: Id,
}

impl Reverse<'_, '_> {
    /// How a fold sets elements, if it sets each at most once, in order.
    pub(super) fn once(&mut self, id: Id) -> Option<Once> {
        if self.w.e.terms.head(id) != Head::Fold {
            return None;
        }
        let kids = self.w.e.terms.kids(id).to_vec();
        let Set { axis, at } = set_by_step(self.w.e.terms, kids[2])?;
        let of_element = growth(self.w.e.terms, at, 0)?;
        let elements = self.w.value(kids[1]);
        // What an element is, by the number of its step: nothing else tells their order.
        let depth = self.w.e.depth();
        let k = self.w.e.enter(Ty::int());
        let element = self.counted(elements, k);
        self.w.e.leave(depth);
        let of_step = growth(self.w.e.terms, element?, 0)?;
        let grows = of_element.checked_mul(of_step)?;
        (grows != 0 && grows.abs() <= STEEP).then_some(Once { axis, at, grows: grows > 0 })
    }

    /// The state before step `k` of a fold that sets each element once, by the last state.
    pub(super) fn masked(&mut self, steps: &Steps, once: Once, k: Val) -> Id {
        let at = self.set_at(steps, once, k);
        let (of, last) = (self.w.e.now(steps.init), self.w.column(&[], steps.states));
        let rank = self.w.e.ty(of).as_tensor().map_or(0, |(rank, _)| rank);
        let sizes = steps.like.sizes_now(&mut self.w.e);
        let mut kids = self.w.axes(of, rank, &sizes);
        let indices: Vec<Id> = (0..rank).map(|j| self.w.e.terms.var((rank - 1 - j) as u32, Ty::int())).collect();
        let mut element = |of: Id| {
            let of = self.w.e.terms.shift(of, rank);
            self.w.e.put(Head::Index(rank), indices.iter().copied().chain([of]))
        };
        let arms = [element(last), element(of)];
        let at = self.w.e.terms.shift(at, rank);
        let set = self.w.e.op(if once.grows { Op::Lt } else { Op::Gt }, [indices[once.axis], at]);
        kids.push(self.w.e.put(Head::If, [set, arms[0], arms[1]]));
        self.w.e.put(Head::Build(rank), kids)
    }

    /// Collects what contributions to the adjoint of the state after a step mean, where the adjoint of the state before the
    /// first is not asked for: what is beyond the element that the step sets is never read, so that all of it is handed on.
    pub(super) fn set_back(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<()> {
        let Head::Build(rank) = self.w.e.terms.head(id) else {
            return Err(Diagnostic::bug("a step that sets nothing"));
        };
        let kids = self.w.e.terms.kids(id).to_vec();
        let [c, mut set, mut kept] = *self.w.e.terms.kids(kids[rank]) else {
            return Err(Diagnostic::bug("a step that sets all"));
        };
        let other = self.w.e.terms.head(c) == Head::Op(Op::Ne);
        if other {
            (set, kept) = (kept, set);
        }
        let dr = self.dense(id, contributions)?;
        let state = self.w.e.terms.kids(kept)[rank];
        let Some(state) = lowered(self.w.e.terms, state, rank) else { return Err(Diagnostic::bug("no state")) };
        let whole = self.whole(dr);
        self.back(state, vec![whole])?;
        self.looped(&kids[..rank], |me, vars| {
            let element = me.element_at(vars, dr);
            let contribution = me.whole(element);
            me.under(vars, |me| {
                let mut here = me.w.value(c);
                if other {
                    let c = me.w.e.now(here);
                    let not = me.w.e.op(Op::Not, [c]);
                    here = me.w.e.bind(not);
                }
                if me.w.active(set) { me.arm(here, |me| me.back(set, vec![contribution])) } else { Ok(()) }
            })
        })
    }

    /// The index that step `k` sets.
    fn set_at(&mut self, steps: &Steps, once: Once, k: Val) -> Id {
        let (mark, scope) = (self.w.mark(), self.w.env.len());
        // The index does not read the state.
        self.w.env.push(Entry { val: steps.init, active: Active::No, sizes: vec![] });
        self.step_element(&steps.elements, k, Active::No);
        let at = self.w.value(once.at);
        self.w.env.truncate(scope);
        self.w.forget(mark);
        self.w.e.now(at)
    }
}

/// Whether a tensor is made of elements that are read from others, as the state before a step is of the last one: an element
/// of it is as cheap as one of them.
pub(super) fn is_selection(terms: &Terms, id: Id) -> bool {
    let Head::Build(rank) = terms.head(id) else { return false };
    let each = terms.kids(id)[rank];
    let selects = |id: Id| match terms.head(id) {
        Head::If | Head::Index(_) | Head::Var(..) | Head::Const(_) | Head::Get(..) => true,
        Head::Op(_) => terms.ty(id) == Ty::int() || terms.ty(id) == Ty::bool(),
        _ => false,
    };
    terms.head(each) == Head::If && terms.size(each) <= SHORT && terms.reachable(each).into_iter().all(selects)
}

/// The element that a step sets, where all others are those of the state before: a body under a state and an element.
fn set_by_step(terms: &mut Terms, body: Id) -> Option<Set> {
    let (mut lets, mut rest) = (vec![], body);
    while let (Head::Let, [value, inner]) = (terms.head(rest), terms.kids(rest)) {
        lets.push(*value);
        rest = *inner;
    }
    let Head::Build(rank) = terms.head(rest) else { return None };
    let each = terms.kids(rest)[rank];
    let (Head::If, [c, set, kept]) = (terms.head(each), terms.kids(each)) else { return None };
    let (Head::Op(op), [x, y]) = (terms.head(*c), terms.kids(*c)) else { return None };
    let kept = match op {
        Op::Eq => *kept,
        Op::Ne => *set,
        _ => return None,
    };
    let state = (rank + lets.len() + 1) as u32;
    let is_var = |id: Id, k: u32| matches!(terms.head(id), Head::Var(i, _) if i == k);
    let own = |j: usize| (rank - 1 - j) as u32;
    let kids = terms.kids(kept);
    let same = terms.head(kept) == Head::Index(rank)
        && is_var(kids[rank], state)
        && (0..rank).all(|j| is_var(kids[j], own(j)));
    if !same {
        return None;
    }
    let sides = [(*x, *y), (*y, *x)];
    let named = |j: usize| sides.iter().find(|(v, _)| is_var(*v, own(j))).map(|(_, at)| (j, *at));
    let (axis, at) = (0..rank).find_map(named)?;
    let at = lowered(terms, at, rank)?;
    Some(Set { axis, at: without_lets(terms, at, &lets)? })
}

/// A short term under lets as one around them, which does not read the state there.
fn without_lets(terms: &mut Terms, mut id: Id, lets: &[Id]) -> Option<Id> {
    for value in lets.iter().rev() {
        id = terms.substitute(id, &[*value]);
        if terms.size(id) > SHORT {
            return None;
        }
    }
    (!terms.free(id).has(1)).then_some(id)
}

/// By how much an integer grows with a variable, where it does so evenly.
fn growth(terms: &Terms, id: Id, by: u32) -> Option<i64> {
    if !terms.free(id).has(by as usize) {
        return Some(0);
    }
    let literal = |id: Id| terms.as_lit(id).and_then(|l| l.as_int());
    match (terms.head(id), terms.kids(id)) {
        (Head::Var(i, _), _) => Some(i64::from(i == by)),
        (Head::Op(Op::Add), [x, y]) => growth(terms, *x, by)?.checked_add(growth(terms, *y, by)?),
        (Head::Op(Op::Sub), [x, y]) => growth(terms, *x, by)?.checked_sub(growth(terms, *y, by)?),
        (Head::Op(Op::Mul), [x, y]) => match (literal(*x), literal(*y)) {
            (Some(c), _) => growth(terms, *y, by)?.checked_mul(c),
            (_, Some(c)) => growth(terms, *x, by)?.checked_mul(c),
            _ => None,
        },
        (Head::Op(Op::Neg), [x]) => growth(terms, *x, by)?.checked_neg(),
        _ => None,
    }
}
