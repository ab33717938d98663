//! What an e-graph did, as equations between concrete terms.
//!
//! The terms are those of the e-graph's own language: an index variable carries what it ranges over
//! as a child, so an equation between open terms is valid wherever it stands. Each class has one
//! concrete member, its origin, with the free variables of the class's representative. Invariant: for
//! every e-node of a class, the node over its children's origins equals the class's origin by the
//! recorded equations and congruence.

use super::language::Label;
use crate::ir::{Free, Head, Ty, deep};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// A concrete term.
pub type Tid = u32;

/// A label and children.
pub type Node = (Label, SmallVec<[Tid; 3]>);

/// Where variables go: the innermost ones to terms, the others in or out.
#[derive(Clone, PartialEq, Debug)]
pub struct Theta {
    /// The term for each of the innermost variables, by index.
    pub inner: Vec<Option<Tid>>,
    /// How many binders the others move inside, those counted that `inner` takes away.
    pub depth: usize,
}

/// Why two terms are equal.
#[derive(Clone, Debug)]
pub enum Reason {
    /// A rule or an axiom, from left to right.
    By(Arc<str>),
    /// Two terms are equal, so they are with their variables moved.
    Mapped(Tid, Tid, Arc<Theta>),
}

/// An equation.
#[derive(Clone, Debug)]
pub struct Equation {
    /// The left side.
    pub left: Tid,
    /// The right side.
    pub right: Tid,
    /// Why.
    pub reason: Reason,
}

/// The terms and equations of a search.
#[derive(Clone, Default, Debug)]
pub struct Trace {
    nodes: IndexSet<Node, FxBuildHasher>,
    free: Vec<Free>,
    tys: Vec<Ty>,
    /// The equations, in order.
    pub equations: Vec<Equation>,
    seen: FxHashSet<(Tid, Tid)>,
}

impl Trace {
    /// Adds a term, or finds it.
    pub fn put(&mut self, label: Label, kids: impl IntoIterator<Item = Tid>) -> Tid {
        let node: Node = (label, kids.into_iter().collect());
        let (at, new) = self.nodes.insert_full(node);
        if new {
            let (label, kids) = &self.nodes[at];
            let (mut free, mut ty) = (Free::default(), Ty::tuple([]));
            match label {
                Label::Head(Head::Var(i, t)) => (free, ty) = (Free::var(*i), *t),
                Label::Head(head) => {
                    let tys: SmallVec<[Ty; 4]> = kids.iter().map(|k| self.tys[*k as usize]).collect();
                    ty = head.result_ty(&tys).unwrap_or(ty);
                    for (k, kid) in kids.iter().enumerate() {
                        free = free.union(self.free[*kid as usize].outside(head.binds(k, kids.len())));
                    }
                }
                Label::Param(_, t) => ty = *t,
                Label::Unknown => {}
            }
            self.free.push(free);
            self.tys.push(ty);
        }
        at as Tid
    }

    /// The node of a term.
    pub fn node(&self, id: Tid) -> &Node {
        &self.nodes[id as usize]
    }

    /// The free variables of a term.
    pub fn free(&self, id: Tid) -> Free {
        self.free[id as usize]
    }

    /// The type of a term; that of nothing where it has none.
    pub fn ty(&self, id: Tid) -> Ty {
        self.tys[id as usize]
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Records an equation.
    pub fn equal(&mut self, left: Tid, right: Tid, reason: Reason) {
        if left != right && self.seen.insert((left, right)) {
            self.equations.push(Equation { left, right, reason });
        }
    }

    /// Records an equation by a rule or an axiom.
    pub fn by(&mut self, left: Tid, right: Tid, name: &str) {
        self.equal(left, right, Reason::By(name.into()));
    }

    /// A term with its variables moved, seen from under so many more binders.
    pub fn mapped(&mut self, id: Tid, theta: &Theta, under: usize) -> Tid {
        self.map(id, theta, under, &mut FxHashMap::default())
    }

    /// A term moved inside `by` more binders.
    pub fn shifted(&mut self, id: Tid, by: usize) -> Tid {
        self.mapped(id, &Theta { inner: vec![], depth: by }, 0)
    }

    fn map(&mut self, id: Tid, theta: &Theta, under: usize, memo: &mut FxHashMap<(Tid, usize), Tid>) -> Tid {
        if !self.free(id).above(under) || theta.inner.is_empty() && theta.depth == 0 {
            return id;
        }
        if let Some(done) = memo.get(&(id, under)) {
            return *done;
        }
        let (label, kids) = self.node(id).clone();
        let out = match label {
            Label::Head(Head::Var(i, ty)) => match (i as usize).checked_sub(under) {
                None => id,
                Some(out) => match theta.inner.get(out) {
                    Some(Some(to)) => self.shifted(*to, under),
                    // It may not stand there; such a term is never used.
                    Some(None) => id,
                    None => {
                        let index = out - theta.inner.len() + theta.depth + under;
                        self.put(Label::Head(Head::Var(index as u32, ty)), kids)
                    }
                },
            },
            _ => {
                let n = kids.len();
                let mut new: SmallVec<[Tid; 3]> = SmallVec::new();
                for (k, kid) in kids.into_iter().enumerate() {
                    let binds = if let Label::Head(h) = label { h.binds(k, n) } else { 0 };
                    new.push(deep(|| self.map(kid, theta, under + binds, memo)));
                }
                self.put(label, new)
            }
        };
        memo.insert((id, under), out);
        out
    }
}
