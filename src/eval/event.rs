//! What runs tell of the scalars that they compute.

use crate::ir::{Id, Lit, Op, Scalar};

/// Something that was done to scalars in a run.
pub struct Event<'e> {
    /// The node.
    pub at: Id,
    /// The operation, or the type that was cast to.
    pub what: What,
    /// Its arguments.
    pub args: &'e [Lit],
    /// What came of it.
    pub value: Lit,
}

/// What was done to scalars.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// An operation.
    Op(Op),
    /// A cast to a type.
    Cast(Scalar),
}
