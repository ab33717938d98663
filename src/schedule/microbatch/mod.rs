//! Sums over points of what has many elements at each of them, a gradient over examples, say: a batch of points is computed at a
//! time, and added to the sums before the next one, so that tables of points stay in a near cache and no memory is taken for all
//! of them. Terms are added in the order of the points, whatever the length of a batch.
//!
//! `members.rs` says which stages are computed so, `steps.rs` how. It must not know what kernels there are, nor how loops become
//! text.

mod members;
mod steps;

pub(super) use members::candidates;
pub(super) use steps::choose;
