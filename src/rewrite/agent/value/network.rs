//! The network: graphs become predictions (Knossos, equations 4 and 5; gated graph networks of Li et al., 2016).
//!
//! A node begins as the sum of what its kind, its element and its features stand for. In every propagation it
//! takes in what its neighbours send, multiplied by the weights of the edge, through a gated recurrent unit.
//! The states at the end are read out, weighted by a gate that also sees the states at the beginning, and
//! their mean goes through two dense layers, which have one output for each number of moves left.
//!
//! Outputs are rates: the logarithm of the ratio by which the cost falls, divided by the moves left. Costs
//! range over many orders of magnitude, which logarithms even out; the paper predicts differences of costs.
//! It says that the read-out is a sum, its public code takes the mean; that is done here, since a ratio does
//! not grow with the term.

use super::batch::Batch;
use super::vocabulary::{EDGES, ELEMENTS, FEATURES, KINDS};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The size of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Numbers that describe a node.
    pub width: usize,
    /// How often nodes hear of their neighbours.
    pub propagations: usize,
    /// The greatest number of moves left that is told apart; more count as this many.
    pub steps: usize,
}

impl Setting {
    /// A small network, of the size of the shipped one.
    pub fn small() -> Setting {
        Setting { width: 64, propagations: 10, steps: 10 }
    }

    /// The network of the paper (Tables 1 and 2).
    pub fn published() -> Setting {
        Setting { width: 200, propagations: 10, steps: 30 }
    }

    /// The tensors of such a network: name, rows and columns. Vectors are one row.
    pub fn tensors(&self) -> [(&'static str, [usize; 2]); TENSORS] {
        let d = self.width;
        [
            ("kind", [KINDS.len(), d]),
            ("element", [ELEMENTS, d]),
            ("feature", [FEATURES, d]),
            ("edge", [EDGES * d, d]),
            ("message", [d, 3 * d]),
            ("message.bias", [1, 3 * d]),
            ("state", [d, 3 * d]),
            ("state.bias", [1, 3 * d]),
            ("gate", [2 * d, d]),
            ("gate.bias", [1, d]),
            ("read", [d, d]),
            ("read.bias", [1, d]),
            ("hidden", [d, d]),
            ("hidden.bias", [1, d]),
            ("rate", [d, self.steps]),
            ("rate.bias", [1, self.steps]),
        ]
    }
}

/// How many tensors a network has.
pub const TENSORS: usize = 16;
/// Numbers of tensors, as [`Setting::tensors`] lists them.
#[expect(missing_docs, reason = "the list there names them")]
pub mod number {
    pub const KIND: usize = 0;
    pub const ELEMENT: usize = 1;
    pub const FEATURE: usize = 2;
    pub const EDGE: usize = 3;
    pub const MESSAGE: usize = 4;
    pub const STATE: usize = 6;
    pub const GATE: usize = 8;
    pub const READ: usize = 10;
    pub const HIDDEN: usize = 12;
    pub const RATE: usize = 14;
}
use number::{EDGE, ELEMENT, FEATURE, GATE, HIDDEN, KIND, MESSAGE, RATE, READ, STATE};

/// A network with its weights.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Its size.
    pub setting: Setting,
    /// Its weights, row by row, in the order of [`Setting::tensors`].
    pub tensors: Vec<Array2<f32>>,
}

impl Network {
    /// A network that has learned nothing: it predicts 0, as the weights of the last layer are.
    pub fn new(setting: Setting, seed: u64) -> Network {
        let mut rng = StdRng::seed_from_u64(seed);
        let wide = 1.0 / (setting.width as f32).sqrt();
        let one = |(k, (_, [rows, columns])): (usize, (&str, [usize; 2]))| {
            let range = match k {
                RATE.. => 0.0,
                KIND..=FEATURE => 0.5,
                _ => wide,
            };
            Array2::from_shape_simple_fn((rows, columns), || (rng.random::<f32>() * 2.0 - 1.0) * range)
        };
        let tensors = setting.tensors().into_iter().enumerate().map(one).collect();
        Network { setting, tensors }
    }

