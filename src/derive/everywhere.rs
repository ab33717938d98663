//! A part of a term is replaced wherever it stands, or wherever it stands within another part; the loops around each
//! of its places are told.

use super::flat::{Scope, bound};
use crate::ir::{Id, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether a part stands in a term.
pub fn holds(terms: &Terms, id: Id, part: Id, memo: &mut FxHashMap<Id, bool>) -> bool {
    // Children have smaller ids than their parents.
    if id <= part {
        return id == part;
    }
    if let Some(known) = memo.get(&id) {
        return *known;
    }
    let out = terms.kids(id).iter().any(|kid| deep(|| holds(terms, *kid, part, memo)));
    memo.insert(id, out);
    out
}

/// The replacement of a part.
pub struct Everywhere {
    old: Id,
    new: Id,
    /// The part in which it is replaced; none where it is everywhere.
    within: Option<Id>,
    /// Whether loops that a part does not depend on are alike.
    own: bool,
    memo: FxHashMap<(Id, Scope, bool), Id>,
    /// The loops around the places at which it stood.
    pub scopes: FxHashSet<Scope>,
    /// Whether terms hold the old part.
    holds: FxHashMap<Id, bool>,
    /// How many more parts are looked into; with none left what was replaced is of no use.
    pub left: usize,
}

/// So many parts are looked into at most, each in each choice of loops around it.
const MAX_LOOKED: usize = 200_000;

impl Everywhere {
    /// Of a part by another; see the fields.
    pub fn new((old, new): (Id, Id), within: Option<Id>, own: bool) -> Everywhere {
        let (memo, scopes, holds) = Default::default();
        Everywhere { old, new, within, own, memo, scopes, holds, left: MAX_LOOKED }
    }

    /// What tells places of a part apart.
    fn around(&self, terms: &Terms, id: Id, scope: &Scope) -> Scope {
        let (own, free) = (self.own, terms.free(id));
        scope.iter().rev().enumerate().map(|(i, e)| e.filter(|_| !own || free.has(i))).rev().collect()
    }

    /// The term with the part replaced; `inside` says whether it stands in the one in which that is to be.
    pub fn replace(&mut self, terms: &mut Terms, id: Id, scope: &mut Scope, inside: bool) -> Id {
        let inside = inside || self.within == Some(id);
        if id == self.old && inside {
            self.scopes.insert(self.around(terms, id, scope));
            return self.new;
        }
        if !holds(terms, id, self.old, &mut self.holds) {
            return id;
        }
        let key = (id, self.around(terms, id, scope), inside);
        if let Some(done) = self.memo.get(&key) {
            return *done;
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return id;
        }
        let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                let bound = bound(terms, head, &kids);
                scope.extend(bound);
            }
            new.push(deep(|| self.replace(terms, *kid, scope, inside)));
            scope.truncate(depth);
        }
        let out = if new == kids { id } else { terms.put(head, new) };
        self.memo.insert(key, out);
        out
    }
}
