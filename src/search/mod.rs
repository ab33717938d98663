//! Searches over any space of decisions: greedy, random, beam, best-first, A*, MB2FBS, MCTS.
//!
//! A space says what the moves are, a cost says how good a state is; each search is written once over
//! both. Nothing here knows terms, schedules or clocks. Searches are deterministic: ties go to the
//! state that was made first, and chance comes from a seed.

mod algorithm;
mod astar;
mod frontier;
mod mb2fbs;
mod mcts;
mod run;
mod space;
pub mod synthetic;
mod walk;

pub use algorithm::Algorithm;
pub use astar::{Astar, astar};
pub use mb2fbs::{Mb2fbs, Priority, mb2fbs};
pub use mcts::{Mcts, mcts};
pub use space::{Cost, Found, Limits, Space, Tally};
pub use walk::{greedy, random};
