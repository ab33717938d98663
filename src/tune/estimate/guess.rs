//! Estimated work becomes seconds by a model, and the best states of a search are kept.

use super::space::{Estimates, State};
use crate::search::{Cost, Space as _};
use crate::tune::model::Model;
use crate::tune::parts::{PARTS, Work};
use rayon::prelude::*;

/// Fewer states are not worth a thread of their own.
const TOGETHER: usize = 16;

/// Of states that compute stages in the same places so many are kept, which differ in loops.
const ALIKE: usize = 3;

/// Judges states by a model, and keeps the best of all.
pub struct Guess<'a> {
    model: &'a Model,
    keep: usize,
    /// The best, best first.
    best: Vec<Kept>,
}

/// A state that is kept.
struct Kept {
    seconds: f64,
    /// The bits of its work: what does the same work is the same to a model.
    work: [u64; PARTS.len()],
    /// Where stages are computed.
    key: u64,
    state: State,
}

impl<'a> Guess<'a> {
    /// Keeps so many states.
    pub fn new(model: &'a Model, keep: usize) -> Guess<'a> {
        Guess { model, keep, best: vec![] }
    }

    /// The best states, best first.
    pub fn best(self) -> Vec<State> {
        self.best.into_iter().map(|k| k.state).collect()
    }

    fn keep(&mut self, space: &Estimates<'_>, (seconds, work): (f64, &Work), state: &State) {
        if self.best.len() >= self.keep && self.best.last().is_some_and(|k| seconds >= k.seconds) {
            return;
        }
        let (key, work) = (space.key(state, 0), work.0.map(f64::to_bits));
        let mut alike = self.best.iter().enumerate().filter(|(_, k)| k.key == key).map(|(at, _)| at);
        // The worst of those alike makes room, if it is worse.
        let crowded = alike.clone().count() >= ALIKE;
        match alike.next_back() {
            _ if self.best.iter().any(|k| k.work == work) => return,
            Some(last) if crowded && self.best[last].seconds <= seconds => return,
            Some(last) if crowded => drop(self.best.remove(last)),
            _ => {}
        }
        let at = self.best.partition_point(|k| k.seconds <= seconds);
        self.best.insert(at, Kept { seconds, work, key, state: state.clone() });
        self.best.truncate(self.keep);
    }
}

impl Cost<Estimates<'_>> for Guess<'_> {
    fn costs(&mut self, space: &Estimates<'_>, states: &[State]) -> Vec<f64> {
        let each: Vec<Work> = states.par_iter().with_min_len(TOGETHER).map(|s| space.work(s)).collect();
        let judged = |(work, state): (&Work, &State)| {
            let seconds = self.model.seconds(&work.0);
            self.keep(space, (seconds, work), state);
            seconds
        };
        each.iter().zip(states).map(judged).collect()
    }
}
