//! Stages of many elements at each of many points, distances of a point to all centres, say, of which only the least leaves:
//! a batch of points, a few vectors, is computed at a time, so that such tables stay in a near cache, and lanes are points.
//!
//! One stage has the loop over batches; what is read in it alone is computed there, and what others read beside it. Operands
//! that are read again are packed for the batch. It must not know what kernels there are, nor how loops become text.

use super::along::{Packed, in_lanes, lie};
use super::orders;
use super::plan::{Schedule, Site};
use super::points::{distinct, extent, leaves, together};
use super::tiling::{lanes, pack};
use crate::machine::Machine;
use crate::stage::{Definition, DimId, Node, StageId};

/// Vectors of points in a batch, so that an addition need not wait for the one before.
const VECTORS: i64 = 4;
/// There are at least so many batches.
const BATCHES: i64 = 4;

/// Computes stages in batches of their points; gives those whose loops are decided by that.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let mut out = decided.to_vec();
    let at_points = s.graph.ids().filter(|p| is_at_points(s, *p, machine) && !decided.contains(p));
    for n in distinct(at_points.map(|p| extent(s, p))) {
        let here = |p: &StageId| is_at_points(s, *p, machine) && extent(s, *p) == n && !out.contains(p);
        let all = s.graph.order().into_iter().filter(here).collect();
        let before = s.before();
        match batches(s, all, machine) {
            Some(done) => out.extend(done),
            None => s.back(before),
        }
    }
    out
}

/// Whether a stage has elements at each of many points, and might be computed for some of them.
fn is_at_points(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let plan = s.plan(stage);
    let plain = matches!(known.def, Definition::Pure(_) | Definition::Reduce { .. })
        && s.steps_of(stage).is_none()
        && plan.site != Site::Inline
        && plan.splits.is_empty()
        && !known.tys.is_empty()
        // Those have lanes of their own.
        && !orders::is_strided(g, known);
    let Some(first) = known.dims.first().filter(|_| plain) else { return false };
    let all = known.dims.iter().chain(known.over());
    let known_so = |d: &DimId| !g.bodies.dims(g.dim(*d).extent).contains(first);
    let many = BATCHES * VECTORS * i64::from(lanes(s, stage, machine));
    g.bodies.as_int(g.dim(*first).extent).is_some_and(|n| n >= many) && all.skip(1).all(known_so)
}

/// The elements that a stage has at a point; nothing where that is not known.
fn elements(s: &Schedule, stage: StageId) -> Option<i64> {
    let g = &s.graph;
    g.stage(stage).dims[1..].iter().map(|d| g.bodies.as_int(g.dim(*d).extent)).product()
}

/// Batches of some of these stages, producers first.
fn batches(s: &mut Schedule, mut all: Vec<StageId>, machine: &Machine) -> Option<Vec<StageId>> {
    loop {
        let exits: Vec<StageId> = all.iter().copied().filter(|p| leaves(s, *p, &all)).collect();
        // Rows that leave are written as they lie in memory, and who reads other points waits for all of them.
        let rows = exits.iter().copied().find(|p| s.graph.stage(*p).dims.len() > 1);
        let waits = || all.iter().copied().find(|r| exits.iter().any(|p| !s.reads_own(*r, *p)));
        if let Some(p) = rows.or_else(waits) {
            all.retain(|q| *q != p);
            continue;
        }
        all = with_tables(s, &all, &exits)?;
        let exits: Vec<StageId> = exits.into_iter().filter(|p| all.contains(p)).collect();
        let wide = all.iter().map(|p| lanes(s, *p, machine)).min()?;
        fits(s, &all, wide, machine).then_some(())?;
        let (host, beside) = exits.split_last()?;
        let before = s.before();
        match apply(s, (*host, beside), &all, wide, machine) {
            Ok(()) => return Some(all),
            Err(wrong) => {
                s.back(before);
                all.retain(|p| *p != wrong);
            }
        }
    }
}

/// The stages that reduce to rows which do not leave, and all that is read by, or reads, such stages among these.
fn with_tables(s: &Schedule, all: &[StageId], exits: &[StageId]) -> Option<Vec<StageId>> {
    let table = |p: &&StageId| {
        let known = s.graph.stage(**p);
        known.dims.len() > 1 && !known.over().is_empty() && !exits.contains(p)
    };
    let mut out: Vec<StageId> = all.iter().filter(table).copied().collect();
    loop {
        let joins = |p: &&StageId| {
            let near = |q: &StageId| s.consumers(**p).contains(q) || s.consumers(*q).contains(p);
            !out.contains(p) && out.iter().any(near)
        };
        match all.iter().find(joins) {
            Some(p) => out.push(*p),
            None => break,
        }
    }
    (!out.is_empty()).then(|| all.iter().copied().filter(|p| out.contains(p)).collect())
}

/// Whether the rows of a batch stay in the second cache.
fn fits(s: &Schedule, all: &[StageId], wide: u32, machine: &Machine) -> bool {
    let bytes = |p: &StageId| s.graph.stage(*p).tys.iter().map(|ty| i64::from(ty.bytes())).sum::<i64>();
    let each = all.iter().map(|p| Some(elements(s, *p)? * bytes(p)));
    let points = VECTORS * i64::from(wide);
    each.sum::<Option<i64>>().is_some_and(|n| n * points <= machine.caches[1] as i64 / 2)
}

/// Takes the steps.
///
/// # Errors
/// A stage that has to stay where it is.
fn apply(
    s: &mut Schedule,
    exits: (StageId, &[StageId]),
    all: &[StageId],
    wide: u32,
    machine: &Machine,
) -> Result<(), StageId> {
    let run = |s: &mut Schedule, p: StageId| {
        let points = s.graph.stage(p).dims[0];
        in_lanes(s, p, points, [VECTORS, i64::from(wide)], None)
    };
    together(s, exits, all, &run)?;
    for p in all {
        let Some(batch) = s.plan(*p).loops.first().map(|l| l.name.clone()) else { continue };
        pack_strided(s, *p, &batch, all, machine);
    }
    Ok(())
}

/// Packs, at a loop, what a stage reads again of others than these, where points are far from each other.
pub(super) fn pack_strided(s: &mut Schedule, stage: StageId, at: &str, all: &[StageId], machine: &Machine) {
    for packed in strided(s, stage, all) {
        let before = s.before();
        if pack(s, stage, at, &[packed], machine).is_err() {
            s.back(before);
        }
    }
}

/// What a stage reads again, of others than these, in which points are far from each other; and the order of axes in which
/// they are next to each other.
fn strided(s: &Schedule, stage: StageId, all: &[StageId]) -> Vec<(String, Vec<usize>)> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let mut out: Vec<Packed> = vec![];
    for b in g.bodies.reachable(known.bodies()) {
        if let Node::Load(from, _, at) = g.bodies.node(b)
            && from.stage().is_none_or(|p| !all.contains(&p))
            && let Some(Some(axes)) = lie(g, known, at, known.dims[0])
        {
            out.push((*from, axes));
        }
    }
    out.sort();
    out.dedup();
    out.into_iter().map(|(from, axes)| (g.source_name(from).to_string(), axes)).collect()
}
