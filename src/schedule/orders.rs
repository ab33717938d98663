//! What the default schedule rewrites: it contracts all products that are added, where the processor does that at once, and
//! reassociates the reductions that read what lies next to each other in memory once, along what they reduce, so that neither
//! lanes nor tiles are to be had otherwise.
//!
//! What is exact in any order always may be; sums of floats where only values over the reals have to stay. How many lanes
//! and how long blocks are depends on types and sizes alone, so that all machines and numbers of threads round the same way.

use super::access::coefficient;
use super::attempt::{name, take};
use super::cheap::inline_cheap;
use super::plan::Schedule;
use super::step::Step;
use crate::machine;
use crate::stage::{Body, DimId, Graph, Node, Order, Ranges, Source, Stage, StageId};

/// Bytes of all lanes: four vectors of 64 bytes, so that an addition need not wait for the one before.
const BYTES: u32 = 256;
/// Lanes take at least so many terms each.
const TERMS: i64 = 4;
/// Fewer lanes are not worth it.
const FEWEST: i64 = 4;
/// Sums of fewer terms are not cut into blocks, which have about half as many.
const LONG: i64 = 1 << 17;
/// Points that are worth being lanes.
const POINTS: i64 = 256;
/// Where there are more sums than these, threads take some each.
const SUMS: i64 = 8;

/// Contracts where only values over the reals have to stay; before all else.
pub(super) fn contract(s: &mut Schedule) {
    if s.graph.real && machine::contracts() {
        for stage in s.graph.order() {
            let step = Step::Contract { stage: name(s, stage) };
            take(s, step);
        }
    }
}

/// Reassociates; before all other steps.
pub(super) fn choose(s: &mut Schedule) {
    let mut blocks = vec![];
    // What cheap stages that will be inlined read is what their readers read.
    let mut inlined = s.clone();
    inline_cheap(&mut inlined);
    for stage in s.graph.order() {
        let Some(lanes) = lanes(s, &inlined.graph, stage) else { continue };
        let (named, terms) = (name(s, stage), terms(&s.graph, s.graph.stage(stage)));
        let sums = s.graph.points(&s.graph.stage(stage).dims);
        let made = s.graph.stages.len();
        if !take(s, Step::Reassociate { stage: named, order: Order::Strided(lanes) }) {
            continue;
        }
        // What the lanes leave is as much as they are: fewer lanes take most of it.
        let left = last(&s.graph, s.graph.stage(stage)).map(|n| n / TERMS);
        if let Some(fewer) = left.filter(|n| *n >= FEWEST) {
            let fewer = 1 << fewer.ilog2();
            take(s, Step::Reassociate { stage: name(s, stage), order: Order::Strided(fewer) });
        }
        let long = terms.filter(|n| *n >= LONG && sums.is_some_and(|n| n <= SUMS));
        let (part, known) = (StageId(made as u32), &s.graph.stages[made]);
        let inner = s.graph.points(known.over().get(1..).unwrap_or_default());
        if let (Some(_), Some(inner)) = (long, inner.filter(|n| *n > 0)) {
            let rounds = known.over().first().and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent)).unwrap_or(1);
            // As many blocks as there would be of about this length, with as little left as may be.
            let count = rounds / (LONG / 2 / (lanes * inner)).clamp(1, rounds.max(1));
            let n = rounds / count.max(1);
            let made = s.graph.stages.len();
            if take(s, Step::Reassociate { stage: name(s, part), order: Order::Blocks(n) }) {
                blocks.push(name(s, StageId(made as u32)));
            }
        }
    }
    for stage in blocks {
        take(s, Step::ComputeRoot { stage });
    }
}

/// The lanes of a reduction that is worth reassociating, and may be.
fn lanes(s: &Schedule, inlined: &Graph, stage: StageId) -> Option<i64> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let k = *known.over().last()?;
    if g.order_shows(stage)? && !g.real || s.steps_of(stage).is_some() || known.recurrence().is_some() {
        return None;
    }
    // Sums of sums that are computed in their loops may all run in lanes of what they have in common.
    let inner = |p: StageId| s.inside(p, stage).is_some() && g.stage(p).dims.iter().any(|d| known.over().contains(d));
    if g.ids().any(|p| inner(p) && !g.stage(p).over().is_empty()) || reads_sums(s, stage) {
        return None;
    }
    if !streams(inlined, inlined.stage(stage), k) {
        return None;
    }
    let widest = known.tys.iter().map(|ty| ty.bytes()).max()?;
    let most = i64::from((BYTES / widest).min(64));
    let fit = most_terms(g, known, k).map_or(most, |n| (n / TERMS).max(1).min(most));
    Some(1 << fit.ilog2()).filter(|n| *n >= FEWEST)
}

