//! The operations of elementary functions as numbers of 64 and of 32 bits.

use super::arith::{Mask, Real, to_whole};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A condition on a number.
#[derive(Clone, Copy)]
pub struct Truth(pub bool);

impl Mask for Truth {}

impl BitAnd for Truth {
    type Output = Truth;
    #[inline(always)]
    fn bitand(self, b: Truth) -> Truth {
        Truth(self.0 & b.0)
    }
}

impl BitOr for Truth {
    type Output = Truth;
    #[inline(always)]
    fn bitor(self, b: Truth) -> Truth {
        Truth(self.0 | b.0)
    }
}

impl Not for Truth {
    type Output = Truth;
    #[inline(always)]
    fn not(self) -> Truth {
        Truth(!self.0)
    }
}

macro_rules! operators {
    ($name:ident, $t:ty, $($trait:ident $f:ident $sign:tt),*) => {
        $(impl $trait for $name {
            type Output = $name;
            #[inline(always)]
            fn $f(self, b: $name) -> $name {
                $name(self.0 $sign b.0)
            }
        }
        impl $trait<f64> for $name {
            type Output = $name;
            #[inline(always)]
            fn $f(self, b: f64) -> $name {
                $name(self.0 $sign b as $t)
            }
        })*
    };
}

macro_rules! number {
    ($name:ident, $t:ty, $bits:ty, $wide:literal) => {
        #[doc = concat!("An `", stringify!($t), "`.")]
        #[derive(Clone, Copy)]
        pub struct $name(pub $t);

        operators!($name, $t, Add add +, Sub sub -, Mul mul *, Div div /);

        impl Neg for $name {
            type Output = $name;
            #[inline(always)]
            fn neg(self) -> $name {
                $name(-self.0)
            }
        }

        impl $name {
            /// The bits of a mantissa.
            const DIGITS: u32 = <$t>::MANTISSA_DIGITS - 1;
            /// What is added to exponents.
            const BIAS: i32 = <$t>::MAX_EXP - 1;

            /// 2 to the power of a whole number for which that is a normal number.
            #[inline(always)]
            fn power(k: i32) -> $t {
                <$t>::from_bits(((k + Self::BIAS) as $bits) << Self::DIGITS)
            }

            /// A finite positive number as 2^k m with 0.75 ≤ m < 1.5.
            #[inline(always)]
            fn parts(x: $t) -> (i32, $t) {
                let tiny = x < <$t>::MIN_POSITIVE;
                let normal = if tiny { x * Self::power(Self::DIGITS as i32 + 1) } else { x };
                let shift = if tiny { Self::BIAS + Self::DIGITS as i32 + 1 } else { Self::BIAS };
                let least = (0.75 as $t).to_bits();
                let bits = normal.to_bits().wrapping_add((1.0 as $t).to_bits() - least);
                let fraction = bits & ((1 << Self::DIGITS) - 1);
                ((bits >> Self::DIGITS) as i32 - shift, <$t>::from_bits(fraction + least))
            }
        }

        impl Real for $name {
            type Mask = Truth;
            const WIDE: bool = $wide;

            #[inline(always)]
            fn lit(self, v: f64) -> $name {
                $name(v as $t)
            }
            #[inline(always)]
            fn fma(self, b: $name, c: $name) -> $name {
                $name(self.0.mul_add(b.0, c.0))
            }
            #[inline(always)]
            fn sqrt(self) -> $name {
                $name(self.0.sqrt())
            }
            #[inline(always)]
            fn floor(self) -> $name {
                $name(self.0.floor())
            }
            #[inline(always)]
            fn abs(self) -> $name {
                $name(self.0.abs())
            }
            #[inline(always)]
            fn with_sign(self, sign: $name) -> $name {
                $name(self.0.copysign(sign.0))
            }
            #[inline(always)]
            fn negated_by(self, t: $name) -> $name {
                $name(<$t>::from_bits(self.0.to_bits() ^ (t.0.to_bits() << (<$bits>::BITS - 1))))
            }
            #[inline(always)]
            fn last_bit(self) -> Truth {
                Truth(self.0.to_bits() & 1 == 1)
            }
            #[inline(always)]
            fn power_of_two(self) -> $name {
                $name(Self::power((self - to_whole::<$name>()).0 as i32))
            }
            #[inline(always)]
            fn scale(self, t: $name) -> $name {
                // The first of two steps does not round.
                let k = (t - to_whole::<$name>()).0 as i32;
                let half = k >> 1;
                $name(self.0 * Self::power(half) * Self::power(k - half))
            }
            #[inline(always)]
            fn scaled_sum(self, q: $name, t: $name, zero: Truth) -> $name {
                if zero.0 { $name(0.0) } else { self.fma(q, $name(1.0)).scale(t) }
            }
            #[inline(always)]
            fn split(self) -> ($name, $name) {
                let x = self.0;
                let (k, m) = Self::parts(x);
                let positive = if x < <$t>::INFINITY { k as $t } else { x };
                let other = if x == 0.0 { <$t>::NEG_INFINITY } else { <$t>::NAN };
                ($name(if x > 0.0 { positive } else { other }), $name(m))
            }
            #[inline(always)]
            fn lookup(self, table: &'static [f64]) -> $name {
                let found = if self.0 >= 0.0 { table.get(self.0 as usize) } else { None };
                $name(found.map_or(0.0, |v| *v as $t))
            }
            #[inline(always)]
            fn lt(self, b: $name) -> Truth {
                Truth(self.0 < b.0)
            }
            #[inline(always)]
            fn le(self, b: $name) -> Truth {
                Truth(self.0 <= b.0)
            }
            #[inline(always)]
            fn eq(self, b: $name) -> Truth {
                Truth(self.0 == b.0)
            }
            #[inline(always)]
            fn select(c: Truth, a: $name, b: $name) -> $name {
                if c.0 { a } else { b }
            }
            #[inline(always)]
            fn at_least(self, v: f64) -> $name {
                $name(if self.0 < v as $t { v as $t } else { self.0 })
            }
            #[inline(always)]
            fn settled(self, v: f64, _: Truth) -> $name {
                self.at_least(v)
            }
            #[inline(always)]
            fn at_most(self, v: f64) -> $name {
                $name(if self.0 > v as $t { v as $t } else { self.0 })
            }
            #[inline(always)]
            fn rarely<const N: usize>(c: Truth, common: [$name; N], rare: impl FnOnce() -> [$name; N]) -> [$name; N] {
                if c.0 { rare() } else { common }
            }
        }
    };
}

number!(Wide, f64, u64, true);
number!(Narrow, f32, u32, false);
