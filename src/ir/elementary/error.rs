//! The error function.

use super::arith::{Real, by_width, polynomial};
use super::exponential::exp_of_sum;

/// From here on the function is 1 minus an exponential.
const BOUND: f64 = 0.75;

/// erf(x) / x - 1 in x², ascending, for |x| ≤ 3/4: minimax, with an error of erf(x) of 2^-56.2.
const NEAR: &[f64] = &[
    0.1283791670955126,
    -0.37612638903184176,
    0.11283791670978865,
    -0.026866170650285848,
    0.005223977681955005,
    -0.0008548330540659024,
    0.00012055463204426179,
    -1.4928491044205577e-05,
    1.6494962163349972e-06,
    -1.6473266450461524e-07,
    1.3354013914955853e-08,
];
/// The same for 32 bits.
const NEAR_NARROW: &[f64] = &[
    0.12837916612625122,
    -0.3761261999607086,
    0.11283379048109055,
    -0.026834335178136826,
    0.005113156978040934,
    -0.0006737581570632756,
];

/// ln(1 - erf(t + 3/4)), ascending, up to 5.95: minimax, with an error of erf of 2^-54.9.
const FAR: &[f64] = &[
    -1.241867260678887,
    -2.2258736679807063,
    -0.8078515419183739,
    -0.05289998959681193,
    0.012705625411444661,
    -0.0022704480674611916,
    0.00012962206251579102,
    0.00010588003807210605,
    -5.4272640447345024e-05,
    1.4291988390908208e-05,
    -1.3698228109619249e-06,
    -7.575631270129226e-07,
    5.032666458316539e-07,
    -1.7624698825137215e-07,
    4.3004857640333976e-08,
    -7.533818770340389e-09,
    9.098542098954079e-10,
    -6.793012262010433e-11,
    2.359276527503264e-12,
];
/// The same for 32 bits, up to 3.95, with an error of 2^-25.7.
const FAR_NARROW: &[f64] = &[
    -1.2418673038482666,
    -2.2258694171905518,
    -0.8079133033752441,
    -0.05259034410119057,
    0.012026338838040829,
    -0.001586064463481307,
    -0.0001292710076086223,
    6.642836524406448e-05,
];

/// The error function.
#[inline(always)]
pub fn erf<R: Real>(x: R) -> R {
    let size = x.abs();
    let square = size * size;
    let near = (size * polynomial(square, by_width::<R, _>(NEAR, NEAR_NARROW))) + size;
    // Beyond, the result is 1.
    let t = size.at_most(by_width::<R, _>(5.95, 3.95)) - BOUND;
    let log = polynomial(t, by_width::<R, _>(FAR, FAR_NARROW));
    let far = x.lit(1.0) - exp_of_sum(log, x.lit(0.0));
    R::select(size.lt(x.lit(BOUND)), near, far).with_sign(x)
}
