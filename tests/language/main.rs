//! Tests of what programs mean, however they are run, and what is said of wrong ones.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod elementary;
mod errors;
mod extremes;
mod literals;
mod own;
mod programs;
mod properties;
mod random;
mod sizes;
mod tensors;
