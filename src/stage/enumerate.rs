//! Truth values over a few points of known dimensions: that one holds at all of them is seen by trying each.
//!
//! Where an element of a packed triangle lies is a polynomial of its row and column, which intervals say little of. It must
//! not know what the truth values are for.

use super::body::{Bodies, Body, DimId, Node};
use super::graph::Graph;
use crate::ir::Lit;
use rustc_hash::FxHashMap;

/// So many nodes are evaluated for a truth value at most, over all of its points: a few milliseconds.
const MOST: usize = 1 << 18;

impl Graph {
    /// Whether a truth value holds at all points of dimensions, those at which a condition holds, where numbers alone say
    /// what both are; and that of points that are few.
    pub(super) fn holds_at_each(&self, dims: &[DimId], when: Option<Body>, b: Body) -> bool {
        let mut named = self.named(dims, &[Some(b), when]);
        // Those to the left decide extents.
        named.sort_by_key(|d| dims.iter().position(|o| o == d));
        let roots = named.iter().map(|d| self.dim(*d).extent).chain(when).chain([b]);
        let nodes = self.bodies.reachable(roots);
        let plain = nodes.iter().all(|n| match self.bodies.node(*n) {
            Node::Index(d) => named.contains(d),
            Node::Lit(_) | Node::Op(..) | Node::Cast(..) | Node::If(_) => true,
            Node::Symbol(_) | Node::Acc(..) | Node::Load(..) => false,
        });
        let points = Points { graph: self, dims: &named, nodes: &nodes, when, b };
        plain && points.hold(&mut FxHashMap::default(), &mut (MOST / nodes.len().max(1)), 0).unwrap_or(false)
    }

    /// The dimensions that bodies name, and that the extents of these do; of some.
    fn named(&self, dims: &[DimId], roots: &[Option<Body>]) -> Vec<DimId> {
        let mut todo: Vec<DimId> = roots.iter().flatten().flat_map(|b| self.bodies.dims(*b)).collect();
        let mut out = vec![];
        while let Some(d) = todo.pop() {
            if !out.contains(&d) && dims.contains(&d) {
                out.push(d);
                todo.extend(self.bodies.dims(self.dim(d).extent));
            }
        }
        out
    }
}

/// The points of some dimensions, and what is asked at each.
struct Points<'a> {
    graph: &'a Graph,
    dims: &'a [DimId],
    nodes: &'a [Body],
    when: Option<Body>,
    b: Body,
}

impl Points<'_> {
    /// Whether it holds at all points at the indices so far; nothing where there are more points than are left, or one of
    /// them has no value.
    fn hold(&self, at: &mut FxHashMap<DimId, i64>, left: &mut usize, k: usize) -> Option<bool> {
        *left = left.checked_sub(1)?;
        let bodies = &self.graph.bodies;
        let Some(d) = self.dims.get(k) else {
            let values = bodies.values(self.nodes, at);
            let truth = |b: Body| values.get(&b)?.as_bool();
            return match self.when.map(truth) {
                Some(None) => None,
                Some(Some(false)) => Some(true),
                _ => truth(self.b),
            };
        };
        let extent = self.graph.dim(*d).extent;
        let n = bodies.values(&bodies.reachable([extent]), at).get(&extent)?.as_int()?;
        for i in 0..n {
            at.insert(*d, i);
            if !self.hold(at, left, k + 1)? {
                return Some(false);
            }
        }
        at.remove(d);
        Some(true)
    }
}

impl Bodies {
    /// The values of nodes at indices, children first; those that have none are left out.
    fn values(&self, nodes: &[Body], at: &FxHashMap<DimId, i64>) -> FxHashMap<Body, Lit> {
        let mut out: FxHashMap<Body, Lit> = FxHashMap::default();
        for b in nodes {
            let of = |b: &Body| out.get(b).copied();
            let value = match self.node(*b) {
                Node::Lit(l) => Some(*l),
                Node::Index(d) => at.get(d).map(|i| Lit::int(*i)),
                Node::Cast(to, from) => of(from).and_then(|l| l.cast(*to)),
                Node::Op(op, _, args) => args.iter().map(of).collect::<Option<Vec<_>>>().and_then(|l| op.eval(&l).ok()),
                Node::If([c, x, y]) => of(c).and_then(Lit::as_bool).and_then(|c| of(if c { x } else { y })),
                Node::Symbol(_) | Node::Acc(..) | Node::Load(..) => None,
            };
            if let Some(value) = value {
                out.insert(*b, value);
            }
        }
        out
    }
}
