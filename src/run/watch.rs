//! When to stop: time, memory and the user's interrupt become one question.

use super::{memory, seconds};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the user's interrupt means: an end at once, or the best so far where somebody waits for it.
#[derive(Default)]
pub struct Interrupt {
    waiting: AtomicBool,
    raised: AtomicBool,
}

impl Interrupt {
    /// Nobody waits.
    pub const fn new() -> Interrupt {
        Interrupt { waiting: AtomicBool::new(false), raised: AtomicBool::new(false) }
    }

    /// Whether somebody waits for an interrupt from now on.
    pub fn wait(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    /// Tells of an interrupt; whether somebody waited for it, for the first time.
    pub fn raise(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) && !self.raised.swap(true, Ordering::Relaxed)
    }

    /// Whether there was an interrupt that somebody waited for.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Does work that asks [`Interrupt::raised`] in between, and ends with what is done so far.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        self.wait(true);
        let out = work();
        self.wait(false);
        out
    }
}

/// Limits of one command.
pub struct Watch<'a> {
    interrupt: &'a Interrupt,
    from: f64,
    seconds: Option<f64>,
    megabytes: Option<u64>,
    /// The milliseconds at which memory was looked at last.
    looked: AtomicU64,
    full: AtomicBool,
}

/// Memory is looked at so often, in milliseconds.
const LOOK: u64 = 10;

impl<'a> Watch<'a> {
    /// Limits from now on: seconds of time, and megabytes that the process holds.
    pub fn new(interrupt: &'a Interrupt, seconds_limit: Option<f64>, megabytes: Option<u64>) -> Watch<'a> {
        let (looked, full) = Default::default();
        Watch { interrupt, from: seconds(), seconds: seconds_limit, megabytes, looked, full }
    }

    /// What is spent, if this share of the time is, or all of something else.
    pub fn spent(&self, share: f64) -> Option<&'static str> {
        if self.interrupt.raised() {
            return Some("interrupt");
        }
        let now = if self.seconds.is_some() || self.megabytes.is_some() { seconds() } else { 0.0 };
        if self.seconds.is_some_and(|limit| now - self.from >= share * limit) {
            return Some("time");
        }
        self.is_full(now).then_some("memory")
    }

    fn is_full(&self, now: f64) -> bool {
        let Some(limit) = self.megabytes else { return false };
        let millis = (now * 1000.0) as u64;
        if millis >= self.looked.load(Ordering::Relaxed) {
            self.looked.store(millis + LOOK, Ordering::Relaxed);
            if memory::own().is_some_and(|kilobytes| kilobytes >= limit.saturating_mul(1024)) {
                self.full.store(true, Ordering::Relaxed);
            }
        }
        self.full.load(Ordering::Relaxed)
    }
}
