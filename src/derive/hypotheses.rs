//! What is taken for granted of parameters that are no inputs: those of a lemma.
//!
//! What stands for such a parameter may fail, or have no value over the reals, where nothing here says that it has one.

use crate::ir::Id;
use std::collections::BTreeSet;

/// What is taken for granted of parameters.
#[derive(Clone, Default, Debug)]
pub struct Hypotheses {
    /// Integers that are equal.
    pub given: Vec<(Id, Id)>,
    /// Integers that are at least 0 and below another one.
    pub below: Vec<(Id, Id)>,
    /// The parameters that have a value.
    pub total: BTreeSet<usize>,
    /// The parameters that have one over the reals, too.
    pub defined: BTreeSet<usize>,
}
