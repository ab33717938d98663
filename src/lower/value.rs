//! Values while lowering: which expressions and buffers stand for a value of the language.
//!
//! The same type describes destinations: a scalar destination is a place in a buffer or a variable.

use super::{Expr, Lower, compare, int_op};
use crate::diag::Result;
use crate::ir::{Lit, Op, Scalar, Ty, TyKind};
use crate::nest::{Buf, Slot, Stmt};

/// A value, or a destination.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Val {
    /// A scalar; as a destination, a variable that can be set.
    Expr(Expr),
    /// Scalars in a buffer from an offset; under tensors, the first of theirs.
    Place(Buf, Expr),
    /// Components.
    Tuple(Vec<Val>),
    /// Sizes of the outer tensor, and its element at index 0.
    Tensor(Vec<Expr>, Box<Val>),
}

/// The sizes of a value. Sizes inside an empty tensor are not 0 here; reading one takes care of that.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Shape {
    Scalar(Scalar),
    Tuple(Vec<Shape>),
    Tensor(Vec<Expr>, Box<Shape>),
}

/// How a destination takes a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// The value replaces what stands there.
    Store,
    /// The value is added to what stands there.
    Add,
}

/// A text is a number: where it stands among the texts that the nest knows.
const TEXT: Scalar = Scalar::I64;

/// How numbers, truth values and texts are stored; nothing of other types.
pub(super) fn stored(ty: Ty) -> Option<Scalar> {
    if let TyKind::String = ty.kind() { Some(TEXT) } else { ty.as_scalar() }
}

/// The shape of a type without tensors, which has no sizes.
pub(super) fn sizeless(ty: Ty) -> Option<Shape> {
    match (stored(ty), ty.as_tuple()) {
        (Some(s), _) => Some(Shape::Scalar(s)),
        (None, Some(parts)) => parts.iter().map(|p| sizeless(*p)).collect::<Option<_>>().map(Shape::Tuple),
        (None, None) => None,
    }
}

/// The number of elements.
pub(super) fn product(dims: &[Expr]) -> Expr {
    dims.iter().fold(Expr::int(1), |a, d| int_op(Op::Mul, a, d.clone()))
}

pub(super) fn and(a: Expr, b: Expr) -> Expr {
    match (&a, &b) {
        (Expr::Lit(Lit::Bool(true)), _) => b,
        (_, Expr::Lit(Lit::Bool(true))) => a,
        _ => Expr::Op(Op::And, Scalar::Bool, vec![a, b]),
    }
}

