//! Daedal makes array programs fast: text, typed terms, derivatives, rewriting, loop nests, C++.
//!
//! ```text
//!                            ad           rules, cost, search
//!                            ▲ │                  │
//!                            │ ▼                  ▼
//! text ─ir─▶ forms ─types─▶ typed terms ─────rewrite─────▶ typed terms ─lower─▶ nest ─schedule─▶ nest ─codegen─▶ C++ ─run─▶ numbers
//!                                                 │
//!                                                 └──▶ derivation ─derive─▶ checked, or refused
//! ```
//!
//! Layers in order; each names only those above it. See `docs/architecture.md`.

pub mod diag;
pub mod ir;
pub mod types;
pub mod eval;
pub mod data;
pub mod ad;
pub mod rules;
pub mod derive;
pub mod cost;
pub mod search;
pub mod rewrite;
pub mod affine;
pub mod nest;
pub mod lower;
pub mod stage;
pub mod machine;
pub mod schedule;
pub mod tune;
pub mod codegen;
pub mod run;
pub mod report;
pub mod pipeline;
pub mod cli;
