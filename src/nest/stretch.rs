//! Indices that grow by one every few lanes, such as `x / 2` of neighbouring pixels.
//!
//! What is read there are a few runs of neighbours whose lanes are woven, not elements from anywhere. It must not know how
//! vectors become text.

use super::expr::Expr;
use crate::ir::{Op, Scalar};

/// How many lanes may share an element: halves, quarters and eighths of vectors are vectors.
pub const SHARED: [i64; 3] = [2, 4, 8];

/// The index `base + (first + lane) / by`.
#[derive(Clone, PartialEq, Debug)]
pub struct Stretch {
    /// What is uniform.
    pub base: Expr,
    /// The numerator in lane 0.
    pub first: Expr,
    /// How many lanes share an element.
    pub by: i64,
}

impl Stretch {
    /// The vector of indices, for what `base` and `first` are then.
    pub fn index(self, lanes: u32) -> Expr {
        let all = |e: Expr| Expr::Broadcast(Box::new(e), lanes);
        let ramp = Expr::Ramp(Box::new([self.first, Expr::int(1)]), lanes);
        let own = Expr::Op(Op::Div, Scalar::I64, vec![ramp, all(Expr::int(self.by))]);
        Expr::Op(Op::Add, Scalar::I64, vec![all(self.base), own])
    }

    /// What [`Stretch::index`] was made of: the base, the first numerator, and how many lanes share an element.
    pub fn of_index(index: &Expr) -> Option<(&Expr, &Expr, i64)> {
        let Expr::Op(Op::Add, Scalar::I64, args) = index else { return None };
        let [Expr::Broadcast(base, _), own] = args.as_slice() else { return None };
        let Expr::Op(Op::Div, Scalar::I64, args) = own else { return None };
        let (first, by) = parts(args)?;
        Some((base, first, by))
    }
}

/// The first of neighbours, and by how many lanes they are divided, or what is left of them counted.
pub fn parts(args: &[Expr]) -> Option<(&Expr, i64)> {
    let [Expr::Ramp(ramp, lanes), Expr::Broadcast(by, _)] = args else { return None };
    let by = by.as_int().filter(|by| SHARED.contains(by) && i64::from(*lanes) >= 2 * by)?;
    (ramp[1].as_int() == Some(1) && lanes.is_power_of_two()).then_some((&ramp[0], by))
}
