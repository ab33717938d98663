//! The same network in libtorch, which makes its gradients; Adam changes the weights by them.
//!
//! It runs where libtorch finds a GPU there, and on one thread of the processor otherwise: the order of sums,
//! and with it the result, then depends on nothing else.

use super::batch::Batch;
use super::fit::Fit;
use super::network::number::{EDGE, ELEMENT, FEATURE, GATE, HIDDEN, KIND, MESSAGE, RATE, READ, STATE};
use super::network::{Network, Setting, TENSORS};
use super::vocabulary::{EDGES, FEATURES};
use ndarray::Array2;
use tch::{Device, Kind, Reduction, Tensor};

/// The rate at which Adam learns in the paper (Appendix B), for networks of its width.
pub const PUBLISHED_RATE: f64 = 1e-4;

/// Adam's decay of the first and second moments, and what keeps quotients finite (Kingma and Ba, 2015).
const DECAY: (f64, f64) = (0.9, 0.999);
const SMALL: f64 = 1e-8;
/// How much of the mean of the weights a step keeps, once there were many: the mean of some 500 steps. Steps of a
/// size that learns fast jump about what they seek, and their mean lies nearer to it (Polyak and Juditsky, 1992).
const KEPT: f64 = 0.998;

/// A network whose weights are learned.
pub struct Torch {
    setting: Setting,
    rate: f64,
    device: Device,
    weights: Vec<Tensor>,
    /// Their means over the last steps: the network that is made use of.
    means: Vec<Tensor>,
    /// The moments of the gradients: all first ones, then all second ones.
    moments: Vec<Tensor>,
    steps: u32,
}

impl Torch {
    /// Begins with a network; `rate` is how far a step goes at most.
    pub fn new(network: &Network, rate: f64) -> Torch {
        // Sums in parts would be other sums on another number of threads.
        tch::set_num_threads(1);
        let device = Device::cuda_if_available();
        let mut out =
            Torch { setting: network.setting, rate, device, weights: vec![], means: vec![], moments: vec![], steps: 0 };
        let zeros = network.tensors.iter().chain(&network.tensors).map(|t| Array2::zeros(t.raw_dim()));
        out.restore(network, (0, zeros.chain(network.tensors.iter().cloned()).collect()));
        out
    }

    /// The rates of each graph, as [`Network::predict`] gives them.
    pub fn predict(&self, batch: &Batch) -> Vec<f32> {
        tch::no_grad(|| array(&self.forward(batch))).iter().copied().collect()
    }

    fn forward(&self, batch: &Batch) -> Tensor {
        let width = self.setting.width as i64;
        let w = |k: usize| &self.weights[k];
        let features = Tensor::from_slice(&batch.features).to_device(self.device).reshape([-1, FEATURES as i64]);
        let start = w(KIND).index_select(0, &self.numbers(batch.kinds.iter().map(|k| i64::from(*k))))
            + w(ELEMENT).index_select(0, &self.numbers(batch.elements.iter().map(|k| i64::from(*k))))
            + features.matmul(w(FEATURE));
        let (rows, nodes) = (batch.targets.len(), batch.kinds.len());
        let row = |row: usize| std::iter::repeat_n(row as i64, batch.rows[row + 1] - batch.rows[row]);
        let edges: Vec<i64> = (0..rows).flat_map(row).collect();
        let sources = batch.sources.iter().map(|n| i64::from(*n)).collect();
        let gather = self.sparse((edges, sources), &batch.weights, (rows, nodes));
        let targets = batch.targets.iter().map(|n| i64::from(*n)).collect();
        let deliver = self.sparse((targets, (0..rows as i64).collect()), &vec![1.0; rows], (nodes, rows));
        let sizes: Vec<i64> = (0..EDGES).map(|kind| batch.range(kind).len() as i64).collect();
        // Parts are cut out once and together: the gradient of each cut is a table as large as the whole.
        let products = w(EDGE).split(width, 0);
        let (message, state) = (w(MESSAGE).tr(), w(STATE).tr());
        let biases = (w(MESSAGE + 1).reshape([3 * width]), w(STATE + 1).reshape([3 * width]));
        let mut at = start.shallow_clone();
        for _ in 0..self.setting.propagations {
            let gathered = gather.mm(&at).split_with_sizes(&sizes, 0);
            let sent: Vec<Tensor> = gathered.iter().zip(&products).map(|(part, by)| part.mm(by)).collect();
            let received = deliver.mm(&Tensor::cat(&sent, 0));
            at = received.gru_cell(&at, &message, &state, Some(&biases.0), Some(&biases.1));
        }
        self.read(batch, &start, &at)
    }

