//! Integers that a `min` or `max` clamps: what the clamps decide, and what is left without them.
//!
//! A condition that clamps decide is known without a range of any index; what an index is between its ends moves with the loop,
//! so that it can be a vector.

use super::body::{Bodies, Body, Node};
use crate::ir::Op;

/// Integers are looked into so deep.
const DEPTH: usize = 6;

impl Bodies {
    /// How two integers compare, where numbers that they are clamped to decide it, whatever else they are.
    pub(super) fn decided_by_clamps(&self, op: Op, a: Body, b: Body) -> Option<bool> {
        let ([a_lo, a_hi], [b_lo, b_hi]) = (self.ends(a, DEPTH), self.ends(b, DEPTH));
        let (less, not_less) = (a_hi < b_lo, a_lo >= b_hi);
        let (more, not_more) = (a_lo > b_hi, a_hi <= b_lo);
        let (yes, no) = match op {
            Op::Lt => (less, not_less),
            Op::Gte => (not_less, less),
            Op::Gt => (more, not_more),
            Op::Lte => (not_more, more),
            Op::Eq => (false, less || more),
            Op::Ne => (less || more, false),
            _ => (false, false),
        };
        (yes || no).then_some(yes)
    }

    /// The least and the greatest number that an integer can be.
    fn ends(&self, b: Body, depth: usize) -> [i64; 2] {
        let any = [i64::MIN, i64::MAX];
        let Some(below) = depth.checked_sub(1) else { return any };
        match self.node(b) {
            Node::Lit(l) => l.as_int().map_or(any, |v| [v, v]),
            Node::Index(_) => [0, i64::MAX],
            Node::Op(op @ (Op::Min | Op::Max), _, args) => {
                let ([a, b], [c, d]) = (self.ends(args[0], below), self.ends(args[1], below));
                if *op == Op::Min { [a.min(c), b.min(d)] } else { [a.max(c), b.max(d)] }
            }
            Node::Op(Op::Mod, _, args) => match (self.ends(args[0], below), self.as_int(args[1])) {
                ([lo, _], Some(n)) if n > 0 => [if lo >= 0 { 0 } else { 1 - n }, n - 1],
                _ => any,
            },
            _ => any,
        }
    }

    /// What an integer is where it is not clamped by what does not move with the indices in it: nothing where two parts of
    /// a `min` or `max` do.
    pub fn unclamped(&self, b: Body) -> Option<Body> {
        match self.node(b) {
            Node::Op(Op::Min | Op::Max, _, args) => match (self.stays(args[0]), self.stays(args[1])) {
                (true, _) => self.unclamped(args[1]),
                (_, true) => self.unclamped(args[0]),
                _ => None,
            },
            _ => Some(b),
        }
    }

    /// Whether an integer moves with indices by no more than remainders do, so that what it clamps is free but near the ends.
    pub fn stays(&self, b: Body) -> bool {
        let still = |a: Body| match self.node(a) {
            Node::Op(Op::Mod | Op::FloorMod, _, args) => self.as_int(args[1]).is_some(),
            _ => false,
        };
        let form = || self.linear(b);
        self.dims(b).is_empty() || form().is_some_and(|f| f.terms().all(|(a, _)| self.dims(a).is_empty() || still(a)))
    }
}
