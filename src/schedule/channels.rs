//! Stages whose last dimension is a few channels, next to each other in memory, run over places and channels at once, so that
//! vectors are full.
//!
//! A stage does where all that it reads along places it reads at its own channel, and so do those that read it.

use super::access::unit;
use super::attempt::{name, take};
use super::plan::{Schedule, Site};
use super::step::Step;
use super::tiling::lanes;
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Node, Source, StageId};
use rustc_hash::FxHashSet;

/// Fuses places and channels where that fills vectors, but of stages that are better off otherwise.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, spared: &[StageId]) {
    let all = s.graph.ids().filter(|p| !spared.contains(p));
    let mut members: Vec<(StageId, Vec<StageId>)> = all.filter_map(|p| Some((p, sources(s, p, machine)?))).collect();
    loop {
        let known: FxHashSet<StageId> = members.iter().map(|(p, _)| *p).collect();
        let stays = |(p, reads): &(StageId, Vec<StageId>)| {
            // What is computed in the steps of a recurrence is in no tile of what reads it.
            let state = s.graph.stage(*p).recurrence().is_some();
            reads.iter().all(|q| known.contains(q)) && (state || s.consumers(*p).iter().all(|r| known.contains(r)))
        };
        let before = members.len();
        members.retain(stays);
        if members.len() == before {
            break;
        }
    }
    for (p, _) in members {
        let dims = &s.plan(p).dims;
        let own = dims.len() - s.plan(p).over;
        let [outer, inner] = [own - 2, own - 1].map(|k| dims[k].0.clone());
        let step = Step::Fuse { stage: name(s, p), outer, inner };
        take(s, step);
    }
}

/// The stages that a stage reads along places and at its own channel, where it reads all that moves with them so.
fn sources(s: &Schedule, p: StageId, machine: &Machine) -> Option<Vec<StageId>> {
    let (g, stage) = (&s.graph, s.graph.stage(p));
    let [.., a, b] = stage.dims.as_slice() else { return None };
    let channels = g.bodies.as_int(g.dim(*b).extent)?;
    let few = channels > 1 && channels < i64::from(lanes(s, p, machine));
    if !few || s.plan(p).site == Site::Inline || matches!(stage.def, Definition::Scatter { .. }) {
        return None;
    }
    let mut out = vec![];
    (reads_own_channel(s, p, [*a, *b], &mut out) && !out.is_empty()).then_some(())?;
    Some(out.into_iter().filter_map(Source::stage).filter(|q| *q != p).collect())
}

/// Whether a stage is of its last two dimensions only where it reads at them; the sources that it reads so.
fn reads_own_channel(s: &Schedule, p: StageId, [a, b]: [DimId; 2], out: &mut Vec<Source>) -> bool {
    let bodies = &s.graph.bodies;
    let (mut todo, mut seen) = (s.graph.stage(p).bodies(), FxHashSet::default());
    while let Some(of) = todo.pop() {
        if !seen.insert(of) {
            continue;
        }
        match bodies.node(of) {
            Node::Index(d) if *d == a || *d == b => return false,
            Node::Load(from, _, at) if is_own_channel(s, *from, at, [a, b]) => {
                todo.extend(&at[..at.len() - 2]);
                out.push(*from);
            }
            node => todo.extend(node.kids()),
        }
    }
    true
}

/// Whether a load is at an own channel, and at a place that moves by one with the own one, clamped or not.
fn is_own_channel(s: &Schedule, from: Source, at: &[Body], [a, b]: [DimId; 2]) -> bool {
    let g = &s.graph;
    let [.., place, channel] = at else { return false };
    let extents = g.extents(from);
    let as_many = |n: Body| g.bodies.as_int(n) == g.bodies.as_int(g.dim(b).extent);
    *g.bodies.node(*channel) == Node::Index(b)
        && extents.last().is_some_and(|n| as_many(*n))
        && !g.bodies.dims(*place).contains(&b)
        && g.bodies.unclamped(*place).is_some_and(|i| unit(g, i, a))
}
