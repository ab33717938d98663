//! The steps of a recurrence: first states, and a loop in which what a step computes comes first and then the next states.
//!
//! Numbers of a state are variables. Its tensors have memory for all steps, or, where only the last is read, for two: the
//! states before a step, and those after it.

use super::loops::Run;
use super::{Lower, Lowered, Memory, Storage};
use crate::ir::Op;
use crate::nest::{Expr, Stmt, Var};
use crate::schedule::strips::along;
use crate::stage::{Body, Definition, Node, Output, Source, StageId};
use rustc_hash::FxHashMap;

/// The loop over the steps of a recurrence in the making.
#[derive(Clone)]
struct Steps {
    leader: StageId,
    axis: usize,
    /// Its other states.
    states: Vec<StageId>,
    /// The numbers of the state.
    vars: Vec<Var>,
    /// Where numbers are kept that are read after it; nothing where that is the variables.
    kept: Option<Storage>,
    /// Whether only the last ones are read.
    last: bool,
    /// The dimension of each of them that is computed in strips.
    along: FxHashMap<StageId, usize>,
}

impl Lower<'_> {
    /// All states of a recurrence, by its leader.
    pub(super) fn recurrence(&mut self, run: &mut Run, axis: usize, init: &[Body], next: &[Body]) -> Lowered<()> {
        let steps = self.steps(run, axis)?;
        let (before, at_each) = self.g.checks(run.stage);
        let loops = run.plan.loops.clone();
        let (outer, over) = loops.split_at(loops.len() - 1);
        let (zero, one, count) = (self.g.bodies.int(0), self.g.bodies.int(1), run.extent[axis]);
        self.nested(run, outer, &mut |l, run| {
            // Each text has variables of its own.
            let steps = Steps { vars: l.variables(steps.leader), ..steps.clone() };
            l.at_here(run, &before, &[]);
            for s in &steps.states {
                l.state(*s, (run, &steps), zero, true)?;
            }
            let first = l.at_here(run, &[], init);
            steps.vars.iter().zip(first).for_each(|(v, e)| l.push(Stmt::Mut(*v, e)));
            let n = l.ints(Op::Sub, count, one);
            l.keep(run, &steps, zero, !steps.last);
            (run.least[axis], run.extent[axis]) = (one, n);
            let made = l.nested(run, over, &mut |l, run| {
                l.at_here(run, &at_each, &[]);
                let at = l.dim_value(run, axis).unwrap_or(zero);
                for s in &steps.states {
                    l.state(*s, (run, &steps), at, false)?;
                }
                let values = l.at_here(run, &[], next);
                l.set_all(&steps.vars, values);
                l.keep(run, &steps, at, !steps.last);
                Ok(())
            });
            (run.least[axis], run.extent[axis]) = (zero, count);
            made?;
            l.keep(run, &steps, n, steps.last);
            Ok(())
        })?;
        if let Some(kept) = steps.kept {
            self.stored.insert(steps.leader, kept);
        }
        Ok(())
    }

    /// Memory and variables for the states of a recurrence.
    fn steps(&mut self, run: &Run, axis: usize) -> Lowered<Steps> {
        let leader = run.stage;
        let states: Vec<StageId> = self.order.iter().copied().filter(|s| self.is_state(*s, leader)).collect();
        for s in &states {
            let sizes = self.sizes(*s)?;
            let zeros = vec![self.g.bodies.int(0); sizes.len() - axis - 1];
            let least = [run.least[..=axis].to_vec(), zeros].concat();
            self.reserve_states(*s, axis, least, &[&run.extent[..=axis], &sizes[axis + 1..]].concat());
        }
        let last = self.is_read_last(leader, axis);
        let one = |n: &Body| self.g.bodies.as_int(*n) == Some(1);
        let single = last && run.when.is_none() && run.extent[..axis].iter().all(one);
        let kept = if single {
            self.see_memory(leader, Memory { least: run.least.clone(), room: None, ring: None });
            None
        } else {
            self.reserve_states(leader, axis, run.least.clone(), &run.extent);
            self.stored.remove(&leader)
        };
        let along = match &run.plan.strip {
            Some(strip) => along(&self.g, strip.state, strip.axis)?,
            None => FxHashMap::default(),
        };
        Ok(Steps { leader, axis, states, vars: vec![], kept, last, along })
    }

    /// Keeps the numbers of the state after some steps for those who read them later; in the steps they are variables.
    fn keep(&mut self, run: &Run, steps: &Steps, after: Body, wanted: bool) {
        if let Some(kept) = steps.kept.clone().filter(|_| wanted) {
            let mut here = run.clone();
            here.least[steps.axis] = self.g.bodies.int(0);
            here.values.insert(here.plan.dims[steps.axis].0.clone(), after);
            self.stored.insert(steps.leader, kept);
            self.store(&here, steps.vars.iter().map(|v| Expr::Var(*v)).collect());
        }
        self.stored.insert(steps.leader, Storage::Vars(steps.vars.clone()));
    }

    /// The first or next values of a state, at an index of the steps.
    fn state(&mut self, s: StageId, (host, steps): (&Run, &Steps), at: Body, first: bool) -> Lowered<()> {
        let Definition::Recur { axis, init, next, .. } = self.g.stage(s).def.clone() else { return Ok(()) };
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let sizes = self.sizes(s)?;
        let around: Vec<Body> = (0..axis).filter_map(|k| self.dim_value(host, k)).collect();
        let inside = vec![zero; sizes.len() - axis - 1];
        let mut least = [around, vec![at], inside].concat();
        let mut extent = [vec![one; axis + 1], sizes[axis + 1..].to_vec()].concat();
        if let (Some(strip), Some(k)) = (&host.plan.strip, steps.along.get(&s).copied()) {
            let (now, by) = (host.values.get(&strip.name).copied().unwrap_or(zero), self.g.bodies.int(strip.factor));
            least[k] = self.ints(Op::Mul, now, by);
            let left = self.ints(Op::Sub, sizes[k], least[k]);
            extent[k] = crate::stage::least(&mut self.g.bodies, by, left);
        }
        let plan = self.s.plan(s).clone();
        let (values, starts, parts) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let loops = plan.loops.clone();
        let mut run =
            Run { stage: s, plan, least, extent, values, starts, parts, hosts: !first, when: None, apart: None };
        let each = if first { init } else { next };
        self.nested(&mut run, &loops, &mut |l, run| {
            let values = l.at_here(run, &[], &each);
            l.store(run, values);
            Ok(())
        })
    }

    /// Whether a stage is a state of a recurrence, and not its leader.
    pub(super) fn is_state(&self, s: StageId, of: StageId) -> bool {
        s != of && self.g.leader(s) == of
    }

    /// Memory for states: those of all steps, or of two.
    fn reserve_states(&mut self, s: StageId, axis: usize, least: Vec<Body>, extent: &[Body]) {
        let mut room: Vec<Body> = extent.iter().map(|n| self.room(*n)).collect();
        let last = self.is_read_last(s, axis);
        if last {
            room[axis] = self.g.bodies.int(2);
        }
        self.reserve(s, least, room, last.then_some(axis));
    }

    /// Whether only the last state is read after a recurrence.
    fn is_read_last(&mut self, s: StageId, axis: usize) -> bool {
        let Some(of) = self.g.stage(s).recurrence() else { return false };
        let (n, one) = (self.g.dim(self.g.stage(s).dims[axis]).extent, self.g.bodies.int(1));
        let n = self.ints(Op::Sub, n, one);
        let other = |b: &Body| match self.g.bodies.node(*b) {
            Node::Load(Source::Stage(p, _), _, at) => *p == s && at[axis] != n,
            _ => false,
        };
        let readers = self.g.ids().filter(|r| !self.g.stage(*r).is_in(of)).flat_map(|r| self.g.stage(r).bodies());
        let mut all: Vec<Body> = readers.collect();
        for o in &self.g.outputs {
            match o {
                Output::Scalar(b) | Output::Size(b) => all.push(*b),
                Output::Data(Source::Stage(p, _)) if *p == s => return false,
                Output::Data(_) => {}
            }
        }
        !self.g.bodies.reachable(all).iter().any(other)
    }
}
