//! Which stages join a head, one by one, as long as that costs less than memory does.

use super::members::{Group, Level, Members, Tiles};
use super::steps::apply;
use crate::machine::Machine;
use crate::schedule::footprint::Footprints;
use crate::schedule::orders;
use crate::schedule::plan::{Schedule, Site};
use crate::schedule::product::is_product;
use crate::stage::StageId;
use rustc_hash::FxHashMap;

/// Stages of a group; more would only make more edges.
const MOST: usize = 12;

/// Computes stages in tiles of those that read them; gives all stages whose loops are decided, those that were before among
/// them.
pub(in crate::schedule) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
    let order = s.graph.order();
    let mut decided = decided.to_vec();
    for (at, head) in order.iter().enumerate().rev() {
        if is_product(s, *head, machine)
            || orders::is_strided(&s.graph, s.graph.stage(*head))
            || scatters(s, *head)
            || decided.contains(head)
            || s.plan(*head).site != Site::Root
            || s.graph.stage(*head).dims.is_empty()
        {
            continue;
        }
        for sums in [true, false] {
            let Some((members, tiles)) = found(s, *head, (&order[..at], &decided), machine, sums) else { break };
            let before = s.before();
            if let Some(done) = apply(s, *head, &members, tiles, machine) {
                decided.extend(done);
                break;
            }
            s.back(before);
            // Without a tile of accumulators others may still join.
            if !members.iter().any(|(_, level)| *level == Level::Sum) {
                break;
            }
        }
    }
    decided
}

/// Whether data decide where a stage adds, so that its loops stay as they are.
fn scatters(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    known.looped() < known.dims.len()
}

/// The stages that are worth computing in tiles of a head, and the sizes of these.
fn found(
    s: &Schedule,
    head: StageId,
    (before, decided): (&[StageId], &[StageId]),
    machine: &Machine,
    sums: bool,
) -> Option<(Members, Tiles)> {
    let cycles = FxHashMap::default();
    let mut group = Group { s, head, prints: Footprints::new(s, head), members: vec![], cycles, machine, sums };
    let mut best = (f64::INFINITY, Tiles::default());
    for p in before.iter().rev().filter(|p| !decided.contains(p)) {
        if group.members.len() >= MOST || scatters(s, *p) || !group.prints.add(s, *p) {
            continue;
        }
        let level = group.level(*p);
        if let Some(level @ (Level::There | Level::Sum)) = level {
            group.members.push((*p, level));
            continue;
        }
        let added = level.and_then(|level| {
            let alone = group.alone(*p) + if best.0.is_finite() { best.0 } else { 0.0 };
            group.members.push((*p, level));
            let together = group.best()?;
            (together.0 < alone).then_some(together)
        });
        match added {
            Some(together) => best = together,
            None => {
                group.members.retain(|(m, _)| m != p);
                group.prints.remove(*p);
            }
        }
    }
    let lines: Vec<StageId> = group.members.iter().map(|(p, _)| *p).filter(|p| group.is_line(*p, best.1)).collect();
    group.members.iter_mut().filter(|(p, _)| lines.contains(p)).for_each(|(_, level)| *level = Level::Line);
    (best.0.is_finite() || group.has_sum()).then_some((group.members, best.1))
}
