//! The schedule where nobody writes one: a list of steps, made from the graph and the width of vectors alone.
//!
//! Elements that are cheap, or read once, are computed where they are read. A reduction whose last dimension lies in memory
//! next to each other, or can be packed so, is tiled: rows by vectors of accumulators, and the operand that all rows share is
//! packed; sums of a few vectors of columns have one row of accumulators (`columns.rs`). Tables of points of which only numbers
//! leave are computed a batch of points at a time (`batch.rs`), as are those that sums over points collect (`microbatch/`);
//! sums of sums run in lanes of what they have in common (`nested.rs`). What else is read in small boxes is computed in strips
//! or tiles of its reader (`group/`). What only moves elements runs in strips of vectors, or in blocks. Other stages run their
//! last dimension in vectors. Outer loops run on several threads. Each step is tried; one that is refused is left out.

use super::access::{apart, has_lanes, packable, strides, unit};
use super::accumulators::sized;
use super::attempt::{name, split, take};
use super::cheap::{inline_cheap, nodes_of};
use super::footprint::points as terms;
use super::passes::interleave::CHAINS;
use super::plan::{Kind, Schedule, Site};
use super::product::is_product;
use super::step::Step;
use super::tiling::{FEW, Tiling, along_last, lanes};
use super::unread::inline_unread;
use super::{
    along, batch, chains, channels, columns, ends, group, instances, latency, layout, microbatch, nested, orders,
    places, points, row_sums, threads, unit_dims,
};
use crate::ir::Op;
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Graph, Node, Stage, StageId};

/// Arms of more nodes are not both evaluated.
const FEW_NODES: usize = 12;

/// Vectors in a row that is short.
const SHORT: i64 = 4;

/// A block of what is only moved: its rows are lines of the cache, in bytes, each written at once; and there are so many of
/// them that what is read are runs of lines, which the processor asks for ahead.
const LINE: u32 = 64;
const LINES: i64 = 256;

/// The default schedule of a graph; loops are parallel where the machine has threads.
pub fn default(graph: Graph, machine: &Machine) -> Schedule {
    let mut s = Schedule::new(graph);
    orders::contract(&mut s);
    after(s, machine)
}

/// The default schedule of a graph for stated sizes alone. What is contracted is so for all sizes, as
/// [`apply_for`](super::text::apply_for) has it.
pub fn default_for(graph: Graph, incoming: &[f64], machine: &Machine) -> Schedule {
    let mut s = Schedule::new(graph);
    orders::contract(&mut s);
    after(s.only_for(incoming), machine)
}

/// The default schedule after contractions.
fn after(mut s: Schedule, machine: &Machine) -> Schedule {
    orders::choose(&mut s);
    inline_cheap(&mut s);
    inline_unread(&mut s);
    unit_dims::join(&mut s);
    let spared = microbatch::candidates(&s, machine);
    channels::choose(&mut s, machine, &spared);
    for stage in s.graph.order() {
        if parts_lanes(&s, stage) || is_sum_in_arms(&s, stage, machine) {
            let step = Step::IfConvert { stage: name(&s, stage) };
            take(&mut s, step);
        }
    }
    for stage in s.graph.order() {
        let product = is_product(&s, stage, machine) && !nested::is_part(&s, stage, machine);
        if product || is_added_apart(&s, stage) || nested::is_worth_apart(&s, stage, machine) {
            // Tiles, and lanes, are worth more than what its reader makes of it at once.
            let step = at_once(&s, stage);
            take(&mut s, step);
        }
    }
    let mut decided = microbatch::choose(&mut s, machine);
    decided = points::choose(&mut s, machine, &decided);
    decided = batch::choose(&mut s, machine, &decided);
    decided = nested::choose(&mut s, machine, &decided);
    decided = row_sums::choose(&mut s, machine, &decided);
    decided = group::choose(&mut s, machine, &decided);
    decided = instances::choose(&mut s, machine, &decided);
    for stage in s.graph.order() {
        if s.plan(stage).site != Site::Inline && !decided.contains(&stage) {
            loops(&mut s, stage, machine);
        }
    }
    layout::choose(&mut s);
    if machine.threads > 1 {
        threads::choose(&mut s);
    }
    s
}

