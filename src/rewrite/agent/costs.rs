//! Costs of states: under the published model, whose costs do not depend on where a term stands, each
//! subterm's is found once; under another model whole terms are costed.

use super::optimize::Params;
use super::space::{State, TermSpace};
use super::value::Valuing;
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
    /// Costs by term.
    pub known: FxHashMap<Id, f64>,
    /// What is expected of terms, where there is a network that says it.
    pub valuing: Option<Valuing<'a>>,
}

impl Cost<TermSpace<'_>> for TermCost<'_, '_> {
    fn costs(&mut self, space: &TermSpace<'_>, states: &[State]) -> Vec<f64> {
        let mut rewrites = space.rewrites.borrow_mut();
        states.iter().map(|s| self.cost(&mut rewrites.terms, s.id)).collect()
    }

    fn values(&mut self, space: &TermSpace<'_>, states: &[State]) -> Vec<f64> {
        let costs = self.costs(space, states);
        let Some(valuing) = &mut self.valuing else { return vec![0.0; states.len()] };
        let terms = &space.rewrites.borrow().terms;
        let known = &self.known;
        // Only under the published model a subterm has a cost of its own.
        let parts = self.model == Model::Knossos;
        let cost = |id: Id| known.get(&id).copied().filter(|_| parts);
        valuing.values(terms, states, &costs, space.depth, &cost)
    }
}

impl TermCost<'_, '_> {
    /// The cost of one term.
    pub fn one(&mut self, space: &TermSpace<'_>, id: Id) -> f64 {
        self.cost(&mut space.rewrites.borrow_mut().terms, id)
    }

    fn cost(&mut self, terms: &mut Terms, id: Id) -> f64 {
        match self.model {
            Model::Knossos => self.local(terms, id),
            Model::Analytic => {
                if let Some(known) = self.known.get(&id) {
                    return *known;
                }
                let body = self.params.restored(terms, id);
                let cost = self.costing.term(body, self.def, terms);
                self.known.insert(id, cost);
                cost
            }
        }
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
