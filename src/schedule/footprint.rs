//! What a tile of one stage needs of another: a box whose sides grow with those of the tile.
//!
//! Indices become linear forms of the dimensions of the one stage, the head. Where an index is clamped it moves with the
//! tile, but for the ends. These are sizes to decide by; what is computed in the end is found from bounds when loops are made
//! (`lower/region.rs`), and nothing here is a proof.

use super::access::CHANNELS;
use super::plan::Schedule;
use crate::ir::Op;
use crate::stage::{Body, DimId, Node, Source, StageId};
use rustc_hash::FxHashMap;

/// The indices of one axis, over a tile of the head.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// How far they move with each dimension of the head.
    pub along: Vec<f64>,
    /// The least and the greatest of them where the tile begins at 0, but for the base.
    pub ends: [f64; 2],
    /// What is added to all of them, of symbols.
    base: Vec<(Body, f64)>,
    /// How many there are, where it is all of them, wherever the tile is.
    pub whole: Option<f64>,
}

/// How many indices an axis has where nobody knows.
pub const ASSUMED: f64 = 512.0;

impl Axis {
    fn constant(rank: usize, at: f64) -> Axis {
        Axis { along: vec![0.0; rank], ends: [at, at], base: vec![], whole: None }
    }

    /// The same index as that of a dimension of the head.
    fn own(rank: usize, k: usize) -> Axis {
        let mut out = Axis::constant(rank, 0.0);
        out.along[k] = 1.0;
        out
    }

    fn add(&mut self, other: &Axis, times: f64) {
        self.along.iter_mut().zip(&other.along).for_each(|(own, c)| *own += times * c);
        let [lo, hi] = other.ends.map(|e| times * e);
        self.ends = [self.ends[0] + lo.min(hi), self.ends[1] + lo.max(hi)];
        for (b, c) in &other.base {
            match self.base.iter_mut().find(|(own, _)| own == b) {
                Some((_, own)) => *own += times * c,
                None => self.base.push((*b, times * c)),
            }
        }
        self.base.retain(|(_, c)| *c != 0.0);
        self.base.sort_by_key(|(b, _)| *b);
    }

    fn whole(rank: usize, n: Option<i64>) -> Axis {
        Axis { whole: Some(n.map_or(ASSUMED, |n| n as f64)), ..Axis::constant(rank, 0.0) }
    }

    /// Both, where they move alike.
    fn with(&self, other: &Axis) -> Option<Axis> {
        if let Some(all) = [self, other].into_iter().find(|a| a.whole.is_some()) {
            return Some(all.clone());
        }
        let alike = self.along == other.along && self.base == other.base;
        let ends = [self.ends[0].min(other.ends[0]), self.ends[1].max(other.ends[1])];
        alike.then(|| Axis { ends, ..self.clone() })
    }

    /// How many indices there are over a tile of so many iterations of each dimension of the head.
    pub fn extent(&self, tile: &[f64]) -> f64 {
        if let Some(n) = self.whole {
            return n;
        }
        let moved: f64 = self.along.iter().zip(tile).map(|(c, n)| c.abs() * (n - 1.0)).sum();
        moved + self.ends[1] - self.ends[0] + 1.0
    }

    /// How many there are for each step of the head, once tiles are large.
    pub fn density(&self) -> f64 {
        if self.along.iter().all(|c| *c == 0.0) {
            return self.extent(&vec![1.0; self.along.len()]);
        }
        self.along.iter().filter(|c| **c != 0.0).map(|c| c.abs()).product()
    }

    /// Whether it is the index of a dimension of the head, or one a constant away from it.
    pub fn follows(&self, k: usize) -> bool {
        self.whole.is_none()
            && self.base.is_empty()
            && self.ends[0] == self.ends[1]
            && self.along.iter().enumerate().all(|(d, c)| *c == f64::from(u8::from(d == k)))
    }
}

/// The boxes of all stages that a tile of a head needs, and of which all readers are in it.
pub struct Footprints {
    rank: usize,
    of: FxHashMap<StageId, Vec<Axis>>,
}

impl Footprints {
    /// The head alone.
    pub fn new(s: &Schedule, head: StageId) -> Footprints {
        let rank = s.graph.stage(head).dims.len();
        let own = (0..rank).map(|k| Axis::own(rank, k)).collect();
        Footprints { rank, of: FxHashMap::from_iter([(head, own)]) }
    }

    /// The box of a stage that is in it.
    pub fn get(&self, of: StageId) -> &[Axis] {
        self.of.get(&of).map_or(&[], Vec::as_slice)
    }

    /// Adds a stage that is computed for stages that are in it; whether its box is known.
    pub fn add(&mut self, s: &Schedule, p: StageId) -> bool {
        let found = self.needed(s, p);
        found.is_some_and(|axes| self.of.insert(p, axes).is_none())
    }

    /// Takes a stage out again.
    pub fn remove(&mut self, p: StageId) {
        self.of.remove(&p);
    }

