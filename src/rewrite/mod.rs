//! Terms are rewritten by rules: equality saturation, and searches for sequences of rewrites.
//!
//! A definition's body becomes let-free, is explored in an e-graph, extracted, and its shared and
//! loop-invariant parts are bound by lets again.

pub mod audit;
pub mod egraph;
pub mod regions;
pub mod separate;
pub mod explain;
pub mod expose;
pub mod factor;
pub mod inline;
pub mod tabulate;
pub mod accumulate;
pub mod agent;
pub mod simplify;
