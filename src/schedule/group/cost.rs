//! What it costs to compute stages in tiles of a head: cycles of what is computed, some of it twice, and of bytes on their way
//! between caches. It must not know which steps a tile becomes.

use super::members::{Group, Level, Tiles, has_pixels, rows_of};
use crate::ir::Scalar;
use crate::ir::op::Class;
use crate::schedule::access::apart;
use crate::schedule::footprint::{ASSUMED, Axis, points};
use crate::schedule::tiling::{along_last, lanes};
use crate::stage::{Body, Definition, Node, Source, StageId};

/// Rows and columns of tiles, and iterations of strips where there is one dimension.
const ROWS: [i64; 2] = [32, 64];
const COLUMNS: [i64; 3] = [64, 128, 256];
/// Pixels of a part of a row.
const PART: i64 = 64;
/// Vectors in a row of a tile: compilers make text of so few, and more would not make rows longer that are in the cache.
const ACROSS: i64 = 8;
const STRIPS: [i64; 3] = [1024, 2048, 4096];
/// Cycles that a byte costs to be written and read back: from the second cache, from a thread's part of the last one, and from
/// memory.
const NEAR: f64 = 0.03;
const SHARED: f64 = 0.05;
const FAR: f64 = 0.15;
/// Cycles that a byte costs more to be moved from or to memory where rows are cut: what is asked for ahead is then not what
/// comes next. A tile of `harris` takes as much longer, whether its rows are 64 or 512 pixels.
const CUT: f64 = 0.2;
/// How many times as long a stage takes that reads at clamped indices, where its rows are cut: their ends are in every part.
const ENDS: f64 = 1.5;
/// Columns of an array for which nobody gives an estimate: half of the last tile is computed twice.
const WIDE: f64 = 2048.0;

