//! Sums over points of what has many elements at each of them, a gradient over examples, say: a batch of points is computed at a
//! time, and added to the sums before the next one, so that tables of points stay in a near cache and no memory is taken for all
//! of them. Terms are added in the order of the points, whatever the length of a batch.
//!
//! The smallest sum has the loop over batches. The others are beside it, and run in tiles of their own elements; what is computed
//! at points runs in lanes of points, which lie next to each other in its tables. It must not know what kernels there are, nor
//! how loops become text.

use super::along::{self, in_lanes, lie};
use super::attempt::{name, split, take};
use super::plan::{Kind, Schedule, Site, unique};
use super::step::Step;
use super::tiling::{Tiling, lanes, pack};
use super::{accumulators, points};
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Graph, Node, Source, StageId};

/// Vectors of points in a batch at most; there are fewer where their rows would leave the second cache.
const VECTORS: i64 = 4;
/// There are at least so many batches.
const BATCHES: i64 = 4;
/// More threads are worth more than the near cache: batches come one after another.
const THREADS: usize = 2;
/// Operations of elements that are computed again where they are read.
const LITTLE: usize = 2;
/// Vectors of accumulators at points, so that an addition need not wait for the one before; and where rows read the same.
const ACCUMULATORS: [i64; 2] = [4, 24];
/// Rows of accumulators at most.
const ROWS: i64 = 6;
/// Vectors and rows of a tile of sums of which a triangle is read: the smaller a tile, the fewer are made for nothing.
const TRIANGLE: (i64, i64) = (2, 8);
/// Sums that are added up side by side where lanes are far from each other, so that none waits for the one before.
const CHAINS: i64 = 8;

/// The stages of one loop over batches.
struct Members {
    /// What is computed at points, producers first.
    at_points: Vec<StageId>,
    /// What sums over points.
    sums: Vec<StageId>,
}

/// Computes sums over points batch by batch; gives the stages whose loops are decided by that.
pub(super) fn choose(s: &mut Schedule, machine: &Machine) -> Vec<StageId> {
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

/// The stages that may be computed batch by batch, should nothing better be found.
pub(super) fn candidates(s: &Schedule, machine: &Machine) -> Vec<StageId> {
    let found = extents(s, machine).into_iter().filter_map(|n| members(s, n, machine, &[]));
    found.flat_map(|m| m.at_points.into_iter().chain(m.sums)).collect()
}

/// How many points sums are over, where batches of them are worth it at all.
fn extents(s: &Schedule, machine: &Machine) -> Vec<Body> {
    let mut out: Vec<Body> = vec![];
    for stage in s.graph.ids().filter(|p| machine.threads <= THREADS && is_sum(s, *p)) {
        let n = s.graph.dim(s.graph.stage(stage).over()[0]).extent;
        if !out.contains(&n) {
            out.push(n);
        }
    }
    out
}

fn known_extent(s: &Schedule, d: DimId) -> Option<i64> {
    s.graph.bodies.as_int(s.graph.dim(d).extent)
}

/// Whether a stage is a sum that might be added up batch by batch: it reduces over nothing before its points.
fn is_sum(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    let fixed = |d: &DimId| known_extent(s, *d).is_some();
    matches!(known.def, Definition::Reduce { .. })
        && !known.over().is_empty()
        && is_free(s, stage)
        && known.when.is_none()
        && known.dims.iter().chain(&known.over()[..1]).all(fixed)
}

/// Whether a stage is neither part of a recurrence nor decided already, and cannot fail.
fn is_free(s: &Schedule, stage: StageId) -> bool {
    let (known, plan) = (s.graph.stage(stage), s.plan(stage));
    s.steps_of(stage).is_none()
        && plan.site != Site::Inline
        && plan.splits.is_empty()
        && known.checks.is_empty()
        && !known.tys.is_empty()
}

/// Whether a stage has elements at each of so many points, of which none says how many there are.
fn is_at_points(s: &Schedule, stage: StageId, n: Body) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let plain = matches!(known.def, Definition::Pure(_) | Definition::Reduce { .. }) && is_free(s, stage);
    let Some((first, rest)) = known.dims.split_first().filter(|_| plain) else { return false };
    let apart = |d: &DimId| !g.bodies.dims(g.dim(*d).extent).contains(first);
    g.dim(*first).extent == n
        && rest.iter().all(|d| known_extent(s, *d).is_some())
        && known.over().iter().all(apart)
        && known.when.is_none_or(|c| !g.bodies.dims(c).contains(first))
}

