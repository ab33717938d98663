//! Quotient and remainder of an index by a number are put together again.
//!
//! Where two dimensions became one, each reading takes the index of it apart, and makes a place of memory of the parts.

use super::body::{Bodies, Body, Node};
use crate::affine::Linear;
use crate::ir::Op;

/// Multiples of larger numbers may wrap, of small integers, too.
const SMALL: i64 = 1 << 20;

impl Bodies {
    /// The integer of a form, in which the quotient and the remainder of an index by a number are the index again; also where
    /// the quotient is clamped: then the index is, to the first and the last row.
    pub(super) fn regrouped(&mut self, form: &Linear<Body>) -> Body {
        let remainder = |(a, c): (Body, i64)| match self.node(a) {
            Node::Op(Op::Mod, _, args) if c == 1 => {
                Some((a, args[0], args[1], self.as_int(args[1]).filter(|n| (2..SMALL).contains(n))?))
            }
            _ => None,
        };
        let all: Vec<_> = form.terms().filter_map(remainder).collect();
        for (r, index, by, n) in all {
            let (rest, _) = form.without(r);
            let q = self.ints(Op::Div, index, by);
            let clamped = |a: Body| {
                let clamps = matches!(self.node(a), Node::Op(Op::Min | Op::Max, ..));
                clamps && self.is_small(a) && self.reachable([a]).contains(&q)
            };
            let Some((atom, _)) = rest.terms().find(|(a, c)| *c == n && (*a == q || clamped(*a))) else { continue };
            let place = match self.node(atom).clone() {
                Node::Op(op @ (Op::Min | Op::Max), _, args) => {
                    let [x, y] = [args[0], args[1]].map(|a| {
                        let start = self.ints(Op::Mul, a, by);
                        self.ints(Op::Add, start, r)
                    });
                    self.ints(op, x, y)
                }
                _ => index,
            };
            let rest = self.of_linear(&rest.without(atom).0);
            return self.ints(Op::Add, rest, place);
        }
        self.of_linear(form)
    }
}
