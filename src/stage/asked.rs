//! What decides whether a sum is computed at all, and nothing else, is none of its dimensions: it is computed once, where
//! there is a point at which it was asked for.
//!
//! Tables of derivatives have rows that all are 0 but a few: a sum that stands there would be computed in loops over all rows.
//! Where the condition picks one of them, `picks.rs` has taken the loop away. It must not know what is summed.

use super::body::{Body, DimId, StageId};
use super::graph::{Definition, Graph, Stage};
use crate::ir::{Op, Scalar};

impl Graph {
    /// Takes such dimensions from reductions, where sizes are known.
    pub(super) fn without_asked(&mut self) {
        self.each_stage(Graph::is_asked_no_more);
    }

    /// Takes dimensions from a reduction that say where it is computed, and nothing else: it is computed once, where there is
    /// a point at which it was, and its readers, which ask the same, read that.
    fn is_asked_no_more(&mut self, s: StageId) -> bool {
        let stage = self.stage(s).clone();
        let (Definition::Reduce { over, init, next, inside }, Some(c)) = (&stage.def, stage.when) else { return false };
        let each = || init.iter().chain(next).copied();
        let mut named: Vec<DimId> = each().flat_map(|b| self.bodies.dims(b)).collect();
        named.extend(stage.all_dims().iter().flat_map(|d| self.bodies.dims(self.dim(*d).extent)));
        let asked: Vec<DimId> = self.bodies.dims(c).into_iter().filter(|d| !named.contains(d)).collect();
        let fixed = asked.iter().all(|d| self.bodies.is_fixed(self.dim(*d).extent));
        if asked.is_empty()
            || !fixed
            || !stage.checks.is_empty()
            || self.is_output(s)
            || !self.is_somewhere(s, c, &asked)
        {
            return false;
        }
        let (dims, keeps): (Vec<DimId>, Vec<bool>) = (
            stage.dims.iter().copied().filter(|d| !asked.contains(d)).collect(),
            stage.dims.iter().map(|d| !asked.contains(d)).collect(),
        );
        let inside = keeps[keeps.len() - inside..].iter().filter(|k| **k).count();
        let def = Definition::Reduce { over: over.clone(), init: init.clone(), next: next.clone(), inside };
        self.stages[s.0 as usize] = Stage { dims, when: None, def, ..stage };
        for reader in self.consumers(s) {
            self.redirect(reader, &mut |g, from, ty, at| {
                let left = at.iter().zip(&keeps).filter(|(_, k)| **k).map(|(i, _)| *i);
                (from.stage() == Some(s)).then(|| g.bodies.load(from, ty, left.collect::<Vec<_>>()))
            });
        }
        true
    }

    /// Whether a stage may be computed once, by a condition on no other dimensions than these: it holds at some of their points,
    /// so that there its elements have a value; or it may, and they have one anyway.
    fn is_somewhere(&mut self, s: StageId, c: Body, asked: &[DimId]) -> bool {
        let not = self.bodies.op(Op::Not, Scalar::Bool, &[c]);
        let alone = self.bodies.dims(c).iter().all(|d| asked.contains(d));
        alone && !self.holds_at_each(asked, None, not) && self.has_values(s)
    }
}
