//! What makes gradients, whatever it is.

use super::batch::Batch;
use super::network::Network;
use ndarray::Array2;

/// Changes weights so that predictions get better.
pub trait Fit {
    /// One step on a batch and the rates to predict, one row a graph; the loss before it.
    fn step(&mut self, batch: &Batch, rates: &Array2<f32>) -> f32;
    /// The network that was learned so far.
    fn network(&self) -> Network;
    /// All that the next step depends on, beside that network: the number of steps made, and [`TABLES`] tables for
    /// each of its tensors, of the same size.
    fn state(&self) -> (u32, Vec<Array2<f32>>);
    /// Goes on from a state with the network that it was with.
    fn restore(&mut self, network: &Network, state: (u32, Vec<Array2<f32>>));
}

/// Tables that a state has for each tensor of the network.
pub const TABLES: usize = 3;

impl Fit for Box<dyn Fit> {
    fn step(&mut self, batch: &Batch, rates: &Array2<f32>) -> f32 {
        self.as_mut().step(batch, rates)
    }

    fn network(&self) -> Network {
        self.as_ref().network()
    }

    fn state(&self) -> (u32, Vec<Array2<f32>>) {
        self.as_ref().state()
    }

    fn restore(&mut self, network: &Network, state: (u32, Vec<Array2<f32>>)) {
        self.as_mut().restore(network, state);
    }
}
