//! Sums of tensors and tuples: each element is added where the sum stands.
//!
//! A sum over nothing has no element to take its shape from. Then the sizes are the terms that `types::shape` finds,
//! the same ones as in the interpreter, and they fail as those do.

use super::make::Dest;
use super::shape::{Arm, Sum};
use super::value::{Mode, Shape, Val, compare, product};
use super::{Expr, Failing, Lower, mask};
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Ty, TyKind};
use crate::nest::Stmt;

impl Lower<'_> {
    /// A sum of tensors or tuples.
    pub(super) fn reduce_tensor(&mut self, id: Id, d: usize, dest: Dest) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        let total = self.atom(product(&dims), "n");
        let (arm, varies) = self.element_arm(d, kids[d])?;
        let shape = self.sum_shape(id, &total, arm, Sum::Reduced)?;
        let acc = match dest {
            Some(v) if varies => v.clone(),
            Some(v) => {
                let have = self.shape_of(v);
                self.fits_shape(&have, &shape)?;
                v.clone()
            }
            None => self.alloc(&shape, "acc")?,
        };
        self.clear(&acc, &Expr::int(1))?;
        let vars = self.open_loops(id, &dims)?;
        if varies {
            let x = self.value(kids[d])?;
            self.check_sizes(id, &acc, &x)?;
            self.copy(&x, &acc, Mode::Add)?;
        } else {
            self.fill(kids[d], &acc, Mode::Add)?;
        }
        self.close_loops(&vars, &dims, false);
        Ok(acc)
    }

    /// The sum over the elements of a tensor.
    pub(super) fn sum(&mut self, id: Id) -> Result<Val> {
        let t = self.value(self.terms.kids(id)[0])?;
        let (dims, elem) = self.parts(&t)?;
        let total = self.atom(product(&dims), "n");
        let arm = Arm::of(self.shape_of(&elem));
        let shape = self.sum_shape(id, &total, arm, Sum::Of(&t))?;
        let acc = self.alloc(&shape, "acc")?;
        self.clear_tensors(&acc)?;
        let k = self.open_loop(&total, "k")?;
        let x = self.at(&elem, &Expr::Var(k));
        let x = self.read(x);
        self.copy(&x, &acc, Mode::Add)?;
        self.close_loop(k, total, false);
        Ok(acc)
    }

    /// The shape of a sum of so many elements: that of an element, or of a sum over nothing.
    pub(super) fn sum_shape(&mut self, id: Id, total: &Expr, arm: Arm, sum: Sum) -> Result<Shape> {
        let ty = self.terms.ty(id);
        let empty = compare(Op::Eq, total.clone(), Expr::int(0));
        let some = compare(Op::Gt, total.clone(), Expr::int(0));
        if !ty.has_tensor() || empty == Expr::Lit(Lit::Bool(false)) {
            return self.shape_where(some, arm);
        }
        let Some(sizes) = self.empty.get(&id) else {
            if matches!(sum, Sum::Promised) {
                return self.shape_where(some, arm);
            }
            self.check(compare(Op::Ne, total.clone(), Expr::int(0)), Failing::NoShape, id, vec![]);
            return self.shape_where(some, arm);
        };
        let arm = if arm.is_free() {
            self.splice(arm.block);
            Arm::of(arm.shape)
        } else {
            arm
        };
        self.open_block()?;
        let shape = self.nothing(id, ty, sizes, sum);
        let block = self.close_block();
        let nothing = Arm { block, shape: shape? };
        if arm.block.stmts.is_empty() && arm.shape == nothing.shape {
            if mask::can_fail(&nothing.block.stmts) && !matches!(sum, Sum::Promised) {
                self.push(Stmt::If(empty, nothing.block.stmts, vec![]));
            }
            return Ok(arm.shape);
        }
        self.choose(empty, nothing, Some(arm))
    }

    /// The shape of a sum over nothing.
    fn nothing(&mut self, id: Id, ty: Ty, sizes: &[Id], sum: Sum) -> Result<Shape> {
        let checked = !matches!(sum, Sum::Promised);
        let mut dims = vec![];
        for s in sizes {
            let n = match (sum, self.terms.head(*s)) {
                // The tensor is not made again.
                (Sum::Of(t), Head::Size(k)) if self.terms.kids(*s)[0] == self.terms.kids(id)[0] => {
                    self.size_of(t, k)?
                }
                (Sum::Promised, _) => self.guess(*s)?,
                _ => self.scalar(*s)?,
            };
            let n = self.atom(n, "n");
            if checked {
                self.check_sizes_of(id, std::slice::from_ref(&n));
            }
            dims.push(n);
        }
        self.zeros(id, ty, &dims, checked)
    }

    /// The shape of a tensor type with these sizes along its axes.
    fn zeros(&mut self, id: Id, ty: Ty, dims: &[Expr], checked: bool) -> Result<Shape> {
        match ty.kind() {
            TyKind::Scalar(s) => Ok(Shape::Scalar(*s)),
            TyKind::Tuple(parts) => {
                let each = parts.iter().map(|p| self.zeros(id, *p, dims, checked));
                Ok(Shape::Tuple(each.collect::<Result<_>>()?))
            }
            TyKind::Tensor(rank, elem) => {
                let (outer, inner) = dims.split_at((*rank).min(dims.len()));
                if checked {
                    self.check_large(id, outer)?;
                }
                Ok(Shape::Tensor(outer.to_vec(), Box::new(self.zeros(id, *elem, inner, checked)?)))
            }
            TyKind::String | TyKind::Var(..) => self.bug("a type of numbers"),
        }
    }

    /// Zeros for all but the variables, which start with them.
    fn clear_tensors(&mut self, v: &Val) -> Result<()> {
        match v {
            Val::Expr(_) => Ok(()),
            Val::Tuple(parts) => parts.iter().try_for_each(|p| self.clear_tensors(p)),
            Val::Place(..) | Val::Tensor(..) => self.clear(v, &Expr::int(1)),
        }
    }
}
