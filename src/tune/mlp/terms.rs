//! What is counted of a stage, in units whose costs a network predicts.
//!
//! These are the parts of the counted work, which know ports, chains of additions, caches and threads already, and what they do
//! not see: vectors and points alone, of which each takes instructions that are in no part, memory that is taken, stages that
//! are entered. The reference has 28 terms of vectors, scalars, loads and bytes in their place; here most of these are in the
//! cycles of the work, which were counted from the nest itself.

use crate::tune::features::{Features, names};
use crate::tune::work::PARTS;
use std::sync::LazyLock;

/// How many terms there are.
pub const TERMS: usize = PARTS.len() + 4;

/// Names of the terms that are no parts of the work.
const MORE: [&str; 4] = ["vectors", "scalars", "bytes taken", "productions"];

/// Seconds of a unit of each term before anything is learned: the stated weights of the linear model, and nearly nothing for
/// what it does not have.
pub fn stated(linear: &[f64; PARTS.len()]) -> [f64; TERMS] {
    let more = [1e-11, 1e-11, 1e-13, 1e-9];
    std::array::from_fn(|k| linear.get(k).copied().unwrap_or_else(|| more[k - PARTS.len()]))
}

/// The names of the terms.
pub fn term_names() -> Vec<&'static str> {
    PARTS.iter().chain(&MORE).copied().collect()
}

/// The terms of a stage.
pub fn terms(of: &Features) -> [f64; TERMS] {
    static AT: LazyLock<[Option<usize>; 5]> = LazyLock::new(|| {
        let wanted = ["num_vectors", "num_scalars", "num_realizations", "bytes_at_realization", "num_productions"];
        wanted.map(|name| names().iter().position(|n| n == name))
    });
    let [vectors, scalars, realizations, bytes, productions] =
        AT.map(|k| k.and_then(|k| of.values.get(k)).copied().unwrap_or(0.0));
    let more = [vectors, scalars, realizations * bytes, productions];
    std::array::from_fn(|k| of.work.0.get(k).copied().unwrap_or_else(|| more[k - PARTS.len()]))
}
