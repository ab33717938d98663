//! Values that are never read, and stand where something of a type is wanted: in the arm of a condition that
//! makes nothing of what the other one keeps.

use super::walk::Walk;
use crate::ir::{Head, Id, Lit, Op, Scalar, Ty, TyKind};

impl Walk<'_, '_> {
    /// Anything of a type whose tensors have these sizes, all of them where they stand in order.
    pub fn stand_in_of(&mut self, ty: Ty, sizes: &mut impl Iterator<Item = Id>) -> Option<Id> {
        match ty.kind() {
            TyKind::Tensor(rank, elem) => {
                let none = self.e.int(0);
                let mut kids = vec![];
                for _ in 0..*rank {
                    let size = sizes.next()?;
                    let certain = self.is_certain_size(size);
                    kids.push(if certain { size } else { self.e.op(Op::Max, [size, none]) });
                }
                kids.push(self.stand_in_of(*elem, sizes)?);
                Some(self.e.put(Head::ConstVec(*rank), kids))
            }
            TyKind::Tuple(parts) => {
                let parts: Option<Vec<Id>> = parts.iter().map(|p| self.stand_in_of(*p, sizes)).collect();
                Some(self.e.put(Head::Tuple, parts?))
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Some(self.stand_in(ty)),
        }
    }

    /// A closed value of a type: it is never read.
    pub fn stand_in(&mut self, ty: Ty) -> Id {
        match ty.kind() {
            TyKind::Scalar(s) => self.e.terms.lit(Lit::zero(*s)),
            TyKind::String => self.e.terms.lit(Lit::Str("")),
            TyKind::Tuple(parts) => {
                let parts: Vec<Id> = parts.iter().map(|p| self.stand_in(*p)).collect();
                self.e.put(Head::Tuple, parts)
            }
            TyKind::Tensor(rank, elem) => {
                let mut kids = vec![self.e.int(0); *rank];
                kids.push(self.stand_in(*elem));
                self.e.put(Head::ConstVec(*rank), kids)
            }
            TyKind::Var(..) => self.e.float(Scalar::F64, 0.0),
        }
    }
}
