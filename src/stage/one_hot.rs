//! Sums of what is 0 at all indices but one: what is there is the sum, and is computed once.
//!
//! Adjoints that loops collect one place at a time are such sums: of tensors each of which has one row. No bit changes: zeros
//! that are added change nothing, but that the first makes a -0 a 0, which is added still. Where data say which index it is,
//! it is asked whether there is such an index.

use super::body::{Body, DimId, Node, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph};
use crate::ir::{Lit, Op};
use rustc_hash::FxHashMap;

impl Graph {
    /// Takes the one element for the sum, where all others are 0.
    pub(super) fn one_hot(&mut self) {
        for s in self.order() {
            if let Some(each) = self.picked(s) {
                self.stages[s.0 as usize].def = Definition::Pure(each);
            }
        }
    }

    /// The elements of a stage that sums so in all of its components.
    fn picked(&mut self, s: StageId) -> Option<Vec<Body>> {
        let stage = self.stage(s).clone();
        let Definition::Reduce { over, init, next, .. } = &stage.def else { return None };
        let ([d], true) = (over.as_slice(), stage.checks.is_empty()) else { return None };
        (0..next.len()).map(|k| self.picked_element(s, *d, k, [init[k], next[k]])).collect()
    }

    fn picked_element(&mut self, s: StageId, d: DimId, k: usize, [init, next]: [Body; 2]) -> Option<Body> {
        let Node::Op(Op::Add, ty, args) = self.bodies.node(next).clone() else { return None };
        let [acc, addend] = args.as_slice() else { return None };
        let is_zero = |g: &Graph, b: Body| g.bodies.as_lit(b) == Some(Lit::zero(ty));
        let own = matches!(self.bodies.node(*acc), Node::Acc(n, _) if *n as usize == k);
        if !own || !is_zero(self, init) {
            return None;
        }
        if is_zero(self, *addend) {
            return Some(init);
        }
        let (place, chosen, of) = self.elements(s, *addend)?;
        let Node::If([condition, there, other]) = *self.bodies.node(chosen) else { return None };
        let free = place == s || self.stage(place).checks.is_empty() && self.stage(place).when.is_none();
        if !free || !is_zero(self, other) {
            return None;
        }
        let condition = self.bodies.substitute(condition, &of);
        let there = self.bodies.substitute(there, &of);
        let one = match self.only_index(s, d, condition) {
            Some(at) => self.bodies.substitute(there, &FxHashMap::from_iter([(d, at)])),
            None => self.where_it_is(d, condition, there, init)?,
        };
        let plain = |b: &Body| !matches!(self.bodies.node(*b), Node::Acc(..));
        if !self.bodies.reachable([one]).iter().all(plain) {
            return None;
        }
        Some(self.bodies.op(Op::Add, ty, &[init, one]))
    }

    /// What is at the index that a condition names by itself, if there is such an index, and another value if not. The index
    /// is evaluated where there is any, as it was in the sum.
    fn where_it_is(&mut self, d: DimId, condition: Body, there: Body, other: Body) -> Option<Body> {
        let Node::Op(Op::Eq, _, args) = self.bodies.node(condition).clone() else { return None };
        let own = self.bodies.index(d);
        let at = match args.as_slice() {
            [a, at] if *a == own => *at,
            [at, a] if *a == own => *at,
            _ => return None,
        };
        if self.bodies.dims(at).contains(&d) || matches!(self.bodies.node(at), Node::Index(_) | Node::Lit(_)) {
            return None;
        }
        let (zero, extent) = (self.bodies.int(0), self.dim(d).extent);
        let asked = [
            self.bodies.test(Op::Lt, zero, extent),
            self.bodies.test(Op::Gte, at, zero),
            self.bodies.test(Op::Lt, at, extent),
        ];
        let there = self.bodies.substitute(there, &FxHashMap::from_iter([(d, at)]));
        Some(asked.into_iter().rev().fold(there, |value, c| self.bodies.cond(c, value, other)))
    }

    /// The one index of a dimension at which a condition holds, wherever the other indices of a stage are: that of another
    /// dimension, say, which has as many, counted from either end.
    pub(super) fn only_index(&mut self, s: StageId, d: DimId, condition: Body) -> Option<Body> {
        let Node::Op(Op::Eq, _, args) = self.bodies.node(condition).clone() else { return None };
        let own = self.bodies.index(d);
        let small = args.iter().all(|a| self.bodies.is_small(*a));
        let form = self.bodies.linear(args[0])?.plus(&self.bodies.linear(args[1])?, -1).filter(|_| small)?;
        let (rest, by) = form.without(own);
        let rest = match by {
            1 => rest.times(-1)?,
            -1 => rest,
            _ => return None,
        };
        if rest.terms().any(|(a, _)| self.bodies.dims(a).contains(&d)) {
            return None;
        }
        let at = self.bodies.of_linear(&rest);
        let mut ranges = Ranges::default();
        for d in self.stage(s).dims.clone() {
            ranges.push(&mut self.bodies, d, self.dims[d.0 as usize].extent);
        }
        let (zero, extent) = (self.bodies.int(0), self.dim(d).extent);
        let ends = [self.bodies.test(Op::Lte, zero, at), self.bodies.test(Op::Lt, at, extent)];
        let exists = |c: &Body| self.bodies.as_bool(*c) == Some(true) || ranges.hold(&mut self.bodies, *c, &[]);
        ends.iter().all(exists).then_some(at)
    }
}
