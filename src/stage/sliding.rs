//! Elementary functions in sliding windows: what sums over windows take again for each window that an element is in is taken once for
//! each element, and its values are a stage. `(tanh x[i + k])` in loops over i and k becomes `t[i + k]`, with `t[c] = (tanh x[c])`.
//!
//! Only what has a value at each element is, since a table has all of its own. It must not know how loops run.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::{Interval, Ranges};
use super::graph::{Definition, Graph, Stage};
use crate::ir::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// A sum or a difference of two indices, on which a body depends as on one.
struct Window {
    /// The index of the windows, and that within them, with its sign.
    window: DimId,
    within: (DimId, i64),
    /// The sum, and what it lies between.
    sum: Body,
    bounds: Interval,
}

impl Graph {
    /// Takes elementary functions in sliding windows once; whether there are any.
    pub(super) fn take_windows_once(&mut self) -> bool {
        let mut any = false;
        let mut todo = self.order();
        while let Some(s) = todo.pop() {
            if !self.is_alone(s) {
                continue;
            }
            // The whole before its parts.
            let mut all = self.long(s);
            all.sort_by_cached_key(|b| std::cmp::Reverse(self.bodies.reachable([*b]).len()));
            for body in all {
                let is_there = self.bodies.reachable(self.stage(s).bodies()).contains(&body);
                if is_there && let Some((table, value)) = self.of_window(s, body) {
                    let mut of = FxHashMap::from_iter([(body, value)]);
                    let mut stage = self.stage(s).clone();
                    stage.bodies_mut().for_each(|b| *b = self.bodies.map(*b, &mut of, &mut |_, _| None));
                    self.stages[s.0 as usize] = stage;
                    // A window may slide along another dimension, too.
                    todo.push(table);
                    any = true;
                }
            }
        }
        any
    }

    /// A new table, and the element of it that a body of a stage is, where it depends on two indices by their sum alone.
    fn of_window(&mut self, s: StageId, body: Body) -> Option<(StageId, Body)> {
        let own = self.bodies.dims(body);
        let (mut ranges, mut dims) = (Ranges::default(), vec![]);
        for d in self.stage(s).all_dims() {
            let extent = self.dim(d).extent;
            ranges.push(&mut self.bodies, d, extent);
            dims.extend(own.contains(&d).then_some(d));
        }
        let pairs = self.pairs(body, &dims);
        let w = pairs.into_iter().find_map(|(window, within)| self.window(body, window, within, &ranges))?;
        let kept: Vec<DimId> = dims.into_iter().filter(|d| *d != w.window && *d != w.within.0).collect();
        let is_box = kept.iter().all(|d| self.bodies.dims(self.dim(*d).extent).is_empty());
        let (new, at) = is_box.then(|| self.table_of_window(s, body, &w, &kept))??;
        let ty = self.bodies.ty(body);
        Some((new, self.bodies.load(Source::Stage(new, 0), ty, at)))
    }

    /// The stage of all values of a body, and where its element lies in it.
    fn table_of_window(&mut self, s: StageId, body: Body, w: &Window, kept: &[DimId]) -> Option<(StageId, Vec<Body>)> {
        let one = self.bodies.int(1);
        let last = self.bodies.ints(Op::Sub, w.bounds.hi, w.bounds.lo);
        let count = self.bodies.ints(Op::Add, last, one);
        let (mut dims, mut of) = (vec![], FxHashMap::default());
        for d in kept {
            let new = self.add_dim(self.dim(*d).name.clone(), self.dim(*d).extent);
            of.insert(*d, self.bodies.index(new));
            dims.push(new);
        }
        let sliding = self.add_dim(self.dim(w.window).name.clone(), count);
        dims.push(sliding);
        // Of all windows the first one: what is in it is in no other place of the sum.
        let index = self.bodies.index(sliding);
        let place = self.bodies.ints(Op::Add, index, w.bounds.lo);
        let body = self.at_sum(body, w.window, w.within, place);
        let body = self.bodies.substitute(body, &of);
        if !self.has_values_at(body, &dims) {
            return None;
        }
        let name = self.free_name(&format!("{}_values", self.stage(s).name));
        let tys = vec![self.bodies.ty(body)];
        let stage = Stage { name, dims, tys, when: None, def: Definition::Pure(vec![body]), checks: vec![] };
        let table = self.add_stage(stage);
        let place = self.bodies.ints(Op::Sub, w.sum, w.bounds.lo);
        let at = kept.iter().map(|d| self.bodies.index(*d)).chain([place]).collect();
        Some((table, at))
    }

    /// A body with the index within a window such that the sum is a place, whichever window it is.
    fn at_sum(&mut self, body: Body, window: DimId, (within, sign): (DimId, i64), place: Body) -> Body {
        let first = self.bodies.index(window);
        let index = match sign {
            1 => self.bodies.ints(Op::Sub, place, first),
            _ => self.bodies.ints(Op::Sub, first, place),
        };
        self.bodies.substitute(body, &FxHashMap::from_iter([(within, index)]))
    }

    /// The window, where a body depends on two indices by their sum, or their difference, alone.
    fn window(&mut self, body: Body, window: DimId, within: (DimId, i64), ranges: &Ranges) -> Option<Window> {
        let zero = self.bodies.int(0);
        let first = self.at_sum(body, window, within, zero);
        if self.bodies.dims(first).contains(&window) {
            return None;
        }
        let [a, b] = [window, within.0].map(|d| self.bodies.index(d));
        let sum = self.bodies.ints(if within.1 == 1 { Op::Add } else { Op::Sub }, a, b);
        let bounds = ranges.bounds(&mut self.bodies, sum)?;
        let fixed = self.bodies.is_fixed(bounds.lo) && self.bodies.is_fixed(bounds.hi);
        fixed.then_some(Window { window, within, sum, bounds })
    }

    /// The pairs of these indices that a body adds up, or subtracts, where it reads an element; the first one with its sign
    /// positive.
    fn pairs(&self, body: Body, dims: &[DimId]) -> Vec<(DimId, (DimId, i64))> {
        let mut out = vec![];
        for b in self.bodies.reachable([body]) {
            let Node::Load(_, _, at) = self.bodies.node(b) else { continue };
            for form in at.iter().filter_map(|i| self.bodies.linear(*i)) {
                let own = form.terms().filter_map(|(a, c)| match self.bodies.node(a) {
                    Node::Index(d) if dims.contains(d) => Some((*d, c)),
                    _ => None,
                });
                let own: Vec<(DimId, i64)> = own.collect();
                let [(a, p), (b, q)] = own[..] else { continue };
                if p.abs() == 1 && q.abs() == 1 && a != b {
                    out.push((a, (b, p * q)));
                }
            }
        }
        let mut seen = FxHashSet::default();
        out.retain(|pair| seen.insert(*pair));
        out
    }

    /// Whether a body has a value at all indices of these dimensions.
    fn has_values_at(&mut self, body: Body, dims: &[DimId]) -> bool {
        let mut ranges = Ranges::default();
        for d in dims {
            let extent = self.dim(*d).extent;
            ranges.push(&mut self.bodies, *d, extent);
        }
        let all = self.bodies.reachable([body]);
        all.into_iter().all(|b| {
            let node = self.bodies.node(b).clone();
            self.is_total(&node, &ranges, dims)
        })
    }
}
