//! Reductions whose last dimension cannot be a vector run in the lanes of another one: of points, rows or channels, each of
//! which is reduced in its own order. What they read is packed so that the lanes lie next to each other.
//!
//! It must not know what kernels there are, nor how loops become text.

use super::access::unit;
use super::attempt::{name, split, take};
use super::plan::{Kind, Schedule};
use super::step::Step;
use super::tiling::{lanes, pack};
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Graph, Node, Source, Stage, StageId};

/// Vectors of accumulators, so that an addition need not wait for the one before.
pub(super) const VECTORS: i64 = 4;
/// Rows of accumulators where there are few vectors of them.
const ROWS: i64 = 6;

/// What is packed for elements is read so many times.
const OFTEN: i64 = 8;

/// What is read of a source, with its axes in the order in which a copy has them.
pub(super) type Packed = (Source, Vec<usize>);

/// The dimension of a stage that takes least packing to be a vector, and what is packed.
pub(super) fn candidate(s: &Schedule, stage: StageId, machine: &Machine) -> Option<(Vec<Packed>, DimId)> {
    let known = s.graph.stage(stage);
    let wide = i64::from(lanes(s, stage, machine));
    let (_, outer) = known.dims.split_last()?;
    let long = |d: &DimId| s.graph.bodies.as_int(s.graph.dim(*d).extent).is_none_or(|n| n >= wide);
    let here = s.free_dims(stage);
    let free = outer.iter().filter(|d| here.contains(d) && long(d) && is_free(&s.graph, known, **d));
    let found = free.filter_map(|d| Some((packs(&s.graph, known, *d, &[])?, *d)));
    found.min_by_key(|(packs, _)| packs.len())
}

/// Runs a stage in lanes of another dimension than the last; whether there is one.
pub(super) fn along(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    let wide = i64::from(lanes(s, stage, machine));
    let Some((packs, d)) = candidate(s, stage, machine) else { return false };
    let before = s.before();
    if apply(s, stage, d, wide, &packs, machine).is_none() {
        s.back(before);
        return false;
    }
    true
}

fn apply(s: &mut Schedule, stage: StageId, d: DimId, lanes: i64, packs: &[Packed], machine: &Machine) -> Option<()> {
    let all = s.graph.bodies.as_int(s.graph.dim(d).extent);
    let vectors = all.map_or(VECTORS, |n| (n / lanes).clamp(1, VECTORS));
    let rows = rows(s, &[stage], d, vectors);
    let block = in_lanes(s, stage, d, [vectors, lanes], rows)?;
    let named: Vec<(String, Vec<usize>)> =
        packs.iter().map(|(from, axes)| (s.graph.source_name(*from).to_string(), axes.clone())).collect();
    pack(s, stage, &block, &named, machine).ok()
}

/// Whether arms of what a stage computes depend on the index of a dimension, so that lanes over it would take different ones.
pub(super) fn parts(s: &Schedule, stage: StageId, d: DimId) -> bool {
    let g = &s.graph;
    let own = |b: Body| matches!(g.bodies.node(b), Node::If([c, ..]) if g.bodies.dims(*c).contains(&d));
    g.bodies.reachable(g.stage(stage).bodies()).into_iter().any(own)
}

/// The dimension of the last of some stages of which rows are computed at once, where there are few vectors, and how many: all,
/// or as many as leave the last of them least to do twice. Rows that are not all asked for would be computed all the same.
pub(super) fn rows(s: &Schedule, stages: &[StageId], d: DimId, vectors: i64) -> Option<(DimId, i64)> {
    let when = |p: StageId, e: DimId| s.graph.stage(p).when.is_some_and(|c| s.graph.bodies.dims(c).contains(&e));
    let free = |e: &DimId| *e != d && !stages.iter().any(|p| parts(s, *p, *e) || when(*p, *e));
    let last = s.graph.stage(*stages.last()?);
    let row = last.dims.iter().rev().copied().find(|e| vectors < VECTORS && free(e))?;
    let most = (ROWS * 2 / vectors).min(ROWS);
    let rows = match s.graph.bodies.as_int(s.graph.dim(row).extent) {
        Some(all) => least_twice(all, most / 2, most)?,
        None => most,
    };
    (rows > 1).then_some((row, rows))
}

/// How many of all rows are computed at once: all, or as many, in a range, as leave the last of them least to do twice.
pub(super) fn least_twice(all: i64, fewest: i64, most: i64) -> Option<i64> {
    let twice = |n: &i64| (all + n - 1) / n * n - all;
    if all <= most { Some(all) } else { (fewest..=most).rev().min_by_key(twice) }
}

