//! Recurrences become scans: a pair of the first state and the later ones, in each of the loops around.

use super::maker::{Item, Made, Maker, Step};
use super::scope::Bound;
use crate::ir::{Head, Id, Op, Scalar, Ty};
use crate::stage::{Body, Definition, DimId, Node, Stage, StageId};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;

impl Maker {
    /// The stages of a recurrence's state.
    pub(super) fn states(&self, leader: StageId) -> Vec<StageId> {
        self.g.ids().filter(|s| self.g.leader(*s) == leader).collect()
    }

    /// The stages that a step computes of its state.
    pub(super) fn members(&self, leader: StageId) -> IndexSet<StageId> {
        let Some((_, each)) = self.g.leads(leader) else { return IndexSet::new() };
        let states = self.states(leader);
        let mut out: IndexSet<StageId> = IndexSet::new();
        let inside: Vec<StageId> = self.g.ids().filter(|s| self.g.stage(*s).dims.contains(&each)).collect();
        loop {
            let reads = |s: &StageId| {
                let own = self.g.stage(*s).recurrence().map_or(vec![*s], |(l, _)| self.states(l));
                let all = own.iter().flat_map(|s| self.read_by(*s));
                let mut all = all.filter(|r| !own.contains(r));
                all.any(|r| states.contains(&r) || out.contains(&r))
            };
            let more: Vec<StageId> = inside.iter().copied().filter(|s| !out.contains(s) && reads(s)).collect();
            if more.is_empty() {
                return out;
            }
            out.extend(more);
        }
    }

    /// The first state of a recurrence, and those after each step, in a tensor over the loops around that are not fixed.
    pub(super) fn all_states(&mut self, leader: StageId, fixed: &[DimId]) -> Made<Id> {
        let stage = self.g.stage(leader).clone();
        let (Definition::Recur { axis, each, .. }, states) = (stage.def.clone(), self.states(leader)) else {
            return Err("a recurrence without a state".into());
        };
        let outer: Vec<DimId> = stage.dims[..axis].to_vec();
        let loops: Vec<DimId> = outer.iter().copied().filter(|d| !fixed.contains(d)).collect();
        let mut inner = states.iter().flat_map(|s| self.g.stage(*s).dims[axis..].to_vec());
        if inner.any(|d| self.g.bodies.dims(self.g.dim(d).extent).iter().any(|e| loops.contains(e))) {
            return Err("rows of different lengths in the loops around a recurrence".into());
        }
        let fixed = [fixed, loops.as_slice(), &[each]].concat();
        let (before, at_each) = self.g.checks(leader);
        self.over(&loops, &mut |m| {
            m.where_taken(
                stage.when,
                &mut |m| {
                    m.after(&before, &mut |m| {
                        let step = Step { leader, each, states: states.clone(), outer: outer.clone() };
                        let first = m.state(&step, &mut |m, s| match &s.def {
                            Definition::Recur { init, .. } => m.components(init),
                            _ => Err("a state that is none".into()),
                        })?;
                        m.scanned(step, first, &fixed, &at_each)
                    })
                },
                &mut |m| {
                    let step = Step { leader, each, states: states.clone(), outer: outer.clone() };
                    let zero = m.state(&step, &mut |m, s| m.zeros(&s.tys))?;
                    let n = m.count(leader)?;
                    let later = m.put(Head::ConstVec(1), vec![n, zero])?;
                    m.put(Head::Tuple, vec![zero, later])
                },
            )
        })
    }

    /// A pair of a first state and those after each step.
    fn scanned(&mut self, step: Step, first: Id, fixed: &[DimId], checks: &[Body]) -> Made<Id> {
        let (leader, each, ty) = (step.leader, step.each, self.terms.ty(first));
        self.scope.push(Bound::Other, ty);
        let n = self.count(leader)?;
        let start = self.terms.var(0, ty);
        self.scope.push(Bound::Step(leader), ty);
        self.scope.push(Bound::Dim(each), Ty::int());
        let members = self.members(leader);
        let of = self.next_step(leader, each)?;
        let mut wanted: Vec<StageId> = step.states.iter().flat_map(|s| self.read_by(*s)).collect();
        wanted.extend(members.iter().filter(|s| self.fails(**s)));
        self.steps.push(step);
        let items = self.in_order(wanted, Some(&members))?;
        let checks: Vec<Body> = checks.iter().map(|c| self.g.bodies.substitute(*c, &of)).collect();
        let body = self.bound(&items, fixed, &mut |m| {
            m.after(&checks, &mut |m| {
                let Some(step) = m.steps.pop() else { return Err("a step that is none".into()) };
                m.steps.push(Step { states: step.states.clone(), outer: step.outer.clone(), ..step });
                m.state(&step, &mut |m, s| {
                    let Definition::Recur { next, .. } = &s.def else { return Err("a state that is none".into()) };
                    let next: Vec<Body> = next.iter().map(|b| m.g.bodies.substitute(*b, &of)).collect();
                    m.components(&next)
                })
            })
        })?;
        self.steps.pop();
        self.scope.pop(2);
        let later = self.put(Head::Scan, vec![start, n, body])?;
        let names = vec!["state".to_string(), self.g.dim(each).name.clone()];
        self.terms.name(later, names, true);
        let pair = self.put(Head::Tuple, vec![start, later])?;
        self.scope.pop(1);
        let out = self.put(Head::Let, vec![first, pair])?;
        self.terms.name(out, vec!["first".into()], false);
        Ok(out)
    }

