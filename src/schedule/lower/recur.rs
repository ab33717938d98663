//! The steps of a recurrence: first states, and a loop in which what a step computes comes first and then the next states.
//!
//! Numbers of a state are variables, or, where loops over other dimensions stand in the loop over steps, a tile of them: one
//! for each of several recurrences that take a step together; where tensors are computed in the steps of these, numbers have
//! memory, too. Tensors of a state have memory for all steps, or, where only the last is read, for two: the states before a
//! step, and those after it. One of which a step changes few elements is changed in place (`update.rs`), after all that reads
//! the state before.

use super::loops::Run;
use super::update::Change;
use super::{Lower, Lowered, Memory, Storage};
use crate::ir::Op;
use crate::nest::{Expr, Stmt, Var};
use crate::schedule::plan::{Loop, refuse};
use crate::schedule::strips::along;
use crate::stage::{Body, Definition, Node, Output, Source, StageId};
use rustc_hash::FxHashMap;

/// The loop over the steps of a recurrence in the making.
#[derive(Clone)]
pub(super) struct Steps {
    leader: StageId,
    pub(super) axis: usize,
    /// Its other states.
    states: Vec<StageId>,
    /// Where numbers are kept that are read after it; nothing where that is the variables.
    kept: Option<Storage>,
    /// Whether only the last ones are read.
    last: bool,
    /// The dimension of each of them that is computed in strips.
    along: FxHashMap<StageId, usize>,
    /// What a step changes of those that are changed in place.
    changes: Vec<Change>,
}

