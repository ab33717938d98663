//! Affine facts: linear forms over indices and sizes.
//!
//! A form is generic in its atoms, so that any layer that has indices can use it; it knows no terms, stages or nests.
//! The replayer of derivations keeps arithmetic of its own, on purpose: a checker shares no code with what it checks.

mod linear;

pub use linear::Linear;
