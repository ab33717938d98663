//! Real numbers as intervals with rational ends: exact where the ends meet, else rounded outwards.
//!
//! Sums, products and quotients of exact numbers stay exact. The other functions are computed by
//! `astro-float` with guard bits and widened, so that the true value lies inside. It must not know
//! of terms.

use crate::ir::Op;
use astro_float::{BigFloat, Consts, RoundingMode, Sign};
use num_bigint::{BigInt, BigUint, Sign as IntSign};
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::cmp::Ordering;

/// A real number that lies between two rationals.
#[derive(Clone, PartialEq, Debug)]
pub struct Number {
    lo: BigRational,
    hi: BigRational,
}

/// The precision does not suffice to decide, or the numbers grow too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undecided;

/// A number, or nothing where the operation has no value over the reals.
pub type Answer = Result<Option<Number>, Undecided>;

/// Longer numerators and denominators are not computed with.
const MAX_BITS: u64 = 1 << 15;
/// Exponentials of larger arguments are not computed.
const MAX_EXPONENT: i64 = 4_000;
/// Integer powers up to this are computed exactly, where the base is.
const MAX_POWER: u64 = 64;
/// Guard bits of functions.
const GUARD: usize = 32;

/// Computes at one precision.
pub struct Arithmetic {
    bits: usize,
    consts: RefCell<Option<Consts>>,
    /// Values of functions at exact arguments: both sides of a rule ask for the same.
    known: RefCell<FxHashMap<(Op, BigRational), Number>>,
}

/// So many values of functions are remembered.
const MAX_KNOWN: usize = 4_096;

impl Number {
    /// An exact number.
    pub fn exact(v: BigRational) -> Number {
        Number { lo: v.clone(), hi: v }
    }

    /// An integer.
    pub fn int(v: i64) -> Number {
        Number::exact(BigRational::from_integer(v.into()))
    }

    /// The number that a finite float stands for.
    pub fn float(v: f64) -> Option<Number> {
        BigRational::from_float(v).map(Number::exact)
    }

    /// Whether both ends are one.
    pub fn is_exact(&self) -> bool {
        self.lo == self.hi
    }

    /// The order of two numbers, where the intervals show it.
    pub fn order(&self, o: &Number) -> Result<Ordering, Undecided> {
        match (self.hi.cmp(&o.lo), self.lo.cmp(&o.hi)) {
            (Ordering::Less, _) => Ok(Ordering::Less),
            (_, Ordering::Greater) => Ok(Ordering::Greater),
            _ if self.is_exact() && o.is_exact() => Ok(Ordering::Equal),
            _ => Err(Undecided),
        }
    }

    /// The sign, where it is known.
    pub fn sign(&self) -> Result<Ordering, Undecided> {
        self.order(&Number::int(0))
    }

    /// Whether two numbers may be equal: `None` where the intervals are too wide to say so to
    /// [`DIGITS`] decimal digits.
    pub fn agrees(&self, o: &Number) -> Option<bool> {
        if self.hi < o.lo || self.lo > o.hi {
            return Some(false);
        }
        let (lo, hi) = (self.lo.clone().min(o.lo.clone()), self.hi.clone().max(o.hi.clone()));
        let scale = lo.abs().max(hi.abs()).max(BigRational::one());
        let width = (hi - lo) * BigRational::from_integer(BigInt::from(10u8).pow(DIGITS));
        (width <= scale).then_some(true)
    }

    /// About the number, for messages.
    pub fn to_f64(&self) -> f64 {
        self.lo.to_f64().unwrap_or(f64::NAN)
    }

    /// The greatest integer that is not above, where all of the interval has the same.
    fn floor(&self) -> Result<BigInt, Undecided> {
        let (a, b) = (self.lo.floor().to_integer(), self.hi.floor().to_integer());
        if a == b { Ok(a) } else { Err(Undecided) }
    }

    /// The integer towards 0, as the nearest that 64 bits hold.
    pub fn truncate(&self) -> Result<i64, Undecided> {
        let toward = |v: &BigRational| v.trunc().to_integer();
        let (a, b) = (toward(&self.lo), toward(&self.hi));
        let high = if a.is_negative() { i64::MIN } else { i64::MAX };
        if a == b { Ok(a.to_i64().unwrap_or(high)) } else { Err(Undecided) }
    }
}

/// Numbers agree where they are equal to so many decimal digits.
pub const DIGITS: u32 = 40;

impl Arithmetic {
    /// Computes with intervals of so many bits.
    pub fn new(bits: usize) -> Arithmetic {
        Arithmetic { bits, consts: RefCell::new(Consts::new().ok()), known: RefCell::default() }
    }

