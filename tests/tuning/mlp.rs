//! The network of costs: its gradients, what it learns, its files, and how orders are judged.

use crate::common;
use daedal::machine::Machine;
use daedal::pipeline::grades;
use daedal::pipeline::lessons::{Lesson, Lessons};
use daedal::pipeline::samples::{Case, schedules};
use daedal::pipeline::trial::Task;
use daedal::run::Toolchain;
use daedal::tune::mlp::network::{Input, Network};
use daedal::tune::mlp::train::{Example, Settings, loss, train};
use daedal::tune::mlp::weights::{self, Learned};
use daedal::tune::random::{Pipeline, VERSION};
use daedal::tune::ranking::ranking;
use daedal::tune::record::Outcome;
use daedal::tune::{Model, Tree};
use std::collections::BTreeSet;

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] }
}

/// Some schedules of a pipeline as a network takes them.
fn inputs(seed: u64) -> Vec<Vec<Input>> {
    let case = Case::of(&Pipeline::new(seed)).unwrap();
    let (tree, standard): (Tree<'_>, _) = case.space(&machine()).unwrap();
    let graph = case.graph().unwrap();
    let each = schedules(&tree, &standard, seed).into_iter().filter_map(|steps| {
        let source = daedal::diag::Source::new("s", &steps);
        let made = daedal::schedule::text::apply_for(graph.clone(), tree.incoming(), &source).ok()?;
        Some(tree.features(&made)?.0.iter().map(Input::of).collect())
    });
    each.collect()
}

/// A network that says something of everything.
fn network(seed: u64, inputs: &[Vec<Input>]) -> Network {
    let mut out = Model::default().untrained(seed);
    out.scale(&inputs.iter().flatten().collect::<Vec<_>>());
    for (k, w) in out.tables[6].iter_mut().enumerate() {
        *w = (k as f64 * 0.7).sin() * 0.1;
    }
    out
}

/// Protects: an untrained network is the linear model, but for terms that cost next to nothing.
#[test]
fn what_has_learned_nothing_is_the_linear_model() {
    let case = Case::of(&Pipeline::new(3)).unwrap();
    let (tree, standard) = case.space(&machine()).unwrap();
    let (linear, mlp) = (Model::default(), Model::learned(Model::default().untrained(1)));
    let seconds = |model: &Model| model.seconds(&tree.counted(model, &standard).unwrap().1);
    assert!((seconds(&mlp) / seconds(&linear) - 1.0).abs() < 0.2, "{} {}", seconds(&mlp), seconds(&linear));
    assert!(seconds(&linear) > 0.0);
}

/// Protects: gradients are the slopes of the seconds, in every table of weights.
#[test]
fn gradients_are_slopes() {
    let all = inputs(5);
    let network = network(2, &all);
    let stages = &all[0];
    let mut gradient: Vec<Vec<f64>> = network.tables.iter().map(|t| vec![0.0; t.len()]).collect();
    stages.iter().for_each(|s| network.gradient(s, 1.0, &mut gradient));
    let scale = network.seconds(stages);
    let mut seen = 0;
    for (k, table) in network.tables.iter().enumerate() {
        for j in (0..table.len()).step_by(table.len().div_ceil(7)) {
            let at = |by: f64| {
                let mut moved = network.clone();
                moved.tables[k][j] += by;
                moved.seconds(stages)
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!(
                (slope - gradient[k][j]).abs() <= 1e-5 * scale.max(slope.abs()),
                "table {k}: {slope} {}",
                gradient[k][j]
            );
            seen += usize::from(slope.abs() > 1e-4 * scale);
        }
    }
    assert!(seen >= 10, "only {seen} weights matter");
}

/// Protects: the loss is that of throughputs as shares of the fastest one, with its own slopes, and is 0 for what is right.
#[test]
fn the_loss_is_of_throughputs() {
    let (seconds, predicted) = ([1.0, 2.0, 4.0], [2.0, 2.0, 1.0]);
    // Shares 1, 1/2 and 1/4; predicted 1/2, 1/2 and 1.
    let (lost, slopes) = loss(&predicted, &seconds);
    assert!((lost - (0.25 + 0.0 + 0.5625) / 3.0).abs() < 1e-12, "{lost}");
    for k in 0..3 {
        let at = |by: f64| {
            let mut moved = predicted;
            moved[k] += by;
            loss(&moved, &seconds).0
        };
        assert!(((at(1e-6) - at(-1e-6)) / 2e-6 - slopes[k]).abs() < 1e-6);
    }
    assert_eq!(loss(&seconds, &seconds).0, 0.0);
}

/// Protects: a network learns what a machine does that the linear model does not know, of pipelines that it has not seen.
#[test]
fn networks_learn_to_order_schedules() {
    // A machine on which vectors cost ten times what is stated, and nothing else costs anything.
    let examples = |seed: u64| -> Vec<Example> {
        let one = |stages: Vec<Input>| {
            let seconds = stages.iter().map(|s| 1e-9 * s.terms[7] + 5e-9 * s.terms[8]).sum::<f64>() + 1e-7;
            Example { stages, seconds }
        };
        inputs(seed).into_iter().map(one).collect()
    };
    let (learned, unseen): (Vec<_>, Vec<_>) = ((0..24).map(examples).collect(), (100..108).map(examples).collect());
    let mut start = Model::default().untrained(7);
    start.scale(&learned.iter().flatten().flat_map(|e: &Example| &e.stages).collect::<Vec<_>>());
    let grade = |network: &Network| {
        let group = |p: &Vec<Example>| {
            (p.iter().map(|e| network.seconds(&e.stages)).collect(), p.iter().map(|e| e.seconds).collect())
        };
        ranking(&unseen.iter().map(group).collect::<Vec<_>>())
    };
    let before = grade(&start);
    let settings = Settings { epochs: 30, rate: 3e-3, seed: 1 };
    let network = train(start.clone(), &learned, &[], &settings, &mut |_, _| true);
    let after = grade(&network);
    assert!(after.pairs > before.pairs + 0.05 && after.ranks > before.ranks, "{before:?} {after:?}");
    assert_eq!(train(start, &learned, &[], &settings, &mut |_, _| true), network, "the same seed learns the same");
}

/// Protects: orders are judged by pairs, ranks and what is chosen; times that are nearly equal are no pairs.
#[test]
fn orders_are_judged() {
    let right = ranking(&[(vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 40.0])]);
    assert_eq!((right.pairs, right.ranks, right.first), (1.0, 1.0, 1.0));
    let wrong = ranking(&[(vec![3.0, 2.0, 1.0], vec![10.0, 20.0, 40.0])]);
    assert_eq!((wrong.pairs, wrong.ranks), (0.0, -1.0));
    assert!((wrong.first - 4.0).abs() < 1e-12);
    let close = ranking(&[(vec![2.0, 1.0, 3.0], vec![10.0, 10.5, 40.0])]);
    assert_eq!(close.pairs, 1.0);
    let blind = ranking(&[(vec![1.0, 1.0, 1.0], vec![10.0, 20.0, 40.0])]);
    assert_eq!((blind.pairs, blind.ranks), (0.5, 0.0));
}

/// Protects: a network reads back as itself, up to what 32-bit floats hold; files of other versions, of other features, cut
/// short or of something else are refused with a reason.
#[test]
fn networks_are_files() {
    let network = network(9, &inputs(5));
    let about = Learned { pipelines: VERSION, seeds: vec![1, 2], schedules: 30, ..Learned::default() };
    let bytes = weights::bytes(&network, &about).unwrap();
    let (read, learned) = weights::parse("w", &bytes).unwrap();
    assert_eq!(learned, about);
    for (a, b) in network.tables.iter().zip(&read.tables) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * a.abs()));
    }
    let refused = |bytes: &[u8]| weights::parse("w", bytes).unwrap_err().message;
    let other = weights::bytes(&network, &Learned { pipelines: VERSION + 1, ..about.clone() }).unwrap();
    assert!(refused(&other).contains("of version"), "{}", refused(&other));
    let at = bytes.windows(11).position(|w| w == b"num_vectors").unwrap();
    let mut renamed = bytes.clone();
    renamed[at..at + 11].copy_from_slice(b"num_victors");
    assert!(refused(&renamed).contains("other features"), "{}", refused(&renamed));
    assert!(refused(&bytes[..bytes.len() / 2]).contains("no file of weights"));
    assert!(refused(b"nothing").contains("no file of weights"));
    let value = std::fs::read(common::root("src/rewrite/agent/value/shipped.safetensors")).unwrap();
    assert!(refused(&value).contains("holds no model of costs"), "{}", refused(&value));
}

