//! All terms that one move makes of a term. What moves make of a subterm is found once, and all terms
//! that hold it share it.

use super::bindings::{self, Moves};
use super::matching::Match;
use super::oracle::{Oracle, Scope, used};
use crate::ir::{Fun, Head, Id, Signature, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

/// One way to rewrite a term.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rewrite {
    /// Where: at the root; or in a child, by the entry of its own list.
    pub at: At,
    /// By what: the number of a rule; from their count on, of a move of [`bindings`].
    pub by: u32,
    /// What it makes.
    pub to: Id,
}

/// Where a rewrite happens.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum At {
    /// Here.
    Root,
    /// In a child: which, and which of its rewrites.
    Child(u32, u32),
}

/// A rewrite with its name and place.
pub struct Described {
    /// The rule, or the move.
    pub name: String,
    /// Numbers of children from the root.
    pub place: Vec<usize>,
    /// By what, and the part that is rewritten.
    pub redex: (u32, Id),
    /// The term with a hole in place of that part.
    pub around: Id,
}

/// Terms and what was found of them.
pub struct Rewrites<'a> {
    /// The arena of all states.
    pub terms: Terms,
    /// What conditions are asked of.
    pub oracle: Oracle,
    moves: Moves<'a>,
    /// Rules by the kind of node that their left side begins with.
    by_head: FxHashMap<std::mem::Discriminant<Head>, Vec<usize>>,
    known: FxHashMap<(Id, Scope), Rc<[Rewrite]>>,
    /// Rewrites that are not made.
    refused: FxHashSet<(u32, Id)>,
}

/// What a hole is a call of: no program can name it.
const HOLE: &str = "a hole";

/// A leaf that stands for a part that was taken out.
fn hole(terms: &mut Terms, id: Id) -> Id {
    let sig = Signature { name: HOLE.to_string(), params: vec![], ret: terms.ty(id) };
    terms.put(Head::Call(Fun::new(sig)), [])
}

/// Whether a node stands for a part that was taken out.
pub fn is_hole(head: Head) -> bool {
    matches!(head, Head::Call(f) if f.sig().name == HOLE)
}

