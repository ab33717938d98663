//! What a value has the shape of: a value, and the sizes of its axes where they are known.

use super::emit::{Emit, Val};
use crate::ir::{Id, Ty};

/// What an adjoint has the shape of.
#[derive(Clone)]
pub struct Like {
    /// A value of the same shape.
    pub val: Val,
    /// The sizes of its axes, where it is a tensor, and of all tensors in it, one part of a tuple after the other; they need not be
    /// known.
    pub sizes: Vec<Val>,
}

impl Like {
    /// A part of a tuple.
    pub fn part(&self, e: &mut Emit<'_>, k: usize, n: usize) -> Like {
        let of = e.now(self.val);
        let id = e.get(k as u32, n as u32, of);
        let sizes = part_of(e.ty(of), k, &self.sizes).to_vec();
        Like { val: e.val(id), sizes }
    }

    /// Sizes where the work stands.
    pub fn sizes_now(&self, e: &mut Emit<'_>) -> Vec<Id> {
        self.sizes.iter().map(|s| e.now(*s)).collect()
    }
}

/// Of the sizes of all tensors in a tuple those of a part; none where not all are known.
pub fn part_of(ty: Ty, k: usize, sizes: &[Val]) -> &[Val] {
    let (Some(parts), true) = (ty.as_tuple(), sizes.len() == ty.all_axes()) else { return &[] };
    let before: usize = parts[..k].iter().map(|p| p.all_axes()).sum();
    &sizes[before..before + parts[k].all_axes()]
}
