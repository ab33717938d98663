//! Counted work becomes seconds: weights that are stated for a common processor, and fitted to what was measured.

use super::work::{PARTS, Work};

/// Seconds of a unit of each part.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    weights: [f64; PARTS.len()],
}

/// Cycles of a unit of each part, and how long a cycle is. A line comes from the second cache in a few cycles, since it is
/// asked for ahead; the last cache and memory are bound by their bandwidth.
const CYCLES: [f64; PARTS.len()] = [1.0, 2.0, 4.0, 7.0, 1.5, 20_000.0, 0.4];
const CYCLE: f64 = 0.33e-9;

/// How much the stated weights count beside measurements.
const PRIOR: f64 = 1e-4;
/// Rounds of coordinate descent.
const ROUNDS: usize = 200;

impl Default for Model {
    fn default() -> Model {
        Model { weights: CYCLES.map(|c| c * CYCLE) }
    }
}

impl Model {
    /// The seconds that work is expected to take.
    pub fn seconds(&self, work: &Work) -> f64 {
        work.0.iter().zip(&self.weights).map(|(n, w)| n * w).sum()
    }

    /// The weights, none negative, that give measured seconds best: the sum of squares of relative errors is least, with
    /// the stated weights as a prior.
    pub fn fitted(samples: &[(Work, f64)]) -> Model {
        let stated = Model::default().weights;
        let mut weights = stated;
        // Each row in units of what was measured, so that errors are relative.
        let rows: Vec<[f64; PARTS.len()]> =
            samples.iter().map(|(work, seconds)| work.0.map(|n| n / seconds.max(1e-9))).collect();
        for _ in 0..ROUNDS {
            for k in 0..weights.len() {
                let (mut top, mut bottom) = (0.0, 0.0);
                for row in &rows {
                    let others: f64 = (0..weights.len()).filter(|j| *j != k).map(|j| row[j] * weights[j]).sum();
                    top += row[k] * (1.0 - others);
                    bottom += row[k] * row[k];
                }
                let prior = PRIOR / (stated[k] * stated[k]);
                weights[k] = ((top + prior * stated[k]) / (bottom + prior)).max(0.0);
            }
        }
        Model { weights }
    }
}
