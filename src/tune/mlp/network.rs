//! The network: features of a stage become a coefficient for each term, forward and backward.
//!
//! Two heads, one for operations and accesses and one for the schedule, and a trunk over both, with the sizes of Adams et al.
//! (2019) and a layer more. Features come in as logarithms, brought to a mean of 0 and a deviation of 1 over what was learned
//! from. The last layer begins as zeros, and a coefficient is its stated value times the exponential of what the network says,
//! within bounds: an untrained network is the linear model.

use super::terms::{TERMS, terms};
use crate::tune::features::{Features, Schedule, names};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Numbers that the heads and the trunk make.
const COMPUTED: usize = 8;
const SCHEDULED: usize = 24;
const TRUNK: usize = 32;
/// The exponent of a coefficient lies between this and its negative.
const RANGE: f64 = 4.0;
/// What is left of negative numbers.
const LEAK: f64 = 0.05;

/// The tables of weights by name, and their sizes: rows and columns.
pub fn tables() -> [(&'static str, [usize; 2]); 8] {
    let scheduled = Schedule::NAMES.len();
    let computed = names().len() - scheduled;
    [
        ("computed", [COMPUTED, computed]),
        ("computed bias", [COMPUTED, 1]),
        ("scheduled", [SCHEDULED, scheduled]),
        ("scheduled bias", [SCHEDULED, 1]),
        ("trunk", [TRUNK, COMPUTED + SCHEDULED]),
        ("trunk bias", [TRUNK, 1]),
        ("coefficients", [TERMS, TRUNK]),
        ("coefficients bias", [TERMS, 1]),
    ]
}

/// A network.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// The weights, by [`tables`], row by row.
    pub tables: Vec<Vec<f64>>,
    /// What is subtracted from the logarithms of features, and what they are multiplied with then.
    pub scaling: [Vec<f64>; 2],
    /// Seconds of a unit of each term before the network says anything.
    pub stated: [f64; TERMS],
}

/// A stage as the network takes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Logarithms of its features.
    pub features: Vec<f64>,
    /// Its terms.
    pub terms: [f64; TERMS],
}

impl Input {
    /// The input of a stage.
    pub fn of(f: &Features) -> Input {
        Input { features: f.values.iter().map(|v| v.max(0.0).ln_1p()).collect(), terms: terms(f) }
    }
}

/// What the network makes on its way.
struct Made {
    scaled: Vec<f64>,
    /// Before and after what bends: the heads one after the other, and the trunk.
    heads: [Vec<f64>; 2],
    trunk: [Vec<f64>; 2],
    /// What it says.
    said: Vec<f64>,
}

fn bent(v: &[f64]) -> Vec<f64> {
    v.iter().map(|x| if *x > 0.0 { *x } else { LEAK * x }).collect()
}

/// A table times a vector, and a bias.
fn dense(table: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
    let row = |(row, b): (&[f64], &f64)| b + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    table.chunks_exact(x.len()).zip(bias).map(row).collect()
}

/// Adds the gradient of a table and its bias, and gives that of the vector.
fn back(table: &[f64], x: &[f64], by: &[f64], into: &mut [Vec<f64>]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    let [weights, bias] = into else { return out };
    for (k, g) in by.iter().enumerate().filter(|(_, g)| **g != 0.0) {
        bias[k] += g;
        let rows = k * x.len()..(k + 1) * x.len();
        for ((w, d), (x, o)) in table[rows.clone()].iter().zip(&mut weights[rows]).zip(x.iter().zip(&mut out)) {
            *d += g * x;
            *o += g * w;
        }
    }
    out
}

fn straightened(by: &[f64], before: &[f64]) -> Vec<f64> {
    by.iter().zip(before).map(|(g, x)| if *x > 0.0 { *g } else { LEAK * g }).collect()
}