    /// An interval with its ends rounded outwards, unless it is exact and short.
    fn tidy(&self, lo: BigRational, hi: BigRational) -> Result<Number, Undecided> {
        let long = |v: &BigRational| v.numer().bits().max(v.denom().bits()) > MAX_BITS;
        if long(&lo) || long(&hi) {
            return Err(Undecided);
        }
        if lo == hi {
            return Ok(Number { lo, hi });
        }
        Ok(Number { lo: self.dyadic(&lo, false), hi: self.dyadic(&hi, true) })
    }

    /// The nearest number with so many bits on one side.
    fn dyadic(&self, v: &BigRational, up: bool) -> BigRational {
        let size = v.numer().bits() as i64 - v.denom().bits() as i64;
        let shift = (self.bits + GUARD) as i64 - size;
        let two = |n: i64| BigRational::from_integer(BigInt::one() << n.unsigned_abs());
        let scaled = if shift >= 0 { v * two(shift) } else { v / two(shift) };
        let whole = BigRational::from_integer(if up { scaled.ceil() } else { scaled.floor() }.to_integer());
        if shift >= 0 { whole / two(shift) } else { whole * two(shift) }
    }

    /// A scalar operation on numbers that gives a number.
    ///
    /// # Errors
    /// The precision does not suffice.
    pub fn apply(&self, op: Op, args: &[Number]) -> Answer {
        match args {
            [] if op == Op::Pi => self.pi().map(Some),
            [a] => self.one(op, a),
            [a, b] => self.two(op, a, b),
            _ => Err(Undecided),
        }
    }

    fn pi(&self) -> Result<Number, Undecided> {
        let mut consts = self.consts.borrow_mut();
        let cc = consts.as_mut().ok_or(Undecided)?;
        self.widened(&cc.pi(self.bits + GUARD, RoundingMode::ToEven))
    }

    fn two(&self, op: Op, a: &Number, b: &Number) -> Answer {
        match op {
            Op::Add => self.tidy(&a.lo + &b.lo, &a.hi + &b.hi).map(Some),
            Op::Sub => self.tidy(&a.lo - &b.hi, &a.hi - &b.lo).map(Some),
            Op::Mul => self.product(a, b).map(Some),
            Op::Div => {
                if b.sign()? == Ordering::Equal {
                    return Ok(None);
                }
                let inverse = Number { lo: b.hi.recip(), hi: b.lo.recip() };
                self.product(a, &inverse).map(Some)
            }
            Op::Min => Ok(Some(Number { lo: a.lo.clone().min(b.lo.clone()), hi: a.hi.clone().min(b.hi.clone()) })),
            Op::Max => Ok(Some(Number { lo: a.lo.clone().max(b.lo.clone()), hi: a.hi.clone().max(b.hi.clone()) })),
            Op::Powf => self.power(a, b),
            Op::Atan2 => self.angle(a, b),
            _ => Err(Undecided),
        }
    }

    fn product(&self, a: &Number, b: &Number) -> Result<Number, Undecided> {
        if a.is_exact() && b.is_exact() {
            let p = &a.lo * &b.lo;
            return self.tidy(p.clone(), p);
        }
        let corners = [&a.lo * &b.lo, &a.lo * &b.hi, &a.hi * &b.lo, &a.hi * &b.hi];
        let lo = corners.iter().min().cloned().unwrap_or_else(BigRational::zero);
        let hi = corners.iter().max().cloned().unwrap_or_else(BigRational::zero);
        self.tidy(lo, hi)
    }

    /// `a` to an integer power; 0 to the 0 is 1.
    ///
    /// # Errors
    /// The precision does not suffice, or the power is too large.
    pub fn integer_power(&self, a: &Number, n: i64) -> Answer {
        if n == 0 {
            return Ok(Some(Number::int(1)));
        }
        let unit = a.is_exact() && a.lo.abs().is_one();
        if a.is_exact() && a.lo.is_zero() {
            return Ok((n > 0).then(|| a.clone()));
        }
        let n = if unit { n % 2 } else { n };
        if n.unsigned_abs() > MAX_POWER {
            return Err(Undecided);
        }
        let mut out = Number::int(1);
        for _ in 0..n.unsigned_abs() {
            out = self.product(&out, a)?;
        }
        if n < 0 { self.two(Op::Div, &Number::int(1), &out) } else { Ok(Some(out)) }
    }

