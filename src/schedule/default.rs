//! The schedule where nobody writes one: a list of steps, made from the graph and the width of vectors alone.
//!
//! Cheap elements are computed where they are read. A reduction whose last dimension lies in memory next to each other is
//! tiled: rows by vectors of accumulators, and the operand that all rows share is packed. Other stages run their last
//! dimension in vectors. Each step is tried; one that is refused is left out.

use super::plan::{Kind, Schedule, Site};
use super::steps::Step;
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Graph, Node, Source, StageId};

/// Bodies of more nodes are computed once and read, where they are read more than once.
const CHEAP: usize = 12;
/// Vectors in a row of a tile of accumulators.
const VECTORS: i64 = 4;

/// Rows of a tile of accumulators: with four vectors each they leave a row of operands its registers, of 32 where vectors
/// have 512 bits, and of 16 otherwise.
fn rows(machine: &Machine) -> i64 {
    if machine.vector_bytes >= 64 { 6 } else { 2 }
}

/// The default schedule of a graph.
pub fn default(graph: Graph, machine: &Machine) -> Schedule {
    let mut s = Schedule::new(graph);
    for stage in s.graph.order() {
        if worth_inlining(&s, stage) {
            let step = Step::Inline { stage: name(&s, stage) };
            take(&mut s, step);
        }
    }
    for stage in s.graph.order() {
        if s.plan(stage).site != Site::Inline {
            loops(&mut s, stage, machine);
        }
    }
    s
}

fn name(s: &Schedule, stage: StageId) -> String {
    s.graph.stage(stage).name.clone()
}

/// Takes a step where it is legal.
fn take(s: &mut Schedule, step: Step) -> bool {
    step.apply(s).is_ok()
}

/// Whether elements are as cheap to compute again as to read, or are read once.
fn worth_inlining(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    let Definition::Pure(each) = &known.def else { return false };
    let (bodies, readers) = (&s.graph.bodies, s.graph.consumers(stage));
    let all = bodies.reachable(each.iter().copied());
    let dear = |b: &Body| match bodies.node(*b) {
        Node::Op(op, ..) => matches!(op.row().class, Class::Divide | Class::Transcendental),
        Node::If(_) => true,
        _ => false,
    };
    if all.len() > CHEAP || all.iter().any(dear) {
        return false;
    }
    let loops = |r: &StageId| s.graph.stage(*r).dims.len() + s.graph.stage(*r).over().len();
    all.len() <= 3 || matches!(readers.as_slice(), [r] if loops(r) <= known.dims.len())
}

/// Says how the loops of a stage run.
fn loops(s: &mut Schedule, stage: StageId, machine: &Machine) {
    let known = s.graph.stage(stage).clone();
    let Some(last) = known.dims.last().copied() else { return };
    let lanes = known.tys.iter().map(|ty| machine.lanes(*ty)).min().unwrap_or(2).clamp(2, 64);
    let near = strides(&s.graph, &known.bodies(), last);
    match &known.def {
        Definition::Reduce { .. } if near && s.plan(stage).site == Site::Root => {
            tile(s, stage, i64::from(lanes), rows(machine))
        }
        Definition::Pure(_) if near => {
            let plan = s.plan(stage);
            let Some(of) = plan.loops.last().map(|l| l.name.clone()) else { return };
            vector(s, stage, &of, i64::from(lanes));
        }
        _ => {}
    }
}

/// Whether all loads either do not depend on a dimension, or step by one element with it.
fn strides(graph: &Graph, bodies: &[Body], d: DimId) -> bool {
    let all = graph.bodies.reachable(bodies.iter().copied());
    all.iter().all(|b| match graph.bodies.node(*b) {
        Node::Load(_, _, at) => {
            let depends = |i: &Body| graph.bodies.dims(*i).contains(&d);
            let Some((last, outer)) = at.split_last() else { return true };
            let unit = || {
                let form = graph.bodies.linear(*last)?;
                let own = form.terms().find(|(a, _)| matches!(graph.bodies.node(*a), Node::Index(e) if *e == d));
                let rest = form.terms().filter(|(a, _)| !matches!(graph.bodies.node(*a), Node::Index(e) if *e == d));
                let free = rest.into_iter().all(|(a, _)| !depends(&a));
                own.map(|(_, c)| c == 1 && free)
            };
            !outer.iter().any(depends) && (!depends(last) || unit() == Some(true))
        }
        _ => true,
    })
}