    /// The rates of each graph, one for each number of moves left, from 1. An empty graph has rates of 0.
    pub fn predict(&self, batch: &Batch) -> Vec<f32> {
        let start = self.start(batch);
        let mut at = start.clone();
        let mut buffers = Buffers::new(batch, self.setting.width);
        for _ in 0..self.setting.propagations {
            self.propagate(batch, &mut at, &mut buffers);
        }
        self.read(batch, &start, &at).into_raw_vec_and_offset().0
    }

    fn start(&self, batch: &Batch) -> Array2<f32> {
        let mut out = Array2::zeros((batch.kinds.len(), self.setting.width));
        for (node, mut row) in out.rows_mut().into_iter().enumerate() {
            row += &self.tensors[KIND].row(batch.kinds[node].into());
            row += &self.tensors[ELEMENT].row(batch.elements[node].into());
            let features = &batch.features[node * FEATURES..(node + 1) * FEATURES];
            for (feature, weights) in features.iter().zip(self.tensors[FEATURE].rows()) {
                row.scaled_add(*feature, &weights);
            }
        }
        out
    }

    fn propagate(&self, batch: &Batch, at: &mut Array2<f32>, buffers: &mut Buffers) {
        let width = self.setting.width;
        let Buffers { gathered, sent, received, message, state } = buffers;
        gathered.fill(0.0);
        for row in 0..batch.targets.len() {
            let to = &mut flat_mut(gathered)[row * width..(row + 1) * width];
            for e in batch.rows[row]..batch.rows[row + 1] {
                let source = batch.sources[e] as usize;
                add(to, &flat(at)[source * width..(source + 1) * width], batch.weights[e]);
            }
        }
        for kind in 0..EDGES {
            let rows = batch.range(kind);
            let weights = self.tensors[EDGE].slice(s![kind * width..(kind + 1) * width, ..]);
            let mut out = sent.slice_mut(s![rows.clone(), ..]);
            general_mat_mul(1.0, &gathered.slice(s![rows, ..]), &weights, 0.0, &mut out);
        }
        received.fill(0.0);
        for (row, target) in batch.targets.iter().enumerate() {
            let target = *target as usize;
            let to = &mut flat_mut(received)[target * width..(target + 1) * width];
            add(to, &flat(sent)[row * width..(row + 1) * width], 1.0);
        }
        general_mat_mul(1.0, received, &self.tensors[MESSAGE], 0.0, message);
        general_mat_mul(1.0, at, &self.tensors[STATE], 0.0, state);
        let (from, own) = (flat(&self.tensors[MESSAGE + 1]), flat(&self.tensors[STATE + 1]));
        let rows = flat(message).chunks(3 * width).zip(flat(state).chunks(3 * width));
        for (to, (message, state)) in flat_mut(at).chunks_mut(width).zip(rows) {
            unit(to, message, state, from, own);
        }
    }

    fn read(&self, batch: &Batch, start: &Array2<f32>, end: &Array2<f32>) -> Array2<f32> {
        let width = self.setting.width;
        let gate_end = self.tensors[GATE].slice(s![..width, ..]);
        let gate_start = self.tensors[GATE].slice(s![width.., ..]);
        let mut gate = Array2::zeros(end.raw_dim());
        general_mat_mul(1.0, end, &gate_end, 0.0, &mut gate);
        general_mat_mul(1.0, start, &gate_start, 1.0, &mut gate);
        let mut read = Array2::zeros(end.raw_dim());
        general_mat_mul(1.0, end, &self.tensors[READ], 0.0, &mut read);
        let mut means = Array2::zeros((batch.len(), width));
        for (graph, mut mean) in means.rows_mut().into_iter().enumerate() {
            let nodes = batch.starts[graph]..batch.starts[graph + 1];
            let share = 1.0 / nodes.len().max(1) as f32;
            for node in nodes {
                for k in 0..width {
                    let open = sigmoid(gate[[node, k]] + self.tensors[GATE + 1][[0, k]]);
                    mean[k] += share * open * (read[[node, k]] + self.tensors[READ + 1][[0, k]]);
                }
            }
        }
        let hidden = dense(&means, &self.tensors[HIDDEN], &self.tensors[HIDDEN + 1]).mapv_into(tanh);
        let mut rates = dense(&hidden, &self.tensors[RATE], &self.tensors[RATE + 1]);
        for graph in (0..batch.len()).filter(|g| batch.starts[*g] == batch.starts[g + 1]) {
            rates.row_mut(graph).fill(0.0);
        }
        rates
    }
}

