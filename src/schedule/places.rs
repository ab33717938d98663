//! Sums at places of a picture whose channels are fewer than lanes: a row of places at a time, all of which take a term together.
//!
//! Vectors of channels would be half empty. The loop over a row of places is the innermost one, which is cut where indices are
//! clamped and becomes vectors; its sums are a row of memory that stays in the nearest cache. It must not know what kernels
//! there are, nor how loops become text.

use super::access::apart_along;
use super::attempt::{name, take};
use super::footprint::points;
use super::plan::Schedule;
use super::step::Step;
use super::tiling::{FEW, along_last, lanes};
use crate::machine::Machine;
use crate::stage::{DimId, StageId};

/// Runs a reduction so; whether that is better than vectors along its last dimension.
pub(super) fn choose(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    if !suits(s, stage, machine) {
        return false;
    }
    let plan = s.plan(stage);
    let own = plan.dims.len() - plan.over;
    let named = |dims: &[(String, DimId)]| dims.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    let (outer, row) = (named(&plan.dims[..own - 2]), named(&plan.dims[own - 2..own]));
    let over = named(&plan.dims[own..]);
    let order = outer.into_iter().chain(over).chain(row.into_iter().rev()).collect();
    let step = Step::Reorder { stage: name(s, stage), order };
    take(s, step)
}

/// Whether channels are too few for vectors, places are near each other, and the sums of a row of them fit half of the nearest
/// cache.
fn suits(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let [.., place, channel] = known.dims.as_slice() else { return false };
    let extent = |d| g.bodies.as_int(g.dim(d).extent);
    let (Some(row), Some(channels)) = (extent(*place), extent(*channel)) else { return false };
    let (lanes, fills) = (i64::from(lanes(s, stage, machine)), along_last(s, stage, machine).1);
    let bytes: i64 = known.tys.iter().map(|ty| i64::from(ty.bytes())).sum();
    let room = row.checked_mul(channels * bytes).is_some_and(|n| n <= machine.caches[0] as i64 / 2);
    let long = points(s, stage).is_some_and(|n| n > FEW);
    !fills
        && (2..lanes).contains(&channels)
        && row >= 2 * lanes
        && room
        && long
        && s.plan(stage).splits.is_empty()
        && apart_along(s, stage, *place).is_some()
}
