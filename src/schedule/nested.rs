//! Reductions of reductions: a sum over images of sums over rows of sums over columns, as loops in functions and derivatives
//! make them. All run in the lanes of one dimension of the outermost one, each in its own order, so that all sums stay in
//! registers. Operands in which lanes are apart are packed at the start. Products whose rows do not fill a vector run so, too.
//!
//! It must not know what kernels there are, nor how loops become text.

use super::along::{Packed, VECTORS, in_lanes, packs, parts, rows};
use super::attempt::{name, take};
use super::plan::{Schedule, Site};
use super::product::is_product;
use super::step::Step;
use super::tiling::{lanes, pack};
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, StageId};

/// Steps of vectors that an element takes to be packed.
const PACKED: f64 = 2.0;

/// Runs nests of reductions in lanes; gives those whose loops are decided by that, and the ones before.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let mut out = decided.to_vec();
    for host in s.graph.order() {
        let found = nest(s, host, &out).or_else(|| short_rows(s, host, &out, machine).then(Vec::new));
        let Some(inner) = found else { continue };
        let Some(lane) = lane(s, host, &inner, machine) else { continue };
        let before = s.before();
        match apply(s, host, &inner, lane, machine) {
            Some(()) => out.extend(inner.into_iter().chain([host])),
            None => s.back(before),
        }
    }
    out
}

/// What is computed in the loops of a reduction, each of it read there alone, where some of it reduces again in what the
/// reduction runs over.
fn nest(s: &Schedule, host: StageId, decided: &[StageId]) -> Option<Vec<StageId>> {
    let known = s.graph.stage(host);
    let plain = |p: StageId| {
        let stage = s.graph.stage(p);
        let kind = matches!(stage.def, Definition::Pure(_) | Definition::Reduce { inside: 0, .. });
        kind && s.steps_of(p).is_none()
            && s.plan(p).splits.is_empty()
            && stage.checks.is_empty()
            && !decided.contains(&p)
    };
    if known.over().is_empty() || s.plan(host).site != Site::Root || !plain(host) {
        return None;
    }
    let inner: Vec<StageId> = s.graph.ids().filter(|p| s.inside(*p, host).is_some()).collect();
    let again = |p: &StageId| {
        let stage = s.graph.stage(*p);
        !stage.over().is_empty() && known.over().iter().any(|d| stage.dims.contains(d))
    };
    let fixed = |d: &DimId| s.graph.bodies.dims(s.graph.dim(*d).extent).is_empty();
    let boxes = |p: &StageId| s.graph.stage(*p).dims.iter().chain(s.graph.stage(*p).over()).all(fixed);
    let all = inner.iter().all(|p| plain(*p) && boxes(p)) && boxes(&host);
    (all && inner.iter().any(again)).then_some(inner)
}

/// Whether a stage is part of sums of sums that have lanes of their own, so that nothing of it has to be kept.
pub(super) fn is_part(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let mut host = stage;
    while let Site::At(reader, _) = &s.plan(host).site {
        host = *reader;
    }
    let reads = |d| s.graph.stage(stage).dims.contains(d);
    s.graph.stage(host).over().iter().any(reads)
        && nest(s, host, &[]).is_some_and(|inner| inner.contains(&stage) && lane(s, host, &inner, machine).is_some())
}

/// Whether a reduction that is computed element by element in loops of what reads it would run in lanes, with what is computed in
/// its own loops, were it computed at once.
pub(super) fn is_worth_apart(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let Site::At(reader, _) = &s.plan(stage).site else { return false };
    let elements = matches!(s.graph.stage(*reader).def, Definition::Pure(_));
    let inner = |p: StageId| s.inside(p, stage).is_some() && !s.graph.stage(p).over().is_empty();
    let reduces = !s.graph.stage(stage).over().is_empty();
    if !elements || !reduces || s.steps_of(stage).is_some() || !s.graph.ids().any(inner) {
        return false;
    }
    let mut apart = s.clone();
    let step = Step::ComputeRoot { stage: name(s, stage) };
    take(&mut apart, step)
        && nest(&apart, stage, &[]).is_some_and(|inner| lane(&apart, stage, &inner, machine).is_some())
}

