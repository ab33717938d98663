//! Conditions become selections: both arms are evaluated, and one of them is taken.
//!
//! A value is the same; an arm that is evaluated although it is not taken must have a value, at all indices of its stage.

use super::body::{Bodies, Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::Graph;
use crate::ir::{Op, Scalar};
use rustc_hash::FxHashMap;

impl Graph {
    /// The conditions in the bodies of a stage both arms of which have a value at all its indices.
    pub fn convertible(&mut self, s: StageId) -> Vec<Body> {
        let total = self.total(s);
        let bodies = self.bodies.reachable(self.stage(s).bodies()).into_iter();
        // Truth values are checks, or conditions of others.
        let arms = |b: &Body| match *self.bodies.node(*b) {
            Node::If([_, x, y]) => self.bodies.ty(*b) != Scalar::Bool && total[&x] && total[&y],
            _ => false,
        };
        bodies.filter(arms).collect()
    }

    /// Lets a stage that is computed in an arm be computed everywhere, where its elements have a value there; whether that is
    /// so.
    pub fn leave_arm(&mut self, s: StageId) -> bool {
        let stage = self.stage(s);
        if stage.when.is_none() || !stage.checks.is_empty() || stage.recurrence().is_some() {
            return false;
        }
        let everywhere = self.has_values(s);
        if everywhere {
            self.stages[s.0 as usize].when = None;
        }
        everywhere
    }

    /// Whether the elements of a stage have a value at all its indices, wherever its condition holds.
    pub(super) fn has_values(&mut self, s: StageId) -> bool {
        let total = self.total(s);
        self.stage(s).bodies().iter().all(|b| total[b])
    }

    /// Whether each body of a stage has a value at all its indices.
    fn total(&mut self, s: StageId) -> FxHashMap<Body, bool> {
        let stage = self.stage(s).clone();
        let points = stage.all_dims();
        let mut ranges = Ranges::default();
        for d in &points {
            ranges.push(&mut self.bodies, *d, self.dims[d.0 as usize].extent);
        }
        let mut total: FxHashMap<Body, bool> = FxHashMap::default();
        for b in self.bodies.reachable(stage.bodies()) {
            let node = self.bodies.node(b).clone();
            let parts = node.kids().iter().all(|k| total[k]);
            total.insert(b, parts && self.is_total(&node, &ranges, &points));
        }
        total
    }

    /// Whether a node has a value at all these points where its parts have some.
    pub(super) fn is_total(&mut self, node: &Node, ranges: &Ranges, points: &[DimId]) -> bool {
        match node {
            Node::Op(..) => !self.bodies.may_divide_by_zero(node),
            Node::Load(from, _, at) => self.in_doubt((*from, at), ranges, points).is_some_and(|left| left.is_empty()),
            _ => true,
        }
    }

    /// What has to hold for the indices of a load to be in range, and is not known to at these points; nothing where the element
    /// itself may be missing.
    pub(super) fn in_doubt(
        &mut self,
        (from, at): (Source, &[Body]),
        ranges: &Ranges,
        points: &[DimId],
    ) -> Option<Vec<Body>> {
        // A state is there where its recurrence takes its steps.
        if from.stage().is_some_and(|p| [p, self.leader(p)].iter().any(|p| self.stage(*p).when.is_some())) {
            return None;
        }
        let mut left = vec![];
        for (i, n) in at.iter().zip(self.extents(from)) {
            let zero = self.bodies.int(0);
            for c in [(Op::Gte, zero), (Op::Lt, n)].map(|(op, end)| self.bodies.test(op, *i, end)) {
                let holds = match self.bodies.as_bool(c) {
                    Some(known) => known,
                    None => ranges.hold(&mut self.bodies, c, &[n]) || self.is_checked(c, points),
                };
                if !holds {
                    left.push(c);
                }
            }
        }
        Some(left)
    }

    /// Selects in place of some conditions of a stage, those of [`Graph::convertible`].
    pub fn if_convert(&mut self, s: StageId, conditions: &[Body]) {
        let mut stage = self.stage(s).clone();
        let mut memo: FxHashMap<Body, Body> = FxHashMap::default();
        for body in stage.bodies_mut() {
            for b in self.bodies.reachable([*body]) {
                if memo.contains_key(&b) {
                    continue;
                }
                let new = self.bodies.rebuilt(b, &memo);
                let new = if conditions.contains(&b) { self.bodies.selected(new) } else { new };
                memo.insert(b, new);
            }
            *body = memo[body];
        }
        self.stages[s.0 as usize] = stage;
    }
}

impl Bodies {
    /// The selection in place of a condition.
    fn selected(&mut self, b: Body) -> Body {
        match *self.node(b) {
            Node::If(parts) => self.op(Op::Select, self.ty(b), &parts),
            _ => b,
        }
    }
}
