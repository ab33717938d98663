//! The random trees on which MB2FBS was studied: every inner state has equally many children and a
//! cost that is uniform up to its depth; leaves cost more, the more so the greater δ is.

use super::{Cost, Space};

/// A tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tree {
    /// Children of an inner state.
    pub branching: u64,
    /// Depth of the leaves.
    pub depth: usize,
    /// δ: a leaf costs between `depth + δ` and `depth + δ²`.
    pub delta: f64,
    /// Which tree.
    pub seed: u64,
}

/// A state: its number, its depth, and what the way to it costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    number: u64,
    depth: usize,
    cost: f64,
}

impl Tree {
    /// The tree of the published study: 4 children, depth 8, δ = 100.
    pub fn published(seed: u64) -> Tree {
        Tree { branching: 4, depth: 8, delta: 100.0, seed }
    }

    /// The least cost of a leaf.
    pub fn optimum(&self) -> f64 {
        self.least(&self.root())
    }

    fn least(&self, at: &Place) -> f64 {
        if self.terminal(at) {
            return at.cost;
        }
        self.moves(at).iter().map(|by| self.least(&self.apply(at, by))).fold(f64::INFINITY, f64::min)
    }

    /// A number from 0 to 1 that depends on the seed and the state alone (SplitMix64: Steele, Lea and
    /// Flood, 2014).
    fn uniform(&self, number: u64) -> f64 {
        let mut z =
            self.seed.wrapping_mul(0xD1B5_4A32_D192_ED03).wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for factor in [0xBF58_476D_1CE4_E5B9u64, 0x94D0_49BB_1331_11EB] {
            z = (z ^ (z >> 30)).wrapping_mul(factor);
            z ^= z >> 27;
        }
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Space for Tree {
    type State = Place;
    type Move = u64;

    fn root(&self) -> Place {
        Place { number: 0, depth: 0, cost: 0.0 }
    }

    fn moves(&self, at: &Place) -> Vec<u64> {
        if self.terminal(at) { vec![] } else { (0..self.branching).collect() }
    }

    fn apply(&self, at: &Place, by: &u64) -> Place {
        let (number, depth) = (at.number * self.branching + by + 1, at.depth + 1);
        let (from, to) = match depth < self.depth {
            true => (0.0, depth as f64),
            false => (depth as f64 + self.delta, depth as f64 + self.delta * self.delta),
        };
        Place { number, depth, cost: at.cost + from + (to - from) * self.uniform(number) }
    }

    fn terminal(&self, at: &Place) -> bool {
        at.depth >= self.depth
    }

    fn depth(&self, at: &Place) -> usize {
        at.depth
    }

    fn key(&self, at: &Place, _: usize) -> u64 {
        at.number
    }
}

/// What the way to a state costs.
pub struct PathCost;

impl Cost<Tree> for PathCost {
    fn costs(&mut self, _: &Tree, states: &[Place]) -> Vec<f64> {
        states.iter().map(|s| s.cost).collect()
    }
}
