//! Neighbouring lets: which of them are read at all, and where for the last time; which variables a term reads.
//!
//! The sets of free variables that terms cache are exact for the innermost variables alone. In a body of hundreds of
//! lets everything would seem to be read, so here terms are asked themselves.

use crate::ir::{Head, Id, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// One of neighbouring lets.
#[derive(Clone, Copy)]
pub struct Link {
    /// The let.
    pub id: Id,
    /// What it binds.
    pub value: Id,
}

/// Neighbouring lets, outermost first, and what they stand around.
pub struct Chain {
    /// The lets.
    pub links: Vec<Link>,
    /// What the last of them stands around.
    pub tail: Id,
    /// As [`last_readers`] says.
    last: Vec<Option<usize>>,
}

impl Chain {
    /// The lets from one on. This takes time in proportion to what they bind.
    pub fn new(terms: &Terms, id: Id, reads: &mut Reads) -> Chain {
        let (mut links, mut tail) = (vec![], id);
        while let (Head::Let, [value, rest]) = (terms.head(tail), terms.kids(tail)) {
            links.push(Link { id: tail, value: *value });
            tail = *rest;
        }
        let values: Vec<Id> = links.iter().map(|link: &Link| link.value).collect();
        let last = last_readers(terms, &values, tail, reads);
        Chain { links, tail, last }
    }

    /// Whether nothing that is read reads a let.
    pub fn is_unread(&self, k: usize) -> bool {
        self.last[k].is_none()
    }

    /// Whether something from a let on, or the tail, reads an earlier one.
    pub fn is_read_from(&self, k: usize, from: usize) -> bool {
        self.last[k].is_some_and(|last| last >= from)
    }
}

/// For each of neighbouring lets that bind these values the last of those that are read and read it, or how many there
/// are, where the tail does; none where none of them does.
pub fn last_readers(terms: &Terms, values: &[Id], tail: Id, reads: &mut Reads) -> Vec<Option<usize>> {
    let mut last = vec![None; values.len()];
    if values.is_empty() {
        return last;
    }
    for k in (0..=values.len()).rev() {
        let reader = match values.get(k) {
            Some(_) if last[k].is_none() => continue,
            Some(value) => *value,
            None => tail,
        };
        for i in reads.of(terms, reader).into_iter().filter(|i| *i < k) {
            last[k - 1 - i].get_or_insert(k);
        }
    }
    last
}

/// The free variables of a term, by index.
pub fn free(terms: &Terms, id: Id) -> BTreeSet<usize> {
    Reads::default().of(terms, id)
}

/// The free variables of terms of one arena. Where lets stand in arms in arms, those of a part are asked for again
/// with those of all that it stands in, so they are kept where they are few.
#[derive(Default)]
pub struct Reads {
    /// By index, in order; nothing where they are many.
    known: FxHashMap<Id, Option<Vec<u32>>>,
}

/// So many variables are kept of a term.
const FEW: usize = 32;

impl Reads {
    /// By index.
    pub fn of(&mut self, terms: &Terms, id: Id) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        self.collect(terms, id, 0, &mut FxHashSet::default(), &mut out);
        out
    }

    fn collect(
        &mut self,
        terms: &Terms,
        id: Id,
        under: usize,
        seen: &mut FxHashSet<(Id, usize)>,
        out: &mut BTreeSet<usize>,
    ) {
        if !terms.free(id).above(under) {
            return;
        }
        self.learn(terms, id);
        if let Some(Some(few)) = self.known.get(&id) {
            return out.extend(few.iter().filter_map(|i| (*i as usize).checked_sub(under)));
        }
        if !seen.insert((id, under)) {
            return;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        for (k, kid) in kids.iter().enumerate() {
            deep(|| self.collect(terms, *kid, under + head.binds(k, kids.len()), seen, out));
        }
    }

    /// Looks at all that was not looked at in a term.
    fn learn(&mut self, terms: &Terms, id: Id) {
        if self.known.contains_key(&id) {
            return;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let mut all = Some(BTreeSet::new());
        if let Head::Var(i, _) = head {
            all = Some([i].into());
        }
        for (k, kid) in kids.iter().enumerate() {
            deep(|| self.learn(terms, *kid));
            let binds = head.binds(k, kids.len()) as u32;
            match (&mut all, self.known.get(kid)) {
                (Some(all), Some(Some(few))) => all.extend(few.iter().filter_map(|i| i.checked_sub(binds))),
                _ => all = None,
            }
        }
        let few = all.filter(|all| all.len() <= FEW).map(|all| all.into_iter().collect());
        self.known.insert(id, few);
    }
}
