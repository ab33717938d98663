//! The exponential, the logarithm and the hyperbolic tangent, as numbers of 64 bits become numbers of 64 bits.
//!
//! The language defines these functions by the sequences of additions, multiplications and divisions below, each of
//! which is rounded once. So their bits depend on no library, and compiled code does the same to many numbers at once:
//! `codegen/runtime/elementary.hpp` says the same in C++, and every change here is a change there. There are no
//! branches but choices between two values. Errors stay under 1 unit in the last place (`exp`, `log`) and 2.5 (`tanh`).
//! The file knows nothing of terms.

/// ln 2 in two parts: the first has 42 bits, so that its products with exponents are exact.
const LN2_HIGH: f64 = 0.6931471805598903;
const LN2_LOW: f64 = 5.497923018708371e-14;

/// To add this number and to subtract it again rounds to a whole number, which stands in the lowest bits between.
const ROUND: f64 = 6755399441055744.0;

/// (exp(r) - 1 - r) / r² for |r| ≤ ln 2 / 2, ascending: near-minimax, from Chebyshev nodes; within 0.002 units in the
/// last place of the sum.
const EXP: [f64; 11] = [
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326084,
    0.0013888888888883711,
    0.0001984126987500228,
    2.480158732567746e-05,
    2.755725517000089e-06,
    2.755727347871858e-07,
    2.5105312729622103e-08,
    2.09147553258932e-09,
];

/// (ln((1 + s) / (1 - s)) - 2s) / s³ in s², ascending, for (1 + s) / (1 - s) between √½ and √2; made like [`EXP`].
const LOG: [f64; 8] = [
    0.6666666666666666,
    0.40000000000000885,
    0.28571428570799784,
    0.22222222392581045,
    0.18181795547521137,
    0.15386244737621665,
    0.13268638369266825,
    0.13088034850927555,
];

/// The bits of √½, of which the last 32 are left out.
const HALF_ROOT: i64 = 0x3fe6a09e00000000;
const ONE: i64 = 0x3ff0000000000000;

fn bits(x: f64) -> i64 {
    x.to_bits() as i64
}

fn float(n: i64) -> f64 {
    f64::from_bits(n as u64)
}

/// 2 to the power of a small whole number.
fn power(n: i64) -> f64 {
    float(n.wrapping_add(1023) << 52)
}

/// A number as `k ln 2 + r` with a whole number k and |r| ≤ ln 2 / 2: k, and exp(r) - 1.
fn reduce(x: f64) -> (f64, f64) {
    let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let (high, low) = (x - k * LN2_HIGH, k * LN2_LOW);
    let r = high - low;
    // What was lost in the subtraction.
    let rest = (high - r) - low;
    let c = &EXP;
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let first = (c[0] + c[1] * r) + r2 * (c[2] + c[3] * r);
    let second = (c[4] + c[5] * r) + r2 * (c[6] + c[7] * r);
    let third = (c[8] + c[9] * r) + r2 * c[10];
    let p = first + r4 * (second + r4 * third);
    (k, r + (r2 * p + rest))
}

/// The exponential. No number stays what it is; what is too large becomes infinite, what is too small 0.
pub fn exp(x: f64) -> f64 {
    let near = if x < -750.0 { -750.0 } else { x };
    let near = if near > 710.0 { 710.0 } else { near };
    let (k, rest) = reduce(near);
    // In two steps, since the power may not be a normal number where the result is one, or nearly.
    let half = bits(k * 0.5 + ROUND).wrapping_sub(bits(ROUND));
    let whole = bits(k + ROUND).wrapping_sub(bits(ROUND));
    let out = ((1.0 + rest) * power(half)) * power(whole.wrapping_sub(half));
    if x.is_nan() { x } else { out }
}

