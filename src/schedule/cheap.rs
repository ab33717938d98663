//! Which elements are as cheap to compute again as to read, or are read once: they are computed where they are read.

use super::access::{CHANNELS, all_loads, coefficient, gathers, has_lanes, unit};
use super::attempt::{name, take};
use super::plan::{Schedule, Site};
use super::readings::reads;
use super::step::Step;
use crate::ir::Op;
use crate::ir::op::Class;
use crate::stage::{Bodies, Body, Definition, DimId, Node, Source, Stage, StageId};

/// Bodies of more nodes are computed once and read, where they are read more than once.
const CHEAP: usize = 12;
/// Bodies of more nodes are computed by themselves, though each element is read once.
const ONCE: usize = 64;
/// Pictures of so many elements leave the caches from one stage to the next, and tables of so many are in none.
const LEAVES: i64 = 1 << 22;
const FAR: i64 = 1 << 24;
/// To compute elements so often again takes less than to write and read them there.
const AGAIN: i64 = 2;

/// Computes cheap elements where they are read.
pub(super) fn inline_cheap(s: &mut Schedule) {
    for stage in s.graph.order() {
        if worth_inlining(s, stage) {
            let before = s.before();
            leave_loops(s, stage);
            let step = Step::Inline { stage: name(s, stage) };
            if !take(s, step) {
                s.back(before);
            }
        }
    }
}

/// Lets what is computed in the loops of a stage be computed before it, where that is less than the stage is.
fn leave_loops(s: &mut Schedule, stage: StageId) {
    let dims = |s: &Schedule, p: StageId| s.graph.stage(p).dims.len();
    let inside = |p: &StageId| matches!(&s.plan(*p).site, Site::At(of, _) if *of == stage);
    let all: Vec<StageId> = s.graph.ids().filter(inside).filter(|p| dims(s, *p) < dims(s, stage)).collect();
    for p in all {
        let step = Step::ComputeRoot { stage: name(s, p) };
        take(s, step);
    }
}

/// Whether a stage is what lanes leave of a reduction: nothing at some sizes, and a reduction at others, where it has a place of
/// its own.
pub fn is_left(s: &Schedule, stage: StageId) -> bool {
    let name = &s.graph.stage(stage).name;
    s.steps.iter().any(|step| matches!(step, Step::Reassociate { stage, .. } if stage == name))
}

/// Whether elements are as cheap to compute again as to read, or are read once.
pub fn worth_inlining(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    if !known.over().is_empty() || is_left(s, stage) {
        return false;
    }
    let (readers, (nodes, costly)) = (s.consumers(stage), nodes(s, stage));
    if matches!(readers, [r] if is_taken_by_steps(s, stage, *r)) {
        return false;
    }
    if matches!(readers, [r] if nodes <= ONCE && is_read_once(s, stage, *r)) {
        return true;
    }
    let loops = |r: &StageId| s.graph.stage(*r).dims.len() + s.graph.stage(*r).over().len();
    let alone = matches!(readers, [r] if loops(r) <= known.dims.len());
    // Places of two scatters, say: as many numbers as are computed again would be written and read. Of several, each counts
    // by itself.
    let twice = || {
        let once = readers.iter().all(|r| is_read_once(s, stage, *r));
        once && (0..known.tys.len()).all(|k| readers.iter().filter(|r| reads_part(s, **r, (stage, k))).count() <= 2)
    };
    // Of a number that is read, or of an index, which is at hand.
    let plain = |of: Body| reads_same_index(s, known, of) || s.graph.bodies.is_arithmetic(of, false);
    let only = |b: &Body| match s.graph.bodies.node(*b) {
        Node::Cast(_, of) => plain(*of),
        Node::Op(Op::ToFloat, _, args) => plain(args[0]),
        _ => false,
    };
    let cast = matches!(&known.def, Definition::Pure(each) if each.iter().all(only));
    !costly
        && (nodes <= 3
            || cast
            || copies(s, known)
            || nodes <= CHEAP && alone
            || nodes <= CHEAP * known.tys.len() && twice()
            || nodes <= ONCE && matches!(readers, [r] if comes_back(s, stage, *r)))
        || nodes <= CHEAP && is_map(s, stage)
}

