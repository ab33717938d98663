//! The greatest of some numbers, written at several places, is bound where all of them see it, if the value there does
//! not depend on it: else each place would have an adjoint, and none could be seen to be 0.
//!
//! Only what is certain to be evaluated is bound, so that nothing fails that did not. It must not know how derivatives
//! are made.

use super::invariant::{extremes, is_invariant};
use crate::ir::{Head, Id, Node, Terms, Ty, deep};
use crate::types::shape::lowered;
use rustc_hash::{FxHashMap, FxHashSet};

/// Terms with more nodes stay as they are: each scope looks through all within it.
const LOOKED: u64 = 5_000;

/// A normal body with such lets.
pub fn shared(terms: &mut Terms, id: Id) -> Id {
    if terms.size(id) > LOOKED || !terms.reachable(id).into_iter().any(|id| is_greatest(terms, id)) {
        return id;
    }
    Shared { terms, memo: FxHashMap::default() }.scope(id)
}

fn is_greatest(terms: &Terms, id: Id) -> bool {
    matches!(terms.head(id), Head::Reduce(..) | Head::Fold) && extremes(terms, id).is_some()
}

struct Shared<'a> {
    terms: &'a mut Terms,
    memo: FxHashMap<Id, Id>,
}

impl Shared<'_> {
    /// A term where a scope begins.
    fn scope(&mut self, id: Id) -> Id {
        let mut found = vec![];
        self.certain(id, 0, &mut found, &mut FxHashSet::default());
        let mut out = id;
        let mut lets: Vec<Id> = vec![];
        for value in found {
            let here = self.terms.shift(value, lets.len());
            let (with, places) = self.bound(here, out);
            let made = self.terms.put(Head::Let, [here, with]);
            if places > 1 && is_invariant(self.terms, made) {
                lets.push(here);
                out = with;
            }
        }
        out = self.inside(out);
        lets.into_iter().rev().fold(out, |body, value| self.terms.put(Head::Let, [value, body]))
    }

    /// A term with its parts, of which some are scopes.
    fn inside(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let Node { head, kids } = self.terms.node(id).clone();
        let n = kids.len();
        let made: Vec<Id> = kids
            .iter()
            .enumerate()
            .map(|(k, kid)| match head.binds(k, n) > 0 || (head == Head::If && k > 0) {
                true => deep(|| self.scope(*kid)),
                false => deep(|| self.inside(*kid)),
            })
            .collect();
        let out = if made[..] == kids[..] { id } else { self.terms.put(head, made) };
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    /// What is the greatest of some numbers, stands under so many lets of the scope, depends on none of them, and is
    /// evaluated wherever the scope is.
    fn certain(&mut self, id: Id, lets: usize, found: &mut Vec<Id>, seen: &mut FxHashSet<(Id, usize)>) {
        if !seen.insert((id, lets)) {
            return;
        }
        let Node { head, kids } = self.terms.node(id).clone();
        if is_greatest(self.terms, id)
            && let Some(value) = lowered(self.terms, id, lets)
            && !found.contains(&value)
        {
            found.push(value);
        }
        let n = kids.len();
        for (k, kid) in kids.iter().enumerate() {
            match head.binds(k, n) {
                0 if head == Head::If && k > 0 => {}
                0 => deep(|| self.certain(*kid, lets, found, seen)),
                binds if head == Head::Let => deep(|| self.certain(*kid, lets + binds, found, seen)),
                _ => {}
            }
        }
    }

    /// A term under one more variable, which stands for a value wherever that is written; and at how many places it is.
    fn bound(&mut self, value: Id, id: Id) -> (Id, usize) {
        let ty = self.terms.ty(value);
        let (value, id) = (self.terms.shift(value, 1), self.terms.shift(id, 1));
        let (terms, values, memo) = (&mut *self.terms, vec![value], FxHashMap::default());
        let mut replace = Replace { terms, value, ty, values, memo, places: 0 };
        let out = replace.term(id, 0);
        (out, replace.places)
    }
}

/// Puts a variable in the place of a value.
struct Replace<'a> {
    terms: &'a mut Terms,
    value: Id,
    ty: Ty,
    /// The value under no, one, two … more binders.
    values: Vec<Id>,
    /// What terms become at depths.
    memo: FxHashMap<(Id, usize), Id>,
    /// At how many places the value was.
    places: usize,
}

impl Replace<'_> {
    fn term(&mut self, id: Id, depth: usize) -> Id {
        while self.values.len() <= depth {
            let next = self.terms.shift(self.value, self.values.len());
            self.values.push(next);
        }
        if id == self.values[depth] {
            self.places += 1;
            return self.terms.var(depth as u32, self.ty);
        }
        if let Some(done) = self.memo.get(&(id, depth)) {
            return *done;
        }
        let Node { head, kids } = self.terms.node(id).clone();
        let n = kids.len();
        let made: Vec<Id> =
            kids.iter().enumerate().map(|(k, kid)| deep(|| self.term(*kid, depth + head.binds(k, n)))).collect();
        let out = if made[..] == kids[..] { id } else { self.terms.put(head, made) };
        self.terms.keep_hints(id, out);
        self.memo.insert((id, depth), out);
        out
    }
}
