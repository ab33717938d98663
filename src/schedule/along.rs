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
use crate::stage::{Body, DimId, Graph, Node, Source, Stage, StageId};

/// Vectors of accumulators, so that an addition need not wait for the one before.
const VECTORS: i64 = 4;

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
    let found = free.filter_map(|d| Some((packs(&s.graph, known, *d)?, *d)));
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
    let plan = s.plan(stage).clone();
    let own = plan.dims.iter().find(|(_, e)| *e == d).map(|(n, _)| n.clone())?;
    let (block, inner) = split(s, stage, &own, VECTORS * lanes)?;
    let (row, lane) = split(s, stage, &inner, lanes)?;
    let others = plan.dims.iter().map(|(n, _)| n.clone()).filter(|n| *n != own);
    let order: Vec<String> = std::iter::once(block.clone()).chain(others).chain([row.clone(), lane.clone()]).collect();
    let of = name(s, stage);
    let steps = [
        Step::Reorder { stage: of.clone(), order },
        Step::Run { stage: of.clone(), of: lane, kind: Kind::Vector },
        Step::Run { stage: of, of: row, kind: Kind::Unrolled },
    ];
    steps.into_iter().all(|step| take(s, step)).then_some(())?;
    let named: Vec<(String, Vec<usize>)> =
        packs.iter().map(|(from, axes)| (s.graph.source_name(*from).to_string(), axes.clone())).collect();
    pack(s, stage, &block, &named, machine).ok()
}

/// Whether no other loop is as long as a dimension says, nor the other way round.
fn is_free(graph: &Graph, stage: &Stage, d: DimId) -> bool {
    let extent = |e: DimId| graph.bodies.dims(graph.dim(e).extent);
    let all = stage.dims.iter().chain(stage.over());
    extent(d).is_empty() && all.copied().all(|e| !extent(e).contains(&d))
}

/// What has to be packed so that a dimension steps by one element in all that is read; nothing where that cannot be, or
/// where what is packed is read only once.
fn packs(graph: &Graph, stage: &Stage, d: DimId) -> Option<Vec<Packed>> {
    let mut out: Vec<Packed> = vec![];
    let mut as_it_is: Vec<Source> = vec![];
    for b in graph.bodies.reachable(stage.bodies()) {
        let Node::Load(from, _, at) = graph.bodies.node(b) else { continue };
        let mut named = (0..at.len()).filter(|k| graph.bodies.dims(at[*k]).contains(&d));
        match (named.next(), named.next()) {
            (None, _) => as_it_is.push(*from),
            (Some(k), None) if unit(graph, at[k], d) && k + 1 == at.len() => as_it_is.push(*from),
            (Some(k), None) if unit(graph, at[k], d) && is_reused(stage, at) => {
                let order = (0..at.len()).filter(|j| *j != k).chain([k]).collect();
                out.push((*from, order));
            }
            _ => return None,
        }
    }
    out.sort();
    out.dedup();
    let once = |(from, _): &Packed| out.iter().filter(|(f, _)| f == from).count() == 1 && !as_it_is.contains(from);
    out.iter().all(once).then_some(out)
}

/// Whether a load reads the same again: there are more loops than axes.
fn is_reused(stage: &Stage, at: &[Body]) -> bool {
    stage.dims.len() + stage.over().len() > at.len()
}