/// Whether a stage reduces what a scatter adds next, of which it makes one element at a time, though other lanes could have others.
fn is_added_apart(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    let Site::At(reader, _) = &s.plan(stage).site else { return false };
    let Definition::Scatter { over, .. } = &s.graph.stage(*reader).def else { return false };
    !known.over().is_empty() && known.when.is_none() && over.iter().all(|d| known.dims.contains(d))
}

/// Computes all elements of a stage before anything reads them: at the start, or in the step that they are part of.
fn at_once(s: &Schedule, stage: StageId) -> Step {
    let leader = s.steps_of(stage).filter(|of| of.waits).map(|of| of.leader);
    match leader.and_then(|l| Some((l, s.loop_of(l)?.to_string()))) {
        Some((leader, at)) => Step::ComputeAt { stage: name(s, stage), reader: name(s, leader), at },
        None => Step::ComputeRoot { stage: name(s, stage) },
    }
}

/// Whether lanes over the last dimension take different arms of a condition, which are as cheap to evaluate both: in a
/// reduction over a triangle of products, say, or of pixels of which every other one is of another colour.
fn parts_lanes(s: &Schedule, stage: StageId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let reduces = matches!(known.def, Definition::Reduce { .. });
    let once = matches!(known.def, Definition::Pure(_));
    let Some(lane) = known.dims.last().filter(|_| reduces || once) else { return false };
    let cheap = |b: Body| matches!(nodes_of(&g.bodies, [b]), (n, false) if n <= FEW_NODES);
    g.bodies.reachable(known.bodies()).into_iter().any(|b| match *g.bodies.node(b) {
        Node::If([c, x, y]) => {
            g.bodies.dims(c).contains(lane) && cheap(x) && cheap(y) && (reduces || takes_turns(g, c))
        }
        _ => false,
    })
}

/// Whether a stage is a product of which data say, element by element, whether it is asked for: vectors of all elements take less
/// than those that are asked for take one by one.
fn is_sum_in_arms(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let (bodies, known) = (&s.graph.bodies, s.graph.stage(stage));
    let last = known.dims.last();
    let by_lane = |c: Body| bodies.is_data(c) && last.is_some_and(|d| bodies.dims(c).contains(d));
    known.when.is_some_and(by_lane) && is_product(s, stage, machine)
}

/// Whether a condition holds at every other index, say: no loop can be cut where it changes.
fn takes_turns(g: &Graph, c: Body) -> bool {
    let left = |b: &Body| matches!(g.bodies.node(*b), Node::Op(Op::Mod, _, args) if g.bodies.as_int(args[1]).is_some());
    matches!(g.bodies.node(c), Node::Op(Op::Eq | Op::Ne, _, args) if args.iter().any(left))
}

/// Says how the loops of a stage run.
fn loops(s: &mut Schedule, stage: StageId, machine: &Machine) {
    let known = s.graph.stage(stage).clone();
    let Some(last) = known.dims.last().copied() else { return };
    let lanes = lanes(s, stage, machine);
    let near = strides(&s.graph, &known, last);
    match &known.def {
        Definition::Reduce { .. } if orders::is_strided(&s.graph, &known) => {
            let all = s.graph.bodies.as_int(s.graph.dim(last).extent).unwrap_or(0);
            let vectors = (all / i64::from(lanes)).max(1);
            let before = s.before();
            if (Tiling { vectors, ..Tiling::plain() }).apply(s, stage, machine).is_err() {
                s.back(before);
            }
        }
        Definition::Reduce { .. } if s.is_at_once(stage) && places::choose(s, stage, machine) => {}
        Definition::Reduce { .. } if near && s.is_at_once(stage) => {
            let few = !is_product(s, stage, machine);
            let (vectors, rows) = sized(s, stage, machine, few);
            // Rows that are as long as data say have no loop in common.
            let _ = columns::choose(s, stage, machine)
                || tile(s, stage, machine, (vectors, rows))
                || along::along(s, stage, machine)
                || rows > 1 && tile(s, stage, machine, (vectors, 1));
        }
        // Sums inside of it that lanes would compute one by one are better off in loops that know where they begin and end.
        Definition::Reduce { .. } if !near && s.is_at_once(stage) && parts_inside(s, stage, last) => {}
        // Rows are reduced in the lanes of vectors, each in its order.
        Definition::Reduce { .. } if s.is_at_once(stage) && terms(s, stage).is_none_or(|n| n > FEW) => {
            let before = s.before();
            if !along::along(s, stage, machine) && Tiling::plain().apply(s, stage, machine).is_err() {
                s.back(before);
            }
        }
        // A few elements of each, at clamped indices: cut into ends and a middle, which becomes vectors.
        Definition::Reduce { .. } if s.is_at_once(stage) && apart(s, stage).is_some() => {
            let before = s.before();
            if (Tiling { vectors: 0, ..Tiling::plain() }).apply(s, stage, machine).is_err() {
                s.back(before);
            }
        }
        Definition::Recur { .. } if s.graph.leads(stage).is_some() => drop(chains::choose(s, stage, machine)),
        Definition::Pure(each) if let Some(channels) = across(&s.graph, &known, each, i64::from(lanes)) => {
            blocks(s, stage, channels)
        }
        Definition::Pure(_) if !near && (is_read_across(s, stage) || !has_lanes(&s.graph, &known, last)) => {
            along::packed(s, stage, machine);
        }
        Definition::Pure(_) if s.is_at_once(stage) && ends::asks(s, stage) => {}
        Definition::Recur { .. } if !near => {}
        Definition::Pure(_) | Definition::Recur { .. } => {
            let plan = s.plan(stage);
            let Some(of) = plan.loops.last().map(|l| l.name.clone()) else { return };
            let lanes = along_last(s, stage, machine).0;
            if interleaved(s, stage, &of, lanes) {
                return;
            }
            if let Some((outer, _)) = vector(s, stage, &of, lanes)
                && is_short(s, stage, lanes)
            {
                let step = Step::Run { stage: name(s, stage), of: outer, kind: Kind::Unrolled };
                take(s, step);
            }
        }
        _ => {}
    }
}

