//! What a search may expect of a term: a graph network predicts by how much rewriting will lower its cost
//! (Knossos, Section 3.2).
//!
//! `vocabulary.rs` and `encode.rs` make a graph of a term, `batch.rs` one of many graphs, `network.rs`
//! predictions of that, `weights.rs` files. `train.rs` lets a network learn from searches, in which
//! `lesson.rs` keeps what one program taught; the gradients are libtorch's (`torch.rs`, with the feature
//! `torch`). It must not know how a search makes use of what is predicted.

pub mod batch;
mod checkpoint;
pub mod encode;
pub mod fit;
mod lesson;
pub mod network;
pub mod settings;
#[cfg(feature = "torch")]
pub mod torch;
pub mod train;
mod vocabulary;
pub mod weights;

pub use network::{Network, Setting};

use super::space::State;
use crate::ir::{Id, Terms};
use encode::{Graph, graph};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Predictions of a network, each made once.
pub struct Valuing<'a> {
    network: &'a Network,
    /// What is predicted of a term, for each number of moves left, the first 1.
    known: FxHashMap<Id, Box<[f32]>>,
}

/// Terms are predicted together so many at a time, each group by one thread. It does not depend on the
/// number of threads, and their states fit into a cache.
const GROUP: usize = 16;

impl<'a> Valuing<'a> {
    /// With a network.
    pub fn new(network: &'a Network) -> Valuing<'a> {
        Valuing { network, known: FxHashMap::default() }
    }

    /// By how much the cost of each state is expected to fall from there on, in the unit of the costs: the mean
    /// of what is predicted for 1, 2, … moves, up to those that are left. `cost` knows what subterms cost on
    /// their own, where the model does.
    ///
    /// The paper takes the prediction for all moves that are left. It is nearly the same for all states from
    /// which the best one can be reached in time, so it does not say which of them is nearer; the mean does.
    pub fn values(
        &mut self,
        terms: &Terms,
        states: &[State],
        costs: &[f64],
        depth: usize,
        cost: &dyn Fn(Id) -> Option<f64>,
    ) -> Vec<f64> {
        self.predict(terms, states, cost);
        let one = |(state, cost): (&State, &f64)| {
            let left = depth.saturating_sub(state.depth).min(self.network.setting.steps);
            let rates = self.known.get(&state.id).map_or(&[] as &[f32], |r| r);
            let falls = rates.iter().take(left).enumerate().map(|(k, rate)| fall(*cost, *rate, k + 1));
            falls.sum::<f64>() / left.max(1) as f64
        };
        states.iter().zip(costs).map(one).collect()
    }

    fn predict(&mut self, terms: &Terms, states: &[State], cost: &dyn Fn(Id) -> Option<f64>) {
        let mut new: Vec<Id> = states.iter().map(|s| s.id).filter(|id| !self.known.contains_key(id)).collect();
        new.sort_unstable();
        new.dedup();
        let graphs: Vec<Graph> = new.iter().map(|id| graph(terms, *id, cost)).collect();
        let groups: Vec<&[Graph]> = graphs.chunks(GROUP).collect();
        let predict = |group: &&[Graph]| self.network.predict(&batch::Batch::of(*group));
        let rates: Vec<Vec<f32>> = match groups.len() {
            0 | 1 => groups.iter().map(predict).collect(),
            _ => groups.par_iter().map(predict).collect(),
        };
        let each = rates.iter().flat_map(|group| group.chunks(self.network.setting.steps));
        self.known.extend(new.iter().copied().zip(each.map(Box::from)));
    }
}

/// The fall of a cost that is predicted at a rate for so many moves. Rates are logarithms: a rate of r means
/// that every move divides the cost by exp(r) in the mean. No term can be expected to get dearer, since it
/// may be left as it is.
fn fall(cost: f64, rate: f32, moves: usize) -> f64 {
    let total = f64::from(rate) * moves as f64;
    if cost.is_finite() && total > 0.0 { -cost * (-total).exp_m1() } else { 0.0 }
}
