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
/// Reductions of at most so many points are text without loops.
const FEW: i64 = 25;

/// A tile of accumulators.
struct Tile {
    /// Lanes of a vector.
    lanes: i64,
    /// Vectors in a row.
    vectors: i64,
    /// Rows.
    rows: i64,
}

impl Tile {
    /// Six rows of four vectors leave a row of operands its registers, of 32 where vectors have 512 bits; two do, of 16
    /// otherwise. Where there are few points, what they read needs registers, too, and a tile of two by two is enough to
    /// hide how long an addition takes.
    fn new(machine: &Machine, lanes: u32, few: bool) -> Tile {
        let (vectors, rows) = match (few, machine.vector_bytes >= 64) {
            (true, _) => (2, 2),
            (false, true) => (4, 6),
            (false, false) => (4, 2),
        };
        Tile { lanes: i64::from(lanes), vectors, rows }
    }
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
        Definition::Reduce { over, .. } if near && s.plan(stage).site == Site::Root => {
            let points = over.iter().map(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent));
            let few = points.product::<Option<i64>>().is_some_and(|n| n <= FEW);
            tile(s, stage, &Tile::new(machine, lanes, few), few)
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
    let before = s.clone();
    let (outer, inner) = split(s, stage, of, lanes)?;
    let step = Step::Run { stage: name(s, stage), of: inner.clone(), kind: Kind::Vector };
    if !take(s, step) {
        *s = before;
        return None;
    }
    Some((outer, inner))
}

fn split(s: &mut Schedule, stage: StageId, of: &str, factor: i64) -> Option<(String, String)> {
    let step = Step::Split { stage: name(s, stage), of: of.to_string(), factor };
    if !take(s, step) {
        return None;
    }
    s.plan(stage).splits.last().map(|p| (p.outer.clone(), p.inner.clone()))
}

/// A reduction with a tile of accumulators: rows of the dimension before the last, vectors of the last one.
fn tile(s: &mut Schedule, stage: StageId, tile: &Tile, few: bool) {
    let plan = s.plan(stage).clone();
    let pure = plan.dims.len() - plan.over;
    let over: Vec<String> = plan.dims[pure..].iter().map(|(n, _)| n.clone()).collect();
    let (last, d) = plan.dims[pure - 1].clone();
    let row = (pure >= 2).then(|| plan.dims[pure - 2].0.clone());
    let Some((jo, ji)) = split(s, stage, &last, tile.vectors * tile.lanes) else { return };
    let Some((vectors, inner)) = split(s, stage, &ji, tile.lanes) else { return };
    let rows = row.and_then(|i| split(s, stage, &i, tile.rows));
    let packed = shared(s, stage, d);
    let mut order: Vec<String> = plan.dims[..pure.saturating_sub(2)].iter().map(|(n, _)| n.clone()).collect();
    order.extend(rows.iter().map(|(io, _)| io.clone()));
    // What is packed serves all rows; else rows are read one after another.
    order.insert(if packed.is_empty() { order.len() } else { order.len() - rows.iter().len() }, jo.clone());
    order.extend(over.clone());
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
    if few {
        over.iter().for_each(|k| drop(take(s, run(k, Kind::Unrolled))));
    }
    for source in packed {
        let copy = super::plan::unique("packed", |n| s.graph.find(n).is_some());
        let step = Step::CacheRead { stage: name(s, stage), source, at: jo.clone(), name: copy.clone() };
        if take(s, step)
            && let Some(id) = s.graph.find(&copy)
            && let Some(of) = s.plan(id).loops.last().map(|l| l.name.clone())
        {
            vector(s, id, &of, tile.lanes);
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
