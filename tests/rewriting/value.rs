//! The value network: what it is told, what it predicts, what it learns from, and the files it lives in.

use crate::common;
use crate::common::generate::{self, Knobs};
use daedal::cost::Model;
use daedal::ir::{Def, Program};
use daedal::pipeline::{Engine, Options, optimize, prepare};
use daedal::rewrite::agent::Bind;
use daedal::rewrite::agent::value::batch::Batch;
use daedal::rewrite::agent::value::encode::{Graph, graph};
use daedal::rewrite::agent::value::fit::{Fit, TABLES};
use daedal::rewrite::agent::value::settings::{Settings, Task};
use daedal::rewrite::agent::value::train::{EpochReport, Trainer, huber};
use daedal::rewrite::agent::value::{Network, Setting, weights};
use daedal::rules::{Level, Library};
use daedal::search::Algorithm as Agent;
use ndarray::Array2;
use std::cell::RefCell;
use std::rc::Rc;

/// A network whose last layer is not 0, so that it predicts something.
fn network(setting: Setting, seed: u64) -> Network {
    let mut network = Network::new(setting, seed);
    let last = network.tensors.len() - 2;
    for (k, weight) in network.tensors[last].iter_mut().enumerate() {
        *weight = (k as f32 * 0.7).sin() * 0.2;
    }
    network
}

const TINY: Setting = Setting { width: 8, propagations: 3, steps: 4 };

fn body(text: &str) -> Graph {
    let program = common::read("value.ks", text).unwrap();
    encoded(&program, program.defs.values().next_back().unwrap())
}

fn encoded(program: &Program, def: &Def) -> Graph {
    graph(&program.terms, def.term().unwrap(), &|id| Some(program.terms.size(id) as f64))
}

/// Graphs of random programs.
fn random(count: u64) -> Vec<Graph> {
    let knobs = Knobs::PLAIN;
    let one = |seed| {
        let program = common::read("random.ks", &generate::program(seed, &knobs).text).unwrap();
        encoded(&program, &program.named("main")[0].clone())
    };
    (0..count).map(one).collect()
}

/// Protects: the network sees terms, not how they are written: names and depths do not matter, and equal
/// subterms are one node at whatever depth they stand.
#[test]
fn equal_terms_are_equal_graphs() {
    let of = |e: &str| body(&format!("(def f Float ((x : Float) (y : Float)) {e})"));
    assert_eq!(of("(let (a (mul x y)) (add a a))"), of("(let (b (mul x y)) (add b b))"));
    let twice = of("(add (exp x) (exp x))");
    assert_eq!(twice.len(), 3, "the sum, the exponential, and x");
    let under = of("(add (exp x) (let (a (mul y y)) (mul a (exp x))))");
    // x, exp, y, y y, a, a exp(x), let, the sum: exp(x) is one although a let stands around one of the two.
    assert_eq!(under.len(), 8);
}

/// Protects: what differs is told apart: order, position in a long tuple, numbers, and which variable is meant.
#[test]
fn different_terms_are_predicted_differently() {
    let text = |t: &str, e: &str| format!("(def f {t} ((x : Float) (y : Float)) {e})");
    let pairs = [
        ("Float", "(sub (exp x) y)", "(sub y (exp x))"),
        ("Float", "(mul x 2.0)", "(mul x 3.0)"),
        ("Float", "(mul x 0.0)", "(mul x 1.0)"),
        ("Float", "(let (a (exp x)) (let (b (log x)) (sub a a)))", "(let (a (exp x)) (let (b (log x)) (sub a b)))"),
        ("(Tuple Float Float Float Float Float Float)", "(tuple y y y y (exp x) y)", "(tuple y y y y y (exp x))"),
    ];
    let network = network(Setting::small(), 1);
    for (ty, left, right) in pairs {
        let both = [body(&text(ty, left)), body(&text(ty, right))];
        let rates = network.predict(&Batch::of(&both));
        let (a, b) = rates.split_at(network.setting.steps);
        let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart > 1e-6, "{left} and {right} look alike");
    }
}

