//! Folds and scans run once: a fold whose derivative is wanted is a scan, whose last state is its value, and what its steps
//! make is kept in tables that the scan gives beside its states. The way back reads them instead of making it again.
//!
//! Kept is what the step's body binds by its outermost lets, if it takes work, and the same of folds and
//! scans among them, in tables of more axes. What a step comes to is a state, which is known anyway. Only
//! tables that are not ragged are made. A place in a body is said by the number of lets around it.

use super::adjoint::Reverse;
use super::contribution::Contribution;
use super::emit::Val;
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::kept::{Kept, Once, Target};
use super::like::Like;
use super::ragged::Span;
use super::recurrence::{Extra, Table};
use super::split::takes_work;
use crate::diag::Result;
use crate::ir::{Head, Id, Terms, Ty, deep};
use crate::types::shape::lowered;
use rustc_hash::FxHashMap;

/// The steps of a fold or scan, and what is known of them.
pub(super) struct Steps {
    /// How many there are.
    pub n: Val,
    /// The state before the first.
    pub init: Val,
    /// The state after a step, by the one before and the element or index.
    pub body: Id,
    /// The elements of a fold.
    pub elements: Option<Like>,
    /// The states after all steps; the last one, where that tells them.
    pub states: Table,
    /// How they follow from the last one.
    pub once: Option<Once>,
    /// Whether a derivative flows to the state before the first.
    pub flows_on: bool,
    /// What a state has the shape of.
    pub like: Like,
}

/// Something that a step makes, where it stands.
struct Made {
    target: Target,
    value: Val,
    sizes: Option<Vec<Val>>,
}

/// What is kept of one step, by place.
#[derive(Default)]
struct Step {
    values: FxHashMap<usize, Val>,
    /// Whether the step sets an element, and the adjoint of all others is handed on.
    sets: bool,
    inner: FxHashMap<usize, Vec<Kept>>,
}

/// What stands at a place that is not further in than the last let: its value or, behind the lets, the result.
fn part(terms: &Terms, body: Id) -> (Id, Option<Id>) {
    match (terms.head(body), terms.kids(body)) {
        (Head::Let, [value, rest]) => (*value, Some(*rest)),
        _ => (body, None),
    }
}

/// Whether a term runs in order, and a derivative may flow through it.
fn is_sequence(terms: &Terms, id: Id) -> bool {
    matches!(terms.head(id), Head::Fold | Head::Scan) && has_floats(terms.ty(id))
}

impl Reverse<'_, '_> {
    /// Whether what the steps of a fold or scan make is kept.
    pub(super) fn keeps(&self, id: Id) -> bool {
        !self.less.bare.contains(&id)
    }

    /// Whether a term is a fold or scan, or a loop of them, whose tables are kept.
    fn keeps_run(&self, id: Id) -> bool {
        let terms = &self.w.e.terms;
        let each = match terms.head(id) {
            Head::Build(d) => terms.kids(id)[d],
            _ => id,
        };
        is_sequence(terms, each) && self.keeps(each)
    }

    /// Runs a fold or scan through which a derivative flows, or those of a loop, unless it has run: its value is known from
    /// here on.
    pub(super) fn run(&mut self, id: Id) {
        if (is_sequence(self.w.e.terms, id) || self.keeps_run(id)) && self.w.active(id) {
            self.run_once(id);
        }
    }

    pub(super) fn run_once(&mut self, id: Id) {
        let place = (id, self.w.env.len());
        if self.kept.contains_key(&place) {
            return;
        }
        if let Head::Build(d) = self.w.e.terms.head(id) {
            return self.run_loop(id, d);
        }
        let known = self.w.known(id).is_some();
        let kept = deep(|| self.forward(id));
        self.kept.insert(place, kept);
        if known {
            return;
        }
        let (steps, _) = self.steps(id);
        let value = match self.w.e.terms.head(id) {
            Head::Fold => self.last_state(&steps),
            _ => {
                let all = self.w.column(&[steps.n], steps.states);
                self.w.e.bind(all)
            }
        };
        self.w.remember(id, Some(value));
    }

