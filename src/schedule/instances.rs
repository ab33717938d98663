//! Recurrences at many points whose states are small tensors, the layers of a network at each of many places, say, or the steps
//! of a solver for each right-hand side: points are the lanes of vectors, and all that a step computes is computed for a few
//! vectors of points.
//!
//! Along the rows of a state its vectors would be nearly empty, and each step waits for the one before. Recurrences of numbers
//! alone are those of `chains.rs`. It must not know what recurrences compute.

use super::attempt::{name, split, take};
use super::chains::is_single;
use super::plan::{Kind, Loop, Schedule};
use super::points::asks;
use super::step::Step;
use super::tiling::lanes;
use crate::machine::Machine;
use crate::stage::{DimId, StageId};

/// Vectors that take a step together, so that an operation need not wait for the one before.
const VECTORS: i64 = 2;
/// Elements of what a step computes at a point: with more, their rows fill vectors of their own.
const MOST: i64 = 64;
/// What is taken for a length that the step decides.
const SOME: i64 = 8;

/// Runs points as lanes; gives the stages whose loops are decided by that, and the ones before.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let mut out = decided.to_vec();
    for leader in s.graph.order().into_iter().filter(|p| s.graph.leads(*p).is_some()).collect::<Vec<_>>() {
        let before = s.before();
        match in_lanes(s, leader, machine) {
            Some(done) => out.extend(done),
            None => s.back(before),
        }
    }
    out
}

/// Runs the points of a recurrence as lanes; the stages that it computes.
fn in_lanes(s: &mut Schedule, leader: StageId, machine: &Machine) -> Option<Vec<StageId>> {
    let steps = s.loop_of(leader)?.to_string();
    let inside: Vec<StageId> = s.graph.ids().filter(|p| s.inside(*p, leader) == Some(&steps)).collect();
    let around = around(s, leader)?;
    let d = *around.last()?;
    // What is the same for all points is computed before them.
    let (mut members, same): (Vec<StageId>, Vec<StageId>) =
        inside.into_iter().partition(|p| s.graph.stage(*p).dims.contains(&d));
    for p in same {
        take(s, Step::ComputeRoot { stage: name(s, p) }).then_some(())?;
    }
    if members.is_empty() || !members.iter().all(|p| suits(s, *p, leader, &around)) {
        return None;
    }
    let axis = s.graph.stage(leader).dims.iter().position(|e| *e == d)?;
    if is_single(s, leader, axis) {
        take(s, Step::ComputeRoot { stage: name(s, leader) }).then_some(())?;
    }
    members.push(leader);
    let wide = members.iter().filter(|p| !s.graph.stage(**p).tys.is_empty()).map(|p| lanes(s, *p, machine)).min()?;
    for p in &members {
        // Lanes in different arms stay one vector.
        if asks(s, *p) {
            take(s, Step::IfConvert { stage: name(s, *p) });
        }
        vectors(s, *p, d, i64::from(wide)).then_some(())?;
    }
    Some(members)
}

/// The dimensions around the steps of a recurrence; the indices of the last one are points.
fn around(s: &Schedule, leader: StageId) -> Option<Vec<DimId>> {
    let known = s.graph.stage(leader);
    let steps = known.steps()?;
    Some(known.dims.iter().copied().take_while(|d| *d != steps).collect())
}

/// Whether what a stage computes at a point may be a lane: it is not long, nor as long as its point says.
fn suits(s: &Schedule, p: StageId, leader: StageId, around: &[DimId]) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(p));
    let steps = g.stage(leader).steps();
    let small = known.dims.iter().filter(|e| !around.contains(e) && Some(**e) != steps);
    let count: i64 = small.map(|e| g.bodies.as_int(g.dim(*e).extent).unwrap_or(SOME)).product();
    let by_point = |e: &DimId| around.last().is_some_and(|d| g.bodies.dims(g.dim(*e).extent).contains(d));
    let plain = s.plan(p).splits.is_empty() && known.looped() == known.dims.len() && g.leads(p).is_none();
    plain && count <= MOST && !known.dims.iter().chain(known.over()).any(by_point)
}

/// Runs a stage with points as the lanes of its innermost loops: of a leader these stand in the loop over steps.
fn vectors(s: &mut Schedule, stage: StageId, d: DimId, wide: i64) -> bool {
    let plan = s.plan(stage).clone();
    let over = |l: &&Loop| l.kind == Kind::Serial && plan.root(&l.name).is_some_and(|k| plan.dims[k].1 == d);
    let Some(of) = plan.loops.iter().rev().find(over).map(|l| l.name.clone()) else { return false };
    let leads = s.graph.leads(stage).is_some();
    let mut order: Vec<String> = plan.loops.iter().map(|l| l.name.clone()).collect();
    let part = match leads {
        false => {
            order.retain(|l| *l != of);
            of
        }
        true => {
            // Fewer points than there are lanes would be no vector.
            let known = plan.splits.iter().find(|p| p.inner == of).map(|p| p.factor);
            let known = known.or_else(|| s.graph.bodies.as_int(s.graph.dim(d).extent));
            let Some(vectors) = known.map(|n| (n / wide).min(VECTORS)).filter(|n| *n > 0) else { return false };
            let Some((outer, part)) = split(s, stage, &of, vectors * wide) else { return false };
            order.iter_mut().filter(|l| **l == of).for_each(|l| *l = outer.clone());
            part
        }
    };
    let Some((vector, lane)) = split(s, stage, &part, wide) else { return false };
    order.extend([vector.clone(), lane.clone()]);
    let of = name(s, stage);
    let made = take(s, Step::Reorder { stage: of.clone(), order })
        && take(s, Step::Run { stage: of.clone(), of: lane, kind: Kind::Vector });
    // Of many points this is refused, which are computed a few at a time all the same.
    take(s, Step::Run { stage: of, of: vector, kind: Kind::Unrolled });
    made
}
