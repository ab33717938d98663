//! The logarithm of the magnitude of the gamma function.
//!
//! The error is at most 4 units in the last place for positive numbers, and for negative ones but near the zeros
//! below -2, where it is at most 4 units of 1.

use super::arith::{Real, by_width, polynomial, product, sum_of_any};
use super::logarithm::{log, log_in_parts};
use super::trigonometric::sin_of_pi;

/// The slope of the function at 2, which is 1 minus Euler's constant, in two parts.
const FIRST: [f64; 2] = [0.42278433509846713, 4.942915152430645e-18];
const FIRST_NARROW: [f64; 2] = [0.42278432846069336, 6.637773886097875e-09];

/// (lgamma(2 + w) / w - slope) / w, ascending, for |w| ≤ 1/2: minimax, with an error of lgamma of 2^-57.
const NEAR: &[f64] = &[
    0.3224670334241133,
    -0.06735230105319635,
    0.02058080842776247,
    -0.007385551028897021,
    0.002890510332113326,
    -0.0011927539019130715,
    0.000509669487078485,
    -0.00022315496614586856,
    9.945806295323663e-05,
    -4.492380561901204e-05,
    2.0502576111696944e-05,
    -9.455987495381724e-06,
    4.39794002816821e-06,
    -1.9749139248634743e-06,
    8.893060240033395e-07,
    -5.806425557557078e-07,
    3.0809225148733645e-07,
];
/// The same for 32 bits, with an error of 2^-26.
const NEAR_NARROW: &[f64] = &[
    0.32246702909469604,
    -0.06735214591026306,
    0.0205812007188797,
    -0.007389129605144262,
    0.0028825257904827595,
    -0.001166990026831627,
    0.0005615681875497103,
    -0.00029094182536937296,
];

/// What Stirling's formula lacks, times x, in 1 / x², ascending, from 5.2 on.
const FAR: &[f64] = &[
    0.08333333333333216,
    -0.0027777777765649555,
    0.0007936504294788947,
    -0.0005951895706928025,
    0.0008383861894062458,
    -0.0017888499904871538,
    0.003709418905755279,
];
/// The same for 32 bits.
const FAR_NARROW: &[f64] = &[0.08333300799131393, -0.0027421594131737947];

/// (ln(2 pi) - 1) / 2.
const HALF_LOG: f64 = 0.4189385332046727;

/// For a number that is not negative.
#[inline(always)]
fn positive<R: Real>(x: R) -> R {
    let one = x.lit(1.0);
    let at_least = |v: f64| x.lit(v).le(x);
    // A number w away from 2, and the quotient of the gamma functions: below 3/2 it is one over the product.
    let mut w = R::select(at_least(0.5), x - 1.0, x);
    let mut quotient = R::select(at_least(0.5), x, x * (x + 1.0));
    w = R::select(at_least(1.5), x - 2.0, w);
    quotient = R::select(at_least(1.5), one, quotient);
    for k in 1..4 {
        let more = at_least(1.5 + f64::from(k));
        w = R::select(more, w - 1.0, w);
        quotient = R::select(more, quotient * (x - f64::from(k)), quotient);
    }
    let large = at_least(5.5);
    let (log, log_low) = log_in_parts(R::select(large, x, quotient));
    // Near 2: the sum of the logarithm and w (c + w P(w)).
    let first = by_width::<R, _>(FIRST, FIRST_NARROW);
    let (line, line_low) = product(w, x.lit(first[0]));
    let tail = w.fma(polynomial(w, by_width::<R, _>(NEAR, NEAR_NARROW)), x.lit(first[1]));
    let (plus, plus_low) = (R::select(at_least(1.5), log, -log), R::select(at_least(1.5), log_low, -log_low));
    let (near, near_rest) = sum_of_any(plus, line);
    let near_low = w.fma(tail, near_rest + (plus_low + line_low));
    // Far away: Stirling's formula.
    let inverse = one / x;
    let more = inverse.fma(polynomial(inverse * inverse, by_width::<R, _>(FAR, FAR_NARROW)), x.lit(HALF_LOG));
    let factor = x - 0.5;
    let (far, far_rest) = product(factor, log - 1.0);
    let far_low = factor.fma(log_low, far_rest + more);
    let high = R::select(large, far, near);
    let low = R::select(large, far_low, near_low);
    R::select(high.eq(x.lit(f64::INFINITY)), high, high + low)
}

/// The logarithm of the magnitude of the gamma function: infinite at 0, at negative whole numbers and at infinities.
#[inline(always)]
pub fn lgamma<R: Real>(x: R) -> R {
    let negative = x.lt(x.lit(0.0));
    let infinity = x.lit(f64::INFINITY);
    let other = x.lit(1.0) - x;
    let positive = positive(R::select(negative, other, x));
    let [out] = R::rarely(negative, [positive], || {
        // The gamma functions of x and 1 - x multiply to pi / sin(pi x).
        let sine = sin_of_pi(x.abs()).abs();
        let out = -log(sine * std::f64::consts::FRAC_1_PI) - positive;
        [R::select(sine.eq(x.lit(0.0)) | x.eq(-infinity), infinity, out)]
    });
    out
}
