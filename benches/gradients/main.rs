//! How fast gradients are: hand-written C++, and beside it what Daedal makes of the objective.
//!
//! `cargo bench --bench gradients [-- NAME…]` compiles the baselines of `benches/baselines/` with and
//! without `-ffast-math`, checks each (`check.rs`), and times it on the data of `workloads.rs`, one thread.
//! Everything takes turns, so that a slow moment of the machine hits all; the table has the least time
//! and in brackets the middle one. With `--daedal` the optimized objectives and their gradients (value
//! and gradient together, as the hand-written ones) are timed too, and with `--scheduled` the gradient runs
//! under the default schedule for its sizes, with the same bits and with the same values over the reals, and on two threads;
//! `--write FILE` puts the tables into their sections of a page. Needs g++, or what CXX names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

mod baseline;
mod check;
mod data;
mod made;
mod tables;
mod workloads;

use baseline::Call;
use daedal::run::Toolchain;
use libloading::Library;
use made::{Gradient, How, Made};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tables::{ByHand, Daedal, TABLES, Times};
use workloads::Workload;

/// How often everything has its turn, and how long a turn is at least, in seconds.
const TURNS: usize = 9;
const TURN: f64 = 0.02;

/// The objective and its gradient, by one entry of a baseline compiled one way.
struct Hand {
    entry: &'static str,
    way: &'static str,
    primal: Call,
    gradient: Call,
    bytes: u64,
}

/// What has its turns in a row of the tables.
struct Row {
    hand: Vec<Hand>,
    primal: Option<Made>,
    gradient: Option<Made>,
    scheduled_primal: Option<Made>,
    exact: Option<Made>,
    real: Option<Made>,
    two_threads: Option<Made>,
}

/// Compiled baselines by file, in the order of `baseline::WAYS`.
type Libraries = BTreeMap<&'static str, Vec<Arc<Library>>>;

fn turn(mut step: impl FnMut()) -> Vec<f64> {
    let (start, mut out) = (Instant::now(), vec![]);
    while out.len() < 5 || start.elapsed().as_secs_f64() < TURN {
        let from = Instant::now();
        step();
        out.push(from.elapsed().as_secs_f64());
    }
    out
}

fn call(library: &Arc<Library>, w: &Workload, name: &str, with_gradient: bool) -> Call {
    let as_needed = |a: data::Array| if w.precise.is_some() { a.single() } else { a };
    let inputs: Vec<data::Array> = w.large.inputs.iter().cloned().map(as_needed).collect();
    let outputs: Vec<data::Array> = check::outputs(&w.large, with_gradient).into_iter().map(as_needed).collect();
    Call::new(library, name, &w.large.sizes, &inputs, &outputs)
}

fn by_hand(library: &Arc<Library>, w: &Workload, (entry, way): (&'static str, &'static str)) -> Hand {
    let primal = call(library, w, &format!("{entry}_primal"), false);
    let mut gradient = call(library, w, &format!("{entry}_gradient"), true);
    baseline::memory_taken(library);
    gradient.run();
    let bytes = baseline::memory_taken(library) + gradient.output_bytes();
    Hand { entry, way, primal, gradient, bytes }
}

/// Stops with an error where a baseline is wrong.
fn check_all(root: &Path, w: &Workload, libraries: &[Arc<Library>]) {
    let program = check::program(root, &w.objective);
    let def = check::definition(&program, &w.objective);
    for library in libraries {
        for entry in w.entries {
            let checked = w.precise.unwrap_or(entry);
            for case in &w.small {
                check::differences(library, checked, w.meaning, case, 0.0);
                check::meaning(library, checked, case, &program, def);
            }
            // Among a million maxima some change place within a step of the differences.
            let kinks = if w.precise.is_some() { 0.02 } else { 0.0 };
            check::differences(library, checked, w.meaning, &w.large, kinks);
            if let Some(precise) = w.precise {
                check::precision(library, entry, precise, &w.large);
            }
        }
    }
}

/// Everything of a row, made and checked.
fn row(root: &Path, w: &Workload, libraries: &[Arc<Library>], tools: &Toolchain, words: &Words) -> Row {
    let ways = || baseline::WAYS.iter().map(|(way, _)| *way).zip(libraries);
    let each = w.entries.iter().flat_map(|entry| ways().map(move |(way, library)| (*entry, way, library)));
    let hand = each.map(|(entry, way, library)| by_hand(library, w, (entry, way))).collect();
    let derived = words.daedal.then(|| Gradient::new(root, w));
    let made = |how| derived.as_ref().and_then(|d| d.made(w, tools, &libraries[0], how));
    let scheduled = |real, threads| words.scheduled.then(|| made(Some(How { real, threads }))).flatten();
    let exact = How { real: false, threads: 1 };
    Row {
        hand,
        primal: words.daedal.then(|| made::primal(root, w, tools, None)).flatten(),
        gradient: made(None),
        scheduled_primal: words.scheduled.then(|| made::primal(root, w, tools, Some(exact))).flatten(),
        exact: scheduled(false, 1),
        real: scheduled(true, 1),
        two_threads: scheduled(false, 2),
    }
}

