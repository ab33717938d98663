//! Tables of a recurrence that a step changes in place: few of their elements, at indices that the step decides.
//!
//! Such a table has memory for one state, and what a step does not change is not touched. All that reads the state before a
//! step comes first: what is computed for the step, the other states, the numbers of the state, and the changes among
//! themselves. A change is made as soon as no other that is left reads its table; where two read what the other one changes,
//! the values of one are held until all are known. It must not know how changes were found.

use super::elements::zero;
use super::loops::Run;
use super::{Block, Boxed, Lower, Lowered, Storage};
use crate::ir::{Op, Scalar};
use crate::nest::{Buf, Expr, Info, Stmt, Var};
use crate::schedule::plan::{Kind, Loop, Site};
use crate::stage::{Body, Node, Source, StageId, Update, greatest};

/// What a step changes of a state, together.
#[derive(Clone)]
pub(super) struct Change {
    /// The state.
    pub(super) state: StageId,
    what: Update,
    /// The states that are changed in place of which it reads elements: of its own state, others than those that it changes,
    /// where that is not said of them apart.
    reads: Vec<StageId>,
    /// Whether all that it reads of its own state is the element that it changes.
    own: bool,
}

/// Values of a change that is made later.
struct Held {
    state: StageId,
    what: Update,
    /// Whether it is made.
    hit: Var,
    /// The indices.
    at: Vec<Option<Var>>,
    values: Values,
}

/// One number a component, or a box of them, with what says which of the box are changed, where not all are.
enum Values {
    Vars(Vec<Var>),
    Bufs { each: Vec<Buf>, room: Vec<Body>, only: Option<Buf> },
}

impl Change {
    fn is_row(&self) -> bool {
        self.what.at.iter().any(Option::is_none)
    }

    /// Whether it reads what another one changes. Two that change one component are arms of one tree, so that neither changes
    /// an element of the other; those of different components may.
    fn reads_what(&self, other: &Change) -> bool {
        let changes = |k: &u32| other.what.values.iter().any(|(j, _)| j == k);
        let apart = self.own && self.state == other.state && self.what.values.iter().any(|(k, _)| changes(k));
        self.reads.contains(&other.state) && !apart
    }

    /// Whether its values may be stored while it computes others.
    fn is_safe(&self) -> bool {
        !self.is_row() || self.own
    }
}