/// The natural logarithm: minus infinity at 0, no number below.
pub fn log(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18014398509481984.0 } else { x };
    let n = bits(scaled).wrapping_add(ONE - HALF_ROOT);
    let shift = if tiny { 1023 + 54 } else { 1023 };
    let k = float((n >> 52).wrapping_sub(shift).wrapping_add(bits(ROUND))) - ROUND;
    let f = float((n & 0x000fffffffffffff).wrapping_add(HALF_ROOT)) - 1.0;
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let (z, w) = (s * s, (s * s) * (s * s));
    let c = &LOG;
    let odd = w * (c[1] + w * (c[3] + w * (c[5] + w * c[7])));
    let even = z * (c[0] + w * (c[2] + w * (c[4] + w * c[6])));
    let out = ((s * (half + (odd + even)) + k * LN2_LOW) - half) + f + k * LN2_HIGH;
    let out = if x < f64::INFINITY { out } else { x };
    let out = if x < 0.0 { f64::NAN } else { out };
    if x == 0.0 { f64::NEG_INFINITY } else { out }
}

/// The hyperbolic tangent, by e = exp(2|x|) - 1: e / (e + 2), with the sign of `x`.
pub fn tanh(x: f64) -> f64 {
    let double = float(bits(x) & i64::MAX) * 2.0;
    // Beyond, the result is 1.
    let near = if double > 44.0 { 44.0 } else { double };
    let (k, rest) = reduce(near);
    let scale = power(bits(k + ROUND).wrapping_sub(bits(ROUND)));
    let e = scale * rest + (scale - 1.0);
    let out = float(bits(e / (e + 2.0)) | (bits(x) & i64::MIN));
    if x.is_nan() { x } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance of two numbers, counted in numbers between.
    fn apart(a: f64, b: f64) -> u64 {
        let place = |x: f64| if x < 0.0 { i64::MIN.wrapping_sub(bits(x)) } else { bits(x) };
        if a.is_nan() && b.is_nan() { 0 } else { place(a).abs_diff(place(b)) }
    }

    /// Numbers of all sizes, the same at each run: some at random by their bits, some evenly in a range.
    fn samples(low: f64, high: f64) -> impl Iterator<Item = f64> {
        let hash = |n: i64| crate::ir::op::ranhash(n);
        (0..200_000i64).map(move |n| match n % 4 {
            0 => float((hash(n) * 1.8e19) as u64 as i64),
            1 => (hash(n) - 0.5) * (2.0f64).powi((n % 40) as i32 - 30),
            _ => low + hash(n) * (high - low),
        })
    }

    /// Protects: the definitions are the functions that they are named after. The C library's values are within 1 unit
    /// (2.2 for tanh) of the true ones, so that the stated errors and those add up to the limits.
    #[test]
    fn functions_are_those_of_the_library_but_for_the_last_bits() {
        let worst = |f: fn(f64) -> f64, g: fn(f64) -> f64, low, high, limit| {
            for x in samples(low, high) {
                assert!(apart(f(x), g(x)) <= limit, "{x:e}: {:e} and {:e}", f(x), g(x));
            }
        };
        worst(exp, f64::exp, -760.0, 720.0, 1);
        worst(exp, f64::exp, -1.0, 1.0, 1);
        worst(log, f64::ln, 0.0, 4.0, 1);
        worst(log, f64::ln, 0.99, 1.01, 1);
        worst(tanh, f64::tanh, -25.0, 25.0, 5);
        worst(tanh, f64::tanh, -0.5, 0.5, 5);
    }

    /// Protects: values that programs count on.
    #[test]
    fn values_at_the_ends_are_exact() {
        let infinity = f64::INFINITY;
        for (f, x, y) in [
            (exp as fn(f64) -> f64, 0.0, 1.0),
            (exp, -0.0, 1.0),
            (exp, infinity, infinity),
            (exp, -infinity, 0.0),
            (exp, 709.9, infinity),
            (exp, -746.0, 0.0),
            (log, 1.0, 0.0),
            (log, 0.0, -infinity),
            (log, -0.0, -infinity),
            (log, infinity, infinity),
            (tanh, 0.0, 0.0),
            (tanh, -0.0, -0.0),
            (tanh, infinity, 1.0),
            (tanh, -infinity, -1.0),
            (tanh, 5e-324, 5e-324),
        ] {
            assert_eq!(f(x).to_bits(), y.to_bits(), "{x}: {}", f(x));
        }
        assert!(log(-1.0).is_nan() && log(-infinity).is_nan());
        assert!([exp, log, tanh].iter().all(|f: &fn(f64) -> f64| f(f64::NAN).is_nan()));
    }
}
