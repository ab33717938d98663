//! Products that are added are contracted: they become `fma`, one rounding in place of two.
//!
//! That changes bits, so it is a rewrite of the graph and no schedule; it is equal over the reals, and adds no failure. The
//! same body becomes the same one wherever it stands, so what a check says of an index stays true.

use super::body::{Body, Node};
use super::graph::Graph;
use crate::ir::{Op, Scalar};
use rustc_hash::FxHashMap;

impl Graph {
    /// The graph with `fma` for products that are added to a number, or from which or which of it is taken.
    #[must_use]
    pub fn contracted(mut self) -> Graph {
        let mut of: FxHashMap<Body, Body> = FxHashMap::default();
        for k in 0..self.stages.len() {
            let mut stage = self.stages[k].clone();
            stage.bodies_mut().for_each(|b| *b = self.contract(*b, &mut of));
            self.stages[k] = stage;
        }
        self.map_outputs(&mut |g, b| g.contract(b, &mut of));
        self
    }

    fn contract(&mut self, b: Body, of: &mut FxHashMap<Body, Body>) -> Body {
        for at in self.bodies.reachable([b]) {
            if !of.contains_key(&at) {
                let new = self.bodies.rebuilt(at, of);
                let new = self.contracted_sum(new).unwrap_or(new);
                of.insert(at, new);
            }
        }
        of.get(&b).copied().unwrap_or(b)
    }

    /// A sum or difference with a product as one operation.
    fn contracted_sum(&mut self, b: Body) -> Option<Body> {
        let Node::Op(op @ (Op::Add | Op::Sub), ty @ (Scalar::F64 | Scalar::F32), args) = self.bodies.node(b).clone()
        else {
            return None;
        };
        let (x, y) = (args[0], args[1]);
        let product = |s: &Self, b: Body| match s.bodies.node(b) {
            Node::Op(Op::Mul, _, args) => Some((args[0], args[1])),
            _ => None,
        };
        let negated = |s: &mut Self, b: Body| if op == Op::Sub { s.bodies.op(Op::Neg, ty, &[b]) } else { b };
        if let Some((m, n)) = product(self, y) {
            let m = negated(self, m);
            return Some(self.bodies.op(Op::Fma, ty, &[m, n, x]));
        }
        let (m, n) = product(self, x)?;
        let y = negated(self, y);
        Some(self.bodies.op(Op::Fma, ty, &[m, n, y]))
    }
}
