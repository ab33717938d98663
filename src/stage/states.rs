//! Sums over the steps of a recurrence become states of it: they are added up as it goes, each in its own order, so that no
//! bit changes, and what its steps give to them alone needs no table of all steps.
//!
//! Derivatives have many such sums: of all that the steps backwards give to parameters. One becomes a state where it reads an
//! element of a state after each step that no other of its elements reads, and where such sums alone read that state after
//! the recurrence: then as much is added up in memory that stays near as would be written to a table. Sums of products of
//! all rows with all columns stay as they are; tiles of accumulators are worth more to them. It must
//! not know what is summed.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Recurrence, Stage};
use crate::ir::Op;
use crate::ir::op::Class;
use rustc_hash::FxHashMap;

/// What a state comes to takes the place of a read of it where it has so many nodes at most.
const CHEAP: usize = 12;

/// A sum over the steps of a recurrence.
struct Sum {
    stage: StageId,
    /// The states of which each of its elements reads elements of its own after each step.
    own: Vec<StageId>,
}

impl Graph {
    /// Makes states of sums over the steps of recurrences, where sizes are known.
    pub(super) fn sums_to_states(&mut self) {
        for of in self.ids().filter_map(|s| self.leads(s)).collect::<Vec<Recurrence>>() {
            let leader = self.stage(of.0);
            if leader.dims.len() > 1 || leader.when.is_some() {
                continue;
            }
            // One loop over elements adds to all that have equal ones.
            let mut alike: Vec<(Vec<Body>, Vec<StageId>)> = vec![];
            for Sum { stage, .. } in self.sums_of(of) {
                let extents: Vec<Body> = self.stage(stage).dims.iter().map(|d| self.dim(*d).extent).collect();
                match alike.iter_mut().find(|(of, _)| *of == extents) {
                    Some((_, all)) => all.push(stage),
                    None => alike.push((extents, vec![stage])),
                }
            }
            alike.iter().for_each(|(_, all)| self.make_state(all, of));
        }
    }

    /// The sums over the steps of a recurrence that are worth being states of it.
    fn sums_of(&mut self, of: Recurrence) -> Vec<Sum> {
        let after = self.follows(of);
        let all: Vec<StageId> = self.ids().collect();
        let mut sums: Vec<Sum> = all.into_iter().filter_map(|s| self.sum_over(s, of, &after)).collect();
        loop {
            let known: Vec<StageId> = sums.iter().map(|sum| sum.stage).collect();
            let left = |x: &StageId| {
                let within = |r: &StageId| self.stage(*r).is_in(of) || known.contains(r);
                !self.is_output(*x) && self.consumers(*x).iter().all(within)
            };
            sums.retain(|sum| sum.own.iter().any(left));
            if sums.len() == known.len() {
                return sums;
            }
        }
    }

    /// Which stages are there only after a recurrence, its own included.
    pub(super) fn follows(&self, of: Recurrence) -> Vec<bool> {
        let mut out = vec![false; self.stages.len()];
        for s in self.order() {
            let stage = self.stage(s);
            let reads = self.reads(stage.bodies()).into_iter().filter_map(Source::stage);
            out[s.0 as usize] = stage.is_in(of) || reads.into_iter().any(|p| out[self.leader(p).0 as usize]);
        }
        out
    }

    /// A stage as a sum over the steps of a recurrence that can be a state of it: at each step it reads nothing that is there
    /// only later.
    fn sum_over(&mut self, s: StageId, of: Recurrence, after: &[bool]) -> Option<Sum> {
        let stage = self.stage(s).clone();
        let Definition::Reduce { over, init, next, .. } = &stage.def else { return None };
        let [p] = over.as_slice() else { return None };
        let (p, n) = (*p, self.dim(of.1).extent);
        let steps: Vec<DimId> = self.ids().filter_map(|s| self.stage(s).recurrence()).map(|(_, each)| each).collect();
        let plain = |d: &DimId| !steps.contains(d) && self.bodies.is_fixed(self.dim(*d).extent);
        let free = stage.when.is_none() && stage.checks.is_empty();
        if !free || stage.dims.is_empty() || !stage.dims.iter().all(plain) || self.dim(p).extent != n {
            return None;
        }
        let (at, one) = (self.bodies.index(p), self.bodies.int(1));
        let then = self.bodies.ints(Op::Add, at, one);
        let later = |from: &Source| from.stage().is_some_and(|q| after[q.0 as usize]);
        if self.reads(init.iter().copied()).iter().any(later) || init.iter().any(|b| self.bodies.dims(*b).contains(&p))
        {
            return None;
        }
        let mut own = vec![];
        for b in self.bodies.reachable(next.iter().copied()) {
            let Node::Load(from @ Source::Stage(q, k), _, index) = self.bodies.node(b) else { continue };
            if !later(from) {
                continue;
            }
            let known = self.stage(*q);
            let Definition::Recur { next, .. } = &known.def else { return None };
            if known.recurrence() != Some(of) || index[0] != at && index[0] != then {
                return None;
            }
            if index[0] == then {
                if !self.is_cheap(next[*k as usize]) {
                    return None;
                }
                if self.each_has_one(&stage.dims, &index[1..]) {
                    own.push(*q);
                }
            }
        }
        (!own.is_empty()).then_some(Sum { stage: s, own })
    }

