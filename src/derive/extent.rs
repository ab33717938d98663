//! Numbers are not negative where something that is certain to be made has them for a size, and indices are in range
//! where a loop that is certain to run reads more than that.
//!
//! It must not know what a search believes.

use super::flat::{Scope, lowered};
use super::prove::{Extents, Prover, Reads};
use crate::ir::{Head, Id, Terms};
use crate::types::shape::shape;
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
        let (made, n) = (self.extents(), self.spelling(n));
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

    /// Whether an index is below the extent of a loop that reads the element of each of its rounds, in something of this
    /// size: so many elements it has at least.
    pub(super) fn read_in_loop(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let reads = self.reads();
        reads.iter().any(|(size, extent, around)| {
            // What is in range of that because of what another loop reads would lead round in circles.
            *extent != n
                && self.same_size(*size, n, scope)
                && around.iter().all(|extent| self.at_least_one(*extent, scope))
                && (self.runs_below(index, *extent, scope)
                    || self.mirrored(index, *extent, scope)
                    || self.affine_in_range(index, *extent, scope))
        })
    }

    /// The sizes of the tensors of which loops that are certain to run read an element in each round.
    fn reads(&mut self) -> Reads {
        if let Some(known) = &self.reads {
            return Rc::clone(known);
        }
        let mut read: Vec<(Id, usize, Id, Vec<Id>)> = vec![];
        for (term, ranges) in self.known {
            let Head::Index(d) = self.terms.head(*term) else { continue };
            let kids = self.terms.kids(*term);
            for axis in 0..d {
                let Head::Var(i, _) = self.terms.head(kids[axis]) else { continue };
                let Some(extent) = ranges.get(i as usize) else { continue };
                let around = ranges.iter().enumerate().filter(|(k, _)| *k != i as usize).map(|(_, n)| *n);
                read.push((kids[d], axis, *extent, around.collect()));
            }
        }
        read.sort();
        let mut out: Vec<(Id, Id, Vec<Id>)> = vec![];
        for (tensor, axis, extent, around) in read {
            if let Some(tensor) = lowered(self.terms, tensor, 1 + around.len()) {
                out.push((shape(self.terms, tensor)[axis], extent, around));
            }
        }
        out.dedup();
        let out = Rc::new(out);
        self.reads = Some(Rc::clone(&out));
        out
    }
}
