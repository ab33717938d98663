//! What elementary functions are written in: operations of one width, each rounded once.
//!
//! A function over [`Real`] is a number where `number.rs` gives the operations, and C++ text where `text.rs` does, so
//! that both do the same. There are no branches but choices between two values, and what is done [`Real::rarely`].
//! Nothing here lets the sign or the payload of a NaN be seen in a number.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A condition on numbers.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}

/// Operations with numbers and with literals, which are rounded to the width.
pub trait Real:
    Copy
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
{
    /// Conditions.
    type Mask: Mask;
    /// Whether numbers have 64 bits; else they have 32.
    const WIDE: bool;

    /// A literal where this number is.
    fn lit(self, v: f64) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The greatest whole number that is not greater.
    fn floor(self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The magnitude, with the sign of another number; of no number where this is none.
    fn with_sign(self, sign: Self) -> Self;
    /// Negated where the last bit of `t` is 1: where `t` is [`to_whole`] and an odd number.
    fn negated_by(self, t: Self) -> Self;
    /// Whether the last bit of `t` is 1; any where `t` is no number.
    fn last_bit(self) -> Self::Mask;
    /// 2 to the power of a whole number for which that is a normal number; this is its sum with [`to_whole`].
    fn power_of_two(self) -> Self;
    /// The number, from a half to two in size, times 2 to the power of a whole number between -1200 and 1200 (-200 and
    /// 200 of 32 bits), rounded once; `t` is the sum of that number with [`to_whole`]. No number stays what it is.
    fn scale(self, t: Self) -> Self;
    /// `self * q + 1`, rounded, [scaled](Self::scale) by `t`: 0 where the condition holds.
    fn scaled_sum(self, q: Self, t: Self, zero: Self::Mask) -> Self;
    /// A positive number as 2^k m with 0.75 ≤ m < 1.5: k and m. The exponents of 0 and infinity are infinite, that of
    /// anything else is no number.
    fn split(self) -> (Self, Self);
    /// The element of a table at a whole number; 0 beyond its ends.
    fn lookup(self, table: &'static [f64]) -> Self;

    /// Less than.
    fn lt(self, b: Self) -> Self::Mask;
    /// Less than or equal.
    fn le(self, b: Self) -> Self::Mask;
    /// Equal.
    fn eq(self, b: Self) -> Self::Mask;
    /// `a` where the condition holds, else `b`.
    fn select(c: Self::Mask, a: Self, b: Self) -> Self;
    /// The greater of itself and a literal; itself where it is no number.
    fn at_least(self, v: f64) -> Self;
    /// Itself, but where the condition says that it is below a literal: there some number that is not, which nobody looks at.
    fn settled(self, v: f64, below: Self::Mask) -> Self;
    /// The lesser of itself and a literal; itself where it is no number.
    fn at_most(self, v: f64) -> Self;
    /// What is `common`, but for numbers where the condition holds: there it is what `rare` makes.
    fn rarely<const N: usize>(c: Self::Mask, common: [Self; N], rare: impl FnOnce() -> [Self; N]) -> [Self; N];

    /// Whether it is no number.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        !self.eq(self)
    }
}

/// To add this number and to subtract it again rounds to a whole number, whose last bit is that of the sum.
pub fn to_whole<R: Real>() -> f64 {
    if R::WIDE { 6755399441055744.0 } else { 12582912.0 }
}

/// One of two values, by the width.
#[inline(always)]
pub fn by_width<R: Real, T>(wide: T, narrow: T) -> T {
    if R::WIDE { wide } else { narrow }
}

/// A polynomial with these coefficients, ascending: in one chain where it is short, else of odd and even powers apart.
#[inline(always)]
pub fn polynomial<R: Real>(x: R, c: &[f64]) -> R {
    if c.len() <= 5 {
        return chain(x, c.iter().copied());
    }
    let square = x * x;
    let even = chain(square, c.iter().copied().step_by(2));
    let odd = chain(square, c.iter().copied().skip(1).step_by(2));
    odd.fma(x, even)
}

/// A polynomial by Horner's scheme.
#[inline(always)]
pub fn chain<R: Real>(x: R, c: impl DoubleEndedIterator<Item = f64>) -> R {
    let mut c = c.rev();
    let mut sum = x.lit(c.next().unwrap_or(0.0));
    for a in c {
        sum = sum.fma(x, x.lit(a));
    }
    sum
}

/// A sum and what it lacks, where the first number is not smaller than the second.
#[inline(always)]
pub fn sum<R: Real>(a: R, b: R) -> (R, R) {
    let s = a + b;
    (s, b - (s - a))
}

/// A product and what it lacks.
#[inline(always)]
pub fn product<R: Real>(a: R, b: R) -> (R, R) {
    let p = a * b;
    (p, a.fma(b, -p))
}

/// A sum and what it lacks, whichever number is larger.
#[inline(always)]
pub fn sum_of_any<R: Real>(a: R, b: R) -> (R, R) {
    let s = a + b;
    let part = s - a;
    (s, (a - (s - part)) + (b - part))
}
