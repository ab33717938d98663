//! What a value has the shape of: a value, and the sizes of its axes where they are known.

use super::emit::{Emit, Val};
use crate::ir::Id;

/// What an adjoint has the shape of.
#[derive(Clone)]
pub struct Like {
    /// A value of the same shape.
    pub val: Val,
    /// The sizes of its axes, where it is a tensor; they need not be known.
    pub sizes: Vec<Val>,
}

impl Like {
    /// A part of a tuple.
    pub fn part(&self, e: &mut Emit<'_>, k: usize, n: usize) -> Like {
        let of = e.now(self.val);
        let id = e.get(k as u32, n as u32, of);
        Like { val: e.val(id), sizes: vec![] }
    }

    /// Sizes where the work stands.
    pub fn sizes_now(&self, e: &mut Emit<'_>) -> Vec<Id> {
        self.sizes.iter().map(|s| e.now(*s)).collect()
    }
}
