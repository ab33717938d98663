//! Tests of searches of schedules, the models that lead them, and what they measure.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod complete;
mod estimates;
mod features;
mod joint;
mod measured;
mod mlp;
mod pipelines;
mod searched;
mod toy;
mod train;
mod tune;
