//! Checks of few of a large table's indices become a stage of their own, which comes before the table: without checks,
//! elements may be computed where they are read.
//!
//! The columns of a disc are read at rows that a table of half heights says, for each pixel and each half height: whether
//! there are such rows does not depend on the column. It must not know how stages are scheduled: that what only checks comes
//! before all that follow it is a law of schedules.

use super::body::{Body, DimId, StageId};
use super::graph::{Definition, Graph, Stage};

/// Tables of so many elements and more: smaller ones stay in a cache, wherever they are computed.
const LARGE: i64 = 1 << 20;
/// A table has so many elements for each point at which something is checked.
const EACH: i64 = 16;

impl Graph {
    /// The graph with such stages, each in front of its table.
    #[must_use]
    pub(super) fn checked_ahead(mut self) -> Graph {
        // From the last on: what comes after a stage does not change its number.
        for s in self.ids().rev() {
            if self.checks_little(s) {
                let ahead = self.clone().with_checks_before(s);
                let place = |p: StageId| ahead.order().iter().position(|q| *q == p);
                // Who reads it may have a lower number, and so come before the checks.
                if place(s) < place(StageId(s.0 + 1)) {
                    self = ahead;
                }
            }
        }
        self
    }

    /// Whether a stage is a large table that no result is, and checks at few of its points, by what is there before it.
    fn checks_little(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        let plain = matches!(stage.def, Definition::Pure(_)) && self.is_alone(s) && !self.is_output(s);
        if !plain || stage.checks.is_empty() || stage.looped() < stage.dims.len() {
            return false;
        }
        let (Some(all), Some(some)) = (self.points(&stage.dims), self.points(&self.checked_at(s))) else {
            return false;
        };
        let before = self.reads(stage.checks.iter().copied()).iter().all(|from| from.stage().is_none_or(|p| p < s));
        before && all >= LARGE && some.checked_mul(EACH).is_some_and(|n| n <= all)
    }

    /// The dimensions that the checks of a stage name, in their order.
    fn checked_at(&self, s: StageId) -> Vec<DimId> {
        let stage = self.stage(s);
        let named: Vec<DimId> = stage.checks.iter().flat_map(|c| self.bodies.dims(*c)).collect();
        stage.dims.iter().copied().filter(|d| named.contains(d)).collect()
    }

    fn with_checks_before(mut self, s: StageId) -> Graph {
        let (own, name) = (self.checked_at(s), self.free_name("check"));
        let dims: Vec<DimId> =
            own.iter().map(|d| self.add_dim(self.dim(*d).name.clone(), self.dim(*d).extent)).collect();
        let checks: Vec<Body> = std::mem::take(&mut self.stages[s.0 as usize].checks);
        let checks = checks.into_iter().map(|c| self.moved(c, (&own, &dims))).collect();
        let check = Stage { name, dims, tys: vec![], when: None, def: Definition::Pure(vec![]), checks };
        self.with_stages_at(s.0, vec![check])
    }
}
