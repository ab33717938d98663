//! Stages that are computed together in the default schedule: in each tile of one stage, the head, what it needs of others.
//!
//! After Mullapudi et al. (2016), but decided greedily and by footprints alone, since sizes are symbols: from each stage that
//! is computed whole, what it reads joins it one by one, as long as computing the edges of tiles again costs less than
//! writing all elements to memory and reading them back. What is read only where it is computed is kept in registers, a few
//! vectors at a time. It must not know what kernels there are, nor how loops become text.

use super::access::{coefficient, strides};
use super::attempt::{name, take};
use super::footprint::{ASSUMED, Axis, Footprints, points};
use super::plan::{Kind, Schedule, Site};
use super::product::is_product;
use super::step::Step;
use super::tiling::{FEW, Tiling, along_last, lanes};
use super::{along, chains, orders, sums};
use crate::ir::Scalar;
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::stage::{Definition, DimId, Node, StageId};
use rustc_hash::FxHashMap;

/// Rows and columns of tiles, and iterations of strips where there is one dimension.
const ROWS: [i64; 2] = [32, 64];
const COLUMNS: [i64; 3] = [64, 128, 256];
/// Vectors in a row of a tile: compilers make text of so few, and more would not make rows longer that are in the cache.
const ACROSS: i64 = 8;
const STRIPS: [i64; 3] = [1024, 2048, 4096];
/// Cycles that a byte costs to be written to memory and read back: from the second cache, and from those after it.
const NEAR: f64 = 0.03;
const FAR: f64 = 0.15;
/// Columns of an array for which nobody gives an estimate: half of the last tile is computed twice.
const WIDE: f64 = 2048.0;
/// Vectors of a row that stays in registers.
const VECTORS: i64 = 4;
/// Channels of pixels, which compilers take apart in vectors.
const CHANNELS: i64 = 4;
/// Stages of a group; more would only make more edges.
const MOST: usize = 12;

/// Where a stage is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// In the loop over vectors of the head.
    Row,
    /// In the loop over tiles of a dimension of the head.
    Tile(usize),
    /// Where it is already: one element at a time, in a register.
    There,
    /// In the loop over tiles of accumulators, which the head shares with it.
    Sum,
}

/// Stages, readers first, and where each is computed.
type Members = Vec<(StageId, Level)>;

/// What is computed in tiles of a stage.
struct Group<'a> {
    s: &'a Schedule,
    head: StageId,
    prints: Footprints,
    members: Members,
    /// Cycles of an element, by stage.
    cycles: FxHashMap<StageId, f64>,
    machine: &'a Machine,
    /// Whether a product may share a tile of accumulators with the head.
    sums: bool,
}

