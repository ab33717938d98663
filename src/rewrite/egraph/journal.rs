//! What a search did, as far as a derivation of its result needs it.

use super::trace::Trace;
use crate::ir::{Id, Terms};

/// The journal of a search.
#[derive(Default)]
pub struct Journal {
    /// All e-graphs' terms and equations.
    pub trace: Trace,
    /// The let-free terms that e-graphs started from, in their arenas.
    pub starts: Vec<(Terms, Id)>,
    /// The best results, one after the other.
    pub bests: Vec<Candidate>,
}

/// A result.
#[derive(Clone)]
pub struct Candidate {
    /// Let-free, in its arena.
    pub flat: (Terms, Id),
    /// With lets that the search thinks safe, in its arena.
    pub shared: (Terms, Id),
    /// Its cost.
    pub cost: f64,
}

/// So many results are remembered at most.
const MAX_BESTS: usize = 24;

impl Journal {
    /// Notes a result that is better than all before. The first stays, and the latest.
    pub fn note(&mut self, result: Candidate) {
        if self.bests.len() == MAX_BESTS {
            self.bests.remove(1);
        }
        self.bests.push(result);
    }
}
