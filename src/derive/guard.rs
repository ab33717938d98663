//! The conditions around a place become facts: an arm is only evaluated where its condition says so.

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
    comparisons(terms, (cond, holds), &mut |op, holds, a, b| {
        // Comparisons of floats that do not hold say nothing: one of them may be no number.
        if terms.ty(a) != Ty::int() {
            return;
        }
        match (op, holds) {
            (Op::Lt, true) | (Op::Gte, false) => out.push(Fact::Less(a, 1, b)),
            (Op::Gt, true) | (Op::Lte, false) => out.push(Fact::Less(b, 1, a)),
            (Op::Lte, true) | (Op::Gt, false) => out.push(Fact::Less(a, 0, b)),
            (Op::Gte, true) | (Op::Lt, false) => out.push(Fact::Less(b, 0, a)),
            (Op::Eq, true) | (Op::Ne, false) => out.extend([Fact::Less(a, 0, b), Fact::Less(b, 0, a)]),
            (Op::Eq, false) | (Op::Ne, true) => out.push(Fact::Differ(a, b)),
            _ => {}
        }
    });
}

/// What a condition says of floats over the reals, where each has a value.
pub fn real_facts(terms: &Terms, cond: Id, holds: bool, out: &mut Vec<Fact>) {
    comparisons(terms, (cond, holds), &mut |op, holds, a, b| {
        if !terms.ty(a).as_scalar().is_some_and(|s| s.is_float()) {
            return;
        }
        match (op, holds) {
            (Op::Lt, true) | (Op::Gte, false) => out.extend([Fact::Less(a, 0, b), Fact::Differ(a, b)]),
            (Op::Gt, true) | (Op::Lte, false) => out.extend([Fact::Less(b, 0, a), Fact::Differ(a, b)]),
            (Op::Lte, true) | (Op::Gt, false) => out.push(Fact::Less(a, 0, b)),
            (Op::Gte, true) | (Op::Lt, false) => out.push(Fact::Less(b, 0, a)),
            (Op::Eq, true) | (Op::Ne, false) => out.extend([Fact::Less(a, 0, b), Fact::Less(b, 0, a)]),
            (Op::Eq, false) | (Op::Ne, true) => out.push(Fact::Differ(a, b)),
            _ => {}
        }
    });
}

/// The comparisons of two numbers that are known to hold, or not to, where a condition does or does not.
fn comparisons(terms: &Terms, (cond, holds): (Id, bool), each: &mut dyn FnMut(Op, bool, Id, Id)) {
    let (head, kids) = (terms.head(cond), terms.kids(cond));
    let Head::Op(op) = head else { return };
    match (op, kids) {
        (Op::Not, [a]) => comparisons(terms, (*a, !holds), each),
        (Op::And, _) if holds => kids.iter().for_each(|k| comparisons(terms, (*k, true), each)),
        (Op::Or, _) if !holds => kids.iter().for_each(|k| comparisons(terms, (*k, false), each)),
        (_, [a, b]) => each(op, holds, *a, *b),
        _ => {}
    }
}
