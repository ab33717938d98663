//! Values while lowering: which expressions and buffers stand for a value of the language.
//!
//! The same type describes destinations: a scalar destination is a place in a buffer or a variable.

use crate::ir::{Lit, Op, Scalar, Ty, TyKind};
use crate::nest::{Buf, Expr};

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
pub(super) const TEXT: Scalar = Scalar::I64;

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

pub(super) fn int_op(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::folded(op, Scalar::I64, vec![a, b])
}

pub(super) fn compare(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::folded(op, Scalar::Bool, vec![a, b])
}
