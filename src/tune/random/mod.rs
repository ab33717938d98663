//! Seeds become random pipelines of images and tensors: programs, as text, of which a model of costs learns.
//!
//! A pipeline is a chain of stages, each over what the one before gave: elements, stencils with and without borders, pools,
//! strides, convolutions, scans, reductions, products, normalizations, tables. It is written in the language as people write it,
//! so nothing here knows terms or schedules. The same seed gives the same text; no program of the corpus is read.

mod elements;
mod making;
mod neighbours;
mod pipeline;
mod sums;
mod tensor;

pub use pipeline::{Pipeline, VERSION};