impl<'a> Rewrites<'a> {
    /// For terms of an arena.
    pub fn new(terms: Terms, oracle: Oracle, moves: Moves<'a>) -> Rewrites<'a> {
        let mut by_head: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (k, rule) in moves.rules.iter().enumerate() {
            if let Some(head) = rule.root() {
                by_head.entry(std::mem::discriminant(&head)).or_default().push(k);
            }
        }
        Rewrites { terms, oracle, moves, by_head, known: FxHashMap::default(), refused: FxHashSet::default() }
    }

    /// All rewrites of a closed term: those at its root, then those in its children.
    pub fn of(&mut self, id: Id) -> Rc<[Rewrite]> {
        self.within(id, &Scope::new())
    }

    /// All rewrites of a term in a scope.
    fn within(&mut self, id: Id, scope: &Scope) -> Rc<[Rewrite]> {
        let key = (id, used(&self.terms, id, scope));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let mut out = self.at_root(id, scope);
        let n = self.terms.kids(id).len();
        for k in 0..n {
            let inner = self.child(id, k, scope);
            for (j, rewrite) in inner.iter().enumerate() {
                let to = self.terms.with_kid(id, k, rewrite.to);
                out.push(Rewrite { at: At::Child(k as u32, j as u32), by: rewrite.by, to });
            }
        }
        let out: Rc<[Rewrite]> = out.into();
        self.known.insert(key, out.clone());
        out
    }

    /// The rewrites of a child of a term in a scope.
    fn child(&mut self, id: Id, k: usize, scope: &Scope) -> Rc<[Rewrite]> {
        let kids = self.terms.kids(id);
        let kid = kids[k];
        match self.terms.head(id).binds(k, kids.len()) {
            0 => deep(|| self.within(kid, scope)),
            _ => {
                let inner = self.oracle.inside(&self.terms, id, scope);
                deep(|| self.within(kid, &inner))
            }
        }
    }

    fn at_root(&mut self, id: Id, scope: &Scope) -> Vec<Rewrite> {
        let mut out = vec![];
        let head = std::mem::discriminant(&self.terms.head(id));
        for k in self.by_head.get(&head).map(Vec::as_slice).unwrap_or_default() {
            let rule = &self.moves.rules[*k];
            let Some(m) = Match::find(&mut self.terms, rule, id) else { continue };
            let (terms, oracle) = (&self.terms, &mut self.oracle);
            let holds = rule.rule.when.iter().all(|(condition, metas)| {
                let ids: SmallVec<[(Id, usize); 2]> = metas.iter().map(|meta| m.term(*meta)).collect();
                oracle.holds(terms, rule.rule.level, *condition, &ids, scope)
            });
            if !holds {
                continue;
            }
            if let Some(to) = m.right(&mut self.terms).filter(|to| *to != id)
                && self.terms.ty(to) == self.terms.ty(id)
            {
                out.push(Rewrite { at: At::Root, by: *k as u32, to });
            }
        }
        let first = self.moves.rules.len();
        let made = bindings::moves(&mut self.terms, &self.moves, &mut self.oracle, id, scope);
        out.extend(made.into_iter().map(|(k, to)| Rewrite { at: At::Root, by: (first + k) as u32, to }));
        if !self.refused.is_empty() {
            out.retain(|r| !self.refused.contains(&(r.by, id)));
        }
        out
    }

    /// The phase of the rule of a rewrite; moves that bind and unbind are of phase 1.
    pub fn phase(&self, rewrite: &Rewrite) -> u32 {
        self.moves.rules.get(rewrite.by as usize).map_or(1, |r| r.rule.phase)
    }

    /// Whether a rewrite binds or unbinds, rather than follow a rule.
    pub fn binds(&self, rewrite: &Rewrite) -> bool {
        rewrite.by as usize >= self.moves.rules.len()
    }

    /// Makes a rewrite of a part no more.
    pub fn refuse(&mut self, redex: (u32, Id)) {
        self.refused.insert(redex);
        self.known.clear();
    }

    /// Lets the parts of a term on the way to a place be called what they were before a rewrite there.
    pub fn name_as_before(&mut self, (mut before, mut now): (Id, Id), place: &[usize]) {
        self.terms.called_as(now, before);
        for k in place {
            let kids = |id: Id| self.terms.kids(id).get(*k).copied();
            let (Some(old), Some(new)) = (kids(before), kids(now)) else { return };
            (before, now) = (old, new);
            self.terms.called_as(now, before);
        }
    }

    /// The name of a rewrite of a closed term, and where it happens.
    pub fn describe(&mut self, id: Id, rewrite: &Rewrite) -> Described {
        let (mut at, mut here, mut scope) = (rewrite.at, id, Scope::new());
        let (mut place, mut spine) = (vec![], vec![]);
        while let At::Child(k, j) = at {
            let k = k as usize;
            at = self.child(here, k, &scope)[j as usize].at;
            if self.terms.head(here).binds(k, self.terms.kids(here).len()) > 0 {
                scope = self.oracle.inside(&self.terms, here, &scope);
            }
            spine.push(here);
            place.push(k);
            here = self.terms.kids(here)[k];
        }
        let by = rewrite.by as usize;
        let name = match self.moves.rules.get(by) {
            Some(rule) => rule.rule.name.clone(),
            None => bindings::NAMES[by - self.moves.rules.len()].to_string(),
        };
        let mut around = hole(&mut self.terms, here);
        for (id, k) in spine.into_iter().zip(&place).rev() {
            around = self.terms.with_kid(id, *k, around);
        }
        Described { name, place, redex: (rewrite.by, here), around }
    }
}