    /// The index of a state, as one more than that of the step that makes it.
    fn next_step(&mut self, leader: StageId, each: DimId) -> Made<FxHashMap<DimId, Body>> {
        let Some(steps) = self.g.stage(leader).steps() else { return Err("a recurrence without steps".into()) };
        let (at, one) = (self.g.bodies.index(each), self.g.bodies.int(1));
        let next = self.g.bodies.ints(Op::Add, at, one);
        let all = self.states(leader).into_iter().filter_map(|s| self.g.stage(s).steps()).chain([steps]);
        Ok(all.map(|d| (d, next)).collect())
    }

    /// How many steps there are.
    fn count(&mut self, leader: StageId) -> Made<Id> {
        let Some(steps) = self.g.stage(leader).steps() else { return Err("a recurrence without steps".into()) };
        let (n, one) = (self.g.dim(steps).extent, self.g.bodies.int(1));
        let n = self.g.bodies.ints(Op::Sub, n, one);
        self.number(n)
    }

    /// A state, of which each stage is a part: a number, or a tensor over what is inside.
    fn state(&mut self, step: &Step, part: &mut dyn FnMut(&mut Self, &Stage) -> Made<Id>) -> Made<Id> {
        let mut out = vec![];
        for s in &step.states {
            let stage = self.g.stage(*s).clone();
            let inner = &stage.dims[step.outer.len() + 1..];
            out.push(self.over(inner, &mut |m| part(m, &stage))?);
        }
        match out.as_slice() {
            [one] => Ok(*one),
            _ => self.put(Head::Tuple, out),
        }
    }

    /// An element of a state.
    pub(super) fn read_state(&mut self, s: StageId, k: u32, at: &[Body]) -> Made<Id> {
        let stage = self.g.stage(s).clone();
        let (Some((leader, _)), Definition::Recur { axis, .. }) = (stage.recurrence(), &stage.def) else {
            return Err("a state that is none".into());
        };
        let (around, inner) = (&at[..*axis], &at[axis + 1..]);
        let own = |m: &Self, b: Body, d: DimId| matches!(m.g.bodies.node(b), Node::Index(e) if *e == d);
        let current = self.steps.iter().rev().find(|step| step.leader == leader);
        if let Some(step) = current {
            let here = step.outer.iter().zip(around).all(|(d, b)| own(self, *b, *d)) && own(self, at[*axis], step.each);
            if !here {
                return Err("a step that reads what another step has computed".into());
            }
            let value = self.variable(Bound::Step(leader))?;
            return self.part_of_state(s, leader, value, k, inner);
        }
        let left = self.not_fixed(Item::States(leader), &stage.dims[..*axis], around)?;
        let left: Vec<Body> = left.into_iter().map(|(_, b)| b).collect();
        let base = self.variable(Bound::States(leader))?;
        let pair = self.indexed(base, &left)?;
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let (when, step) = (at[*axis], self.g.bodies.ints(Op::Sub, at[*axis], one));
        let some = self.g.bodies.test(Op::Gt, when, zero);
        let first = |m: &mut Self| {
            let value = m.part(pair, 0)?;
            m.part_of_state(s, leader, value, k, inner)
        };
        let later = |m: &mut Self| {
            let all = m.part(pair, 1)?;
            let value = m.indexed(all, &[step])?;
            m.part_of_state(s, leader, value, k, inner)
        };
        match self.g.bodies.as_bool(some) {
            Some(true) => later(self),
            Some(false) => first(self),
            None => {
                let is_first = self.g.bodies.op(Op::Eq, Scalar::Bool, &[when, zero]);
                let parts = vec![self.each(&[is_first])?[0], first(self)?, later(self)?];
                self.put(Head::If, parts)
            }
        }
    }

    /// A number of a state.
    fn part_of_state(&mut self, s: StageId, leader: StageId, state: Id, k: u32, inner: &[Body]) -> Made<Id> {
        let states = self.states(leader);
        let own = match states.iter().position(|o| *o == s) {
            Some(at) if states.len() > 1 => self.put(Head::Get(at as u32, states.len() as u32), vec![state])?,
            _ => state,
        };
        let element = self.indexed(own, inner)?;
        self.part(element, k)
    }
}
