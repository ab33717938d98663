//! What the variables of a term in the making stand for, and the terms that were made in their scope.

use crate::ir::{Id, Ty};
use crate::stage::{Body, DimId, StageId};
use rustc_hash::FxHashMap;

/// What a variable stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    /// A parameter.
    Param(usize),
    /// The value of a stage.
    Stage(StageId),
    /// First and later states of a recurrence, by its leader.
    States(StageId),
    /// The state before the step of a recurrence that is being made, by its leader.
    Step(StageId),
    /// The index of a dimension.
    Dim(DimId),
    /// The accumulators of a reduction.
    State,
    /// A body that is used more than once.
    Body(Body),
    /// What is asked for by its distance alone.
    Other,
}

/// The variables in scope, outermost first.
#[derive(Default)]
pub(super) struct Scope {
    bound: Vec<(Bound, Ty)>,
    /// The terms of bodies in each scope: one with another variable is another scope.
    made: Vec<FxHashMap<Body, Id>>,
}

impl Scope {
    pub fn push(&mut self, what: Bound, ty: Ty) {
        self.bound.push((what, ty));
        self.made.push(FxHashMap::default());
    }

    pub fn pop(&mut self, n: usize) {
        let left = self.bound.len() - n;
        self.bound.truncate(left);
        self.made.truncate(left);
    }

    /// The variable that stands for something, by its distance, and its type; the innermost of several.
    pub fn find(&self, what: Bound) -> Option<(u32, Ty)> {
        let at = self.bound.iter().rev().position(|(b, _)| *b == what)?;
        Some((at as u32, self.bound[self.bound.len() - 1 - at].1))
    }

    /// The term that a body became in this scope.
    pub fn known(&self, b: Body) -> Option<Id> {
        self.made.last().and_then(|m| m.get(&b).copied())
    }

    /// Remembers the term that a body became in this scope.
    pub fn remember(&mut self, b: Body, id: Id) {
        if let Some(m) = self.made.last_mut() {
            m.insert(b, id);
        }
    }
}
