//! Sequences of rewrites, found by search: states are terms, moves are rules at places.
//!
//! An e-graph holds all equal terms at once, and stops where it is full. This engine goes from term to
//! term, through dearer ones where need be. Either states have lets and calls, and moves bind and inline
//! as they rewrite anything else; or they have none, and lets are placed where they cost least. Every move
//! keeps the meaning and adds no failure, so any state may be returned.

pub mod bindings;
pub mod costs;
pub mod matching;
pub mod oracle;
pub mod optimize;
pub mod params;
mod placed;
pub mod rewrites;
pub mod space;
pub mod value;

pub use optimize::{Agent, Bind};