    /// Runs the folds or scans of a loop: their values, and what they keep, come from one loop.
    fn run_loop(&mut self, id: Id, d: usize) {
        if self.w.known(id).is_some() {
            return;
        }
        let kids = self.w.e.terms.kids(id).to_vec();
        let extents: Vec<Val> = kids[..d].iter().map(|n| self.w.value(*n)).collect();
        let around: Vec<Id> = extents.iter().map(|n| self.w.e.now(*n)).collect();
        let (outer, mark, scope, before) = (self.w.e.depth(), self.w.mark(), self.w.env.len(), self.kept.clone());
        for _ in 0..d {
            let i = self.w.e.enter(Ty::int());
            self.w.push(i);
        }
        self.run_once(kids[d]);
        let mut values = vec![self.w.value(kids[d])];
        let mut kept = vec![];
        for Made { target, value, sizes } in self.made_by_sequence(kids[d]) {
            if let Some(sizes) = self.around(sizes, outer) {
                values.push(value);
                kept.push((target, Some(sizes)));
            }
        }
        self.kept = before;
        self.w.env.truncate(scope);
        self.w.forget(mark);
        let mut tables = self.w.tables(outer, around, values).into_iter();
        if let Some(own) = tables.next() {
            let value = self.w.column(&extents, own);
            let value = self.w.e.bind(value);
            self.w.remember(id, Some(value));
        }
        let each = kept.into_iter().zip(tables);
        let kept = each.map(|((target, sizes), table)| Kept { target, table, sizes }).collect();
        self.kept.insert((id, self.w.env.len()), kept);
    }

    /// Says what is kept of the folds or scans of a loop, at its indices; whether it is known what they come to.
    pub(super) fn recall_loop(&mut self, id: Id, each: Id, vars: &[Val]) -> bool {
        let Some(kept) = self.kept.get(&(id, self.w.env.len())).cloned() else { return false };
        let mut rows = vec![];
        for Kept { target, table, sizes } in kept {
            let row = self.w.row(vars, table);
            let table = Table::whole(self.w.e.bind(row));
            let sizes = sizes.and_then(|s| Some(s.get(1..)?.to_vec()));
            rows.push(Kept { target, table, sizes });
        }
        // A fold whose states are not known runs again.
        if self.w.e.terms.head(each) == Head::Scan || rows.iter().any(|k| k.states().is_some()) {
            self.kept.insert((each, self.w.env.len() + vars.len()), rows);
        }
        true
    }

    /// The states of a fold or scan, and tables of what its steps make, bound by lets.
    fn forward(&mut self, id: Id) -> Vec<Kept> {
        let (n, like, elements, body) = self.sequence(id);
        let (outer, mark, scope, before) = (self.w.e.depth(), self.w.mark(), self.w.env.len(), self.kept.clone());
        let (init, count) = (self.w.e.now(like.val), self.w.e.now(n));
        let s = self.w.e.enter(self.w.e.ty(init));
        let i = self.w.e.enter(Ty::int());
        self.w.env.push(Entry { val: s, active: Active::No, sizes: like.sizes.clone() });
        self.step_element(&elements, i, Active::No);
        let (next, made) = self.made_by_step(body, self.keeps(id));
        let mut kept = vec![];
        let mut extras = vec![];
        let span = self.span(outer + 1, count);
        for Made { target, value, sizes } in made {
            let Some((value, sizes)) = self.even(outer, span, value, sizes) else { continue };
            if let Some(start) = self.start(value, &sizes) {
                extras.push(Extra { value, start });
                kept.push((target, Some(sizes)));
            }
        }
        let next = self.w.e.now(next);
        self.kept = before;
        self.w.env.truncate(scope);
        self.w.forget(mark);
        let once = self.once(id).is_some();
        let (states, tables) = if once && extras.is_empty() {
            (self.w.fold(outer, (init, count), next), vec![])
        } else {
            let (states, tables) = self.w.scan(outer, (init, count), next, extras);
            (if once { Table::whole(self.last_or(n, states, like.val)) } else { states }, tables)
        };
        let sizes = self.state_sizes(id);
        let own = Kept { target: Target { route: vec![], states: true }, table: states, sizes };
        let each = kept.into_iter().zip(tables);
        [own].into_iter().chain(each.map(|((target, sizes), table)| Kept { target, table, sizes })).collect()
    }

