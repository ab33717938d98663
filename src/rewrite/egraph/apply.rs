//! Substitution in the e-graph: the smallest member of a class is copied with other variables.
//!
//! Capture is impossible: everything that moves under or out of a binder goes through here.

use super::Graph;
use super::graph::Traced;
use super::language::{ENode, Label};
use super::names::called_as;
use super::trace::{Reason, Theta, Tid};
use crate::ir::{Free, Head, deep};
use egg::Id;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A class, and a concrete member of it where a trace is kept.
pub type Made = (Id, Tid);

/// Where the variables of a class go: the innermost ones to classes, the others outwards or inwards.
pub struct Move {
    /// The class for each of the innermost variables, by index; where there is none, the class must
    /// not depend on it. The classes are right at the target depth.
    pub inner: Vec<Option<Made>>,
    /// How many binders stand between the target place and where variable `inner.len()` is bound.
    pub depth: usize,
}

/// A class with its variables moved. Nothing where it depends on a variable that may not stay.
pub fn moved(g: &mut Graph, id: Id, to: &Move) -> Option<Made> {
    let origin = g[id].data.origin;
    let mut walk = Walk { to, memo: FxHashMap::default(), steps: 0 };
    let out = walk.walk(g, id, 0)?;
    let inner: Vec<Option<Tid>> = to.inner.iter().map(|i| i.map(|(_, term)| term)).collect();
    let theta = Theta { inner, depth: to.depth };
    let Some(trace) = &mut g.analysis.trace else { return Some((out.class, 0)) };
    // The trace goes from the origin, and the copy from the representatives of now: they are equal,
    // and so they are with other variables.
    let term = trace.mapped(origin, &theta, 0);
    if out.from != origin {
        let other = trace.mapped(out.from, &theta, 0);
        trace.equal(term, other, Reason::Mapped(origin, out.from, Arc::new(theta)));
    }
    Some((out.class, term))
}

/// A class moved inside `by` more binders.
pub fn shifted(g: &mut Graph, id: Id, by: usize) -> Option<Made> {
    moved(g, id, &Move { inner: vec![], depth: by })
}

/// A copy of a class, and the concrete member that was copied.
#[derive(Clone, Copy)]
struct Copied {
    class: Id,
    from: Tid,
}

struct Walk<'a> {
    to: &'a Move,
    /// `None` while a class is being copied: a cycle among representatives is refused.
    memo: FxHashMap<(Id, usize), Option<Copied>>,
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

    fn walk(&mut self, g: &mut Graph, id: Id, under: usize) -> Option<Copied> {
        let id = g.find(id);
        if self.keeps(g[id].data.free, under) {
            return Some(Copied { class: id, from: g[id].data.origin });
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
        if let Some(copied) = out {
            called_as(g, copied.class, id);
        }
        self.memo.insert((id, under), out);
        out
    }

    fn node(&mut self, g: &mut Graph, mut node: ENode, under: usize) -> Option<Copied> {
        if let Label::Head(Head::Var(i, ty)) = node.label {
            let i = i as usize;
            let from = g.concrete(&node);
            let class = match i.checked_sub(under) {
                None => g.add(node),
                Some(out) => match self.to.inner.get(out) {
                    Some(Some(made)) => replaced(g, *made, under)?,
                    Some(None) => return None,
                    None => {
                        let index = out - self.to.inner.len() + self.to.depth + under;
                        node.label = Label::Head(Head::Var(index as u32, ty));
                        g.add(node)
                    }
                },
            };
            return Some(Copied { class, from });
        }
        let n = node.kids.len();
        let mut from = vec![];
        for k in 0..n {
            let binds = node.head().map_or(0, |h| h.binds(k, n));
            let kid = self.walk(g, node.kids[k], under + binds)?;
            node.kids[k] = kid.class;
            from.push(kid.from);
        }
        let from = g.concrete_of(node.label, &from);
        Some(Copied { class: g.add(node), from })
    }
}

/// What a variable is replaced by, under so many binders.
fn replaced(g: &mut Graph, (class, term): Made, under: usize) -> Option<Id> {
    let (out, origin) = (shifted(g, class, under)?, g[class].data.origin);
    if let Some(trace) = g.analysis.trace.as_mut().filter(|_| under > 0 && term != origin) {
        let theta = Theta { inner: vec![], depth: under };
        let moved = trace.mapped(term, &theta, 0);
        trace.equal(moved, out.1, Reason::Mapped(term, origin, Arc::new(theta)));
    }
    Some(out.0)
}
