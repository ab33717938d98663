//! A table that a step makes of its state by changing few elements of it is no stage of its own: the next state says itself
//! what changes, and who else reads the table reads the state or what was changed.
//!
//! Then the states before and after a step can share their memory, and nothing goes through all elements. It must not know of
//! memory.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Recurrence, Stage};
use super::update::Over;
use crate::ir::{Lit, Op};
use rustc_hash::FxHashMap;

/// Tables that are made one of another in a step, at most.
const MAX_TABLES: usize = 8;

impl Graph {
    /// Puts such tables into the states that they become; whether there is one.
    pub(super) fn changed_tables(&mut self) -> bool {
        self.each_stage(Graph::is_changed_in_place)
    }

    fn is_changed_in_place(&mut self, s: StageId) -> bool {
        let Some(of) = self.stage(s).recurrence().filter(|(leader, _)| *leader != s) else { return false };
        let Definition::Recur { next, .. } = self.stage(s).def.clone() else { return false };
        let mut tables = vec![];
        let whole: Vec<Body> = next.iter().map(|b| self.with_tables(*b, (s, of), &mut tables)).collect();
        if tables.is_empty() || tables.len() > MAX_TABLES || self.updates_by(s, &whole, false).is_none() {
            return false;
        }
        let Some(checks) = tables.iter().map(|p| self.checks_of_step(*p, of)).collect::<Option<Vec<_>>>() else {
            return false;
        };
        if !tables.iter().all(|p| self.is_read_in_steps(*p, of)) {
            return false;
        }
        for (p, checks) in tables.into_iter().zip(checks) {
            for reader in self.consumers(p) {
                self.check_first(self.leader(reader), &checks, of);
            }
            self.inline(p);
            self.stages[p.0 as usize].checks = vec![];
        }
        true
    }

    /// The next state with the elements of tables in the place of reads of them; the tables, readers first.
    fn with_tables(&mut self, b: Body, (s, of): (StageId, Recurrence), tables: &mut Vec<StageId>) -> Body {
        match self.bodies.node(b).clone() {
            Node::If([c, x, y]) => {
                let (x, y) = (self.with_tables(x, (s, of), tables), self.with_tables(y, (s, of), tables));
                self.bodies.cond(c, x, y)
            }
            Node::Load(Source::Stage(p, k), _, at) if tables.len() <= MAX_TABLES && self.is_made_of(p, (s, of)) => {
                let stage = self.stage(p).clone();
                let Definition::Pure(each) = &stage.def else { return b };
                if !tables.contains(&p) {
                    tables.push(p);
                }
                let dims = stage.dims.iter().copied().zip(at).collect();
                let value = self.bodies.substitute(each[k as usize], &dims);
                self.with_tables(value, (s, of), tables)
            }
            _ => b,
        }
    }