/// Protects: batches are only a way to be fast.
#[test]
fn a_batch_predicts_what_its_graphs_do() {
    let graphs = random(40);
    let network = network(TINY, 3);
    let together = network.predict(&Batch::of(&graphs));
    for (graph, rates) in graphs.iter().zip(together.chunks(TINY.steps)) {
        let alone = network.predict(&Batch::of([graph]));
        assert!(alone.iter().zip(rates).all(|(a, b)| (a - b).abs() < 1e-5), "{alone:?} is not {rates:?}");
    }
    let empty = Graph::default();
    assert_eq!(network.predict(&Batch::of([&empty])), vec![0.0; TINY.steps]);
    assert!(network.predict(&Batch::of(std::iter::empty())).is_empty());
}

/// The forward pass written as the equations stand, node by node, in double precision.
fn by_the_equations(n: &Network, g: &Graph) -> Vec<f64> {
    let d = n.setting.width;
    let row =
        |tensor: usize, row: usize| -> Vec<f64> { n.tensors[tensor].row(row).iter().map(|v| f64::from(*v)).collect() };
    let times = |x: &[f64], tensor: usize, first: usize| -> Vec<f64> {
        let columns = n.tensors[tensor].ncols();
        (0..columns).map(|c| (0..x.len()).map(|r| x[r] * f64::from(n.tensors[tensor][[first + r, c]])).sum()).collect()
    };
    let plus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let features = g.features.len() / g.len();
    let start: Vec<Vec<f64>> = (0..g.len())
        .map(|v| {
            let f: Vec<f64> = g.features[v * features..(v + 1) * features].iter().map(|x| f64::from(*x)).collect();
            let kind = plus(&row(0, g.kinds[v].into()), &row(1, g.elements[v].into()));
            plus(&kind, &times(&f, 2, 0))
        })
        .collect();
    let mut at = start.clone();
    for _ in 0..n.setting.propagations {
        let mut received = vec![vec![0.0; d]; g.len()];
        for e in &g.edges {
            let (parent, child, kind) = (e.parent as usize, e.child as usize, usize::from(e.kind));
            for (to, from, kind) in [(parent, child, kind), (child, parent, kind + 5)] {
                let sent: Vec<f64> = times(&at[from], 3, kind * d).iter().map(|v| v * f64::from(e.weight)).collect();
                received[to] = plus(&received[to], &sent);
            }
        }
        let next = |v: usize| -> Vec<f64> {
            let m = plus(&times(&received[v], 4, 0), &row(5, 0));
            let s = plus(&times(&at[v], 6, 0), &row(7, 0));
            let new = |k: usize| (m[2 * d + k] + sigmoid(m[k] + s[k]) * s[2 * d + k]).tanh();
            let keep = |k: usize| sigmoid(m[d + k] + s[d + k]);
            (0..d).map(|k| (1.0 - keep(k)) * new(k) + keep(k) * at[v][k]).collect()
        };
        at = (0..g.len()).map(next).collect();
    }
    let mut mean = vec![0.0; d];
    for v in 0..g.len() {
        let gate = plus(&plus(&times(&at[v], 8, 0), &times(&start[v], 8, d)), &row(9, 0));
        let read = plus(&times(&at[v], 10, 0), &row(11, 0));
        (0..d).for_each(|k| mean[k] += sigmoid(gate[k]) * read[k] / g.len() as f64);
    }
    let hidden: Vec<f64> = plus(&times(&mean, 12, 0), &row(13, 0)).iter().map(|v| v.tanh()).collect();
    plus(&times(&hidden, 14, 0), &row(15, 0))
}

/// Protects: the forward pass is the one of the equations, fast exponentials included.
#[test]
fn the_network_is_the_published_one() {
    let network = network(Setting { width: 12, propagations: 5, steps: 6 }, 9);
    for graph in random(30) {
        let fast = network.predict(&Batch::of([&graph]));
        let slow = by_the_equations(&network, &graph);
        assert!(fast.iter().zip(&slow).all(|(f, s)| (f64::from(*f) - s).abs() < 1e-5), "{fast:?} is not {slow:?}");
    }
}

/// Protects: weights survive a file to the bit, and the file depends on nothing else.
#[test]
fn weights_come_back_as_they_were() {
    let network = network(TINY, 5);
    let bytes = weights::bytes(&network).unwrap();
    assert_eq!(weights::parse("w", &bytes).unwrap(), network);
    assert_eq!(weights::bytes(&network).unwrap(), bytes);
}

