//! Conditions that are known in the arms of others go: in the arm where `i < j` holds, `(if (lt i j) a b)` is `a`, and so is
//! `(if (eq i j) b a)`. Derivatives of what steps set once are full of these: the value before a step is asked for where it
//! was asked already. So are those of sums over pairs, which compare floats. Nothing is evaluated that was not. It must not
//! know of ranges of indices.

use super::body::{Body, Node};
use super::graph::Graph;
use crate::ir::{Op, Scalar};
use rustc_hash::FxHashMap;

/// Bodies of more nodes are left as they are.
const MANY: usize = 600;

impl Graph {
    /// Lets no arm ask what is decided by its place.
    pub(super) fn known_conditions(&mut self) {
        for s in self.ids() {
            let mut memo = FxHashMap::default();
            let all = self.stage(s).bodies();
            if self.bodies.reachable(all.clone()).len() > MANY {
                continue;
            }
            let told: Vec<Body> = all.into_iter().map(|b| self.told(b, &mut memo)).collect();
            self.stages[s.0 as usize].bodies_mut().zip(told).for_each(|(b, new)| *b = new);
        }
    }

    fn told(&mut self, b: Body, memo: &mut FxHashMap<Body, Body>) -> Body {
        if let Some(done) = memo.get(&b) {
            return *done;
        }
        let out = match self.bodies.node(b).clone() {
            Node::If([c, x, y]) => {
                let [x, y] = [(x, true), (y, false)].map(|(arm, holds)| self.where_it(c, holds, arm));
                let [c, x, y] = [c, x, y].map(|part| self.told(part, memo));
                self.bodies.cond(c, x, y)
            }
            node => {
                let of = node.kids().iter().map(|k| (*k, self.told(*k, memo))).collect();
                self.bodies.rebuilt(b, &of)
            }
        };
        memo.insert(b, out);
        out
    }

    /// A body where a condition holds, or does not.
    fn where_it(&mut self, c: Body, holds: bool, b: Body) -> Body {
        let asks = |g: &Graph, b: Body| g.bodies.reachable([b]).into_iter().any(|b| g.bodies.ty(b) == Scalar::Bool);
        if !asks(self, b) {
            return b;
        }
        let mut known = FxHashMap::default();
        for (c, holds) in self.taken_apart(&[(c, holds)]) {
            for (also, holds) in self.follows_from(c, holds) {
                if self.bodies.as_bool(also).is_none() {
                    known.insert(also, self.bodies.bool(holds));
                }
            }
        }
        self.bodies.map(b, &mut known, &mut |_, _| None)
    }

    /// What is known of two numbers where a comparison of them holds, or does not, itself first.
    fn follows_from(&mut self, c: Body, holds: bool) -> Vec<(Body, bool)> {
        let mut out = vec![(c, holds)];
        let Node::Op(op, Scalar::Bool, sides) = self.bodies.node(c).clone() else { return out };
        let [a, b] = sides[..] else { return out };
        let ty = self.bodies.ty(a);
        if ty != Scalar::I64 && !ty.is_float() {
            return out;
        }
        // Whether it holds where the first is less, equal or greater, and where one of them is NaN.
        let may = |op: Op| match op {
            Op::Lt => Some([true, false, false, false]),
            Op::Lte => Some([true, true, false, false]),
            Op::Eq => Some([false, true, false, false]),
            Op::Gte => Some([false, true, true, false]),
            Op::Gt => Some([false, false, true, false]),
            Op::Ne => Some([true, false, true, true]),
            _ => None,
        };
        let Some(mut given) = may(op).map(|m| m.map(|x| x == holds)) else { return out };
        given[3] &= ty.is_float();
        for other in [Op::Lt, Op::Lte, Op::Eq, Op::Gte, Op::Gt, Op::Ne] {
            let Some(wanted) = may(other) else { continue };
            let left = || given.iter().zip(wanted).filter(|(g, _)| **g).map(|(_, w)| w);
            let decided = [true, false].into_iter().find(|v| left().all(|w| w == *v));
            if let (Some(v), Some(turned)) = (decided, other.mirrored()) {
                let asked = [self.bodies.test(other, a, b), self.bodies.test(turned, b, a)];
                out.extend(asked.map(|c| (c, v)));
            }
        }
        out
    }
}
