//! Definitions become their derivatives: forward mode carries tangents along, reverse mode carries
//! adjoints back. Both are source to source on typed terms.
//!
//! Output is ordinary language. Reverse mode keeps the asymptotic cost of the source without any
//! rewriting: an adjoint is kept in contributions that say which element of which variable changes (see
//! `contribution.rs`), so that what a loop reads of a tensor comes back as a loop over elements or as one
//! scatter, never as a sum of tensors of zeros; values that the way back needs again are kept in
//! tables (see `adjoint.rs`). It must not know of rewriting or of costs.
//!
//! Calls of functions of tensors are inlined, so that their loops are seen together with those
//! around them. Other functions get derivatives of their own, by the parameters that matter.

mod adapter;
mod adjoint;
pub mod arguments;
mod backwards;
pub mod check;
mod change;
mod checkpoint;
mod contribution;
mod declared;
mod emit;
mod empty_sums;
mod env;
mod flow;
mod forward;
mod gather;
pub mod hessian;
mod inner;
mod invariant;
pub mod jacobian;
mod keep;
pub mod keeping;
mod kept;
mod leaving;
mod like;
mod loops;
mod make;
mod mode;
mod nested;
mod normal;
mod once;
mod order;
mod outside;
mod parameters;
mod parts;
mod preaccumulate;
mod ragged;
mod recurrence;
mod reduction;
mod requests;
mod reverse;
mod safe;
mod scalar;
mod scatter;
mod scope;
mod sequence;
mod shared;
mod slope;
mod smooth;
mod solve;
mod split;
mod stand_in;
mod sweep;
mod unread;
mod walk;
mod window;
mod written;

pub use flow::has_floats;
pub use make::{Made, Wanted, complete, derive, derive_keeping};
pub use mode::Mode;
use requests::{Request, Requests};
