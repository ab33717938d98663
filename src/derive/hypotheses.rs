//! What is taken for granted of the parameters of a lemma, which have values and of which nothing else is known.
//!
//! It must not know who takes the lemma.

use crate::ir::Id;
use std::collections::BTreeSet;

/// What is taken for granted of parameters.
#[derive(Clone, Default, Debug)]
pub struct Hypotheses {
    /// Integers that are equal.
    pub given: Vec<(Id, Id)>,
    /// Integers that are at least 0 and below another one.
    pub below: Vec<(Id, Id)>,
    /// The parameters that have a value over the reals, too.
    pub defined: BTreeSet<usize>,
}
