//! Scalar and vector expressions of a nest, pure: what can fail is a check before them.

use crate::ir::{Lit, Op, Scalar};

/// A scalar or vector variable of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Var(pub u32);

/// A buffer of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Buf(pub u32);

/// A pure expression: a number, or a vector of them. Its depth is bounded by lowering.
///
/// Operands of one operation have the same number of lanes; [`Expr::Broadcast`] makes a vector of a number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A literal.
    Lit(Lit),
    /// A variable.
    Var(Var),
    /// An element of a buffer; for a vector of indices, the elements there.
    Load(Buf, Box<Expr>),
    /// As [`Expr::Load`] of a vector of indices (first), in the lanes where the mask (second) holds. The others
    /// are not read and give zero.
    MaskedLoad(Buf, Box<[Expr; 2]>),
    /// An operation of the table, with its result type, lane by lane.
    Op(Op, Scalar, Vec<Expr>),
    /// A conversion, lane by lane.
    Cast(Scalar, Box<Expr>),
    /// One of two values by one condition; the other is not evaluated.
    Cond(Box<[Expr; 3]>),
    /// A vector of so many integers: first, first + step, first + 2 step, ….
    Ramp(Box<[Expr; 2]>, u32),
    /// A vector of so many equal numbers.
    Broadcast(Box<Expr>, u32),
    /// A mask of so many lanes, of which the first so many (an integer) are true.
    PrefixMask(Box<Expr>, u32),
    /// The number in a lane (second) of a vector (first).
    Extract(Box<[Expr; 2]>),
    /// Whether a mask holds in all lanes.
    All(Box<Expr>),
    /// A vector of so many numbers, each computed by itself by the body (second), where the variable is the
    /// lane; only in the first so many lanes (first). The others are zero.
    PerLane(Var, u32, Box<[Expr; 2]>),
}

impl Expr {
    /// A 64-bit integer.
    pub fn int(v: i64) -> Expr {
        Expr::Lit(Lit::int(v))
    }

    /// A truth value.
    pub fn bool(v: bool) -> Expr {
        Expr::Lit(Lit::Bool(v))
    }

    /// An operation, done at once on integers where that is plain.
    pub fn folded(op: Op, ty: Scalar, args: Vec<Expr>) -> Expr {
        let one = |e: &Expr, v: i64| *e == Expr::int(v);
        match (op, args.as_slice()) {
            (Op::Add, [a, b]) if one(a, 0) => return b.clone(),
            (Op::Mul, [a, b]) if one(a, 1) => return b.clone(),
            (Op::Add | Op::Sub, [a, b]) if one(b, 0) => return a.clone(),
            (Op::Mul, [a, b]) if one(b, 1) => return a.clone(),
            (Op::Mul, [a, b]) if one(a, 0) || one(b, 0) => return Expr::int(0),
            (_, [Expr::Lit(a), Expr::Lit(b)]) if a.as_int().is_some() && b.as_int().is_some() => {
                if let Ok(l) = op.eval(&[*a, *b]) {
                    return Expr::Lit(l);
                }
            }
            _ => {}
        }
        Expr::Op(op, ty, args)
    }

    /// An operation on 64-bit integers, as [`Expr::folded`].
    pub fn index_op(op: Op, a: Expr, b: Expr) -> Expr {
        Expr::folded(op, Scalar::I64, vec![a, b])
    }

    /// The value of an integer literal.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Lit(l) => l.as_int(),
            _ => None,
        }
    }

    /// The scalar type of a literal; integers for all else.
    pub fn literal_ty(&self) -> Scalar {
        match self {
            Expr::Lit(l) => l.ty().as_scalar().unwrap_or(Scalar::I64),
            _ => Scalar::I64,
        }
    }

    /// Whether it is a literal or a variable.
    pub fn is_atom(&self) -> bool {
        matches!(self, Expr::Lit(_) | Expr::Var(_))
    }

    /// Whether it reads a buffer.
    pub fn loads(&self) -> bool {
        self.any(&mut |e| matches!(e, Expr::Load(..) | Expr::MaskedLoad(..)))
    }

    /// Whether it names a variable that the predicate picks.
    pub fn uses(&self, which: &dyn Fn(Var) -> bool) -> bool {
        self.any(&mut |e| matches!(e, Expr::Var(v) if which(*v)))
    }

    /// The number of its nodes.
    pub fn weight(&self) -> usize {
        1 + self.kids().iter().map(Expr::weight).sum::<usize>()
    }
}