impl Lower<'_> {
    /// What steps change of states that can be changed in place: those of which only the last one is read afterwards, and in
    /// whose loops nothing else is computed.
    pub(super) fn changes(&mut self, states: &[StageId], axis: usize) -> Vec<Change> {
        let mut found = vec![];
        for s in states {
            let hosts = self.s.plans.iter().any(|p| matches!(&p.site, Site::At(to, _) if to == s));
            if hosts || !self.is_read_last(*s, axis) || !self.reads_before(*s, axis) {
                continue;
            }
            let extents: Vec<Body> = self.g.stage(*s).dims[axis + 1..].iter().map(|d| self.g.dim(*d).extent).collect();
            if let Some(all) =
                self.g.updates_of_each(*s).filter(|_| extents.iter().all(|n| self.g.bodies.dims(*n).is_empty()))
            {
                found.push((*s, all));
            }
        }
        let tables: Vec<StageId> = found.iter().map(|(s, _)| *s).collect();
        let mut out = vec![];
        for (state, all) in found {
            // A state that no step changes has one that changes nothing.
            let no = self.g.bodies.bool(false);
            let none = Update { when: no, at: vec![], only: None, values: vec![] };
            let all = if all.is_empty() { vec![none] } else { all };
            out.extend(all.into_iter().map(|what| self.change_of(state, what, &tables)));
        }
        out
    }

    fn change_of(&self, state: StageId, what: Update, tables: &[StageId]) -> Change {
        let mut all: Vec<Body> = what.values.iter().map(|(_, b)| *b).chain([what.when]).chain(what.only).collect();
        all.extend(what.at.iter().flatten());
        let dims = &self.g.stage(state).dims;
        let inner = &dims[dims.len() - what.at.len()..];
        let (mut reads, mut own) = (vec![], true);
        for b in self.g.bodies.reachable(all) {
            let Node::Load(Source::Stage(s, _), _, at) = self.g.bodies.node(b) else { continue };
            if tables.contains(s) && !reads.contains(s) {
                reads.push(*s);
            }
            let is_own = |(k, i): (usize, &Body)| match what.at[k] {
                Some(e) => e == *i,
                None => *self.g.bodies.node(*i) == Node::Index(inner[k]),
            };
            own &= *s != state || at[dims.len() - inner.len()..].iter().enumerate().all(is_own);
        }
        Change { state, what, reads, own }
    }

    /// Whether all that reads a state in the steps reads the one before.
    fn reads_before(&mut self, s: StageId, axis: usize) -> bool {
        let Some(of) = self.g.stage(s).recurrence() else { return false };
        let steps = self.g.stage(s).dims[axis];
        let (each, index, one) = (self.g.bodies.index(of.1), self.g.bodies.index(steps), self.g.bodies.int(1));
        let before = self.ints(Op::Sub, index, one);
        self.g.ids().filter(|r| self.g.stage(*r).is_in(of)).all(|r| {
            let state = self.g.stage(r).recurrence() == Some(of);
            self.g.bodies.reachable(self.g.stage(r).bodies()).into_iter().all(|b| match self.g.bodies.node(b) {
                Node::Load(Source::Stage(p, _), _, at) if *p == s => at[axis] == if state { before } else { each },
                _ => true,
            })
        })
    }

    /// Changes tables in the step of a recurrence that its loops are in, the last thing that reads the states before it.
    pub(super) fn change(&mut self, all: &[Change], (host, axis): (&Run, usize), at: Body) -> Lowered<()> {
        let mut left: Vec<&Change> = all.iter().filter(|c| !c.what.values.is_empty()).collect();
        let mut held = vec![];
        while !left.is_empty() {
            let read = |k: usize, left: &[&Change]| {
                left.iter().enumerate().any(|(j, other)| j != k && other.reads_what(left[k]))
            };
            if let Some(k) = (0..left.len()).find(|k| left[*k].is_safe() && !read(*k, &left)) {
                let c = left.remove(k);
                self.change_now(c, (host, axis), at)?;
                continue;
            }
            // One number is held sooner than a row.
            let k = (0..left.len()).min_by_key(|k| (left[*k].is_row(), left[*k].reads.is_empty())).unwrap_or(0);
            let c = left.remove(k);
            held.push(self.hold(c, (host, axis), at)?);
        }
        held.into_iter().try_for_each(|h| self.store_held(&h, (host, axis), at))
    }

    /// Stores the values of a change as they are computed.
    fn change_now(&mut self, c: &Change, (host, axis): (&Run, usize), at: Body) -> Lowered<()> {
        let when = self.at_here(host, &[], &[c.what.when])[0].clone();
        let depth = self.ranges.len();
        self.blocks.push(Block::default());
        let each = self.at_here(host, &[], &c.what.at.iter().flatten().copied().collect::<Vec<_>>());
        let mut each = self.constants("at", each).into_iter();
        let vars: Vec<Option<Var>> = c.what.at.iter().map(|e| e.and_then(|_| each.next())).collect();
        let mut run = self.changed_part(c.state, &vars, (host, axis), at)?;
        if c.reads.contains(&c.state) {
            run = one_by_one(run, axis, &vars);
        }
        let made = self.where_changed(&mut run, &c.what, &mut |l, run| {
            let values = l.changed_values(run, &c.what);
            l.store_changed(run, &c.what, values);
            Ok(())
        });
        self.ranges.truncate(depth);
        self.end_arm(when);
        made
    }

    /// Computes the values of a change that is made later.
    fn hold(&mut self, c: &Change, (host, axis): (&Run, usize), at: Body) -> Lowered<Held> {
        let hit = self.later("changes", Scalar::Bool);
        let vars: Vec<Option<Var>> = c.what.at.iter().map(|e| e.map(|_| self.later("at", Scalar::I64))).collect();
        let tys: Vec<Scalar> = c.what.values.iter().map(|(k, _)| self.g.stage(c.state).tys[*k as usize]).collect();
        let values = if c.is_row() {
            let sizes = self.sizes(c.state)?;
            let free = sizes[axis + 1..].iter().zip(&vars).filter(|(_, v)| v.is_none()).map(|(n, _)| *n);
            let room: Vec<Body> = free.collect::<Vec<_>>().into_iter().map(|n| self.room(n)).collect();
            let dims = self.element(&room);
            let bufs: Vec<Buf> = tys.iter().map(|ty| self.f.fresh_buf(Info::scalar("changed", *ty))).collect();
            let only = c.what.only.map(|_| self.f.fresh_buf(Info::scalar("changes", Scalar::Bool)));
            bufs.iter().chain(&only).for_each(|b| self.push(Stmt::Alloc(*b, dims.clone())));
            Values::Bufs { each: bufs, room, only }
        } else {
            Values::Vars(tys.iter().map(|ty| self.later("changed", *ty)).collect())
        };
        let when = self.at_here(host, &[], &[c.what.when])[0].clone();
        let depth = self.ranges.len();
        self.blocks.push(Block::default());
        self.push(Stmt::Set(hit, Expr::bool(true)));
        for (v, e) in vars.iter().zip(&c.what.at) {
            if let (Some(v), Some(e)) = (v, e) {
                let e = self.at_here(host, &[], &[*e])[0].clone();
                self.push(Stmt::Set(*v, e));
            }
        }
        let mut run = self.changed_part(c.state, &vars, (host, axis), at)?;
        let loops = run.plan.loops.clone();
        let made = self.nested(&mut run, &loops, &mut |l, run| {
            let only = c.what.only.map(|only| l.at_here(run, &[], &[only])[0].clone());
            let only = only.map(|c| Expr::Var(l.constants("changes", vec![c])[0]));
            if let (Some(c), Values::Bufs { room, only: Some(to), .. }) = (&only, &values) {
                let place = l.place_in_part(run, (axis, &vars), room);
                l.push(Stmt::Store(*to, place, c.clone()));
            }
            l.blocks.push(Block::default());
            let each = l.changed_values(run, &c.what);
            match &values {
                Values::Vars(to) => to.iter().zip(each).for_each(|(v, e)| l.push(Stmt::Set(*v, e))),
                Values::Bufs { each: to, room, .. } => {
                    let place = l.place_in_part(run, (axis, &vars), room);
                    to.iter().zip(each).for_each(|(b, e)| l.push(Stmt::Store(*b, place.clone(), e)));
                }
            }
            l.end_arm(only.unwrap_or(Expr::bool(true)));
            Ok(())
        });
        self.ranges.truncate(depth);
        self.end_arm(when);
        made.map(|()| Held { state: c.state, what: c.what.clone(), hit, at: vars, values })
    }

    /// Stores values that were held.
    fn store_held(&mut self, h: &Held, (host, axis): (&Run, usize), at: Body) -> Lowered<()> {
        let depth = self.ranges.len();
        self.blocks.push(Block::default());
        let mut run = self.changed_part(h.state, &h.at, (host, axis), at)?;
        let loops = run.plan.loops.clone();
        let made = self.nested(&mut run, &loops, &mut |l, run| {
            let (each, only): (Vec<Expr>, Option<Expr>) = match &h.values {
                Values::Vars(vars) => (vars.iter().map(|v| Expr::Var(*v)).collect(), None),
                Values::Bufs { each, room, only } => {
                    let place = l.place_in_part(run, (axis, &h.at), room);
                    let load = |b: &Buf| Expr::Load(*b, Box::new(place.clone()));
                    (each.iter().map(load).collect(), only.as_ref().map(load))
                }
            };
            l.blocks.push(Block::default());
            l.store_changed(run, &h.what, each);
            l.end_arm(only.unwrap_or(Expr::bool(true)));
            Ok(())
        });
        self.ranges.truncate(depth);
        self.end_arm(Expr::Var(h.hit));
        made
    }

    /// A variable that is set in an arm.
    fn later(&mut self, name: &str, ty: Scalar) -> Var {
        let v = self.scalar(name, ty);
        self.push(Stmt::Mut(v, Expr::Lit(zero(ty))));
        v
    }

    /// Makes the arm of a condition of the block in the making.
    fn end_arm(&mut self, when: Expr) {
        let block = self.blocks.pop().unwrap_or_default();
        if when == Expr::bool(true) {
            block.stmts.into_iter().for_each(|s| self.push(s));
        } else if !block.stmts.is_empty() && when != Expr::bool(false) {
            self.push(Stmt::If(when, block.stmts, vec![]));
        }
    }

    /// The part of a state that is changed, with loops over the dimensions that have no index.
    fn changed_part(
        &mut self,
        state: StageId,
        vars: &[Option<Var>],
        (host, axis): (&Run, usize),
        at: Body,
    ) -> Lowered<Run> {
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let sizes = self.sizes(state)?;
        let mut least: Vec<Body> = (0..axis).filter_map(|k| self.dim_value(host, k)).collect();
        least.push(at);
        let mut extent = vec![one; axis + 1];
        for (v, n) in vars.iter().zip(&sizes[axis + 1..]) {
            let index = v.map(|v| self.index_of(v, *n));
            least.push(index.unwrap_or(zero));
            extent.push(if v.is_some() { one } else { *n });
        }
        let mut plan = self.s.plan(state).clone();
        let free = |k: usize| k > axis && vars[k - axis - 1].is_none();
        let whole = plan.clone();
        let is_free = |name: &str| whole.root(name).is_some_and(free);
        plan.loops.retain(|l| is_free(&l.name));
        plan.splits.retain(|s| is_free(&s.outer));
        let fixed = (0..plan.dims.len()).filter(|k| !free(*k));
        let values = fixed.map(|k| (plan.dims[k].0.clone(), zero)).collect();
        Ok(Run { values, ..Run::new(state, plan, least, extent) })
    }

    /// The index that a variable holds, which is in range.
    fn index_of(&mut self, v: Var, n: Body) -> Body {
        let d = self.g.add_dim(self.f.var(v).name.clone(), n);
        self.index.insert(d, Expr::Var(v));
        self.ranges.push(&mut self.g.bodies, d, n);
        self.g.bodies.index(d)
    }

    /// Runs a body for each element that is changed.
    fn where_changed(
        &mut self,
        run: &mut Run,
        what: &Update,
        body: &mut dyn FnMut(&mut Self, &mut Run) -> Lowered<()>,
    ) -> Lowered<()> {
        let loops = run.plan.loops.clone();
        let only = what.only.map(|c| self.g.conditions(c)).unwrap_or_default();
        self.asked_between(run, &loops, &only, body)
    }

    /// Loops over a part of a state, in which conditions are asked for as soon as their indices are known.
    fn asked_between(
        &mut self,
        run: &mut Run,
        loops: &[Loop],
        only: &[Body],
        body: &mut dyn FnMut(&mut Self, &mut Run) -> Lowered<()>,
    ) -> Lowered<()> {
        let waits = |c: &Body| loops.iter().any(|l| self.reads_loop(run, l, *c));
        // One that may fail is asked after those before it.
        let early = |c: &Body| !waits(c) && self.g.bodies.is_arithmetic(*c, false);
        let (now, later): (Vec<Body>, Vec<Body>) = only.iter().partition(|c| loops.is_empty() || early(c));
        let mut asked = vec![];
        for c in now {
            asked.push(self.at_here(run, &[], &[c])[0].clone());
            self.blocks.push(Block::default());
        }
        let made = match loops.split_first() {
            None => body(self, run),
            Some((first, rest)) => {
                let whole = (run.least.clone(), run.extent.clone());
                let later = self.within_bounds(run, (first, rest), later);
                let made = self
                    .nested(run, std::slice::from_ref(first), &mut |l, run| l.asked_between(run, rest, &later, body));
                (run.least, run.extent) = whole;
                made
            }
        };
        asked.into_iter().rev().for_each(|c| self.end_arm(c));
        made
    }

    /// Lets a loop over a dimension run only where conditions on its index hold; those that are left.
    fn within_bounds(&mut self, run: &mut Run, (first, inner): (&Loop, &[Loop]), conditions: Vec<Body>) -> Vec<Body> {
        let Some(k) = run.plan.dims.iter().position(|(name, _)| *name == first.name) else { return conditions };
        let d = self.g.stage(run.stage).dims[k];
        let (from, zero) = (run.least[k], self.g.bodies.int(0));
        let end = self.ints(Op::Add, from, run.extent[k]);
        let (mut lo, mut hi, mut left) = (from, end, vec![]);
        for c in conditions {
            let later = inner.iter().any(|l| self.reads_loop(run, l, c));
            let Some(ends) = self.g.bodies.ends_of(c, d).filter(|_| !later) else {
                left.push(c);
                continue;
            };
            let of = self.dim_values(run);
            let [least, most] = ends.map(|e| e.map(|e| self.g.bodies.substitute(e, &of)));
            lo = least.map_or(lo, |e| greatest(&mut self.g.bodies, lo, e));
            hi = most.map_or(hi, |e| crate::stage::least(&mut self.g.bodies, hi, e));
        }
        let count = self.ints(Op::Sub, hi, lo);
        (run.least[k], run.extent[k]) = (lo, greatest(&mut self.g.bodies, count, zero));
        left
    }

    /// Whether a body depends on the index of a loop over a part of a state.
    fn reads_loop(&self, run: &Run, l: &Loop, b: Body) -> bool {
        let (dims, reads) = (&self.g.stage(run.stage).dims, self.g.bodies.dims(b));
        run.plan.root(&l.name).is_none_or(|k| reads.contains(&dims[k]))
    }

    /// The values of a change at an element; of several, all are known before one is stored.
    fn changed_values(&mut self, run: &Run, what: &Update) -> Vec<Expr> {
        let all: Vec<Body> = what.values.iter().map(|(_, b)| *b).collect();
        let each = self.at_here(run, &[], &all);
        if each.len() > 1 { self.held(each) } else { each }
    }

    fn store_changed(&mut self, run: &Run, what: &Update, values: Vec<Expr>) {
        let Some(Storage::Bufs(of)) = self.stored.get(&run.stage).cloned() else { return };
        let at: Vec<Body> = (0..run.plan.dims.len()).filter_map(|k| self.dim_value(run, k)).collect();
        let Boxed { bufs, .. } = &of;
        let place = self.place(&at, &of);
        let place = self.element(&[place])[0].clone();
        for ((k, _), e) in what.values.iter().zip(values) {
            self.push(Stmt::Store(bufs[*k as usize], place.clone(), e));
        }
    }

    /// The place of an element among those of its part.
    fn place_in_part(&mut self, run: &Run, (axis, vars): (usize, &[Option<Var>]), room: &[Body]) -> Expr {
        let free = (0..vars.len()).filter(|k| vars[*k].is_none());
        let at: Vec<Body> = free.filter_map(|k| self.dim_value(run, axis + 1 + k)).collect();
        let at = self.offset(&at, room);
        self.element(&[at])[0].clone()
    }
}

/// The same part in plain loops, which come to each element once.
fn one_by_one(mut run: Run, axis: usize, vars: &[Option<Var>]) -> Run {
    let free = (0..vars.len()).filter(|k| vars[*k].is_none()).map(|k| run.plan.dims[axis + 1 + k].0.clone());
    run.plan.loops = free.map(|name| Loop { name, kind: Kind::Serial }).collect();
    run.plan.splits.clear();
    run
}
