//! Scatters become reductions where each target says which values are added to it: those of a convolution's input, say.
//!
//! Where an index is `d + g` for a loop over `d`, the values for a target `f` are those at `d = f - g`, and the loop over `d`
//! is gone. What is left of the loops is run through in such an order that each target adds its values in the order in
//! which the scatter did: where `f - g` takes the place of `d`, it grows or falls with at most one loop that stands further
//! inwards, which then stands there, forwards or backwards. So no bit changes, and lanes need not add one after another.
//! It must not know what computes the values.

use super::body::{Body, DimId, Node, StageId};
use super::graph::{Definition, Graph, Stage};
use crate::affine::Linear;
use crate::ir::{Lit, Op, Scalar};
use rustc_hash::FxHashMap;

/// Reductions may have so many times the points of the scatter: targets that little is added to are many.
const MORE: i64 = 2;

/// A loop over places that an index of a scatter is solved for.
struct Solved {
    d: DimId,
    /// The rest of the index.
    rest: Linear<Body>,
    /// What stands before the loop's index: 1 or -1.
    sign: i64,
    /// Whether the index is that modulo the extent of the loop: each place has then one value.
    wraps: bool,
}

/// A loop that is left, and whether it runs backwards.
type Key = (DimId, bool);

impl Graph {
    /// Makes reductions of scatters of known sizes; whether there is one.
    pub(super) fn gather_scatters(&mut self) -> bool {
        let mut any = false;
        for s in self.ids() {
            if let Some(made) = self.gathered(s) {
                self.stages[s.0 as usize] = made;
                any = true;
            }
        }
        any
    }

    fn gathered(&mut self, s: StageId) -> Option<Stage> {
        let stage = self.stage(s).clone();
        let Definition::Scatter { over, only, at, value, .. } = &stage.def else { return None };
        if !stage.checks.is_empty() {
            return None;
        }
        let solved = self.solved(over, at)?;
        let keys = order(self, over, &solved)?;
        let left: Vec<DimId> = keys.iter().map(|(d, _)| *d).collect();
        let targets = &stage.dims[stage.looped()..];
        let (points, all) = (self.some(over)?, self.some(targets)?.checked_mul(self.some(&left)?)?);
        if all > points.checked_mul(MORE)? {
            return None;
        }
        let (of, there) = self.origins(&keys, &solved, targets);
        let only = only.map(|c| self.bodies.substitute(c, &of));
        let no = self.bodies.bool(false);
        let adds = only.map_or(there, |c| self.bodies.cond(there, c, no));
        let (mut init, mut next) = (vec![], vec![]);
        for (k, v) in (0..).zip(value) {
            let ty = self.bodies.ty(*v);
            let zero = self.bodies.lit(Lit::zero(ty));
            let v = self.bodies.substitute(*v, &of);
            // To add 0 where nothing is added changes no sum that began with 0.
            let term = self.bodies.cond(adds, v, zero);
            let acc = if left.is_empty() { zero } else { self.bodies.acc(k, ty) };
            next.push(self.bodies.op(Op::Add, ty, &[acc, term]));
            init.push(zero);
        }
        let def = match left.is_empty() {
            true => Definition::Pure(next),
            false => Definition::Reduce { over: left, init, next, inside: 0 },
        };
        Some(Stage { def, ..stage })
    }

    /// The points of dimensions, where there are any.
    fn some(&self, dims: &[DimId]) -> Option<i64> {
        let some = |d: &DimId| self.bodies.as_int(self.dim(*d).extent).is_some_and(|n| n > 0);
        self.points(dims).filter(|_| dims.iter().all(some))
    }

