//! Recurrences: scans, and folds whose state has tensors or is read in loops of the step.
//!
//! A state becomes stages over the steps, one for the numbers of the state and one for each of its tensors: at 0 the first
//! values, and after each step the next ones. What a step computes for itself is stages over the steps as well.

use super::body::{Body, DimId, Node, Source, StageId};
use super::extract::{ACC_BASE, Extract, READS_STATE, Staged};
use super::graph::{Definition, Stage};
use super::value::Val;
use crate::ir::{Id, Op};
use rustc_hash::FxHashMap;

/// The numbers of a value that stand in the same tensor of it, and the dimensions of that with their sizes, outermost first.
/// The first of a value stand in none.
struct Flat {
    path: Vec<(DimId, Body)>,
    numbers: Vec<Body>,
}

/// The parts of a value, a tensor before what stands in it; they are of one order for all values of a type.
fn flat(v: &Val) -> Vec<Flat> {
    fn walk(v: &Val, own: usize, out: &mut Vec<Flat>) {
        match v {
            Val::Scalar(b) => out[own].numbers.push(*b),
            Val::Tuple(each) => each.iter().for_each(|v| walk(v, own, out)),
            Val::Tensor { dims, sizes, elem } => {
                let inner = dims.iter().copied().zip(sizes.iter().copied());
                let path = out[own].path.iter().copied().chain(inner).collect();
                out.push(Flat { path, numbers: vec![] });
                walk(elem, out.len() - 1, out);
            }
        }
    }
    let mut out = vec![Flat { path: vec![], numbers: vec![] }];
    walk(v, 0, &mut out);
    out
}

/// A state, and the loop over its steps.
pub(super) struct Recurrence {
    shape: Val,
    /// The stages of its parts.
    stages: Vec<StageId>,
    /// The loops around it; their dimensions and that of the steps are the first of all its stages.
    outer: Vec<DimId>,
    /// The dimension of what is computed for a step.
    each: DimId,
}

impl Recurrence {
    /// The state after a number of steps.
    pub fn after(&self, x: &mut Extract<'_>, steps: Body) -> Val {
        let mut at = x.indices(&self.outer);
        at.push(steps);
        self.read(x, &self.shape, &mut (1..), (0, &mut (0..)), &at)
    }

    fn read(
        &self,
        x: &mut Extract<'_>,
        v: &Val,
        tensors: &mut std::ops::RangeFrom<usize>,
        (part, number): (usize, &mut std::ops::RangeFrom<u32>),
        at: &[Body],
    ) -> Val {
        match v {
            Val::Scalar(b) => {
                let (ty, k) = (x.g.bodies.ty(*b), number.next().unwrap_or_default());
                Val::Scalar(x.g.bodies.load(Source::Stage(self.stages[part], k), ty, at.iter().copied()))
            }
            Val::Tuple(each) => Val::Tuple(each.iter().map(|v| self.read(x, v, tensors, (part, number), at)).collect()),
            Val::Tensor { dims, sizes, elem } => {
                let part = tensors.next().unwrap_or_default();
                let names: Vec<String> = dims.iter().map(|d| x.g.dim(*d).name.clone()).collect();
                let dims: Vec<DimId> = names.into_iter().zip(sizes).map(|(name, n)| x.g.add_dim(name, *n)).collect();
                let at = [at, &x.indices(&dims)].concat();
                let elem = Box::new(self.read(x, elem, tensors, (part, &mut (0..)), &at));
                Val::Tensor { dims, sizes: sizes.clone(), elem }
            }
        }
    }
}

