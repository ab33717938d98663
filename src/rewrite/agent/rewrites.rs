//! All terms that one move makes of a term. What moves make of a subterm is found once, and all terms
//! that hold it share it.

use super::bindings;
use super::matching::Match;
use super::oracle::Oracle;
use crate::ir::{Head, Id, Program, Terms, deep};
use crate::rewrite::egraph::pattern::Compiled;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// One way to rewrite a term.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rewrite {
    /// Where: at the root, by this rule or move; or in a child, by the entry of its own list.
    pub at: At,
    /// What it makes.
    pub to: Id,
}

/// Where a rewrite happens.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum At {
    /// A rule at the root, by its number.
    Rule(u32),
    /// A move of [`bindings`] at the root, by its number.
    Binding(u32),
    /// In a child: which, and which of its rewrites.
    Child(u32, u32),
}

/// Terms and what was found of them.
pub struct Rewrites<'a> {
    /// The arena of all states.
    pub terms: Terms,
    /// What conditions are asked of.
    pub oracle: Oracle,
    program: &'a Program,
    rules: &'a [Compiled<'a>],
    /// Rules by the kind of node that their left side begins with.
    by_head: FxHashMap<std::mem::Discriminant<Head>, Vec<usize>>,
    known: FxHashMap<Id, Rc<[Rewrite]>>,
}

impl<'a> Rewrites<'a> {
    /// For a program and its rules.
    pub fn new(terms: Terms, oracle: Oracle, program: &'a Program, rules: &'a [Compiled<'a>]) -> Rewrites<'a> {
        let mut by_head: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (k, rule) in rules.iter().enumerate() {
            if let Some(head) = rule.root() {
                by_head.entry(std::mem::discriminant(&head)).or_default().push(k);
            }
        }
        Rewrites { terms, oracle, program, rules, by_head, known: FxHashMap::default() }
    }

    /// All rewrites of a term: those at its root, then those in its children.
    pub fn of(&mut self, id: Id) -> Rc<[Rewrite]> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let mut out = self.at_root(id);
        let node = self.terms.node(id).clone();
        for (k, kid) in node.kids.iter().enumerate() {
            let inner = deep(|| self.of(*kid));
            for (j, rewrite) in inner.iter().enumerate() {
                let mut kids: SmallVec<[Id; 3]> = node.kids.clone();
                kids[k] = rewrite.to;
                let to = self.terms.put(node.head, kids);
                out.push(Rewrite { at: At::Child(k as u32, j as u32), to });
            }
        }
        let out: Rc<[Rewrite]> = out.into();
        self.known.insert(id, out.clone());
        out
    }

    fn at_root(&mut self, id: Id) -> Vec<Rewrite> {
        let mut out = vec![];
        let head = std::mem::discriminant(&self.terms.head(id));
        for k in self.by_head.get(&head).map(Vec::as_slice).unwrap_or_default() {
            let rule = &self.rules[*k];
            let Some(m) = Match::find(&mut self.terms, rule, id) else { continue };
            let terms = &self.terms;
            let oracle = &mut self.oracle;
            let holds = rule.rule.when.iter().all(|(condition, metas)| {
                let ids: SmallVec<[Id; 2]> = metas.iter().map(|meta| m.term(*meta)).collect();
                oracle.holds(terms, rule.rule.level, *condition, &ids)
            });
            if !holds {
                continue;
            }
            if let Some(to) = m.right(&mut self.terms).filter(|to| *to != id)
                && self.terms.ty(to) == self.terms.ty(id)
            {
                out.push(Rewrite { at: At::Rule(*k as u32), to });
            }
        }
        let bindings = bindings::moves(&mut self.terms, self.program, &mut self.oracle, id);
        out.extend(bindings.into_iter().map(|(k, to)| Rewrite { at: At::Binding(k as u32), to }));
        out
    }

    /// The name of a rewrite of a term, and the way to where it happens.
    pub fn describe(&mut self, id: Id, rewrite: &Rewrite) -> (String, Vec<usize>) {
        let (mut id, mut at, mut path) = (id, rewrite.at, vec![]);
        loop {
            match at {
                At::Rule(k) => return (self.rules[k as usize].rule.name.clone(), path),
                At::Binding(k) => return (bindings::NAMES[k as usize].to_string(), path),
                At::Child(k, j) => {
                    path.push(k as usize);
                    id = self.terms.kids(id)[k as usize];
                    at = self.of(id)[j as usize].at;
                }
            }
        }
    }
}