/// Protects: a file that is not a network of this version is refused, and the message says why.
#[test]
fn wrong_weights_are_refused() {
    let bytes = weights::bytes(&network(TINY, 5)).unwrap();
    let refused = |bytes: &[u8]| weights::parse("w.safetensors", bytes).unwrap_err().to_string();
    // The length of the header stands before it, so texts are exchanged for ones as long.
    let changed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        refused(&bytes)
    };
    for cut in [0, 4, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(refused(&bytes[..cut]).contains("is no file of weights, or not all of one"), "{cut}");
    }
    assert!(changed("\\\"version\\\":1,", "\\\"version\\\":9,").contains("version 9, expected 1"));
    assert!(changed("\\\"lgamma\\\"", "\\\"dgamma\\\"").contains("other kinds of nodes"));
    assert!(changed("\"gate.bias\"", "\"fate.bias\"").contains("lacks the weights `gate.bias`"));
    assert!(changed("\\\"width\\\":8", "\\\"width\\\":9").contains("expected"));
    assert!(changed("\\\"width\\\":8", "\\\"width\\\":0").contains("width 0"));
    assert!(changed("\"daedal\"", "\"dardal\"").contains("holds no value network"));
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(refused(&nan).contains("no numbers"));
}

/// Protects: the shipped weights are of this version.
#[test]
fn the_shipped_network_is_of_this_version() {
    assert_eq!(Network::shipped().unwrap().setting, Setting::small());
}

/// Learns nothing but a mean, so that the loop around it can be tested without libtorch.
struct Mean {
    network: Network,
    steps: u32,
    seen: Vec<Array2<f32>>,
}

impl Fit for Mean {
    fn step(&mut self, batch: &Batch, rates: &Array2<f32>) -> f32 {
        self.steps += 1;
        let loss = huber(&self.network.predict(batch), rates);
        let last = self.network.tensors.len() - 1;
        for (k, bias) in self.network.tensors[last].iter_mut().enumerate() {
            *bias += 0.05 * (rates.column(k).mean().unwrap() - *bias);
        }
        loss
    }

    fn network(&self) -> Network {
        self.network.clone()
    }

    fn state(&self) -> (u32, Vec<Array2<f32>>) {
        (self.steps, self.seen.clone())
    }

    fn restore(&mut self, network: &Network, (steps, seen): (u32, Vec<Array2<f32>>)) {
        *self = Mean { network: network.clone(), steps, seen };
    }
}

const LESSONS: &str = "
(def f Float ((x : Float) (y : Float)) (div (mul (add x y) (exp (add x y))) (exp (add x y))))
(def g Float (x : Float) (sub (mul x 1.0) (mul 0.0 (exp x))))
(def h (Vec Float) (v : (Vec Float) n) (build n (lam (i : Integer) (div (index i v) (sum v)))))";

fn settings() -> Settings {
    Settings { budget: 150, depth: 6, steps: TINY.steps, seed: 4, states: 60, ..Settings::standard() }
}