impl Extract<'_> {
    /// The state after so many steps, where a condition chooses between the first state, after none, and one after some:
    /// both are states of one recurrence.
    pub(super) fn state_after(&mut self, c: Body, first: Body, later: Body) -> Option<Body> {
        let Node::Op(Op::Eq, _, sides) = self.g.bodies.node(c).clone() else { return None };
        let Node::Load(Source::Stage(s, k), _, at) = self.g.bodies.node(later).clone() else { return None };
        let stage = self.g.stage(s);
        let Definition::Recur { axis, init, .. } = &stage.def else { return None };
        let (steps, extent, init) = (at[*axis], self.g.dim(stage.dims[*axis]).extent, *init.get(k as usize)?);
        if stage.when.is_some() {
            return None;
        }
        let of: FxHashMap<DimId, Body> = stage.dims.iter().copied().zip(at.iter().copied()).collect();
        let bodies = &mut self.g.bodies;
        let form = bodies.linear(sides[0])?.plus(&bodies.linear(sides[1])?, -1)?;
        let own = bodies.linear(steps)?;
        if form != own && form.times(-1)? != own || bodies.substitute(init, &of) != first {
            return None;
        }
        let zero = bodies.int(0);
        let (low, high) = (bodies.test(Op::Lte, zero, steps), bodies.test(Op::Lt, steps, extent));
        let exists = self.ranges.hold(bodies, low, &[]) && self.ranges.hold(bodies, high, &[]);
        exists.then_some(later)
    }

    /// The states of a recurrence of so many steps, each of which makes the next state from the state before and its index.
    pub(super) fn recurrence(
        &mut self,
        id: Id,
        init: Val,
        n: Body,
        step: impl FnOnce(&mut Self, Val, Body) -> Staged<Val>,
    ) -> Staged<Recurrence> {
        let outer = self.loops_of(id, &init, n);
        let one = self.g.bodies.int(1);
        let count = self.g.bodies.ints(Op::Add, n, one);
        let steps = self.g.add_dim("step", count);
        let first = self.g.stages.len();
        let leader = StageId(first as u32);
        let around = [outer.as_slice(), &[steps]].concat();
        let each = self.open(&[n], &["at".to_string()]);
        let stages = self.states(id, &init, &around, (leader, each[0]))?;
        let out = Recurrence { shape: init, stages, outer, each: each[0] };
        let at = self.g.bodies.index(each[0]);
        let before = out.after(self, at);
        self.steps.push(each[0]);
        let made = self.with_checks(|x| step(x, before, at));
        self.steps.pop();
        self.close(&each);
        let (next, checks) = made?;
        self.define(id, &out, &next, checks)?;
        // What a step computes is computed in the loop over the steps.
        let strange = |s: &Stage| {
            let inner = s.dims.iter().position(|d| *d == each[0]);
            inner.is_some_and(|k| s.dims[..k].iter().any(|d| !around.contains(d)))
        };
        if self.g.stages[first..].iter().any(strange) {
            return self.refuse(id, "a step that depends on other loops than its state");
        }
        Ok(out)
    }

    /// The loops around that a term may depend on.
    fn loops_of(&mut self, id: Id, init: &Val, n: Body) -> Vec<DimId> {
        let free = self.terms.free(id);
        let mut all = init.bodies();
        let values = self.env.iter().rev().enumerate().filter(|(k, _)| free.has(*k));
        values.for_each(|(_, v)| all.extend(v.bodies()));
        all.push(n);
        all.extend(self.path.iter().map(|(c, _)| *c));
        all.extend(self.pending.iter().map(|p| p.check));
        let used = self.dims_of(all.into_iter());
        self.loops.iter().copied().filter(|d| used.contains(d)).collect()
    }

    /// Stages for the parts of a state, which are defined once the step is known.
    fn states(
        &mut self,
        id: Id,
        init: &Val,
        around: &[DimId],
        (leader, each): (StageId, DimId),
    ) -> Staged<Vec<StageId>> {
        let label = self.terms.labelled(id).unwrap_or("state").to_string();
        let mut out = vec![];
        for part in flat(init) {
            let mut dims = around.to_vec();
            for (k, (d, n)) in part.path.iter().enumerate() {
                if self.g.bodies.dims(*n).iter().any(|d| part.path[..k].iter().any(|(outer, _)| outer == d)) {
                    return self.refuse(id, "rows of different sizes");
                }
                let name = self.g.dim(*d).name.clone();
                dims.push(self.g.add_dim(name, *n));
            }
            let tys = part.numbers.iter().map(|b| self.g.bodies.ty(*b)).collect();
            let def = Definition::Recur { axis: around.len() - 1, init: vec![], next: vec![], leader, each };
            let name = self.unique(&label);
            let stage = StageId(self.g.stages.len() as u32);
            self.g.stages.push(Stage { name, dims, tys, when: None, def, checks: vec![] });
            self.named_after(stage, id);
            out.push(stage);
        }
        Ok(out)
    }

    /// Says what the states of a recurrence are: the first ones, and the next ones, in which the index of the step before is
    /// one less than their own.
    fn define(&mut self, id: Id, r: &Recurrence, next: &Val, checks: Vec<Body>) -> Staged<()> {
        let mut all = vec![];
        for (stage, (first, next)) in r.stages.iter().zip(flat(&r.shape).into_iter().zip(flat(next))) {
            for ((_, n), (_, m)) in first.path.iter().zip(&next.path) {
                self.one_size(id, *n, *m, "a state whose size changes")?;
            }
            let (own, axis) = (self.g.stage(*stage).dims.clone(), r.outer.len());
            let before = self.step_before(own[axis]);
            let of = |part: &Flat, x: &mut Self| -> FxHashMap<DimId, Body> {
                let dims = part.path.iter().map(|(d, _)| *d);
                dims.zip(x.indices(&own[axis + 1..])).chain([(r.each, before)]).collect()
            };
            let (a, b) = (of(&first, self), of(&next, self));
            let init: Vec<Body> = first.numbers.iter().map(|n| self.g.bodies.substitute(*n, &a)).collect();
            let next: Vec<Body> = next.numbers.iter().map(|n| self.g.bodies.substitute(*n, &b)).collect();
            all.extend(init.iter().chain(&next));
            if let Definition::Recur { init: a, next: b, .. } = &mut self.g.stages[stage.0 as usize].def {
                (*a, *b) = (init, next);
            }
        }
        let is_state = |b: &Body| matches!(self.g.bodies.node(*b), Node::Acc(k, _) if *k >= ACC_BASE);
        if self.g.bodies.reachable(all.iter().copied()).iter().any(is_state) {
            return self.refuse(id, READS_STATE);
        }
        let before = self.step_before(self.g.stage(r.stages[0]).dims[r.outer.len()]);
        let of = FxHashMap::from_iter([(r.each, before)]);
        let own = checks.into_iter().map(|c| self.g.bodies.substitute(c, &of)).collect();
        let (arms, _, checks) = self.surroundings(&all, &[], own);
        let when = self.all_of(arms);
        let leader = &mut self.g.stages[r.stages[0].0 as usize];
        (leader.when, leader.checks) = (when, checks);
        Ok(())
    }

    fn step_before(&mut self, steps: DimId) -> Body {
        let (at, one) = (self.g.bodies.index(steps), self.g.bodies.int(1));
        self.g.bodies.ints(Op::Sub, at, one)
    }
}
