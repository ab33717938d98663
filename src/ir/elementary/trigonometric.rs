//! The sine, the cosine and the tangent.
//!
//! A number is taken modulo pi, or half of it, in two parts. Numbers that are large for that are multiplied with as many
//! digits of 1 / pi as count (after Payne and Hanek): whether that is done depends on the number alone.

use super::arith::{Real, by_width, chain, polynomial, product, to_whole};

/// pi in three parts: the second has so few bits that its products with the multiples in [`near`] are exact.
const PI: [f64; 3] = [std::f64::consts::PI, 1.224646799335416e-16, -1.8806274411915714e-26];
/// pi in three parts, the first of which is below it: with products below zero zeros would lose their sign.
const PI_NARROW: [f64; 3] = [3.141592502593994, 1.5099580252808664e-07, -3.4302490200117637e-15];

/// (sin(r) / r - 1) / r² in r², ascending, for |r| ≤ pi / 2: minimax, with an error of sin(r) of 2^-61.5.
const SIN: &[f64] = &[
    0.16666666666666666,
    -0.008333333333333207,
    0.0001984126984121248,
    -2.755731921156915e-06,
    2.5052106904334993e-08,
    -1.6058940993867543e-10,
    7.643019024289961e-13,
    -2.721414354920392e-15,
];
/// The same for 32 bits, with an error of 2^-27.
const SIN_NARROW: &[f64] =
    &[0.16666658222675323, -0.00833303015679121, 0.00019806854834314436, -2.5995464056904893e-06];

/// tan(r) = r (1 - r² P(r²)) / (1 + r² Q(r²)) for |r| ≤ pi / 4, P and Q ascending, with an error of 2^-60.7.
const TAN: [&[f64]; 2] = [
    &[0.13337671332351494, -0.0034240641918160414, 1.7847901486480022e-05],
    &[-0.4667100466568483, 0.025660746410765527, -0.0003116777857494834, 4.975318406366403e-07],
];
/// The same for 32 bits, with an error of 2^-31.
const TAN_NARROW: [&[f64]; 2] =
    [&[0.11131343990564346, -0.0010718352859839797], &[-0.44464677572250366, 0.015954092144966125]];

/// Digits of 1 / pi to the base 2^24.
static DIGITS: &[f64] = &[
    5340353.0, 12003106.0, 693502.0, 1289192.0, 16423534.0, 14708145.0, 4902046.0, 2213920.0, 16722097.0, 14020445.0,
    14856411.0, 9582365.0, 2172649.0, 7340836.0, 9925892.0, 15255822.0, 8326901.0, 9328788.0, 13868916.0, 4266746.0,
    9919906.0, 4355278.0, 3674970.0, 3129120.0, 10275051.0, 1884585.0, 10287694.0, 4337605.0, 14613652.0, 1937404.0,
    4980719.0, 183303.0, 16226184.0, 12954885.0, 3575734.0, 10174311.0, 9692548.0, 14395299.0, 2077519.0, 3142934.0,
    12227549.0, 6551026.0, 16301470.0, 8625403.0, 12921161.0, 7681533.0, 11524239.0, 13020804.0, 2818456.0, 2326077.0,
];
/// Digits of 1 / pi to the base 2^10.
static DIGITS_NARROW: &[f64] = &[
    325.0, 972.0, 109.0, 807.0, 136.0, 169.0, 319.0, 531.0, 687.0, 655.0, 678.0, 622.0, 897.0, 731.0, 82.0, 716.0,
    632.0, 540.0, 520.0, 255.0, 162.0, 797.0,
];

/// What is left of a number after multiples of pi.
#[derive(Clone, Copy)]
struct Rest<R> {
    /// The nearest number, and what is to be subtracted from it.
    high: R,
    low: R,
    /// A number whose last bit is that of the multiple.
    count: R,
}

