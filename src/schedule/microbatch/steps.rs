//! How sums over points are computed batch by batch. The smallest sum has the loop over batches. The others are beside it, and run
//! in tiles of their own elements; what is computed at points runs in lanes of points, which lie next to each other in its tables.

use super::members::{Members, VECTORS, extents, known_extent, leaves, members, reader, table_bytes};
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::schedule::accumulators::{accumulators, sized};
use crate::schedule::along::{in_lanes, least_twice, lie, parts};
use crate::schedule::attempt::{name, split, take};
use crate::schedule::batch::pack_strided;
use crate::schedule::plan::{Kind, Schedule, unique};
use crate::schedule::points::asks;
use crate::schedule::step::Step;
use crate::schedule::tiling::{Tiling, lanes};
use crate::stage::{Definition, DimId, Graph, Node, Source, StageId};

/// Operations of elements that are computed again where they are read.
const LITTLE: usize = 2;
/// Vectors of accumulators at points, so that an addition need not wait for the one before.
const ACCUMULATORS: i64 = 4;
/// Rows of accumulators at most.
const ROWS: i64 = 6;
/// Vectors and rows of a tile of sums of which a triangle is read: the smaller a tile, the fewer are made for nothing.
const TRIANGLE: (i64, i64) = (2, 8);
/// Sums that are added up side by side where lanes are far from each other, so that none waits for the one before.
const CHAINS: i64 = 8;

/// Computes sums over points batch by batch; gives the stages whose loops are decided by that.
pub(in crate::schedule) fn choose(s: &mut Schedule, machine: &Machine) -> Vec<StageId> {
    let mut out = vec![];
    for n in extents(s, machine) {
        let Some(m) = members(s, n, machine, &out) else { continue };
        let before = s.before();
        match apply(s, &m, machine) {
            Some(all) => out.extend(all),
            None => s.back(before),
        }
    }
    out
}

/// Takes the steps; gives the stages that are decided by them.
fn apply(s: &mut Schedule, m: &Members, machine: &Machine) -> Option<Vec<StageId>> {
    let elements = |s: &Schedule, p: &StageId| s.graph.points(&s.graph.stage(*p).dims);
    let host = m.sums.iter().copied().min_by_key(|p| elements(s, p))?;
    let beside: Vec<StageId> = m.sums.iter().copied().filter(|p| *p != host).collect();
    for p in m.at_points.iter().chain(&m.sums) {
        // Lanes in different arms stay one vector.
        if asks(s, *p) {
            take(s, Step::IfConvert { stage: name(s, *p) });
        }
        take(s, Step::ComputeRoot { stage: name(s, *p) });
    }
    let at_points = without_little(s, m);
    let m = Members { at_points, sums: m.sums.clone() };
    let wide = m.at_points.iter().map(|p| i64::from(lanes(s, *p, machine))).max()?;
    // A little of the second cache is left for what streams past; twice the points have twice the accumulators side by side.
    let near = machine.caches[1] as i64 / 8 * 7;
    let each = table_bytes(s, &m)?;
    let vectors = [VECTORS, VECTORS / 2, 1].into_iter().find(|v| each * v * wide <= near)?;
    for p in &m.sums {
        tile(s, *p, &m, machine);
    }
    let at = in_batches(s, host, vectors * wide)?;
    let all: Vec<StageId> = m.at_points.iter().chain(&m.sums).copied().collect();
    for p in &beside {
        let step = Step::FuseStages { stage: name(s, *p), host: name(s, host), at: at.clone() };
        take(s, step).then_some(())?;
    }
    for p in m.at_points.iter().rev() {
        if leaves(s, *p, &m.at_points, &m.sums) {
            let step = Step::FuseStages { stage: name(s, *p), host: name(s, host), at: at.clone() };
            take(s, step).then_some(())?;
        } else {
            let near = reader(s, *p, &m).and_then(|r| Some((r, s.plan(r).loops.get(1)?.name.clone())));
            match near {
                Some((r, own)) => at_batch(s, *p, (r, &own))?,
                None => at_batch(s, *p, (host, &at))?,
            }
            if !is_for_sums(s, *p, &m) {
                points_last(s, *p)?;
            }
        }
        let points = s.graph.stage(*p).dims[0];
        let own = i64::from(lanes(s, *p, machine));
        let made = s.graph.stages.len();
        let block = in_lanes(s, *p, points, [vectors * wide / own, own], rows(s, *p, &m, vectors, machine))?;
        pack_strided(s, *p, &block, &m.at_points, machine);
        for copy in s.graph.ids().skip(made).collect::<Vec<_>>() {
            at_batch(s, copy, (host, &at))?;
        }
    }
    Some(all.into_iter().chain(s.graph.ids().filter(|c| s.inside(*c, host).is_some())).collect())
}