/// The times of a row, of which everything has its turns; of hand-written entries the way that is compiled to the faster
/// gradient.
fn measure(w: &Workload, row: &mut Row) -> (Vec<ByHand>, Daedal) {
    let mut by_hand: Vec<[Vec<f64>; 2]> = row.hand.iter().map(|_| Default::default()).collect();
    let daedal = [&row.primal, &row.gradient, &row.scheduled_primal, &row.exact, &row.real, &row.two_threads]
        .map(Option::as_ref);
    let mut own: [Vec<f64>; 6] = Default::default();
    for _ in 0..TURNS {
        for (h, [primal, gradient]) in row.hand.iter_mut().zip(&mut by_hand) {
            primal.extend(turn(|| h.primal.run()));
            gradient.extend(turn(|| h.gradient.run()));
        }
        for (made, times) in daedal.iter().zip(&mut own) {
            times.extend(made.iter().flat_map(|m| m.turn()));
        }
    }
    let [primal, gradient, scheduled_primal, exact, real, two_threads] =
        own.map(|t| Some(t).filter(|t| !t.is_empty()).map(Times::new));
    let bytes = row.exact.as_ref().map(|m| m.bytes);
    let daedal = Daedal { primal, gradient, scheduled_primal, exact, real, two_threads, bytes };
    let timed = row.hand.iter().zip(by_hand).map(|(h, [primal, gradient])| ByHand {
        entry: h.entry,
        way: h.way,
        primal: Times::new(primal),
        gradient: Times::new(gradient),
        bytes: h.bytes,
    });
    let mut timed: Vec<ByHand> = timed.collect();
    let mut faster = vec![];
    for entry in w.entries {
        let ways = (0..timed.len()).filter(|k| timed[*k].entry == *entry);
        let least = |k: &usize| timed[*k].gradient.least();
        let best = ways.min_by(|a, b| least(a).total_cmp(&least(b))).unwrap();
        faster.push(timed.swap_remove(best));
    }
    (faster, daedal)
}

/// The command line.
struct Words {
    daedal: bool,
    scheduled: bool,
    page: Option<PathBuf>,
    names: Vec<String>,
}

fn words() -> Words {
    let mut out = Words { daedal: false, scheduled: false, page: None, names: vec![] };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--daedal" => out.daedal = true,
            "--scheduled" => (out.daedal, out.scheduled) = (true, true),
            "--write" => out.page = Some(words.next().expect("--write needs a file").into()),
            _ => {
                assert!(!word.starts_with("--"), "the options are --daedal, --scheduled and --write FILE");
                out.names.push(word);
            }
        }
    }
    out
}

fn main() {
    let words = words();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let wanted = |w: &Workload| words.names.is_empty() || words.names.iter().any(|n| w.name.contains(n.as_str()));
    let chosen: Vec<Workload> = workloads::all().into_iter().filter(wanted).collect();
    assert!(!chosen.is_empty(), "no workload has such a name");
    let mut libraries = Libraries::new();
    for w in &chosen {
        libraries.entry(w.file).or_insert_with(|| {
            let source = root.join(format!("benches/baselines/{}.cpp", w.file));
            let made = |(way, flags): &(&str, &[&str])| {
                baseline::compile(&tools.compiler, &source, flags, folder.path(), &format!("{}-{way}", w.file))
            };
            baseline::WAYS.iter().map(made).collect()
        });
    }
    println!("milliseconds, least of all turns [middle]; 1 thread");
    println!(
        "{:13} {:39} {:14} {:9} {:>19} {:>19} {:>6} | {:>19} {:>19} {:>6} {:>7} {:>8}",
        "",
        "",
        "hand-written",
        "compiled",
        "primal",
        "gradient",
        "ratio",
        "Daedal primal",
        "gradient",
        "ratio",
        "p/hand",
        "g/hand"
    );
    let mut lines: [Vec<String>; 3] = Default::default();
    for w in &chosen {
        let libraries = &libraries[w.file];
        check_all(&root, w, libraries);
        let mut row = row(&root, w, libraries, &tools, &words);
        let (hand, daedal) = measure(w, &mut row);
        lines.iter_mut().zip(tables::lines(w, &hand, &daedal)).for_each(|(all, own)| all.extend(own));
    }
    let Some(page) = &words.page else { return };
    for ((name, head), rows) in TABLES.into_iter().zip(lines).take(if words.scheduled { 3 } else { 1 }) {
        let lines: Vec<String> = head.lines().map(str::to_string).chain(rows).collect();
        daedal::data::section(page, name, &lines).unwrap();
    }
}
