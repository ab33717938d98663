//! Numbers are not negative where something that is certain to be made has them for a size.
//!
//! It must not know what a search believes.

use super::flat::Scope;
use super::prove::{Extents, Prover};
use crate::ir::{Head, Id, Terms};
use std::rc::Rc;

impl Prover<'_> {
    /// Whether numbers are at least 0.
    pub(super) fn natural(&mut self, ids: &[Id], scope: &Scope) -> bool {
        ids.iter().all(|n| self.range(*n, scope).lo >= 0.0 || self.is_extent(*n, scope))
    }

    /// Whether a loop or tensor that is certain to be made has this extent: it would fail if that were negative.
    /// One that stands in loops is made where those run.
    fn is_extent(&mut self, n: Id, scope: &Scope) -> bool {
        if !self.terms.free(n).is_closed() {
            return false;
        }
        let made = self.extents();
        let runs = |p: &mut Self, loops: &[Id]| loops.iter().all(|extent| p.at_least_one(*extent, scope));
        made.iter().filter(|(extent, _)| *extent == n).any(|(_, loops)| runs(self, loops))
            || made.iter().any(|(extent, loops)| self.no_less(n, *extent) && runs(self, loops))
    }

    /// The extents of the loops and tensors that are certain to be made, and the loops around those.
    fn extents(&mut self) -> Extents {
        if let Some(known) = &self.extents {
            return Rc::clone(known);
        }
        let of = |terms: &Terms, term: Id| -> Vec<Id> {
            let kids = terms.kids(term);
            match terms.head(term) {
                Head::Build(d) | Head::Reduce(_, d) | Head::ConstVec(d) => kids[..d].to_vec(),
                Head::Scatter(d) => kids[..=d].to_vec(),
                _ => vec![],
            }
        };
        let closed = |extent: &Id| self.terms.free(*extent).is_closed();
        let each = self.known.iter().flat_map(|(term, loops)| {
            of(self.terms, *term).into_iter().filter(closed).map(|extent| (extent, loops.clone()))
        });
        let mut all: Vec<(Id, Vec<Id>)> = each.collect();
        all.sort();
        all.dedup();
        let all = Rc::new(all);
        self.extents = Some(Rc::clone(&all));
        all
    }
}