impl Group<'_> {
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

    /// Whether a stage reads at indices that are clamped along its last dimension.
    fn is_clamped(&self, of: StageId) -> bool {
        let g = &self.s.graph;
        let Some(last) = g.stage(of).dims.last() else { return false };
        let clamped = |i: &Body| g.bodies.dims(*i).contains(last) && g.bodies.unclamped(*i) != Some(*i);
        let loads = |b: &Body| matches!(g.bodies.node(*b), Node::Load(_, _, at) if at.iter().any(clamped));
        g.bodies.reachable(g.stage(of).bodies()).iter().any(loads)
    }

    /// Bytes that come from memory for an element of a stage, where the group computes nothing of it.
    fn incoming(&self, of: StageId) -> f64 {
        let g = &self.s.graph;
        let mut from: Vec<Source> = vec![];
        let mut bytes = 0.0;
        for b in g.bodies.reachable(g.stage(of).bodies()) {
            let Node::Load(source, _, _) = g.bodies.node(b) else { continue };
            let inside = |p: &StageId| *p == self.head || self.members.iter().any(|(m, _)| m == p);
            if !from.contains(source) && !matches!(source, Source::Stage(p, _) if inside(p)) {
                from.push(*source);
                bytes += f64::from(g.bodies.ty(b).bytes());
            }
        }
        bytes * apart(self.s, of).unwrap_or(1) as f64
    }

    /// What a stage costs for a point of the head where it is computed whole.
    pub(super) fn alone(&mut self, p: StageId) -> f64 {
        let density: f64 = self.prints.get(p).iter().map(Axis::density).product();
        density * (self.cycles(p) + FAR * self.bytes(p))
    }

    /// How many indices the dimensions of the head have, where that is known.
    fn extents(&self) -> Vec<Option<i64>> {
        let g = &self.s.graph;
        g.stage(self.head).dims.iter().map(|d| g.bodies.as_int(g.dim(*d).extent)).collect()
    }

    /// The tiles that are tried.
    fn sizes(&self) -> Vec<Tiles> {
        // A tile of accumulators has sizes of its own; what it reads is computed for rows of such tiles.
        if self.has_sum() {
            return vec![Tiles::default()];
        }
        let own = |level: &Level| !matches!(level, Level::There);
        let members = || self.members.iter().filter(|(_, level)| own(level)).map(|(p, _)| *p).chain([self.head]);
        let lanes = i64::from(lanes(self.s, self.head, self.machine));
        let by_rows = self.any_by_rows();
        let (extents, y) = (self.extents(), rows_of(self.s, self.head));
        let rank = extents.len();
        let fit = |all: &[i64], k: usize| {
            let n = extents[k].unwrap_or(i64::MAX);
            all.iter().copied().filter(|size| 2 * size <= n).collect::<Vec<i64>>()
        };
        let [mut rows, mut columns] = match rank {
            // Rows are reduced in the lanes of vectors, and stay in the nearest cache until all is done with them.
            1 if by_rows => [vec![], fit(&[lanes], 0)],
            1 => [vec![], fit(&STRIPS, 0)],
            _ if by_rows => [fit(&[lanes], rank - 2), vec![]],
            _ if has_pixels(self.s, self.head) => [fit(&ROWS, y), vec![]],
            _ if members().all(|p| self.near(p)) => [fit(&ROWS, y), fit(&[ACROSS * lanes], y + 1)],
            _ => [fit(&ROWS, y), fit(&COLUMNS, y + 1)],
        };
        // Strips of whole rows, where it is known how long these are.
        if columns.is_empty() || !rows.is_empty() && extents[rank - 1].is_some() {
            columns.push(0);
        }
        if rows.is_empty() || has_pixels(self.s, self.head) {
            rows.push(0);
        }
        let parts = if has_pixels(self.s, self.head) { fit(&[PART], y + 1) } else { vec![] };
        let tiles = |rows: i64| {
            let whole = columns.iter().map(move |columns| Tiles { rows, columns: *columns, part: 0 });
            whole.chain(parts.iter().map(move |part| Tiles { rows, columns: 0, part: *part }))
        };
        rows.iter().flat_map(|rows| tiles(*rows)).collect()
    }

    /// The tiles for which all stages cost least, and what they cost for a point of the head.
    pub(super) fn best(&mut self) -> Option<(f64, Tiles)> {
        let mut best: Option<(f64, Tiles)> = None;
        for tiles in self.sizes() {
            if self.members.iter().any(|(_, level)| level.place(self.s, self.head, tiles).is_none()) {
                continue;
            }
            let cost = self.cost(tiles);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, tiles));
            }
        }
        best
    }

    /// How many iterations of each dimension of the head a tile has.
    fn tile(&self, tiles: Tiles) -> Vec<f64> {
        let (extents, y) = (self.extents(), rows_of(self.s, self.head));
        let mut tile: Vec<f64> = extents.iter().map(|n| n.map_or(ASSUMED, |n| n as f64)).collect();
        tile[..y].fill(1.0);
        match (extents.len() > 1).then_some(y) {
            Some(y) if tiles.rows > 0 => tile[y] = tiles.rows as f64,
            Some(y) if has_pixels(self.s, self.head) => tile[y] = 1.0,
            _ => {}
        }
        if let Some(last) = tile.last_mut().filter(|_| tiles.columns > 0) {
            *last = tiles.columns as f64;
        }
        tile
    }

    /// How many iterations of each dimension of the head are computed at once, where that is done row by row.
    fn line(&self, tiles: Tiles) -> Vec<f64> {
        let (mut line, y) = (self.tile(tiles), rows_of(self.s, self.head));
        line[y] = 1.0;
        if tiles.part > 0 {
            line[y + 1] = tiles.part as f64;
        }
        line
    }

    /// Whether a stage is computed row by row in strips of whole rows: no two rows of the head need the same of it.
    pub(super) fn is_line(&self, p: StageId, tiles: Tiles) -> bool {
        let rank = self.s.graph.stage(self.head).dims.len();
        let (y, ones) = (rows_of(self.s, self.head), vec![1.0; rank]);
        let strips = rank > 1 && (tiles.rows > 0 || tiles.part > 0) && tiles.columns == 0;
        let is = |q: StageId, level: Level| self.members.contains(&(q, level));
        let own = matches!(self.members.iter().find(|(m, _)| *m == p), Some((_, Level::Tile(d))) if *d >= y);
        let moves = |a: &&Axis| a.along[y] != 0.0;
        let one = self.prints.get(p).iter().filter(moves).all(|a| a.extent(&ones) == 1.0);
        let last = |r: &StageId| *r == self.head || is(*r, Level::Row) || is(*r, Level::Pixel);
        let late = |r: &StageId| last(r) || self.is_line(*r, tiles);
        // Rows of a recurrence take their steps together.
        let steps = matches!(self.s.graph.stage(p).def, Definition::Recur { .. });
        strips && own && one && !steps && !self.any_by_rows() && self.s.consumers(p).iter().all(late)
    }

    /// What the members cost for a point of the head.
    fn cost(&mut self, tiles: Tiles) -> f64 {
        let tile = self.tile(tiles);
        let line = self.line(tiles);
        let lines: Vec<StageId> = self.members.iter().map(|(p, _)| *p).filter(|p| self.is_line(*p, tiles)).collect();
        let whole = |p: &StageId| !lines.contains(p);
        let elements = |axes: &[Axis], tile: &[f64]| axes.iter().map(|a| a.extent(tile)).product::<f64>();
        let kept = |of: bool, tile: &[f64]| -> f64 {
            let own = |(p, level): &&(StageId, Level)| matches!(level, Level::Tile(_)) && whole(p) == of;
            let all = self.members.iter().filter(own);
            all.map(|(p, _)| elements(self.prints.get(*p), tile) * self.bytes(*p)).sum()
        };
        let far =
            |bytes: f64, tile: &[f64]| self.far(bytes + 2.0 * tile.iter().product::<f64>() * self.bytes(self.head));
        let (in_tile, in_line) = (far(kept(true, &tile), &tile), far(kept(false, &line), &line));
        // Of sizes that are not known, tiles are all there is.
        let known = self.extents().iter().all(Option::is_some);
        let cut = if known && tile.len() > 1 && tiles.columns > 0 { CUT } else { 0.0 };
        let mut sum = self.cycles(self.head) + cut * (self.bytes(self.head) + self.incoming(self.head));
        for (p, level) in self.members.clone() {
            if matches!(level, Level::There | Level::Sum) {
                continue;
            }
            let (tile, byte) = if whole(&p) { (&tile, in_tile) } else { (&line, in_line) };
            let axes = self.prints.get(p);
            let moving: f64 = axes
                .iter()
                .flat_map(|a| &a.along)
                .zip(tile.iter().cycle())
                .filter(|(c, _)| **c != 0.0)
                .map(|(_, n)| n)
                .product();
            let count = elements(axes, tile) / moving;
            let byte = if matches!(level, Level::Row | Level::Pixel) { 0.0 } else { byte };
            let ends = if tiles.columns + tiles.part > 0 && self.is_clamped(p) { ENDS } else { 1.0 };
            sum += count * (self.cycles(p) * ends + byte * self.bytes(p) + cut * self.incoming(p));
        }
        let (rows, columns) = (tiles.rows as f64, if tile.len() > 1 { tiles.columns as f64 } else { 0.0 });
        sum * (1.0 + (columns + rows / 2.0) / WIDE) * self.waits(tiles) - self.cycles(self.head)
    }

    /// Cycles that a byte costs to be written and read back, where so many are in between.
    fn far(&self, bytes: f64) -> f64 {
        let [l1, l2, l3] = self.machine.caches.map(|bytes| bytes as f64);
        match () {
            () if bytes <= l1 => 0.0,
            () if bytes <= l2 / 2.0 => NEAR,
            () if bytes <= l3 / (2 * self.machine.threads.max(1)) as f64 => SHARED,
            () => FAR,
        }
    }

    /// How many times as long all tiles take as they would if all threads had as many of them.
    fn waits(&self, tiles: Tiles) -> f64 {
        let (extents, y) = (self.extents(), rows_of(self.s, self.head));
        let parts = |k: usize, size: i64| match extents[k] {
            Some(n) if size > 0 => (n as f64 / size as f64).ceil(),
            _ => 1.0,
        };
        let last = extents.len() - 1;
        let outer: Option<f64> = extents[..y].iter().map(|n| n.map(|n| n as f64)).product();
        let known = extents[y].is_some() || tiles.rows == 0;
        let Some(outer) = outer.filter(|_| known) else { return 1.0 };
        let tasks = outer * if last > 0 { parts(y, tiles.rows) } else { 1.0 } * parts(last, tiles.columns);
        let threads = self.machine.threads.max(1) as f64;
        if tasks > 1.0 { (tasks / threads).ceil() * threads / tasks } else { 1.0 }
    }
}
