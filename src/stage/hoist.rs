//! Loop-invariant code: what takes long and is the same for all indices of some loop is computed before, once, as a stage over
//! the dimensions that it is of.
//!
//! What is evaluated for some elements only, in an arm, stays there; and so does what reads elements that are not proved to be
//! there, since the loop around it may have no iterations. No bit changes.

use super::body::{Body, DimId, Node, StageId};
use super::graph::{Definition, Graph, Stage};
use super::same::Same;
use crate::ir::op::Class;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is computed less often is left to compilers, and to vectors, whose lanes are as many iterations.
const OFTEN: i64 = 16;

impl Graph {
    /// Hoists invariants out of loops of known lengths; whether there is one.
    pub(super) fn hoist(&mut self) -> bool {
        let steps: Vec<(StageId, DimId)> = self.ids().filter_map(|s| self.stage(s).recurrence()).collect();
        let mut same = Same::default();
        for s in self.ids() {
            let (stage, fixed) = (self.stage(s).clone(), steps.iter().map(|(_, d)| *d).collect::<Vec<_>>());
            let key = same.key(self, &Stage { name: String::new(), ..stage }, &fixed);
            same.insert(key, s);
        }
        let mut any = false;
        for s in self.ids() {
            let stage = self.stage(s).clone();
            if stage.when.is_some() || steps.iter().any(|of| stage.is_in(*of)) {
                continue;
            }
            for b in self.invariants(&stage) {
                let load = self.before(&stage, b, &mut same);
                let of = FxHashMap::from_iter([(b, load)]);
                let mut stage = self.stage(s).clone();
                for own in stage.bodies_mut() {
                    *own = self.bodies.map(*own, &mut FxHashMap::default(), &mut |_, at| of.get(&at).copied());
                }
                self.stages[s.0 as usize] = stage;
                any = true;
            }
        }
        any
    }

    /// The largest parts of a stage's elements that are worth hoisting.
    fn invariants(&self, stage: &Stage) -> Vec<Body> {
        let loops: Vec<DimId> = stage.dims.iter().chain(stage.over()).copied().collect();
        let mut todo: Vec<Body> = match &stage.def {
            Definition::Pure(each) => each.clone(),
            Definition::Reduce { next, .. } => next.clone(),
            Definition::Scatter { only: None, value, .. } => value.clone(),
            Definition::Scatter { .. } | Definition::Recur { .. } => vec![],
        };
        let (mut out, mut seen) = (vec![], FxHashSet::default());
        while let Some(b) = todo.pop() {
            if !seen.insert(b) {
                continue;
            }
            if self.is_invariant(b, &loops) {
                out.push(b);
                continue;
            }
            match self.bodies.node(b) {
                Node::If([c, ..]) => todo.push(*c),
                node => todo.extend(node.kids()),
            }
        }
        out
    }

    /// Whether a part takes long, is the same for several indices of a loop, and can be computed whether or not the loop runs.
    fn is_invariant(&self, b: Body, loops: &[DimId]) -> bool {
        let bodies = &self.bodies;
        let own = bodies.dims(b);
        let times = loops.iter().filter(|d| !own.contains(d)).map(|d| bodies.as_int(self.dim(*d).extent));
        let often = times.product::<Option<i64>>().is_some_and(|n| n >= OFTEN);
        if !often || !own.iter().all(|d| bodies.as_int(self.dim(*d).extent).is_some()) {
            return false;
        }
        let mut dear = false;
        let total = bodies.reachable([b]).into_iter().all(|at| match bodies.node(at) {
            Node::Acc(..) => false,
            Node::Op(op, ty, _) => {
                dear |= ty.is_float() && matches!(op.row().class, Class::Divide | Class::Transcendental);
                !(op.divides() && ty.is_int())
            }
            Node::Load(from, _, index) => {
                let sizes = self.extents(*from);
                index.iter().zip(sizes).all(|(i, n)| self.is_below(*i, n))
            }
            _ => true,
        });
        total && dear
    }

    /// Whether an index is one of a loop, or a number, and below a number for sure.
    fn is_below(&self, i: Body, n: Body) -> bool {
        let Some(n) = self.bodies.as_int(n) else { return false };
        match self.bodies.node(i) {
            Node::Index(d) => self.bodies.as_int(self.dim(*d).extent).is_some_and(|m| m <= n),
            _ => self.bodies.as_int(i).is_some_and(|i| (0..n).contains(&i)),
        }
    }

    /// A stage that computes a part of another for all dimensions that it is of, or one that there is; its element there.
    fn before(&mut self, of: &Stage, b: Body, same: &mut Same) -> Body {
        let loops: Vec<DimId> = of.dims.iter().chain(of.over()).copied().collect();
        let known = self.bodies.dims(b);
        let own: Vec<DimId> = loops.into_iter().filter(|d| known.contains(d)).collect();
        let ty = self.bodies.ty(b);
        let mut to = FxHashMap::default();
        let mut dims = vec![];
        for d in &own {
            let (name, extent) = (self.dim(*d).name.clone(), self.dim(*d).extent);
            let new = self.add_dim(name, extent);
            to.insert(*d, self.bodies.index(new));
            dims.push(new);
        }
        let body = self.bodies.substitute(b, &to);
        let stage = Stage {
            name: String::new(),
            dims,
            tys: vec![ty],
            when: None,
            def: Definition::Pure(vec![body]),
            checks: vec![],
        };
        let key = same.key(self, &stage, &[]);
        let id = same.find(&key).unwrap_or_else(|| {
            let id = StageId(self.stages.len() as u32);
            let name = self.bodies.named(b).map_or_else(|| format!("{}_invariant", of.name), str::to_string);
            let name = self.unique(&name);
            self.stages.push(Stage { name, ..stage });
            same.insert(key, id);
            id
        });
        let at: Vec<Body> = own.iter().map(|d| self.bodies.index(*d)).collect();
        self.bodies.load(super::body::Source::Stage(id, 0), ty, at)
    }

    /// A name that no stage has.
    fn unique(&self, name: &str) -> String {
        let mut each = std::iter::once(name.to_string()).chain((2..).map(|k| format!("{name}_{k}")));
        each.find(|n| self.find(n).is_none()).unwrap_or_default()
    }
}
