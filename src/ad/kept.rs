//! Tables of what the steps of a fold or scan make, and what tells of its states where there is none of them.

use super::emit::Val;
use super::recurrence::Table;
use crate::ir::Id;

/// Something that every step makes.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// Its place in the body; before that the places of the folds and scans around it, outermost first.
    pub route: Vec<usize>,
    /// Whether it is all states of the fold there.
    pub states: bool,
}

/// A table of something that every step makes.
#[derive(Clone)]
pub struct Kept {
    /// Of what.
    pub target: Target,
    /// The table.
    pub table: Table,
    /// The sizes of all tensors in one entry, in order; nothing where they are not known.
    pub sizes: Option<Vec<Val>>,
}

impl Kept {
    /// The table, where it is that of all states of the fold or scan itself.
    pub fn states(&self) -> Option<Table> {
        (self.target.states && self.target.route.is_empty()).then_some(self.table)
    }
}

/// How the steps of a fold set elements.
#[derive(Clone, Copy)]
pub(super) struct Once {
    /// Along this axis of the state,
    pub axis: usize,
    /// at this index: a term of the source under the state and the element of a step,
    pub at: Id,
    /// which grows from step to step, or falls.
    pub grows: bool,
}
