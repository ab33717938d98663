//! True values of elementary functions, by numbers of many bits, and how far a float is from one.
#![allow(dead_code, reason = "every crate that includes this uses its own part")]

use astro_float::{BigFloat, Consts, RoundingMode, Sign};

const EVEN: RoundingMode = RoundingMode::ToEven;

/// Arithmetic with so many bits.
pub struct Reals {
    bits: usize,
    consts: Consts,
}

impl Reals {
    /// Enough bits for arguments of a size: large ones need more for their multiples of pi.
    pub fn new(bits: usize) -> Reals {
        Reals { bits, consts: Consts::new().unwrap() }
    }

    /// A float, exactly. What is no normal number comes in by way of one.
    pub fn of(&self, v: f64) -> BigFloat {
        if !v.is_subnormal() {
            return BigFloat::from_f64(v, self.bits);
        }
        let mut out = BigFloat::from_f64(v * 200f64.exp2(), self.bits);
        let exponent = out.exponent().unwrap();
        out.set_exponent(exponent - 200);
        out
    }

    fn pi(&mut self) -> BigFloat {
        self.consts.pi(self.bits, EVEN)
    }

    /// The value of a function; of none at all for names that it does not know.
    pub fn value(&mut self, name: &str, x: f64, y: f64) -> BigFloat {
        let (p, a, b) = (self.bits, self.of(x), self.of(y));
        let cc = &mut self.consts;
        match name {
            "exp" => a.exp(p, EVEN, cc),
            "log" => a.ln(p, EVEN, cc),
            "sin" => a.sin(p, EVEN, cc),
            "cos" => a.cos(p, EVEN, cc),
            "tan" => a.tan(p, EVEN, cc),
            "sinh" => a.sinh(p, EVEN, cc),
            "cosh" => a.cosh(p, EVEN, cc),
            "tanh" => a.tanh(p, EVEN, cc),
            "asin" => a.asin(p, EVEN, cc),
            "acos" => a.acos(p, EVEN, cc),
            "atan" => a.atan(p, EVEN, cc),
            "atan2" => self.angle(&a, &b),
            "hypot" => a.mul(&a, p, EVEN).add(&b.mul(&b, p, EVEN), p, EVEN).sqrt(p, EVEN),
            "pow" => self.power(&a, &b),
            "erf" => self.erf(&a),
            "lgamma" => self.lgamma(&a),
            _ => BigFloat::nan(None),
        }
    }

    fn angle(&mut self, y: &BigFloat, x: &BigFloat) -> BigFloat {
        let p = self.bits;
        let slope = y.div(x, p, EVEN).atan(p, EVEN, &mut self.consts);
        match (x.is_negative(), y.is_negative()) {
            (false, _) => slope,
            (true, false) => slope.add(&self.pi(), p, EVEN),
            (true, true) => slope.sub(&self.pi(), p, EVEN),
        }
    }

    /// By the logarithm of the magnitude; negative where the exponent is odd.
    fn power(&mut self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        let p = self.bits;
        let log = x.abs().ln(p, EVEN, &mut self.consts);
        let size = log.mul(y, p, EVEN).exp(p, EVEN, &mut self.consts);
        let odd = !y.div(&self.of(2.0), p, EVEN).is_int();
        if x.is_negative() && odd { size.neg() } else { size }
    }

    /// 2 / sqrt(pi) exp(-x²) (x + 2x³ / 3 + 4x⁵ / 15 …): all terms have one sign.
    fn erf(&mut self, x: &BigFloat) -> BigFloat {
        let p = self.bits;
        let square = x.mul(x, p, EVEN);
        let (mut term, mut sum, mut k) = (x.clone(), x.clone(), 1.0);
        for _ in 0..400 {
            k += 2.0;
            term = term.mul(&square, p, EVEN).mul(&self.of(2.0), p, EVEN).div(&self.of(k), p, EVEN);
            sum = sum.add(&term, p, EVEN);
            let done = match (term.exponent(), sum.exponent()) {
                (Some(t), Some(s)) => t < s - p as i32,
                _ => true,
            };
            if done {
                break;
            }
        }
        let factor = self.of(2.0).div(&self.pi().sqrt(p, EVEN), p, EVEN);
        sum.mul(&square.neg().exp(p, EVEN, &mut self.consts), p, EVEN).mul(&factor, p, EVEN)
    }

