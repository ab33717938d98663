//! A term in the making: the graph, the terms so far, and what their variables stand for.

use super::scope::{Bound, Scope};
use super::ways::Ways;
use crate::ir::{Head, Id, Terms};
use crate::stage::{Body, DimId, Graph, Node, StageId};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use std::rc::Rc;

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
    /// The recurrences.
    pub recurrences: Vec<Rc<Recurrence>>,
    /// Those whose steps are being made, outermost first.
    pub steps: Vec<Rc<Recurrence>>,
    /// Which dimensions of a stage that is bound have one index, that of the step that is being made.
    pub fixed: FxHashMap<Item, Vec<DimId>>,
}

/// A recurrence.
pub(super) struct Recurrence {
    /// The first stage of it.
    pub leader: StageId,
    /// The dimension of what is computed for a step.
    pub each: DimId,
    /// The stages of the state.
    pub states: Vec<StageId>,
    /// The loops around.
    pub outer: Vec<DimId>,
    /// The stages that a step computes of its state.
    pub members: IndexSet<StageId>,
}

impl Maker {
    /// A variable.
    pub(super) fn variable(&mut self, what: Bound) -> Made<Id> {
        match self.scope.find(what) {
            Some((k, ty)) => Ok(self.terms.var(k, ty)),
            None => Err(format!("something is read where it is not bound ({what:?})")),
        }
    }

    /// Whether a body is the index of a dimension itself.
    pub(super) fn is_index(&self, b: Body, d: DimId) -> bool {
        matches!(self.g.bodies.node(b), Node::Index(e) if *e == d)
    }

    /// A node whose types fit.
    pub(super) fn put(&mut self, head: Head, parts: Vec<Id>) -> Made<Id> {
        self.terms.add(head, parts).map_err(|m| format!("an ill-typed {head:?}: {m:?}"))
    }
}
