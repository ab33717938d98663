//! The steps of a recurrence: first states, and a loop in which what a step computes comes first and then the next states.
//!
//! Numbers of a state are variables. Its tensors have memory for all steps, or, where only the last is read, for two: the
//! states before a step, and those after it.

use super::loops::Run;
use super::{Lower, Lowered, Storage};
use crate::ir::Op;
use crate::nest::{Expr, Stmt};
use crate::stage::{Body, Definition, Node, Output, Source, StageId};
use rustc_hash::FxHashMap;

impl Lower<'_> {
    /// All states of a recurrence, by its leader.
    pub(super) fn recurrence(&mut self, run: &mut Run, axis: usize, init: &[Body], next: &[Body]) -> Lowered<()> {
        let leader = run.stage;
        let states: Vec<StageId> = self.order.iter().copied().filter(|s| self.is_state(*s, leader)).collect();
        for s in &states {
            let sizes = self.sizes(*s)?;
            let (least, extent) = (run.least[..=axis].to_vec(), run.extent[..=axis].to_vec());
            let zeros = vec![self.g.bodies.int(0); sizes.len() - axis - 1];
            self.reserve_states(*s, axis, [least, zeros].concat(), &[&extent, &sizes[axis + 1..]].concat());
        }
        let last = self.is_read_last(leader, axis);
        let one = |n: &Body| self.g.bodies.as_int(*n) == Some(1);
        let single = last && run.when.is_none() && run.extent[..axis].iter().all(one);
        if !single {
            self.reserve_states(leader, axis, run.least.clone(), &run.extent.clone());
        }
        let kept = self.stored.remove(&leader);
        let vars = self.variables(leader);
        let (before, at_each) = self.g.checks(leader);
        let (outer, steps) = (run.plan.loops.clone(), run.plan.loops.len() - 1);
        let (zero, one, count) = (self.g.bodies.int(0), self.g.bodies.int(1), run.extent[axis]);
        let accs: Vec<Expr> = vars.iter().map(|v| Expr::Var(*v)).collect();
        self.nested(run, &outer[..steps], &mut |l, run| {
            l.at_here(run, &before, &[]);
            for s in &states {
                l.state(*s, run, zero, true)?;
            }
            let first = l.at_here(run, &[], init);
            vars.iter().zip(first).for_each(|(v, e)| l.push(Stmt::Mut(*v, e)));
            let n = l.ints(Op::Sub, count, one);
            let keep = |l: &mut Self, run: &mut Run, at: Body, values: &[Expr]| {
                if let Some(kept) = &kept {
                    let name = run.plan.dims[axis].0.clone();
                    let (least, value) =
                        (std::mem::replace(&mut run.least[axis], zero), run.values.insert(name.clone(), at));
                    l.stored.insert(leader, kept.clone());
                    l.store(run, values.to_vec());
                    run.least[axis] = least;
                    match value {
                        Some(value) => run.values.insert(name, value),
                        None => run.values.remove(&name),
                    };
                }
                l.stored.insert(leader, Storage::Vars(vars.clone()));
            };
            if !last {
                keep(l, run, zero, &accs);
            }
            l.stored.insert(leader, Storage::Vars(vars.clone()));
            (run.least[axis], run.extent[axis]) = (one, n);
            let made = l.nested(run, &outer[steps..], &mut |l, run| {
                l.at_here(run, &at_each, &[]);
                let at = l.dim_value(run, axis).unwrap_or(zero);
                for s in &states {
                    l.state(*s, run, at, false)?;
                }
                let values = l.at_here(run, &[], next);
                l.set_all(&vars, values);
                if !last {
                    keep(l, run, at, &accs);
                }
                Ok(())
            });
            (run.least[axis], run.extent[axis]) = (zero, count);
            made?;
            if last {
                keep(l, run, n, &accs);
            }
            Ok(())
        })?;
        if let Some(kept) = kept {
            self.stored.insert(leader, kept);
        }
        Ok(())
    }

    /// The first or next values of a state, at an index of the steps.
    fn state(&mut self, s: StageId, host: &Run, at: Body, first: bool) -> Lowered<()> {
        let Definition::Recur { axis, init, next, .. } = self.g.stage(s).def.clone() else { return Ok(()) };
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let sizes = self.sizes(s)?;
        let around: Vec<Body> = (0..axis).filter_map(|k| self.dim_value(host, k)).collect();
        let inside = vec![zero; sizes.len() - axis - 1];
        let least = [around, vec![at], inside].concat();
        let extent = [vec![one; axis + 1], sizes[axis + 1..].to_vec()].concat();
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
        s != of && self.g.stage(s).recurrence().is_some_and(|(leader, _)| leader == of)
    }

    /// Whether a stage has the loop over the steps of a recurrence.
    pub(super) fn is_leader(&self, s: StageId) -> bool {
        self.g.stage(s).recurrence().is_some_and(|(leader, _)| leader == s)
    }

    /// Memory for states: those of all steps, or of two.
    fn reserve_states(&mut self, s: StageId, axis: usize, least: Vec<Body>, extent: &[Body]) {
        let mut room: Vec<Body> = extent.iter().map(|n| self.room(*n)).collect();
        let last = self.is_read_last(s, axis);
        if last {
            room[axis] = self.g.bodies.int(2);
        }
        self.reserve(s, least, room);
        if last && let Some(Storage::Bufs { ring, .. }) = self.stored.get_mut(&s) {
            *ring = Some(axis);
        }
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