    /// For each index a loop that it is solved for, of those that can be the longest. No other index names that loop.
    fn solved(&self, over: &[DimId], at: &[Body]) -> Option<Vec<Solved>> {
        let mut out: Vec<Solved> = vec![];
        for (j, i) in at.iter().enumerate() {
            let (i, period) = self.periodic(*i);
            let form = self.bodies.linear(i).filter(|_| self.bodies.is_small(i))?;
            let plain = |(a, _): (Body, i64)| {
                matches!(self.bodies.node(a), Node::Index(_)) || !self.bodies.dims(a).iter().any(|d| over.contains(d))
            };
            let elsewhere = |d: &DimId| at.iter().enumerate().any(|(k, o)| k != j && self.bodies.dims(*o).contains(d));
            let each = form.terms().filter_map(|(a, c)| match self.bodies.node(a) {
                Node::Index(d) if over.contains(d) && matches!(c, 1 | -1) && !elsewhere(d) => Some((*d, a)),
                _ => None,
            });
            let (d, a) = each.max_by_key(|(d, _)| self.bodies.as_int(self.dim(*d).extent))?;
            if !form.terms().all(plain) {
                return None;
            }
            let (rest, sign) = form.without(a);
            if period.is_some_and(|n| n != self.dim(d).extent) {
                return None;
            }
            out.push(Solved { d, rest, sign, wraps: period.is_some() });
        }
        Some(out)
    }

    /// What an index is the remainder of, and of what division: no index in range is a negative one.
    fn periodic(&self, i: Body) -> (Body, Option<Body>) {
        match self.bodies.node(i) {
            Node::Op(Op::Mod | Op::FloorMod, _, args) => (args[0], Some(args[1])),
            _ => (i, None),
        }
    }

    /// What stands for the loops of the scatter, and where that is in range.
    fn origins(&mut self, keys: &[Key], solved: &[Solved], targets: &[DimId]) -> (FxHashMap<DimId, Body>, Body) {
        let (zero, one) = (self.bodies.int(0), self.bodies.int(1));
        let mut turned: FxHashMap<DimId, Body> = FxHashMap::default();
        for (d, _) in keys.iter().filter(|(_, backwards)| *backwards) {
            let (i, n) = (self.bodies.index(*d), self.dim(*d).extent);
            let last = self.bodies.ints(Op::Sub, n, one);
            turned.insert(*d, self.bodies.ints(Op::Sub, last, i));
        }
        let mut of = turned.clone();
        let mut there = self.bodies.bool(true);
        for (to, by) in targets.iter().zip(solved) {
            let (f, g) = (self.bodies.index(*to), self.bodies.of_linear(&by.rest));
            let [a, b] = if by.sign > 0 { [f, g] } else { [g, f] };
            let from = self.bodies.ints(Op::Sub, a, b);
            let from = self.bodies.substitute(from, &turned);
            let n = self.dim(by.d).extent;
            let (from, asked) = if by.wraps {
                (self.bodies.ints(Op::FloorMod, from, n), [self.bodies.test(Op::Lt, f, n)].to_vec())
            } else {
                (from, [self.bodies.test(Op::Gte, from, zero), self.bodies.test(Op::Lt, from, n)].to_vec())
            };
            for c in asked {
                there = self.bodies.op(Op::And, Scalar::Bool, &[there, c]);
            }
            of.insert(by.d, from);
        }
        (of, there)
    }
}

/// The loops that are left, so that their points come in the order of those of the scatter that add to one target: each place
/// of a loop that is gone is decided by those around it, and by at most one more.
fn order(graph: &Graph, over: &[DimId], solved: &[Solved]) -> Option<Vec<Key>> {
    let bodies = &graph.bodies;
    let free = |d: DimId| bodies.dims(graph.dim(d).extent).is_empty();
    let mut keys: Vec<Key> = vec![];
    for d in over {
        if !free(*d) {
            return None;
        }
        let known = |e: DimId| keys.iter().any(|(k, _)| *k == e);
        let Some(by) = solved.iter().find(|by| by.d == *d) else {
            if !known(*d) {
                keys.push((*d, false));
            }
            continue;
        };
        let mut more = by.rest.terms().filter_map(|(a, c)| match bodies.node(a) {
            Node::Index(e) if over.contains(e) && !known(*e) => Some((*e, by.sign * c > 0)),
            _ => None,
        });
        let (first, second) = (more.next(), more.next());
        // What wraps around neither grows nor falls with another loop.
        if second.is_some() || by.wraps && first.is_some() {
            return None;
        }
        keys.extend(first);
    }
    Some(keys)
}