/// Unrolls a loop over vectors, whose dependence chains are then interleaved, where each element has several library functions one
/// after the other; whether that is so.
fn interleaved(s: &mut Schedule, stage: StageId, of: &str, lanes: i64) -> bool {
    let chains = CHAINS as i64;
    let known = s.graph.stage(stage);
    let all = known.dims.last().and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent));
    let long = matches!(known.def, Definition::Pure(_)) && all.is_some_and(|n| n >= 2 * chains * lanes);
    if !long || latency::calls(s, stage) < 2 {
        return false;
    }
    let before = s.before();
    if let Some((_, inner)) = split(s, stage, of, chains * lanes)
        && let Some((outer, _)) = vector(s, stage, &inner, lanes)
    {
        let step = Step::Run { stage: name(s, stage), of: outer, kind: Kind::Unrolled };
        if take(s, step) {
            return true;
        }
    }
    s.back(before);
    false
}

/// Whether a reader whose loops are decided has lanes over another dimension of a stage than the last: it is laid out for them
/// then, and its own lanes are chosen after that.
fn is_read_across(s: &Schedule, stage: StageId) -> bool {
    let g = &s.graph;
    s.consumers(stage).iter().any(|reader| {
        let plan = s.plan(*reader);
        let vector = plan.loops.iter().find(|l| l.kind == Kind::Vector);
        let Some(lane) = vector.and_then(|l| plan.root(&l.name)).map(|k| plan.dims[k].1) else { return false };
        let across = |(_, outer): (&Body, &[Body])| outer.iter().any(|i| g.bodies.dims(*i).contains(&lane));
        g.loads_of(stage, *reader).iter().any(|at| at.split_last().is_some_and(across))
    })
}

/// Whether rows of what a step of a recurrence computes are a few vectors. As text these have no element in common, which they
/// would have in a loop where the last one overlaps the one before: what is read so soon after it was written must not be
/// put together of two stores.
fn is_short(s: &Schedule, stage: StageId, lanes: i64) -> bool {
    let last = s.graph.stage(stage).dims.last();
    let all = last.and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent));
    s.steps_of(stage).is_some() && all.is_some_and(|n| n <= SHORT * lanes)
}

/// Whether lanes over a dimension would take different arms, of which some may have no value, in what is computed inside of a
/// stage.
fn parts_inside(s: &Schedule, stage: StageId, d: DimId) -> bool {
    let parts = |g: &Graph, b: &Body| matches!(g.bodies.node(*b), Node::If([c, ..]) if g.bodies.dims(*c).contains(&d));
    s.graph.ids().filter(|p| s.inside(*p, stage).is_some()).any(|p| {
        let all = s.graph.bodies.reachable(s.graph.stage(p).bodies());
        let asked: Vec<Body> = all.into_iter().filter(|b| parts(&s.graph, b)).collect();
        let mut graph = if asked.is_empty() { return false } else { Graph::clone(&s.graph) };
        let selects = graph.convertible(p);
        asked.iter().any(|b| !selects.contains(b))
    })
}

