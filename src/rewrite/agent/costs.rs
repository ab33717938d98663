//! Costs of states: with bindings placed by themselves, the cost of the term with its lets. Else under the
//! published model, whose costs do not depend on where a term stands, each subterm's is found once; under
//! another model whole terms are costed.

use super::optimize::Params;
use super::placed::placed;
use super::rewrites::Rewrites;
use super::space::{State, TermSpace};
use crate::cost::{Costing, Model, Shape, assumed_trips, combine, elements};
use crate::ir::{Def, Head, Id, Terms, Ty, deep};
use crate::search::Cost;
use rustc_hash::FxHashMap;

/// Costs terms over parameters that calls stand for.
pub struct TermCost<'a, 'b> {
    /// The model.
    pub model: Model,
    /// Costs whole terms, and calls.
    pub costing: &'a mut Costing<'b>,
    /// The definition whose body is rewritten.
    pub def: &'a Def,
    /// What stands for its parameters.
    pub params: &'a Params,
    /// Whether states have no lets, and cost what they do with the best ones.
    pub placed: bool,
    /// Costs by term.
    pub known: FxHashMap<Id, f64>,
}

impl Cost<TermSpace<'_>> for TermCost<'_, '_> {
    fn costs(&mut self, space: &TermSpace<'_>, states: &[State]) -> Vec<f64> {
        let mut rewrites = space.rewrites.borrow_mut();
        let one = |s: &State| match self.model {
            _ if self.placed => self.placed(&mut rewrites, s.id),
            Model::Knossos => self.local(&rewrites.terms, s.id),
            Model::Analytic => {
                let body = self.params.restored(&mut rewrites.terms, s.id);
                self.costing.term(body, self.def, &rewrites.terms)
            }
        };
        states.iter().map(one).collect()
    }
}

impl TermCost<'_, '_> {
    fn placed(&mut self, rewrites: &mut Rewrites<'_>, id: Id) -> f64 {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let (terms, body) = placed(rewrites, self.params, self.def, id, self.model);
        let cost = self.costing.term(body, self.def, &terms);
        self.known.insert(id, cost);
        cost
    }

    fn local(&mut self, terms: &Terms, id: Id) -> f64 {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let costs: Vec<f64> = kids.iter().map(|k| deep(|| self.local(terms, *k))).collect();
        let own = match head {
            Head::Call(f) if self.params.is_param(f) => 0.0,
            _ => self.own(terms, head, id),
        };
        let cost = own + combine(head, &costs, self.trips(terms, head, kids));
        self.known.insert(id, cost);
        cost
    }

    fn trips(&self, terms: &Terms, head: Head, kids: &[Id]) -> f64 {
        match head {
            Head::Sum => terms.ty(kids[0]).as_tensor().map_or(1.0, |(rank, _)| assumed_trips(Head::Build(rank))),
            head if head.is_loop() => assumed_trips(head),
            _ => 1.0,
        }
    }

    fn own(&mut self, terms: &Terms, head: Head, id: Id) -> f64 {
        let kids = terms.kids(id);
        let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
        let ty = terms.ty(id);
        let inner = tys.last().map_or(1.0, |t| elements(*t));
        let shape = Shape { ty, kids: &tys, elements: elements(ty), inner, trips: self.trips(terms, head, kids) };
        let called = if let Head::Call(f) = head { self.costing.call(f) } else { 0.0 };
        self.model.own(head, &shape) + called
    }
}
