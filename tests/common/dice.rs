//! Numbers for one test, from its seed alone.

/// The same numbers for the same seed.
pub struct Dice(pub u64);

impl Dice {
    /// A number below another one, or 0 where that is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    /// A place in a list of so many.
    pub fn roll(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// One of a few, if there are any.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.roll(from.len()))
    }

    /// One of a few texts.
    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}
