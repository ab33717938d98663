//! What the steps of a fold or scan make is kept in tables over the steps, so that the two ways back (the
//! adjoints of the states, and what the steps give to other variables) read it instead of making it again.
//!
//! Kept is what the step's body binds by its outermost lets, if it takes work, and the same of folds and
//! scans among them, in tables of more axes. What a step comes to is a state, which is known anyway. Only
//! tables that are not ragged are made. A place in a body is said by the number of lets around it.

use super::adjoint::Reverse;
use super::emit::Val;
use super::env::Active;
use super::flow::has_floats;
use super::kept::{Kept, Target};
use super::like::Like;
use super::piece::Piece;
use super::split::takes_work;
use crate::diag::Result;
use crate::ir::{Head, Id, Terms, Ty, deep};
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
    pub states: Val,
    /// What a state has the shape of.
    pub like: Like,
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

/// All that is worth keeping of a body's steps, what comes first in them first.
fn targets(terms: &Terms, body: Id) -> Vec<Target> {
    let (mut out, mut rest, mut at) = (vec![], Some(body), 0);
    while let Some(body) = rest {
        let value;
        (value, rest) = part(terms, body);
        let head = terms.head(value);
        let sequence = matches!(head, Head::Fold | Head::Scan) && has_floats(terms.ty(value));
        if sequence && head == Head::Fold {
            out.push(Target { route: vec![at], states: true });
        }
        if rest.is_some() && takes_work(terms, value) && head != Head::Fold {
            out.push(Target { route: vec![at], states: false });
        }
        if sequence {
            let inner = deep(|| targets(terms, terms.kids(value)[2]));
            out.extend(inner.into_iter().map(|t| Target { route: [vec![at], t.route].concat(), ..t }));
        }
        at += 1;
    }
    out
}

impl Reverse<'_, '_> {
    /// Tables of what the steps make, bound by lets.
    pub(super) fn keep(&mut self, steps: &Steps) -> Result<Vec<Kept>> {
        let mut kept = vec![];
        if !self.keeps {
            return Ok(kept);
        }
        for target in targets(self.w.e.terms, steps.body) {
            let outer = self.w.e.depth();
            if let Some(table) = self.table_of(steps, &kept, &target, outer)? {
                let table = self.w.e.bind(table);
                kept.push(Kept { target, table });
            }
        }
        Ok(kept)
    }

    /// A table of what the steps make, if its sizes are known when `outer` variables are in scope.
    fn table_of(&mut self, steps: &Steps, kept: &[Kept], target: &Target, outer: usize) -> Result<Option<Id>> {
        let (here, mark, scope) = (self.w.e.depth(), self.w.mark(), self.w.env.len());
        if !self.is_outside(steps.n, outer) {
            return Ok(None);
        }
        let n = self.w.e.now(steps.n);
        let before = self.kept.clone();
        let k = self.w.e.enter(Ty::int());
        self.step_variables(steps, k, Active::No, Active::No);
        let step = self.step(steps, kept, k);
        let made = deep(|| self.entry_of(steps.body, &step, target, outer));
        self.kept = before;
        self.w.env.truncate(scope);
        self.w.forget(mark);
        let table = made?.map(|id| {
            let each = self.w.e.close(here + 1, id);
            self.w.e.put(Head::Build(1), [n, each])
        });
        self.w.e.leave(here);
        Ok(table)
    }

    /// What one step makes for a table.
    fn entry_of(&mut self, body: Id, step: &Step, target: &Target, outer: usize) -> Result<Option<Id>> {
        let mut rest = body;
        let mut at = 0;
        let value = loop {
            let (value, next) = part(self.w.e.terms, rest);
            self.recall(step, at, value);
            match next {
                Some(next) if at < target.route[0] => rest = next,
                _ => break value,
            }
            let entry = self.w.entry(value, Active::No);
            self.w.env.push(entry);
            at += 1;
        };
        if target.route.len() == 1 && !target.states {
            let made = self.w.value(value);
            let sizes = self.w.sizes(value);
            let known = sizes.into_iter().all(|s| self.is_outside(s, outer));
            return Ok(known.then(|| self.w.e.now(made)));
        }
        let (steps, kept) = self.steps(value);
        if target.route.len() == 1 {
            let sizes: Vec<Val> = steps.like.sizes.iter().copied().chain([steps.n]).collect();
            let known = sizes.into_iter().all(|s| self.is_outside(s, outer));
            return Ok(known.then(|| self.w.e.now(steps.states)));
        }
        let target = Target { route: target.route[1..].to_vec(), ..*target };
        self.table_of(&steps, &kept.unwrap_or_default(), &target, outer)
    }

    /// Whether a size is known when `outer` variables are in scope.
    fn is_outside(&mut self, size: Val, outer: usize) -> bool {
        let now = self.w.e.now(size);
        !self.w.e.terms.free(now).below(self.w.e.depth() - outer)
    }

    /// What is kept of step `k`, and the state that it comes to.
    fn step(&mut self, steps: &Steps, kept: &[Kept], k: Val) -> Step {
        let mut out = Step::default();
        let (mut last, mut rest) = (0, steps.body);
        while let (_, Some(next)) = part(self.w.e.terms, rest) {
            (last, rest) = (last + 1, next);
        }
        let state = self.element(k, steps.states);
        out.values.insert(last, self.w.e.bind(state));
        for Kept { target, table } in kept {
            let Some((at, route)) = target.route.split_first() else { continue };
            let element = self.element(k, *table);
            let table = self.w.e.bind(element);
            if route.is_empty() && !target.states {
                out.values.insert(*at, table);
            } else {
                let target = Target { route: route.to_vec(), ..*target };
                out.inner.entry(*at).or_default().push(Kept { target, table });
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
