//! Room for the elements of tensors, where there is any, and the zeros of types.

use super::{Elements, Interpreter, MAX_ELEMENTS, Value, large, product};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Id, Lit, Scalar, Ty, TyKind};

impl Interpreter<'_> {
    /// Room for the elements of the tensor that a term gives, where the machine and [`MAX_ELEMENTS`] leave it.
    pub(super) fn room(&self, id: Id, dims: &[usize]) -> Result<Elements> {
        let n = self.places(id, dims)?;
        let ty = self.terms.ty(id);
        let elem = ty.as_tensor().map_or(ty, |(_, elem)| elem);
        Elements::room(elem, n).ok_or_else(|| self.too_large(id, dims))
    }

    /// The same element everywhere.
    pub(super) fn filled(&self, id: Id, dims: &[usize], with: &Value) -> Result<Elements> {
        let n = self.places(id, dims)?;
        Elements::filled(with, n).ok_or_else(|| self.too_large(id, dims))
    }

    /// The number of elements, which a tensor may have.
    fn places(&self, id: Id, dims: &[usize]) -> Result<usize> {
        product(dims).filter(|n| *n <= MAX_ELEMENTS).ok_or_else(|| self.too_large(id, dims))
    }

    fn too_large(&self, id: Id, dims: &[usize]) -> Box<Diagnostic> {
        let sizes: Vec<u64> = dims.iter().map(|n| *n as u64).collect();
        let note = large::note(self.terms.labelled(id), &sizes, large::each(self.terms.ty(id)));
        self.limit(id, large::message(&sizes)).note(note)
    }

    /// The zero of a type; the sizes of tensors come from a value, or from the sizes of a sum.
    pub(super) fn zero(&self, id: Id, ty: Ty, like: Option<&Value>, env: &mut Vec<Value>) -> Result<Value> {
        if let Some(v) = like {
            return Ok(v.zero_like());
        }
        match ty.kind() {
            TyKind::Scalar(s) => Ok(Value::Scalar(Lit::zero(*s))),
            TyKind::Tuple(parts) => {
                Ok(Value::tuple(parts.iter().map(|p| self.zero(id, *p, None, env)).collect::<Result<_>>()?))
            }
            TyKind::Tensor(..) if self.empty.contains_key(&id) && ty == self.terms.ty(id) => {
                let dims: Vec<usize> = self.empty[&id].iter().map(|s| self.size(id, *s, env)).collect::<Result<_>>()?;
                self.zeros(id, ty, &dims)
            }
            TyKind::String | TyKind::Tensor(..) | TyKind::Var(..) => {
                Err(self.fail(id, "a sum over nothing has no shape here"))
            }
        }
    }

    /// Zeros of a tensor type without tuples of tensors.
    fn zeros(&self, id: Id, ty: Ty, dims: &[usize]) -> Result<Value> {
        Ok(match ty.kind() {
            TyKind::Tensor(rank, elem) => {
                let (outer, inner) = dims.split_at(*rank);
                self.places(id, outer)?;
                let zero = self.zeros(id, *elem, inner)?;
                let elements = self.filled(id, outer, &zero)?;
                self.made(outer.into(), elements)
            }
            TyKind::Tuple(parts) => {
                Value::tuple(parts.iter().map(|p| self.zeros(id, *p, dims)).collect::<Result<_>>()?)
            }
            TyKind::Scalar(s) => Value::Scalar(Lit::zero(*s)),
            TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::zero(Scalar::F64)),
        })
    }
}
