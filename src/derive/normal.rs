//! Flat terms become normal ones: parts of tuples that are made on the spot, sizes that are known, operations on
//! literals and copies are what they are.
//!
//! A term has the value of its normal form wherever it has one; that it has one is to be proved by itself. It must not
//! know what a search believes.

use super::axioms::Axiom;
use super::prove::{Asked, Local, Prover};
use crate::ir::{Def, Head, Id, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is the same wherever it stands.
const TAKEN: [Axiom; 5] = [Axiom::Part, Axiom::Size, Axiom::NamedSize, Axiom::Literals, Axiom::Copy];
/// A node becomes another one so often at most.
const MAX_STEPS: usize = 16;

/// Normal forms in one arena.
#[derive(Clone, Default)]
pub struct Normal {
    memo: FxHashMap<Id, Id>,
}

impl Normal {
    /// The normal form of a node whose children are normal.
    pub fn node(&mut self, terms: &mut Terms, def: &Def, head: Head, kids: Vec<Id>) -> Id {
        let id = terms.put(head, kids);
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let out = match Normal::taken(terms, def, id) {
            Some(next) => deep(|| self.of(terms, def, next, MAX_STEPS)),
            None => id,
        };
        self.memo.insert(id, out);
        out
    }

    fn of(&mut self, terms: &mut Terms, def: &Def, id: Id, left: usize) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let kids = terms.kids(id).to_vec();
        let new: Vec<Id> = kids.iter().map(|k| deep(|| self.of(terms, def, *k, left))).collect();
        let same = if new == kids { id } else { terms.put(terms.head(id), new) };
        let next = Normal::taken(terms, def, same).filter(|_| left > 0);
        let out = next.map_or(same, |next| deep(|| self.of(terms, def, next, left - 1)));
        self.memo.insert(id, out);
        out
    }

    /// What a node is, where an axiom says so whatever is around it.
    fn taken(terms: &mut Terms, def: &Def, id: Id) -> Option<Id> {
        if !matches!(terms.head(id), Head::Get(..) | Head::Size(_) | Head::Op(_) | Head::Cast(_) | Head::Build(_)) {
            return None;
        }
        let (known, local) = (FxHashSet::default(), Local::default());
        let mut p = Prover::new(terms, def, (&known, &local), Asked::Total, vec![]);
        // The size of a variable is itself by one axiom, and another one by the next.
        TAKEN.iter().find_map(|axiom| axiom.apply(&mut p, id, &vec![]).filter(|next| *next != id))
    }
}
