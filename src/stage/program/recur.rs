//! Recurrences become scans: a pair of the first state and the later ones, in each of the loops around.

use super::maker::{Item, Made, Maker, Recurrence};
use super::scope::Bound;
use crate::ir::{Head, Id, Op, Scalar, Ty};
use crate::stage::{Body, Definition, DimId, Stage, StageId};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use std::rc::Rc;

impl Maker {
    /// Finds the recurrences of the graph, and what their steps compute.
    pub(super) fn find_recurrences(&mut self) {
        for leader in self.g.ids() {
            let stage = self.g.stage(leader);
            let (Definition::Recur { axis, .. }, Some((_, each))) = (&stage.def, self.g.leads(leader)) else {
                continue;
            };
            let outer = stage.dims[..*axis].to_vec();
            let states: Vec<StageId> = self.g.ids().filter(|s| self.g.leader(*s) == leader).collect();
            let members = self.members(&states, each);
            self.recurrences.push(Rc::new(Recurrence { leader, each, states, outer, members }));
        }
    }

    /// The recurrence of a leader.
    pub(super) fn recurrence(&self, leader: StageId) -> Option<&Rc<Recurrence>> {
        self.recurrences.iter().find(|r| r.leader == leader)
    }

    /// The recurrence in whose steps a stage is made, and whose step is not being made.
    pub(super) fn made_in(&self, s: StageId) -> Option<&Rc<Recurrence>> {
        let outside = |r: &&Rc<Recurrence>| self.steps.iter().all(|step| step.leader != r.leader);
        self.recurrences.iter().find(|r| r.members.contains(&s) && outside(r))
    }

    /// The stages that a step computes of its state.
    fn members(&self, states: &[StageId], each: DimId) -> IndexSet<StageId> {
        let mut out: IndexSet<StageId> = IndexSet::new();
        let inside: Vec<StageId> = self.g.ids().filter(|s| self.g.stage(*s).dims.contains(&each)).collect();
        loop {
            let reads = |s: &StageId| {
                let of = self.g.leader(*s);
                let own: Vec<StageId> = self.g.ids().filter(|o| self.g.leader(*o) == of).collect();
                let mut all = own.iter().flat_map(|s| self.read_by(*s));
                all.any(|r| !own.contains(&r) && (states.contains(&r) || out.contains(&r)))
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
        let r = Rc::clone(self.recurrence(leader).ok_or("a recurrence without a state")?);
        let loops: Vec<DimId> = r.outer.iter().copied().filter(|d| !fixed.contains(d)).collect();
        let mut inner = r.states.iter().flat_map(|s| &self.g.stage(*s).dims[r.outer.len()..]);
        if inner.any(|d| self.g.bodies.dims(self.g.dim(*d).extent).iter().any(|e| loops.contains(e))) {
            return Err("rows of different lengths in the loops around a recurrence".into());
        }
        let fixed = [fixed, loops.as_slice(), &[r.each]].concat();
        let (before, at_each) = self.g.checks(leader);
        self.over(&loops, &mut |m| {
            m.where_taken(
                stage.when,
                &mut |m| {
                    m.after(&before, &mut |m| {
                        let first = m.state(&r, &mut |m, s| match &s.def {
                            Definition::Recur { init, .. } => m.components(init),
                            _ => Err("a state that is none".into()),
                        })?;
                        m.scanned(&r, first, &fixed, &at_each)
                    })
                },
                &mut |m| {
                    let zero = m.state(&r, &mut |m, s| m.zeros(&s.tys))?;
                    let n = m.count(leader)?;
                    let later = m.put(Head::ConstVec(1), vec![n, zero])?;
                    m.put(Head::Tuple, vec![zero, later])
                },
            )
        })
    }

    /// A pair of a first state and those after each step.
    fn scanned(&mut self, r: &Rc<Recurrence>, first: Id, fixed: &[DimId], checks: &[Body]) -> Made<Id> {
        let ty = self.terms.ty(first);
        self.scope.push(Bound::Other, ty);
        let (n, start) = (self.count(r.leader)?, self.terms.var(0, ty));
        self.scope.push(Bound::Step(r.leader), ty);
        self.scope.push(Bound::Dim(r.each), Ty::int());
        self.steps.push(Rc::clone(r));
        let body = self.stepped(r, fixed, checks)?;
        self.steps.pop();
        self.scope.pop(2);
        let later = self.put(Head::Scan, vec![start, n, body])?;
        let names = vec!["state".to_string(), self.g.dim(r.each).name.clone()];
        self.terms.name(later, names, true);
        let pair = self.put(Head::Tuple, vec![start, later])?;
        self.scope.pop(1);
        let out = self.put(Head::Let, vec![first, pair])?;
        self.terms.name(out, vec!["first".into()], false);
        Ok(out)
    }

    /// The next state, after what the step computes for it.
    fn stepped(&mut self, r: &Recurrence, fixed: &[DimId], checks: &[Body]) -> Made<Id> {
        // The index of a state is one more than that of the step that makes it.
        let (at, one) = (self.g.bodies.index(r.each), self.g.bodies.int(1));
        let next = self.g.bodies.ints(Op::Add, at, one);
        let of: FxHashMap<DimId, Body> =
            r.states.iter().filter_map(|s| self.g.stage(*s).steps()).map(|d| (d, next)).collect();
        let mut wanted: Vec<StageId> = r.states.iter().flat_map(|s| self.read_by(*s)).collect();
        wanted.extend(r.members.iter().filter(|s| self.fails(**s)));
        let items = self.in_order(wanted, Some(&r.members));
        let checks: Vec<Body> = checks.iter().map(|c| self.g.bodies.substitute(*c, &of)).collect();
        self.bound(&items, fixed, &mut |m| {
            m.after(&checks, &mut |m| {
                m.state(r, &mut |m, s| {
                    let Definition::Recur { next, .. } = &s.def else { return Err("a state that is none".into()) };
                    let next: Vec<Body> = next.iter().map(|b| m.g.bodies.substitute(*b, &of)).collect();
                    m.components(&next)
                })
            })
        })
    }

    /// How many steps there are.
    fn count(&mut self, leader: StageId) -> Made<Id> {
        let Some(steps) = self.g.stage(leader).steps() else { return Err("a recurrence without steps".into()) };
        let (n, one) = (self.g.dim(steps).extent, self.g.bodies.int(1));
        let n = self.g.bodies.ints(Op::Sub, n, one);
        self.number(n)
    }

    /// A state, of which each stage is a part: a number, or a tensor over what is inside.
    fn state(&mut self, r: &Recurrence, part: &mut dyn FnMut(&mut Self, &Stage) -> Made<Id>) -> Made<Id> {
        let mut out = vec![];
        for s in &r.states {
            let stage = self.g.stage(*s).clone();
            let inner = &stage.dims[r.outer.len() + 1..];
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
        if let Some(step) = self.steps.iter().find(|step| step.leader == leader) {
            let here = step.outer.iter().zip(around).all(|(d, b)| self.is_index(*b, *d));
            let here = here && self.is_index(at[*axis], step.each);
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
        let states = self.recurrence(leader).map_or(&[][..], |r| &r.states);
        let own = match (states.iter().position(|o| *o == s), states.len()) {
            (Some(at), n) if n > 1 => self.put(Head::Get(at as u32, n as u32), vec![state])?,
            _ => state,
        };
        let element = self.indexed(own, inner)?;
        self.part(element, k)
    }
}