/// Runs a stage in a few vectors of a dimension, for each of a few rows of another one, inside of all its other loops; the loop
/// over blocks of such vectors.
pub(super) fn in_lanes(
    s: &mut Schedule,
    stage: StageId,
    d: DimId,
    [vectors, lanes]: [i64; 2],
    rows: Option<(DimId, i64)>,
) -> Option<String> {
    let plan = s.plan(stage).clone();
    let own = plan.dims.iter().find(|(_, e)| *e == d).map(|(n, _)| n.clone())?;
    let (block, part) = split(s, stage, &own, vectors * lanes)?;
    let (vector, lane) = split(s, stage, &part, lanes)?;
    let mut outer: Vec<String> = plan.dims.iter().map(|(n, _)| n.clone()).filter(|n| *n != own).collect();
    let mut inside = vec![vector, lane.clone()];
    if let Some((of, rows)) = rows
        && let Some((last, _)) = plan.dims.iter().find(|(_, e)| *e == of)
        && let Some(at) = outer.iter().position(|n| n == last)
        && let Some((over, row)) = split(s, stage, last, rows)
    {
        outer[at] = over;
        inside.insert(0, row);
    }
    let order = std::iter::once(block.clone()).chain(outer).chain(inside.iter().cloned()).collect();
    let of = name(s, stage);
    take(s, Step::Reorder { stage: of.clone(), order }).then_some(())?;
    let runs = inside.into_iter().rev().all(|l| {
        let kind = if l == lane { Kind::Vector } else { Kind::Unrolled };
        take(s, Step::Run { stage: of.clone(), of: l, kind })
    });
    runs.then_some(block)
}

/// Runs elements in vectors of their last dimension, where that takes packing what is read often enough; whether that is so.
pub(super) fn packed(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    let before = s.before();
    let made = in_vectors(s, stage, machine).is_some();
    if !made {
        s.back(before);
    }
    made
}

fn in_vectors(s: &mut Schedule, stage: StageId, machine: &Machine) -> Option<()> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let last = *known.dims.last().filter(|_| matches!(known.def, Definition::Pure(_)))?;
    let wide = i64::from(lanes(s, stage, machine));
    let many = |all: &[Body]| all.iter().map(|n| g.bodies.as_int(*n)).product::<Option<i64>>();
    let own = many(&known.dims.iter().map(|d| g.dim(*d).extent).collect::<Vec<_>>())?;
    let packs = packs(g, known, last, &[]).filter(|all| !all.is_empty())?;
    let often = |(from, _): &Packed| many(&g.extents(*from)).is_some_and(|n| n > 0 && own / n >= OFTEN);
    let long = g.bodies.as_int(g.dim(last).extent).is_some_and(|n| n >= wide);
    (long && packs.iter().all(often)).then_some(())?;
    let named = packs.iter().map(|(from, axes)| (g.source_name(*from).to_string(), axes.clone())).collect::<Vec<_>>();
    let (at, of) = (s.plan(stage).loops.first()?.name.clone(), s.plan(stage).loops.last()?.name.clone());
    let (outer, lane) = split(s, stage, &of, wide)?;
    let step = Step::Run { stage: name(s, stage), of: lane, kind: Kind::Vector };
    take(s, step).then_some(())?;
    let at = if at == of { outer } else { at };
    for one in named {
        let known = s.graph.stages.len();
        pack(s, stage, &at, &[one], machine).ok()?;
        let copy = s.graph.ids().nth(known)?;
        let step = Step::ComputeRoot { stage: name(s, copy) };
        take(s, step).then_some(())?;
    }
    Some(())
}

/// Whether no other loop is as long as a dimension says, nor the other way round.
fn is_free(graph: &Graph, stage: &Stage, d: DimId) -> bool {
    let extent = |e: DimId| graph.bodies.dims(graph.dim(e).extent);
    let all = stage.dims.iter().chain(stage.over());
    extent(d).is_empty() && all.copied().all(|e| !extent(e).contains(&d))
}

/// What has to be packed so that a dimension steps by one element in all that is read, but of these stages; nothing where that
/// cannot be, or where what is packed is read only once.
pub(super) fn packs(graph: &Graph, stage: &Stage, d: DimId, but: &[StageId]) -> Option<Vec<Packed>> {
    let mut out: Vec<Packed> = vec![];
    let mut as_it_is: Vec<Source> = vec![];
    for b in graph.bodies.reachable(stage.bodies()) {
        let Node::Load(from, _, at) = graph.bodies.node(b) else { continue };
        if from.stage().is_some_and(|p| but.contains(&p)) {
            continue;
        }
        match lie(graph, stage, at, d)? {
            Some(axes) => out.push((*from, axes)),
            None => as_it_is.push(*from),
        }
    }
    out.sort();
    out.dedup();
    let once = |(from, _): &Packed| out.iter().filter(|(f, _)| f == from).count() == 1 && !as_it_is.contains(from);
    out.iter().all(once).then_some(out)
}

/// The order of axes in which elements of a load that are one apart in a dimension lie next to each other; none where they do,
/// or where all are the same. Nothing where that cannot be, or where what would be packed is read only once.
pub(super) fn lie(graph: &Graph, stage: &Stage, at: &[Body], d: DimId) -> Option<Option<Vec<usize>>> {
    let mut named = (0..at.len()).filter(|k| graph.bodies.dims(at[*k]).contains(&d));
    match (named.next(), named.next()) {
        (None, _) => Some(None),
        (Some(k), None) if unit(graph, at[k], d) && k + 1 == at.len() => Some(None),
        (Some(k), None) if unit(graph, at[k], d) && is_reused(stage, at) => {
            Some(Some((0..at.len()).filter(|j| *j != k).chain([k]).collect()))
        }
        _ => None,
    }
}

/// Whether a load reads the same again: there are more loops than axes.
fn is_reused(stage: &Stage, at: &[Body]) -> bool {
    stage.dims.len() + stage.over().len() > at.len()
}
