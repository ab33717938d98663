//! Comparisons become distances: how far each was from being true, and how far from being false.
//!
//! These are the branch distances of search-based testing: 0 where the outcome was met, else what the
//! numbers compared are apart; those of `and` and `or` are made of their parts. It must not know what
//! is looked for.

use super::value::Real;
use crate::ir::{Id, Lit, Op};
use rustc_hash::FxHashMap;

/// How far from being true, and from being false.
type Both = (f64, f64);

/// The distances of everything that was evaluated.
#[derive(Default)]
pub struct Distances {
    /// The last ones.
    last: FxHashMap<Id, Both>,
    /// The least ones.
    least: FxHashMap<Id, Both>,
}

/// Integers on the wrong side of a comparison are at least so far from it.
const WHOLE: f64 = 1.0;
/// The same for floats.
const BROKEN: f64 = 1e-6;

impl Distances {
    /// The least distance of a node from an outcome; nothing where it was not evaluated.
    pub fn to(&self, id: Id, outcome: bool) -> Option<f64> {
        self.least.get(&id).map(|(to_true, to_false)| if outcome { *to_true } else { *to_false })
    }

    /// Notes an operation with the values of its arguments.
    pub fn note(&mut self, id: Id, op: Op, kids: &[Id], args: &[Real]) {
        let part = |k: usize| match (self.last.get(&kids[k]), &args[k]) {
            (Some(known), _) => Some(*known),
            (None, Real::Lit(Lit::Bool(b))) => Some(plain(*b)),
            (None, _) => None,
        };
        let both = match (op, args.len()) {
            (Op::Not, 1) => part(0).map(|(t, f)| (f, t)),
            (Op::And, 2) => part(0).zip(part(1)).map(|(a, b)| (a.0 + b.0, a.1.min(b.1))),
            (Op::Or, 2) => part(0).zip(part(1)).map(|(a, b)| (a.0.min(b.0), a.1 + b.1)),
            (_, 2) => compared(op, &args[0], &args[1]),
            _ => None,
        };
        both.into_iter().for_each(|both| self.put(id, both));
    }

    /// Notes a condition that is no operation.
    pub fn truth(&mut self, id: Id, value: bool) {
        if !self.last.contains_key(&id) {
            self.put(id, plain(value));
            self.last.remove(&id);
        }
    }

    fn put(&mut self, id: Id, both: Both) {
        self.last.insert(id, both);
        let least = self.least.entry(id).or_insert(both);
        *least = (least.0.min(both.0), least.1.min(both.1));
    }
}

fn plain(value: bool) -> Both {
    if value { (0.0, 1.0) } else { (1.0, 0.0) }
}

fn compared(op: Op, a: &Real, b: &Real) -> Option<Both> {
    let number = |v: &Real| match v {
        Real::Number(n) => Some(n.to_f64()),
        Real::Lit(Lit::Int(_, v)) => Some(*v as f64),
        Real::Lit(Lit::Bool(b)) => Some(f64::from(u8::from(*b))),
        _ => None,
    };
    let (x, y) = (number(a)?, number(b)?);
    let unit = if matches!(a, Real::Number(_)) { BROKEN } else { WHOLE };
    let less = |x: f64, y: f64| if x < y { 0.0 } else { x - y + unit };
    let at_most = |x: f64, y: f64| if x <= y { 0.0 } else { x - y };
    let both = match op {
        Op::Lt => (less(x, y), at_most(y, x)),
        Op::Gt => (less(y, x), at_most(x, y)),
        Op::Lte => (at_most(x, y), less(y, x)),
        Op::Gte => (at_most(y, x), less(x, y)),
        Op::Eq => ((x - y).abs(), if x == y { unit } else { 0.0 }),
        Op::Ne => (if x == y { unit } else { 0.0 }, (x - y).abs()),
        _ => return None,
    };
    (both.0.is_finite() && both.1.is_finite()).then_some(both)
}
