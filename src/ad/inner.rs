//! Two tangents become their inner product.

use crate::eval::Value;

/// The inner product of two tangents, and the sum of the magnitudes of its terms.
pub fn inner(a: &Value, b: &Value) -> (f64, f64) {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => {
            let p = a.as_f64().unwrap_or_default() * b.as_f64().unwrap_or_default();
            (p, p.abs())
        }
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b.iter()).map(|(x, y)| inner(x, y)).fold((0.0, 0.0), plus),
        (Value::Tensor(a), Value::Tensor(b)) => {
            a.iter().zip(b.iter()).map(|(x, y)| inner(&x, &y)).fold((0.0, 0.0), plus)
        }
        _ => (0.0, 0.0),
    }
}

/// Sums and magnitudes of both.
pub fn plus(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}
