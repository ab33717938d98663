//! Sums over windows of a picture, whose rows have clamped ends or channels that are fewer than lanes: a row of places at a
//! time, all of which take a term together.
//!
//! Vectors of channels would be half empty, and lanes across clamped ends gather. The loop over a row of places is the
//! innermost one, which is cut where indices are clamped and becomes vectors; its sums are a row of memory that stays in the
//! nearest cache, and a part of the row where that is longer. It must not know what kernels there are, nor how loops become
//! text.

use super::access::{apart, apart_along, strides};
use super::attempt::{name, split, take};
use super::footprint::points;
use super::plan::Schedule;
use super::step::Step;
use super::tiling::{FEW, along_last, lanes};
use crate::machine::Machine;
use crate::stage::{DimId, StageId};

/// How the places of a row lie.
enum Row {
    /// Each has a few channels, which the last dimension is.
    Channels,
    /// They are the last dimension, in parts of so many where they are too many.
    Places(Option<i64>),
}

/// Runs a reduction so; whether that is better than vectors along its last dimension.
pub(super) fn choose(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    let Some(row) = row(s, stage, machine) else { return false };
    let before = s.before();
    if apply(s, stage, &row).is_none() {
        s.back(before);
        return false;
    }
    true
}

fn apply(s: &mut Schedule, stage: StageId, row: &Row) -> Option<()> {
    let plan = s.plan(stage);
    let own = plan.dims.len() - plan.over;
    let named = |dims: &[(String, DimId)]| dims.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    let inner = if matches!(row, Row::Channels) { 2 } else { 1 };
    let (outer, mut places) = (named(&plan.dims[..own - inner]), named(&plan.dims[own - inner..own]));
    let over = named(&plan.dims[own..]);
    let mut part = vec![];
    if let Row::Places(Some(size)) = row {
        let (block, inside) = split(s, stage, &places[0], *size)?;
        (part, places) = (vec![block], vec![inside]);
    }
    places.reverse();
    let order = [part, outer, over, places].concat();
    let step = Step::Reorder { stage: name(s, stage), order };
    take(s, step).then_some(())
}

/// The row of places of a long sum, where they are near each other, and its sums fit half of the nearest cache.
fn row(s: &Schedule, stage: StageId, machine: &Machine) -> Option<Row> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let extent = |d| g.bodies.as_int(g.dim(d).extent);
    let lanes = i64::from(lanes(s, stage, machine));
    let bytes: i64 = known.tys.iter().map(|ty| i64::from(ty.bytes())).sum();
    let room = machine.caches[0] as i64 / 2 / bytes.max(1);
    let long = points(s, stage).is_some_and(|n| n > FEW);
    if !long || !s.plan(stage).splits.is_empty() {
        return None;
    }
    let last = *known.dims.last()?;
    if !strides(g, known, last) && apart(s, stage) == Some(1) {
        let all = extent(last).filter(|n| *n >= 2 * lanes)?;
        // A power of two, so that parts are whole vectors.
        let part = (all > room).then_some(1 << room.max(1).ilog2());
        return Some(Row::Places(part));
    }
    let [.., place, channel] = known.dims.as_slice() else { return None };
    let (all, channels) = (extent(*place)?, extent(*channel)?);
    let fills = along_last(s, stage, machine).1;
    let fits = all.checked_mul(channels).is_some_and(|n| n <= room);
    let suits = !fills && (2..lanes).contains(&channels) && all >= 2 * lanes && fits;
    (suits && apart_along(s, stage, *place).is_some()).then_some(Row::Channels)
}