/// What is computed at so many points and read by sums over them and by nothing else, where its tables would not stay in a near
/// cache.
fn members(s: &Schedule, n: Body, machine: &Machine, decided: &[StageId]) -> Option<Members> {
    let count = s.graph.bodies.as_int(n)?;
    let all = || s.graph.order().into_iter().filter(|p| !decided.contains(p));
    let mut at_points: Vec<StageId> = all().filter(|p| is_at_points(s, *p, n)).collect();
    let own = |p: &StageId| s.graph.dim(s.graph.stage(*p).over()[0]).extent == n;
    let mut sums: Vec<StageId> = all().filter(|p| is_sum(s, *p) && own(p) && !at_points.contains(p)).collect();
    loop {
        let before = (at_points.len(), sums.len());
        let later = after(s, &sums);
        at_points.retain(|p| !later.contains(p));
        sums.retain(|p| !later.contains(p));
        let stays = |p: &StageId| {
            let at = |r: &StageId| match sums.contains(r) {
                true => s.reads_at(*r, s.graph.stage(*r).over()[0], *p),
                false => at_points.contains(r) && s.reads_own(*r, *p),
            };
            let own = |r: &StageId| at(r) || !sums.contains(r) && !at_points.contains(r);
            let number = s.graph.stage(*p).dims.len() == 1;
            match leaves(s, *p, &at_points, &sums) {
                true => number && s.consumers(*p).iter().all(own),
                false => !s.consumers(*p).is_empty() && s.consumers(*p).iter().all(at),
            }
        };
        let kept: Vec<StageId> = at_points.iter().copied().filter(stays).collect();
        let reads = |r: &StageId| kept.iter().any(|p| s.consumers(*p).contains(r));
        sums.retain(reads);
        at_points = kept;
        if (at_points.len(), sums.len()) == before {
            break;
        }
    }
    let wide = at_points.iter().map(|p| i64::from(lanes(s, *p, machine))).max()?;
    let m = Members { at_points, sums };
    let far = || table_bytes(s, &m).is_some_and(|n| (n + read_bytes(s, &m)) * count > machine.caches[1] as i64 / 2);
    (!m.sums.is_empty() && count >= BATCHES * VECTORS * wide && far()).then_some(m)
}

/// Whether a stage is part of the result, or others than these read it.
fn leaves(s: &Schedule, p: StageId, at_points: &[StageId], sums: &[StageId]) -> bool {
    let other = |r: &StageId| !at_points.contains(r) && !sums.contains(r);
    s.is_output(p) || s.consumers(p).iter().any(other)
}

/// The stages that need what some sums have.
fn after(s: &Schedule, sums: &[StageId]) -> Vec<StageId> {
    let mut todo = sums.to_vec();
    let mut out = vec![];
    while let Some(p) = todo.pop() {
        for r in s.consumers(p) {
            if !out.contains(r) {
                out.push(*r);
                todo.push(*r);
            }
        }
    }
    out
}

/// Bytes of what is there at once of the row of a stage at one point.
fn row_bytes(s: &Schedule, stage: StageId, m: &Members) -> Option<i64> {
    let known = s.graph.stage(stage);
    let there = if reader(s, stage, m).is_some() { 2 } else { 1 };
    let elements: Option<i64> = known.dims[there..].iter().map(|d| known_extent(s, *d)).product();
    Some(elements? * known.tys.iter().map(|ty| i64::from(ty.bytes())).sum::<i64>())
}

/// Bytes of the rows of all tables, at one point.
fn table_bytes(s: &Schedule, m: &Members) -> Option<i64> {
    m.at_points.iter().map(|p| row_bytes(s, *p, m)).sum()
}

/// The only stage that reads a table, where it does so at its own index of the second dimension, too: what it reads is there for
/// one index at a time.
fn reader(s: &Schedule, p: StageId, m: &Members) -> Option<StageId> {
    let [r] = s.consumers(p) else { return None };
    let (g, known) = (&s.graph, s.graph.stage(*r));
    let second = known.dims.get(1).filter(|_| m.at_points.contains(r) && !s.is_output(p))?;
    let own = |at: &Vec<Body>| at.get(1).is_some_and(|i| *g.bodies.node(*i) == Node::Index(*second));
    (g.stage(p).dims.len() > 1 && loads(s, *r, p).iter().all(own)).then_some(*r)
}