/// Runs a loop in vectors; gives the names of the loops over them and inside.
fn vector(s: &mut Schedule, stage: StageId, of: &str, lanes: i64) -> Option<(String, String)> {
    let (outer, inner) = split(s, stage, of, lanes)?;
    let step = Step::Run { stage: name(s, stage), of: inner.clone(), kind: Kind::Vector };
    let made = take(s, step);
    made.then_some((outer, inner))
}

fn split(s: &mut Schedule, stage: StageId, of: &str, factor: i64) -> Option<(String, String)> {
    let step = Step::Split { stage: name(s, stage), of: of.to_string(), factor };
    if !take(s, step) {
        return None;
    }
    s.plan(stage).splits.last().map(|p| (p.outer.clone(), p.inner.clone()))
}

/// A reduction with a tile of accumulators: rows of the dimension before the last, vectors of the last one.
fn tile(s: &mut Schedule, stage: StageId, lanes: i64, height: i64) {
    let plan = s.plan(stage).clone();
    let pure = plan.dims.len() - plan.over;
    let over: Vec<String> = plan.dims[pure..].iter().map(|(n, _)| n.clone()).collect();
    let (last, d) = plan.dims[pure - 1].clone();
    let row = (pure >= 2).then(|| plan.dims[pure - 2].0.clone());
    let Some((jo, ji)) = split(s, stage, &last, VECTORS * lanes) else { return };
    let Some((vectors, inner)) = split(s, stage, &ji, lanes) else { return };
    let rows = row.and_then(|i| split(s, stage, &i, height));
    let mut order: Vec<String> = plan.dims[..pure.saturating_sub(2)].iter().map(|(n, _)| n.clone()).collect();
    order.push(jo.clone());
    order.extend(rows.iter().map(|(io, _)| io.clone()));
    order.extend(over);
    order.extend(rows.iter().map(|(_, ii)| ii.clone()));
    order.extend([vectors.clone(), inner.clone()]);
    let stage_name = name(s, stage);
    if !take(s, Step::Reorder { stage: stage_name.clone(), order }) {
        return;
    }
    let run = |of: &str, kind| Step::Run { stage: stage_name.clone(), of: of.to_string(), kind };
    take(s, run(&inner, Kind::Vector));
    take(s, run(&vectors, Kind::Unrolled));
    if let Some((_, ii)) = &rows {
        take(s, run(ii, Kind::Unrolled));
    }
    for source in shared(s, stage, d) {
        let copy = super::plan::unique("packed", |n| s.graph.find(n).is_some());
        let step = Step::CacheRead { stage: name(s, stage), source, at: jo.clone(), name: copy.clone() };
        if take(s, step)
            && let Some(id) = s.graph.find(&copy)
            && let Some(of) = s.plan(id).loops.last().map(|l| l.name.clone())
        {
            vector(s, id, &of, lanes);
        }
    }
}

/// What is read at the last dimension and at what is reduced, and so again for every row.
fn shared(s: &Schedule, stage: StageId, last: DimId) -> Vec<String> {
    let known = s.graph.stage(stage);
    let (over, bodies) = (known.over().to_vec(), &s.graph.bodies);
    let rows: Vec<DimId> = known.dims.iter().copied().filter(|d| *d != last).collect();
    let mut out: Vec<String> = vec![];
    for b in bodies.reachable(known.bodies()) {
        let Node::Load(from, _, at) = bodies.node(b) else { continue };
        let dims: Vec<DimId> = at.iter().flat_map(|i| bodies.dims(*i)).collect();
        let again = dims.contains(&last) && dims.iter().any(|d| over.contains(d));
        if again && rows.last().is_some_and(|r| !dims.contains(r)) {
            let name = match from {
                Source::Input(k) => s.graph.inputs[*k as usize].name.clone(),
                Source::Stage(p, _) => s.graph.stage(*p).name.clone(),
            };
            if !out.contains(&name) {
                out.push(name);
            }
        }
    }
    out
}
