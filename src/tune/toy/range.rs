//! Ranges of indices, and arithmetic of them.

/// The least and the greatest index, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The least.
    pub lo: i64,
    /// The greatest.
    pub hi: i64,
}

impl Range {
    /// All indices of a dimension.
    pub fn all(extent: i64) -> Range {
        Range { lo: 0, hi: extent - 1 }
    }

    /// How many indices there are.
    pub fn extent(self) -> i64 {
        (self.hi - self.lo + 1).max(0)
    }

    /// Both, and all between.
    #[must_use]
    pub fn with(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(super) fn plus(self, other: Range, times: i64) -> Range {
        let (a, b) = (other.lo.saturating_mul(times), other.hi.saturating_mul(times));
        Range { lo: self.lo.saturating_add(a.min(b)), hi: self.hi.saturating_add(a.max(b)) }
    }

    pub(super) fn each(self, other: Range, of: impl Fn(i64, i64) -> i64) -> Range {
        Range { lo: of(self.lo, other.lo), hi: of(self.hi, other.hi) }
    }

    pub(super) fn map(self, of: impl Fn(i64) -> i64) -> Range {
        Range { lo: of(self.lo), hi: of(self.hi) }
    }

    /// What is left of a division by a positive number: exact where all are in one part.
    pub(super) fn left(self, n: i64) -> Range {
        match self.lo >= 0 && self.lo / n == self.hi / n {
            true => self.map(|i| i % n),
            false => Range { lo: if self.lo < 0 { 1 - n } else { 0 }, hi: n - 1 },
        }
    }
}
