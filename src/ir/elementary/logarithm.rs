//! The natural logarithm, rounded and in two parts.

use super::arith::{Real, by_width, polynomial, product, sum};

/// ln 2 in two parts: the first has so few bits that its products with exponents are exact.
const LN2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];
const LN2_NARROW: [f64; 2] = [0.693145751953125, 1.4286068203094173e-6];

/// (ln((1 + s) / (1 - s)) - 2s) / s³ in s², ascending, for |s| ≤ 0.2: the error of the logarithm is 2^-55.7.
const LOG: &[f64] = &[
    0.666666666666705,
    0.39999999996997654,
    0.2857142928057714,
    0.22222146082525113,
    0.1818609538639103,
    0.15254683539223773,
    0.15337473674711163,
];
/// The same for 32 bits, with an error of 2^-28.3.
const LOG_NARROW: &[f64] = &[0.6666695475578308, 0.3995708227157593, 0.3037659525871277];

/// The natural logarithm: minus infinity at 0, no number below.
#[inline(always)]
pub fn log<R: Real>(x: R) -> R {
    let ln2 = by_width::<R, _>(LN2, LN2_NARROW);
    let (k, m) = x.split();
    let f = m - 1.0;
    let half = f * f * 0.5;
    let s = f / (f + 2.0);
    let z = s * s;
    let sum = polynomial(z, by_width::<R, _>(LOG, LOG_NARROW)).fma(z, half);
    let low = k.fma(x.lit(ln2[1]), s * sum);
    k.fma(x.lit(ln2[0]), f - (half - low))
}

/// 2 / 3 in two parts.
const TWO_THIRDS: [f64; 2] = [0.6666666666666666, 3.700743415417188e-17];
const TWO_THIRDS_NARROW: [f64; 2] = [0.6666666865348816, -1.9868215517249155e-08];

/// (ln((1 + s) / (1 - s)) - 2s - 2s³ / 3) / s⁵ in s², ascending, for |s| ≤ 0.2: minimax, with an error of the logarithm
/// of 2^-69.
const LOG_PARTS: &[f64] = &[
    0.39999999999999725,
    0.28571428571577306,
    0.22222222191251015,
    0.1818182152575721,
    0.15384406657853242,
    0.13341144497797214,
    0.1159235379325868,
    0.1257148707577717,
];
/// The same for 32 bits, with an error of 2^-33.8.
const LOG_PARTS_NARROW: &[f64] = &[0.4000023603439331, 0.2853546738624573, 0.23721596598625183];

/// The logarithm of a finite positive number in two parts, together good to 2^-67 (2^-33 of 32 bits).
#[inline(always)]
pub fn log_in_parts<R: Real>(x: R) -> (R, R) {
    let ln2 = by_width::<R, _>(LN2, LN2_NARROW);
    let third = by_width::<R, _>(TWO_THIRDS, TWO_THIRDS_NARROW);
    let (k, m) = x.split();
    // s = (m - 1) / (m + 1)
    let above = m - 1.0;
    let below = m + 1.0;
    let lost = m - (below - 1.0);
    let inverse = x.lit(1.0) / below;
    let s = above * inverse;
    let s_low = (-s).fma(lost, (-s).fma(below, above)) * inverse;
    // 2s + s (2 / 3 s² + s⁴ R(s²))
    let (z, z_rest) = product(s, s);
    let z_low = (s + s).fma(s_low, z_rest);
    let (t, t_rest) = product(z, x.lit(third[0]));
    let t_low = z.fma(x.lit(third[1]), z_low.fma(x.lit(third[0]), t_rest));
    let (v, v_rest) = sum(t, (z * z) * polynomial(z, by_width::<R, _>(LOG_PARTS, LOG_PARTS_NARROW)));
    let v_low = v_rest + t_low;
    let (w, w_rest) = product(s, v);
    let w_low = s_low.fma(v, s.fma(v_low, w_rest));
    let (high, rest) = sum(s + s, w);
    let low = rest + (s_low + s_low) + w_low;
    // What has no exponent is added to 0, which loses nothing.
    let (all, lost) = sum(k * ln2[0], high);
    (all, k.fma(x.lit(ln2[1]), lost + low))
}
