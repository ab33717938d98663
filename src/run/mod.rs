//! Compiled programs: the only place that touches compilers, loaded code and the clock.
//!
//! A definition becomes a nest, C++ text, and an object in the cache; calling it turns values into
//! flat buffers and back. It must not know how programs are lowered or optimized.

mod cache;
pub mod child;
mod execute;
mod measure;
pub mod memory;
mod progress;
pub mod roofline;
pub mod solver;
mod toolchain;
mod watch;

pub use execute::Native;
pub use measure::{Timing, seconds};
pub use progress::Progress;
pub use toolchain::Toolchain;
pub use watch::{Interrupt, Watch};
