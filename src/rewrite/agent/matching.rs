//! A rule's left side is found at a term, and its right side made there, on hash-consed terms.
//!
//! A metavariable that stands under binders of the rule is kept as found there; its variables move
//! to where it stands on the right.

use crate::ir::{Head, Id, Terms, Ty};
use crate::rewrite::egraph::pattern::{Compiled, Template};
use crate::rewrite::egraph::types::{bind, instance};
use crate::rules::Meta;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a metavariable stands for: a term under so many variables of the rule, and which of them it
/// is applied to, in order.
struct Bound {
    term: Id,
    depth: usize,
    args: SmallVec<[usize; 3]>,
}

/// A match of a left side.
pub struct Match<'a> {
    rule: &'a Compiled<'a>,
    bound: FxHashMap<Meta, Bound>,
    types: FxHashMap<&'static str, Ty>,
}

impl<'a> Match<'a> {
    /// Matches the rule at a term.
    pub fn find(terms: &mut Terms, rule: &'a Compiled<'a>, id: Id) -> Option<Match<'a>> {
        let mut m = Match { rule, bound: FxHashMap::default(), types: FxHashMap::default() };
        m.left(terms, &rule.sides.0, id, 0).then_some(m)
    }

    /// The term of a metavariable, as it stands on the left, and under how many variables of the rule.
    pub fn term(&self, meta: Meta) -> (Id, usize) {
        let b = &self.bound[&meta];
        (b.term, b.depth)
    }

    fn left(&mut self, terms: &mut Terms, side: &Template, id: Id, depth: usize) -> bool {
        match side {
            Template::Var(i, _) => matches!(terms.head(id), Head::Var(j, _) if j == *i),
            Template::Node(head, kids) => {
                let found = terms.node(id).clone();
                let n = kids.len();
                found.head == *head
                    && found.kids.len() == n
                    && (0..n).all(|k| self.left(terms, &kids[k], found.kids[k], depth + head.binds(k, n)))
            }
            Template::Meta(meta, args) => self.meta(terms, *meta, args, id, depth),
        }
    }

    fn meta(&mut self, terms: &mut Terms, meta: Meta, args: &[Template], id: Id, depth: usize) -> bool {
        let mut indices: SmallVec<[usize; 3]> = SmallVec::new();
        for arg in args {
            let Template::Var(i, _) = arg else { return false };
            indices.push(*i as usize);
        }
        if (0..depth).any(|i| terms.free(id).has(i) && !indices.contains(&i)) {
            return false;
        }
        if !bind(self.rule.rule.meta_ty(meta), terms.ty(id), &mut self.types) {
            return false;
        }
        // What depends on no variable of the rule is kept as it is outside, so that it is one term wherever
        // it stands.
        let plain = indices.is_empty();
        let (term, depth) = if plain { (lowered(terms, id, depth), 0) } else { (id, depth) };
        match self.bound.get(&meta) {
            Some(b) => b.term == term && b.depth == depth && b.args == indices,
            None => {
                self.bound.insert(meta, Bound { term, depth, args: indices });
                true
            }
        }
    }

    /// The right side, where the left one stood.
    pub fn right(&self, terms: &mut Terms) -> Option<Id> {
        self.make(terms, &self.rule.sides.1, 0)
    }

    fn make(&self, terms: &mut Terms, side: &Template, depth: usize) -> Option<Id> {
        match side {
            Template::Var(i, ty) => {
                let ty = instance(*ty, &self.types)?;
                Some(terms.var(*i, ty))
            }
            Template::Node(head, kids) => {
                let n = kids.len();
                let kids = (0..n).map(|k| self.make(terms, &kids[k], depth + head.binds(k, n)));
                let kids = kids.collect::<Option<SmallVec<[Id; 3]>>>()?;
                terms.add(*head, kids).ok()
            }
            Template::Meta(meta, args) => {
                let args = args.iter().map(|a| self.make(terms, a, depth));
                let args = args.collect::<Option<SmallVec<[Id; 3]>>>()?;
                let b = &self.bound[meta];
                Some(terms.map_free(b.term, 0, &mut |t, i, ty, under| match (i as usize).checked_sub(b.depth) {
                    Some(outer) => t.var((outer + depth + under) as u32, ty),
                    None => match b.args.iter().position(|a| *a == i as usize) {
                        Some(k) => t.shift(args[k], under),
                        // The match made sure that it depends on nothing else.
                        None => t.var(i, ty),
                    },
                }))
            }
        }
    }
}

/// The term outside of `by` binders whose variables it does not depend on.
pub fn lowered(terms: &mut Terms, id: Id, by: usize) -> Id {
    if by == 0 || terms.free(id).is_closed() {
        return id;
    }
    terms.map_free(id, 0, &mut |t, i, ty, under| t.var((i as usize - by + under) as u32, ty))
}