    fn read(&self, batch: &Batch, start: &Tensor, end: &Tensor) -> Tensor {
        let dense = |at: &Tensor, k: usize| at.matmul(&self.weights[k]) + &self.weights[k + 1];
        let gate = dense(&Tensor::cat(&[end, start], 1), GATE).sigmoid();
        let sizes: Vec<usize> = batch.starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let each = || sizes.iter().enumerate();
        let graphs = self.numbers(each().flat_map(|(graph, n)| std::iter::repeat_n(graph as i64, *n)));
        let shares: Vec<f32> = each().flat_map(|(_, n)| std::iter::repeat_n(1.0 / *n as f32, *n)).collect();
        let shares = Tensor::from_slice(&shares).to_device(self.device).unsqueeze(1);
        let means = Tensor::zeros([batch.len() as i64, self.setting.width as i64], (Kind::Float, self.device));
        let means = means.index_add(0, &graphs, &(gate * dense(end, READ) * shares));
        let rates = dense(&dense(&means, HIDDEN).tanh(), RATE);
        // Nothing is predicted of an empty graph.
        let some: Vec<f32> = sizes.iter().map(|n| f32::from(*n > 0)).collect();
        rates * Tensor::from_slice(&some).to_device(self.device).unsqueeze(1)
    }

    /// A table of numbers at these rows and columns, and zeros elsewhere. To multiply by it is several times as fast
    /// as to pick rows and add them up, one by one, which libtorch does without vector instructions.
    fn sparse(&self, (rows, columns): (Vec<i64>, Vec<i64>), values: &[f32], (m, n): (usize, usize)) -> Tensor {
        let places = Tensor::from_slice(&[rows, columns].concat()).reshape([2, -1]).to_device(self.device);
        let values = Tensor::from_slice(values).to_device(self.device);
        let how = (Kind::Float, self.device);
        Tensor::sparse_coo_tensor_indices_size(&places, &values, [m as i64, n as i64], how, false)
    }

    fn numbers(&self, numbers: impl Iterator<Item = i64>) -> Tensor {
        Tensor::from_slice(&numbers.collect::<Vec<i64>>()).to_device(self.device)
    }

    fn tensor(&self, array: &Array2<f32>) -> Tensor {
        let flat: Vec<f32> = array.iter().copied().collect();
        let shape = [array.nrows() as i64, array.ncols() as i64];
        Tensor::from_slice(&flat).reshape(shape).to_device(self.device)
    }

    /// One step of Adam.
    fn descend(&mut self) {
        self.steps += 1;
        // The moments begin at 0; these quotients take that out again.
        let corrected = |decay: f64| 1.0 - decay.powi(self.steps.min(i32::MAX as u32) as i32);
        let (first, second) = (corrected(DECAY.0), corrected(DECAY.1));
        let (means, squares) = self.moments.split_at_mut(TENSORS);
        tch::no_grad(|| {
            for ((weights, mean), square) in self.weights.iter_mut().zip(means).zip(squares) {
                let gradient = weights.grad();
                if !gradient.defined() {
                    continue;
                }
                *mean = &*mean * DECAY.0 + &gradient * (1.0 - DECAY.0);
                *square = &*square * DECAY.1 + gradient.square() * (1.0 - DECAY.1);
                let change = (&*mean / first) / ((&*square / second).sqrt() + SMALL);
                let _ = weights.g_sub_(&(change * self.rate));
                weights.zero_grad();
            }
            let steps = f64::from(self.steps);
            let kept = KEPT.min(steps / (steps + 10.0));
            for (mean, weights) in self.means.iter_mut().zip(&self.weights) {
                *mean = &*mean * kept + weights.detach() * (1.0 - kept);
            }
        });
    }
}

fn array(tensor: &Tensor) -> Array2<f32> {
    let shape = tensor.size();
    let flat = tensor.to_device(Device::Cpu).to_kind(Kind::Float).contiguous().reshape([-1]);
    let numbers = Vec::<f32>::try_from(&flat).unwrap_or_default();
    // A tensor that is no table of floats has no place here.
    Array2::from_shape_vec((shape[0] as usize, shape[1] as usize), numbers).unwrap_or_default()
}

impl Fit for Torch {
    fn step(&mut self, batch: &Batch, rates: &Array2<f32>) -> f32 {
        let moves: Vec<f32> = (1..=self.setting.steps).map(|t| t as f32).collect();
        let moves = Tensor::from_slice(&moves).to_device(self.device);
        let (predicted, wanted) = (self.forward(batch) * &moves, self.tensor(rates) * &moves);
        let loss = predicted.huber_loss(&wanted, Reduction::Mean, 1.0);
        loss.backward();
        self.descend();
        loss.double_value(&[]) as f32
    }

    fn network(&self) -> Network {
        Network { setting: self.setting, tensors: self.means.iter().map(array).collect() }
    }

    /// The moments, and the weights as the last step left them.
    fn state(&self) -> (u32, Vec<Array2<f32>>) {
        let weights = self.weights.iter().map(|t| array(&t.detach()));
        (self.steps, self.moments.iter().map(array).chain(weights).collect())
    }

    fn restore(&mut self, network: &Network, (steps, tables): (u32, Vec<Array2<f32>>)) {
        self.setting = network.setting;
        self.means = network.tensors.iter().map(|t| self.tensor(t)).collect();
        let mut tables: Vec<Tensor> = tables.iter().map(|t| self.tensor(t)).collect();
        let weights = tables.split_off(2 * TENSORS);
        self.weights = weights.into_iter().map(|t| t.set_requires_grad(true)).collect();
        self.moments = tables;
        self.steps = steps;
    }
}
