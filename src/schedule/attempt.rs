//! Steps that are tried: one that is refused is left out.

use super::plan::Schedule;
use super::step::Step;
use crate::stage::StageId;

/// The name of a stage.
pub(super) fn name(s: &Schedule, stage: StageId) -> String {
    s.graph.stage(stage).name.clone()
}

/// Takes a step where it is legal.
pub(super) fn take(s: &mut Schedule, step: Step) -> bool {
    step.apply(s).is_ok()
}

/// Cuts a loop into parts; gives the names of the loops over them and inside.
pub(super) fn split(s: &mut Schedule, stage: StageId, of: &str, factor: i64) -> Option<(String, String)> {
    let step = Step::Split { stage: name(s, stage), of: of.to_string(), factor };
    if !take(s, step) {
        return None;
    }
    s.plan(stage).splits.last().map(|p| (p.outer.clone(), p.inner.clone()))
}