/// The last dimensions that stay where they are, a few channels of each place, where a stage only moves elements along others
/// than those in which they lie in memory; nothing where it does not.
fn across(graph: &Graph, stage: &Stage, each: &[Body], lanes: i64) -> Option<usize> {
    let loads = each.iter().map(|b| match graph.bodies.node(*b) {
        Node::Load(_, _, at) => Some(at.as_slice()),
        _ => None,
    });
    let loads: Vec<&[Body]> = loads.collect::<Option<_>>()?;
    let few = |d: &DimId| graph.bodies.as_int(graph.dim(*d).extent).is_some_and(|n| n < lanes);
    let own = |at: &[Body], k: usize, d: &DimId| {
        at.len().checked_sub(k + 1).is_some_and(|i| *graph.bodies.node(at[i]) == Node::Index(*d))
    };
    let stays = |(k, d): &(usize, &DimId)| few(d) && loads.iter().all(|at| own(at, *k, d));
    let kept = stage.dims.iter().rev().enumerate().take_while(stays).count();
    let moved = |at: &&[Body]| {
        let at = at.len().checked_sub(kept + 1).map(|i| at[i]);
        at.is_some_and(|last| stage.dims.iter().rev().skip(kept + 1).any(|d| unit(graph, last, *d)))
    };
    loads.iter().all(moved).then_some(kept)
}

/// Runs the two innermost loops, but for some channels, in blocks, so that what one row of a block reads is near for the next.
/// Without channels, and where rows are long, a block has all rows, and a row of it is a vector: its lanes are on as many lines
/// of the cache, of which all elements are read before they are gone, and none waits until the one before is stored.
fn blocks(s: &mut Schedule, stage: StageId, channels: usize) {
    let plan = s.plan(stage).clone();
    let (places, inner) = plan.loops.split_at(plan.loops.len() - channels);
    let [outer @ .., i, j] = places else { return };
    let widest = s.graph.stage(stage).tys.iter().map(|ty| ty.bytes()).max().unwrap_or(1);
    let columns = i64::from(LINE / widest);
    let last = s.graph.stage(stage).dims.last();
    let short = last.and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent)).is_some_and(|n| n < 2 * columns);
    let Some((jo, ji)) = split(s, stage, &j.name, columns) else { return };
    let whole = channels == 0 && !short;
    let (io, ii) = match whole {
        true => (None, i.name.clone()),
        // The channels of so many places are runs of lines already.
        false => match split(s, stage, &i.name, if channels > 0 { columns } else { LINES }) {
            Some((io, ii)) => (Some(io), ii),
            None => return,
        },
    };
    let named = outer.iter().map(|l| l.name.clone()).chain(io);
    let order = named.chain([jo, ii, ji.clone()]).chain(inner.iter().map(|l| l.name.clone())).collect();
    let of = name(s, stage);
    if take(s, Step::Reorder { stage: of.clone(), order }) && whole {
        take(s, Step::Run { stage: of, of: ji, kind: Kind::Vector });
    }
}

/// Runs a loop in vectors; gives the names of the loops over them and inside.
fn vector(s: &mut Schedule, stage: StageId, of: &str, lanes: i64) -> Option<(String, String)> {
    let before = s.before();
    let (outer, inner) = split(s, stage, of, lanes)?;
    let step = Step::Run { stage: name(s, stage), of: inner.clone(), kind: Kind::Vector };
    if !take(s, step) {
        s.back(before);
        return None;
    }
    Some((outer, inner))
}

/// A reduction with a tile of accumulators: rows of the dimension before the last, vectors of the last one. Operands that
/// all rows share are packed, where that is legal. Whether there is one.
fn tile(s: &mut Schedule, stage: StageId, machine: &Machine, (vectors, rows): (i64, i64)) -> bool {
    let last = s.free_dims(stage).last().copied();
    let packs = last.is_some_and(|d| !packable(s, stage, d).is_empty());
    for pack in [true, false] {
        let tiling = Tiling { rows, vectors, pack, ..Tiling::default() };
        let before = s.before();
        if pack <= packs && tiling.apply(s, stage, machine).is_ok() {
            return true;
        }
        s.back(before);
    }
    false
}
