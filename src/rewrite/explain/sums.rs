//! An element of running sums is a sum of elements: the rules that say so, as equations of a trace.
//!
//! No e-graph fires these rules backwards, since a running sum needs to be told how far it runs. So what
//! [`crate::rewrite::accumulate`] makes is related here to the sums that it takes the place of.

use super::terms::{element, extents, lowered};
use crate::ir::{Head, Lit, Monoid, Op, Ty};
use crate::rewrite::egraph::language::Label;
use crate::rewrite::egraph::trace::{Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Records what sums the elements of running sums are, in a term and its parts.
pub fn related(trace: &mut Trace, root: Tid, seen: &mut FxHashSet<Tid>) {
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        let (label, kids) = trace.node(id).clone();
        todo.extend(&kids);
        if label == Label::Head(Head::Index(1)) {
            let of = element(trace, kids[1]).unwrap_or(kids[1]);
            for (rule, to) in sums(trace, kids[0], of) {
                let read = trace.put(label, [kids[0], of]);
                trace.by(read, to, rule);
            }
        }
    }
}

/// The sums that an element of a vector is by rules, with the names of these.
fn sums(trace: &mut Trace, at: Tid, of: Tid) -> Vec<(&'static str, Tid)> {
    let (Label::Head(Head::Scan), kids) = trace.node(of).clone() else { return vec![] };
    scanned(trace, at, kids[1], kids[2]).unwrap_or_default()
}

fn scanned(trace: &mut Trace, at: Tid, n: Tid, step: Tid) -> Option<Vec<(&'static str, Tid)>> {
    let (label, kids) = trace.node(step).clone();
    let later = label == Label::Head(Head::If);
    let [_, element] = binary(trace, if later { kids[1] } else { step }, Op::Add)?;
    let (Label::Head(Head::Index(1)), read) = trace.node(element).clone() else { return None };
    let all = lowered(trace, read[1], 2)?;
    let (is_first, one) =
        (|t: &Trace, id: Tid| matches!(t.node(id).0, Label::Head(Head::Var(0, _))), constant(trace, 1));
    if is_first(trace, read[0]) && !later {
        let count = op(trace, Op::Add, [at, one]);
        return Some(vec![("prefix-sums", sum(trace, count, all, &|_, j| j))]);
    }
    let [from, k] = binary(trace, read[0], Op::Sub)?;
    if is_first(trace, from) && k == one && later {
        return Some(vec![("prefix-sums-before", sum(trace, at, all, &|_, j| j))]);
    }
    let [rest, _] = binary(trace, at, Op::Sub)?;
    let [_, i] = binary(trace, rest, Op::Sub)?;
    let under = trace.shifted(i, 1);
    if later {
        let next = op(trace, Op::Add, [i, one]);
        let (count, next) = (op(trace, Op::Sub, [n, next]), trace.shifted(next, 1));
        let place = move |t: &mut Trace, j| op(t, Op::Add, [next, j]);
        return Some(vec![("suffix-sums-after", sum(trace, count, all, &place))]);
    }
    let left = sum(trace, rest, all, &|t, j| op(t, Op::Add, [under, j]));
    let right = sum(trace, rest, all, &|t, j| op(t, Op::Add, [j, under]));
    Some(vec![("suffix-sums", left), ("suffix-sums-right", right)])
}

/// The sum of so many elements of a vector.
fn sum(trace: &mut Trace, count: Tid, all: Tid, place: &dyn Fn(&mut Trace, Tid) -> Tid) -> Tid {
    let head = Head::Reduce(Monoid::Add, 1);
    let extent = extents(trace, head, &[count], &mut FxHashMap::default());
    let j = trace.put(Label::Head(Head::Var(0, Ty::int())), extent);
    let (at, all) = (place(trace, j), trace.shifted(all, 1));
    let element = trace.put(Label::Head(Head::Index(1)), [at, all]);
    trace.put(Label::Head(head), [count, element])
}

fn op(trace: &mut Trace, op: Op, kids: [Tid; 2]) -> Tid {
    trace.put(Label::Head(Head::Op(op)), kids)
}

fn constant(trace: &mut Trace, value: i64) -> Tid {
    trace.put(Label::Head(Head::Const(Lit::int(value))), [])
}

/// The operands of an operation.
fn binary(trace: &Trace, id: Tid, op: Op) -> Option<[Tid; 2]> {
    match trace.node(id) {
        (Label::Head(Head::Op(o)), kids) if *o == op => <[Tid; 2]>::try_from(kids.as_slice()).ok(),
        _ => None,
    }
}
