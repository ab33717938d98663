//! A group becomes steps of a schedule: tiles of its head, and in their loops what they need.

use super::members::{Level, Tiles, has_pixels, rows_of};
use crate::machine::Machine;
use crate::schedule::access::has_lanes;
use crate::schedule::attempt::{name, split, take};
use crate::schedule::plan::{Kind, Schedule};
use crate::schedule::step::Step;
use crate::schedule::tiling::{Tiling, along_last};
use crate::schedule::{along, chains, ends, streams, sums};
use crate::stage::{Definition, StageId};

/// Vectors of a row that stays in registers.
const VECTORS: i64 = 4;

/// Takes the steps; gives the stages whose loops are decided by them.
pub(super) fn apply(
    s: &mut Schedule,
    head: StageId,
    members: &[(StageId, Level)],
    tiles: Tiles,
    machine: &Machine,
) -> Option<Vec<StageId>> {
    let members = || members.iter().filter(|(_, level)| *level != Level::There);
    for (p, _) in members().filter(|(_, level)| *level != Level::Sum) {
        let step = Step::ComputeRoot { stage: name(s, *p) };
        take(s, step);
    }
    let in_rows = members().any(|(_, level)| *level == Level::Row);
    let pixels = members().any(|(_, level)| *level == Level::Pixel);
    let sum = members().find(|(_, level)| *level == Level::Sum).map(|(p, _)| *p);
    // Several sums of a row have a register each.
    let sums = |(p, level): &&(StageId, Level)| *level == Level::Row && !s.graph.stage(*p).over().is_empty();
    let row = Tiling { vectors: if members().filter(sums).count() > 1 { 1 } else { VECTORS }, ..Tiling::plain() };
    let own = match sum {
        Some(p) => sums::tiling(s, p, machine),
        None if in_rows => row,
        // A few channels are no vector, whose lanes would mostly be empty.
        None if pixels && !along_last(s, head, machine).1 => Tiling { vectors: 0, ..Tiling::plain() },
        None => inner(s, head),
    };
    let mut decided = vec![head];
    match sum {
        Some(p) => {
            own.apply(s, head, machine).ok()?;
            decided.push(p);
            decided.extend(sums::run(s, p, head, own, machine)?);
        }
        None if has_pixels(s, head) => {
            run(s, head, own, machine)?;
            let y = rows_of(s, head);
            for (k, size) in [(y + 1, tiles.part), (y, tiles.rows)].into_iter().filter(|(_, size)| *size > 0) {
                let of = s.plan(head).loops.get(k).map(|l| l.name.clone())?;
                split(s, head, &of, size)?;
            }
        }
        None => run(s, head, Tiling { block: [tiles.rows, tiles.columns], ..own }, machine)?,
    }
    for (p, level) in members().filter(|(_, level)| *level != Level::Sum) {
        let plan = s.plan(head);
        let lanes = plan.loops.iter().position(|l| l.kind != Kind::Serial);
        let at = level.place(s, head, tiles);
        let Some(place) = at.and_then(|k| if k == usize::MAX { lanes?.checked_sub(1) } else { Some(k) }) else {
            continue;
        };
        let Some(host) = plan.loops.get(place).map(|l| l.name.clone()) else { continue };
        let step = Step::ComputeAt { stage: name(s, *p), reader: name(s, head), at: host };
        if take(s, step) {
            let own = match (level, streams::rows(s, *p)) {
                (Level::Row, _) => row,
                (Level::Tile(_), Some(rows)) => Tiling { rows, ..Tiling::plain() },
                _ => inner(s, *p),
            };
            if !(chains::choose(s, *p, machine) || along::packed(s, *p, machine)) {
                run(s, *p, own, machine);
            }
            decided.push(*p);
        }
    }
    (decided.len() > 1).then_some(decided)
}

/// How the loops inside of a tile run.
fn inner(s: &Schedule, stage: StageId) -> Tiling {
    let known = s.graph.stage(stage);
    let near = known.dims.last().is_some_and(|d| has_lanes(&s.graph, known, *d));
    match &known.def {
        _ if !near || ends::asks(s, stage) => Tiling { vectors: 0, ..Tiling::plain() },
        Definition::Reduce { .. } if known.dims.len() > 1 => Tiling { rows: 2, vectors: 2, ..Tiling::default() },
        _ => Tiling::plain(),
    }
}

/// Runs the loops of a stage so, or as near to that as is legal.
fn run(s: &mut Schedule, stage: StageId, tiling: Tiling, machine: &Machine) -> Option<()> {
    for tiling in [tiling, Tiling { rows: 1, vectors: 1, ..tiling }, Tiling { rows: 1, vectors: 0, ..tiling }] {
        let before = s.before();
        if tiling.apply(s, stage, machine).is_ok() {
            return Some(());
        }
        s.back(before);
    }
    None
}
