//! What is taken for granted: of the parameters of a lemma, which have values and of which nothing else is known, and
//! of what is evaluated anyway.
//!
//! It must not know who takes a lemma, or what evaluates something.

use crate::ir::Id;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What is evaluated anyway around a place, by the number of loops around that.
pub(super) type Levels = [(usize, Rc<FxHashSet<Id>>)];

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
