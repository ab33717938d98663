//! Bounds of numbers, and what operations make of them.
//!
//! They are over the reals; it must not know of which terms they are.

use crate::ir::Op;
use crate::ir::op::Bounds as Stated;

/// Bounds of a number.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At least this.
    pub lo: f64,
    /// At most this.
    pub hi: f64,
    /// Known not to be 0.
    pub nonzero: bool,
}

/// Of what nothing is known.
pub(super) const ANY: Bounds = Bounds { lo: f64::NEG_INFINITY, hi: f64::INFINITY, nonzero: false };

/// Of a number that is at least the one and at most the other.
pub(super) fn between(lo: f64, hi: f64) -> Bounds {
    if lo.is_nan() || hi.is_nan() { ANY } else { Bounds { lo, hi, nonzero: lo > 0.0 || hi < 0.0 } }
}

impl Bounds {
    /// Of an integer that is not this.
    pub(super) fn without(self, value: f64) -> Bounds {
        let (lo, hi) = (self.lo + f64::from(self.lo == value), self.hi - f64::from(self.hi == value));
        Bounds { lo, hi, nonzero: self.nonzero || value == 0.0 }
    }
}

/// Of one of two numbers.
pub(super) fn hull(a: Bounds, b: Bounds) -> Bounds {
    Bounds { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), nonzero: a.nonzero && b.nonzero }
}

/// Bounds of an operation's value. `float` says of what type it is: a quotient of integers
/// truncates, and may be 0.
pub(super) fn operation(op: Op, r: &[Bounds], square: bool, float: bool) -> Bounds {
    let positive = between(0.0, f64::INFINITY);
    let negated = |b: Bounds| Bounds { lo: -b.hi, hi: -b.lo, nonzero: b.nonzero };
    match op {
        Op::Add | Op::Sub => {
            let (a, b) = (r[0], if op == Op::Sub { negated(r[1]) } else { r[1] });
            let out = between(a.lo + b.lo, a.hi + b.hi);
            // The sum of two numbers of one sign is 0 only where both are.
            let alike = a.lo >= 0.0 && b.lo >= 0.0 || a.hi <= 0.0 && b.hi <= 0.0;
            Bounds { nonzero: out.nonzero || alike && (a.nonzero || b.nonzero), ..out }
        }
        Op::Mul if square => {
            let top = r[0].lo.abs().max(r[0].hi.abs());
            Bounds { nonzero: r[0].nonzero, ..between(0.0, top * top) }
        }
        Op::Mul => {
            let corner = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
            let (a, b) = (r[0], r[1]);
            let all = [corner(a.lo, b.lo), corner(a.lo, b.hi), corner(a.hi, b.lo), corner(a.hi, b.hi)];
            let (lo, hi) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            Bounds { nonzero: a.nonzero && b.nonzero, ..between(lo, hi) }
        }
        Op::Neg => negated(r[0]),
        Op::Div if float && r[0].lo >= 0.0 && r[1].lo >= 0.0 && r[1].nonzero => {
            Bounds { nonzero: r[0].nonzero, ..positive }
        }
        Op::Div if float => Bounds { nonzero: r[0].nonzero && r[1].nonzero, ..ANY },
        // A quotient of integers is no further from 0 than what is divided.
        Op::Div | Op::FloorDiv => {
            let top = r[0].lo.abs().max(r[0].hi.abs());
            let least = if r[0].lo >= 0.0 && r[1].lo >= 0.0 { 0.0 } else { -top };
            Bounds { nonzero: false, ..between(least, top) }
        }
        Op::Min | Op::Minimum => {
            Bounds { nonzero: r[0].nonzero && r[1].nonzero, ..between(r[0].lo.min(r[1].lo), r[0].hi.min(r[1].hi)) }
        }
        Op::Max | Op::Maximum => {
            let out = between(r[0].lo.max(r[1].lo), r[0].hi.max(r[1].hi));
            Bounds { nonzero: out.nonzero || r[0].nonzero && r[1].nonzero, ..out }
        }
        Op::Abs => {
            let out = between(r[0].lo.max(-r[0].hi).max(0.0), r[0].lo.abs().max(r[0].hi.abs()));
            Bounds { nonzero: out.nonzero || r[0].nonzero, ..out }
        }
        Op::ToFloat => r[0],
        Op::Select => hull(r[1], r[2]),
        Op::Mod | Op::FloorMod if r[0].lo >= 0.0 && r[1].lo > 0.0 => between(0.0, r[0].hi.min(r[1].hi - 1.0)),
        Op::FloorMod if r[1].lo > 0.0 => between(0.0, r[1].hi - 1.0),
        Op::BitAnd if r[0].lo >= 0.0 && r[1].lo >= 0.0 => between(0.0, r[0].hi.min(r[1].hi)),
        Op::Shr if r[0].lo >= 0.0 => between(0.0, r[0].hi),
        _ => match op.row().bounds {
            Stated::Any | Stated::Own => ANY,
            Stated::Within(lo, hi) => between(lo, hi),
            Stated::Positive => Bounds { nonzero: true, ..positive },
            Stated::Root => Bounds { nonzero: r[0].nonzero, ..positive },
        },
    }
}
