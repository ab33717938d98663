//! Nests become C++ text.
//!
//! This layer must not know of terms, compilers or processes.

mod cpp;
mod names;
mod types;
mod unit;
mod vector;
mod work;

pub use unit::{Interface, Unit, parallel, roofline, runtime};
