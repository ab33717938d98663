//! Tests of programs as stages, schedules and nests, compiled: every one has the interpreter's bits.
//!
//! One crate, so that it is linked once and its tests share all cores.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod borders;
mod calls;
mod chains;
mod columns;
mod cut;
mod fuse;
mod gather;
mod gradients;
mod hand;
mod in_place;
mod indirect;
mod instances;
mod lanes;
mod layout;
mod microbatch;
mod native;
mod nests;
mod parts;
mod picks;
mod pictures;
mod points;
mod proofs;
mod real;
mod rewritten;
mod rows;
mod schedule;
mod schedules;
mod sites;
mod sliding;
mod stages;
mod states;
mod strides;
mod strips;
mod tiles;
mod triangles;
mod unify;
mod unswitch;
mod vectorize;