fn with_trainer<R>(text: &str, settings: Settings, run: impl FnOnce(&mut Trainer<'_, Mean>) -> R) -> R {
    let program = common::read("lessons.ks", text).unwrap();
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let tasks: Vec<Task<'_>> = program.defs.values().map(|def| Task { program: &program, def }).collect();
    let network = Network::new(TINY, 2);
    let seen = (0..TABLES).flat_map(|_| &network.tensors).map(|t| Array2::zeros(t.raw_dim())).collect();
    run(&mut Trainer::new(&tasks, &rules, settings, Mean { network, steps: 0, seen }).unwrap())
}

/// Protects: epochs search, learn, and report; and the same seed gives the same.
#[test]
fn epochs_learn_from_searches() {
    let train = || with_trainer(LESSONS, settings(), |t| [t.epoch(), t.epoch(), t.epoch()]);
    let reports = train();
    assert_eq!(reports, train());
    assert!(reports.iter().all(|r| r.costs.len() == 3 && r.evaluations > 30 && r.states > 20), "{reports:?}");
    assert!(reports[2].loss < reports[0].loss, "a mean is a better guess than 0: {reports:?}");
    let costs = |r: &daedal::rewrite::agent::value::train::EpochReport| r.best.iter().sum::<f64>();
    assert!(costs(&reports[2]) <= costs(&reports[0]));
}

/// Learns nothing, and keeps what it was to learn.
struct Pupil {
    network: Network,
    told: Rc<RefCell<Vec<Vec<f32>>>>,
}

impl Fit for Pupil {
    fn step(&mut self, _: &Batch, rates: &Array2<f32>) -> f32 {
        self.told.borrow_mut().extend(rates.rows().into_iter().map(|row| row.to_vec()));
        0.0
    }

    fn network(&self) -> Network {
        self.network.clone()
    }

    fn state(&self) -> (u32, Vec<Array2<f32>>) {
        (0, vec![])
    }

    fn restore(&mut self, network: &Network, _: (u32, Vec<Array2<f32>>)) {
        self.network = network.clone();
    }
}

const STEPS: usize = 10;

/// What one epoch teaches of a definition: its report, and by how much the cost of each state falls within 1, 2, …
/// moves, as logarithms.
fn taught(expression: &str, settings: Settings) -> (EpochReport, Vec<Vec<f32>>) {
    let text = format!("(def f Float ((a : Float) (b : Float) (c : Float) (d : Float)) {expression})");
    let program = common::read("f.ks", &text).unwrap();
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let tasks: Vec<Task<'_>> = program.defs.values().map(|def| Task { program: &program, def }).collect();
    let told = Rc::new(RefCell::new(vec![]));
    let network = Network::new(Setting { steps: STEPS, ..TINY }, 1);
    let fit = Pupil { network, told: told.clone() };
    let report = Trainer::new(&tasks, &rules, settings, fit).unwrap().epoch();
    let falls = |rates: &Vec<f32>| rates.iter().enumerate().map(|(k, rate)| rate * (k + 1) as f32).collect();
    let falls = told.borrow().iter().map(falls).collect();
    (report, falls)
}

/// An expression whose best form names `a + b`, at a cost of 10.1: seven moves of which each makes it dearer.
const SHARED: &str = "(mul (exp (add a b)) (add (mul a c) (add a b)))";

fn naming() -> Settings {
    Settings { bind: Bind::Searched, depth: 10, budget: 100, walks: 100, passes: 1, ..Settings::standard() }
}

/// Protects: what is to be named is met where the first search makes moves of bindings alone, and not without.
#[test]
fn a_search_by_bindings_alone_meets_what_is_to_be_named() {
    let best = |binding| taught(SHARED, Settings { binding, ..naming() }).0.best[0];
    assert!(best(0) > 10.5, "{}", best(0));
    assert!((best(3000) - 10.1).abs() < 1e-6, "{}", best(3000));
}

/// Protects: above the best cost a fall to it is a great one, though it be a tenth of the cost.
#[test]
fn what_is_above_the_best_cost_falls_far() {
    let settings = Settings { binding: 3000, ..naming() };
    let most = |above| {
        let (_, falls) = taught(SHARED, Settings { above, ..settings });
        falls.iter().map(|f| f[STEPS - 1]).fold(0.0, f32::max)
    };
    // As written it costs 11.0. A state that costs as much has ln((0.9 + 0.1) / 0.1) to fall.
    assert!(most(true) > 2.3, "{}", most(true));
    // The dearest states cost some 20, and fall to 10.1.
    assert!(most(false) < 1.2, "{}", most(false));
}

/// How many of these states have their greatest fall within so many moves and not fewer; the last are without any.
fn by_distance(falls: &[Vec<f32>]) -> Vec<usize> {
    let mut out = vec![0; STEPS + 1];
    for fall in falls {
        let far = fall.iter().position(|f| *f > 2.0);
        out[far.unwrap_or(STEPS)] += 1;
    }
    out
}

/// Protects: states on the way to the best one are learned as often as the many that are far from it.
#[test]
fn distances_are_learned_evenly() {
    let settings = Settings { binding: 3000, above: true, states: 120, ..naming() };
    let near = |even| {
        let (_, falls) = taught(SHARED, Settings { even, ..settings });
        let counts = by_distance(&falls);
        assert!(falls.len() > 60, "{counts:?}");
        counts[..4].iter().sum::<usize>() as f64 / falls.len() as f64
    };
    assert!(near(true) > 1.5 * near(false), "{} and {}", near(true), near(false));
}

/// Protects: a training that is interrupted and goes on is the training that was not.
#[test]
fn a_resumed_training_is_the_uninterrupted_one() {
    let (whole, middle) = with_trainer(LESSONS, settings(), |t| {
        t.epoch();
        t.epoch();
        let middle = t.checkpoint().unwrap();
        t.epoch();
        ((t.epoch(), t.checkpoint().unwrap()), middle)
    });
    let resumed = with_trainer(LESSONS, settings(), |t| {
        t.resume("middle", &middle).unwrap();
        t.epoch();
        (t.epoch(), t.checkpoint().unwrap())
    });
    assert!(whole == resumed, "{:?} is not {:?}", whole.0, resumed.0);
    // Other programs or settings are refused, and so is half a file.
    let refused = |text: &str, settings: Settings, bytes: &[u8]| {
        with_trainer(text, settings, |t| t.resume("middle", bytes).unwrap_err().to_string())
    };
    let other = refused(LESSONS, Settings { budget: 151, ..settings() }, &middle);
    assert!(other.contains("other programs or settings"), "{other}");
    let other = refused(&LESSONS.replace("exp", "log"), settings(), &middle);
    assert!(other.contains("other programs or settings"), "{other}");
    assert!(refused(LESSONS, settings(), &middle[..middle.len() / 2]).contains("not all of one"));
}

/// Protects: nothing to learn from, and limits of 0, are said to be that.
#[test]
fn a_training_without_anything_is_refused() {
    let program = common::read("lessons.ks", LESSONS).unwrap();
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let fit = || Mean { network: Network::new(TINY, 2), steps: 0, seen: vec![] };
    let tasks: Vec<Task<'_>> = program.defs.values().map(|def| Task { program: &program, def }).collect();
    let refused = |t: &[Task<'_>], s: Settings| Trainer::new(t, &rules, s, fit()).err().unwrap().to_string();
    assert!(refused(&[], settings()).contains("no definition to learn from"));
    assert!(refused(&tasks, Settings { budget: 0, ..settings() }).contains("is 0"));
    assert!(refused(&tasks, Settings { steps: 5, ..settings() }).contains("tells 4 moves apart"));
}

/// Protects: with a network a search is deterministic on any number of threads, and returns what is right.
#[test]
fn a_search_with_a_network_does_not_depend_on_threads() {
    let program = common::read("lessons.ks", LESSONS).unwrap();
    let network = network(Setting::small(), 7);
    let search = |threads, engine| {
        let engine = Engine::Agent(engine);
        let options = Options {
            cost: Model::Knossos,
            engine,
            budget: 400,
            threads,
            value: Some(&network),
            ..Options::standard()
        };
        let outcome = optimize(&program, &options).unwrap();
        let costs: Vec<(f64, f64)> = outcome.rows.iter().map(|r| (r.cost_before, r.cost_after)).collect();
        (daedal::ir::print::program(&outcome.program), costs)
    };
    for engine in [Agent::Astar, Agent::Mcts, Agent::Greedy] {
        let one = search(1, engine);
        assert_eq!(one, search(2, engine));
        assert!(one.1.iter().all(|(before, after)| after <= before));
    }
}

/// What a command says, and its exit code.
fn said(args: &[&str], dir: &std::path::Path) -> (String, Option<i32>) {
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_daedal")).args(args).current_dir(dir).output().unwrap();
    (String::from_utf8(out.stderr).unwrap() + &String::from_utf8(out.stdout).unwrap(), out.status.code())
}

/// Protects: the command line says what is wrong with weights and limits, and how to get what is missing.
#[test]
fn commands_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f.ks"), LESSONS).unwrap();
    let bytes = weights::bytes(&network(TINY, 5)).unwrap();
    std::fs::write(dir.path().join("half.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(dir.path().join("whole.safetensors"), &bytes).unwrap();
    let guided =
        |value| said(&["optimize", "f.ks", "--engine", "astar", "--budget", "50", "--value", value], dir.path());
    let (text, code) = guided("half.safetensors");
    assert!(text.contains("`half.safetensors` is no file of weights, or not all of one") && code == Some(1), "{text}");
    let (text, code) = guided("none.safetensors");
    assert!(text.contains("there is no such file") && code == Some(1), "{text}");
    let (text, code) = guided("whole.safetensors");
    assert!(text.contains("total") && code == Some(0), "{text}");
    let train = |args: &[&str]| said(&[&["train", "value", "f.ks", "-o", "w.safetensors"], args].concat(), dir.path());
    let (text, code) = train(&["--budget", "0"]);
    assert!(text.contains("--budget") && code == Some(1), "{text}");
    let (text, code) = train(&["--def", "ff"]);
    assert!(text.contains("does not define `ff`") && code == Some(1), "{text}");
    if !cfg!(feature = "torch") {
        let (text, code) = train(&[]);
        assert!(text.contains("scripts/get-libtorch.sh") && code == Some(1), "{text}");
        assert!(!dir.path().join("w.safetensors").exists());
    }
}
