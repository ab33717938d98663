//! Recurrences of many rows: a step of each waits for the one before, so several rows take a step together. Where rows lie
//! next to each other in all that a step reads, they are the lanes of vectors; otherwise a few of them are text.
//!
//! Rows are other dimensions than that of the steps, and read nothing of each other. It must not know what recurrences compute,
//! nor how loops become text.

use super::along::{lie, parts};
use super::attempt::{name, split, take};
use super::plan::{Kind, Schedule, Site};
use super::step::Step;
use super::tiling::lanes;
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::stage::{DimId, Node, Source, StageId};

/// Vectors that take a step together, so that an operation need not wait for the one before.
const VECTORS: i64 = 4;
/// Rows that do, where they are no lanes.
const ROWS: i64 = 8;
/// Vectors where lanes are read one by one, and how many lanes are worth that.
const APART: i64 = 2;
const MANY: i64 = 8;
/// Fewer rows gain nothing.
const FEWEST: i64 = 4;

/// Runs the steps of several rows of a recurrence of numbers together; whether it has such rows.
pub(super) fn choose(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    // Where a step computes tensors, these have the lanes (`instances.rs`).
    if s.has_tensors_in_steps(stage) {
        return false;
    }
    let before = s.before();
    let made = in_rows(s, stage, machine).or_else(|| in_blocks(s, stage, machine)).is_some();
    if !made {
        s.back(before);
    }
    made
}

fn in_rows(s: &mut Schedule, stage: StageId, machine: &Machine) -> Option<()> {
    let (wide, rows) = (i64::from(lanes(s, stage, machine)), rows(s, stage));
    let full = |d: &DimId| extent(s, *d).is_none_or(|n| n >= wide);
    if let Some(d) = rows.iter().rev().copied().find(|d| is_near(s, stage, *d) && full(d)) {
        return vectors(s, stage, d, (VECTORS, wide));
    }
    // Lanes that read apart from each other are worth it where they are many, or operations take long.
    if wide >= MANY || is_costly(s, stage) {
        let d = rows.iter().rev().copied().find(|d| full(d) && !parts(s, stage, *d))?;
        return vectors(s, stage, d, (APART, wide));
    }
    rows.into_iter().rev().find_map(|d| text(s, stage, d))
}

/// Where a recurrence is computed for one row in each iteration of a loop: for a few rows in each iteration of a loop over parts
/// of that.
fn in_blocks(s: &mut Schedule, stage: StageId, machine: &Machine) -> Option<()> {
    let (mut host, mut at) = match &s.plan(stage).site {
        Site::At(host, at) if s.graph.leads(stage).is_some() => (*host, at.clone()),
        _ => return None,
    };
    while let Site::At(outer, name) = &s.plan(host).site {
        (host, at) = (*outer, name.clone());
    }
    let (known, plan) = (s.graph.stage(host), s.plan(host));
    // Tiles of accumulators are made of loops as they are.
    let tiled = !known.over().is_empty() && known.dims.len() > 1;
    let many = plan.root(&at).and_then(|k| extent(s, plan.dims[k].1)).is_none_or(|n| n >= 2 * ROWS);
    if s.plan(stage).site == Site::Root || tiled || !many || known.recurrence().is_some() {
        return None;
    }
    let (block, _) = split(s, host, &at, ROWS)?;
    let step = Step::ComputeAt { stage: name(s, stage), reader: name(s, host), at: block };
    take(s, step).then_some(())?;
    in_rows(s, stage, machine)
}

/// The dimensions of a recurrence of numbers but that of its steps, where no other is as long as one of them says.
fn rows(s: &Schedule, stage: StageId) -> Vec<DimId> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let (Some(steps), Some(_)) = (known.steps(), g.leads(stage)) else { return vec![] };
    let apart = |d: &DimId| {
        let fixed = g.bodies.dims(g.dim(*d).extent).is_empty();
        fixed && known.dims.iter().all(|e| !g.bodies.dims(g.dim(*e).extent).contains(d))
    };
    let many = |(k, d): &(usize, DimId)| *d != steps && apart(d) && !is_single(s, stage, *k);
    known.dims.iter().copied().enumerate().filter(many).map(|(_, d)| d).collect()
}