/// Computes stages in tiles of those that read them; gives all stages whose loops are decided, those that were before among
/// them.
pub(super) fn choose(s: &mut Schedule, machine: &Machine, decided: &[StageId]) -> Vec<StageId> {
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
            let Some((members, blocks)) = found(s, *head, (&order[..at], &decided), machine, sums) else { break };
            let before = s.before();
            if let Some(done) = apply(s, *head, &members, blocks, machine) {
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
) -> Option<(Members, [i64; 2])> {
    let cycles = FxHashMap::default();
    let mut group = Group { s, head, prints: Footprints::new(s, head), members: vec![], cycles, machine, sums };
    let mut best = (f64::INFINITY, [0, 0]);
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
    (best.0.is_finite() || group.has_sum()).then_some((group.members, best.1))
}

impl Group<'_> {
    /// Where a stage would be computed, if it can join.
    fn level(&self, p: StageId) -> Option<Level> {
        let (s, known) = (self.s, self.s.graph.stage(p));
        let inside = |r: &StageId| *r == self.head || self.members.iter().any(|(m, _)| m == r);
        // Its tile decides the sizes for all that join later.
        if self.sums && self.members.is_empty() && sums::stay(s, p, self.head, self.machine) {
            return Some(Level::Sum);
        }
        let in_sums = self.has_sum();
        if !in_sums && self.in_row(p) {
            return Some(Level::Row);
        }
        // Windows of elements would be computed again for each element of the head.
        let ones = vec![1.0; s.graph.stage(self.head).dims.len()];
        let window =
            matches!(known.def, Definition::Pure(_)) && self.prints.get(p).iter().any(|a| a.extent(&ones) > 1.0);
        if let Site::At(host, of) = &s.plan(p).site
            && !window
            && !in_sums
            && inside(host)
            && (s.plan(*host).find(of).is_ok_and(|at| at + 1 >= s.graph.stage(*host).dims.len())
                || orders::is_strided(&s.graph, known))
        {
            return Some(Level::There);
        }
        let alone = is_product(s, p, self.machine) || orders::is_strided(&s.graph, known);
        let free = !s.is_output(p) && known.checks.is_empty() && !alone;
        let readers = s.consumers(p);
        if !free || readers.is_empty() || !readers.iter().all(inside) {
            return None;
        }
        let (axes, rank) = (self.prints.get(p), s.graph.stage(self.head).dims.len());
        let by_rows = self.by_rows(p);
        let moves = |d: usize| axes.iter().filter(|a| a.along[d] != 0.0).count();
        let single = axes.iter().all(|a| a.along.iter().filter(|c| **c != 0.0).count() <= 1);
        let last = (0..rank).rev().find(|d| moves(*d) > 0)?;
        // What does not move with an outer loop would be computed in each of its iterations.
        if !single || (0..=last).any(|d| moves(d) != 1) || by_rows && rank > 1 && last + 1 == rank {
            return None;
        }
        let row = |r: &StageId| *r == self.head || self.members.contains(&(*r, Level::Row));
        let own = axes.len() == rank && axes.iter().enumerate().all(|(k, a)| a.is_own(k));
        let head = s.graph.stage(self.head);
        let vectors = matches!(head.def, Definition::Pure(_)) && self.near(self.head) && self.near(p);
        Some(if !in_sums && own && vectors && readers.iter().all(row) { Level::Row } else { Level::Tile(last) })
    }

    /// Whether a product shares a tile of accumulators with the head.
    fn has_sum(&self) -> bool {
        self.members.iter().any(|(_, level)| *level == Level::Sum)
    }

    /// Whether a short sum for one element of the head can be computed in vectors for those of a row.
    fn in_row(&self, p: StageId) -> bool {
        let (s, known) = (self.s, self.s.graph.stage(p));
        let head = s.graph.stage(self.head);
        let here = matches!(&s.plan(p).site, Site::At(host, _) if *host == self.head);
        let plain =
            !s.is_output(p) && known.checks.is_empty() && known.dims == head.dims && s.consumers(p) == [self.head];
        let sum = !known.over().is_empty() && !self.by_rows(p);
        let empty = !s.graph.ids().any(|q| s.inside(q, p).is_some());
        let vectors = matches!(head.def, Definition::Pure(_)) && self.near(self.head) && self.near(p);
        here && plain && sum && empty && vectors
    }

    /// Whether a stage reduces whole rows.
    fn by_rows(&self, of: StageId) -> bool {
        points(self.s, of).is_none_or(|n| n > FEW)
    }

    fn near(&self, of: StageId) -> bool {
        let stage = self.s.graph.stage(of);
        stage.dims.last().is_some_and(|d| strides(&self.s.graph, stage, *d))
    }

    /// Bytes of an element.
    fn bytes(&self, of: StageId) -> f64 {
        self.s.graph.stage(of).tys.iter().map(|ty| f64::from(ty.bytes())).sum()
    }

    /// Cycles that an element takes.
    fn cycles(&mut self, of: StageId) -> f64 {
        if let Some(known) = self.cycles.get(&of) {
            return *known;
        }
        let (s, mut sum) = (self.s, 0.0);
        let bodies = &s.graph.bodies;
        for b in bodies.reachable(s.graph.stage(of).bodies()) {
            sum += match bodies.node(b) {
                Node::Op(op, ty, _) if *ty != Scalar::I64 => match op.row().class {
                    Class::Cheap | Class::Multiply => 0.5,
                    Class::Divide => 3.0,
                    Class::Transcendental => 20.0,
                },
                Node::Load(..) | Node::If(_) | Node::Cast(..) => 0.5,
                _ => 0.0,
            };
        }
        let wide = along_last(s, of, self.machine).0 as f64;
        let step = if self.near(of) { Some(1) } else { apart(s, of) };
        let lanes = match step {
            Some(step) => (wide / step as f64).max(1.0),
            None => 1.0,
        };
        let all = sum * points(s, of).unwrap_or(1) as f64 / lanes;
        self.cycles.insert(of, all);
        all
    }

    /// What a stage costs for a point of the head where it is computed whole.
    fn alone(&mut self, p: StageId) -> f64 {
        let density: f64 = self.prints.get(p).iter().map(Axis::density).product();
        density * (self.cycles(p) + FAR * self.bytes(p))
    }

    /// How many indices the dimensions of the head have, where that is known.
    fn extents(&self) -> Vec<Option<i64>> {
        let g = &self.s.graph;
        g.stage(self.head).dims.iter().map(|d| g.bodies.as_int(g.dim(*d).extent)).collect()
    }

    /// The rows and columns of tiles that are tried; 0 is no tiles.
    fn sizes(&self) -> [Vec<i64>; 2] {
        // A tile of accumulators has sizes of its own; what it reads is computed for rows of such tiles.
        if self.has_sum() {
            return [vec![0], vec![0]];
        }
        let own = |level: &Level| !matches!(level, Level::There);
        let members = || self.members.iter().filter(|(_, level)| own(level)).map(|(p, _)| *p).chain([self.head]);
        let lanes = i64::from(lanes(self.s, self.head, self.machine));
        let (by_rows, near) = (
            self.members.iter().map(|(p, _)| *p).chain([self.head]).any(|p| self.by_rows(p)),
            members().all(|p| self.near(p)),
        );
        let extents = self.extents();
        let [rows, columns] = match extents.len() {
            // Rows are reduced in the lanes of vectors, and stay in the nearest cache until all is done with them.
            1 if by_rows => [vec![], vec![lanes]],
            1 => [vec![], STRIPS.to_vec()],
            _ if by_rows => [vec![lanes], vec![]],
            _ if near => [ROWS.to_vec(), vec![ACROSS * lanes]],
            _ => [ROWS.to_vec(), COLUMNS.to_vec()],
        };
        let fit = |all: Vec<i64>, k: Option<usize>| {
            let n = k.and_then(|k| extents[k]).unwrap_or(i64::MAX);
            let fit: Vec<i64> = all.into_iter().filter(|size| 2 * size <= n).collect();
            if fit.is_empty() { vec![0] } else { fit }
        };
        let rank = extents.len();
        [fit(rows, rank.checked_sub(2)), fit(columns, rank.checked_sub(1))]
    }

    /// The tile for which all stages cost least, and what they cost for a point of the head.
    fn best(&mut self) -> Option<(f64, [i64; 2])> {
        let (extents, sizes) = (self.extents(), self.sizes());
        let rank = extents.len();
        let [rows, columns] = sizes;
        let mut best: Option<(f64, [i64; 2])> = None;
        for blocks in rows.iter().flat_map(|r| columns.iter().map(move |c| [*r, *c])) {
            let mut tile = vec![1.0; rank];
            for (k, size) in (0..rank).rev().zip([blocks[1], blocks[0]]) {
                tile[k] = if size > 0 { size as f64 } else { extents[k].map_or(ASSUMED, |n| n as f64) };
            }
            if self.members.iter().any(|(_, level)| at(*level, rank, blocks).is_none()) {
                continue;
            }
            let cost = self.cost(&tile, blocks);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, blocks));
            }
        }
        best
    }

    /// What the members cost for a point of the head.
    fn cost(&mut self, tile: &[f64], blocks: [i64; 2]) -> f64 {
        let elements = |axes: &[Axis]| axes.iter().map(|a| a.extent(tile)).product::<f64>();
        let kept: f64 = self
            .members
            .iter()
            .filter(|(_, level)| matches!(level, Level::Tile(_)))
            .map(|(p, _)| elements(self.prints.get(*p)) * self.bytes(*p))
            .sum();
        let all = kept + 2.0 * tile.iter().product::<f64>() * self.bytes(self.head);
        let [l1, l2, _] = self.machine.caches.map(|bytes| bytes as f64);
        let byte = match () {
            () if all <= l1 => 0.0,
            () if all <= l2 / 2.0 => NEAR,
            () => FAR,
        };
        let mut sum = self.cycles(self.head);
        for (p, level) in self.members.clone() {
            if matches!(level, Level::There | Level::Sum) {
                continue;
            }
            let axes = self.prints.get(p);
            let moving: f64 = axes
                .iter()
                .flat_map(|a| &a.along)
                .zip(tile.iter().cycle())
                .filter(|(c, _)| **c != 0.0)
                .map(|(_, n)| n)
                .product();
            let count = elements(axes) / moving;
            let byte = if level == Level::Row { 0.0 } else { byte };
            sum += count * (self.cycles(p) + byte * self.bytes(p));
        }
        let (rows, columns) = (blocks[0] as f64, if tile.len() > 1 { blocks[1] as f64 } else { 0.0 });
        sum * (1.0 + (columns + rows / 2.0) / WIDE) - self.cycles(self.head)
    }
}

