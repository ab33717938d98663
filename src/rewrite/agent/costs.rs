//! Costs of states: with bindings placed by themselves, the cost of the term with its lets. Else under the
//! published model, whose costs do not depend on where a term stands, each subterm's is found once; under
//! another model whole terms are costed.

use super::params::Params;
use super::placed::placed;
use super::space::{State, TermSpace};
use super::value::Valuing;
use crate::cost::{Costing, Model, Shape, assumed_trips, combine, elements, named};
use crate::ir::{Def, Fun, Head, Id, Terms, Ty, deep};
use crate::search::Cost;
use crate::types::shape::is_shapeless;
use rustc_hash::FxHashMap;

/// Costs that were found already.
#[derive(Default)]
pub struct Known {
    /// Those of whole terms.
    whole: FxHashMap<Id, f64>,
    /// Under the published model those of subterms on their own, with the lets and calls they have.
    parts: FxHashMap<Id, f64>,
    /// The named sizes that subterms use, and those that they use more than once or in a loop, as bits.
    sizes: FxHashMap<Id, (u64, u64)>,
    /// Subterms with sums that have no shape where they are over nothing.
    shapeless: FxHashMap<Id, bool>,
    /// The functions that subterms call, in order; parameters are none.
    calls: FxHashMap<Id, Box<[Fun]>>,
}

impl Known {
    /// The cost of a state that was costed.
    pub fn state(&self, id: Id) -> Option<f64> {
        self.whole.get(&id).or_else(|| self.parts.get(&id)).copied()
    }

    /// The cost of a subterm on its own, where the model knows one.
    pub fn part(&self, id: Id) -> Option<f64> {
        self.parts.get(&id).copied()
    }
}

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
    pub known: Known,
    /// What is expected of terms, where there is a network that says it.
    pub valuing: Option<Valuing<'a>>,
}

impl Cost<TermSpace<'_>> for TermCost<'_, '_> {
    fn costs(&mut self, space: &TermSpace<'_>, states: &[State]) -> Vec<f64> {
        states.iter().map(|s| self.one(space, s.id)).collect()
    }

    fn values(&mut self, space: &TermSpace<'_>, states: &[State]) -> Vec<f64> {
        if self.valuing.is_none() {
            return vec![0.0; states.len()];
        }
        let costs = self.costs(space, states);
        let terms = &space.rewrites.borrow().terms;
        states.iter().for_each(|s| self.split(terms, s.id));
        let known = &self.known;
        let Some(valuing) = &mut self.valuing else { return vec![0.0; states.len()] };
        valuing.values(terms, states, &costs, space.depth, &|id| known.part(id))
    }
}

impl TermCost<'_, '_> {
    /// The cost of one term.
    pub fn one(&mut self, space: &TermSpace<'_>, id: Id) -> f64 {
        let mut rewrites = space.rewrites.borrow_mut();
        if let Some(known) = self.known.whole.get(&id) {
            return *known;
        }
        // What makes a sum over nothing lose its shape is no state to be chosen.
        let lost = self.shapeless(&mut rewrites.terms, id) && !self.shapeless(&mut rewrites.terms, space.root);
        let cost = match self.placed {
            _ if lost => f64::INFINITY,
            true => {
                let (terms, body) = placed(&mut rewrites, self.params, self.def, id, self.model);
                self.costing.term(body, self.def, &terms)
            }
            false if self.model == Model::Knossos => {
                let (used, often) = self.sizes(&rewrites.terms, id);
                let once = f64::from((used & !often).count_ones()) * named(self.model, 1);
                let often = f64::from(often.count_ones()) * named(self.model, 2);
                let calls = self.calls(&rewrites.terms, id);
                let definitions = self.costing.definitions(self.def, &calls);
                self.local(&rewrites.terms, id) + once + often + definitions
            }
            false => {
                let body = self.params.restored(&mut rewrites.terms, id);
                self.costing.term(body, self.def, &rewrites.terms)
            }
        };
        self.known.whole.insert(id, cost);
        cost
    }

    fn shapeless(&mut self, terms: &mut Terms, id: Id) -> bool {
        if let Some(known) = self.known.shapeless.get(&id) {
            return *known;
        }
        let kids = terms.kids(id).to_vec();
        let found = kids.iter().any(|k| deep(|| self.shapeless(terms, *k))) || is_shapeless(terms, id);
        self.known.shapeless.insert(id, found);
        found
    }

    /// Finds the costs of a term's parts, where the model knows them.
    pub fn split(&mut self, terms: &Terms, id: Id) {
        if self.model == Model::Knossos {
            self.local(terms, id);
        }
    }

    fn local(&mut self, terms: &Terms, id: Id) -> f64 {
        if let Some(known) = self.known.parts.get(&id) {
            return *known;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let costs: Vec<f64> = kids.iter().map(|k| deep(|| self.local(terms, *k))).collect();
        let own = match head {
            Head::Call(f) if self.params.is_param(f) => 0.0,
            _ if self.named_size(terms, id).is_some() => 0.0,
            _ => self.own(terms, head, id),
        };
        let cost = own + combine(head, &costs, self.trips(terms, head, kids));
        self.known.parts.insert(id, cost);
        cost
    }

    /// Which named size a term is, by a bit: what it costs depends on the whole.
    fn named_size(&self, terms: &Terms, id: Id) -> Option<u64> {
        let (Head::Size(axis), [of]) = (terms.head(id), terms.kids(id)) else { return None };
        let Head::Call(f) = terms.head(*of) else { return None };
        let p = self.params.number(f)?;
        self.def.named_size((p, axis))?;
        let before: usize = self.def.params[..p].iter().map(|p| p.sizes.len()).sum();
        1u64.checked_shl((before + axis) as u32)
    }

    fn sizes(&mut self, terms: &Terms, id: Id) -> (u64, u64) {
        if let Some(known) = self.known.sizes.get(&id) {
            return *known;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let (mut used, mut often) = (self.named_size(terms, id).unwrap_or(0), 0);
        for (k, kid) in kids.iter().enumerate() {
            let (inner, more) = deep(|| self.sizes(terms, *kid));
            let looped = head.is_loop() && head.binds(k, kids.len()) > 0;
            often |= more | if looped { inner } else { used & inner };
            used |= inner;
        }
        self.known.sizes.insert(id, (used, often));
        (used, often)
    }

    fn calls(&mut self, terms: &Terms, id: Id) -> Box<[Fun]> {
        if let Some(known) = self.known.calls.get(&id) {
            return known.clone();
        }
        let own = match terms.head(id) {
            Head::Call(f) if !self.params.is_param(f) => Some(f),
            _ => None,
        };
        let mut all: Vec<Fun> = own.into_iter().collect();
        for kid in terms.kids(id) {
            all.extend(deep(|| self.calls(terms, *kid)));
        }
        all.sort_unstable();
        all.dedup();
        self.known.calls.insert(id, all.clone().into());
        all.into()
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