/// Whether a stage reduces rows of sums at each of many points, which may be lanes of all of that.
fn reads_sums(s: &Schedule, stage: StageId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let Some(first) = known.dims.first() else { return false };
    let many = g.bodies.as_int(g.dim(*first).extent).is_some_and(|n| n >= POINTS);
    let sums = |p: StageId| {
        let of = g.stage(p);
        !of.over().is_empty() && of.recurrence().is_none() && of.dims.len() > 1 && s.reads_own(stage, p)
    };
    many && g.reads(known.bodies()).into_iter().filter_map(Source::stage).any(sums)
}

/// The most terms that a loop of a reduction has, where that is known: rows of a triangle have as many as the longest one.
fn most_terms(g: &Graph, known: &Stage, k: DimId) -> Option<i64> {
    let extent = g.dim(k).extent;
    if g.bodies.dims(extent).is_empty() {
        return g.bodies.as_int(extent);
    }
    let (mut bodies, mut ranges) = (g.bodies.clone(), Ranges::default());
    for d in known.dims.iter().chain(known.over()).take_while(|d| **d != k) {
        ranges.push(&mut bodies, *d, g.dim(*d).extent);
    }
    let hi = ranges.bounds(&mut bodies, extent)?.hi;
    bodies.as_int(hi)
}

/// Whether a stage reads elements that lie next to each other along a dimension, or backwards, and some of them only once.
fn streams(g: &Graph, stage: &Stage, k: DimId) -> bool {
    let all = stage.all_dims();
    let mut once = false;
    for b in g.bodies.reachable(stage.bodies()) {
        let Node::Load(_, _, at) = g.bodies.node(b) else { continue };
        let moves = |i: &Body| g.bodies.dims(*i).contains(&k);
        let Some((last, outer)) = at.split_last() else { continue };
        if outer.iter().any(moves) || moves(last) && !matches!(coefficient(g, *last, k), Some(1 | -1)) {
            return false;
        }
        let named = all.iter().all(|d| at.iter().any(|i| g.bodies.dims(*i).contains(d)));
        once |= named && !at.iter().any(|i| slides(g, *i, &all));
    }
    once
}

/// Whether an index moves alike with two dimensions, so that the same elements are read again: a window, say.
fn slides(g: &Graph, index: Body, dims: &[DimId]) -> bool {
    let steps: Vec<u64> = dims.iter().filter_map(|d| coefficient(g, index, *d)).map(i64::unsigned_abs).collect();
    steps.iter().enumerate().any(|(k, c)| steps[..k].contains(c))
}

/// Whether a stage is the lanes of a reassociated reduction: its last dimension takes every so many terms.
pub(super) fn is_strided(g: &Graph, stage: &Stage) -> bool {
    let (Some(lane), Some(round)) = (stage.dims.last(), stage.over().last()) else { return false };
    let Some(lanes) = g.bodies.as_int(g.dim(*lane).extent) else { return false };
    g.bodies.reachable(stage.bodies()).into_iter().any(|b| match g.bodies.node(b) {
        Node::Load(_, _, at) => {
            let by = |i: &Body, d: &DimId| coefficient(g, *i, *d);
            at.last()
                .is_some_and(|i| [1, -1].iter().any(|k| [by(i, lane), by(i, round)] == [Some(*k), Some(k * lanes)]))
        }
        _ => false,
    })
}

/// How many terms the innermost loop of a reduction has.
fn last(g: &Graph, stage: &Stage) -> Option<i64> {
    stage.over().last().and_then(|d| g.bodies.as_int(g.dim(*d).extent))
}

fn terms(g: &Graph, stage: &Stage) -> Option<i64> {
    g.points(stage.over())
}
