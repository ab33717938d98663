//! Terms that were tried become what they cost: one e-graph after the other offers the same ones again.
//!
//! It must not know what a cost is made of. What a term costs follows from its structure and from which of its parts
//! cannot fail, in one definition; names say nothing.

use crate::ir::Id;
use crate::rewrite::tabulate::Known;
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A term by its structure. Two terms have one by chance as good as never; then the second is not tried, which is never
/// wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Of a let-free term, in time linear in its nodes.
    pub fn of(flat: &Known) -> Fingerprint {
        let Known { terms, id, total } = flat;
        let mut known: FxHashMap<Id, u64> = FxHashMap::default();
        for id in terms.reachable(*id) {
            let mut state = DefaultHasher::new();
            (terms.head(id), total.get(&id)).hash(&mut state);
            terms.kids(id).iter().for_each(|kid| known[kid].hash(&mut state));
            known.insert(id, state.finish());
        }
        Fingerprint(known[id])
    }
}

/// What came of a trial.
#[derive(Clone, Copy)]
pub struct Verdict {
    /// What the term costs, where it is one that may be taken.
    pub cost: Option<f64>,
    /// How many nodes the trial counts as.
    pub parts: usize,
}

/// The verdicts on terms that were tried.
#[derive(Default)]
pub struct Memo(FxHashMap<Fingerprint, Verdict>);

impl Memo {
    /// The verdict on a term, where trying it again would come to the same: it is no better than the best of now.
    pub fn known(&self, of: Fingerprint, best: f64) -> Option<Verdict> {
        self.0.get(&of).copied().filter(|known| known.cost.is_none_or(|cost| cost >= best - 1e-9))
    }

    /// Keeps the verdict on a term.
    pub fn keep(&mut self, of: Fingerprint, verdict: Verdict) {
        self.0.insert(of, verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, Memo, Verdict};
    use crate::ir::{Head, Lit, Op, Terms};
    use crate::rewrite::tabulate::Known;
    use rustc_hash::FxHashMap;

    /// A sum of two numbers, in an arena that may hold other terms.
    fn sum(numbers: [f64; 2], others: bool, total: bool) -> Known {
        let mut terms = Terms::default();
        if others {
            terms.put(Head::Const(Lit::float(7.0)), []);
        }
        let kids = numbers.map(|x| terms.put(Head::Const(Lit::float(x)), []));
        let id = terms.put(Head::Op(Op::Add), kids);
        Known { terms, id, total: FxHashMap::from_iter([(id, total)]) }
    }

    /// Protects: arenas and numbers of terms say nothing, and structure and what cannot fail say all.
    #[test]
    fn equal_terms_have_one_fingerprint() {
        let of = |numbers, others, total| Fingerprint::of(&sum(numbers, others, total));
        let one = of([1.0, 2.0], false, true);
        assert_eq!(one, of([1.0, 2.0], true, true));
        for other in [of([2.0, 1.0], false, true), of([1.0, 3.0], false, true), of([1.0, 2.0], false, false)] {
            assert_ne!(one, other);
        }
    }

    /// Protects: what would be the best of now is tried again, since nobody has it any more.
    #[test]
    fn the_best_is_tried_again() {
        let (of, mut memo) = (Fingerprint::of(&sum([1.0, 2.0], false, true)), Memo::default());
        memo.keep(of, Verdict { cost: Some(5.0), parts: 3 });
        assert!(memo.known(of, 6.0).is_none());
        assert!(memo.known(of, 5.0).is_some_and(|v| v.cost == Some(5.0) && v.parts == 3));
        memo.keep(of, Verdict { cost: None, parts: 3 });
        assert!(memo.known(of, 6.0).is_some_and(|v| v.cost.is_none()));
    }
}