    fn power(&self, a: &Number, b: &Number) -> Answer {
        if b.is_exact() && b.lo.is_integer() {
            return self.integer_power(a, b.lo.to_integer().to_i64().ok_or(Undecided)?);
        }
        match a.sign()? {
            Ordering::Greater => {
                let Some(log) = self.one(Op::Log, a)? else { return Ok(None) };
                self.one(Op::Exp, &self.product(b, &log)?)
            }
            Ordering::Equal => Ok((b.sign()? == Ordering::Greater).then(|| Number::int(0))),
            Ordering::Less => Ok(None),
        }
    }

    /// The angle of the point (b, a), from -pi to pi; none at the origin.
    fn angle(&self, a: &Number, b: &Number) -> Answer {
        let (up, right) = (a.sign()?, b.sign()?);
        let pi = self.pi()?;
        let half = self.product(&pi, &Number::exact(BigRational::new(1.into(), 2.into())))?;
        match (up, right) {
            (Ordering::Equal, Ordering::Equal) => Ok(None),
            (Ordering::Greater, Ordering::Equal) => Ok(Some(half)),
            (Ordering::Less, Ordering::Equal) => self.one(Op::Neg, &half),
            (_, Ordering::Greater) => {
                let Some(slope) = self.two(Op::Div, a, b)? else { return Ok(None) };
                self.one(Op::Atan, &slope)
            }
            (_, Ordering::Less) => {
                let Some(slope) = self.two(Op::Div, a, b)? else { return Ok(None) };
                let Some(base) = self.one(Op::Atan, &slope)? else { return Ok(None) };
                self.two(if up == Ordering::Less { Op::Sub } else { Op::Add }, &base, &pi)
            }
        }
    }

    fn one(&self, op: Op, a: &Number) -> Answer {
        let some = |n: Result<Number, Undecided>| n.map(Some);
        let at = |v: i64| a.is_exact() && a.lo == BigRational::from_integer(v.into());
        match op {
            Op::Neg => Ok(Some(Number { lo: -&a.hi, hi: -&a.lo })),
            Op::Abs if a.is_exact() => Ok(Some(Number::exact(a.lo.abs()))),
            Op::Abs if a.lo.is_negative() && a.hi.is_positive() => {
                Ok(Some(Number { lo: BigRational::zero(), hi: a.hi.clone().max(-&a.lo) }))
            }
            Op::Abs if a.hi.is_positive() => Ok(Some(a.clone())),
            Op::Abs => self.one(Op::Neg, a),
            Op::Floor => Ok(Some(Number::exact(BigRational::from_integer(a.floor()?)))),
            Op::Sqrt => match self.signed(a)? {
                Ordering::Less => Ok(None),
                _ => some(self.root(a)),
            },
            Op::Log => match a.sign()? {
                Ordering::Greater if at(1) => Ok(Some(Number::int(0))),
                Ordering::Greater => some(self.rising(op, a, |x, p, cc| x.ln(p, RoundingMode::ToEven, cc))),
                _ => Ok(None),
            },
            Op::Exp | Op::Cos if at(0) => Ok(Some(Number::int(1))),
            Op::Sin | Op::Tanh | Op::Sinh | Op::Asin | Op::Atan | Op::Erf if at(0) => Ok(Some(Number::int(0))),
            Op::Acos if at(1) => Ok(Some(Number::int(0))),
            Op::Asin | Op::Acos => self.inside(op, a),
            _ => some(self.function(op, a)),
        }
    }

    /// As [`Number::sign`], but an interval that touches 0 from above counts as positive.
    fn signed(&self, a: &Number) -> Result<Ordering, Undecided> {
        if !a.is_exact() && a.lo.is_zero() { Ok(Ordering::Greater) } else { a.sign() }
    }

    fn root(&self, a: &Number) -> Result<Number, Undecided> {
        let (n, d) = (a.lo.numer().sqrt(), a.lo.denom().sqrt());
        if a.is_exact() && &(&n * &n) == a.lo.numer() && &(&d * &d) == a.lo.denom() {
            return Ok(Number::exact(BigRational::new(n, d)));
        }
        self.rising(Op::Sqrt, a, |x, p, _| x.sqrt(p, RoundingMode::ToEven))
    }

    fn inside(&self, op: Op, a: &Number) -> Answer {
        let one = Number::int(1);
        if a.order(&one)? == Ordering::Greater || a.order(&Number::int(-1))? == Ordering::Less {
            return Ok(None);
        }
        let asin = self.rising(Op::Asin, a, |x, p, cc| x.asin(p, RoundingMode::ToEven, cc))?;
        if op == Op::Asin {
            return Ok(Some(asin));
        }
        let half = self.product(&self.pi()?, &Number::exact(BigRational::new(1.into(), 2.into())))?;
        self.two(Op::Sub, &half, &asin)
    }

