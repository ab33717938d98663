//! Two neighbouring axes become one: what lies next to each other in memory is one dimension.
//!
//! A stage over places and their few channels becomes one over both at once, and an input is read so, too, where the stage reads
//! it at its own channels. Where elements lie does not change, nor what they are.

use super::body::{Body, Node, Source, StageId};
use super::graph::{Definition, Graph};
use crate::ir::Op;
use rustc_hash::FxHashMap;

/// An inner axis has at most so many indices.
const MOST: i64 = 1024;

impl Graph {
    /// How many indices the axis after the k-th has, where both can be one.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn joinable(&self, s: StageId, k: usize) -> Result<i64, &'static str> {
        let stage = self.stage(s);
        let [a, b] = [stage.dims[k], stage.dims[k + 1]];
        let named = |d: &super::DimId| {
            let of = self.bodies.dims(self.dim(*d).extent);
            of.contains(&a) || of.contains(&b)
        };
        let steps = self.ids().filter_map(|p| self.stage(p).recurrence()).any(|(leader, each)| {
            let own = &self.stage(leader).dims;
            [a, b].iter().any(|d| *d == each || own.contains(d))
        });
        let inside = match stage.def {
            Definition::Reduce { inside, .. } => stage.dims.len() - inside,
            _ => 0,
        };
        if k + 1 >= stage.looped() {
            return Err("data decide their indices");
        }
        if steps {
            return Err("one is of the steps of a recurrence");
        }
        if self.ids().flat_map(|p| self.stage(p).dims.iter().chain(self.stage(p).over())).any(named) {
            return Err("the index of one decides how long another is");
        }
        if !self.bodies.dims(self.dim(a).extent).is_empty() || !self.bodies.dims(self.dim(b).extent).is_empty() {
            return Err("the index of another decides how long one is");
        }
        if inside == k + 1 {
            return Err("one is inside of what is reduced, and one is not");
        }
        let n = self.bodies.as_int(self.dim(b).extent).filter(|n| (1..=MOST).contains(n));
        n.ok_or("how long the inner one is must be a number, at most 1024")
    }

    /// Makes one dimension of the k-th of a stage and the next, which has so many indices: for what [`Graph::joinable`]
    /// allows. Inputs that the stage reads along both have one axis of the two, too.
    pub fn join(&mut self, s: StageId, k: usize, n: i64, name: &str) {
        let [a, b] = [self.stage(s).dims[k], self.stage(s).dims[k + 1]];
        let by = self.bodies.int(n);
        let extent = self.bodies.ints(Op::Mul, self.dim(a).extent, by);
        let both = self.add_dim(name, extent);
        let index = self.bodies.index(both);
        let [q, r] = [Op::Div, Op::Mod].map(|op| self.bodies.ints(op, index, by));
        let of = FxHashMap::from_iter([(a, q), (b, r)]);
        let mut stage = self.stage(s).clone();
        for body in stage.bodies_mut() {
            *body = self.bodies.substitute(*body, &of);
        }
        stage.dims.splice(k..k + 2, [both]);
        match &mut stage.def {
            Definition::Reduce { inside, .. } if *inside + k >= stage.dims.len() => *inside -= 1,
            Definition::Recur { axis, .. } if *axis > k => *axis -= 1,
            _ => {}
        }
        self.stages[s.0 as usize] = stage;
        self.read_joined(&|from| from.stage() == Some(s), k, n);
        for (input, axis) in self.along(s, r, n) {
            let sizes = &mut self.inputs[input as usize].sizes;
            let long = self.bodies.ints(Op::Mul, sizes[axis], by);
            sizes.splice(axis..axis + 2, [long]);
            self.read_joined(&|from| from == Source::Input(input), axis, n);
        }
    }

    /// The inputs that a stage reads at an index on an axis, and the axes before those, whose next have so many indices.
    fn along(&self, s: StageId, inner: Body, n: i64) -> Vec<(u32, usize)> {
        let mut out = vec![];
        for b in self.bodies.reachable(self.stage(s).bodies()) {
            if let Node::Load(Source::Input(m), _, at) = self.bodies.node(b)
                && let Some(axis) = at.iter().skip(1).position(|i| *i == inner)
                && self.bodies.as_int(self.inputs[*m as usize].sizes[axis + 1]) == Some(n)
                && !out.iter().any(|(known, _)| known == m)
            {
                out.push((*m, axis));
            }
        }
        out
    }

    /// Lets everything read a source by the index on one axis where it had two.
    fn read_joined(&mut self, source: &dyn Fn(Source) -> bool, k: usize, n: i64) {
        let by = self.bodies.int(n);
        let mut joined = |g: &mut Graph, from: Source, ty, at: &[Body]| {
            if !source(from) {
                return None;
            }
            let mut at = at.to_vec();
            let start = g.bodies.ints(Op::Mul, at[k], by);
            let place = g.bodies.ints(Op::Add, start, at[k + 1]);
            at.splice(k..k + 2, [place]);
            Some(g.bodies.load(from, ty, at))
        };
        for p in self.ids() {
            self.redirect(p, &mut joined);
        }
        self.map_outputs(&mut |g, b| g.reading(b, &mut joined));
        for d in 0..self.dims.len() {
            let extent = self.reading(self.dims[d].extent, &mut joined);
            self.dims[d].extent = extent;
        }
    }
}
