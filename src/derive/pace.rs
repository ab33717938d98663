//! Long work asks now and then whether the time is up: to ask each time would take more of it than the work.
//!
//! It must not know what the work is, nor what time is.

use std::cell::Cell;

/// So often it is asked, in pieces of work.
const EACH: u32 = 64;

/// How long work may go on.
pub struct Pace<'a> {
    stop: &'a dyn Fn() -> bool,
    done: Cell<u32>,
    late: Cell<bool>,
}

impl<'a> Pace<'a> {
    /// Until somebody says so.
    pub fn new(stop: &'a dyn Fn() -> bool) -> Pace<'a> {
        let (done, late) = Default::default();
        Pace { stop, done, late }
    }

    /// Whether the next piece of work is too late. What was late once stays so.
    pub fn late(&self) -> bool {
        let done = self.done.get();
        self.done.set(done.wrapping_add(1));
        if done.is_multiple_of(EACH) && !self.late.get() {
            self.late.set((self.stop)());
        }
        self.late.get()
    }
}