fn at_batch(s: &mut Schedule, p: StageId, (host, at): (StageId, &str)) -> Option<()> {
    let step = Step::ComputeAt { stage: name(s, p), reader: name(s, host), at: at.to_string() };
    take(s, step).then_some(())
}

/// Whether a table is made for sums alone, which read it along its own last dimension.
fn is_for_sums(s: &Schedule, p: StageId, m: &Members) -> bool {
    let pure = matches!(s.graph.stage(p).def, Definition::Pure(_));
    pure && s.consumers(p).iter().all(|r| m.sums.contains(r))
}

/// The dimension of a reduction at points of which several rows are computed at once, and how many: as many as hide how long an
/// addition takes, and as many as there are registers where they read the same.
fn rows(s: &Schedule, p: StageId, m: &Members, vectors: i64, machine: &Machine) -> Option<(DimId, i64)> {
    let (g, known) = (&s.graph, s.graph.stage(p));
    let all = || known.dims.iter().chain(known.over());
    let free = |e: &DimId| {
        let says = all().any(|d| g.bodies.dims(g.dim(*d).extent).contains(e));
        !says && !parts(s, p, *e) && !known.when.is_some_and(|c| g.bodies.dims(c).contains(e))
    };
    let from = if reader(s, p, m).is_some() { 2 } else { 1 };
    let row = known.dims.get(from..)?.iter().rev().copied().find(free).filter(|_| !known.over().is_empty())?;
    let same = g.bodies.reachable(known.bodies()).into_iter().any(|b| match g.bodies.node(b) {
        Node::Load(_, _, at) => !at.iter().any(|i| g.bodies.dims(*i).contains(&row)),
        _ => false,
    });
    let most = (if same { accumulators(machine) } else { ACCUMULATORS } / vectors).min(ROWS);
    let rows = least_twice(known_extent(s, row)?, most / 2 + 1, most)?;
    (rows > 1).then_some((row, rows))
}

/// Lays a table out so that points are next to each other.
fn points_last(s: &mut Schedule, p: StageId) -> Option<()> {
    let plan = s.plan(p);
    let all = &plan.dims[..plan.dims.len() - plan.over];
    if all.len() < 2 {
        return Some(());
    }
    let order = all.iter().skip(1).chain(&all[..1]).map(|(n, _)| n.clone()).collect();
    let step = Step::Layout { stage: name(s, p), order };
    take(s, step).then_some(())
}

/// Puts the loop over batches of the points of a sum around its other loops.
fn in_batches(s: &mut Schedule, host: StageId, batch: i64) -> Option<String> {
    let plan = s.plan(host).clone();
    let points = plan.dims[plan.dims.len() - plan.over].0.clone();
    let (outer, _) = split(s, host, &points, batch)?;
    let mut order: Vec<String> = s.plan(host).loops.iter().map(|l| l.name.clone()).collect();
    order.retain(|n| *n != outer);
    order.insert(0, outer.clone());
    let step = Step::Reorder { stage: name(s, host), order };
    (s.plan(host).loops.len() < 2 || take(s, step)).then_some(outer)
}