    /// Functions with values everywhere.
    fn function(&self, op: Op, a: &Number) -> Result<Number, Undecided> {
        let limit = BigRational::from_integer(MAX_EXPONENT.into());
        let far = a.lo.abs() > limit || a.hi.abs() > limit;
        let even = RoundingMode::ToEven;
        match op {
            Op::Exp | Op::Sinh | Op::Tanh | Op::Erf if far => Err(Undecided),
            Op::Exp => self.rising(op, a, |x, p, cc| x.exp(p, even, cc)),
            Op::Sinh => self.rising(op, a, |x, p, cc| x.sinh(p, even, cc)),
            Op::Tanh => self.rising(op, a, |x, p, cc| x.tanh(p, even, cc)),
            Op::Atan => self.rising(op, a, |x, p, cc| x.atan(p, even, cc)),
            Op::Sin => self.gentle(op, a, |x, p, cc| x.sin(p, even, cc)),
            Op::Cos => self.gentle(op, a, |x, p, cc| x.cos(p, even, cc)),
            Op::Erf => self.erf(a),
            _ => Err(Undecided),
        }
    }

    /// A function that rises: its values at both ends.
    fn rising(
        &self,
        op: Op,
        a: &Number,
        f: impl Fn(&BigFloat, usize, &mut Consts) -> BigFloat,
    ) -> Result<Number, Undecided> {
        let lo = self.at(op, &self.dyadic(&a.lo, false), &f)?;
        let hi = self.at(op, &self.dyadic(&a.hi, true), &f)?;
        Ok(Number { lo: lo.lo, hi: hi.hi })
    }

    /// A function whose slope is at most 1 everywhere.
    fn gentle(
        &self,
        op: Op,
        a: &Number,
        f: impl Fn(&BigFloat, usize, &mut Consts) -> BigFloat,
    ) -> Result<Number, Undecided> {
        let (lo, hi) = (self.dyadic(&a.lo, false), self.dyadic(&a.hi, true));
        let middle = self.at(op, &lo, &f)?;
        let width = &hi - &lo;
        self.tidy(middle.lo - &width, middle.hi + &width)
    }

    fn at(
        &self,
        op: Op,
        x: &BigRational,
        f: &impl Fn(&BigFloat, usize, &mut Consts) -> BigFloat,
    ) -> Result<Number, Undecided> {
        let key = (op, x.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let mut consts = self.consts.borrow_mut();
        let cc = consts.as_mut().ok_or(Undecided)?;
        // Digits before the point cost digits behind it.
        let extra = (x.numer().bits() as i64 - x.denom().bits() as i64).max(0) as usize;
        let precision = self.bits + 2 * GUARD + if extra > 2048 { return Err(Undecided) } else { extra };
        let value = self.widened(&f(&big(x), precision, cc))?;
        let mut all = self.known.borrow_mut();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key, value.clone());
        Ok(value)
    }

    /// The interval around a computed value, far wider than its error.
    fn widened(&self, v: &BigFloat) -> Result<Number, Undecided> {
        let v = rational(v)?;
        let error = v.abs() / BigRational::from_integer(BigInt::one() << self.bits);
        self.tidy(&v - &error, v + error)
    }

    /// The error function by its series, in fixed point. Terms grow to e^(x²) before they shrink, which
    /// costs 208 bits where x is 12; the error of each is a few units in the last place.
    fn erf(&self, a: &Number) -> Result<Number, Undecided> {
        let most = BigRational::from_integer(12.into());
        if a.lo.abs() > most || a.hi.abs() > most {
            return Err(Undecided);
        }
        let places = self.bits + 512;
        let (lo, hi) = (self.dyadic(&a.lo, false), self.dyadic(&a.hi, true));
        let fixed = |v: &BigRational| (v * BigRational::from_integer(BigInt::one() << places)).floor().to_integer();
        let x = fixed(&lo);
        let square = (&x * &x) >> places;
        let (mut power, mut sum) = (x.clone(), x);
        let mut n = 0i64;
        while n < 200 || !(power.is_zero() || (-&power).is_one()) {
            n += 1;
            power = -((power * &square) >> places) / n;
            sum += &power / (2 * n + 1);
        }
        let unit = BigRational::new(BigInt::one(), BigInt::one() << places);
        let error = &unit * BigRational::from_integer(BigInt::one() << 400);
        let sum = BigRational::from_integer(sum) * unit;
        // The series starts within one unit of x, and its slope is at most 1.
        let width = (hi - lo) + error;
        let series = self.tidy(&sum - &width, sum + width)?;
        let root = self.root(&self.pi()?)?;
        let scaled = self.two(Op::Div, &series, &root)?.ok_or(Undecided)?;
        self.product(&scaled, &Number::int(2))
    }
}