    /// Whether a body is hardly more than a read.
    fn is_cheap(&self, b: Body) -> bool {
        let all = self.bodies.reachable([b]);
        let costly = |b: &Body| match self.bodies.node(*b) {
            Node::Op(op, ..) => matches!(op.row().class, Class::Divide | Class::Transcendental),
            _ => false,
        };
        all.len() <= CHEAP && !all.iter().any(costly)
    }

    /// Whether each point of some dimensions has an element of its own at indices: each dimension is an index of its own,
    /// forwards or backwards.
    fn each_has_one(&self, dims: &[DimId], at: &[Body]) -> bool {
        let alone = |d: &DimId, i: &Body| {
            let others = self.bodies.dims(*i).iter().any(|o| o != d && dims.contains(o));
            let form = self.bodies.linear(*i).filter(|_| self.bodies.is_small(*i) && !others);
            form.is_some_and(|f| {
                f.terms().any(|(a, c)| *self.bodies.node(a) == Node::Index(*d) && matches!(c, 1 | -1))
                    && f.terms().filter(|(a, _)| self.bodies.dims(*a).contains(d)).count() == 1
            })
        };
        dims.iter().all(|d| at.iter().any(|i| alone(d, i)))
    }

    /// Makes one state of sums over equal dimensions; each of them is then what its part of that is after the last step.
    fn make_state(&mut self, sums: &[StageId], of: Recurrence) {
        let (Some(steps), Some(first)) = (self.stage(of.0).steps(), sums.first()) else { return };
        let (step, one) = (self.bodies.index(steps), self.bodies.int(1));
        let before = self.bodies.ints(Op::Sub, step, one);
        let last = self.bodies.ints(Op::Sub, self.dim(steps).extent, one);
        let (name, made) = (self.stage(*first).name.clone(), StageId(self.stages.len() as u32));
        let mut dims = vec![steps];
        for d in self.stage(*first).dims.clone() {
            let (name, extent) = (self.dim(d).name.clone(), self.dim(d).extent);
            dims.push(self.add_dim(name, extent));
        }
        let own: Vec<Body> = dims[1..].iter().map(|d| self.bodies.index(*d)).collect();
        let (mut inits, mut nexts, mut tys) = (vec![], vec![], vec![]);
        for s in sums {
            let stage = self.stage(*s).clone();
            let Definition::Reduce { over, init, next, .. } = &stage.def else { continue };
            let each = stage.dims.iter().copied().zip(own.iter().copied());
            let here: FxHashMap<DimId, Body> = each.chain(over.iter().map(|p| (*p, before))).collect();
            let base = tys.len() as u32;
            inits.extend(init.iter().map(|b| self.bodies.substitute(*b, &here)));
            for b in next {
                let b = self.bodies.substitute(*b, &here);
                let b = self.reading(b, &mut |g, from, _, at| g.after_step(of, from, (step, at)));
                nexts.push(self.bodies.map(b, &mut FxHashMap::default(), &mut |bodies, b| match *bodies.node(b) {
                    Node::Acc(k, ty) => {
                        let at = [before].into_iter().chain(own.iter().copied());
                        Some(bodies.load(Source::Stage(made, base + k), ty, at))
                    }
                    _ => None,
                }));
            }
            let at: Vec<Body> = [last].into_iter().chain(stage.dims.iter().map(|d| self.bodies.index(*d))).collect();
            let parts = (base..).zip(&stage.tys);
            let values =
                parts.map(|(k, ty)| self.bodies.load(Source::Stage(made, k), *ty, at.iter().copied())).collect();
            self.stages[s.0 as usize].def = Definition::Pure(values);
            tys.extend(&stage.tys);
        }
        let (leader, each) = of;
        let def = Definition::Recur { axis: 0, init: inits, next: nexts, leader, each };
        let name = (2..).map(|k| format!("{name}_{k}")).find(|n| self.find(n).is_none()).unwrap_or_default();
        self.stages.push(Stage { name, dims, tys, when: None, def, checks: vec![] });
    }

    /// What a state comes to in a step, in place of a read of it after that.
    fn after_step(&mut self, of: Recurrence, from: Source, (step, at): (Body, &[Body])) -> Option<Body> {
        let Source::Stage(q, k) = from else { return None };
        let known = self.stage(q);
        let Definition::Recur { next, .. } = &known.def else { return None };
        if known.recurrence() != Some(of) || at[0] != step {
            return None;
        }
        let of = known.dims.iter().copied().zip(at.iter().copied()).collect();
        let next = next[k as usize];
        Some(self.bodies.substitute(next, &of))
    }
}
