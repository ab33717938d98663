//! Bounds of numbers: arithmetic of intervals, with whether 0 is among them.

/// Bounds of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// At least this.
    pub lo: f64,
    /// At most this.
    pub hi: f64,
    /// Known not to be 0.
    pub nonzero: bool,
}

impl Range {
    /// Nothing is known.
    pub const ALL: Range = Range { lo: f64::NEG_INFINITY, hi: f64::INFINITY, nonzero: false };
    /// No tensor has a larger size: memory ends far below.
    pub const SIZE: f64 = (1u64 << 40) as f64;
    /// Integers below this are exact as floats.
    pub const EXACT: f64 = (1u64 << 53) as f64;

    /// From bounds.
    pub fn new(lo: f64, hi: f64) -> Range {
        Range { lo, hi, nonzero: false }.tidy()
    }

    /// One value.
    pub fn point(v: f64) -> Range {
        if v.is_nan() { Range::ALL } else { Range::new(v, v) }
    }

    /// With what the bounds say about 0.
    pub fn tidy(self) -> Range {
        if self.lo.is_nan() || self.hi.is_nan() {
            return Range::ALL;
        }
        Range { nonzero: self.nonzero || self.lo > 0.0 || self.hi < 0.0, ..self }
    }

    /// Either.
    pub fn hull(self, o: Range) -> Range {
        Range { lo: self.lo.min(o.lo), hi: self.hi.max(o.hi), nonzero: self.nonzero && o.nonzero }
    }

    /// Both.
    pub fn meet(self, o: Range) -> Range {
        Range { lo: self.lo.max(o.lo), hi: self.hi.min(o.hi), nonzero: self.nonzero || o.nonzero }
    }

    /// Of the negated value.
    pub fn negated(self) -> Range {
        Range { lo: -self.hi, hi: -self.lo, nonzero: self.nonzero }
    }

    /// Of a sum.
    pub fn plus(self, o: Range) -> Range {
        let (lo, hi) = (self.lo + o.lo, self.hi + o.hi);
        // The sum of two nonnegative numbers is 0 only where both are.
        let both = self.lo >= 0.0 && o.lo >= 0.0 || self.hi <= 0.0 && o.hi <= 0.0;
        Range { lo, hi, nonzero: both && (self.nonzero || o.nonzero) }.tidy()
    }

    /// Of a product.
    pub fn times(self, o: Range) -> Range {
        let corner = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let corners = [corner(self.lo, o.lo), corner(self.lo, o.hi), corner(self.hi, o.lo), corner(self.hi, o.hi)];
        let lo = corners.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Range { lo, hi, nonzero: self.nonzero && o.nonzero }
    }
}
