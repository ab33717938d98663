//! What stages in arms check, and another stage checks at all the same points wherever it is computed, is checked once, by
//! a stage that comes first.
//!
//! An observation reads its camera in every arm, and each time the index of the camera is checked. A stage that checks has
//! to stay in its arm, and what reads it too; once the index is known to be one, its lanes need no arm. It must not know
//! how stages are scheduled: that what only checks comes before all that follow it is a law of schedules.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Stage};
use rustc_hash::FxHashMap;

impl Graph {
    /// The graph with such stages, in front of the others.
    #[must_use]
    pub(super) fn checked_first(mut self) -> Graph {
        let mut made: Vec<Stage> = vec![];
        for s in self.ids().filter(|s| self.stage(*s).when.is_some()).collect::<Vec<_>>() {
            for c in self.stage(s).checks.clone() {
                let c = self.asked_for(c);
                let known = self.is_checked_by(&made, c, &self.stage(s).all_dims());
                if !known && self.reads_inputs_safely(s, c) && self.ids().any(|u| self.checks_everywhere(u, (s, c))) {
                    self.note(&mut made, s, c);
                }
            }
        }
        if made.is_empty() {
            return self;
        }
        for s in self.ids().collect::<Vec<_>>() {
            let points = self.stage(s).all_dims();
            let left: Vec<Body> = self.stage(s).checks.clone();
            let left = left.into_iter().filter(|c| !self.is_checked_by(&made, *c, &points)).collect();
            self.stages[s.0 as usize].checks = left;
        }
        self.with_stages_at(0, made)
    }

    /// Whether a condition on the points of a stage is one that stages that only check have checked.
    pub(super) fn is_checked(&mut self, c: Body, points: &[DimId]) -> bool {
        let only = |s: &&Stage| s.tys.is_empty() && s.when.is_none() && s.over().is_empty();
        let made: Vec<Stage> = self.stages.iter().filter(only).cloned().collect();
        self.is_checked_by(&made, c, points)
    }

    fn is_checked_by(&mut self, made: &[Stage], c: Body, points: &[DimId]) -> bool {
        let c = self.asked_for(c);
        let own = self.used(c, points);
        made.iter().any(|stage| {
            self.extents_of(&stage.dims) == self.extents_of(&own)
                && stage.checks.iter().any(|k| self.moved(*k, (&stage.dims, &own)) == c)
        })
    }

    /// What a condition asks for where its own conditions hold: more than it does.
    fn asked_for(&self, c: Body) -> Body {
        match *self.bodies.node(c) {
            Node::If([_, then, other]) if self.bodies.as_bool(other) == Some(true) => self.asked_for(then),
            _ => c,
        }
    }

    /// Whether a stage checks the condition of another one at all points of it, in no arm: of what else it runs over there is
    /// some.
    fn checks_everywhere(&mut self, u: StageId, (s, c): (StageId, Body)) -> bool {
        let stage = self.stage(u).clone();
        if u == s || stage.when.is_some() || stage.steps().is_some() || stage.looped() < stage.dims.len() {
            return false;
        }
        let (own, points) = (self.used(c, &self.stage(s).all_dims()), stage.all_dims());
        let found = stage.checks.iter().find(|k| {
            let there = self.used(**k, &points);
            self.extents_of(&there) == self.extents_of(&own) && self.moved(**k, (&there, &own)) == c
        });
        let Some(k) = found.copied() else { return false };
        let used = self.used(k, &points);
        let some = |d: &DimId| self.bodies.as_int(self.dim(*d).extent).is_some_and(|n| n > 0);
        points.iter().filter(|d| !used.contains(d)).all(some)
    }

    /// Whether a condition reads nothing but inputs, at indices that they have.
    fn reads_inputs_safely(&mut self, s: StageId, c: Body) -> bool {
        let mut ranges = Ranges::default();
        for d in self.stage(s).all_dims() {
            let extent = self.dim(d).extent;
            ranges.push(&mut self.bodies, d, extent);
        }
        self.bodies.reachable([c]).into_iter().all(|b| {
            let node = self.bodies.node(b).clone();
            match &node {
                Node::Load(Source::Stage(..), ..) | Node::Acc(..) => false,
                _ => self.is_total(&node, &ranges, &[]),
            }
        })
    }

    /// Adds a check of a stage to those that come first.
    fn note(&mut self, made: &mut Vec<Stage>, s: StageId, c: Body) {
        let own = self.used(c, &self.stage(s).all_dims());
        let extents = self.extents_of(&own);
        let known = made.iter().position(|m| self.extents_of(&m.dims) == extents);
        let at = known.unwrap_or_else(|| {
            let labels: Vec<(String, Body)> =
                own.iter().map(|d| (self.dim(*d).name.clone(), self.dim(*d).extent)).collect();
            let dims = labels.into_iter().map(|(name, n)| self.add_dim(name, n)).collect();
            let name = self.unused("check", made);
            made.push(Stage { name, dims, tys: vec![], when: None, def: Definition::Pure(vec![]), checks: vec![] });
            made.len() - 1
        });
        let check = self.moved(c, (&own, &made[at].dims));
        made[at].checks.push(check);
    }

    /// A name that no stage has.
    fn unused(&self, name: &str, made: &[Stage]) -> String {
        let taken = |n: &str| self.find(n).is_some() || made.iter().any(|m| m.name == n);
        let mut names = std::iter::once(name.to_string()).chain((2..).map(|k| format!("{name}_{k}")));
        names.find(|n| !taken(n)).unwrap_or_default()
    }

    /// The dimensions that a condition names, in the order of the points.
    fn used(&self, c: Body, points: &[DimId]) -> Vec<DimId> {
        let named = self.bodies.dims(c);
        points.iter().copied().filter(|d| named.contains(d)).collect()
    }

    fn extents_of(&self, dims: &[DimId]) -> Vec<Body> {
        dims.iter().map(|d| self.dim(*d).extent).collect()
    }

    /// A condition over other dimensions.
    pub(super) fn moved(&mut self, c: Body, (from, to): (&[DimId], &[DimId])) -> Body {
        let of: FxHashMap<DimId, Body> = from.iter().zip(to).map(|(a, b)| (*a, self.bodies.index(*b))).collect();
        self.bodies.substitute(c, &of)
    }
}
