//! Tests of terms become cheaper terms: rules and their check, searches, extraction, costs, and derivations that replay.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod accumulate;
mod agent;
mod assume;
mod costs;
mod derivations;
mod extraction;
mod factor;
mod lemmas;
mod optimized;
mod prover;
mod regions;
mod replay;
mod rules;
mod search;
mod simplify;
mod spelled;
mod tabulated;
mod value;
