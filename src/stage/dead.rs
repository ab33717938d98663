//! Dead stages: what no result, size or check needs is not computed. Derivatives and inlined functions leave much of it.
//! Stages that go, and those that come first, give the others new numbers.

use super::body::{Body, DimId, Source, StageId};
use super::graph::{Definition, Graph, Output, Stage};
use crate::ir::Scalar;

impl Graph {
    /// The graph without stages that nothing needs; the others keep their order and names.
    #[must_use]
    pub(super) fn without_dead(mut self) -> Graph {
        let alive = self.alive();
        if alive.iter().all(|a| *a) {
            return self;
        }
        let mut next = 0;
        let to: Vec<Option<StageId>> = alive
            .iter()
            .map(|a| {
                next += u32::from(*a);
                a.then(|| StageId(next - 1))
            })
            .collect();
        let gone = |s: StageId| to.get(s.0 as usize).copied().flatten();
        self.renumber(&gone, &|s| alive[s.0 as usize]);
        let mut alive = alive.into_iter();
        self.stages.retain(|_| alive.next().unwrap_or(true));
        self
    }

    /// The graph with stages in front of those from a place on; the others keep their order and names.
    #[must_use]
    pub(super) fn with_stages_at(mut self, place: u32, more: Vec<Stage>) -> Graph {
        let (n, at) = (more.len() as u32, place as usize);
        self.stages.splice(at..at, more);
        let moved = |s: StageId| Some(if s.0 < place { s } else { StageId(s.0 + n) });
        self.renumber(&moved, &|_| true);
        self
    }

    /// Gives stages other numbers wherever they are read; of those that go only the others have to be right.
    fn renumber(&mut self, moved: &dyn Fn(StageId) -> Option<StageId>, stays: &dyn Fn(&StageId) -> bool) {
        self.bodies.renumber(moved);
        let mut load = |g: &mut Graph, from: Source, ty: Scalar, at: &[Body]| {
            let Source::Stage(s, k) = from else { return None };
            Some(g.bodies.load(Source::Stage(moved(s)?, k), ty, at.iter().copied()))
        };
        for s in self.ids().filter(stays).collect::<Vec<_>>() {
            self.redirect(s, &mut load);
            if let Definition::Recur { leader, .. } = &mut self.stages[s.0 as usize].def {
                *leader = moved(*leader).unwrap_or(*leader);
            }
        }
        self.map_outputs(&mut |g, b| g.reading(b, &mut load));
        for o in &mut self.outputs {
            if let Output::Data(Source::Stage(s, _)) = o {
                *s = moved(*s).unwrap_or(*s);
            }
        }
    }

    /// Whether each stage is part of a result, may fail, or is read by such a stage. No size reads one.
    fn alive(&self) -> Vec<bool> {
        let steps: Vec<(StageId, DimId)> = self.ids().filter_map(|s| self.stage(s).recurrence()).collect();
        let mut todo: Vec<StageId> = self.handed().into_iter().filter_map(Source::stage).collect();
        todo.extend(self.ids().filter(|s| !self.stage(*s).checks.is_empty()));
        let mut out = vec![false; self.stages.len()];
        while let Some(s) = todo.pop() {
            if std::mem::replace(&mut out[s.0 as usize], true) {
                continue;
            }
            let known = self.stage(s);
            // What is computed for a step is computed in its loop.
            todo.extend(steps.iter().filter(|of| known.is_in(**of)).map(|(leader, _)| *leader));
            todo.extend(self.reads(known.bodies()).into_iter().filter_map(Source::stage));
        }
        out
    }
}