/// Whether a dimension has one index where a stage is computed: a loop around it runs over that index of all that read it.
pub(super) fn is_single(s: &Schedule, stage: StageId, k: usize) -> bool {
    let Site::At(host, at) = &s.plan(stage).site else { return false };
    let (g, plan) = (&s.graph, s.plan(*host));
    let Ok(place) = plan.find(at) else { return true };
    // Parts of a loop that stands around are many, unless that in them stands around, too.
    let part = |n: &str| plan.splits.iter().any(|of| of.outer == n);
    let around = plan.loops[..=place].iter().filter(|l| !part(&l.name));
    let fixed: Vec<DimId> = around.filter_map(|l| plan.root(&l.name)).map(|k| plan.dims[k].1).collect();
    let own = |r: &StageId| {
        let loads = g.bodies.reachable(g.stage(*r).bodies()).into_iter();
        let at = loads.filter_map(|b| match g.bodies.node(b) {
            Node::Load(Source::Stage(p, _), _, at) if *p == stage => Some(at[k]),
            _ => None,
        });
        *r != *host && !fixed.is_empty() || at.into_iter().any(|i| g.bodies.dims(i).iter().any(|d| fixed.contains(d)))
    };
    s.consumers(stage).iter().filter(|r| **r != stage).any(own)
}

fn extent(s: &Schedule, d: DimId) -> Option<i64> {
    s.graph.bodies.as_int(s.graph.dim(d).extent)
}

/// Whether all that a step reads, but the state, is the same for all rows, or lies next to each other.
fn is_near(s: &Schedule, stage: StageId, d: DimId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    g.bodies.reachable(known.bodies()).into_iter().all(|b| match g.bodies.node(b) {
        Node::Load(Source::Stage(p, _), ..) if *p == stage => true,
        Node::Load(_, _, at) => lie(g, known, at, d) == Some(None),
        _ => true,
    }) && !parts(s, stage, d)
}

/// Whether a step takes long, but for what it waits for.
fn is_costly(s: &Schedule, stage: StageId) -> bool {
    let g = &s.graph;
    g.bodies.reachable(g.stage(stage).bodies()).into_iter().any(|b| match g.bodies.node(b) {
        Node::Op(op, ty, _) => {
            !ty.is_int() && (op.divides() || matches!(op.row().class, Class::Divide | Class::Transcendental))
        }
        _ => false,
    })
}

/// The loops of a stage with that over parts of a dimension where that over all of it was, and the steps before those inside
/// of the parts.
fn together(s: &mut Schedule, stage: StageId, d: DimId, inside: &[(String, Kind)], outer: &str) -> Option<()> {
    let plan = s.plan(stage);
    let steps = s.loop_of(stage)?.to_string();
    let own = plan.dims.iter().find(|(_, e)| *e == d).map(|(n, _)| n.clone())?;
    let others = plan.dims.iter().map(|(n, _)| n.clone()).filter(|n| *n != own && *n != steps);
    let order: Vec<String> =
        others.chain([outer.to_string(), steps.clone()]).chain(inside.iter().map(|(n, _)| n.clone())).collect();
    let of = name(s, stage);
    take(s, Step::Reorder { stage: of.clone(), order }).then_some(())?;
    let runs =
        inside.iter().rev().all(|(l, kind)| take(s, Step::Run { stage: of.clone(), of: l.clone(), kind: *kind }));
    runs.then_some(())
}

/// Rows are lanes of a few vectors.
fn vectors(s: &mut Schedule, stage: StageId, d: DimId, (most, wide): (i64, i64)) -> Option<()> {
    let own = named(s, stage, d)?;
    let most = extent(s, d).map_or(most, |n| (n / wide).min(most));
    let (outer, part) = split(s, stage, &own, most * wide)?;
    let (vector, lane) = split(s, stage, &part, wide)?;
    together(s, stage, d, &[(vector, Kind::Unrolled), (lane, Kind::Vector)], &outer)
}

/// A few rows are text.
fn text(s: &mut Schedule, stage: StageId, d: DimId) -> Option<()> {
    let own = named(s, stage, d)?;
    let most = extent(s, d).map_or(ROWS, |n| n.min(ROWS));
    if most < FEWEST {
        return None;
    }
    let (outer, row) = split(s, stage, &own, most)?;
    together(s, stage, d, &[(row, Kind::Unrolled)], &outer)
}

/// The loop over a dimension, where it was not split.
fn named(s: &Schedule, stage: StageId, d: DimId) -> Option<String> {
    let plan = s.plan(stage);
    let own = plan.dims.iter().find(|(_, e)| *e == d).map(|(n, _)| n)?;
    plan.find(own).is_ok().then(|| own.clone())
}
