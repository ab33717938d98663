//! What operations of the table give: the meaning that all ways of running share, bit for bit.

use super::elementary;
use super::head::Monoid;
use super::lit::Lit;
use super::op::{Failure, Op, Value};
use super::ty::Scalar;

impl Op {
    /// Its value.
    ///
    /// # Errors
    /// Integer division by 0; types that [`Op::result`] refuses.
    pub fn eval(self, args: &[Lit]) -> Result<Lit, Failure> {
        match (self, args) {
            (Op::Eq, [a, b]) => Ok(Lit::Bool(same(*a, *b))),
            (Op::Ne, [a, b]) => Ok(Lit::Bool(!same(*a, *b))),
            (Op::Select, [Lit::Bool(c), a, b]) => Ok(if *c { *a } else { *b }),
            (_, [Lit::F64(a), Lit::F64(b)]) => float2(self, f64::from_bits(*a), f64::from_bits(*b)),
            (_, [Lit::F64(a)]) => float1(self, f64::from_bits(*a)),
            (Op::Pow, [Lit::F64(a), Lit::Int(_, n)]) => Ok(Lit::float(elementary::power64(f64::from_bits(*a), *n))),
            (Op::Fma, [Lit::F64(a), Lit::F64(b), Lit::F64(c)]) => {
                let [a, b, c] = [*a, *b, *c].map(f64::from_bits);
                Ok(Lit::float(a.mul_add(b, c)))
            }
            (_, [Lit::F32(a), Lit::F32(b)]) => single2(self, f32::from_bits(*a), f32::from_bits(*b)),
            (_, [Lit::F32(a)]) => single1(self, f32::from_bits(*a)),
            (Op::Pow, [Lit::F32(a), Lit::Int(_, n)]) => Ok(Lit::float32(elementary::power32(f32::from_bits(*a), *n))),
            (Op::Fma, [Lit::F32(a), Lit::F32(b), Lit::F32(c)]) => {
                let [a, b, c] = [*a, *b, *c].map(f32::from_bits);
                Ok(Lit::float32(a.mul_add(b, c)))
            }
            (_, [Lit::Int(s, a), Lit::Int(_, b)]) => int2(self, *s, *a, *b),
            (Op::Neg, [Lit::Int(s, a)]) => Ok(Lit::Int(*s, s.wrap(a.wrapping_neg()))),
            (Op::Abs, [Lit::Int(s, a)]) => Ok(Lit::Int(*s, s.wrap(a.wrapping_abs()))),
            (Op::BitNot, [Lit::Int(s, a)]) => Ok(Lit::Int(*s, s.wrap(!a))),
            (Op::ToFloat, [Lit::Int(_, a)]) => Ok(Lit::float(*a as f64)),
            (Op::RanHash, [Lit::Int(_, a)]) => Ok(Lit::float(ranhash(*a))),
            (Op::And, [Lit::Bool(a), Lit::Bool(b)]) => Ok(Lit::Bool(*a & *b)),
            (Op::Or, [Lit::Bool(a), Lit::Bool(b)]) => Ok(Lit::Bool(*a | *b)),
            (Op::Not, [Lit::Bool(a)]) => Ok(Lit::Bool(!*a)),
            (Op::BoolToFloat, [Lit::Bool(a)]) => Ok(Lit::float(f64::from(u8::from(*a)))),
            (Op::Pi, []) => Ok(Lit::float(std::f64::consts::PI)),
            _ => Err(Failure::Types),
        }
    }
}

impl Monoid {
    /// Whether a key is taken rather than one that stands before it, where the least or the greatest is looked for.
    pub fn takes(self, key: Lit, before: Lit) -> bool {
        let Some((op, negated)) = key.ty().as_scalar().map(|s| self.prefers(s)) else { return false };
        let side = |l: Lit| if negated { Op::Neg.eval(&[l]) } else { Ok(l) };
        let (Ok(key), Ok(before)) = (side(key), side(before)) else { return false };
        op.eval(&[key, before]) == Ok(Lit::Bool(true))
    }
}

/// `eq`: floats by value (NaN equals nothing, 0.0 equals -0.0), the rest by identity.
fn same(a: Lit, b: Lit) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

