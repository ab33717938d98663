//! The toy autoscheduler for Halide (Correa, Doenges and Recto, 2019) as published, over our stages: its schedule trees, its
//! transformers, its linear cost, its beam search.
//!
//! What its trees say becomes a list of our steps, so that it runs, is verified, and changes no bit; what our steps cannot say
//! is refused with the reason. It must not know of nests: the published cost counts what trees say, not what code does.

mod boxes;
mod cost;
mod counts;
mod functions;
mod index;
mod range;
mod search;
mod steps;
mod transform;
pub mod tree;

pub use boxes::Boxes;
pub use cost::Costs;
pub use counts::{Counts, WEIGHTS};
pub use functions::{Function, Functions};
pub use range::Range;
pub use search::{BEAM, DEPTH, EVALUATIONS, Found, Judge, State, Toy, search};
pub use transform::{Transformer, transformers};
pub use tree::{Level, Loop, Node, Plan};