/// Whether elements leave the caches, and are made of those of one source at the same place, which are as many: to read that takes no
/// longer, and nothing is written.
fn is_map(s: &Schedule, stage: StageId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let (Definition::Pure(_), [ty]) = (&known.def, known.tys.as_slice()) else { return false };
    let far = g.points(&known.dims).is_some_and(|n| n >= LEAVES);
    let mut sources: Vec<Source> = vec![];
    let mut own = |b: Body| match g.bodies.node(b) {
        Node::Load(from, of, at) => {
            let short = |d: &DimId| g.bodies.as_int(g.dim(*d).extent).is_some_and(|n| n <= CHANNELS);
            let channel = |i: Body, d: &DimId| g.bodies.as_int(i).is_some() && short(d);
            let here = |(i, d): (&Body, &DimId)| *g.bodies.node(*i) == Node::Index(*d) || channel(*i, d);
            sources.push(*from);
            at.len() == known.dims.len() && at.iter().zip(&known.dims).all(here) && of.bytes() <= ty.bytes()
        }
        // Channels may be made in other ways; vectors have all of them.
        Node::If([c, ..]) => !g.bodies.is_data(*c),
        Node::Op(op, ty, _) => !ty.is_float() || matches!(op.row().class, Class::Cheap | Class::Multiply),
        _ => true,
    };
    let plain = far && g.bodies.reachable(known.bodies()).into_iter().all(&mut own);
    sources.dedup();
    plain && sources.len() == 1 && !s.is_output(stage)
}

/// Whether elements would come back from memory, a few times each, to a reduction over a dimension that its reader does not
/// have: no loop of the reader could have a part of them at hand.
fn comes_back(s: &Schedule, stage: StageId, reader: StageId) -> bool {
    let (g, of) = (&s.graph, s.graph.stage(reader));
    let only_over = |i: &Body| {
        let dims = g.bodies.dims(*i);
        !dims.is_empty() && dims.iter().all(|d| of.over().contains(d))
    };
    let reduced = |at: &[Body]| at.iter().any(only_over);
    let all = g.points(&g.stage(stage).dims).filter(|n| *n >= FAR);
    let again = all.zip(reads(g, reader, stage)).is_some_and(|(all, n)| n <= AGAIN * all);
    again && g.loads_of(stage, reader).iter().all(|at| reduced(at))
}

/// Whether a stage reads a component of another.
fn reads_part(s: &Schedule, reader: StageId, (of, k): (StageId, usize)) -> bool {
    let mut all = s.graph.reads(s.graph.stage(reader).bodies()).into_iter();
    all.any(|from| matches!(from, Source::Stage(p, part) if p == of && part as usize == k))
}

/// Whether a stage is part of a source as it lies there, so that reading it is reading that.
fn copies(s: &Schedule, stage: &Stage) -> bool {
    let Definition::Pure(each) = &stage.def else { return false };
    let part = |b: &Body| {
        let Node::Load(_, _, at) = s.graph.bodies.node(*b) else { return false };
        let moves = |i: &Body| stage.dims.iter().position(|d| s.graph.bodies.dims(*i).contains(d));
        let own = |(k, i): (usize, &Body)| moves(i) == Some(k) && unit(&s.graph, *i, stage.dims[k]);
        at.len() == stage.dims.len() && at.iter().enumerate().all(own)
    };
    each.iter().all(part)
}

/// Whether a body is what a source has at a stage's own indices.
fn reads_same_index(s: &Schedule, stage: &Stage, b: Body) -> bool {
    let own = |(i, d): (&Body, &DimId)| *s.graph.bodies.node(*i) == Node::Index(*d);
    matches!(s.graph.bodies.node(b), Node::Load(_, _, at) if at.len() == stage.dims.len() && at.iter().zip(&stage.dims).all(own))
}

