//! The inverse functions of the sine, the cosine and the tangent.

use super::arith::{Real, by_width, polynomial};

/// pi / 2 in two parts.
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];
const HALF_PI_NARROW: [f64; 2] = [1.5707963705062866, -4.371138828673793e-08];

/// (asin(s) / s - 1) / s² in s², ascending, for |s| ≤ 1/2: minimax, with an error of asin(s) of 2^-55.9.
const ASIN: &[f64] = &[
    0.16666666666665414,
    0.07500000000336159,
    0.04464285682892373,
    0.03038195911497947,
    0.022371758532839025,
    0.017359698064413454,
    0.013885296406053226,
    0.012168844078873283,
    0.006529429954429962,
    0.019524638608686033,
    -0.016219093325071755,
    0.03190907952836065,
];
/// The same for 32 bits, with an error of 2^-27.
const ASIN_NARROW: &[f64] =
    &[0.16666731238365173, 0.07495956867933273, 0.04540152847766876, 0.024475278332829475, 0.04171683266758919];

/// (1 - atan(t) / t) / t² in t², ascending, for |t| ≤ tan(pi / 8): minimax, with an error of atan(t) of 2^-59.
const ATAN: &[f64] = &[
    0.3333333333333327,
    -0.19999999999969204,
    0.14285714281462586,
    -0.11111110836923327,
    0.09090899097347856,
    -0.07692081435074313,
    0.06663322309496715,
    -0.05849343989878904,
    0.050453668634406076,
    -0.03820813161633123,
    0.01805471979131521,
];
/// The same for 32 bits, with an error of 2^-30.
const ATAN_NARROW: &[f64] =
    &[0.33333319425582886, -0.19998665153980255, 0.14246505498886108, -0.10612553358078003, 0.06119975820183754];

/// Whether a magnitude is above 1/2, and the arc sine of it where it is not; else that of sqrt((1 - size) / 2), which
/// is half of what is left to pi / 2.
#[inline(always)]
fn arc<R: Real>(size: R) -> (R::Mask, R) {
    let half = size.lit(0.5);
    let large = half.lt(size);
    let square = R::select(large, (-size).fma(half, half), size * size);
    let s = R::select(large, square.sqrt(), size);
    let p = polynomial(square, by_width::<R, _>(ASIN, ASIN_NARROW));
    (large, p.fma(s * square, s))
}

/// The arc sine, between -pi / 2 and pi / 2. There is none beyond 1.
#[inline(always)]
pub fn asin<R: Real>(x: R) -> R {
    let [high, low] = by_width::<R, _>(HALF_PI, HALF_PI_NARROW);
    let (large, arc) = arc(x.abs());
    let other = arc.fma(x.lit(-2.0), x.lit(low)) + high;
    R::select(large, other, arc).with_sign(x)
}

/// The arc cosine, between 0 and pi. There is none beyond 1.
#[inline(always)]
pub fn acos<R: Real>(x: R) -> R {
    let [high, low] = by_width::<R, _>(HALF_PI, HALF_PI_NARROW);
    let (large, arc) = arc(x.abs());
    let negative = x.lt(x.lit(0.0));
    // 0 or pi and twice the arc, or pi / 2 and the arc.
    let turns = R::select(large, R::select(negative, x.lit(2.0), x.lit(0.0)), x.lit(1.0));
    let arc = R::select(large, arc + arc, arc);
    let away = R::select(large, -x, x);
    let part = turns.fma(x.lit(low), -arc.with_sign(away));
    turns.fma(x.lit(high), part)
}

/// The arc tangent of a quotient between 0 and 1, or of its inverse where `steep` holds: what it is away from which
/// multiple of pi / 2. Above tan(pi / 8) that is a half.
#[inline(always)]
fn of_quotient<R: Real>(above: R, below: R, steep: R::Mask) -> (R, R) {
    let (zero, half, one) = (above.lit(0.0), above.lit(0.5), above.lit(1.0));
    let large = (below * 0.41421356).lt(above);
    let t = R::select(large, above - below, above) / R::select(large, above + below, below);
    let square = t * t;
    let part = t - (t * square) * polynomial(square, by_width::<R, _>(ATAN, ATAN_NARROW));
    (R::select(large, half, R::select(steep, one, zero)), R::select(steep, -part, part))
}

/// A multiple of pi / 2 and a part of it.
#[inline(always)]
fn angle<R: Real>(turns: R, part: R) -> R {
    let [high, low] = by_width::<R, _>(HALF_PI, HALF_PI_NARROW);
    turns.fma(part.lit(high), turns.fma(part.lit(low), part))
}

/// The arc tangent, between -pi / 2 and pi / 2.
#[inline(always)]
pub fn atan<R: Real>(x: R) -> R {
    let size = x.abs();
    let one = x.lit(1.0);
    let steep = one.lt(size);
    let (turns, part) = of_quotient(R::select(steep, one, size), R::select(steep, size, one), steep);
    angle(turns, part).with_sign(x)
}

/// The angle of the point (x, y), between -pi and pi, also where both are zeros or infinities.
#[inline(always)]
pub fn atan2<R: Real>(y: R, x: R) -> R {
    let (up, right) = (y.abs(), x.abs());
    let (zero, one, infinity) = (x.lit(0.0), x.lit(1.0), x.lit(f64::INFINITY));
    // Infinities are 1 beside what is 0 then, and zeros are nothing beside 1; sums of what is large must be finite.
    let endless = up.eq(infinity) | right.eq(infinity);
    let nothing = up.eq(zero) & right.eq(zero);
    let large = x.lit(by_width::<R, _>(1e300, 1e37));
    let shrink = R::select(large.lt(up) | large.lt(right), x.lit(0.125), one);
    let end = |v: R| R::select(v.eq(infinity), one, R::select(v.eq(v), zero, v));
    let (up, right) = (R::select(endless, end(up), up * shrink), R::select(endless, end(right), right * shrink));
    let right = R::select(nothing, one, right);
    let steep = right.lt(up);
    let (turns, part) = of_quotient(R::select(steep, right, up), R::select(steep, up, right), steep);
    let left = one.with_sign(x).lt(zero);
    let turns = R::select(left, -turns + 2.0, turns);
    angle(turns, R::select(left, -part, part)).with_sign(y)
}