/// Bytes of what several of these stages read, of others, at one point.
fn read_bytes(s: &Schedule, m: &Members) -> i64 {
    let mut read: Vec<(Source, i64, usize)> = vec![];
    for p in m.at_points.iter().chain(&m.sums) {
        let known = s.graph.stage(*p);
        let points = if m.sums.contains(p) { known.over()[0] } else { known.dims[0] };
        let mut own: Vec<(Source, i64)> = vec![];
        for b in s.graph.bodies.reachable(known.bodies()) {
            if let Node::Load(from, ty, at) = s.graph.bodies.node(b)
                && from.stage().is_none_or(|q| !m.at_points.contains(&q))
                && at.first().is_some_and(|i| *s.graph.bodies.node(*i) == Node::Index(points))
            {
                let row =
                    s.graph.extents(*from)[1..].iter().map(|n| s.graph.bodies.as_int(*n)).product::<Option<i64>>();
                own.push((*from, row.unwrap_or(0) * i64::from(ty.bytes())));
            }
        }
        own.sort();
        own.dedup();
        for (from, bytes) in own {
            match read.iter_mut().find(|(f, ..)| *f == from) {
                Some((.., times)) => *times += 1,
                None => read.push((from, bytes, 1)),
            }
        }
    }
    read.iter().filter(|(.., times)| *times > 1).map(|(_, bytes, _)| bytes).sum()
}

/// Takes the steps; gives the stages that are decided by them.
fn apply(s: &mut Schedule, m: &Members, machine: &Machine) -> Option<Vec<StageId>> {
    let elements = |s: &Schedule, p: &StageId| s.graph.points(&s.graph.stage(*p).dims);
    let host = m.sums.iter().copied().min_by_key(|p| elements(s, p))?;
    let beside: Vec<StageId> = m.sums.iter().copied().filter(|p| *p != host).collect();
    for p in m.at_points.iter().chain(&m.sums) {
        // Lanes in different arms stay one vector.
        if points::asks(s, *p) {
            take(s, Step::IfConvert { stage: name(s, *p) });
        }
        take(s, Step::ComputeRoot { stage: name(s, *p) });
    }
    let at_points = without_little(s, m);
    let m = Members { at_points, sums: m.sums.clone() };
    let wide = m.at_points.iter().map(|p| i64::from(lanes(s, *p, machine))).max()?;
    let near = machine.caches[1] as i64 / 2;
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
        let block = in_lanes(s, *p, points, [vectors * wide / own, own], rows(s, *p, &m, vectors))?;
        pack_strided(s, *p, &block, &m, machine);
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
/// addition takes, and more where they read the same.
fn rows(s: &Schedule, p: StageId, m: &Members, vectors: i64) -> Option<(DimId, i64)> {
    let (g, known) = (&s.graph, s.graph.stage(p));
    let all = || known.dims.iter().chain(known.over());
    let free = |e: &DimId| {
        let says = all().any(|d| g.bodies.dims(g.dim(*d).extent).contains(e));
        !says && !along::parts(s, p, *e) && !known.when.is_some_and(|c| g.bodies.dims(c).contains(e))
    };
    let from = if reader(s, p, m).is_some() { 2 } else { 1 };
    let row = known.dims.get(from..)?.iter().rev().copied().find(free).filter(|_| !known.over().is_empty())?;
    let same = g.bodies.reachable(known.bodies()).into_iter().any(|b| match g.bodies.node(b) {
        Node::Load(_, _, at) => !at.iter().any(|i| g.bodies.dims(*i).contains(&row)),
        _ => false,
    });
    let most = (ACCUMULATORS[usize::from(same)] / vectors).min(ROWS);
    let count = known_extent(s, row)?;
    let twice = |n: &i64| (count + n - 1) / n * n - count;
    let rows = if count <= most { count } else { (most / 2 + 1..=most).rev().min_by_key(twice)? };
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
        && loads(s, reader, p).iter().any(|at| all().any(|d| !at.iter().any(|i| g.bodies.dims(*i).contains(d))))
}

/// The indices at which a stage reads another.
fn loads(s: &Schedule, reader: StageId, p: StageId) -> Vec<Vec<Body>> {
    let bodies = &s.graph.bodies;
    let all = bodies.reachable(s.graph.stage(reader).bodies()).into_iter();
    let at = all.filter_map(|b| match bodies.node(b) {
        Node::Load(Source::Stage(q, _), _, at) if *q == p => Some(at.to_vec()),
        _ => None,
    });
    at.collect()
}

/// Packs what a stage at points reads again of others, where points are far from each other.
fn pack_strided(s: &mut Schedule, p: StageId, at: &str, m: &Members, machine: &Machine) {
    let (g, known) = (&s.graph, s.graph.stage(p));
    let mut found: Vec<(String, Vec<usize>)> = vec![];
    for b in g.bodies.reachable(known.bodies()) {
        if let Node::Load(from, _, of) = g.bodies.node(b)
            && from.stage().is_none_or(|q| !m.at_points.contains(&q))
            && let Some(Some(axes)) = lie(g, known, of, known.dims[0])
        {
            found.push((g.source_name(*from).to_string(), axes));
        }
    }
    found.sort();
    found.dedup();
    for one in found {
        let before = s.before();
        if pack(s, p, at, &[one], machine).is_err() {
            s.back(before);
        }
    }
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
            None => accumulators::sized(s, p, machine, false),
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
