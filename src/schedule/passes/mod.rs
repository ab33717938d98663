//! Passes over one function of a nest. `pipeline` says which run, and in which order.
//!
//! Invariant: a pass keeps the bits of every result, the first failure, and that iterations that claim to be
//! independent are.

pub mod aligned;
mod arms;
mod asked;
pub mod choose;
pub mod clamp;
mod common_calls;
pub mod dead;
pub mod divergence;
pub mod in_place;
pub mod interleave;
pub mod name;
mod number;
mod once;
mod places;
pub mod registers;
pub mod share;
pub mod split;
mod stretch;
pub mod vectorize;
