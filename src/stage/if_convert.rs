//! Conditions become selections: both arms are evaluated, and one of them is taken.
//!
//! A value is the same; an arm that is evaluated although it is not taken must have a value, at all indices of its stage.

use super::body::{Bodies, Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::Graph;
use crate::ir::op::Class;
use crate::ir::{Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// The selection in place of a condition. What both arms call is called once, with what the arm that is taken gives it.
    fn selected(&mut self, b: Body) -> Body {
        let Node::If([c, mut x, mut y]) = *self.node(b) else { return b };
        let mut done = vec![];
        while let Some((p, q)) = self.called_by_both(x, y, &done) {
            let (Node::Op(op, ty, of), Node::Op(_, _, others)) = (self.node(p).clone(), self.node(q).clone()) else {
                break;
            };
            let each = of.iter().zip(&others).map(|(a, b)| match a == b {
                true => *a,
                false => self.op(Op::Select, self.ty(*a), &[c, *a, *b]),
            });
            let args: Vec<Body> = each.collect();
            let one = self.op(op, ty, &args);
            done.push(one);
            x = self.map(x, &mut FxHashMap::from_iter([(p, one)]), &mut |_, _| None);
            y = self.map(y, &mut FxHashMap::from_iter([(q, one)]), &mut |_, _| None);
        }
        self.op(Op::Select, self.ty(b), &[c, x, y])
    }

    /// Two calls of one library function of floats, each made by one of two bodies whatever is asked there, that are none of some.
    fn called_by_both(&self, x: Body, y: Body, done: &[Body]) -> Option<(Body, Body)> {
        let [ours, theirs] = [x, y].map(|b| self.calls(b));
        let mut own = ours.iter().filter(|p| !theirs.contains(p) && !done.contains(p));
        own.find_map(|p| {
            let same = |q: &&Body| match (self.node(*p), self.node(**q)) {
                (Node::Op(f, t, _), Node::Op(g, u, _)) => (f, t) == (g, u),
                _ => false,
            };
            theirs.iter().filter(|q| !ours.contains(q) && !done.contains(q)).find(same).map(|q| (*p, *q))
        })
    }

    /// The library functions of floats that a body calls whatever is asked in it, the innermost first.
    fn calls(&self, b: Body) -> Vec<Body> {
        let asked = |b: &Body| match self.node(*b) {
            Node::If([_, x, y]) => vec![*x, *y],
            _ => vec![],
        };
        let all = self.reachable([b]);
        let arms: Vec<Body> = all.iter().flat_map(asked).collect();
        let within: FxHashSet<Body> = self.reachable(arms).into_iter().collect();
        let call = |b: &Body| match self.node(*b) {
            Node::Op(op, ty, _) => ty.is_float() && op.row().class == Class::Transcendental,
            _ => false,
        };
        all.into_iter().filter(|b| call(b) && !within.contains(b)).collect()
    }
}
