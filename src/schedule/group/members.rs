//! What a group is: a head, how it is cut, the stages that are computed in its loops, and which of these each may join.
//! It must not know what that costs, nor which steps it becomes.

use crate::machine::Machine;
use crate::schedule::access::{CHANNELS, has_lanes};
use crate::schedule::footprint::{Footprints, points};
use crate::schedule::plan::{Schedule, Site};
use crate::schedule::product::is_product;
use crate::schedule::tiling::FEW;
use crate::schedule::{orders, sums};
use crate::stage::{Definition, StageId};
use rustc_hash::FxHashMap;

/// Where a stage is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// In the loop over vectors of the head.
    Row,
    /// In the loop over pixels of the head: the channels of one are in registers.
    Pixel,
    /// In the loop over tiles of a dimension of the head.
    Tile(usize),
    /// In the loop over the rows of a strip: what one row needs is needed by no other.
    Line,
    /// Where it is already: one element at a time, in a register.
    There,
    /// In the loop over tiles of accumulators, which the head shares with it.
    Sum,
}

/// How a head is cut; 0 is not cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tiles {
    /// Rows and columns of its tiles.
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Pixels of the parts of a row that are computed one after another.
    pub(super) part: i64,
}

/// Stages, readers first, and where each is computed.
pub(super) type Members = Vec<(StageId, Level)>;

/// What is computed in tiles of a stage.
pub(super) struct Group<'a> {
    pub(super) s: &'a Schedule,
    pub(super) head: StageId,
    pub(super) prints: Footprints,
    pub(super) members: Members,
    /// Cycles of an element, by stage.
    pub(super) cycles: FxHashMap<StageId, f64>,
    pub(super) machine: &'a Machine,
    /// Whether a product may share a tile of accumulators with the head.
    pub(super) sums: bool,
}

/// Whether the last dimension of a stage are a few channels of pixels: its rows are those of pixels.
pub(super) fn has_pixels(s: &Schedule, of: StageId) -> bool {
    let g = &s.graph;
    let [_, _, last] = g.stage(of).dims.as_slice() else { return false };
    g.bodies.as_int(g.dim(*last).extent).is_some_and(|n| n <= CHANNELS)
}

/// The place of the dimension of a stage that its rows are of.
pub(super) fn rows_of(s: &Schedule, of: StageId) -> usize {
    s.graph.stage(of).dims.len().saturating_sub(2 + usize::from(has_pixels(s, of)))
}

impl Level {
    /// The place of a loop of the head, counted from the outermost, where a stage is computed; vectors are counted later.
    pub(super) fn place(self, s: &Schedule, head: StageId, tiles: Tiles) -> Option<usize> {
        let (rank, y) = (s.graph.stage(head).dims.len(), rows_of(s, head));
        match self {
            Level::Row | Level::There | Level::Sum => Some(usize::MAX),
            Level::Pixel => Some(y + 1 + usize::from(tiles.rows > 0) + usize::from(tiles.part > 0)),
            Level::Line => Some(y + usize::from(tiles.rows > 0) + usize::from(tiles.part > 0)),
            Level::Tile(d) if d < y => Some(d),
            Level::Tile(_) if has_pixels(s, head) => Some(y),
            Level::Tile(d) => {
                let tiled = usize::from(rank > 1 && tiles.rows > 0) + usize::from(d + 1 == rank && tiles.columns > 0);
                (y + tiled).checked_sub(1)
            }
        }
    }
}

impl Group<'_> {
    /// Where a stage would be computed, if it can join.
    pub(super) fn level(&self, p: StageId) -> Option<Level> {
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
        let own = axes.len() == rank && axes.iter().enumerate().all(|(k, a)| a.follows(k));
        if !in_sums && self.is_pixel(p) && readers == [self.head] {
            return Some(Level::Pixel);
        }
        let head = s.graph.stage(self.head);
        let vectors = matches!(head.def, Definition::Pure(_)) && self.near(self.head) && self.near(p);
        Some(if !in_sums && own && vectors && readers.iter().all(row) { Level::Row } else { Level::Tile(last) })
    }

    /// Whether a pixel of the head needs all channels of the same pixel of a stage.
    fn is_pixel(&self, p: StageId) -> bool {
        let [y, x, c] = self.prints.get(p) else { return false };
        let pure = |of: StageId| matches!(self.s.graph.stage(of).def, Definition::Pure(_)) && has_pixels(self.s, of);
        pure(self.head) && pure(p) && y.follows(0) && x.follows(1) && c.whole.is_some()
    }

    /// Whether a product shares a tile of accumulators with the head.
    pub(super) fn has_sum(&self) -> bool {
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
    pub(super) fn by_rows(&self, of: StageId) -> bool {
        points(self.s, of).is_none_or(|n| n > FEW)
    }

    /// Whether the head or one of its members does.
    pub(super) fn any_by_rows(&self) -> bool {
        self.members.iter().map(|(p, _)| *p).chain([self.head]).any(|p| self.by_rows(p))
    }

    /// Whether loops over the last dimension of a stage become vectors.
    pub(super) fn near(&self, of: StageId) -> bool {
        let stage = self.s.graph.stage(of);
        stage.dims.last().is_some_and(|d| has_lanes(&self.s.graph, stage, *d))
    }
}