/// Room for one propagation.
struct Buffers {
    /// What the edges of each row bring, one row each.
    gathered: Array2<f32>,
    /// The same, multiplied.
    sent: Array2<f32>,
    /// What each node receives.
    received: Array2<f32>,
    /// What is made of it for the three gates.
    message: Array2<f32>,
    /// What is made of the state for the three gates.
    state: Array2<f32>,
}

impl Buffers {
    fn new(batch: &Batch, width: usize) -> Buffers {
        let (nodes, rows) = (batch.kinds.len(), batch.targets.len());
        Buffers {
            gathered: Array2::zeros((rows, width)),
            sent: Array2::zeros((rows, width)),
            received: Array2::zeros((nodes, width)),
            message: Array2::zeros((nodes, 3 * width)),
            state: Array2::zeros((nodes, 3 * width)),
        }
    }
}

/// The gated recurrent unit of Cho et al. (2014), with the reset gate after the product, as libraries have it:
/// the parts of the rows are for the reset gate, the update gate, and the new state.
fn unit(at: &mut [f32], message: &[f32], state: &[f32], from: &[f32], own: &[f32]) {
    let d = at.len();
    let (message, state, from, own) = (&message[..3 * d], &state[..3 * d], &from[..3 * d], &own[..3 * d]);
    for k in 0..d {
        let reset = sigmoid(message[k] + from[k] + state[k] + own[k]);
        let update = sigmoid(message[d + k] + from[d + k] + state[d + k] + own[d + k]);
        let new = tanh(message[2 * d + k] + from[2 * d + k] + reset * (state[2 * d + k] + own[2 * d + k]));
        at[k] = (1.0 - update) * new + update * at[k];
    }
}

fn dense(at: &Array2<f32>, weights: &Array2<f32>, bias: &Array2<f32>) -> Array2<f32> {
    let mut out = Array2::zeros((at.nrows(), weights.ncols()));
    general_mat_mul(1.0, at, weights, 0.0, &mut out);
    out + bias
}

fn add(to: &mut [f32], from: &[f32], weight: f32) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

fn tanh(x: f32) -> f32 {
    2.0 / (1.0 + exp(-2.0 * x)) - 1.0
}

/// The exponential to within a few units in the last place, without branches, so that loops over it are
/// compiled to vector instructions. x is n ln 2 + r with a whole n; adding 1.5 · 2^23 rounds to n and leaves it
/// in the low bits. The Taylor polynomial of exp(r) errs by less than |r|^7 / 7! < 2^-23, as |r| < 0.35.
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: products of n with the first are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = x.clamp(-87.0, 87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * LN_2.0 - n * LN_2.1;
    let series = 1.0 + r * (1.0 + r * (1.0 / 2.0 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    series * f32::from_bits((rounded.to_bits().wrapping_add(127)) << 23)
}

/// The numbers of an array, row by row: all arrays here lie in memory that way.
fn flat(array: &Array2<f32>) -> &[f32] {
    array.as_slice().unwrap_or_default()
}

/// As [`flat`].
fn flat_mut(array: &mut Array2<f32>) -> &mut [f32] {
    array.as_slice_mut().unwrap_or_default()
}