/// Which multiples of pi are subtracted.
#[derive(Clone, Copy, PartialEq)]
enum Multiple {
    /// All: for the sine.
    Whole,
    /// Halves of odd numbers: for the cosine.
    Odd,
    /// All halves: for the tangent.
    Half,
}

/// A number up to 10^6, or 10^5 of 32 bits: `x` is a multiple of pi and the rest.
#[inline(always)]
fn near<R: Real>(x: R, multiple: Multiple) -> Rest<R> {
    use std::f64::consts::{FRAC_1_PI, FRAC_2_PI};
    let pi = by_width::<R, _>(PI, PI_NARROW);
    let (turns, round) = (|f: f64| x.lit(f), x.lit(to_whole::<R>()));
    let (count, n, unit) = match multiple {
        Multiple::Whole => {
            let count = x.fma(turns(FRAC_1_PI), round);
            (count, count - round, 1.0)
        }
        Multiple::Odd => {
            let count = x.fma(turns(FRAC_1_PI), x.lit(-0.5)) + round;
            (count, (count - round).fma(x.lit(2.0), x.lit(1.0)), 0.5)
        }
        Multiple::Half => {
            let count = x.fma(turns(FRAC_2_PI), round);
            (count, count - round, 0.5)
        }
    };
    // The subtraction of the first product is exact, the second one leaves its error.
    let first = n.fma(x.lit(-pi[0] * unit), x);
    let product = n * (pi[1] * unit);
    let high = first - product;
    let error = (high - first) + product;
    let error = if R::WIDE { error } else { error + n.fma(x.lit(pi[1] * unit), -product) };
    Rest { high, low: n.fma(x.lit(pi[2] * unit), error), count }
}

