//! Files and words become values, and values become files: source texts, arguments, results, sections of pages.
//!
//! It must not know what a function computes: a parameter is a name and a type. Every output file
//! is complete or untouched: it is written beside its place and renamed.

mod argument;
mod files;
mod flat;
mod image;
mod npy;
mod output;
mod section;
mod short;
pub mod tensors;

pub use argument::argument;
pub use files::{bytes, source};
pub use output::Output;
pub use section::section;
pub use short::shortened;
