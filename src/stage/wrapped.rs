//! Indices that wrap around, `(i + 1) mod n` for all `i < n`, become a choice between two that do not: what is asked there is
//! asked of the index of a loop, which is cut where the answer changes, and neither part divides.
//!
//! Neighbours on a ring, and on a torus, are written so. It needs the ranges of indices, and must not know what is read there.

use super::body::{Body, Node};
use super::bounds::Ranges;
use super::graph::Graph;
use crate::ir::{Op, Scalar};

/// Loops of fewer iterations are not cut.
const FEW: i64 = 16;

impl Graph {
    /// Puts choices for remainders of indices that go around once; whether there was one.
    pub(super) fn unwrapped(&mut self) -> bool {
        self.each_stage(|g, s| {
            let mut stage = g.stage(s).clone();
            let any = g.in_ranges(&mut stage, Graph::choice);
            g.stages[s.0 as usize] = stage;
            any
        })
    }

    /// Whether an index is that of a loop with so many iterations, plus what is the same in all of them: it goes around once, and
    /// is cut in two. Another may go back and forth.
    fn is_rotated(&self, of: Body, n: i64) -> bool {
        let Some(form) = self.bodies.linear(of) else { return false };
        form.terms().any(|(a, c)| match self.bodies.node(a) {
            Node::Index(d) => c.abs() == 1 && self.bodies.as_int(self.dim(*d).extent) == Some(n),
            _ => false,
        })
    }

    /// The choice that is equal to a remainder, or what it is of where it is less than the divisor.
    fn choice(&mut self, ranges: &Ranges, remainder: Body) -> Option<Body> {
        let Node::Op(op @ (Op::Mod | Op::FloorMod), Scalar::I64, args) = self.bodies.node(remainder).clone() else {
            return None;
        };
        let [of, by] = args[..] else { return None };
        let n = self.bodies.as_int(by).filter(|n| (1..=i64::MAX / 2).contains(n))?;
        let (zero, below, twice) = (self.bodies.int(0), self.bodies.int(-n), self.bodies.int(2 * n));
        let holds = |g: &mut Graph, op: Op, end: Body| {
            let c = g.bodies.test(op, of, end);
            g.bodies.as_bool(c) == Some(true) || ranges.hold(&mut g.bodies, c, &[])
        };
        if holds(self, Op::Gte, zero) && holds(self, Op::Lt, by) {
            return Some(of);
        }
        if n < FEW || !self.is_rotated(of, n) {
            return None;
        }
        let (wraps, other) = if holds(self, Op::Gte, zero) && holds(self, Op::Lt, twice) {
            (self.bodies.test(Op::Gte, of, by), self.bodies.ints(Op::Sub, of, by))
        } else if op == Op::FloorMod && holds(self, Op::Gte, below) && holds(self, Op::Lt, by) {
            (self.bodies.test(Op::Lt, of, zero), self.bodies.ints(Op::Add, of, by))
        } else {
            return None;
        };
        Some(self.bodies.cond(wraps, other, of))
    }
}