macro_rules! float_ops {
    ($one:ident, $two:ident, $t:ty, $lit:path, $f:ident ($($width:tt)*)) => {
        fn $one(op: Op, a: $t) -> Result<Lit, Failure> {
            Ok($lit(match op {
                Op::Neg => -a,
                Op::Abs => a.abs(),
                Op::Truncate => return Ok(Lit::int(a as i64)),
                _ => match op.row().value {
                    Value::One($($width)*) => $f(a),
                    Value::Own | Value::Two(..) => return Err(Failure::Types),
                },
            }))
        }

        fn $two(op: Op, a: $t, b: $t) -> Result<Lit, Failure> {
            Ok($lit(match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                Op::Min => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Op::Max => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                Op::Minimum if a == b => {
                    if a.is_sign_negative() {
                        a
                    } else {
                        b
                    }
                }
                Op::Maximum if a == b => {
                    if a.is_sign_negative() {
                        b
                    } else {
                        a
                    }
                }
                // No order holds of what is no number; the sum is none, either.
                Op::Minimum | Op::Maximum if a.is_nan() || b.is_nan() => a + b,
                Op::Minimum => a.min(b),
                Op::Maximum => a.max(b),
                Op::Precedes if a.is_nan() || b.is_nan() => return Ok(Lit::Bool(!b.is_nan())),
                Op::Precedes => {
                    let zeros = a == b && a.is_sign_negative() && !b.is_sign_negative();
                    return Ok(Lit::Bool(a < b || zeros));
                }
                Op::Lt => return Ok(Lit::Bool(a < b)),
                Op::Gt => return Ok(Lit::Bool(a > b)),
                Op::Lte => return Ok(Lit::Bool(a <= b)),
                Op::Gte => return Ok(Lit::Bool(a >= b)),
                _ => match op.row().value {
                    Value::Two($($width)*) => $f(a, b),
                    Value::Own | Value::One(..) => return Err(Failure::Types),
                },
            }))
        }
    };
}

float_ops!(float1, float2, f64, Lit::float, f(f, _));
float_ops!(single1, single2, f32, Lit::float32, f(_, f));

fn int2(op: Op, s: Scalar, a: i64, b: i64) -> Result<Lit, Failure> {
    let int = |v: i64| Ok(Lit::Int(s, s.wrap(v)));
    match op {
        Op::Add => int(a.wrapping_add(b)),
        Op::Sub => int(a.wrapping_sub(b)),
        Op::Mul => int(a.wrapping_mul(b)),
        _ if op.divides() && b == 0 => Err(Failure::DivisionByZero),
        Op::Div => int(a.wrapping_div(b)),
        Op::Mod => int(a.wrapping_rem(b)),
        Op::FloorDiv => {
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            int(if r != 0 && (r < 0) != (b < 0) { q.wrapping_sub(1) } else { q })
        }
        Op::FloorMod => {
            let r = a.wrapping_rem(b);
            int(if r != 0 && (r < 0) != (b < 0) { r.wrapping_add(b) } else { r })
        }
        Op::BitAnd => int(a & b),
        Op::BitOr => int(a | b),
        Op::BitXor => int(a ^ b),
        // Amounts count modulo the width. Literals are extended by their sign where they have one.
        Op::Shl => int(a.wrapping_shl(b as u32 & (s.bits() - 1))),
        Op::Shr => int(a.wrapping_shr(b as u32 & (s.bits() - 1))),
        Op::Min | Op::Minimum => int(a.min(b)),
        Op::Max | Op::Maximum => int(a.max(b)),
        Op::Lt | Op::Precedes => Ok(Lit::Bool(a < b)),
        Op::Gt => Ok(Lit::Bool(a > b)),
        Op::Lte => Ok(Lit::Bool(a <= b)),
        Op::Gte => Ok(Lit::Bool(a >= b)),
        _ => Err(Failure::Types),
    }
}

/// The reference language's hash of an integer to [0, 1): the `Ranhash` of Numerical Recipes.
pub fn ranhash(x: i64) -> f64 {
    let mut v = (x as u64).wrapping_mul(3935559000370003845).wrapping_add(2691343689449507681);
    v ^= v >> 21;
    v ^= v << 37;
    v ^= v >> 4;
    v = v.wrapping_mul(4768777513237032717);
    v ^= v << 20;
    v ^= v >> 41;
    v ^= v << 5;
    5.421_010_862_427_522e-20 * (v as f64)
}