/// How far apart in memory the elements are that a stage reads at neighbouring indices of a dimension, where loops over it
/// become vectors: next to each other but where indices are clamped, or one of a few channels.
pub(super) fn apart_along(s: &Schedule, of: StageId, d: DimId) -> Option<i64> {
    let (g, stage) = (&s.graph, s.graph.stage(of));
    let mut each = g.bodies.reachable(stage.bodies()).into_iter().map(|b| {
        let Node::Load(from, _, at) = g.bodies.node(b) else { return Some(1) };
        let moves: Vec<usize> = (0..at.len()).filter(|k| g.bodies.dims(at[*k]).contains(&d)).collect();
        match moves.as_slice() {
            [] => Some(1),
            [k] => {
                let step = coefficient(g, g.bodies.unclamped(at[*k])?, d)?;
                let inner = g.extents(*from).split_off(k + 1).into_iter().map(|n| g.bodies.as_int(n));
                inner.product::<Option<i64>>().and_then(|n| n.checked_mul(step)).filter(|n| (1..=CHANNELS).contains(n))
            }
            _ => None,
        }
    });
    each.try_fold(1, |most, step| Some(most.max(step?)))
}

/// As [`apart_along`] of the last dimension.
pub(super) fn apart(s: &Schedule, of: StageId) -> Option<i64> {
    apart_along(s, of, *s.graph.stage(of).dims.last()?)
}

