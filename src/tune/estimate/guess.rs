//! Estimated work becomes seconds by a model, and the best states of a search are kept.

use super::space::{Estimates, State};
use crate::search::Cost;
use crate::tune::model::Model;
use crate::tune::parts::{PARTS, Work};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Fewer states are not worth a thread of their own.
const TOGETHER: usize = 16;

/// Judges states by a model, and keeps the best of all.
pub struct Guess<'a> {
    model: &'a Model,
    keep: usize,
    /// The best, by the bits of their work: what does the same work is the same to a model.
    best: BTreeMap<[u64; PARTS.len()], (f64, State)>,
    /// What the worst of them is expected to take, where there are as many as are kept.
    worst: f64,
}

impl<'a> Guess<'a> {
    /// Keeps so many states.
    pub fn new(model: &'a Model, keep: usize) -> Guess<'a> {
        Guess { model, keep, best: BTreeMap::new(), worst: f64::INFINITY }
    }

    /// The best states, best first.
    pub fn best(self) -> Vec<State> {
        let mut out: Vec<(f64, State)> = self.best.into_values().collect();
        out.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.into_iter().map(|(_, s)| s).collect()
    }

    fn keep(&mut self, seconds: f64, work: &Work, state: &State) {
        let key = work.0.map(f64::to_bits);
        if seconds >= self.worst || self.best.contains_key(&key) {
            return;
        }
        self.best.insert(key, (seconds, state.clone()));
        let worst = |best: &BTreeMap<_, (f64, State)>| {
            best.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0)).map(|(k, (seconds, _))| (*k, *seconds))
        };
        if self.best.len() > self.keep {
            worst(&self.best).and_then(|(k, _)| self.best.remove(&k));
        }
        if self.best.len() >= self.keep {
            self.worst = worst(&self.best).map_or(f64::INFINITY, |(_, seconds)| seconds);
        }
    }
}

impl Cost<Estimates<'_>> for Guess<'_> {
    fn costs(&mut self, space: &Estimates<'_>, states: &[State]) -> Vec<f64> {
        let each: Vec<Work> = states.par_iter().with_min_len(TOGETHER).map(|s| space.work(s)).collect();
        let judged = |(work, state): (&Work, &State)| {
            let seconds = self.model.seconds(&work.0);
            self.keep(seconds, work, state);
            seconds
        };
        each.iter().zip(states).map(judged).collect()
    }
}
