//! Measured schedules become the weights of a network.
//!
//! The loss is that of Adams et al. (2019): of each schedule of a pipeline the throughput, as a share of that of the fastest
//! one, is to be predicted; so what is fast counts, and what is slow need only be known to be slow. Steps are Adam's. Some
//! pipelines say when it is enough: the weights are those with which the loss on them was least.

use super::network::{Input, Network};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// A schedule, and how long it takes.
#[derive(Clone, Debug)]
pub struct Example {
    /// Its stages.
    pub stages: Vec<Input>,
    /// Seconds.
    pub seconds: f64,
}

/// How is learned.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often all pipelines are gone through.
    pub epochs: usize,
    /// How far the first steps go; the last ones go hardly any more.
    pub rate: f64,
    /// Where chance begins.
    pub seed: u64,
}

/// What an epoch came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Epoch {
    /// The loss on the pipelines that are learned from.
    pub learned: f64,
    /// The loss on those that say when it is enough.
    pub checked: f64,
}

/// Adam's decay of the first and second moments, and what keeps quotients finite (Kingma and Ba, 2015).
const DECAY: (f64, f64) = (0.9, 0.999);
const SMALL: f64 = 1e-8;
/// How much of a weight a step of its size takes away.
const SHRINK: f64 = 1e-3;
/// No step follows a longer gradient than this.
const LONGEST: f64 = 1.0;
/// What is predicted to be so many times as fast as the fastest one counts as no faster.
const FASTEST: f64 = 8.0;

/// The loss of a pipeline; of each schedule how the loss falls with its predicted seconds.
pub fn loss(predicted: &[f64], seconds: &[f64]) -> (f64, Vec<f64>) {
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let n = seconds.len().max(1) as f64;
    let (mut sum, mut slopes) = (0.0, vec![]);
    for (p, s) in predicted.iter().zip(seconds) {
        let floor = p.max(least / FASTEST);
        let apart = least / floor - least / s;
        sum += apart * apart / n;
        // Below the floor the loss still says where up is.
        slopes.push(-2.0 * apart * least / (floor * floor) / n);
    }
    (sum, slopes)
}

fn mean_loss(network: &Network, pipelines: &[Vec<Example>]) -> f64 {
    let one = |p: &Vec<Example>| {
        let predicted: Vec<f64> = p.iter().map(|e| network.seconds(&e.stages)).collect();
        loss(&predicted, &p.iter().map(|e| e.seconds).collect::<Vec<_>>()).0
    };
    pipelines.iter().map(one).sum::<f64>() / pipelines.len().max(1) as f64
}

/// Learns from pipelines; `checked` say when it is enough. Tells of each epoch, and ends where that says so.
pub fn train(
    start: Network,
    learned: &[Vec<Example>],
    checked: &[Vec<Example>],
    settings: &Settings,
    told: &mut dyn FnMut(usize, &Epoch) -> bool,
) -> Network {
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let mut network = start;
    let (mut best, mut least) = (network.clone(), mean_loss(&network, checked));
    let zeros = || network.tables.iter().map(|t| vec![0.0; t.len()]).collect::<Vec<_>>();
    let (mut means, mut squares) = (zeros(), zeros());
    let mut order: Vec<usize> = (0..learned.len()).collect();
    let mut steps = 0;
    for epoch in 0..settings.epochs {
        order.shuffle(&mut rng);
        let share = epoch as f64 / settings.epochs as f64;
        let rate = settings.rate * (0.02 + 0.98 * 0.5 * (1.0 + (std::f64::consts::PI * share).cos()));
        let mut sum = 0.0;
        for k in &order {
            let pipeline = &learned[*k];
            let predicted: Vec<f64> = pipeline.iter().map(|e| network.seconds(&e.stages)).collect();
            let (lost, slopes) = loss(&predicted, &pipeline.iter().map(|e| e.seconds).collect::<Vec<_>>());
            sum += lost;
            let mut gradient: Vec<Vec<f64>> = network.tables.iter().map(|t| vec![0.0; t.len()]).collect();
            for (e, slope) in pipeline.iter().zip(slopes) {
                e.stages.iter().for_each(|s| network.gradient(s, slope, &mut gradient));
            }
            steps += 1;
            descend(&mut network, &gradient, (&mut means, &mut squares), (rate, steps));
        }
        let now = Epoch { learned: sum / learned.len().max(1) as f64, checked: mean_loss(&network, checked) };
        if now.checked < least || checked.is_empty() {
            (best, least) = (network.clone(), now.checked);
        }
        if !told(epoch, &now) {
            break;
        }
    }
    best
}

/// One step of Adam.
fn descend(
    network: &mut Network,
    gradient: &[Vec<f64>],
    (means, squares): (&mut [Vec<f64>], &mut [Vec<f64>]),
    (rate, steps): (f64, i32),
) {
    let long = gradient.iter().flatten().map(|g| g * g).sum::<f64>().sqrt();
    let shorter = if long > LONGEST { LONGEST / long } else { 1.0 };
    let (first, second) = (1.0 - DECAY.0.powi(steps), 1.0 - DECAY.1.powi(steps));
    for (k, table) in network.tables.iter_mut().enumerate() {
        for (j, w) in table.iter_mut().enumerate() {
            let g = gradient[k][j] * shorter;
            let (mean, square) = (&mut means[k][j], &mut squares[k][j]);
            *mean = DECAY.0 * *mean + (1.0 - DECAY.0) * g;
            *square = DECAY.1 * *square + (1.0 - DECAY.1) * g * g;
            *w -= rate * ((*mean / first) / ((*square / second).sqrt() + SMALL) + SHRINK * *w);
        }
    }
}
