//! Searches become experience, and experience a better network (Knossos, Algorithm 1).
//!
//! An epoch searches programs with the network as it is, and then fits the network to what is known of the
//! states that were expanded, in this epoch and before: the best cost within so many moves of each. The best
//! cost that was met is a lower bound of what can be gained, so a state that is met again in a better search
//! teaches better. Gradients are made elsewhere ([`Fit`]); all else is here, so an epoch is a function of the
//! seed and of the epochs before it.

use super::batch::Batch;
use super::encode::Graph;
use super::fit::Fit;
use super::lesson::{Lesson, of};
use super::network::Network;
use super::settings::{Settings, Task};
use crate::cost::Costing;
use crate::diag::{Diagnostic, Result};
use crate::rewrite::agent::Agent;
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::inline::recursive;
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What makes gradients, beginning with a network; `rate` is how far a step goes at most.
///
/// # Errors
/// This build has none.
#[cfg(feature = "torch")]
pub fn fit(network: &Network, rate: f64) -> Result<Box<dyn Fit>> {
    Ok(Box::new(super::torch::Torch::new(network, rate)))
}

/// What makes gradients, beginning with a network; `rate` is how far a step goes at most.
///
/// # Errors
/// This build has none.
#[cfg(not(feature = "torch"))]
pub fn fit(_: &Network, _: f64) -> Result<Box<dyn Fit>> {
    Err(Diagnostic::user("training needs libtorch, and this build of daedal is without")
        .note("run `scripts/get-libtorch.sh`, then `cargo build --release --features torch`"))
}

/// How far a step goes where nobody says it: the wider a network, the less.
pub fn rate(width: usize) -> f64 {
    0.064 / width as f64
}

/// How an epoch went.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EpochReport {
    /// Its number, from 1.
    pub epoch: usize,
    /// The least cost that its search met, for each task that was searched.
    pub costs: Vec<(usize, f64)>,
    /// The least cost of each task that is known.
    pub best: Vec<f64>,
    /// States that were evaluated.
    pub evaluations: usize,
    /// States that it learned from.
    pub states: usize,
    /// The mean loss on these, while they were learned.
    pub loss: f64,
    /// The mean loss on states that are never learned from, after the epoch.
    pub unseen: f64,
    /// The least cost that a search with the network met after the epoch, for each held-out task.
    pub held_out: Vec<f64>,
}

/// Terms that are kept in all, at most: a lesson that has more than its share begins anew.
const TERMS: usize = 8_000_000;
/// One state of so many is never learned from.
const HELD_BACK: u64 = 10;
/// Added to costs before their ratio is taken, so that a cost of 0 has one.
const SOME: f64 = 0.1;

/// Costs no further apart are equal.
const NEAR: f64 = 1e-6;

/// A training under way.
pub struct Trainer<'a, F: Fit> {
    pub(super) settings: Settings,
    pub(super) lessons: Vec<Lesson<'a>>,
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) held_out: Vec<Task<'a>>,
    pub(super) rules: &'a [Compiled<'a>],
    pub(super) best: Vec<f64>,
    pub(super) reports: Vec<EpochReport>,
    pub(super) fit: F,
    pub(super) network: Network,
    pub(super) floors: Vec<Option<f64>>,
}

