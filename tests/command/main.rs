//! Tests of the binary as its users meet it, what it writes, and the house it comes from.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod cache;
mod cli;
mod examples;
mod images;
mod picture;
mod readme;
mod report;
mod tidy;
