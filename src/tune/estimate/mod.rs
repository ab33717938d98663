//! Decisions about stages become estimated work without a nest: what a decision changes is the decided stage and those that
//! read it, so that judging a schedule takes microseconds, however many stages there are.
//!
//! After the state of Adams et al. (2019): boxes of one representative iteration, from readers to what they read. It must not
//! be trusted: what a search returns is lowered, and judged anew.

pub mod cost;
pub mod guess;
pub mod known;
pub mod loops;
pub mod reads;
pub mod sequence;
pub mod shape;
pub mod space;

pub use guess::Guess;
pub use space::{Estimates, State};