impl<'a, F: Fit> Trainer<'a, F> {
    /// Begins with the network of `fit`.
    ///
    /// # Errors
    /// There is no task, or one that cannot be searched; a limit is 0; the network tells other moves apart.
    pub fn new(tasks: &[Task<'a>], rules: &'a [Compiled<'a>], settings: Settings, fit: F) -> Result<Trainer<'a, F>> {
        if tasks.is_empty() {
            return Err(Diagnostic::user("there is no definition to learn from"));
        }
        if rules.is_empty() {
            return Err(Diagnostic::user("there is no rule to learn the use of"));
        }
        let Settings { budget, depth, programs, states, passes, batch, .. } = settings;
        if [budget, depth, programs, states, passes, batch].contains(&0) {
            return Err(Diagnostic::user("a limit of the training is 0, expected at least 1"));
        }
        let network = fit.network();
        if network.setting.steps != settings.steps {
            let (found, wanted) = (network.setting.steps, settings.steps);
            return Err(Diagnostic::user(format!("the network tells {found} moves apart, expected {wanted}")));
        }
        let mut lessons = vec![];
        for task in tasks {
            let lesson = Lesson::new(*task, rules, &settings).ok_or_else(|| {
                Diagnostic::user(format!("`{}` cannot be learned from: it has no body, or prints", task.def.name()))
            })?;
            lessons.push(lesson);
        }
        let best = lessons.iter_mut().map(Lesson::input).collect();
        let (tasks, floors, held_out, reports) = (tasks.to_vec(), vec![None; lessons.len()], vec![], vec![]);
        Ok(Trainer { settings, lessons, tasks, held_out, rules, best, reports, fit, network, floors })
    }

    /// Definitions that are searched after every epoch, and not learned from.
    pub fn set_held_out(&mut self, tasks: &[Task<'a>]) {
        self.held_out = tasks.to_vec();
    }

    /// Costs that every term of a task can be brought to, however many moves that takes, where they are known:
    /// they are learned as what many moves lead to.
    pub fn set_floors(&mut self, floors: Vec<Option<f64>>) {
        self.floors = floors;
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How the epochs went that were made.
    pub fn reports(&self) -> &[EpochReport] {
        &self.reports
    }

    /// The least costs that searches with a network meet, with the limits of the training.
    pub fn searched(&self, tasks: &[Task<'a>], network: Option<&Network>) -> Vec<f64> {
        let (rules, how) = (self.rules, self.settings);
        let one = |task: &Task<'_>| {
            let settings = of(&how, rules, network);
            let from = (&task.program.terms, task.def.term()?);
            let mut costing = Costing::new(task.program, settings.model, &[]);
            let input = costing.term(from.1, task.def, from.0);
            let agent = Agent::new(task.program, &recursive(task.program), task.def, from, &settings);
            let best = agent.and_then(|agent| agent.search(&mut costing, &settings));
            Some(best.map_or(input, |best| best.cost))
        };
        tasks.par_iter().map(|task| one(task).unwrap_or(f64::INFINITY)).collect()
    }

    /// Searches, and learns from it.
    pub fn epoch(&mut self) -> EpochReport {
        let epoch = self.reports.len() + 1;
        let mut rng = StdRng::seed_from_u64(self.settings.seed ^ (epoch as u64) << 32);
        let mut chosen: Vec<usize> = (0..self.lessons.len()).collect();
        if chosen.len() > self.settings.programs {
            chosen.shuffle(&mut rng);
            chosen.truncate(self.settings.programs);
            chosen.sort_unstable();
        }
        let share = TERMS / self.lessons.len();
        let (mut costs, mut evaluations) = (vec![], 0);
        // All at once: the first epochs would else learn of few programs by heart.
        for lesson in self.lessons.iter_mut().filter(|lesson| lesson.len() == 0) {
            evaluations += lesson.bind();
        }
        let mut states = vec![];
        for k in chosen {
            let lesson = &mut self.lessons[k];
            if lesson.terms() > share {
                lesson.forget();
            }
            let known = lesson.len();
            // The first network has learned nothing: there is no need to ask it.
            let network = (epoch > 1).then_some(&self.network);
            let found = lesson.search(network, rng.random());
            self.best[k] = self.best[k].min(found.best);
            costs.push((k, found.best));
            evaluations += found.evaluations + lesson.explore(&mut rng);
            states.extend((known..lesson.len()).map(|state| (k, state)));
        }
        let chosen = match self.settings.even {
            true => self.evenly(&mut rng),
            false => self.anywhere(states, &mut rng),
        };
        let (learned, held_back) = self.experience(chosen);
        let loss = self.learn(&learned, &mut rng);
        self.network = self.fit.network();
        let unseen = self.loss(&held_back);
        let (best, states) = (self.best.clone(), learned.len());
        let held_out = self.searched(&self.held_out, Some(&self.network));
        let report = EpochReport { epoch, costs, best, evaluations, states, loss, unseen, held_out };
        self.reports.push(report.clone());
        report
    }

    /// States to learn from: as many of each number of moves from the best state of their program, and of those
    /// from which it is not met.
    fn evenly(&mut self, rng: &mut StdRng) -> BTreeSet<(usize, usize)> {
        let mut strata: Vec<Vec<(usize, usize)>> = vec![vec![]; self.settings.steps + 2];
        for (k, lesson) in self.lessons.iter_mut().enumerate() {
            let all = lesson.least(None);
            let best = all.iter().flat_map(|costs| costs.get(1)).copied().fold(self.best[k], f64::min);
            self.best[k] = best;
            for (state, costs) in all.iter().enumerate() {
                let far = costs.iter().position(|cost| *cost <= best + NEAR).unwrap_or(costs.len());
                strata[far].push((k, state));
            }
        }
        strata.retain(|states| !states.is_empty());
        let share = self.settings.states.div_ceil(strata.len().max(1));
        let mut chosen = BTreeSet::new();
        for mut states in strata {
            let (some, _) = states.partial_shuffle(rng, share);
            chosen.extend(some.iter().copied());
        }
        chosen
    }

    /// States to learn from: new ones, and as many old ones as there is room for, at least half.
    fn anywhere(&self, mut new: Vec<(usize, usize)>, rng: &mut StdRng) -> BTreeSet<(usize, usize)> {
        let all: usize = self.lessons.iter().map(Lesson::len).sum();
        let most = self.settings.states.min(all);
        new.shuffle(rng);
        new.truncate((most / 2).max(most.saturating_sub(all - new.len())));
        let mut chosen: BTreeSet<(usize, usize)> = new.into_iter().collect();
        while chosen.len() < most {
            // Any state of all lessons.
            let mut at = rng.random_range(0..all);
            for (k, lesson) in self.lessons.iter().enumerate() {
                if at < lesson.len() {
                    chosen.insert((k, at));
                    break;
                }
                at -= lesson.len();
            }
        }
        chosen
    }

    /// What is known of states to learn from, and of some that are only looked at.
    fn experience(&mut self, chosen: BTreeSet<(usize, usize)>) -> (Vec<Sample>, Vec<Sample>) {
        let (mut learned, mut held_back) = (vec![], vec![]);
        let mut least: Option<(usize, Vec<Vec<f64>>)> = None;
        for (k, state) in chosen {
            if least.as_ref().is_none_or(|(of, _)| *of != k) {
                let all = self.lessons[k].least(self.floors[k]);
                // What is one move away from a state that was expanded is known as well.
                self.best[k] = all.iter().map(|costs| costs[1]).fold(self.best[k], f64::min);
                least = Some((k, all));
            }
            let Some((_, costs)) = &least else { continue };
            let graph = self.lessons[k].graph(state);
            if graph.is_empty() {
                continue;
            }
            let from = if self.settings.above { self.best[k] } else { 0.0 };
            let sample = Sample { graph, rates: rates(&costs[state], from) };
            match mixed(k, state) % HELD_BACK {
                0 => held_back.push(sample),
                _ => learned.push(sample),
            }
        }
        (learned, held_back)
    }

    /// The mean loss while learning.
    fn learn(&mut self, samples: &[Sample], rng: &mut StdRng) -> f64 {
        let (mut loss, mut count) = (0.0, 0.0);
        let mut order: Vec<usize> = (0..samples.len()).collect();
        for _ in 0..self.settings.passes {
            order.shuffle(rng);
            for some in order.chunks(self.settings.batch) {
                let (batch, rates) = together(some.iter().map(|k| &samples[*k]), self.settings.steps);
                loss += f64::from(self.fit.step(&batch, &rates)) * some.len() as f64;
                count += some.len() as f64;
            }
        }
        loss / f64::max(count, 1.0)
    }

    /// The mean loss of the network as it is.
    fn loss(&self, samples: &[Sample]) -> f64 {
        let one = |some: &[Sample]| {
            let (batch, rates) = together(some.iter(), self.settings.steps);
            f64::from(huber(&self.network.predict(&batch), &rates)) * some.len() as f64
        };
        samples.chunks(self.settings.batch).map(one).sum::<f64>() / f64::max(samples.len() as f64, 1.0)
    }
}

/// A state, and what is to be predicted of it.
struct Sample {
    graph: Graph,
    rates: Vec<f32>,
}

fn together<'s>(samples: impl Iterator<Item = &'s Sample> + Clone, steps: usize) -> (Batch, Array2<f32>) {
    let batch = Batch::of(samples.clone().map(|s| &s.graph));
    let mut rates = Array2::zeros((batch.len(), steps));
    let all = samples.flat_map(|s| s.rates.iter().copied());
    rates.iter_mut().zip(all).for_each(|(to, rate)| *to = rate);
    (batch, rates)
}

/// The rates at which the cost above another one falls within 1, 2, … moves, where the least costs within 0, 1, …
/// are these.
fn rates(least: &[f64], from: f64) -> Vec<f32> {
    let above = |cost: f64| (cost - from).max(0.0) + SOME;
    let rate = |(k, cost): (usize, &f64)| (above(least[0]) / above(*cost)).ln().max(0.0) / k as f64;
    least.iter().enumerate().skip(1).map(|one| rate(one) as f32).collect()
}

/// The Huber loss: squares of small errors, absolute values of great ones, in the mean. Rates are multiplied
/// with their moves before they are compared: the paper's costs grow with them, and its rates are alike;
/// logarithms of ratios are alike without.
pub fn huber(predicted: &[f32], rates: &Array2<f32>) -> f32 {
    let error = |(k, (p, r)): (usize, (&f32, &f32))| {
        let e = ((p - r) * (k % rates.ncols() + 1) as f32).abs();
        if e < 1.0 { 0.5 * e * e } else { e - 0.5 }
    };
    predicted.iter().zip(rates).enumerate().map(error).sum::<f32>() / rates.len().max(1) as f32
}

/// A number that depends on a state alone, spread evenly (the finalizer of SplitMix64).
fn mixed(lesson: usize, state: usize) -> u64 {
    let mut x = ((lesson as u64) << 32 | state as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