    /// What a step comes to, and all that is worth keeping of it, what comes first first.
    fn made_by_step(&mut self, body: Id, keeps: bool) -> (Val, Vec<Made>) {
        let (mut made, mut rest, mut at) = (vec![], body, 0);
        loop {
            let (value, next) = part(self.w.e.terms, rest);
            if keeps && self.keeps_run(value) {
                self.run_once(value);
                made.extend(self.made_within(value, at));
            }
            let Some(next) = next else { break };
            let entry = self.w.entry(value, Active::No);
            if keeps && takes_work(self.w.e.terms, value) && self.w.e.terms.head(value) != Head::Fold {
                let sizes = self.w.sizes(value);
                let sizes = (sizes.len() == self.w.e.ty(value).all_axes()).then_some(sizes);
                made.push(Made { target: Target { route: vec![at], states: false }, value: entry.val, sizes });
            }
            self.w.env.push(entry);
            (rest, at) = (next, at + 1);
        }
        (self.w.value(rest), made)
    }

    /// What a fold, a scan or a loop of them among the lets of a step keeps of its own steps.
    fn made_within(&mut self, id: Id, at: usize) -> Vec<Made> {
        let inner = match self.w.e.terms.head(id) {
            Head::Build(d) => {
                let kids = self.w.e.terms.kids(id).to_vec();
                let extents: Vec<Val> = kids[..d].iter().map(|n| self.w.value(*n)).collect();
                let kept = self.kept.get(&(id, self.w.env.len())).cloned().unwrap_or_default();
                self.columns(&extents, kept)
            }
            _ => self.made_by_sequence(id),
        };
        let inside = |m: Made| Made { target: Target { route: [vec![at], m.target.route].concat(), ..m.target }, ..m };
        inner.into_iter().map(inside).collect()
    }

    /// What a fold or scan that has run keeps of its steps.
    fn made_by_sequence(&mut self, id: Id) -> Vec<Made> {
        let (steps, mut kept) = self.steps(id);
        let last = kept.iter().position(|k| k.states().is_some() && steps.once.is_some()).map(|k| kept.remove(k));
        if self.w.e.terms.head(id) == Head::Scan {
            // Its value is all of its states.
            kept.retain(|k| k.states().is_none());
        }
        let mut out = self.columns(&[], last.into_iter().collect());
        out.extend(self.columns(&[steps.n], kept));
        out
    }

    fn columns(&mut self, extents: &[Val], kept: Vec<Kept>) -> Vec<Made> {
        let mut out = vec![];
        for Kept { target, table, sizes } in kept {
            let value = self.w.column(extents, table);
            let value = self.w.e.bind(value);
            let sizes = sizes.map(|s| [extents, &s].concat());
            out.push(Made { target, value, sizes });
        }
        out
    }

    /// The sizes of all tensors in a state of a fold or scan, where they are known.
    fn state_sizes(&mut self, id: Id) -> Option<Vec<Val>> {
        self.entry_sizes(self.w.e.terms.kids(id)[0])
    }

    fn entry_sizes(&mut self, id: Id) -> Option<Vec<Val>> {
        let ty = self.w.e.ty(id);
        if !ty.has_tensor() {
            return Some(vec![]);
        }
        if self.w.e.terms.head(id) == Head::Tuple {
            let parts = self.w.e.terms.kids(id).to_vec();
            let sizes: Option<Vec<Vec<Val>>> = parts.into_iter().map(|p| deep(|| self.entry_sizes(p))).collect();
            return sizes.map(|all| all.concat());
        }
        let sizes = self.w.sizes(id);
        (sizes.len() == ty.all_axes()).then_some(sizes)
    }

    /// Sizes in the scope of `outer` variables; nothing where they are not known there.
    fn around(&mut self, sizes: Option<Vec<Val>>, outer: usize) -> Option<Vec<Val>> {
        let mut out = vec![];
        for s in sizes? {
            let (now, by) = (self.w.e.now(s), self.w.e.depth() - outer);
            out.push(Val { id: lowered(self.w.e.terms, now, by)?, depth: outer });
        }
        Some(out)
    }

