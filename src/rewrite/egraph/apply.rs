//! Substitution in the e-graph: the smallest member of a class is copied with other variables.
//!
//! Capture is impossible: everything that moves under or out of a binder goes through here.

use super::Graph;
use super::language::{ENode, Label};
use crate::ir::{Free, Head, deep};
use egg::Id;
use rustc_hash::FxHashMap;

/// Where the variables of a class go: the innermost ones to classes, the others outwards or inwards.
pub struct Move {
    /// The class for each of the innermost variables, by index; where there is none, the class must
    /// not depend on it. The classes are right at the target depth.
    pub inner: Vec<Option<Id>>,
    /// How many binders stand between the target place and where variable `inner.len()` is bound.
    pub depth: usize,
}

/// A class with its variables moved. Nothing where it depends on a variable that may not stay.
pub fn moved(g: &mut Graph, id: Id, to: &Move) -> Option<Id> {
    Walk { to, memo: FxHashMap::default(), steps: 0 }.walk(g, id, 0)
}

/// A class moved inside `by` more binders.
pub fn shifted(g: &mut Graph, id: Id, by: usize) -> Option<Id> {
    moved(g, id, &Move { inner: vec![], depth: by })
}

struct Walk<'a> {
    to: &'a Move,
    /// `None` while a class is being copied: a cycle among representatives is refused.
    memo: FxHashMap<(Id, usize), Option<Id>>,
    steps: usize,
}

/// Copies larger than this are not made.
const MAX_STEPS: usize = 20_000;

impl Walk<'_> {
    /// Whether no variable of the set changes, seen from under so many binders.
    fn keeps(&self, free: Free, under: usize) -> bool {
        let outside = free.outside(under);
        if self.to.inner.len() == self.to.depth && !outside.below(self.to.inner.len()) {
            return true;
        }
        outside.is_closed()
    }

    fn walk(&mut self, g: &mut Graph, id: Id, under: usize) -> Option<Id> {
        let id = g.find(id);
        if self.keeps(g[id].data.free, under) {
            return Some(id);
        }
        if let Some(known) = self.memo.get(&(id, under)) {
            return *known;
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        self.memo.insert((id, under), None);
        let node = g[id].data.best.clone();
        let out = deep(|| self.node(g, node, under));
        self.memo.insert((id, under), out);
        out
    }

    fn node(&mut self, g: &mut Graph, mut node: ENode, under: usize) -> Option<Id> {
        if let Label::Head(Head::Var(i, ty)) = node.label {
            let i = i as usize;
            let Some(out) = i.checked_sub(under) else { return Some(g.add(node)) };
            return match self.to.inner.get(out) {
                Some(Some(class)) => shifted(g, *class, under),
                Some(None) => None,
                None => {
                    let index = out - self.to.inner.len() + self.to.depth + under;
                    node.label = Label::Head(Head::Var(index as u32, ty));
                    Some(g.add(node))
                }
            };
        }
        let n = node.kids.len();
        for k in 0..n {
            let binds = node.head().map_or(0, |h| h.binds(k, n));
            node.kids[k] = self.walk(g, node.kids[k], under + binds)?;
        }
        Some(g.add(node))
    }
}
