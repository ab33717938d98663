//! Tests of derivatives of all kinds, and how much work they take.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod ad;
mod hessian;
mod indices;
mod invariants;
mod jacobian;
mod long;
mod once;
mod recurrence;
mod work;
