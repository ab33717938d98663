//! Rules with the mark `:simplify` are taken at nodes of the tree.
//!
//! As much of the tree as a rule can see becomes a term, in which what stands deeper is a variable; the matcher of terms
//! finds the rule there. What the variables stand for moves to where the right side has them. A rule with the mark has
//! no metavariable more often on the right than on the left, so nothing is copied but literals and names. It must not
//! know which rules there are.

use super::tree::{At, Tree};
use crate::ir::{Head, Id, Terms};
use crate::rewrite::agent::matching::Match;
use crate::rewrite::egraph::pattern::Compiled;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A node with more children is not looked into by rules.
const WIDE: usize = 4;
/// The arena of what rules have seen is emptied where it has so many terms.
const LARGE: usize = 20_000;

/// The rules that simplify, by what their left sides begin with.
pub struct Directed<'a> {
    rules: FxHashMap<Head, Vec<&'a Compiled<'a>>>,
    terms: Terms,
}

/// What the free variables of a term that a rule sees stand for, and where: equal parts are one variable.
type Parts = Vec<Vec<At>>;

impl<'a> Directed<'a> {
    /// Those among some rules that bear the mark.
    pub fn new(rules: &'a [Compiled<'a>]) -> Directed<'a> {
        let mut by: FxHashMap<Head, Vec<&'a Compiled<'a>>> = FxHashMap::default();
        for rule in rules.iter().filter(|r| r.rule.simplify) {
            if let Some(head) = rule.root() {
                by.entry(head).or_default().push(rule);
            }
        }
        Directed { rules: by, terms: Terms::default() }
    }

    /// Takes the first rule that a node has; its name.
    pub(super) fn step(&mut self, tree: &mut Tree<'_>, at: At) -> Option<String> {
        let rules = self.rules.get(&tree.nodes[at].head)?.clone();
        if self.terms.len() > LARGE {
            self.terms = Terms::default();
        }
        let reach = rules.iter().map(|r| r.reach).max().unwrap_or(0);
        let mut parts = vec![];
        let id = self.seen(tree, at, reach, &mut parts);
        for rule in rules {
            let Some(found) = Match::find(&mut self.terms, rule, id) else { continue };
            let Some(right) = found.right(&mut self.terms) else { continue };
            if self.places(right, &parts) {
                let frame = tree.frame(at);
                let new = self.make(tree, right, &mut parts, frame);
                tree.becomes(at, new);
                return Some(rule.rule.name.clone());
            }
        }
        None
    }

    /// A node as a term, with variables for what stands so many levels deeper.
    fn seen(&mut self, tree: &mut Tree<'_>, at: At, levels: usize, parts: &mut Parts) -> Id {
        tree.looked += 1;
        let (head, ty, kids) = (tree.nodes[at].head, tree.nodes[at].ty, tree.nodes[at].kids.clone());
        let opaque = levels == 0 || kids.len() > WIDE || tree.nodes[at].binder.is_some() || tree.nodes[at].fixed;
        if let Head::Const(lit) = head {
            return self.terms.lit(lit);
        }
        if !opaque {
            let kids: SmallVec<[Id; 3]> = kids.into_iter().map(|k| self.seen(tree, k, levels - 1, parts)).collect();
            return self.terms.put(head, kids);
        }
        let known = (0..parts.len()).find(|k| tree.same(parts[*k][0], at));
        let k = match known {
            Some(k) => {
                parts[k].push(at);
                k
            }
            None => {
                parts.push(vec![at]);
                parts.len() - 1
            }
        };
        self.terms.var(k as u32, ty)
    }

    /// Whether the right side has no part more often than the left one.
    fn places(&self, right: Id, parts: &Parts) -> bool {
        let mut left: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut todo = vec![right];
        while let Some(id) = todo.pop() {
            if let Head::Var(k, _) = self.terms.head(id) {
                match left.get_mut(k as usize) {
                    Some(n) if *n > 0 => *n -= 1,
                    _ => return false,
                }
            }
            todo.extend(self.terms.kids(id).iter().copied());
        }
        true
    }

    fn make(&self, tree: &mut Tree<'_>, id: Id, parts: &mut [Vec<At>], frame: usize) -> At {
        let (head, ty) = (self.terms.head(id), self.terms.ty(id));
        if let Head::Var(k, _) = head
            && let Some(part) = parts.get_mut(k as usize).and_then(Vec::pop)
        {
            tree.take_out(part);
            return part;
        }
        let kids: SmallVec<[Id; 3]> = self.terms.kids(id).iter().copied().collect();
        let kids = kids.into_iter().map(|kid| self.make(tree, kid, parts, frame)).collect();
        tree.put(head, ty, kids, frame)
    }
}
