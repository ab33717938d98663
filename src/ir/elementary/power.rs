//! Powers, by a logarithm in two parts.

use super::arith::{Real, by_width, product};
use super::exponential::exp_of_sum;
use super::logarithm::log_in_parts;

/// A positive number to the power of y, which has two parts; where both are finite.
#[inline(always)]
fn of_size<R: Real>(size: R, y: R, y_low: R) -> R {
    let (log, log_low) = log_in_parts(size);
    let (p, rest) = product(y, log);
    let p_low = y.fma(log_low, y_low.fma(log, rest));
    // Far beyond the largest and the smallest results the second part may be none.
    let bound = by_width::<R, _>(800.0, 120.0);
    let near = p.at_least(-bound).at_most(bound);
    exp_of_sum(near, R::select(near.eq(p), p_low, p.lit(0.0)))
}

/// `x` to the power of y, of whose parts both are whole or neither: `whole` and `odd` say what y is.
#[inline(always)]
fn raise<R: Real>(x: R, y: R, y_low: R, whole: R::Mask, odd: R::Mask) -> R {
    let (zero, one, infinity) = (x.lit(0.0), x.lit(1.0), x.lit(f64::INFINITY));
    let size = x.abs();
    let out = of_size(size, y, y_low);
    // Zeros and infinities.
    let limit = size.eq(zero) | size.eq(infinity) | y.abs().eq(infinity);
    let above = R::select(one.lt(size), y, -y);
    let end = R::select(zero.lt(above), infinity, zero);
    let end = R::select(size.eq(one), one, end);
    let out = R::select(limit, end, out);
    // Signs.
    let out = R::select(odd, out.with_sign(x), out);
    let none = x.lt(zero) & size.lt(infinity) & !whole;
    let out = R::select(none | x.is_nan() | y.is_nan(), x.lit(f64::NAN), out);
    R::select(y.eq(zero) | x.eq(one), one, out)
}

/// `x` to the power of `y`, with the values at zeros, infinities and no numbers that C Annex F gives.
#[inline(always)]
pub fn pow<R: Real>(x: R, y: R) -> R {
    let half = y * 0.5;
    let whole = y.floor().eq(y);
    let odd = whole & !half.floor().eq(half);
    raise(x, y, y.lit(0.0), whole, odd)
}

/// `x` to the power of a whole number, given as the sum of two; the last argument is 1 where it is odd, else 0.
#[inline(always)]
pub fn power<R: Real>(x: R, y: R, y_low: R, odd: R) -> R {
    raise(x, y, y_low, y.eq(y), odd.eq(x.lit(1.0)))
}
