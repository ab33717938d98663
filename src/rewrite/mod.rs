//! Terms are rewritten by rules. One engine so far: equality saturation.
//!
//! A definition's body becomes let-free, is explored in an e-graph, extracted, and its shared and
//! loop-invariant parts are bound by lets again.

pub mod audit;
pub mod egraph;
pub mod inline;
pub mod tabulate;