    /// A value and its sizes in the scope of `outer` variables, padded where its first size differs from step to step; nothing
    /// where other sizes do.
    fn even(&mut self, outer: usize, span: Span, of: Val, sizes: Option<Vec<Val>>) -> Option<(Val, Vec<Val>)> {
        if let Some(sizes) = self.around(sizes.clone(), outer) {
            return Some((of, sizes));
        }
        let sizes = sizes?;
        let inner = self.around(Some(sizes[1..].to_vec()), outer)?;
        let n = self.w.e.now(sizes[0]);
        let (most, made) = self.padded(outer, span, (of, n), &inner.iter().map(|s| s.id).collect::<Vec<_>>())?;
        let most = Val { id: most, depth: outer };
        Some((made, [vec![most], inner].concat()))
    }

    /// What stands for a value before the first step, in the scope that its sizes stand in.
    fn start(&mut self, value: Val, sizes: &[Val]) -> Option<Id> {
        let ty = self.w.e.ty(value.id);
        self.w.stand_in_of(ty, &mut sizes.iter().map(|s| s.id))
    }

    /// What is kept of step `k`, and the state that it comes to.
    fn step(&mut self, steps: &Steps, kept: &[Kept], k: Val) -> Step {
        let mut out = Step { sets: steps.once.is_some() && !steps.flows_on, ..Step::default() };
        let (mut last, mut rest) = (0, steps.body);
        while let (_, Some(next)) = part(self.w.e.terms, rest) {
            (last, rest) = (last + 1, next);
        }
        if steps.once.is_none() {
            let state = self.w.row(&[k], steps.states);
            out.values.insert(last, self.w.e.bind(state));
        }
        for Kept { target, table, sizes } in kept {
            let Some((at, route)) = target.route.split_first() else { continue };
            let row = self.w.row(&[k], *table);
            let row = self.w.e.bind(row);
            if route.is_empty() && !target.states {
                out.values.insert(*at, row);
            } else {
                let target = Target { route: route.to_vec(), ..*target };
                let sizes = sizes.as_ref().map(|s| s[1..].to_vec());
                out.inner.entry(*at).or_default().push(Kept { target, table: Table::whole(row), sizes });
            }
        }
        out
    }

    /// Says what is kept of what stands at a place of the body.
    fn recall(&mut self, step: &Step, at: usize, value: Id) {
        self.w.remember(value, step.values.get(&at).copied());
        let Some(inner) = step.inner.get(&at) else { return };
        self.kept.insert((value, self.w.env.len()), inner.clone());
        if let Some(states) = inner.iter().find_map(Kept::states)
            && self.w.e.terms.head(value) == Head::Fold
            && self.w.known(value).is_none()
        {
            let (steps, _) = self.steps(value);
            let last = self.last_state(&Steps { states, ..steps });
            self.w.remember(value, Some(last));
        }
    }

    /// Collects what a contribution of the adjoint of the state after step `k` means for the variables of its body,
    /// which are in scope.
    pub(super) fn step_back(&mut self, steps: &Steps, kept: &[Kept], k: Val, contribution: Contribution) -> Result<()> {
        let before = self.kept.clone();
        let step = self.step(steps, kept, k);
        self.sequences += 1;
        let done = self.body_back(steps.body, 0, &step, vec![contribution]);
        self.sequences -= 1;
        self.kept = before;
        done
    }

    fn body_back(&mut self, body: Id, at: usize, step: &Step, contributions: Vec<Contribution>) -> Result<()> {
        if contributions.is_empty() || !self.w.active(body) {
            return Ok(());
        }
        let (value, rest) = part(self.w.e.terms, body);
        self.recall(step, at, value);
        match rest {
            Some(rest) => self.let_back(body, contributions, |me, contributions| {
                deep(|| me.body_back(rest, at + 1, step, contributions))
            }),
            None if step.sets => self.set_back(value, contributions),
            None => self.back(value, contributions),
        }
    }
}