impl Lower<'_> {
    /// All states of a recurrence, by its leader.
    pub(super) fn recurrence(&mut self, run: &mut Run, axis: usize, init: &[Body], next: &[Body]) -> Lowered<()> {
        let loops = run.plan.loops.clone();
        let over = loops.iter().position(|l| run.plan.root(&l.name) == Some(axis)).unwrap_or(loops.len() - 1);
        let (outer, inner) = loops.split_at(over);
        let (over, tile) = inner.split_at(1);
        let tensors = !tile.is_empty() && self.s.has_tensors_in_steps(run.stage);
        let steps = self.steps(run, axis, tensors)?;
        self.nested(run, outer, &mut |l, run| {
            if tile.is_empty() {
                l.chain(run, &steps, over, (init, next))
            } else if tensors {
                l.instances(run, &steps, (over, tile), (init, next))
            } else {
                l.chains(run, &steps, (over, tile), (init, next))
            }
        })?;
        if let Some(kept) = steps.kept {
            self.stored.insert(steps.leader, kept);
        }
        Ok(())
    }

    /// One recurrence: its numbers are variables, its tensors are computed before them.
    fn chain(&mut self, run: &mut Run, steps: &Steps, over: &[Loop], (init, next): (&[Body], &[Body])) -> Lowered<()> {
        let (before, at_each) = self.g.checks(run.stage);
        // Each text has variables of its own.
        let vars = self.variables(steps.leader);
        let zero = self.g.bodies.int(0);
        self.at_here(run, &before, &[]);
        for s in &steps.states {
            self.state(*s, (run, steps), zero, true)?;
        }
        let first = self.at_here(run, &[], init);
        vars.iter().zip(first).for_each(|(v, e)| self.push(Stmt::Mut(*v, e)));
        self.keep(run, steps, &vars, zero, !steps.last);
        let n = self.over_steps(run, steps.axis, over, &mut |l, run| {
            l.at_here(run, &at_each, &[]);
            let at = l.dim_value(run, steps.axis).unwrap_or(zero);
            for s in steps.states.iter().filter(|s| !steps.changes.iter().any(|c| c.state == **s)) {
                l.state(*s, (run, steps), at, false)?;
            }
            let mut values = l.at_here(run, &[], next);
            if !steps.changes.is_empty() {
                // Numbers, too, come from the tables before the step.
                values = l.held(values);
                l.change(&steps.changes, (run, steps.axis), at)?;
            }
            l.set_all(&vars, values);
            l.keep(run, steps, &vars, at, !steps.last);
            Ok(())
        })?;
        self.keep(run, steps, &vars, n, steps.last);
        Ok(())
    }

    /// Several recurrences at once, each of numbers alone: in each step all of them take it, one after another.
    fn chains(
        &mut self,
        run: &mut Run,
        steps: &Steps,
        (over, tile): (&[Loop], &[Loop]),
        (init, next): (&[Body], &[Body]),
    ) -> Lowered<()> {
        let (before, at_each) = self.g.checks(run.stage);
        let tile = self.tile(run, tile);
        let zero = self.g.bodies.int(0);
        let hosts = std::mem::replace(&mut run.hosts, false);
        self.nested(run, &tile.loops, &mut |l, run| {
            let at = l.place_in(&tile, run);
            let first = l.at_here(run, &before, init);
            let vars = l.constants("first", first);
            l.accumulated(&tile, &at, vars.iter().map(|v| Expr::Var(*v)).collect());
            l.keep(run, steps, &vars, zero, !steps.last);
            Ok(())
        })?;
        run.hosts = hosts;
        let inner: Vec<Loop> = over.iter().chain(&tile.loops).cloned().collect();
        let n = self.over_steps(run, steps.axis, &inner, &mut |l, run| {
            let (at, step) = (l.place_in(&tile, run), l.dim_value(run, steps.axis).unwrap_or(zero));
            let known = l.constants("state", tile.load(&at));
            l.stored.insert(steps.leader, Storage::Vars(known));
            let values = l.at_here(run, &at_each, next);
            let vars = l.constants("next", values);
            l.accumulated(&tile, &at, vars.iter().map(|v| Expr::Var(*v)).collect());
            l.keep(run, steps, &vars, step, !steps.last);
            Ok(())
        })?;
        run.hosts = false;
        if steps.last {
            self.nested(run, &tile.loops, &mut |l, run| {
                let at = l.place_in(&tile, run);
                let vars = l.constants("last", tile.load(&at));
                l.keep(run, steps, &vars, n, true);
                Ok(())
            })?;
        }
        run.hosts = hosts;
        Ok(())
    }

    /// Several recurrences at once in whose steps tensors are computed: a step computes boxes of all rows of these, what only
    /// reads states first, then tensors of states, and then their numbers, which have memory as these have.
    fn instances(
        &mut self,
        run: &mut Run,
        steps: &Steps,
        (over, tile): (&[Loop], &[Loop]),
        (init, next): (&[Body], &[Body]),
    ) -> Lowered<()> {
        let (before, at_each) = self.g.checks(run.stage);
        let zero = self.g.bodies.int(0);
        let hosts = std::mem::replace(&mut run.hosts, false);
        self.checked_in(run, tile, &before)?;
        for s in &steps.states {
            self.state(*s, (run, steps), zero, true)?;
        }
        self.numbers(run, steps, tile, (zero, init))?;
        run.hosts = hosts;
        self.over_steps(run, steps.axis, over, &mut |l, run| {
            let hosts = std::mem::replace(&mut run.hosts, false);
            l.checked_in(run, tile, &at_each)?;
            let at = l.dim_value(run, steps.axis).unwrap_or(zero);
            for s in steps.states.iter().filter(|s| !steps.changes.iter().any(|c| c.state == **s)) {
                l.state(*s, (run, steps), at, false)?;
            }
            l.numbers(run, steps, tile, (at, next))?;
            if !steps.changes.is_empty() {
                l.nested(run, tile, &mut |l, run| l.change(&steps.changes, (run, steps.axis), at))?;
            }
            run.hosts = hosts;
            Ok(())
        })?;
        Ok(())
    }

    /// Checks, where there are any, in loops over rows.
    fn checked_in(&mut self, run: &mut Run, tile: &[Loop], checks: &[Body]) -> Lowered<()> {
        if checks.is_empty() {
            return Ok(());
        }
        self.nested(run, tile, &mut |l, run| {
            l.at_here(run, checks, &[]);
            Ok(())
        })
    }

    /// Computes the numbers of states after some steps, in loops over rows, and puts them into their memory.
    fn numbers(&mut self, run: &mut Run, steps: &Steps, tile: &[Loop], (after, each): (Body, &[Body])) -> Lowered<()> {
        let Some(kept) = steps.kept.clone().filter(|_| !each.is_empty()) else { return Ok(()) };
        self.stored.insert(steps.leader, kept);
        self.nested(run, tile, &mut |l, run| {
            let values = l.at_here(run, &[], each);
            let here = l.after(run, steps.axis, after);
            l.store(&here, values);
            Ok(())
        })
    }

    /// Where a state after some steps is.
    fn after(&mut self, run: &Run, axis: usize, after: Body) -> Run {
        let mut here = run.clone();
        here.least[axis] = self.g.bodies.int(0);
        here.values.insert(here.plan.dims[axis].0.clone(), after);
        here
    }

    /// Runs a body in loops of which the first is that over the steps, from the first one on; the index of the last.
    fn over_steps(
        &mut self,
        run: &mut Run,
        axis: usize,
        loops: &[Loop],
        body: &mut dyn FnMut(&mut Self, &mut Run) -> Lowered<()>,
    ) -> Lowered<Body> {
        let (zero, one, count) = (self.g.bodies.int(0), self.g.bodies.int(1), run.extent[axis]);
        let n = self.ints(Op::Sub, count, one);
        (run.least[axis], run.extent[axis]) = (one, n);
        let made = self.nested(run, loops, body);
        (run.least[axis], run.extent[axis]) = (zero, count);
        made.map(|()| n)
    }

    /// Memory and variables for the states of a recurrence; `tensors` says whether numbers have memory, too.
    fn steps(&mut self, run: &Run, axis: usize, tensors: bool) -> Lowered<Steps> {
        let leader = run.stage;
        let states: Vec<StageId> = self.order.iter().copied().filter(|s| self.is_state(*s, leader)).collect();
        let changes = if run.plan.strip.is_none() { self.changes(&states, axis) } else { vec![] };
        for s in &states {
            let sizes = self.sizes(*s)?;
            let zeros = vec![self.g.bodies.int(0); sizes.len() - axis - 1];
            let least = [run.least[..=axis].to_vec(), zeros].concat();
            let at_once = if changes.iter().any(|c| c.state == *s) { 1 } else { 2 };
            self.reserve_states(*s, (axis, at_once), least, &[&run.extent[..=axis], &sizes[axis + 1..]].concat());
        }
        let last = self.is_read_last(leader, axis);
        let one = |n: &Body| self.g.bodies.as_int(*n) == Some(1);
        let single = last && !tensors && run.when.is_none() && run.extent[..axis].iter().all(one);
        let kept = if single {
            self.see_memory(leader, Memory { least: run.least.clone(), room: None, ring: None });
            None
        } else {
            self.reserve_states(leader, (axis, 2), run.least.clone(), &run.extent);
            self.stored.remove(&leader)
        };
        let along = match &run.plan.strip {
            Some(strip) => along(&self.g, strip.state, strip.axis)?,
            None => FxHashMap::default(),
        };
        Ok(Steps { leader, axis, states, kept, last, along, changes })
    }

    /// Keeps the numbers of the state after some steps for those who read them later; in the steps they are variables.
    fn keep(&mut self, run: &Run, steps: &Steps, vars: &[Var], after: Body, wanted: bool) {
        if let Some(kept) = steps.kept.clone().filter(|_| wanted) {
            let here = self.after(run, steps.axis, after);
            self.stored.insert(steps.leader, kept);
            self.store(&here, vars.iter().map(|v| Expr::Var(*v)).collect());
        }
        self.stored.insert(steps.leader, Storage::Vars(vars.to_vec()));
    }

    /// The first or next values of a state, at an index of the steps.
    fn state(&mut self, s: StageId, (host, steps): (&Run, &Steps), at: Body, first: bool) -> Lowered<()> {
        let Definition::Recur { axis, init, next, .. } = self.g.stage(s).def.clone() else { return Ok(()) };
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let sizes = self.sizes(s)?;
        let (around, rows) = self.rows_of(host, axis)?;
        let inside = vec![zero; sizes.len() - axis - 1];
        let mut least = [around, vec![at], inside].concat();
        let mut extent = [rows, vec![one], sizes[axis + 1..].to_vec()].concat();
        if let (Some(strip), Some(k)) = (&host.plan.strip, steps.along.get(&s).copied()) {
            let (now, by) = (host.values.get(&strip.name).copied().unwrap_or(zero), self.g.bodies.int(strip.factor));
            least[k] = self.ints(Op::Mul, now, by);
            let left = self.ints(Op::Sub, sizes[k], least[k]);
            extent[k] = crate::stage::least(&mut self.g.bodies, by, left);
        }
        let plan = self.s.plan(s).clone();
        let loops = plan.loops.clone();
        let mut run = Run { hosts: !first, ..Run::new(s, plan, least, extent) };
        let each = if first { init } else { next };
        self.nested(&mut run, &loops, &mut |l, run| {
            let values = l.at_here(run, &[], &each);
            l.store(run, values);
            Ok(())
        })
    }

    /// The indices of the outer dimensions of a recurrence at which a step is taken: of each the least, and how many.
    fn rows_of(&mut self, host: &Run, axis: usize) -> Lowered<(Vec<Body>, Vec<Body>)> {
        let one = self.g.bodies.int(1);
        let open: Vec<Body> = (0..axis).filter_map(|k| self.dim_value(host, k)).collect();
        if open.len() == axis {
            return Ok((open, vec![one; axis]));
        }
        let from = self.ranges.len();
        let of = self.reader_indices(host.stage, host)?;
        let (mut least, mut rows) = (vec![], vec![]);
        for (name, d) in &host.plan.dims[..axis] {
            let known = of.get(d).and_then(|i| self.ranges.bounds_from(&mut self.g.bodies, *i, from));
            let Some(known) = known else { return refuse(format!("the rows of `{name}` have no bound")) };
            let more = self.ints(Op::Sub, known.hi, known.lo);
            least.push(known.lo);
            rows.push(self.ints(Op::Add, more, one));
        }
        self.ranges.truncate(from);
        Ok((least, rows))
    }

    /// Whether a stage is a state of a recurrence, and not its leader.
    pub(super) fn is_state(&self, s: StageId, of: StageId) -> bool {
        s != of && self.g.leader(s) == of
    }

    /// Memory for states: those of all steps, or of so many at once.
    fn reserve_states(&mut self, s: StageId, (axis, at_once): (usize, i64), least: Vec<Body>, extent: &[Body]) {
        let mut room: Vec<Body> = extent.iter().map(|n| self.room(*n)).collect();
        let last = self.is_read_last(s, axis);
        if last {
            room[axis] = self.g.bodies.int(at_once);
        }
        self.reserve(s, least, room, last.then_some(axis));
    }

    /// Whether only the last state is read after a recurrence, of each of its rows.
    pub(super) fn is_read_last(&mut self, s: StageId, axis: usize) -> bool {
        let Some(of) = self.g.stage(s).recurrence() else { return false };
        let outer = self.g.stage(s).dims[..axis].to_vec();
        let (n, one) = (self.g.dim(self.g.stage(s).dims[axis]).extent, self.g.bodies.int(1));
        let n = self.ints(Op::Sub, n, one);
        let readers = self.g.ids().filter(|r| !self.g.stage(*r).is_in(of)).flat_map(|r| self.g.stage(r).bodies());
        let mut all: Vec<Body> = readers.collect();
        for o in &self.g.outputs {
            match o {
                Output::Scalar(b) | Output::Size(b) => all.push(*b),
                Output::Data(Source::Stage(p, _)) if *p == s => return false,
                Output::Data(_) => {}
            }
        }
        let nodes: Vec<Node> =
            self.g.bodies.reachable(all).into_iter().map(|b| self.g.bodies.node(b).clone()).collect();
        nodes.into_iter().all(|node| match node {
            Node::Load(Source::Stage(p, _), _, at) if p == s => {
                // The number of steps may depend on the row.
                let row = outer.iter().copied().zip(at.iter().copied()).collect();
                let last = self.g.bodies.substitute(n, &row);
                self.is_same_index(at[axis], last)
            }
            _ => true,
        })
    }

    /// Whether two indices are one, whatever their dimensions are.
    fn is_same_index(&self, x: Body, y: Body) -> bool {
        let apart = || self.g.bodies.linear(x)?.plus(&self.g.bodies.linear(y)?, -1);
        x == y || apart().is_some_and(|form| form.as_constant() == Some(0))
    }
}
