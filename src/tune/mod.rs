//! Searches of schedules: decisions about stages become schedules, and models say which are worth measuring.
//!
//! A schedule changes no bit, whatever is decided here; so models may guess. This layer must not know of compilers or
//! clocks: what was measured comes in as numbers.

pub mod edits;
pub mod estimate;
pub mod example;
pub mod explore;
pub mod facts;
pub mod features;
pub mod form;
pub mod mlp;
pub mod model;
pub mod owner;
pub mod parts;
pub mod random;
pub mod ranking;
pub mod record;
pub mod traffic;
pub mod toy;
pub mod tree;
pub mod work;

pub use model::Model;
pub use tree::{Choice, Judge, Judged, Move, Place, State, Tree};
