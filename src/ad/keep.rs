//! Folds and scans run once: a fold whose derivative is wanted is a scan, whose last state is its value, and what its steps
//! make is kept in tables that the scan gives beside its states. The way back reads them instead of making it again.
//!
//! Kept is what the step's body binds by its outermost lets, if it takes work, and the same of folds and
//! scans among them, in tables of more axes. What a step comes to is a state, which is known anyway. Only
//! tables that are not ragged are made. A place in a body is said by the number of lets around it.

use super::adjoint::Reverse;
use super::emit::Val;
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::kept::{Kept, Target};
use super::like::Like;
use super::piece::Piece;
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
    /// The states after all steps.
    pub states: Table,
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
    /// Runs a fold or scan through which a derivative flows, unless it has run: its value is known from here on.
    pub(super) fn run(&mut self, id: Id) {
        if is_sequence(self.w.e.terms, id) && self.w.active(id) {
            self.run_once(id);
        }
    }

    pub(super) fn run_once(&mut self, id: Id) {
        let place = (id, self.w.env.len());
        if self.kept.contains_key(&place) {
            return;
        }
        let known = self.w.known(id).is_some();
        let kept = deep(|| self.forward(id));
        self.kept.insert(place, kept);
        if known {
            return;
        }
        let (steps, _) = self.steps(id);
        let value = match self.w.e.terms.head(id) {
            Head::Fold => self.last_or(steps.n, steps.states, steps.init),
            _ => {
                let all = self.w.column(steps.n, steps.states);
                self.w.e.bind(all)
            }
        };
        self.w.remember(id, Some(value));
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
        let (next, made) = self.made_by_step(body);
        let mut kept = vec![];
        let mut extras = vec![];
        for Made { target, value, sizes } in made {
            let ty = self.w.e.ty(value.id);
            if let Some(start) = self.start(ty, sizes.as_deref(), outer) {
                extras.push(Extra { value, start });
                kept.push((target, sizes));
            }
        }
        let next = self.w.e.now(next);
        self.kept = before;
        self.w.env.truncate(scope);
        self.w.forget(mark);
        let (states, tables) = self.w.scan(outer, (init, count), next, extras);
        let sizes = self.state_sizes(id);
        let own = Kept { target: Target { route: vec![], states: true }, table: states, sizes };
        let each = kept.into_iter().zip(tables);
        [own].into_iter().chain(each.map(|((target, sizes), table)| Kept { target, table, sizes })).collect()
    }

    /// What a step comes to, and all that is worth keeping of it, what comes first first.
    fn made_by_step(&mut self, body: Id) -> (Val, Vec<Made>) {
        let (mut made, mut rest, mut at) = (vec![], body, 0);
        loop {
            let (value, next) = part(self.w.e.terms, rest);
            if self.keeps && is_sequence(self.w.e.terms, value) {
                self.run_once(value);
                self.add_inner(value, at, &mut made);
            }
            let Some(next) = next else { break };
            let entry = self.w.entry(value, Active::No);
            if self.keeps && takes_work(self.w.e.terms, value) && self.w.e.terms.head(value) != Head::Fold {
                let sizes = self.w.sizes(value);
                let sizes = (sizes.len() == self.w.e.ty(value).axes()).then_some(sizes);
                made.push(Made { target: Target { route: vec![at], states: false }, value: entry.val, sizes });
            }
            self.w.env.push(entry);
            (rest, at) = (next, at + 1);
        }
        (self.w.value(rest), made)
    }

    /// What a fold or scan among the lets of a step keeps of its own steps.
    fn add_inner(&mut self, id: Id, at: usize, made: &mut Vec<Made>) {
        let (steps, inner) = self.steps(id);
        for Kept { target, table, sizes } in inner {
            if self.w.e.terms.head(id) == Head::Scan && target.states && target.route.is_empty() {
                continue;
            }
            let value = self.w.column(steps.n, table);
            let value = self.w.e.bind(value);
            let sizes = sizes.map(|s| [vec![steps.n], s].concat());
            made.push(Made { target: Target { route: [vec![at], target.route].concat(), ..target }, value, sizes });
        }
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
        (ty.as_tensor().is_some() && sizes.len() == ty.axes()).then_some(sizes)
    }

    /// What stands for a value before the first step, in the scope of `outer` variables: nothing where its sizes are not
    /// known there.
    fn start(&mut self, ty: Ty, sizes: Option<&[Val]>, outer: usize) -> Option<Id> {
        let by = self.w.e.depth() - outer;
        let mut outside = vec![];
        for s in sizes? {
            let now = self.w.e.now(*s);
            outside.push(lowered(self.w.e.terms, now, by)?);
        }
        self.w.stand_in_of(ty, &mut outside.into_iter())
    }

    /// What is kept of step `k`, and the state that it comes to.
    fn step(&mut self, steps: &Steps, kept: &[Kept], k: Val) -> Step {
        let mut out = Step::default();
        let (mut last, mut rest) = (0, steps.body);
        while let (_, Some(next)) = part(self.w.e.terms, rest) {
            (last, rest) = (last + 1, next);
        }
        let state = self.w.row(k, steps.states);
        out.values.insert(last, self.w.e.bind(state));
        for Kept { target, table, sizes } in kept {
            let Some((at, route)) = target.route.split_first() else { continue };
            let row = self.w.row(k, *table);
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
            && self.w.known(value).is_none()
        {
            let (steps, _) = self.steps(value);
            let last = self.last_or(steps.n, states, steps.init);
            self.w.remember(value, Some(last));
        }
    }

    /// Collects what a piece of the adjoint of the state after step `k` means for the variables of its body,
    /// which are in scope.
    pub(super) fn step_back(&mut self, steps: &Steps, kept: &[Kept], k: Val, piece: Piece) -> Result<()> {
        let before = self.kept.clone();
        let step = self.step(steps, kept, k);
        self.sequences += 1;
        let done = self.body_back(steps.body, 0, &step, vec![piece]);
        self.sequences -= 1;
        self.kept = before;
        done
    }

    fn body_back(&mut self, body: Id, at: usize, step: &Step, pieces: Vec<Piece>) -> Result<()> {
        if pieces.is_empty() || !self.w.active(body) {
            return Ok(());
        }
        let (value, rest) = part(self.w.e.terms, body);
        self.recall(step, at, value);
        match rest {
            Some(rest) => self.let_back(body, pieces, |me, pieces| deep(|| me.body_back(rest, at + 1, step, pieces))),
            None => self.back(value, pieces),
        }
    }
}
