//! What code is made for: widths and counts of a processor, read from this one or stated.
//!
//! It knows numbers alone; which instructions they stand for is the compiler's matter.

use crate::ir::Scalar;

/// A processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Bytes of its widest vectors: a power of two, at least 8.
    pub vector_bytes: u32,
    /// Threads that run at once.
    pub threads: usize,
}

impl Machine {
    /// The processor that this program runs on.
    pub fn host() -> Machine {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Machine { vector_bytes: vector_bytes(), threads }
    }

    /// How many numbers of a type a vector holds; at least 2.
    pub fn lanes(&self, ty: Scalar) -> u32 {
        (self.vector_bytes / ty.bytes()).max(2)
    }
}

#[cfg(target_arch = "x86_64")]
fn vector_bytes() -> u32 {
    use std::arch::is_x86_feature_detected as has;
    match () {
        () if has!("avx512f") && has!("avx512dq") && has!("avx512bw") => 64,
        () if has!("avx") => 32,
        () => 16,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_bytes() -> u32 {
    16
}
