//! Unit dimensions: a last dimension of one index becomes one with the dimension before it, so that vectors along that are not
//! empty.

use super::attempt::{name, take};
use super::plan::{Schedule, Site};
use super::step::Step;
use crate::stage::{DimId, StageId};

/// Joins last dimensions of one index to those before them, where these have more.
pub(super) fn join(s: &mut Schedule) {
    for stage in s.graph.order() {
        while let Some([outer, inner]) = joined(s, stage) {
            let step = Step::Fuse { stage: name(s, stage), outer, inner };
            if !take(s, step) {
                break;
            }
        }
    }
}

/// The loops over the last two dimensions, the inner of which has one index, and some outer one more.
fn joined(s: &Schedule, stage: StageId) -> Option<[String; 2]> {
    let (known, plan) = (s.graph.stage(stage), s.plan(stage));
    let extent = |d: &DimId| s.graph.bodies.as_int(s.graph.dim(*d).extent);
    let [outer @ .., last] = known.dims.as_slice() else { return None };
    let own = plan.dims.len() - plan.over;
    let one = extent(last) == Some(1) && outer.iter().any(|d| extent(d) != Some(1));
    (one && plan.site != Site::Inline).then(|| [own - 2, own - 1].map(|k| plan.dims[k].0.clone()))
}
