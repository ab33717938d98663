//! What the published cost counts, and its weights.

/// What is counted of one point, or of a tree.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counts {
    /// Numbers that there is memory for, each storage node once.
    pub memory: f64,
    /// Intermediate results that are loaded from memory.
    pub loads: f64,
    /// Intermediate results that are stored.
    pub stores: f64,
    /// Operations but those of the next group; not those of indices.
    pub arithmetic: f64,
    /// Roots and elementary functions.
    pub mathematics: f64,
}

/// The published weights, in the order of [`Counts`].
pub const WEIGHTS: Counts = Counts { memory: 0.1, loads: 0.5, stores: 0.5, arithmetic: 1.0, mathematics: 10.0 };

impl Counts {
    /// The cost, by the published weights.
    pub fn cost(&self) -> f64 {
        let w = WEIGHTS;
        self.memory * w.memory
            + self.loads * w.loads
            + self.stores * w.stores
            + self.arithmetic * w.arithmetic
            + self.mathematics * w.mathematics
    }

    /// Adds other ones, so many times.
    pub fn add(&mut self, other: &Counts, times: f64) {
        self.memory += other.memory * times;
        self.loads += other.loads * times;
        self.stores += other.stores * times;
        self.arithmetic += other.arithmetic * times;
        self.mathematics += other.mathematics * times;
    }

    /// Operations.
    pub fn operations(&self) -> f64 {
        self.arithmetic + self.mathematics
    }
}
