//! How an integer changes with the index of a dimension: whether it never falls, or never rises.
//!
//! It knows nothing of loops; what is not seen to move one way is said to move in any.

use super::body::{Bodies, Body, DimId, Node};
use crate::ir::Op;

/// How an integer changes where an index grows by one and all others stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trend {
    /// Not at all.
    Same,
    /// It never becomes less.
    Up,
    /// It never becomes more.
    Down,
}

impl Trend {
    fn turned(self, turn: bool) -> Trend {
        match self {
            Trend::Up if turn => Trend::Down,
            Trend::Down if turn => Trend::Up,
            _ => self,
        }
    }

    fn and(self, other: Trend) -> Option<Trend> {
        match (self, other) {
            (Trend::Same, b) => Some(b),
            (a, Trend::Same) => Some(a),
            (a, b) => (a == b).then_some(a),
        }
    }
}

/// How a small integer changes with the index of a dimension; nothing where that is not known.
pub fn trend(bodies: &Bodies, b: Body, d: DimId) -> Option<Trend> {
    if !bodies.dims(b).contains(&d) && !bodies.is_data(b) {
        return Some(Trend::Same);
    }
    if !bodies.is_small(b) {
        return None;
    }
    let mut out = Trend::Same;
    for (atom, c) in bodies.linear(b)?.terms() {
        out = out.and(of_atom(bodies, atom, d)?.turned(c < 0))?;
    }
    Some(out)
}

fn of_atom(bodies: &Bodies, b: Body, d: DimId) -> Option<Trend> {
    match bodies.node(b) {
        Node::Index(own) => Some(if *own == d { Trend::Up } else { Trend::Same }),
        Node::Lit(_) | Node::Symbol(_) => Some(Trend::Same),
        Node::Op(Op::Min | Op::Max, _, args) => trend(bodies, args[0], d)?.and(trend(bodies, args[1], d)?),
        // Where there is a value the divisor is not 0.
        Node::Op(Op::Div | Op::FloorDiv, _, args) => {
            let fixed = bodies.is_nonnegative(args[1]) && trend(bodies, args[1], d)? == Trend::Same;
            if fixed { trend(bodies, args[0], d) } else { None }
        }
        _ if !bodies.dims(b).contains(&d) && !bodies.is_data(b) => Some(Trend::Same),
        _ => None,
    }
}
