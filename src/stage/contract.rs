//! Products that are added are contracted: they become `fma`, one rounding in place of two.
//!
//! That changes bits, so it is a rewrite of the graph and no schedule; it is equal over the reals, and adds no failure. What
//! decides something, such as a condition or an index, keeps its bits with all that it is made of, wherever that stands, but
//! for the elements of stages that it reads: these are the same for all who read them. So what a check says of an index stays
//! true, and so does what was computed in an arm for those that read it there.

use super::body::{Body, Node, StageId};
use super::graph::{Definition, Graph, Output};
use crate::ir::{Lit, Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

impl Graph {
    /// Contracts products that a stage adds to a number, or takes from it, or it from them; whether there is one. A product
    /// that decides something in any stage stays, as do sums of it.
    pub fn contract(&mut self, s: StageId) -> bool {
        let decides = self.deciding();
        let mut of: FxHashMap<Body, Body> = FxHashMap::default();
        let mut stage = self.stage(s).clone();
        for b in stage.bodies_mut() {
            for at in self.bodies.reachable([*b]) {
                if of.contains_key(&at) {
                    continue;
                }
                let new = if decides.contains(&at) { at } else { self.bodies.rebuilt(at, &of) };
                let fused = if decides.contains(&at) { None } else { self.contracted_sum(new) };
                of.insert(at, fused.unwrap_or(new));
            }
            *b = of.get(b).copied().unwrap_or(*b);
        }
        let any = stage != *self.stage(s);
        self.stages[s.0 as usize] = stage;
        any
    }

    /// All that sizes, checks, conditions and indices are made of.
    fn deciding(&self) -> FxHashSet<Body> {
        let mut out: Vec<Body> = self.entry.clone();
        out.extend(self.dims.iter().map(|d| d.extent));
        out.extend(self.inputs.iter().flat_map(|i| &i.sizes));
        out.extend(self.outputs.iter().filter_map(|o| match o {
            Output::Size(b) => Some(*b),
            Output::Scalar(_) | Output::Data(_) => None,
        }));
        for stage in &self.stages {
            out.extend(stage.when.iter().chain(&stage.checks));
            if let Definition::Scatter { at, .. } = &stage.def {
                out.extend(at);
            }
            for b in self.bodies.reachable(stage.bodies()) {
                match self.bodies.node(b) {
                    _ if self.bodies.ty(b) == Scalar::Bool => out.push(b),
                    Node::If([c, ..]) => out.push(*c),
                    Node::Load(_, _, at) => out.extend(at),
                    _ => {}
                }
            }
        }
        self.bodies.reachable(out).into_iter().collect()
    }

    /// A sum or difference with a product as one operation.
    fn contracted_sum(&mut self, b: Body) -> Option<Body> {
        let Node::Op(op @ (Op::Add | Op::Sub), ty @ (Scalar::F64 | Scalar::F32), args) = self.bodies.node(b).clone()
        else {
            return None;
        };
        let (x, y) = (args[0], args[1]);
        if op == Op::Add
            && let Some(chosen) = self.contracted_in_arms(ty, x, y)
        {
            return Some(chosen);
        }
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

    /// What is an accumulator and a product, or just the accumulator where a condition chooses 0 in place of the product. Other
    /// numbers would be computed in either arm.
    fn contracted_in_arms(&mut self, ty: Scalar, x: Body, y: Body) -> Option<Body> {
        let (Node::Acc(..), Node::If([c, a, b])) = (self.bodies.node(x), self.bodies.node(y)) else { return None };
        let [c, a, b] = [*c, *a, *b];
        let zero = |s: &Self, b: Body| s.bodies.as_lit(b) == Some(Lit::zero(ty));
        let (product, first) = match (zero(self, a), zero(self, b)) {
            (false, true) => (a, true),
            (true, false) => (b, false),
            _ => return None,
        };
        let sum = match self.bodies.node(product).clone() {
            Node::Op(Op::Mul, _, args) => self.bodies.op(Op::Fma, ty, &[args[0], args[1], x]),
            _ => self.contracted_in_arms(ty, x, product)?,
        };
        Some(if first { self.bodies.cond(c, sum, x) } else { self.bodies.cond(c, x, sum) })
    }
}