/// Protects: records are kept by machine and version, a line that was cut off hides no other, and what is learned from is never
/// what is held out.
#[test]
fn records_are_read_and_split() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let lesson = |seed: u64, machine: &str| Lesson {
        version: VERSION,
        seed,
        machine: machine.to_string(),
        steps: "parallel t1 i\n".into(),
        outcome: Outcome::Seconds { min: 1e-3, median: 2e-3 },
    };
    let own = format!("{:?}", machine());
    let lines = [lesson(1, &own), lesson(2, "another"), Lesson { version: VERSION + 1, ..lesson(3, &own) }];
    let mut text: String = lines.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect();
    text += "{\"version\":1,\"se";
    std::fs::write(&path, text).unwrap();
    let read = Lessons::read(&path, &machine()).unwrap();
    assert_eq!((read.all, read.unread), (vec![lesson(1, &own)], 3));
    assert!(Lessons::read(&folder.path().join("none"), &machine()).unwrap().all.is_empty());
    let held_out: Vec<u64> = (0..20).filter(|s| grades::is_held_out(*s)).collect();
    assert_eq!(held_out, [0, 5, 10, 15]);
}

/// Protects: schedules are measured in turns, each with the program's value; what gives another value, or ends the process, is
/// no time, and the others have theirs.
#[test]
fn schedules_are_measured_together() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain { level: 1, ..Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().into())) };
    let pipeline = Pipeline::new(11);
    let case = Case::of(&pipeline).unwrap();
    let host = Machine { threads: 2, ..Machine::host() };
    let (tree, standard) = case.space(&host).unwrap();
    let mut all = schedules(&tree, &standard, 11);
    assert!(all.iter().collect::<BTreeSet<_>>().len() == all.len() && all.len() >= 4, "{}", all.len());
    assert_eq!(all, schedules(&tree, &standard, 11), "the same seed gives the same schedules");
    all.truncate(3);
    let task =
        Task { text: pipeline.text, sizes: pipeline.small, seed: 11, threads: 2, schedules: all, without: vec![1] };
    let mut said = vec![];
    task.run(&tools, false, &mut |line| {
        said.push(serde_json::to_string(line).unwrap());
        Ok(())
    })
    .unwrap_or_else(|d| panic!("{}", d.render()));
    let of = |k: usize| said.iter().filter(|l| l.contains(&format!("\"seconds\":{{\"of\":{k},"))).count();
    assert_eq!((of(0) > 1, of(1), of(2) > 1), (true, 0, true), "{said:?}");
    assert!(said[0].contains("\"running\":null"), "{said:?}");
}