impl Network {
    /// A network that has learned nothing, whose terms cost what is stated.
    pub fn new(stated: [f64; TERMS], seed: u64) -> Network {
        let mut rng = StdRng::seed_from_u64(seed);
        let last = tables().len() - 2;
        let table = |(k, (_, [rows, columns])): (usize, (&str, [usize; 2]))| -> Vec<f64> {
            let far = if k >= last || columns == 1 { 0.0 } else { (3.0 / columns as f64).sqrt() };
            (0..rows * columns).map(|_| if far > 0.0 { rng.random_range(-far..far) } else { 0.0 }).collect()
        };
        let tables = tables().into_iter().enumerate().map(table).collect();
        Network { tables, scaling: [vec![0.0; names().len()], vec![1.0; names().len()]], stated }
    }

    /// The features of what is learned from come out with a mean of 0 and a deviation of 1.
    pub fn scale(&mut self, inputs: &[&Input]) {
        let n = inputs.len().max(1) as f64;
        for k in 0..names().len() {
            let of = |f: &dyn Fn(f64) -> f64| inputs.iter().map(|i| f(i.features[k])).sum::<f64>() / n;
            let mean = of(&|x| x);
            let deviation = of(&|x| (x - mean) * (x - mean)).sqrt();
            self.scaling[0][k] = mean;
            // What never differs says nothing.
            self.scaling[1][k] = if deviation > 1e-6 { 1.0 / deviation } else { 0.0 };
        }
    }

    fn forward(&self, input: &Input) -> Made {
        let [shift, scale] = &self.scaling;
        // What is far from all that was learned from counts as at the end of it.
        let scaled: Vec<f64> = input
            .features
            .iter()
            .zip(shift.iter().zip(scale))
            .map(|(x, (m, s))| ((x - m) * s).clamp(-4.0, 4.0))
            .collect();
        let (computed, scheduled) = scaled.split_at(names().len() - Schedule::NAMES.len());
        let t = &self.tables;
        let mut heads = dense(&t[0], &t[1], computed);
        heads.extend(dense(&t[2], &t[3], scheduled));
        let after = bent(&heads);
        let trunk = dense(&t[4], &t[5], &after);
        let end = bent(&trunk);
        let said = dense(&t[6], &t[7], &end);
        Made { scaled, heads: [heads, after], trunk: [trunk, end], said }
    }

    /// Seconds of each term of a stage.
    pub fn costs(&self, input: &Input) -> [f64; TERMS] {
        let made = self.forward(input);
        std::array::from_fn(|k| input.terms[k] * self.stated[k] * (RANGE * (made.said[k] / RANGE).tanh()).exp())
    }

    /// Seconds of all stages together.
    pub fn seconds(&self, stages: &[Input]) -> f64 {
        stages.iter().map(|s| self.costs(s).iter().sum::<f64>()).sum()
    }

    /// Adds the gradient of a multiple of the seconds of a stage by the weights.
    pub fn gradient(&self, input: &Input, by: f64, into: &mut [Vec<f64>]) {
        let (made, t) = (self.forward(input), &self.tables);
        let said = made.said.iter().enumerate().map(|(k, o)| {
            let flat = (o / RANGE).tanh();
            by * input.terms[k] * self.stated[k] * (RANGE * flat).exp() * (1.0 - flat * flat)
        });
        let said: Vec<f64> = said.collect();
        let end = back(&t[6], &made.trunk[1], &said, &mut into[6..8]);
        let trunk = straightened(&end, &made.trunk[0]);
        let after = back(&t[4], &made.heads[1], &trunk, &mut into[4..6]);
        let heads = straightened(&after, &made.heads[0]);
        let (computed, scheduled) = made.scaled.split_at(names().len() - Schedule::NAMES.len());
        back(&t[0], computed, &heads[..COMPUTED], &mut into[0..2]);
        back(&t[2], scheduled, &heads[COMPUTED..], &mut into[2..4]);
    }
}