/// The place of a loop of the head, counted from the outermost, where a stage is computed; vectors are counted later.
fn at(level: Level, rank: usize, blocks: [i64; 2]) -> Option<usize> {
    let outer = rank.saturating_sub(2);
    match level {
        Level::Row | Level::There | Level::Sum => Some(usize::MAX),
        Level::Tile(d) if d < outer => Some(d),
        Level::Tile(d) => {
            let tiled = usize::from(rank > 1 && blocks[0] > 0) + usize::from(d + 1 == rank && blocks[1] > 0);
            (outer + tiled).checked_sub(1)
        }
    }
}

/// Takes the steps; gives the stages whose loops are decided by them.
fn apply(
    s: &mut Schedule,
    head: StageId,
    members: &[(StageId, Level)],
    block: [i64; 2],
    machine: &Machine,
) -> Option<Vec<StageId>> {
    let members = || members.iter().filter(|(_, level)| *level != Level::There);
    for (p, _) in members().filter(|(_, level)| *level != Level::Sum) {
        let step = Step::ComputeRoot { stage: name(s, *p) };
        take(s, step);
    }
    let rank = s.graph.stage(head).dims.len();
    let in_rows = members().any(|(_, level)| *level == Level::Row);
    let sum = members().find(|(_, level)| *level == Level::Sum).map(|(p, _)| *p);
    let own = match sum {
        Some(p) => sums::tiling(s, p, machine),
        None if in_rows => Tiling { vectors: VECTORS, ..Tiling::plain() },
        None => inner(s, head),
    };
    let mut decided = vec![head];
    match sum {
        Some(p) => {
            own.apply(s, head, machine).ok()?;
            decided.push(p);
            decided.extend(sums::run(s, p, head, own, machine)?);
        }
        None => run(s, head, Tiling { block, ..own }, machine)?,
    }
    for (p, level) in members().filter(|(_, level)| *level != Level::Sum) {
        let plan = s.plan(head);
        let lanes = plan.loops.iter().position(|l| l.kind != Kind::Serial);
        let Some(place) =
            at(*level, rank, block).and_then(|k| if k == usize::MAX { lanes?.checked_sub(1) } else { Some(k) })
        else {
            continue;
        };
        let Some(host) = plan.loops.get(place).map(|l| l.name.clone()) else { continue };
        let step = Step::ComputeAt { stage: name(s, *p), reader: name(s, head), at: host };
        if take(s, step) {
            let own = if *level == Level::Row { Tiling { vectors: VECTORS, ..Tiling::plain() } } else { inner(s, *p) };
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
    let near = known.dims.last().is_some_and(|d| strides(&s.graph, known, *d));
    match &known.def {
        _ if !near => Tiling { vectors: 0, ..Tiling::plain() },
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