    /// Whether a stage is a table that a step makes of a state: an arm of its elements gives one of the state, or of such a
    /// table.
    fn is_made_of(&self, p: StageId, (s, of): (StageId, Recurrence)) -> bool {
        let (mut todo, mut seen) = (vec![p], vec![p]);
        while let Some(p) = todo.pop() {
            let Definition::Pure(each) = &self.stage(p).def else { continue };
            if !self.stage(p).dims.contains(&of.1) {
                continue;
            }
            let mut arms = each.clone();
            while let Some(b) = arms.pop() {
                match self.bodies.node(b) {
                    Node::If([_, x, y]) => arms.extend([*x, *y]),
                    Node::Load(Source::Stage(q, _), ..) if *q == s => return true,
                    Node::Load(Source::Stage(q, _), ..) if !seen.contains(q) && seen.len() <= MAX_TABLES => {
                        seen.push(*q);
                        todo.push(*q);
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Whether all that reads a table reads it in the step that makes it.
    fn is_read_in_steps(&mut self, p: StageId, of: Recurrence) -> bool {
        let Some(place) = self.stage(p).dims.iter().position(|d| *d == of.1) else { return false };
        let around: Vec<DimId> = self.stage(p).dims[..=place].to_vec();
        let outer = &self.stage(of.0).dims;
        if self.is_output(p) || around[..place].iter().any(|d| !outer.contains(d)) {
            return false;
        }
        self.consumers(p).into_iter().all(|r| {
            let step = match self.stage(r).recurrence() {
                Some(own) if own == of => {
                    let steps = self.stage(r).steps();
                    steps
                        .map(|d| (self.bodies.index(d), self.bodies.int(1)))
                        .map(|(d, one)| self.bodies.ints(Op::Sub, d, one))
                }
                _ if self.stage(r).dims.contains(&of.1) => Some(self.bodies.index(of.1)),
                _ => None,
            };
            let decides =
                self.stage(r).when.is_some_and(|c| self.reads([c]).iter().any(|from| from.stage() == Some(p)));
            let outer: Vec<Body> = around[..place].iter().map(|d| self.bodies.index(*d)).collect();
            let here = |at: &[Body]| at[..place] == outer && Some(at[place]) == step;
            let all = self.bodies.reachable(self.stage(r).bodies());
            !decides
                && all.into_iter().all(|b| match self.bodies.node(b) {
                    Node::Load(Source::Stage(q, _), _, at) if *q == p => here(at),
                    _ => true,
                })
        })
    }

    /// The checks of a table as checks of the step that makes it; nothing where there are no such.
    fn checks_of_step(&mut self, p: StageId, of: Recurrence) -> Option<Vec<Body>> {
        let stage: Stage = self.stage(p).clone();
        let place = stage.dims.iter().position(|d| *d == of.1)?;
        let (around, own) = stage.dims.split_at(place + 1);
        let named = |g: &Graph, b: Body| g.bodies.dims(b).iter().any(|d| own.contains(d));
        if stage.when.is_some_and(|c| named(self, c)) {
            return None;
        }
        let (here, yes) = (FxHashMap::default(), self.bodies.bool(true));
        let mut out = vec![];
        for c in stage.checks {
            let mut each = vec![c];
            if named(self, c) {
                let holds = Node::Lit(Lit::Bool(true));
                let arms = self.arms(c, &|n| *n == holds)?;
                each.clear();
                for arm in arms.iter().filter(|arm| arm.value != yes) {
                    let place = self.place(arm, &Over { own, around, here: &here })?;
                    let c = self.bodies.substitute(arm.value, &place.of);
                    if place.only.is_some() || named(self, c) {
                        return None;
                    }
                    each.push(self.bodies.cond(place.when, c, yes));
                }
            }
            for c in each {
                out.push(stage.when.map_or(c, |w| self.bodies.cond(w, c, yes)));
            }
        }
        Some(out)
    }

    /// Lets a stage check what a table of its step did, before what it computes of it, unless the step has done so.
    fn check_first(&mut self, s: StageId, checks: &[Body], of: Recurrence) {
        let stage = self.stage(s).clone();
        let (mut own, mut from) = (checks.to_vec(), 0);
        if let (Some(d), true) = (stage.steps(), stage.recurrence() == Some(of)) {
            let (index, one) = (self.bodies.index(d), self.bodies.int(1));
            let before = FxHashMap::from_iter([(of.1, self.bodies.ints(Op::Sub, index, one))]);
            own = checks.iter().map(|c| self.bodies.substitute(*c, &before)).collect();
            // After those that come before the first state.
            from = self.checks(s).0.len();
        }
        // One that holds anyway holds in an arm.
        let known = |c: &Body| match *self.bodies.node(*c) {
            Node::If([_, then, other]) if self.bodies.as_bool(other) == Some(true) => stage.checks.contains(&then),
            _ => false,
        };
        if own.iter().all(|c| stage.checks.contains(c) || known(c)) {
            return;
        }
        let (before, after) = stage.checks.split_at(from);
        own.retain(|c| !before.contains(c));
        let rest = after.iter().copied().filter(|c| !own.contains(c));
        self.stages[s.0 as usize].checks = before.iter().copied().chain(own.iter().copied()).chain(rest).collect();
    }
}
