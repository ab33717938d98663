//! A term in the making: the graph, the terms so far, and what their variables stand for.

use super::scope::{Bound, Scope};
use super::ways::Ways;
use crate::ir::{Head, Id, Terms};
use crate::stage::{DimId, Graph, StageId};
use rustc_hash::FxHashMap;

/// What is made, or why it cannot be said in the language.
pub(super) type Made<T> = Result<T, String>;

/// What is bound by a let: a stage, or the states of a recurrence by its leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Item {
    Stage(StageId),
    States(StageId),
}

/// A term in the making.
pub(super) struct Maker {
    pub g: Graph,
    pub terms: Terms,
    pub scope: Scope,
    pub ways: Ways,
    /// The steps of recurrences that are being made, outermost first.
    pub steps: Vec<Step>,
    /// Which dimensions of a stage that is bound have one index, that of the step that is being made.
    pub fixed: FxHashMap<Item, Vec<DimId>>,
}

/// A step in the making.
pub(super) struct Step {
    /// The first stage of the recurrence.
    pub leader: StageId,
    /// The dimension of what is computed for a step.
    pub each: DimId,
    /// The stages of the state.
    pub states: Vec<StageId>,
    /// The loops around.
    pub outer: Vec<DimId>,
}

impl Maker {
    /// A variable.
    pub(super) fn variable(&mut self, what: Bound) -> Made<Id> {
        match self.scope.find(what) {
            Some((k, ty)) => Ok(self.terms.var(k, ty)),
            None => Err(format!("something is read where it is not bound ({what:?})")),
        }
    }

    /// A node whose types fit.
    pub(super) fn put(&mut self, head: Head, parts: Vec<Id>) -> Made<Id> {
        self.terms.add(head, parts).map_err(|m| format!("an ill-typed {head:?}: {m:?}"))
    }
}
