//! The distance of a point from the origin: at most 0.51 units from the true value, 1 where the result is below normal
//! numbers.

use super::arith::{Real, by_width, product, sum};

/// `sqrt(x² + y²)` without overflow or loss on the way; infinite where one of both is, whatever the other one is.
///
/// Both are scaled by a power of two where squares would leave the range of numbers. The squares and their sum are taken
/// with what they lack, and one step of Newton's method corrects the root by it.
#[inline(always)]
pub fn hypot<R: Real>(x: R, y: R) -> R {
    let (a, b) = (x.abs(), y.abs());
    let (zero, one, infinity) = (x.lit(0.0), x.lit(1.0), x.lit(f64::INFINITY));
    let swap = a.lt(b);
    let (far, near) = (R::select(swap, b, a), R::select(swap, a, b));
    let large = x.lit(by_width::<R, _>(1e150, 1e18)).lt(far);
    let tiny = far.lt(x.lit(by_width::<R, _>(1e-130, 1e-12)));
    let (up, down) =
        (by_width::<R, _>(2f64.powi(700), 2f64.powi(100)), by_width::<R, _>(2f64.powi(600), 2f64.powi(80)));
    let to = R::select(large, x.lit(1.0 / down), R::select(tiny, x.lit(up), one));
    let back = R::select(large, x.lit(down), R::select(tiny, x.lit(1.0 / up), one));
    let (far, near) = (far * to, near * to);
    let ((p, p_rest), (q, q_rest)) = (product(far, far), product(near, near));
    let (s, s_rest) = sum(p, q);
    let root = s.sqrt();
    let lacks = (-root).fma(root, s) + (s_rest + (p_rest + q_rest));
    let better = (root + lacks / (root + root)) * back;
    let finite = R::select(root.eq(zero), zero, better);
    R::select(a.eq(infinity) | b.eq(infinity), infinity, finite)
}
