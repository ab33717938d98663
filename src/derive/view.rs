//! A number becomes the same number said more directly: a part of a tuple or an element of a tensor that is made on
//! the spot, the arm that the conditions around a place choose; and a state of a fold has the sizes that it began
//! with.
//!
//! What is said here holds wherever the number has a value: that it has one is to be proved by itself. It must not
//! know what a search believes.

use super::flat::Scope;
use super::guard::State;
use super::prove::Prover;
use crate::ir::{Head, Id, Lit, deep};
use crate::types::shape::shape;

/// A number is said more directly so often at most.
const MAX_VIEWS: usize = 8;
/// Elements that are larger as trees are not looked into.
const MAX_SIZE: u64 = 20_000;

impl Prover<'_> {
    /// The number said as directly as may be.
    pub(super) fn view(&mut self, id: Id, scope: &Scope) -> Id {
        let mut id = id;
        for _ in 0..MAX_VIEWS {
            match self.viewed(id, scope) {
                Some(next) => id = next,
                None => break,
            }
        }
        id
    }

    fn viewed(&mut self, id: Id, scope: &Scope) -> Option<Id> {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        match head {
            Head::If => self.chosen(kids[0], scope).map(|holds| if holds { kids[1] } else { kids[2] }),
            Head::Assert => Some(kids[1]),
            Head::Get(i, _) => {
                let parts = self.terms.kids(kids[0]).to_vec();
                match (self.terms.head(kids[0]), parts.as_slice()) {
                    (Head::Tuple, parts) => parts.get(i as usize).copied(),
                    (Head::If, [cond, a, b]) if self.chosen(*cond, scope).is_none() => {
                        let (a, b) = (self.terms.put(head, [*a]), self.terms.put(head, [*b]));
                        Some(self.terms.put(Head::If, [*cond, a, b]))
                    }
                    _ => deep(|| self.viewed(kids[0], scope)).map(|inner| self.terms.put(head, [inner])),
                }
            }
            Head::Index(d) => {
                let made = self.terms.kids(kids[d]).to_vec();
                match self.terms.head(kids[d]) {
                    Head::Build(e) if e == d && self.terms.size(made[d]) <= MAX_SIZE => {
                        Some(self.terms.substitute(made[d], &kids[..d]))
                    }
                    Head::ConstVec(e) if e == d => Some(made[d]),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What a condition is, where one around the place says so.
    fn chosen(&mut self, cond: Id, scope: &Scope) -> Option<bool> {
        if let Some(Lit::Bool(holds)) = self.terms.as_lit(cond) {
            return Some(holds);
        }
        let heard = if self.listens { self.guards.clone() } else { vec![] };
        heard.into_iter().find_map(|g| {
            let by = scope.len().checked_sub(g.depth)?;
            (self.terms.shift(g.cond, by) == cond).then_some(g.holds)
        })
    }

    /// Whether an index is in range because each of the numbers is that it may be.
    pub(super) fn cases_in_range(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let seen = self.view(index, scope);
        if self.terms.head(seen) != Head::If {
            return seen != index && deep(|| self.in_range(seen, n, scope));
        }
        let kids = self.terms.kids(seen).to_vec();
        (1..3).all(|k| self.inside((Head::If, &kids), k, scope, |p, inner| deep(|| p.in_range(kids[k], n, inner))))
    }

    /// The state that child `k` of a node has for a variable: a tensor where every step keeps its sizes, or the number
    /// of a scan.
    pub(super) fn state(&mut self, (head, kids): (Head, &[Id]), k: usize, scope: &Scope) -> Option<State> {
        let folds = matches!(head, Head::Fold | Head::Scan) && k == 2;
        let tensor = folds && self.terms.ty(kids[0]).as_tensor().is_some();
        let keeps = tensor && self.keeps_shape(kids[0], kids[2], scope);
        let scalar = folds && head == Head::Scan && self.terms.ty(kids[0]).as_scalar().is_some();
        (keeps || scalar).then(|| State { depth: scope.len(), init: kids[0] })
    }

    /// Whether a variable is the state of a scan within what is to be proved: it has a value over the reals where the
    /// first has one, and each step gives one where the state before has.
    pub(super) fn is_scanned(&self, i: u32, scope: &Scope) -> bool {
        scope.len().checked_sub(1 + i as usize).is_some_and(|depth| self.states.iter().any(|s| s.depth == depth))
    }

    /// The sizes of a variable that is such a state.
    pub(super) fn sizes_of_state(&mut self, id: Id, scope: &Scope) -> Option<Vec<Id>> {
        let Head::Var(i, _) = self.terms.head(id) else { return None };
        let depth = scope.len().checked_sub(1 + i as usize)?;
        let State { init, .. } = self.states.iter().copied().find(|s| s.depth == depth)?;
        let init = self.terms.shift(init, scope.len() - depth);
        Some(shape(self.terms, init))
    }
}