/// Whether a stage is a product with rows that do not fill a vector.
fn short_rows(s: &Schedule, stage: StageId, decided: &[StageId], machine: &Machine) -> bool {
    let known = s.graph.stage(stage);
    let last = known.dims.last().and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent));
    let short = last.is_some_and(|n| n < i64::from(lanes(s, stage, machine)));
    let alone = s.plan(stage).site == Site::Root && s.plan(stage).splits.is_empty() && s.steps_of(stage).is_none();
    short && alone && !decided.contains(&stage) && is_product(s, stage, machine)
}

/// The dimension in whose lanes a nest takes least: vectors are full, several of them hide how long an addition takes, and
/// little is packed.
fn lane(s: &Schedule, host: StageId, inner: &[StageId], machine: &Machine) -> Option<DimId> {
    let wide = i64::from(lanes(s, host, machine));
    let points = |all: &[Body]| -> Option<i64> { all.iter().map(|n| s.graph.bodies.as_int(*n)).product() };
    let work = |p: &StageId| {
        let known = s.graph.stage(*p);
        points(&known.dims.iter().chain(known.over()).map(|d| s.graph.dim(*d).extent).collect::<Vec<_>>())
    };
    let all: Vec<StageId> = inner.iter().copied().chain([host]).collect();
    let most = all.iter().map(work).collect::<Option<Vec<_>>>()?.into_iter().max()? as f64;
    let ranked = s.graph.stage(host).dims.iter().filter_map(|d| {
        let n = s.graph.bodies.as_int(s.graph.dim(*d).extent).filter(|n| *n >= wide)?;
        let packed = all.iter().map(|p| needs(s, *p, *d, inner)).collect::<Option<Vec<_>>>()?.concat();
        let moved = packed.iter().map(|(from, _)| points(&s.graph.extents(*from))).sum::<Option<i64>>()?;
        let vectors = (n + wide - 1) / wide;
        let waits = if rows(s, &all, *d, vectors).is_some() { 1 } else { VECTORS / vectors.min(VECTORS) };
        let steps = most / n as f64 * (vectors * waits) as f64;
        Some((steps + PACKED * moved as f64, *d))
    });
    ranked.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, d)| d)
}

/// What a stage of a nest has to have packed to run in lanes of a dimension; nothing where it cannot.
fn needs(s: &Schedule, stage: StageId, d: DimId, inner: &[StageId]) -> Option<Vec<Packed>> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    if parts(s, stage, d) {
        return None;
    }
    let single = |(from, _): &Packed| from.stage().is_none_or(|p| g.stage(p).tys.len() == 1);
    packs(g, known, d, inner).filter(|all| all.iter().all(single))
}

/// Takes the steps.
fn apply(s: &mut Schedule, host: StageId, inner: &[StageId], d: DimId, machine: &Machine) -> Option<()> {
    let all = || inner.iter().copied().chain([host]).filter(|p| *p == host || s.graph.stage(*p).dims.contains(&d));
    let wide = all().map(|p| i64::from(lanes(s, p, machine))).min()?;
    let count = s.graph.bodies.as_int(s.graph.dim(d).extent)?;
    let vectors = (count / wide).clamp(1, VECTORS);
    let members: Vec<StageId> = all().collect();
    let needed: Vec<(StageId, Vec<Packed>)> =
        members.iter().map(|p| Some((*p, needs(s, *p, d, inner)?))).collect::<Option<_>>()?;
    let rows = rows(s, &members, d, vectors);
    // The host first: what is computed in its loops is then computed for a block of lanes.
    for p in members.iter().rev() {
        in_lanes(s, *p, d, [vectors, wide], rows)?;
    }
    for (p, of) in needed {
        for (from, axes) in of {
            let (one, known) = ((s.graph.source_name(from).to_string(), axes), s.graph.stages.len());
            let at = s.plan(p).loops.first().map(|l| l.name.clone())?;
            pack(s, p, &at, &[one], machine).ok()?;
            let copy = s.graph.ids().nth(known)?;
            let step = Step::ComputeRoot { stage: name(s, copy) };
            take(s, step).then_some(())?;
        }
    }
    Some(())
}
