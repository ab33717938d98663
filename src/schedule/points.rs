//! Stages of a few elements at each of many points, a camera and a place for each observation, say: points are the lanes of
//! vectors, and all that is computed for the same points is computed in one loop, so that it stays in registers.
//!
//! Where their last dimensions are short, vectors along these would be nearly empty. One stage has the loop over points; what
//! is read in it alone is computed there, and what others read beside it. It must not know what kernels there are.

use super::attempt::{name, split, take};
use super::plan::{Kind, Schedule, Site};
use super::step::Step;
use super::tiling::lanes;
use crate::machine::Machine;
use crate::stage::{Body, Definition, Node, Stage, StageId};

/// Elements of a point, and terms of their sums, that are text of their own.
const MOST: i64 = 64;
/// Points are at least so many vectors.
const VECTORS: i64 = 4;
/// Stages of one loop: more would be more text than a compiler likes.
const STAGES: usize = 256;

/// Computes stages in loops over their points; gives those whose loops are decided by that, and the ones before.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let mut decided = decided.to_vec();
    let small = s.graph.ids().filter(|p| is_small(s, *p, machine) && !decided.contains(p));
    for n in distinct(small.map(|p| extent(s, p))) {
        let here = |p: &StageId| is_small(s, *p, machine) && extent(s, *p) == n && !decided.contains(p);
        let all = s.graph.order().into_iter().filter(here).collect();
        let before = s.before();
        match group(s, all, machine) {
            Some(done) => decided.extend(done),
            None => s.back(before),
        }
    }
    decided
}

/// Each of some lengths once, in order.
pub(super) fn distinct(all: impl Iterator<Item = Body>) -> Vec<Body> {
    let mut out: Vec<Body> = vec![];
    for n in all {
        if !out.contains(&n) {
            out.push(n);
        }
    }
    out
}

/// How many points a stage has elements at.
pub(super) fn extent(s: &Schedule, stage: StageId) -> Body {
    s.graph.dim(s.graph.stage(stage).dims[0]).extent
}

/// Whether a stage has few elements at each of many points.
fn is_small(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let plain = matches!(known.def, Definition::Pure(_) | Definition::Reduce { .. })
        && s.steps_of(stage).is_none()
        && s.plan(stage).site != Site::Inline
        && s.plan(stage).splits.is_empty();
    let Some((first, rest)) = known.dims.split_first().filter(|_| plain) else { return false };
    let count = g.bodies.as_int(g.dim(*first).extent);
    let wide = i64::from(lanes(s, stage, machine));
    count.is_some_and(|n| n >= VECTORS * wide) && elements(s, known, rest.len()).is_some_and(|n| n <= MOST)
}

/// The elements of a stage at a point, with the terms of each.
fn elements(s: &Schedule, known: &Stage, inner: usize) -> Option<i64> {
    let own = &known.dims[known.dims.len() - inner..];
    let each = own.iter().chain(known.over()).map(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent));
    each.product()
}

/// One loop for some of these stages, producers first.
fn group(s: &mut Schedule, mut all: Vec<StageId>, machine: &Machine) -> Option<Vec<StageId>> {
    loop {
        let short = all.iter().filter(|p| has_short_rows(s, **p, machine)).count();
        if short < 2 || all.len() > STAGES {
            return None;
        }
        let exits: Vec<StageId> = all.iter().copied().filter(|p| leaves(s, *p, &all)).collect();
        // Who reads other points waits for all of them.
        if let Some(waits) = all.iter().copied().find(|r| exits.iter().any(|p| !s.reads_own(*r, *p))) {
            all.retain(|p| *p != waits);
            continue;
        }
        let (host, others) = exits.split_last()?;
        // Others would be in its arm.
        if s.graph.stage(*host).when.is_some() {
            let arm = *host;
            all.retain(|p| *p != arm);
            continue;
        }
        let holds = all.iter().filter(|p| !s.graph.stage(**p).tys.is_empty());
        let wide = holds.map(|p| lanes(s, *p, machine)).min().unwrap_or(2);
        let before = s.before();
        match together(s, (*host, others), &all, &|s, p| in_lanes(s, p, wide)) {
            Ok(()) => return Some(all),
            Err(wrong) => {
                s.back(before);
                all.retain(|p| *p != wrong);
            }
        }
    }
}

/// Whether vectors along the last dimension of a stage would be nearly empty.
fn has_short_rows(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let [_, .., last] = s.graph.stage(stage).dims.as_slice() else { return false };
    let wide = i64::from(lanes(s, stage, machine));
    s.graph.bodies.as_int(s.graph.dim(*last).extent).is_some_and(|n| n < 2 * wide)
}

/// Whether a stage is part of the result, or is read otherwise than by some stages at their own points.
pub(super) fn leaves(s: &Schedule, stage: StageId, all: &[StageId]) -> bool {
    let reads = |r: &StageId| all.contains(r) && s.reads_own(*r, stage);
    s.is_output(stage) || !s.graph.stage(stage).checks.is_empty() || !s.consumers(stage).iter().all(reads)
}

/// Computes stages in one loop of a host: each runs its own loops, and names the one over points; those beside the host need
/// not be read by it.
///
/// # Errors
/// A stage that has to stay where it is.
pub(super) fn together(
    s: &mut Schedule,
    (host, beside): (StageId, &[StageId]),
    all: &[StageId],
    run: &dyn Fn(&mut Schedule, StageId) -> Option<String>,
) -> Result<(), StageId> {
    for p in all {
        // Lanes in different arms stay one vector.
        if asks(s, *p) {
            take(s, Step::IfConvert { stage: name(s, *p) });
        }
        take(s, Step::ComputeRoot { stage: name(s, *p) });
    }
    let at = run(s, host).ok_or(host)?;
    // Readers first: what is read in the loop alone is only then read there.
    for p in all.iter().rev().filter(|p| **p != host) {
        let (stage, host) = (name(s, *p), name(s, host));
        let step = match beside.contains(p) {
            true => Step::FuseStages { stage, host, at: at.clone() },
            false => Step::ComputeAt { stage, reader: host, at: at.clone() },
        };
        if !take(s, step) || run(s, *p).is_none() {
            return Err(*p);
        }
    }
    Ok(())
}

/// Whether a stage is in an arm of a condition, or has one.
pub(super) fn asks(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    let bodies = s.graph.bodies.reachable(known.bodies());
    known.when.is_some() || bodies.into_iter().any(|b| matches!(s.graph.bodies.node(b), Node::If(_)))
}

/// Runs a stage with its points as lanes, and all else as text; the loop over vectors of points.
fn in_lanes(s: &mut Schedule, stage: StageId, wide: u32) -> Option<String> {
    let plan = s.plan(stage).clone();
    let points = plan.dims[0].0.clone();
    let (outer, lane) = split(s, stage, &points, i64::from(wide))?;
    let inner: Vec<String> = plan.dims[1..].iter().map(|(n, _)| n.clone()).collect();
    let order: Vec<String> =
        std::iter::once(outer.clone()).chain(inner.iter().cloned()).chain([lane.clone()]).collect();
    let of = name(s, stage);
    take(s, Step::Reorder { stage: of.clone(), order }).then_some(())?;
    take(s, Step::Run { stage: of.clone(), of: lane, kind: Kind::Vector }).then_some(())?;
    for of_inner in inner {
        take(s, Step::Run { stage: of.clone(), of: of_inner, kind: Kind::Unrolled });
    }
    Some(outer)
}