    fn needed(&self, s: &Schedule, p: StageId) -> Option<Vec<Axis>> {
        let (g, mut out) = (&s.graph, None::<Vec<Axis>>);
        if !s.consumers(p).iter().any(|r| self.of.contains_key(r)) {
            return None;
        }
        // How long a row is may depend on which one it is; such boxes are not looked at.
        if g.stage(p).dims.iter().any(|d| !g.bodies.dims(g.dim(*d).extent).is_empty()) {
            return None;
        }
        for reader in s.consumers(p) {
            if !self.of.contains_key(reader) {
                return None;
            }
            for b in g.bodies.reachable(g.stage(*reader).bodies()) {
                let Node::Load(Source::Stage(q, _), _, at) = g.bodies.node(b) else { continue };
                if *q != p {
                    continue;
                }
                let dims = g.stage(p).dims.iter();
                // All steps of a recurrence are taken, whichever is read.
                let steps = |d: DimId| {
                    (g.stage(p).steps() == Some(d)).then(|| Axis::whole(self.rank, g.bodies.as_int(g.dim(d).extent)))
                };
                let own = |i: Body, d: DimId| steps(d).or_else(|| self.all(s, *reader, i, d));
                let each = at.iter().zip(dims).map(|(i, d)| own(*i, *d).or_else(|| self.axis(s, *reader, *i)));
                let each = each.collect::<Option<Vec<_>>>()?;
                let both = |(k, (a, b)): (usize, (&Axis, &Axis))| a.with(b).or_else(|| self.few(s, g.stage(p).dims[k]));
                out = Some(match out {
                    None => each,
                    Some(known) => known.iter().zip(&each).enumerate().map(both).collect::<Option<_>>()?,
                });
            }
        }
        out
    }

    /// All indices of a dimension, where these are a few channels: of pixels that read their own one and another.
    fn few(&self, s: &Schedule, d: DimId) -> Option<Axis> {
        let n = s.graph.bodies.as_int(s.graph.dim(d).extent).filter(|n| *n <= CHANNELS);
        n.map(|n| Axis::whole(self.rank, Some(n)))
    }

    /// All indices of a dimension, where a stage reduces over them.
    fn all(&self, s: &Schedule, reader: StageId, index: Body, of: DimId) -> Option<Axis> {
        let g = &s.graph;
        let Node::Index(d) = g.bodies.node(index) else { return None };
        let n = g.bodies.as_int(g.dim(*d).extent);
        let all = n.is_none() || g.dim(*d).extent == g.dim(of).extent;
        (all && g.stage(reader).over().contains(d)).then(|| Axis::whole(self.rank, n))
    }

    /// The indices that an index of a stage runs through; nothing where data decides it, or it does not move evenly.
    fn axis(&self, s: &Schedule, reader: StageId, index: Body) -> Option<Axis> {
        let bodies = &s.graph.bodies;
        let form = bodies.linear(index)?;
        let mut out = Axis::constant(self.rank, form.offset() as f64);
        for (atom, c) in form.terms() {
            let own = self.atom(s, reader, atom)?;
            if let Some(n) = own.whole {
                // All steps of a recurrence, shifted or backwards, or the channels of a pixel.
                let steps = s.graph.stage(reader).recurrence().is_some();
                let channels = n <= CHANNELS as f64 && matches!(bodies.node(index), Node::Index(_));
                let alone = form.terms().all(|(a, _)| a == atom || bodies.dims(a).is_empty());
                return (alone && (steps || channels) && c.abs() == 1).then_some(own);
            }
            out.add(&own, c as f64);
        }
        Some(out)
    }

    fn atom(&self, s: &Schedule, reader: StageId, atom: Body) -> Option<Axis> {
        let bodies = &s.graph.bodies;
        if bodies.dims(atom).is_empty() {
            let mut out = Axis::constant(self.rank, 0.0);
            out.base.push((atom, 1.0));
            return Some(out);
        }
        match bodies.node(atom) {
            Node::Index(d) => self.index(s, reader, *d),
            Node::Op(Op::Mod | Op::FloorMod, _, args) => {
                let n = bodies.as_int(args[1]).filter(|n| *n > 0)?;
                let mut out = Axis::constant(self.rank, 0.0);
                out.ends[1] = (n - 1) as f64;
                Some(out)
            }
            Node::Op(Op::Min | Op::Max, _, args) => match args.iter().position(|a| bodies.stays(*a)) {
                Some(fixed) => self.axis(s, reader, args[1 - fixed]),
                None => self.axis(s, reader, args[0])?.with(&self.axis(s, reader, args[1])?),
            },
            Node::Op(Op::Div | Op::FloorDiv, _, args) => {
                let (of, by) = (self.axis(s, reader, args[0])?, bodies.as_int(args[1]).filter(|n| *n > 0)? as f64);
                let ends = [(of.ends[0] / by).floor(), (of.ends[1] / by).ceil()];
                of.base.is_empty().then(|| Axis {
                    along: of.along.iter().map(|c| c / by).collect(),
                    ends,
                    ..of.clone()
                })
            }
            _ => None,
        }
    }

    /// The indices of a dimension of a stage that is in it, or of one that it reduces over.
    fn index(&self, s: &Schedule, reader: StageId, d: DimId) -> Option<Axis> {
        let stage = s.graph.stage(reader);
        if let Some(k) = stage.dims.iter().position(|own| *own == d) {
            return self.of.get(&reader)?.get(k).cloned();
        }
        let n = s.graph.bodies.as_int(s.graph.dim(d).extent).filter(|n| *n > 0)?;
        let mut out = Axis::constant(self.rank, 0.0);
        out.ends[1] = (n - 1) as f64;
        Some(out)
    }
}

/// How many points a stage reduces over; 1 where it reduces nothing, nothing where symbols say.
pub fn points(s: &Schedule, of: StageId) -> Option<i64> {
    s.graph.points(s.graph.stage(of).over())
}
