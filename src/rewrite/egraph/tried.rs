//! Terms that were tried become what they cost: one e-graph after the other offers the same ones again.
//!
//! It must not know what a cost is made of. What a term costs follows from its structure and from which of its parts
//! cannot fail, in one definition; names say nothing.

use crate::ir::Id;
use crate::rewrite::tabulate::Known;
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A term by its structure, up to chance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Print(u64);

impl Print {
    /// Of a let-free term.
    pub fn of(flat: &Known) -> Print {
        let Known { terms, id, total } = flat;
        let mut prints: FxHashMap<Id, u64> = FxHashMap::default();
        for id in terms.reachable(*id) {
            let mut state = DefaultHasher::new();
            (terms.head(id), total.get(&id)).hash(&mut state);
            terms.kids(id).iter().for_each(|kid| prints[kid].hash(&mut state));
            prints.insert(id, state.finish());
        }
        Print(prints[id])
    }
}

/// What came of a trial.
#[derive(Clone, Copy)]
pub struct Outcome {
    /// What the term costs, where it is one that may be taken.
    pub cost: Option<f64>,
    /// How many nodes the trial counts as.
    pub parts: usize,
}

/// The outcomes of trials.
#[derive(Default)]
pub struct Tried(FxHashMap<Print, Outcome>);

impl Tried {
    /// What came of a term, where trying it again would come to the same: it is no better than the best of now.
    pub fn known(&self, print: Print, best: f64) -> Option<Outcome> {
        self.0.get(&print).copied().filter(|known| known.cost.is_none_or(|cost| cost >= best - 1e-9))
    }

    /// Keeps what came of a term.
    pub fn keep(&mut self, print: Print, outcome: Outcome) {
        self.0.insert(print, outcome);
    }
}
