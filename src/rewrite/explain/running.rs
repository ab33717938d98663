//! Flat programs get lets again, to be shown and to be costed on the way.

use crate::cost::Model;
use crate::derive::check::Checker;
use crate::derive::flat::{Scope, Site, bound, lowered, to_body, with_leaves};
use crate::derive::found::Found;
use crate::derive::prove::{Asked, Prover};
use crate::ir::{Def, Id, Terms, deep};
use crate::rewrite::egraph::elaborate::elaborate_within;
use rustc_hash::{FxHashMap, FxHashSet};

/// A program on its way has so many parts at most, what stands in several loops counted in each, or it gets no lets.
const MAX_PARTS: usize = 100_000;

/// The programs on one way: most of one is in the next one, and is looked at once.
pub struct Running<'a> {
    def: &'a Def,
    model: Model,
    own: Terms,
    found: Found,
}

impl<'a> Running<'a> {
    /// For the programs that stand for a definition. The model decides what is worth a let.
    pub fn new(def: &'a Def, model: Model) -> Running<'a> {
        let (own, found) = Default::default();
        Running { def, model, own, found }
    }

    /// A flat program as a body with lets, in an arena of its own; nothing where it has too many parts.
    pub fn shared(&mut self, terms: &Terms, flat: Id) -> Option<(Terms, Id)> {
        if terms.reachable(flat).len() > MAX_PARTS {
            return None;
        }
        let flat = self.own.import(terms, flat);
        let (known, local) = Default::default();
        let prover = Prover::new(&mut self.own, self.def, (&known, &local), Asked::Total, vec![]);
        let mut prover = prover.knowing(std::mem::take(&mut self.found));
        let (total, body) = totals(&mut prover, flat);
        self.found = prover.found();
        let id = with_lets(&mut self.own, body, self.def, &total, self.model)?;
        let mut out = Terms::default();
        let id = out.import(&self.own, id);
        Some((out, id))
    }
}

/// The present program of a checker as a body with lets, in an arena of its own; nothing where it has too many parts.
pub fn proved(checker: &mut Checker<'_>, def: &Def, model: Model) -> Option<(Terms, Id)> {
    let now = checker.now;
    if checker.terms.reachable(now).len() > MAX_PARTS {
        return None;
    }
    let (total, body) = checker.proving(|p| totals(p, now));
    let mut terms = checker.terms.clone();
    let id = with_lets(&mut terms, body, def, &total, model)?;
    Some((terms, id))
}

/// Which parts of a let-free body over a definition's parameters cannot fail.
pub fn total(terms: &mut Terms, body: Id, def: &Def) -> FxHashMap<Id, bool> {
    total_beside(terms, body, def, &FxHashSet::default())
}

/// The same where some parts have a value anyway, over leaves for parameters.
pub fn total_beside(terms: &mut Terms, body: Id, def: &Def, known: &FxHashSet<Site>) -> FxHashMap<Id, bool> {
    let flat = with_leaves(terms, body, 0, def.params.len());
    let local = Default::default();
    let mut prover = Prover::new(terms, def, (known, &local), Asked::Total, vec![]);
    totals(&mut prover, flat).0
}

/// The body of a flat program, and which of its parts cannot fail.
fn totals(p: &mut Prover<'_>, flat: Id) -> (FxHashMap<Id, bool>, Id) {
    let (n, mut total) = (p.def.params.len(), FxHashMap::default());
    let body = to_body(p.terms, flat, n, 0);
    mark(p, (flat, body), &vec![], &mut total, &mut FxHashSet::default());
    (total, body)
}

fn with_lets(terms: &mut Terms, body: Id, def: &Def, total: &FxHashMap<Id, bool>, model: Model) -> Option<Id> {
    elaborate_within(terms, body, &def.params, total, (model, MAX_PARTS))
}

/// Notes which terms of a body, the same flat, cannot fail wherever they stand in it.
pub fn mark(
    p: &mut Prover<'_>,
    (flat, body): (Id, Id),
    scope: &Scope,
    total: &mut FxHashMap<Id, bool>,
    seen: &mut FxHashSet<(Id, Id, Scope)>,
) {
    // What depends on no loop is the same in all of them, and what depends on outer ones alone in all inner ones.
    let (free, depth) = (p.terms.free(flat), scope.len());
    let outside = depth - (0..depth).take_while(|i| !free.has(*i)).count();
    let lower = |t: &mut Terms, id: Id| lowered(t, id, depth - outside);
    let (flat, scope) = match lower(p.terms, flat) {
        Some(outer) => (outer, &scope[..outside].to_vec()),
        None => (flat, scope),
    };
    if !seen.insert((flat, body, scope.clone())) {
        return;
    }
    let (head, flats, bodies) = (p.terms.head(flat), p.terms.kids(flat).to_vec(), p.terms.kids(body).to_vec());
    for (k, pair) in flats.iter().zip(bodies).enumerate() {
        let mut inner = scope.clone();
        if head.binds(k, flats.len()) > 0 {
            inner.extend(bound(p.terms, head, &flats));
        }
        deep(|| mark(p, (*pair.0, pair.1), &inner, total, seen));
    }
    // What cannot fail under no conditions is not looked into again under those of each arm around it.
    let safe = p.safe(flat, scope);
    *total.entry(body).or_insert(safe) &= safe;
}
