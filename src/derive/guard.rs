//! The conditions around a place become facts: an arm is only evaluated where its condition says so. So do folds around
//! it, whose states keep their sizes.

use crate::ir::{Head, Id, Op, Terms, Ty};

/// A condition around a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    /// The condition, right outside the place.
    pub cond: Id,
    /// How many loops stand around the condition.
    pub depth: usize,
    /// What it is.
    pub holds: bool,
}

/// The conditions around a place, outermost first.
pub type Guards = Vec<Guard>;

/// The variable of a state that keeps its sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// How many loops stand around the fold.
    pub(super) depth: usize,
    /// What the state begins with, right outside the fold.
    pub(super) init: Id,
}

/// What a guard says of numbers: of integers, or of floats over the reals.
#[derive(Clone, Copy, Debug)]
pub enum Fact {
    /// One of them is at least so much less than another.
    Less(Id, i64, Id),
    /// They are not equal.
    Differ(Id, Id),
}

/// The guard of child `k` of a node, where it has one.
pub fn guard(head: Head, kids: &[Id], k: usize, depth: usize) -> Option<Guard> {
    let holds = match head {
        Head::If if k > 0 => k == 1,
        Head::Assert if k == 1 => true,
        _ => return None,
    };
    Some(Guard { cond: kids[0], depth, holds })
}

/// What a condition says of integers, where it holds or where it does not.
pub fn facts(terms: &Terms, cond: Id, holds: bool, out: &mut Vec<Fact>) {
    comparisons(terms, (cond, holds), &mut |op, holds, [a, b]| {
        if terms.ty(a) == Ty::int() {
            let less = |a, b| vec![Fact::Less(a, 1, b)];
            out.extend(said(op, holds, [a, b], &less));
        }
    });
}

/// What a condition says of floats over the reals, where each has a value. Of floats as such comparisons that do not hold
/// say nothing: one of them may be no number.
pub fn real_facts(terms: &Terms, cond: Id, holds: bool, out: &mut Vec<Fact>) {
    comparisons(terms, (cond, holds), &mut |op, holds, [a, b]| {
        if terms.ty(a).as_scalar().is_some_and(|s| s.is_float()) {
            let less = |a, b| vec![Fact::Less(a, 0, b), Fact::Differ(a, b)];
            out.extend(said(op, holds, [a, b], &less));
        }
    });
}

/// What a comparison says; `less` is what it says of two numbers that one is less than the other.
fn said(op: Op, holds: bool, [a, b]: [Id; 2], less: &dyn Fn(Id, Id) -> Vec<Fact>) -> Vec<Fact> {
    match (op, holds) {
        (Op::Lt, true) | (Op::Gte, false) => less(a, b),
        (Op::Gt, true) | (Op::Lte, false) => less(b, a),
        (Op::Lte, true) | (Op::Gt, false) => vec![Fact::Less(a, 0, b)],
        (Op::Gte, true) | (Op::Lt, false) => vec![Fact::Less(b, 0, a)],
        (Op::Eq, true) | (Op::Ne, false) => vec![Fact::Less(a, 0, b), Fact::Less(b, 0, a)],
        (Op::Eq, false) | (Op::Ne, true) => vec![Fact::Differ(a, b)],
        _ => vec![],
    }
}

/// The comparisons of two numbers that are known to hold, or not to, where a condition does or does not.
fn comparisons(terms: &Terms, (cond, holds): (Id, bool), each: &mut dyn FnMut(Op, bool, [Id; 2])) {
    let (head, kids) = (terms.head(cond), terms.kids(cond));
    let Head::Op(op) = head else { return };
    match (op, kids) {
        (Op::Not, [a]) => comparisons(terms, (*a, !holds), each),
        (Op::And, _) if holds => kids.iter().for_each(|k| comparisons(terms, (*k, true), each)),
        (Op::Or, _) if !holds => kids.iter().for_each(|k| comparisons(terms, (*k, false), each)),
        (_, [a, b]) => each(op, holds, [*a, *b]),
        _ => {}
    }
}