/// The nodes of a stage's bodies, and whether some take long, as to gather what lanes read where data say does.
pub(super) fn nodes(s: &Schedule, stage: StageId) -> (usize, bool) {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let (nodes, costly) = nodes_of(&g.bodies, known.bodies());
    let gathered = |d: &DimId| !all_loads(g, known, |at| !gathers(g, at, *d));
    (nodes, costly || known.dims.last().is_some_and(gathered))
}

/// The same of bodies.
pub(super) fn nodes_of(bodies: &Bodies, roots: impl IntoIterator<Item = Body>) -> (usize, bool) {
    let each = bodies.reachable(roots).into_iter().map(|b| match bodies.node(b) {
        // Integers divided by a number are multiplied.
        Node::Op(op, ty, args) if op.divides() && ty.is_int() && bodies.as_int(args[1]).is_some() => (1, false),
        Node::Op(op, ..) => (1, matches!(op.row().class, Class::Divide | Class::Transcendental)),
        Node::If(_) => (1, true),
        _ => (1, false),
    });
    each.fold((0, false), |(n, costly), (m, own)| (n + m, costly || own))
}

/// Whether an element takes a quotient of floats or an elementary function.
fn takes_long(s: &Schedule, stage: StageId) -> bool {
    let bodies = &s.graph.bodies;
    let costly = |b: Body| match bodies.node(b) {
        Node::Op(op, ty, _) => ty.is_float() && matches!(op.row().class, Class::Divide | Class::Transcendental),
        _ => false,
    };
    bodies.reachable(s.graph.stage(stage).bodies()).into_iter().any(costly)
}

/// Whether the steps of one recurrence of numbers would compute what takes long, one after another: made before them, elements
/// are made in vectors.
fn is_taken_by_steps(s: &Schedule, stage: StageId, reader: StageId) -> bool {
    let waits = |p: StageId| s.steps_of(p).filter(|of| of.waits).map(|of| of.leader);
    let Some(leader) = s.graph.leads(reader).map(|_| reader).or(waits(reader)) else { return false };
    let numbers =
        !s.graph.ids().any(|p| p != leader && s.steps_of(p).is_some_and(|of| of.leader == leader && of.state));
    numbers && waits(stage).is_none() && s.graph.stage(leader).dims.len() == 1 && takes_long(s, stage)
}

/// Whether a stage reads each element of another at most once, and runs in vectors if it computes that itself.
fn is_read_once(s: &Schedule, stage: StageId, reader: StageId) -> bool {
    let (g, of) = (&s.graph, s.graph.stage(reader));
    let mut places: Vec<&[Body]> = vec![];
    for b in g.bodies.reachable(of.bodies()) {
        if let Node::Load(Source::Stage(p, _), _, at) = g.bodies.node(b)
            && *p == stage
            && !places.contains(&at.as_slice())
        {
            places.push(at);
        }
    }
    let [at] = places.as_slice() else { return false };
    // A window that a sum moves over rows and columns has each element many times.
    let loops = || of.dims.iter().chain(of.over());
    let alone = |i: &Body| loops().filter(|d| g.bodies.dims(*i).contains(d)).count() < 2;
    if takes_long(s, stage) && !at.iter().all(alone) {
        return false;
    }
    // From the end, elements are read once, too; but not next to each other in vectors.
    let last = of.dims.last();
    let steps = |i: &Body, d: &DimId| unit(g, *i, *d) || last != Some(d) && coefficient(g, *i, *d) == Some(-1);
    let own = |d: &DimId| at.iter().filter(|i| steps(i, d)).count() == 1;
    let known = g.stage(stage);
    let near = |stage: &Stage| stage.dims.last().is_some_and(|d| has_lanes(g, stage, *d));
    of.dims[..of.looped()].iter().chain(of.over()).all(own) && (near(known) || !near(of))
}