impl Lower<'_> {
    /// Memory for a value of a shape.
    pub(super) fn alloc(&mut self, shape: &Shape, name: &str) -> Result<Val> {
        self.alloc_in(shape, name, &mut vec![])
    }

    fn alloc_in(&mut self, shape: &Shape, name: &str, outer: &mut Vec<Expr>) -> Result<Val> {
        match shape {
            Shape::Scalar(s) if outer.is_empty() => {
                Ok(Val::Expr(Expr::Var(self.mutable(name, Expr::Lit(Lit::zero(*s))))))
            }
            Shape::Scalar(s) => {
                let buf = self.fresh_buf(name, *s);
                self.push(Stmt::Alloc(buf, outer.clone()));
                self.block()?.takes = true;
                Ok(Val::Place(buf, Expr::int(0)))
            }
            Shape::Tuple(parts) => {
                Ok(Val::Tuple(parts.iter().map(|p| self.alloc_in(p, name, outer)).collect::<Result<_>>()?))
            }
            Shape::Tensor(dims, elem) => {
                outer.extend(dims.iter().cloned());
                let elem = self.alloc_in(elem, name, outer)?;
                outer.truncate(outer.len() - dims.len());
                Ok(Val::Tensor(dims.clone(), Box::new(elem)))
            }
        }
    }

    /// The shape of a value.
    pub(super) fn shape_of(&self, v: &Val) -> Shape {
        match v {
            Val::Expr(e) => Shape::Scalar(self.expr_ty(e)),
            Val::Place(b, _) => Shape::Scalar(self.f.bufs[b.0 as usize].ty),
            Val::Tuple(parts) => Shape::Tuple(parts.iter().map(|p| self.shape_of(p)).collect()),
            Val::Tensor(dims, elem) => Shape::Tensor(dims.clone(), Box::new(self.shape_of(elem))),
        }
    }

    /// The element at a row-major position, as a place.
    pub(super) fn at(&mut self, elem: &Val, position: &Expr) -> Val {
        self.at_in(elem, position, &Expr::int(1), false)
    }

    fn at_in(&mut self, v: &Val, position: &Expr, each: &Expr, inside: bool) -> Val {
        match v {
            Val::Place(b, from) => {
                let offset = int_op(Op::Mul, position.clone(), each.clone());
                let offset = int_op(Op::Add, from.clone(), offset);
                Val::Place(*b, if inside || super::weight(&offset) > 8 { self.atom(offset, "at") } else { offset })
            }
            Val::Expr(e) => Val::Expr(e.clone()),
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.at_in(p, position, each, inside)).collect()),
            Val::Tensor(dims, elem) => {
                let each = int_op(Op::Mul, each.clone(), product(dims));
                let each = self.atom(each, "row");
                Val::Tensor(dims.clone(), Box::new(self.at_in(elem, position, &each, true)))
            }
        }
    }

    /// An element as a value: its scalars are read where they are used.
    pub(super) fn read(&mut self, place: Val) -> Val {
        match place {
            Val::Place(b, at) => Val::Expr(Expr::Load(b, Box::new(at))),
            Val::Tuple(parts) => Val::Tuple(parts.into_iter().map(|p| self.read(p)).collect()),
            Val::Expr(_) | Val::Tensor(..) => place,
        }
    }

    /// The position of indices in row-major order.
    pub(super) fn position(&mut self, indices: &[Expr], dims: &[Expr]) -> Expr {
        let mut at = indices.first().cloned().unwrap_or(Expr::int(0));
        for (i, n) in indices.iter().zip(dims).skip(1) {
            at = int_op(Op::Add, int_op(Op::Mul, at, n.clone()), i.clone());
        }
        if super::weight(&at) > 6 { self.atom(at, "at") } else { at }
    }

    /// Puts a scalar into a destination.
    pub(super) fn put(&mut self, dest: &Val, value: Expr, mode: Mode) -> Result<()> {
        let old = match dest {
            Val::Expr(Expr::Var(v)) => Expr::Var(*v),
            Val::Place(b, at) => Expr::Load(*b, Box::new(at.clone())),
            _ => return self.bug("a scalar destination"),
        };
        let value = match mode {
            Mode::Store => value,
            // A sum that starts from 0.0 is never -0.0, so that nothing changes.
            Mode::Add if matches!(&value, Expr::Lit(Lit::F64(b)) if f64::from_bits(*b) == 0.0) => return Ok(()),
            Mode::Add => {
                let ty = self.expr_ty(&old);
                self.apply(Op::Add, ty, vec![old, value])
            }
        };
        match dest {
            Val::Place(b, at) => self.push(Stmt::Store(*b, at.clone(), value)),
            Val::Expr(Expr::Var(v)) => self.push(Stmt::Set(*v, value)),
            _ => {}
        }
        Ok(())
    }

    /// Copies a value, or adds it, to a destination of the same shape.
    pub(super) fn copy(&mut self, v: &Val, dest: &Val, mode: Mode) -> Result<()> {
        // All scalars are read before any is set, so that states may swap their parts.
        if let (Val::Tuple(a), Val::Tuple(_)) = (v, dest) {
            let a: Vec<Val> = a.iter().map(|p| self.hold(p)).collect();
            return self.copy_in(&Val::Tuple(a), dest, mode, &Expr::int(1));
        }
        self.copy_in(v, dest, mode, &Expr::int(1))
    }

    fn copy_in(&mut self, v: &Val, dest: &Val, mode: Mode, total: &Expr) -> Result<()> {
        match (v, dest) {
            (Val::Tuple(a), Val::Tuple(b)) => a.iter().zip(b).try_for_each(|(a, b)| self.copy_in(a, b, mode, total)),
            (Val::Tensor(dims, a), Val::Tensor(_, b)) => {
                let total = int_op(Op::Mul, total.clone(), product(dims));
                let total = self.atom(total, "n");
                self.copy_in(a, b, mode, &total)
            }
            (Val::Place(a, i), Val::Place(b, j)) => {
                let k = self.open_loop(total, "k")?;
                let from = int_op(Op::Add, i.clone(), Expr::Var(k));
                let to = int_op(Op::Add, j.clone(), Expr::Var(k));
                self.put(&Val::Place(*b, to), Expr::Load(*a, Box::new(from)), mode)?;
                self.close_loop(k, total.clone(), true);
                Ok(())
            }
            (Val::Expr(e), _) => self.put(dest, e.clone(), mode),
            _ => self.bug("a destination of the same type"),
        }
    }

    /// A value whose scalars are constants, so that later writes do not change them.
    pub(super) fn hold(&mut self, v: &Val) -> Val {
        match v {
            Val::Expr(Expr::Lit(l)) => Val::Expr(Expr::Lit(*l)),
            Val::Expr(e) => {
                let (ty, e) = (self.expr_ty(e), e.clone());
                let var = self.fresh("new", ty);
                self.push(Stmt::Let(var, e));
                Val::Expr(Expr::Var(var))
            }
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.hold(p)).collect()),
            Val::Place(..) | Val::Tensor(..) => v.clone(),
        }
    }

    /// Fills a destination with zeros.
    pub(super) fn clear(&mut self, dest: &Val, total: &Expr) -> Result<()> {
        match dest {
            Val::Expr(e) => {
                let ty = self.expr_ty(e);
                self.put(dest, Expr::Lit(Lit::zero(ty)), Mode::Store)
            }
            Val::Tuple(parts) => parts.iter().try_for_each(|p| self.clear(p, total)),
            Val::Tensor(dims, elem) => {
                let total = int_op(Op::Mul, total.clone(), product(dims));
                let total = self.atom(total, "n");
                self.clear(elem, &total)
            }
            Val::Place(b, from) => {
                let zero = Expr::Lit(Lit::zero(self.f.bufs[b.0 as usize].ty));
                let k = self.open_loop(total, "k")?;
                self.push(Stmt::Store(*b, int_op(Op::Add, from.clone(), Expr::Var(k)), zero));
                self.close_loop(k, total.clone(), true);
                Ok(())
            }
        }
    }

    /// Whether two shapes are equal: a condition, `true` where that is proved.
    pub(super) fn same(&mut self, a: &Shape, b: &Shape) -> Expr {
        match (a, b) {
            (Shape::Tuple(a), Shape::Tuple(b)) => a.iter().zip(b).fold(Expr::Lit(Lit::Bool(true)), |all, (a, b)| {
                let each = self.same(a, b);
                let each = self.atom(each, "same");
                and(all, each)
            }),
            (Shape::Tensor(m, a), Shape::Tensor(n, b)) => {
                let outer = self.same_dims(m, n);
                let inner = self.same(a, b);
                if inner == Expr::Lit(Lit::Bool(true)) {
                    return outer;
                }
                let total = product(m);
                let total = self.atom(total, "n");
                let inner = self.atom(inner, "same");
                let empty = compare(Op::Eq, total, Expr::int(0));
                and(outer, Expr::Op(Op::Or, Scalar::Bool, vec![empty, inner]))
            }
            _ => Expr::Lit(Lit::Bool(true)),
        }
    }

    /// Whether sizes are equal: a condition, `true` where that is proved.
    pub(super) fn same_dims(&mut self, a: &[Expr], b: &[Expr]) -> Expr {
        a.iter().zip(b).fold(Expr::Lit(Lit::Bool(true)), |all, (a, b)| {
            if self.equal(a, b) { all } else { and(all, compare(Op::Eq, a.clone(), b.clone())) }
        })
    }

    /// A value without memory, for code that is never reached.
    pub(super) fn dummy(&mut self, ty: Ty) -> Result<Val> {
        let shape = self.empty_shape(ty)?;
        self.alloc(&shape, "none")
    }

    pub(super) fn empty_shape(&self, ty: Ty) -> Result<Shape> {
        match ty.kind() {
            TyKind::Scalar(s) => Ok(Shape::Scalar(*s)),
            TyKind::Tuple(parts) => {
                Ok(Shape::Tuple(parts.iter().map(|p| self.empty_shape(*p)).collect::<Result<_>>()?))
            }
            TyKind::Tensor(d, e) => Ok(Shape::Tensor(vec![Expr::int(0); *d], Box::new(self.empty_shape(*e)?))),
            TyKind::String => Ok(Shape::Scalar(TEXT)),
            TyKind::Var(..) => self.bug("a type without variables"),
        }
    }

    /// New variables and buffers for a value that comes from elsewhere, and the slots they fill.
    pub(super) fn incoming(&mut self, ty: Ty, name: &str, outer: &[Expr], slots: &mut Vec<Slot>) -> Result<Val> {
        let stored = stored(ty).unwrap_or(TEXT);
        match ty.kind() {
            TyKind::Scalar(_) | TyKind::String if outer.is_empty() => {
                let v = self.fresh(name, stored);
                slots.push(Slot::Scalar(v));
                Ok(Val::Expr(Expr::Var(v)))
            }
            TyKind::Scalar(_) | TyKind::String => {
                let b = self.fresh_buf(name, stored);
                slots.push(Slot::Data(b));
                Ok(Val::Place(b, Expr::int(0)))
            }
            TyKind::Tuple(parts) => {
                let mut each = vec![];
                for (k, p) in parts.iter().enumerate() {
                    each.push(self.incoming(*p, &format!("{name}_{}", k + 1), outer, slots)?);
                }
                Ok(Val::Tuple(each))
            }
            TyKind::Tensor(d, elem) => {
                let mut dims = vec![];
                for k in 0..*d {
                    let v = self.fresh(&format!("{name}_size{}", outer.len() + k), Scalar::I64);
                    self.f.sizes.insert(v);
                    self.f.inner.insert(v, outer.to_vec());
                    slots.push(Slot::Size(v));
                    dims.push(Expr::Var(v));
                }
                self.block()?.small.extend(dims.iter().cloned());
                let elem = self.incoming(*elem, name, &[outer, &dims].concat(), slots)?;
                Ok(Val::Tensor(dims, Box::new(elem)))
            }
            TyKind::Var(..) => self.bug("a type without variables"),
        }
    }
}
