//! Numbers of a nest as ranges: what an expression lies between, where what comes in is stated.
//!
//! A range holds in every run with these numbers; what data decide lies between the ends of its type. Integers are
//! taken for numbers without wrapping: what leaves the integers that floats tell apart has no bounds. It must not know
//! of statements.

use super::{Buf, Expr, Func, Var};
use crate::ir::{Lit, Op, Scalar};

/// The least and the greatest that a number may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// Integers below this are told apart by floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Range {
    /// Anything.
    pub const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };
    /// A truth value.
    const TRUTH: Range = Range { low: 0.0, high: 1.0 };

    /// One number.
    pub fn of(value: f64) -> Range {
        Range { low: value, high: value }.checked()
    }

    /// Numbers between two.
    pub fn new(low: f64, high: f64) -> Range {
        Range { low, high }.checked()
    }

    /// What a number of a type may be.
    pub fn of_type(ty: Scalar) -> Range {
        match ty {
            Scalar::Bool => Range::TRUTH,
            Scalar::U8 | Scalar::U16 | Scalar::U32 => Range::new(0.0, (ty.bits() as f64).exp2() - 1.0),
            _ if ty.is_int() && ty.bits() < 64 => {
                let half = (ty.bits() as f64 - 1.0).exp2();
                Range::new(-half, half - 1.0)
            }
            _ => Range::ANY,
        }
    }

    /// The number, where it is one.
    pub fn point(self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// What is in either.
    #[must_use]
    pub fn or(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    fn checked(self) -> Range {
        let known = |v: f64| v.abs() <= EXACT;
        Range {
            low: if known(self.low) { self.low } else { f64::NEG_INFINITY },
            high: if known(self.high) { self.high } else { f64::INFINITY },
        }
    }

    /// A function that never falls.
    fn rising(self, f: impl Fn(f64) -> f64) -> Range {
        Range::new(f(self.low), f(self.high))
    }

    /// What a function of two numbers, monotone in each of them, gives.
    fn corners(self, other: Range, f: impl Fn(f64, f64) -> f64) -> Range {
        let ends = [f(self.low, other.low), f(self.low, other.high), f(self.high, other.low), f(self.high, other.high)];
        // No bound times 0 is no number.
        if ends.iter().any(|v| v.is_nan()) {
            return Range::ANY;
        }
        Range::new(
            ends.iter().copied().fold(f64::INFINITY, f64::min),
            ends.iter().copied().fold(-f64::INFINITY, f64::max),
        )
    }

    /// Whether one is below another, as a range of truth.
    fn below(self, other: Range) -> Range {
        match (self.high < other.low, self.low >= other.high) {
            (true, _) => Range::of(1.0),
            (_, true) => Range::of(0.0),
            _ => Range::TRUTH,
        }
    }

    fn not(self) -> Range {
        Range { low: 1.0 - self.high, high: 1.0 - self.low }
    }
}

/// What an expression lies between, from what variables and elements of buffers do.
pub fn range(func: &Func, vars: &dyn Fn(Var) -> Range, bufs: &dyn Fn(Buf) -> Range, e: &Expr) -> Range {
    let part = |e: &Expr| range(func, vars, bufs, e);
    match e {
        Expr::Lit(l) => l.to_f64().map_or(Range::ANY, Range::of),
        Expr::Var(v) => vars(*v),
        Expr::Op(op, ty, args) => {
            let each: Vec<Range> = args.iter().map(part).collect();
            exactly(func, *op, args, &each).unwrap_or_else(|| operation(*op, *ty, &each))
        }
        Expr::Cast(to, of) => cast(part(of), func.ty(of), *to),
        Expr::Cond(parts) => match part(&parts[0]).point() {
            Some(c) => part(&parts[if c != 0.0 { 1 } else { 2 }]),
            None => part(&parts[1]).or(part(&parts[2])),
        },
        Expr::Ramp(parts, n) => {
            let steps = part(&parts[1]).corners(Range::new(0.0, f64::from(*n) - 1.0), |a, b| a * b);
            part(&parts[0]).corners(steps, |a, b| a + b)
        }
        Expr::Broadcast(e, _) => part(e),
        Expr::Extract(parts) => part(&parts[0]),
        Expr::PrefixMask(..) | Expr::All(_) => Range::TRUTH,
        Expr::Load(b, _) => bufs(*b),
        // Lanes that are not read are 0.
        Expr::MaskedLoad(b, _) => bufs(*b).or(Range::of(0.0)),
        Expr::PerLane(..) => Range::of_type(func.ty(e)),
    }
}

/// An operation on numbers that are known.
fn exactly(func: &Func, op: Op, args: &[Expr], each: &[Range]) -> Option<Range> {
    let lit = |(e, r): (&Expr, &Range)| {
        let (value, ty) = (r.point()?, func.ty(e));
        Some(if ty == Scalar::Bool { Lit::Bool(value != 0.0) } else { Lit::of(ty, value) })
    };
    let lits = args.iter().zip(each).map(lit).collect::<Option<Vec<Lit>>>()?;
    op.eval(&lits).ok()?.to_f64().map(Range::of)
}

fn operation(op: Op, ty: Scalar, each: &[Range]) -> Range {
    let known = match (op, each) {
        (Op::Add, [a, b]) => a.corners(*b, |a, b| a + b),
        (Op::Sub, [a, b]) => a.corners(*b, |a, b| a - b),
        (Op::Mul, [a, b]) => a.corners(*b, |a, b| a * b),
        (Op::Div, [a, b]) if b.low > 0.0 && ty.is_int() => a.corners(*b, |a, b| (a / b).trunc()),
        (Op::Div, [a, b]) if b.low > 0.0 => a.corners(*b, |a, b| a / b),
        (Op::FloorDiv, [a, b]) if b.low > 0.0 => a.corners(*b, |a, b| (a / b).floor()),
        (Op::FloorMod, [_, b]) if b.low > 0.0 && ty.is_int() => Range::new(0.0, b.high - 1.0),
        (Op::Mod, [a, b]) if b.low > 0.0 && a.low >= 0.0 && ty.is_int() => Range::new(0.0, a.high.min(b.high - 1.0)),
        (Op::Neg, [a]) => Range::new(-a.high, -a.low),
        (Op::Min, [a, b]) => a.corners(*b, f64::min),
        (Op::Max, [a, b]) => a.corners(*b, f64::max),
        (Op::ToFloat, [a]) => *a,
        (Op::Sqrt, [a]) if a.low >= 0.0 => a.rising(f64::sqrt),
        (Op::Floor, [a]) => a.rising(f64::floor),
        (Op::Ceil, [a]) => a.rising(f64::ceil),
        (Op::Truncate, [a]) => a.rising(f64::trunc),
        (Op::Lt, [a, b]) => a.below(*b),
        (Op::Gt, [a, b]) => b.below(*a),
        (Op::Gte, [a, b]) => a.below(*b).not(),
        (Op::Lte, [a, b]) => b.below(*a).not(),
        (Op::Not, [a]) if ty == Scalar::Bool => a.not(),
        (Op::And, [a, b]) if ty == Scalar::Bool => a.corners(*b, f64::min),
        (Op::Or, [a, b]) if ty == Scalar::Bool => a.corners(*b, f64::max),
        (Op::Select, [c, a, b]) => match c.point() {
            Some(c) => {
                if c != 0.0 {
                    *a
                } else {
                    *b
                }
            }
            None => a.or(*b),
        },
        _ => Range::ANY,
    };
    within(known, ty)
}

/// A range in a type, of which arithmetic wraps.
fn within(known: Range, ty: Scalar) -> Range {
    let all = Range::of_type(ty);
    let fits = known.low >= all.low && known.high <= all.high;
    if fits { known } else { all }
}

fn cast(of: Range, from: Scalar, to: Scalar) -> Range {
    match to {
        Scalar::Bool => Range::TRUTH,
        Scalar::F32 => of.rising(|v| f64::from(v as f32)),
        Scalar::F64 => of,
        // What is no number becomes 0.
        _ if from.is_float() => within(of.rising(f64::trunc).or(Range::of(0.0)), to),
        _ => within(of, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::{Buf, Info};

    /// Protects: ranges hold what values may be, and no more where that is plain.
    #[test]
    fn ranges_hold_what_may_be() {
        let mut f = Func::default();
        let (n, k) = (f.fresh("n", Scalar::I64), f.fresh("k", Scalar::I64));
        f.bufs.push(Info::scalar("b", Scalar::I64));
        let of = |v: Var| if v == n { Range::of(10.0) } else { Range::new(2.0, 7.0) };
        let (n, k) = (Expr::Var(n), Expr::Var(k));
        let i64 = |op: Op, a: &Expr, b: &Expr| Expr::Op(op, Scalar::I64, vec![a.clone(), b.clone()]);
        let known = |e: &Expr| {
            let r = range(&f, &of, &|_| Range::ANY, e);
            (r.low, r.high)
        };
        assert_eq!(known(&i64(Op::Sub, &n, &k)), (3.0, 8.0));
        assert_eq!(known(&i64(Op::Mul, &i64(Op::Sub, &k, &Expr::int(4)), &k)), (-14.0, 21.0));
        assert_eq!(known(&i64(Op::Div, &i64(Op::Sub, &k, &n), &Expr::int(3))), (-2.0, -1.0));
        assert_eq!(known(&i64(Op::FloorDiv, &i64(Op::Sub, &k, &n), &Expr::int(3))), (-3.0, -1.0));
        assert_eq!(known(&i64(Op::FloorMod, &k, &n)), (0.0, 9.0));
        assert_eq!(known(&i64(Op::Min, &k, &Expr::int(4))), (2.0, 4.0));
        assert_eq!(known(&i64(Op::Div, &n, &Expr::int(0))), (f64::NEG_INFINITY, f64::INFINITY));
        let load = Expr::Load(Buf(0), Box::new(k.clone()));
        assert_eq!(known(&i64(Op::Add, &load, &n)), (f64::NEG_INFINITY, f64::INFINITY));
        let least = Expr::Op(Op::Lt, Scalar::Bool, vec![k.clone(), n.clone()]);
        assert_eq!(known(&least), (1.0, 1.0));
        assert_eq!(known(&Expr::Cond(Box::new([least, k.clone(), load.clone()]))), (2.0, 7.0));
        let root = Expr::Op(Op::Sqrt, Scalar::F64, vec![Expr::Op(Op::ToFloat, Scalar::F64, vec![k])]);
        assert_eq!(known(&Expr::Cast(Scalar::I64, Box::new(root))), (0.0, 2.0));
        let byte = Expr::Cast(Scalar::U8, Box::new(i64(Op::Mul, &n, &Expr::int(100))));
        assert_eq!(known(&byte), (0.0, 255.0));
    }
}
