//! What code is made for: widths, counts and caches of a processor, read from this one or stated.
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
    /// Bytes of the caches of data, nearest first; the last one is that of all cores.
    pub caches: [u64; 3],
}

/// Caches where the system does not tell of them.
const CACHES: [u64; 3] = [32 << 10, 512 << 10, 8 << 20];

impl Machine {
    /// The processor that this program runs on.
    pub fn host() -> Machine {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Machine { vector_bytes: vector_bytes(), threads, caches: caches() }
    }

    /// How many numbers of a type a vector holds; at least 2.
    pub fn lanes(&self, ty: Scalar) -> u32 {
        (self.vector_bytes / ty.bytes()).max(2)
    }
}

/// Bytes of the shortest vectors that are worth their instructions, and their lanes where two of them overlap.
pub const NARROW: i64 = 16;
const FEW: i64 = 4;

/// How many lanes of numbers of so many bytes suit a row that is shorter than a vector: a power of two, of which two that
/// overlap are the row. Where that would be too short, all lanes, most of which stay empty.
pub fn fitting(lanes: i64, bytes: i64, row: i64) -> i64 {
    let short = (FEW.max(NARROW / bytes)..lanes).contains(&row);
    if short { 1 << row.ilog2() } else { lanes }
}

/// Whether this processor multiplies and adds in one operation.
pub fn contracts() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// The caches of the first core, as Linux tells of them.
fn caches() -> [u64; 3] {
    let mut out = CACHES;
    for k in 0..8 {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{k}/{name}");
            std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
        };
        let (Some(level), Some(size), Some(kind)) = (read("level"), read("size"), read("type")) else { continue };
        let kilobytes = size.strip_suffix('K').and_then(|n| n.parse::<u64>().ok());
        if let (Some(at), Some(n)) = (level.parse::<usize>().ok().filter(|l| (1..=3).contains(l)), kilobytes)
            && kind != "Instruction"
        {
            out[at - 1] = n << 10;
        }
    }
    out
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