/// A number with a power of 2 as denominator, exactly.
fn big(v: &BigRational) -> BigFloat {
    let words = v.numer().magnitude().to_u64_digits();
    let sign = if v.is_negative() { Sign::Neg } else { Sign::Pos };
    let shift = v.denom().bits() as i64 - 1;
    BigFloat::from_words(&words, sign, (64 * words.len() as i64 - shift) as i32)
}

fn rational(v: &BigFloat) -> Result<BigRational, Undecided> {
    if v.is_zero() {
        return Ok(BigRational::zero());
    }
    let (words, _, sign, exponent, _) = v.as_raw_parts().ok_or(Undecided)?;
    let digits: Vec<u32> = words.iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect();
    let whole = BigInt::from_biguint(IntSign::Plus, BigUint::new(digits));
    let whole = if sign == Sign::Neg { -whole } else { whole };
    let shift = i64::from(exponent) - 64 * words.len() as i64;
    if shift.unsigned_abs() > MAX_BITS {
        return Err(Undecided);
    }
    let two = BigRational::from_integer(BigInt::one() << shift.unsigned_abs());
    let whole = BigRational::from_integer(whole);
    Ok(if shift < 0 { whole / two } else { whole * two })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: every function's interval holds the value that the C library finds, and is narrow.
    #[test]
    fn intervals_hold_the_values_of_functions() {
        let sums = Arithmetic::new(192);
        type Function = fn(f64) -> f64;
        let functions: [(Op, Function); 11] = [
            (Op::Exp, f64::exp),
            (Op::Log, f64::ln),
            (Op::Sin, f64::sin),
            (Op::Cos, f64::cos),
            (Op::Tanh, f64::tanh),
            (Op::Sinh, f64::sinh),
            (Op::Asin, f64::asin),
            (Op::Acos, f64::acos),
            (Op::Atan, f64::atan),
            (Op::Sqrt, f64::sqrt),
            (Op::Floor, f64::floor),
        ];
        for (op, f) in functions {
            for x in [-3.0, -1.0, -0.3, 0.0, 0.1, 0.7, 1.0, 2.5, 40.0] {
                let found = sums.apply(op, &[Number::float(x).unwrap_or(Number::int(0))]);
                let Ok(Some(n)) = found else {
                    assert!(!f(x).is_finite(), "{op:?} {x}: {found:?}");
                    continue;
                };
                assert!((n.to_f64() - f(x)).abs() <= 1e-12 * f(x).abs() + 1e-15, "{op:?} {x}: {n:?}");
                assert_eq!(n.agrees(&n), Some(true), "{op:?} {x} is not narrow");
            }
        }
        let erf = |x: f64| sums.apply(Op::Erf, &[Number::float(x).unwrap_or(Number::int(0))]);
        let Ok(Some(one)) = erf(0.5) else { panic!("no value") };
        assert!((one.to_f64() - 0.520_499_877_813_046_5).abs() < 1e-15, "{one:?}");
        assert_eq!(one.agrees(&one), Some(true));
    }

    /// Protects: identities agree to many digits, and near misses are told apart.
    #[test]
    fn identities_agree_and_near_misses_do_not() {
        let sums = Arithmetic::new(192);
        let run = |op, x: &Number| sums.apply(op, std::slice::from_ref(x)).ok().flatten();
        let x = Number::float(0.1).unwrap_or(Number::int(0));
        let back = run(Op::Exp, &x).and_then(|e| run(Op::Log, &e));
        assert_eq!(back.map(|b| b.agrees(&x)), Some(Some(true)));
        let (s, c) = (run(Op::Sin, &x).unwrap_or(Number::int(0)), run(Op::Cos, &x).unwrap_or(Number::int(0)));
        let squares = sums.product(&s, &s).and_then(|a| sums.two(Op::Add, &a, &sums.product(&c, &c)?));
        let Ok(Some(one)) = squares else { panic!("no value") };
        assert_eq!(one.agrees(&Number::int(1)), Some(true));
        let near = Number::exact(BigRational::one() + BigRational::new(1.into(), BigInt::from(10u8).pow(45)));
        assert_eq!(one.agrees(&near), Some(false));
    }
}
