//! What names stand for, and what waits for its body.

use crate::ir::Id;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// The variable bound at a level, counted from the outermost.
    Level(usize),
    /// The size of an axis of the parameter at a level.
    Size(usize, usize),
    /// A tuple whose parts are the variables at these levels.
    Parts(Vec<usize>),
    /// Nothing: its value has an error.
    Unknown,
}

/// A let that waits for its body.
pub struct Pending {
    pub(super) value: Id,
    /// Its name in the source, and whether that was chosen (see [`super::Elab::chosen`]).
    pub(super) name: Option<(String, bool)>,
}
