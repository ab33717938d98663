//! Whether two values are the same over the reals: floats may differ by rounding, all else is equal.

use crate::eval::Value;
use crate::ir::Lit;

/// How far floats may lie apart, relative to the greater one: of 64 bits, and of 32.
const ROUNDING: [f64; 2] = [1e-9, 1e-4];
/// A float counts as this share of the greatest one beside it at least: where terms cancel, what is left is their rounding.
const LEAST: f64 = 1e-3;

/// Why two values are not the same; nothing where they are. What is no number is like what is none.
pub fn apart(have: &Value, want: &Value) -> Option<String> {
    let most = greatest(want).max(greatest(have));
    compare(have, want, LEAST * most)
}

/// The greatest finite magnitude of the floats of a value.
fn greatest(value: &Value) -> f64 {
    match value {
        Value::Scalar(l) => float(*l).map_or(0.0, |(x, _)| if x.is_finite() { x.abs() } else { 0.0 }),
        Value::Tuple(parts) => parts.iter().map(greatest).fold(0.0, f64::max),
        Value::Tensor(t) => t.iter().map(|v| greatest(&v)).fold(0.0, f64::max),
    }
}

fn float(l: Lit) -> Option<(f64, f64)> {
    match l {
        Lit::F64(bits) => Some((f64::from_bits(bits), ROUNDING[0])),
        Lit::F32(bits) => Some((f64::from(f32::from_bits(bits)), ROUNDING[1])),
        Lit::Int(..) | Lit::Bool(_) | Lit::Str(_) => None,
    }
}

fn compare(have: &Value, want: &Value, least: f64) -> Option<String> {
    match (have, want) {
        (Value::Scalar(a), Value::Scalar(b)) => match (float(*a), float(*b)) {
            (Some((x, rounding)), Some((y, _))) => {
                let same = x == y || x.is_nan() && y.is_nan();
                let near =
                    x.is_finite() && y.is_finite() && (x - y).abs() <= rounding * x.abs().max(y.abs()).max(least);
                (!same && !near).then(|| format!("{x:?} is not {y:?}"))
            }
            _ => (a != b).then(|| format!("{} is not {}", have.to_json(), want.to_json())),
        },
        // Each part has a scale of its own.
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
            a.iter().zip(b.iter()).find_map(|(a, b)| apart(a, b))
        }
        (Value::Tensor(a), Value::Tensor(b)) if a.dims == b.dims => {
            a.iter().zip(b.iter()).find_map(|(a, b)| compare(&a, &b, least))
        }
        _ => Some("it has another shape".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Scalar;

    fn vector(of: &[f64]) -> Value {
        Value::tensor(vec![of.len()], of.iter().map(|v| Value::Scalar(Lit::float(*v))).collect())
    }

    fn single(v: f64) -> Value {
        Value::Scalar(Lit::of(Scalar::F32, v))
    }

    /// Protects: rounding is no difference, whatever the scale; all else is one.
    #[test]
    fn values_that_differ_by_rounding_are_the_same() {
        let same = |a: &Value, b: &Value| apart(a, b).is_none() && apart(b, a).is_none();
        assert!(same(&vector(&[1.0, 1e9, f64::NAN]), &vector(&[1.0 + 1e-12, 1e9, f64::NAN])));
        assert!(same(&vector(&[1e-13, 1.0]), &vector(&[-1e-13, 1.0])) && !same(&vector(&[1e-13]), &vector(&[-1e-13])));
        assert!(same(&single(1.0), &single(1.00001)) && !same(&single(1.0), &single(1.001)));
        for other in [&[1.0, 2.0][..], &[1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(!same(&vector(&[1.0, 3.0]), &vector(other)), "{other:?}");
        }
        let part =
            |v: f64| Value::tuple(vec![vector(&[1e9]), Value::Scalar(Lit::float(v)), Value::Scalar(Lit::int(3))]);
        assert!(same(&part(1.0), &part(1.0 + 1e-12)) && !same(&part(1.0), &part(1.1)));
        assert!(!same(&Value::Scalar(Lit::int(3)), &Value::Scalar(Lit::int(4))));
    }
}
