//! How fast the mixture model runs: as written, optimized, and beside hand-written C++.
//!
//! `cargo bench --bench kernels` compiles `main` of `programs/apps/gmm.ks` as it is and optimized for
//! each cost model, and `benches/baselines/gmm.cpp` with the flags of `src/run/toolchain.rs`. They
//! take turns, so that a slow moment of the machine hits all of them. Printed are the middle of the
//! medians of all turns, their spread, the ratio to the program as written and to the baseline, and the
//! most memory at once. All values must agree. There is no bound; needs g++, or what CXX names.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::cost::Model;
use daedal::diag::Source;
use daedal::ir::Program;
use daedal::pipeline::native;
use daedal::pipeline::{self, Options};
use daedal::run::Toolchain;
use daedal::types;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often everything has its turn.
const TURNS: usize = 9;

/// Calls in one turn.
const CALLS: usize = 50;

/// One turn: the median of its calls in seconds, the value, and the most memory in bytes.
struct Turn {
    median: f64,
    value: f64,
    peak: u64,
}

/// What is measured.
struct Kernel {
    name: String,
    turn: Box<dyn Fn() -> Turn>,
}

/// The quoted words of a list in the source of the toolchain: one place for the flags.
fn words(list: &str) -> Vec<&'static str> {
    let text = include_str!("../src/run/toolchain.rs");
    let from = text.find(&format!("const {list}: &[&str]")).unwrap();
    let inside = &text[from..from + text[from..].find("];").unwrap()];
    inside.split('"').skip(1).step_by(2).collect()
}

fn native(name: &str, program: &Program, tools: &Toolchain) -> Kernel {
    let def = program.named("main")[0];
    let compiled = native::compile(program, def, tools).unwrap_or_else(|d| panic!("{d}"));
    let turn = move || {
        let t = compiled.time(&[], CALLS).unwrap_or_else(|d| panic!("{d}"));
        Turn { median: t.median_seconds, value: t.value.to_json().as_f64().unwrap(), peak: t.peak_bytes }
    };
    Kernel { name: name.into(), turn: Box::new(turn) }
}

fn optimized(model: Model, program: &Program, tools: &Toolchain) -> Kernel {
    let options = Options { cost: model, ..Options::standard() };
    let outcome = pipeline::optimize(program, &options).unwrap_or_else(|d| panic!("{d}"));
    native(&format!("optimized, {}", model.name()), &outcome.program, tools)
}

fn baseline(root: &Path, tools: &Toolchain, folder: &Path) -> Kernel {
    let made = folder.join("gmm");
    let mut compiler = tools.compiler.split_whitespace();
    let mut command = Command::new(compiler.next().unwrap());
    command.args(compiler).arg(format!("-O{}", tools.level));
    command.args(words("FLAGS").into_iter().filter(|f| !["-shared", "-fPIC"].contains(f)));
    let done = command.arg("-o").arg(&made).arg(root.join("benches/baselines/gmm.cpp")).status().unwrap();
    assert!(done.success(), "the baseline does not compile");
    let turn = move || {
        let out = Command::new(&made).arg(CALLS.to_string()).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        // `min A ms, median B ms, value C, peak D bytes`
        let after = |word: &str| -> f64 {
            let mut rest = text.split_whitespace().skip_while(|w| *w != word);
            rest.nth(1).unwrap().trim_end_matches(',').parse().unwrap()
        };
        Turn { median: after("median") / 1e3, value: after("value"), peak: after("peak") as u64 }
    };
    Kernel { name: "hand-written C++".into(), turn: Box::new(turn) }
}

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let text = std::fs::read_to_string(root.join("programs/apps/gmm.ks")).unwrap();
    let program = types::program(&Source::new("programs/apps/gmm.ks", text)).unwrap_or_else(|d| panic!("{d}"));
    let kernels = [
        native("as written", &program, &tools),
        optimized(Model::Knossos, &program, &tools),
        optimized(Model::Analytic, &program, &tools),
        baseline(&root, &tools, folder.path()),
    ];
    let mut turns: Vec<Vec<Turn>> = kernels.iter().map(|_| vec![]).collect();
    for _ in 0..TURNS {
        for (kernel, turns) in kernels.iter().zip(&mut turns) {
            turns.push((kernel.turn)());
        }
    }
    let want = turns[0][0].value;
    for turn in turns.iter().flatten() {
        assert!((turn.value - want).abs() <= 1e-9 * want.abs(), "{} is not {want}", turn.value);
    }
    let middles: Vec<f64> = turns.iter_mut().map(|t| middle(t)).collect();
    println!("GMM, 1000 points of dimension 10, 25 parts; {TURNS} turns of {CALLS} calls, value {want}");
    println!(
        "{:20}  {:>9}  {:>7}  {:>11}  {:>8}  {:>11}",
        "", "median ms", "spread", "to written", "to C++", "peak bytes"
    );
    for ((kernel, turns), time) in kernels.iter().zip(&turns).zip(&middles) {
        let spread = 100.0 * (turns[TURNS - 1].median - turns[0].median) / time;
        let (written, cpp) = (middles[0] / time, middles[kernels.len() - 1] / time);
        let peak = turns.iter().map(|t| t.peak).max().unwrap();
        println!("{:20}  {:>9.4}  {spread:>6.1}%  {written:>10.3}x  {cpp:>7.3}x  {peak:>11}", kernel.name, 1e3 * time);
    }
}

/// Sorts by time; the time in the middle.
fn middle(turns: &mut [Turn]) -> f64 {
    turns.sort_by(|a, b| a.median.total_cmp(&b.median));
    turns[turns.len() / 2].median
}
