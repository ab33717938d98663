//! Sequences of rewrites, found by search: states are terms with lets, moves are rules at places.
//!
//! An e-graph holds all equal terms at once but no bindings, and stops where it is full. This engine
//! goes from term to term, through dearer ones where need be, and moves lets and calls as it moves
//! anything else. Every move keeps the meaning and adds no failure, so any state may be returned.

mod bindings;
mod costs;
mod matching;
mod oracle;
pub mod optimize;
mod rewrites;
mod space;
pub mod value;

pub use optimize::{Engine, optimize};
