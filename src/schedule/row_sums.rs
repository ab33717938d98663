//! Sums along rows of a large matrix, each in lanes of its own (`orders.rs`): several rows are read side by side, and their lanes
//! are added up at once, so that nothing of them is stored for all rows.
//!
//! Processors prefetch each row as a stream of its own, and one stream alone is waited for. It must not know what is added.

use super::attempt::{name, split, take};
use super::orders::is_strided;
use super::plan::{Kind, Schedule, Site};
use super::step::Step;
use super::streams::is_far;
use super::tiling::lanes;
use crate::machine::Machine;
use crate::stage::{Definition, Node, StageId};

/// Rows that are read side by side.
const ROWS: i64 = 8;

/// Computes the lanes of sums along rows a few rows at a time; the stages whose loops are decided.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let mut all = decided.to_vec();
    for stage in s.graph.order() {
        let chain = chain(s, stage).filter(|c| !c.iter().any(|p| all.contains(p)) && suits(s, c));
        let Some(chain) = chain else { continue };
        let before = s.before();
        if apply(s, &chain, machine).is_some() {
            all.extend([chain[0], chain[chain.len() - 1]]);
        } else {
            s.back(before);
        }
    }
    all
}

/// The lanes of sums, and what adds them up, the sums last.
fn chain(s: &Schedule, lanes: StageId) -> Option<Vec<StageId>> {
    let known = s.graph.stage(lanes);
    let mut out = vec![lanes];
    if !is_strided(&s.graph, known) || known.over().len() != 1 || known.dims.len() != 2 {
        return None;
    }
    while s.graph.stage(*out.last()?).dims.len() == known.dims.len() {
        let [reader] = s.consumers(*out.last()?) else { return None };
        let of = s.graph.stage(*reader);
        // A few lanes are added in one body.
        let adds = matches!(of.def, Definition::Reduce { .. } | Definition::Pure(_));
        if !adds || of.when.is_some() || !of.checks.is_empty() || out.contains(reader) {
            return None;
        }
        out.push(*reader);
    }
    (s.plan(*out.last()?).site == Site::Root).then_some(out)
}

/// Whether there are many rows, and the lanes read each element of something that is in no cache once.
fn suits(s: &Schedule, chain: &[StageId]) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(chain[0]));
    let rows = g.bodies.as_int(g.dim(known.dims[0]).extent);
    let far = |b| match g.bodies.node(b) {
        Node::Load(from, _, at) => {
            let named = known.all_dims().iter().all(|d| at.iter().any(|i| g.bodies.dims(*i).contains(d)));
            named && is_far(s, *from)
        }
        _ => false,
    };
    let plain = known.when.is_none() && known.checks.is_empty();
    plain && rows.is_some_and(|n| n >= 2 * ROWS) && g.bodies.reachable(known.bodies()).into_iter().any(far)
}

fn apply(s: &mut Schedule, chain: &[StageId], machine: &Machine) -> Option<()> {
    let (first, sums) = (chain[0], *chain.last()?);
    let wide = i64::from(lanes(s, first, machine));
    let row = s.plan(sums).loops.first()?.name.clone();
    let (blocks, _) = split(s, sums, &row, ROWS)?;
    for stage in chain[..chain.len() - 1].iter().rev() {
        let step = Step::ComputeAt { stage: name(s, *stage), reader: name(s, sums), at: blocks.clone() };
        take(s, step).then_some(())?;
    }
    let named: Vec<String> = s.plan(first).dims.iter().map(|(of, _)| of.clone()).collect();
    let [row, lane, round] = named.as_slice() else { return None };
    let (outer, inner) = split(s, first, row, ROWS)?;
    let (vectors, lane) = split(s, first, lane, wide)?;
    let stage = name(s, first);
    let order = vec![outer, round.clone(), inner.clone(), vectors.clone(), lane.clone()];
    take(s, Step::Reorder { stage: stage.clone(), order }).then_some(())?;
    let kinds = [(lane, Kind::Vector), (vectors, Kind::Unrolled), (inner, Kind::Unrolled)];
    kinds.into_iter().all(|(of, kind)| take(s, Step::Run { stage: stage.clone(), of, kind })).then_some(())
}
