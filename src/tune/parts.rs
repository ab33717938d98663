//! The parts of counted work.

/// What is counted.
pub const PARTS: [&str; 7] =
    ["core", "lines from L2", "lines from L3", "lines from memory", "iterations", "starts", "gathered"];

/// Counted work, by [`PARTS`]; in cycles, lines, iterations, starts of threads and elements.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work(pub [f64; PARTS.len()]);