    /// Stirling's series from 60 on, shifted for smaller numbers and reflected for negative ones.
    fn lgamma(&mut self, x: &BigFloat) -> BigFloat {
        let p = self.bits;
        let one = self.of(1.0);
        if x.is_negative() {
            let pi = self.pi();
            let sine = x.mul(&pi, p, EVEN).sin(p, EVEN, &mut self.consts).abs();
            let log = pi.div(&sine, p, EVEN).ln(p, EVEN, &mut self.consts);
            let other = self.lgamma(&one.sub(x, p, EVEN));
            return log.sub(&other, p, EVEN);
        }
        let (mut y, mut product) = (x.clone(), one.clone());
        while y.cmp(&self.of(60.0)).is_some_and(|o| o < 0) {
            product = product.mul(&y, p, EVEN);
            y = y.add(&one, p, EVEN);
        }
        let half = self.of(0.5);
        let log = y.ln(p, EVEN, &mut self.consts);
        let mut sum = y.sub(&half, p, EVEN).mul(&log, p, EVEN).sub(&y, p, EVEN);
        let two_pi = self.pi().mul(&self.of(2.0), p, EVEN);
        sum = sum.add(&two_pi.ln(p, EVEN, &mut self.consts).mul(&half, p, EVEN), p, EVEN);
        // Bernoulli numbers over 2k (2k - 1).
        let series = [
            (1.0, 12.0),
            (-1.0, 360.0),
            (1.0, 1260.0),
            (-1.0, 1680.0),
            (1.0, 1188.0),
            (-691.0, 360360.0),
            (1.0, 156.0),
            (-3617.0, 122400.0),
            (43867.0, 244188.0),
            (-174611.0, 125400.0),
            (77683.0, 5796.0),
            (-236364091.0, 1506960.0),
            (657931.0, 300.0),
        ];
        let (mut power, square) = (y.clone(), y.mul(&y, p, EVEN));
        for (above, below) in series {
            let term = self.of(above).div(&self.of(below), p, EVEN).div(&power, p, EVEN);
            sum = sum.add(&term, p, EVEN);
            power = power.mul(&square, p, EVEN);
        }
        sum.sub(&product.ln(p, EVEN, &mut self.consts), p, EVEN)
    }

    /// How far a float with so many digits, and least exponent, is from a true value: in units in the last place of
    /// that. What is too large for floats is at distance 0 from infinity.
    pub fn distance(&self, got: f64, want: &BigFloat, wide: bool) -> f64 {
        let (digits, least, most) = if wide { (53, -1074, 1024) } else { (24, -149, 128) };
        if want.is_nan() {
            return if got.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if want.is_inf() {
            let alike = got.is_infinite() && (got > 0.0) == want.is_inf_pos();
            return if alike { 0.0 } else { f64::INFINITY };
        }
        let exponent = if want.is_zero() { least } else { want.exponent().unwrap_or(0) };
        let beyond = exponent > most || (exponent == most && got.is_infinite() && near_one(want, digits));
        if got.is_infinite() || beyond {
            let sides = (got > 0.0) == (want.sign() == Some(Sign::Pos));
            return if got.is_infinite() && beyond && sides { 0.0 } else { f64::INFINITY };
        }
        let unit = (exponent - digits).max(least);
        let difference = want.sub(&self.of(got), self.bits, EVEN);
        approximate(&difference, -unit).abs()
    }
}

/// Whether the mantissa of a number rounds up to 1.
fn near_one(v: &BigFloat, digits: i32) -> bool {
    approximate(v, -v.exponent().unwrap_or(0)).abs() >= 1.0 - (-f64::from(digits) - 1.0).exp2()
}

/// A number times a power of two, as a float.
fn approximate(v: &BigFloat, shift: i32) -> f64 {
    match v.as_raw_parts() {
        Some((words, _, sign, exponent, _)) if !v.is_zero() => {
            let size = *words.last().unwrap() as f64 * (f64::from(exponent + shift) - 64.0).exp2();
            if sign == Sign::Neg { -size } else { size }
        }
        _ => 0.0,
    }
}
