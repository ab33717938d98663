//! Which stages are computed batch by batch: sums over points, and what is computed at points for them alone, where its tables
//! would not stay in a near cache. It takes no step.

use crate::machine::Machine;
use crate::schedule::orders;
use crate::schedule::plan::{Schedule, Site};
use crate::schedule::points::distinct;
use crate::schedule::tiling::lanes;
use crate::stage::{Body, Definition, DimId, Node, Source, StageId};

/// Vectors of points in a batch at most; there are fewer where their rows would leave the second cache.
pub(super) const VECTORS: i64 = 4;
/// There are at least so many batches.
const BATCHES: i64 = 4;
/// More threads are worth more than the near cache: batches come one after another.
const THREADS: usize = 2;

/// The stages of one loop over batches.
pub(super) struct Members {
    /// What is computed at points, producers first.
    pub(super) at_points: Vec<StageId>,
    /// What sums over points.
    pub(super) sums: Vec<StageId>,
}

/// The stages that may be computed batch by batch, should nothing better be found.
pub(in crate::schedule) fn candidates(s: &Schedule, machine: &Machine) -> Vec<StageId> {
    let found = extents(s, machine).into_iter().filter_map(|n| members(s, n, machine, &[]));
    found.flat_map(|m| m.at_points.into_iter().chain(m.sums)).collect()
}

/// How many points sums are over, where batches of them are worth it at all.
pub(super) fn extents(s: &Schedule, machine: &Machine) -> Vec<Body> {
    let sums = s.graph.ids().filter(|p| machine.threads <= THREADS && is_sum(s, *p));
    distinct(sums.map(|p| s.graph.dim(s.graph.stage(p).over()[0]).extent))
}

pub(super) fn known_extent(s: &Schedule, d: DimId) -> Option<i64> {
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

/// Whether a stage has lanes of its own, and reads what lies there already: others would be far from each other.
fn has_own_lanes(s: &Schedule, stage: StageId, at_points: &[StageId]) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let lies = |from: Source| from.stage().is_none_or(|p| !at_points.contains(&p));
    orders::is_strided(g, known) && g.reads(known.bodies()).into_iter().any(lies)
}

/// What is computed at so many points and read by sums over them and by nothing else, where its tables would not stay in a near
/// cache.
pub(super) fn members(s: &Schedule, n: Body, machine: &Machine, decided: &[StageId]) -> Option<Members> {
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
            if has_own_lanes(s, *p, &at_points) {
                return false;
            }
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
pub(super) fn leaves(s: &Schedule, p: StageId, at_points: &[StageId], sums: &[StageId]) -> bool {
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
pub(super) fn table_bytes(s: &Schedule, m: &Members) -> Option<i64> {
    m.at_points.iter().map(|p| row_bytes(s, *p, m)).sum()
}

/// The only stage that reads a table, where it does so at its own index of the second dimension, too: what it reads is there for
/// one index at a time.
pub(super) fn reader(s: &Schedule, p: StageId, m: &Members) -> Option<StageId> {
    let [r] = s.consumers(p) else { return None };
    let (g, known) = (&s.graph, s.graph.stage(*r));
    let second = known.dims.get(1).filter(|_| m.at_points.contains(r) && !s.is_output(p))?;
    let own = |at: &Vec<Body>| at.get(1).is_some_and(|i| *g.bodies.node(*i) == Node::Index(*second));
    (g.stage(p).dims.len() > 1 && s.graph.loads_of(p, *r).iter().all(own)).then_some(*r)
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
