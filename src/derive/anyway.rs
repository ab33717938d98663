//! What a proof rests on besides the term itself: what is taken for granted of parameters, and what is evaluated
//! anyway.
//!
//! It must not know what a search believes.

use super::canonical::Canonical;
use super::flat::{Scope, lowered, replaced_leaves};
use super::hypotheses::{Hypotheses, Levels};
use super::prove::Prover;
use crate::ir::{Head, Id, Lit, Terms, Ty};
use std::cell::RefCell;

impl<'a> Prover<'a> {
    /// The same for parameters that are no inputs.
    pub fn granting(mut self, granted: Option<&'a Hypotheses>) -> Prover<'a> {
        self.granted = granted;
        self
    }

    /// The same where something is evaluated anyway.
    pub(super) fn beside(mut self, facts: &'a Levels) -> Prover<'a> {
        self.facts = facts;
        self
    }

    /// The same where all that is known to be evaluated anyway is spelled as these say.
    pub(super) fn spelled(mut self, alike: &'a RefCell<Canonical>) -> Prover<'a> {
        self.alike = Some(alike);
        self
    }

    /// A part as what is known to be evaluated anyway is spelled.
    pub(super) fn spelling(&mut self, id: Id) -> Id {
        self.alike.map_or(id, |alike| alike.borrow_mut().of(self.terms, id))
    }

    /// Whether a part is evaluated anyway around the place.
    pub(super) fn is_fact(&mut self, id: Id, scope: &Scope) -> bool {
        self.facts.iter().any(|(depth, facts)| {
            let outside = scope.len().checked_sub(*depth).and_then(|by| lowered(self.terms, id, by));
            outside.is_some_and(|outside| facts.contains(&self.spelling(outside)))
        })
    }

    /// Whether a part has a value here under these conditions, or under fewer; or around the innermost loops, where it
    /// does not depend on them.
    pub(super) fn is_local(&mut self, id: Id, scope: &Scope) -> bool {
        if self.local.is_empty() {
            return false;
        }
        let free = self.terms.free(id);
        for inside in 0..=scope.len() {
            if inside > 0 && free.has(inside - 1) {
                break;
            }
            let outside = scope.len() - inside;
            let Some(part) = lowered(self.terms, id, inside) else { break };
            let around = scope[..outside].to_vec();
            let mut under = 0..=self.guards.len();
            // What is said inside of those loops says nothing around them.
            let met = |n: &usize| self.guards[..*n].iter().all(|g| g.depth <= outside);
            let (part, around, guards) = match self.alike {
                None => (part, around, self.guards.clone()),
                Some(alike) => {
                    let mut alike = alike.borrow_mut();
                    let guards = alike.guards(self.terms, &self.guards);
                    (alike.of(self.terms, part), alike.scope(self.terms, &around), guards)
                }
            };
            if under.any(|n| met(&n) && self.local.contains(&(part, around.clone(), guards[..n].to_vec()))) {
                return true;
            }
        }
        false
    }

    /// Whether a part is the first round of a loop that is certain to be evaluated in every round, and runs.
    pub(super) fn is_first(&mut self, id: Id, scope: &Scope) -> bool {
        let zero = |t: &Terms, id: Id| t.as_lit(id) == Some(Lit::int(0));
        let reads = matches!(self.terms.head(id), Head::Index(1)) && zero(self.terms, self.terms.kids(id)[0]);
        if !reads || !self.terms.free(id).is_closed() {
            return false;
        }
        let round =
            replaced_leaves(self.terms, id, &mut |t, id, under| zero(t, id).then(|| t.var(under as u32, Ty::int())));
        let round = self.spelling(round);
        let loops = self.known.iter().filter(|(term, ranges)| *term == round && ranges.len() == 1);
        let mut extents: Vec<Id> = loops.map(|(_, ranges)| ranges[0]).collect();
        extents.sort();
        extents.into_iter().any(|n| self.at_least_one(n, scope))
    }
}
