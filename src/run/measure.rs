//! The only clock: how long a call takes, repeated.

use crate::eval::Value;
use std::sync::LazyLock;
use std::time::Instant;

/// The value of a call and how long it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// The value.
    pub value: Value,
    /// The shortest run.
    pub min_seconds: f64,
    /// The middle run.
    pub median_seconds: f64,
    /// The most memory that tensors took at once, the result included.
    pub peak_bytes: u64,
}

/// Runs `step` once to warm up and then `repeats` times (at least once); the shortest and the middle
/// run in seconds.
pub(super) fn repeat<E>(repeats: usize, mut step: impl FnMut() -> Result<(), E>) -> Result<(f64, f64), E> {
    step()?;
    let mut seconds = vec![];
    for _ in 0..repeats.max(1) {
        let from = Instant::now();
        step()?;
        seconds.push(from.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[0], seconds[seconds.len() / 2]))
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Seconds since the first call: for reports of how long something took.
pub fn seconds() -> f64 {
    START.elapsed().as_secs_f64()
}