/// Computes little elements where they are read, but where a reduction at points reads them again, which has a copy then; gives
/// what is left to compute at points.
fn without_little(s: &mut Schedule, m: &Members) -> Vec<StageId> {
    let mut out = m.at_points.clone();
    for p in m.at_points.iter().copied().filter(|p| is_little(s, *p, &m.at_points)).collect::<Vec<_>>() {
        let before = s.before();
        let mut copies = vec![];
        let again = |r: &StageId| m.at_points.contains(r) && reads_again(s, *r, p);
        let readers: Vec<StageId> = s.consumers(p).iter().copied().filter(again).collect();
        for r in readers {
            let at = s.plan(r).loops.first().map(|l| l.name.clone()).unwrap_or_default();
            let (made, copy) = (s.graph.stages.len(), unique("copy", |n| s.graph.find(n).is_some()));
            let step = Step::CacheRead { stage: name(s, r), source: name(s, p), at, name: copy, axes: vec![] };
            if take(s, step) {
                copies.extend(s.graph.ids().skip(made).map(|c| (c, r)));
            }
        }
        let step = Step::Inline { stage: name(s, p) };
        let plain = copies.iter().all(|(c, _)| take(s, Step::ComputeRoot { stage: name(s, *c) }));
        if !plain || !take(s, step) {
            s.back(before);
            continue;
        }
        out.retain(|q| *q != p);
        for (copy, reader) in copies {
            let place = out.iter().position(|q| *q == reader).unwrap_or(0);
            out.insert(place, copy);
        }
    }
    out
}

/// Whether a stage has elements of little work, of what is not computed at points.
fn is_little(s: &Schedule, p: StageId, at_points: &[StageId]) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(p));
    let mut operations = 0;
    let plain = g.bodies.reachable(known.bodies()).into_iter().all(|b| match g.bodies.node(b) {
        Node::Op(op, ty, _) if ty.is_float() => {
            operations += 1;
            !matches!(op.row().class, Class::Divide | Class::Transcendental)
        }
        Node::Load(Source::Stage(q, _), ..) => !at_points.contains(q),
        Node::If(_) | Node::Cast(..) => false,
        _ => true,
    });
    plain && operations <= LITTLE && matches!(known.def, Definition::Pure(_)) && known.when.is_none()
}

/// Whether a reduction reads each element of another stage for several of its own.
fn reads_again(s: &Schedule, reader: StageId, p: StageId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(reader));
    let all = || known.dims.iter().chain(known.over());
    !known.over().is_empty()
        && s.graph.loads_of(p, reader).iter().any(|at| all().any(|d| !at.iter().any(|i| g.bodies.dims(*i).contains(d))))
}

/// Runs a sum in a tile of registers along its last dimension, where what it reads lies so; else a few sums side by side.
fn tile(s: &mut Schedule, p: StageId, m: &Members, machine: &Machine) {
    let Some(last) = s.graph.stage(p).dims.last().copied() else { return };
    let before = s.before();
    let (g, known) = (&s.graph, s.graph.stage(p));
    let far = g.bodies.reachable(known.bodies()).into_iter().any(|b| match g.bodies.node(b) {
        Node::Load(Source::Stage(q, _), _, at) if m.at_points.contains(q) && !is_for_sums(s, *q, m) => {
            at.iter().any(|i| g.bodies.dims(*i).contains(&last))
        }
        Node::Load(_, _, at) => lie(g, known, at, last) != Some(None),
        _ => false,
    });
    if !far {
        let (vectors, rows) = match Graph::clone(&s.graph).wanted(p) {
            Some(_) => TRIANGLE,
            None => sized(s, p, machine, false),
        };
        if (Tiling { rows, vectors, ..Tiling::default() }).apply(s, p, machine).is_ok() {
            return;
        }
        s.back(before);
        return;
    }
    let plan = s.plan(p).clone();
    let Some(of) = plan.dims.iter().find(|(_, d)| *d == last).map(|(n, _)| n.clone()) else { return };
    let Some((outer, chain)) = split(s, p, &of, CHAINS) else { return };
    let mut order: Vec<String> =
        plan.loops.iter().map(|l| if l.name == of { outer.clone() } else { l.name.clone() }).collect();
    order.push(chain.clone());
    let taken = take(s, Step::Reorder { stage: name(s, p), order })
        && take(s, Step::Run { stage: name(s, p), of: chain, kind: Kind::Unrolled });
    if !taken {
        s.back(before);
    }
}
