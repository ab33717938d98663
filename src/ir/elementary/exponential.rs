//! The exponential, and what is made of it: hyperbolic functions.

use super::arith::{Real, by_width, polynomial, to_whole};

/// ln 2 in two parts: the first is rounded to the width.
const LN2: [f64; 2] = [std::f64::consts::LN_2, 2.3190468138462996e-17];
const LN2_NARROW: [f64; 2] = [0.6931471824645996, -1.9046542121259336e-09];

/// (exp(r) - 1 - r) / r² for |r| ≤ ln 2 / 2, ascending: minimax for the error of exp(r), which is 2^-57.8.
const EXP: &[f64] = &[
    0.5000000000000011,
    0.16666666666666438,
    0.04166666666652577,
    0.008333333333473707,
    0.0013888888944875624,
    0.0001984126956071454,
    2.480149172149772e-05,
    2.7557529946966244e-06,
    2.7630768659729967e-07,
    2.50204552756718e-08,
];
/// The same for 32 bits, with an error of 2^-28.2.
const EXP_NARROW: &[f64] =
    &[0.4999999403953552, 0.16666516661643982, 0.04166810214519501, 0.008369198068976402, 0.0013839018065482378];

/// A number as `k ln 2 + r` with a whole number k and |r| ≤ ln 2 / 2: k plus [`to_whole`], r, and what r lacks.
#[inline(always)]
fn reduce<R: Real>(x: R) -> (R, R, R) {
    let ln2 = by_width::<R, _>(LN2, LN2_NARROW);
    let t = x.fma(x.lit(std::f64::consts::LOG2_E), x.lit(to_whole::<R>()));
    let k = t - to_whole::<R>();
    let near = k.fma(x.lit(-ln2[0]), x);
    let r = k.fma(x.lit(-ln2[1]), near);
    (t, r, k.fma(x.lit(-ln2[1]), near - r))
}

/// What [`EXP`] is.
#[inline(always)]
fn rest<R: Real>(r: R) -> R {
    polynomial(r, by_width::<R, _>(EXP, EXP_NARROW))
}

/// The exponential. No number stays what it is; what is too large becomes infinite, what is too small 0. That is chosen, not
/// computed: processors take a hundred times as long for what falls below the normal numbers, and weights that a softmax masks
/// are exponentials of -1e9.
#[inline(always)]
pub fn exp<R: Real>(x: R) -> R {
    let (low, high) = by_width::<R, _>((-746.0, 710.0), (-104.0, 90.0));
    let none = x.lt(x.lit(low));
    let (t, r, _) = reduce(x.settled(low - 54.0, none).at_most(high));
    r.scaled_sum(r.fma(rest(r), x.lit(1.0)), t, none)
}

/// The exponential of a sum of a number, at most 800 (120 of 32 bits) in size, and a small one.
#[inline(always)]
pub fn exp_of_sum<R: Real>(x: R, small: R) -> R {
    let (t, near, low) = reduce(x);
    let more = low + small;
    let r = near + more;
    let less_one = r + (r * r).fma(rest(r), more - (r - near));
    (less_one + 1.0).scale(t)
}

/// exp(x) - 1, where 2 to the power of x / ln 2, rounded, is a normal number.
#[inline(always)]
fn less_one<R: Real>(x: R) -> R {
    let (t, r, low) = reduce(x);
    let near = r + (r * r).fma(rest(r), low);
    let power = t.power_of_two();
    power.fma(near, power - 1.0)
}

/// The hyperbolic tangent, by e = exp(2|x|) - 1: e / (e + 2), with the sign of `x`. For small numbers e is exp(-2|x|) - 1:
/// so e + 2 is between 1 and 2, where numbers are dense.
#[inline(always)]
pub fn tanh<R: Real>(x: R) -> R {
    // Beyond, the result is 1.
    let size = (x.abs() * 2.0).at_most(by_width::<R, _>(44.0, 24.0));
    let e = less_one(R::select(size.lt(x.lit(1.0)), -size, size));
    (e / (e + 2.0)).with_sign(x)
}

/// The hyperbolic sine: half of e + e / (e + 1), by e = exp(|x|) - 1. All is a quarter of that, since the exponential
/// may be infinite where the result is not.
#[inline(always)]
pub fn sinh<R: Real>(x: R) -> R {
    let size = x.abs();
    let (t, r, low) = reduce(size.at_most(by_width::<R, _>(710.6, 89.5)));
    let near = r + (r * r).fma(rest(r), low);
    let power = (t - 2.0).power_of_two();
    let e = power.fma(near, power - 0.25);
    let out = (e + e / e.fma(x.lit(4.0), x.lit(1.0))) * 2.0;
    // A quarter of what is tiny may be no normal number.
    R::select(size.lt(x.lit(by_width::<R, _>(1e-9, 1e-5))), size, out).with_sign(x)
}

/// The hyperbolic cosine: half of e + 1 / e, by e = exp(|x|), of which all is a quarter as for [`sinh`].
#[inline(always)]
pub fn cosh<R: Real>(x: R) -> R {
    let (t, r, _) = reduce(x.abs().at_most(by_width::<R, _>(710.6, 89.5)));
    let one = x.lit(1.0);
    let e = r.fma(r.fma(rest(r), one), one) * (t - 2.0).power_of_two();
    (e + x.lit(0.0625) / e) * 2.0
}
