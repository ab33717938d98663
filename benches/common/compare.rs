//! What is made, beside what it should be: one number says how far it is off.

/// How far numbers are off at most, by the greatest magnitude of what they should be.
#[allow(dead_code, reason = "not every bench compares numbers")]
pub fn off(own: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(own.len(), theirs.len());
    let greatest = theirs.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let far = |(a, b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() / greatest };
    // No number is as far off as can be; `max` would leave it out.
    own.iter().zip(theirs).map(far).fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x) })
}
