//! Linear forms: sums of multiples of atoms, which are sizes, indices of loops, whatever else is a number.
//!
//! Arithmetic is of this file's own, and checked. It must not know what is asked of a form.

use crate::ir::Id;
use std::collections::BTreeMap;

/// Coefficients and constants stay below this.
const MAX: i128 = 1 << 50;

/// A sum of multiples of atoms, and a constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Form {
    /// What is multiplied, by what.
    pub(super) atoms: BTreeMap<Id, i128>,
    /// What is added.
    pub(super) constant: i128,
}

impl Form {
    /// A number.
    pub(super) fn constant(constant: i128) -> Form {
        Form { constant, ..Form::default() }
    }

    /// Once an atom.
    pub(super) fn atom(id: Id) -> Form {
        Form { atoms: BTreeMap::from([(id, 1)]), constant: 0 }
    }

    /// The form and a multiple of another one; none where a number grows too large.
    pub(super) fn plus(&self, other: &Form, times: i128) -> Option<Form> {
        let mut out = self.clone();
        let small = |v: i128| (v.abs() < MAX).then_some(v);
        out.constant = small(out.constant + small(other.constant.checked_mul(times)?)?)?;
        for (atom, c) in &other.atoms {
            let sum = out.atoms.entry(*atom).or_default();
            *sum = small(*sum + small(c.checked_mul(times)?)?)?;
        }
        out.atoms.retain(|_, c| *c != 0);
        Some(out)
    }

    /// The difference; none where a number grows too large.
    pub(super) fn minus(&self, other: &Form) -> Option<Form> {
        self.plus(other, -1)
    }

    /// One less.
    pub(super) fn minus_one(&self) -> Form {
        Form { constant: self.constant - 1, ..self.clone() }
    }
}
