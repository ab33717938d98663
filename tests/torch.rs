//! The network in libtorch is the one that searches use, and it learns. Built with the feature `torch`.
#![cfg(feature = "torch")]
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{self, Knobs};
use daedal::pipeline::prepare;
use daedal::rewrite::agent::value::batch::Batch;
use daedal::rewrite::agent::value::encode::{Graph, graph};
use daedal::rewrite::agent::value::fit::Fit;
use daedal::rewrite::agent::value::settings::{Settings, Task};
use daedal::rewrite::agent::value::torch::Torch;
use daedal::rewrite::agent::value::train::{Trainer, huber};
use daedal::rewrite::agent::value::{Network, Setting};
use daedal::rules::{Level, Library};
use ndarray::Array2;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Graphs of random programs, and an empty one.
fn graphs(count: u64) -> Vec<Graph> {
    let knobs = Knobs { budget: 30, ..Knobs::PLAIN };
    let one = |seed| {
        let program = common::read("random.ks", &generate::program(seed, &knobs).text).unwrap();
        let id = program.named("main")[0].term().unwrap();
        graph(&program.terms, id, &|id| Some(program.terms.size(id) as f64))
    };
    (0..count).map(one).chain([Graph::default()]).collect()
}

/// A network whose last layer is not 0, so that it predicts something.
fn network(setting: Setting, seed: u64) -> Network {
    let mut network = Network::new(setting, seed);
    let last = network.tensors.len() - 2;
    for (k, weight) in network.tensors[last].iter_mut().enumerate() {
        *weight = (k as f32 * 0.7).sin() * 0.2;
    }
    network
}

/// Protects: the forward pass in Rust is libtorch's, on random graphs, at both sizes and with shipped weights.
#[test]
fn both_forward_passes_agree() {
    let graphs = graphs(60);
    let published = Setting { steps: 12, ..Setting::published() };
    for network in [network(Setting::small(), 1), network(published, 2), Network::shipped().unwrap()] {
        let torch = Torch::new(&network, 1e-3);
        assert_eq!(torch.network(), network);
        for some in graphs.chunks(16) {
            let batch = Batch::of(some);
            let (ours, theirs) = (network.predict(&batch), torch.predict(&batch));
            assert_eq!(ours.len(), theirs.len());
            let apart = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-4, "they differ by {apart}");
        }
    }
}

/// Protects: steps go downhill: the loss that is reported is the one that is defined, and it falls.
#[test]
fn steps_lower_the_loss() {
    let graphs = graphs(16);
    let batch = Batch::of(&graphs);
    let setting = Setting { width: 16, propagations: 4, steps: 5 };
    let rates = Array2::from_shape_fn((batch.len(), 5), |(graph, step)| {
        if graph == 16 { 0.0 } else { graphs[graph].len() as f32 / 40.0 / (step + 1) as f32 }
    });
    let mut torch = Torch::new(&Network::new(setting, 3), 3e-3);
    let defined = huber(&torch.network().predict(&batch), &rates);
    let first = torch.step(&batch, &rates);
    assert!((first - defined).abs() < 1e-5, "{first} is not {defined}");
    let last = (0..150).map(|_| torch.step(&batch, &rates)).last().unwrap();
    assert!(last < 0.1 * first, "from {first} to {last}");
}

/// Protects: a training with libtorch goes on from a file as if it had not stopped, moments included.
#[test]
fn a_resumed_training_is_the_uninterrupted_one() {
    let text = "(def f Float ((x : Float) (y : Float)) (div (mul (add x y) (exp (add x y))) (exp (add x y))))";
    let program = common::read("f.ks", text).unwrap();
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let tasks: Vec<Task<'_>> = program.defs.values().map(|def| Task { program: &program, def }).collect();
    let setting = Setting { width: 16, propagations: 3, steps: 4 };
    let settings = Settings { budget: 200, depth: 6, steps: 4, states: 50, ..Settings::standard() };
    let new = || {
        let fit = Torch::new(&Network::new(setting, 1), 2e-3);
        Trainer::new(&tasks, &rules, settings, fit).unwrap()
    };
    let mut whole = new();
    whole.epoch();
    let middle = whole.checkpoint().unwrap();
    let last = whole.epoch();
    let mut resumed = new();
    resumed.resume("middle", &middle).unwrap();
    assert_eq!(resumed.epoch(), last);
    assert!(resumed.checkpoint().unwrap() == whole.checkpoint().unwrap());
}

/// Protects: a training that is interrupted says so with exit code 2, leaves the weights of the last epoch that it told of,
/// and goes on after it.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_the_last_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let text = "(def f Float ((x : Float) (y : Float)) (div (mul (add x y) (exp (add x y))) (exp (add x y))))";
    std::fs::write(dir.path().join("f.ks"), text).unwrap();
    let train = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
        command.current_dir(dir.path()).args(["train", "value", "f.ks", "-o", "f.safetensors", "--width", "8"]);
        command.args(["--budget", "100", "--depth", "5"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Lines of epochs begin with their number.
    let epoch = |line: &str| line.split_whitespace().next().and_then(|word| word.parse::<usize>().ok());
    let mut child = train(&["--epochs", "1000000"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| epoch(&line).is_some()), "no epoch was done");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let last = lines.filter_map(|line| epoch(&line)).last();
    let done = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(message.contains("interrupted after "), "{message}");
    let first = message.split("interrupted after ").nth(1).and_then(epoch).unwrap();
    assert!(last.is_none_or(|last| last == first), "{last:?}: {message}");
    assert!(dir.path().join("f.safetensors").exists());
    let more = (first + 1).to_string();
    let done = train(&["--epochs", &more, "--resume"]).wait_with_output().unwrap();
    let (told, message) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{message}");
    assert_eq!(told.lines().filter_map(epoch).collect::<Vec<_>>(), (1..=first + 1).collect::<Vec<_>>());
}
