//! Nests become C++ text.
//!
//! This layer must not know of terms, compilers or processes.

mod cpp;
mod lanes;
mod names;

pub use cpp::{cpp, entry_name, unit};
