//! Counted work becomes seconds: terms times weights that are stated for a common processor, and fitted to what was measured.
//!
//! The terms are the parts of the work of a whole program, or what a network expects each term to cost; a model of either kind
//! is corrected by measurements in the same way.

use super::features::Features;
use super::mlp::Network;
use super::mlp::network::Input;
use super::mlp::terms::{TERMS, stated};
use super::work::{PARTS, Work};
use std::sync::Arc;

/// What says how long a schedule takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// What says what terms cost; nothing where they are the parts of the work.
    network: Option<Arc<Network>>,
    /// Seconds of a unit of each term, as stated, and as measurements correct it.
    stated: Vec<f64>,
    weights: Vec<f64>,
}

/// Cycles of a unit of each part, and how long a cycle is. A line comes from the second cache in a few cycles, since it is
/// asked for ahead; the last cache and memory are bound by their bandwidth.
const CYCLES: [f64; PARTS.len()] = [1.0, 2.0, 4.0, 7.0, 1.5, 20_000.0, 0.4];
const CYCLE: f64 = 0.33e-9;

/// The least weight that a network begins with, as a share of the stated one.
const LEAST: f64 = 0.02;
/// How much the stated weights count beside measurements.
const PRIOR: f64 = 1e-4;
/// Rounds of coordinate descent.
const ROUNDS: usize = 200;

impl Default for Model {
    /// The linear model.
    fn default() -> Model {
        let weights = CYCLES.map(|c| c * CYCLE).to_vec();
        Model { network: None, stated: weights.clone(), weights }
    }
}

impl Model {
    /// The model that a network is.
    pub fn learned(network: Network) -> Model {
        let weights = vec![1.0; TERMS];
        Model { network: Some(Arc::new(network)), stated: weights.clone(), weights }
    }

    /// A network that has learned nothing: it expects what the linear model does, whose weights may be fitted. A weight that
    /// was fitted to nothing is a small one, so that it can grow where the network finds it of use.
    pub fn untrained(&self, seed: u64) -> Network {
        let linear = std::array::from_fn(|k| {
            let stated = CYCLES[k] * CYCLE;
            self.weights.get(k).filter(|_| self.network.is_none()).map_or(stated, |w| w.max(LEAST * stated))
        });
        Network::new(stated(&linear), seed)
    }

    /// Whether it is told of the features of stages.
    pub fn reads_features(&self) -> bool {
        self.network.is_some()
    }

    /// The terms of a schedule: the work, or what the network expects of the features of its stages.
    pub fn terms(&self, work: &Work, features: &[Features]) -> Vec<f64> {
        let Some(network) = &self.network else { return work.0.to_vec() };
        let mut out = vec![0.0; TERMS];
        for f in features {
            out.iter_mut().zip(network.costs(&Input::of(f))).for_each(|(sum, n)| *sum += n);
        }
        out
    }

    /// The seconds that terms are expected to take.
    pub fn seconds(&self, terms: &[f64]) -> f64 {
        terms.iter().zip(&self.weights).map(|(n, w)| n * w).sum()
    }

    /// The same model with the weights, none negative, that give measured seconds best: the sum of squares of relative errors
    /// is least, with the stated weights as a prior.
    #[must_use]
    pub fn fitted(&self, samples: &[(Vec<f64>, f64)]) -> Model {
        let mut weights = self.stated.clone();
        // Each row in units of what was measured, so that errors are relative.
        let row =
            |(terms, seconds): &(Vec<f64>, f64)| -> Vec<f64> { terms.iter().map(|n| n / seconds.max(1e-9)).collect() };
        let rows: Vec<Vec<f64>> = samples.iter().map(row).collect();
        for _ in 0..ROUNDS {
            for k in 0..weights.len() {
                let (mut top, mut bottom) = (0.0, 0.0);
                for row in &rows {
                    let others: f64 = (0..weights.len()).filter(|j| *j != k).map(|j| row[j] * weights[j]).sum();
                    top += row[k] * (1.0 - others);
                    bottom += row[k] * row[k];
                }
                let prior = PRIOR / (self.stated[k] * self.stated[k]);
                weights[k] = ((top + prior * self.stated[k]) / (bottom + prior)).max(0.0);
            }
        }
        Model { weights, ..self.clone() }
    }
}
