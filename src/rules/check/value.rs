//! Values over the reals, and how two of them agree.

use super::number::Number;
use crate::eval::Value;
use crate::ir::Lit;

/// What a term means over the reals.
#[derive(Clone, PartialEq, Debug)]
pub enum Real {
    /// A float.
    Number(Number),
    /// The identity of `min` (true) or `max`, which only those two take.
    Infinite(bool),
    /// An integer or a truth value.
    Lit(Lit),
    /// Components.
    Tuple(Vec<Real>),
    /// Sizes and elements.
    Tensor(Vec<usize>, Vec<Real>),
    /// No value over the reals.
    Nothing,
}

/// A value as the reals see it.
pub fn real(v: &Value) -> Real {
    match v {
        Value::Scalar(l) => literal(*l),
        Value::Tuple(parts) => Real::Tuple(parts.iter().map(real).collect()),
        Value::Tensor(t) => Real::Tensor(t.dims.to_vec(), t.iter().map(|v| real(&v)).collect()),
    }
}

/// A literal as a real value; floats that are no numbers have none.
pub fn literal(l: Lit) -> Real {
    match l.as_f64() {
        Some(v) => Number::float(v).map_or(Real::Nothing, Real::Number),
        None => Real::Lit(l),
    }
}

/// Whether two values have equal sizes throughout.
pub fn same_shape(a: &Real, b: &Real) -> bool {
    match (a, b) {
        (Real::Tuple(a), Real::Tuple(b)) => a.iter().zip(b).all(|(x, y)| same_shape(x, y)),
        (Real::Tensor(m, a), Real::Tensor(n, b)) => {
            m == n && a.first().zip(b.first()).is_none_or(|(x, y)| same_shape(x, y))
        }
        _ => true,
    }
}

/// How two values compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Agreement {
    /// Equal to as many digits as are asked for.
    Same,
    /// The intervals overlap, but are too wide.
    Undecided,
    /// The second has a value where the first has none.
    Invented,
    /// The first has a value where the second has none.
    Lost,
    /// They differ.
    Differ,
}

/// Compares two values of one type: the worst that holds of any part.
pub fn compare(a: &Real, b: &Real) -> Agreement {
    match (a, b) {
        (Real::Number(x), Real::Number(y)) => match x.agrees(y) {
            Some(true) => Agreement::Same,
            Some(false) => Agreement::Differ,
            None => Agreement::Undecided,
        },
        (Real::Nothing, Real::Nothing) => Agreement::Same,
        (Real::Nothing, v) if has_value(v) => Agreement::Invented,
        (v, Real::Nothing) if has_value(v) => Agreement::Lost,
        (Real::Nothing, _) | (_, Real::Nothing) => Agreement::Same,
        (Real::Tuple(a), Real::Tuple(b)) => all(a, b),
        (Real::Tensor(m, a), Real::Tensor(n, b)) if m == n => all(a, b),
        _ if a == b => Agreement::Same,
        _ => Agreement::Differ,
    }
}

fn all(a: &[Real], b: &[Real]) -> Agreement {
    a.iter().zip(b).map(|(x, y)| compare(x, y)).max().unwrap_or(Agreement::Same)
}

/// Whether every part of a value has one, and none is infinite.
pub fn has_value(v: &Real) -> bool {
    match v {
        Real::Nothing | Real::Infinite(_) => false,
        Real::Number(_) | Real::Lit(_) => true,
        Real::Tuple(each) | Real::Tensor(_, each) => each.iter().all(has_value),
    }
}
