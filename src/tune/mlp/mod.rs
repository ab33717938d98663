//! Features of stages become seconds: a small network says what a unit of each counted term costs there.
//!
//! After Adams et al. (2019): what is counted of a stage ([`terms`]) is multiplied with coefficients, none negative, that the
//! network predicts from features of what is computed and of how it is scheduled; the costs of all stages are added. So what is
//! known of machines stays in the terms, and the network only says how they weigh where. `train.rs` learns the weights from
//! measurements, by gradients that `network.rs` makes itself: there are some thousand weights. It must not know what measures.

pub mod network;
pub mod terms;
pub mod train;
pub mod weights;

pub use network::Network;