/// Any finite number that is not small: the magnitude over pi, modulo 2, as the sum of four numbers, each many digits
/// smaller than the one before. The first two have so few digits that sums with multiples of a half are exact.
#[inline(always)]
fn turns<R: Real>(x: R) -> [R; 4] {
    let (digits, table) = by_width::<R, (f64, &'static [f64])>((24.0, DIGITS), (10.0, DIGITS_NARROW));
    let (base, part) = (digits.exp2(), (-digits).exp2());
    let (k, m) = x.abs().split();
    // The number is base^j times four digits.
    let j = ((k + 0.5) * (1.0 / digits)).floor() + 1.0;
    let mut left = m.scale(j.fma(x.lit(-digits), k) + to_whole::<R>());
    let own: [R; 4] = std::array::from_fn(|_| {
        let all = left * base;
        let digit = all.floor();
        left = all - digit;
        digit
    });
    let known: [R; 11] = std::array::from_fn(|i| (j + (i as f64 - 5.0)).lookup(table));
    // Digits of the product from that of ones on, first as sums of products, then below the base.
    let mut sum: [R; 8] = std::array::from_fn(|i| {
        let high = (own[0] * known[i + 3]) + own[1] * known[i + 2];
        high + (own[2] * known[i + 1] + own[3] * known[i])
    });
    for i in (1..8).rev() {
        let carry = (sum[i] * part).floor();
        sum[i] = sum[i] - carry * base;
        sum[i - 1] = sum[i - 1] + carry;
    }
    let ones = sum[0] - (sum[0] * 0.5).floor() * 2.0;
    let place = |i: i32| part.powi(i);
    [
        ones + sum[1] * place(1),
        sum[2] * place(2),
        sum[3] * place(3) + sum[4] * place(4),
        sum[5] * place(5) + sum[6] * place(6),
    ]
}

/// As [`near`], for any finite number that is not small.
#[inline(always)]
fn far<R: Real>(x: R, multiple: Multiple) -> Rest<R> {
    let pi = by_width::<R, _>(PI, PI_NARROW);
    let [first, second, third, fourth] = turns(x);
    let round = x.lit(to_whole::<R>());
    let (count, whole) = match multiple {
        Multiple::Whole => {
            let count = (first + second) + round;
            (count, count - round)
        }
        Multiple::Odd => {
            let count = ((first + second) - 0.5) + round;
            (count, (count - round) + 0.5)
        }
        Multiple::Half => {
            let count = (first + second) * 2.0 + round;
            (count, (count - round) * 0.5)
        }
    };
    let head = (first - whole) + second;
    let sum = head + third;
    let tail = (third - (sum - head)) + fourth;
    let high = sum * pi[0];
    let low = sum.fma(x.lit(-pi[0]), high) - tail.fma(x.lit(pi[0]), sum * pi[1]);
    let one = x.lit(1.0);
    match multiple {
        Multiple::Odd => Rest { high, low, count },
        Multiple::Whole | Multiple::Half => {
            let sign = one.with_sign(x);
            Rest { high: high * sign, low: low * sign, count }
        }
    }
}

/// What is left after multiples of pi. Infinities leave no number.
#[inline(always)]
fn rest<R: Real>(x: R, multiple: Multiple) -> Rest<R> {
    let size = x.abs();
    let large = x.lit(by_width::<R, _>(1e6, 1e5)).lt(size) & size.lt(x.lit(f64::INFINITY));
    let common = near(x, multiple);
    let [high, low, count] = R::rarely(large, [common.high, common.low, common.count], || {
        let rest = far(x, multiple);
        [rest.high, rest.low, rest.count]
    });
    Rest { high, low, count }
}

/// The sine of a rest of a whole multiple of pi, negated where that is odd. What is added to `high` is subtracted, so
/// that zeros keep their sign. It is more than a third of the rest, so its products are exact but for the last rounding:
/// no result leaves the range from -1 to 1, and where the true value is 1 it is 1.
#[inline(always)]
fn sine<R: Real>(rest: Rest<R>) -> R {
    let r = rest.high;
    let coefficients = by_width::<R, _>(SIN, SIN_NARROW);
    let (square, square_low) = product(r, r);
    let rest_of_p = square * polynomial(square, &coefficients[1..]);
    let (cube, cube_rest) = product(r, square);
    let cube_low = r.fma(square_low, cube_rest);
    // The derivative, and the sum of the polynomial at pi / 2, as far as they count.
    let slope = square.fma(r.lit(-0.405), r.lit(1.0));
    let low = cube_low.fma(r.lit(0.1473), rest.low * slope);
    let less = cube.fma(r.lit(coefficients[0]), cube.fma(rest_of_p, low));
    (r - less).negated_by(rest.count)
}

/// The sine. There is none of infinities.
#[inline(always)]
pub fn sin<R: Real>(x: R) -> R {
    sine(rest(x, Multiple::Whole))
}

/// The cosine. There is none of infinities. It is even to the last bit.
#[inline(always)]
pub fn cos<R: Real>(x: R) -> R {
    -sine(rest(x.abs(), Multiple::Odd))
}

/// The sine of pi times a number that is not negative, but for its sign.
#[inline(always)]
pub fn sin_of_pi<R: Real>(x: R) -> R {
    let pi = by_width::<R, _>(PI, PI_NARROW);
    let above = x - x.floor();
    let part = R::select(x.lit(0.5).lt(above), above - 1.0, above);
    let high = part * pi[0];
    let low = part.fma(x.lit(-pi[0]), high) - part * pi[1];
    sine(Rest { high, low, count: x.lit(0.0) })
}

/// The tangent. There is none of infinities.
#[inline(always)]
pub fn tan<R: Real>(x: R) -> R {
    let rest = rest(x, Multiple::Half);
    let (r, square) = (rest.high, rest.high * rest.high);
    let [p, q] = by_width::<R, _>(TAN, TAN_NARROW);
    let less = chain(square, p.iter().copied()).fma(r * square, rest.low);
    let above = r - less;
    let below = square.fma(chain(square, q.iter().copied()), r.lit(1.0));
    // A quarter of a turn further the tangent is the negated inverse.
    let odd = rest.count.last_bit();
    R::select(odd, below, above) / R::select(odd, -above, below)
}
