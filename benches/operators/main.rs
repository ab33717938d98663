//! Operators on tensors under the default schedule are timed beside numpy's, whose products are OpenBLAS's.
//!
//! `cargo bench --bench operators [-- NAME…] [--write FILE]` times each definition of `operators.ks` with every bit kept, and
//! with values over the reals kept, on one thread and on two, and says what part of the machine's peak that is. Where
//! `python3`, or what PYTHON names, has numpy, `peers.py` computes the same there, in turns, and results must agree. Names
//! behind choose definitions. `--write` puts the table into its section of a page.
//!
//! Exit code 1 where a result is not that of numpy; no page is written then.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

#[path = "../common/mod.rs"]
mod common;

use common::command::{Chosen, daedal, python, version};
use common::compare::off;
use common::npy;
use common::numbers::Numbers;
use daedal::machine::Machine;
use daedal::run::Toolchain;
use daedal::run::roofline::{self, Ceiling, Kind};
use ndarray::ArrayD;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a schedule keeps: every bit, or values over the reals.
const FLOATS: [&str; 2] = ["exact", "real"];
/// Rounds in which each way, and numpy, is timed once.
const TURNS: usize = 3;
/// What an element may differ from numpy's by, as a part of the greatest magnitude of the result, in either width of floats.
const BOUNDS: [(u32, f64); 2] = [(32, 1e-4), (64, 1e-11)];

const HEAD: [&str; 2] =
    ["| operator | sizes | bits | threads | exact | real | of peak |", "|---|---|---:|---:|---:|---:|---:|"];
const BESIDE: [&str; 2] = [" numpy | exact to numpy | real to numpy |", "---:|---:|---:|"];

/// A definition of `operators.ks`, the sizes of its arguments, and how many multiplications with an addition it takes.
struct Operator {
    name: &'static str,
    bits: u32,
    shapes: &'static [&'static [usize]],
    products: u64,
}

const fn operator(name: &'static str, bits: u32, shapes: &'static [&'static [usize]], products: u64) -> Operator {
    Operator { name, bits, shapes, products }
}

/// As in the studies that are compared with: layers of ResNet-50, heads of transformers, and products of three sizes.
const OPERATORS: &[Operator] = &[
    operator("product32", 32, &[&[512, 512], &[512, 512]], 512 * 512 * 512),
    operator("product32", 32, &[&[1024, 1024], &[1024, 1024]], 1024 * 1024 * 1024),
    operator("product64", 64, &[&[512, 512], &[512, 512]], 512 * 512 * 512),
    operator("product64", 64, &[&[1024, 1024], &[1024, 1024]], 1024 * 1024 * 1024),
    operator("products32", 32, &[&[8, 128, 128], &[8, 128, 128]], 8 * 128 * 128 * 128),
    operator("products64", 64, &[&[8, 128, 128], &[8, 128, 128]], 8 * 128 * 128 * 128),
    operator("rows32", 32, &[&[256, 256], &[256]], 256 * 256),
    operator("rows64", 64, &[&[2048, 2048], &[2048]], 2048 * 2048),
    operator("columns64", 64, &[&[2048, 2048], &[2048]], 2048 * 2048),
    operator("attention32", 32, &[&[512, 64], &[512, 64], &[512, 64]], 2 * 512 * 512 * 64),
    operator("convolution32", 32, &[&[58, 58, 64], &[3, 3, 64, 64]], 56 * 56 * 64 * 64 * 9),
];

impl Operator {
    /// Writes the arguments, the same in each run.
    fn arguments(&self, folder: &Path) -> Vec<PathBuf> {
        let mut numbers = Numbers(11);
        let mut write = |(k, shape): (usize, &&[usize])| {
            let path = folder.join(format!("{}_{k}.npy", self.name));
            let values = numbers.some(shape.iter().product(), 1.0);
            match self.bits {
                32 => npy::write(&path, shape, values.into_iter().map(|x| x as f32).collect()),
                _ => npy::write(&path, shape, values),
            }
            path
        };
        self.shapes.iter().enumerate().map(&mut write).collect()
    }

    /// What a command about it under the default schedule says.
    fn say(&self, command: &[&str], (float, threads): (&str, usize), files: &[PathBuf]) -> String {
        let (source, threads) =
            (format!("{}/benches/operators/operators.ks", env!("CARGO_MANIFEST_DIR")), threads.to_string());
        let arguments: Vec<String> = files.iter().map(|f| format!("@{}", f.display())).collect();
        let mut words = command.to_vec();
        words.extend(["--schedule", "default", "--threads", &threads, "--float", float, &source, self.name]);
        words.extend(arguments.iter().map(String::as_str));
        daedal(&words)
    }

    /// The part of the peak that so many seconds are.
    fn of_peak(&self, seconds: f64, ceilings: &[Ceiling], threads: usize) -> f64 {
        let peak = ceilings.iter().find(|c| c.kind == Kind::Fma && c.of == u64::from(self.bits));
        let peak = peak.map_or(f64::NAN, |c| if threads == 1 { c.one } else { c.all });
        2e-9 * self.products as f64 / seconds / peak
    }

    fn sizes(&self) -> String {
        let sizes = |shape: &&[usize]| shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×");
        self.shapes.iter().map(sizes).collect::<Vec<_>>().join(", ")
    }
}

/// The elements of a file, as numbers.
fn elements(path: &Path, bits: u32) -> Vec<f64> {
    if bits == 32 {
        let read: ArrayD<f32> = ndarray_npy::read_npy(path).unwrap();
        return read.into_iter().map(f64::from).collect();
    }
    let read: ArrayD<f64> = ndarray_npy::read_npy(path).unwrap();
    read.into_iter().collect()
}

/// Seconds of the fastest calls: exact, real, and of numpy where it is there; and how far the ways are off from it.
fn measured(op: &Operator, threads: usize, folder: &Path, beside: bool) -> (Vec<f64>, f64) {
    let files = op.arguments(folder);
    let (own, theirs) = (folder.join("own.npy"), folder.join("theirs.npy"));
    let mut best = vec![f64::INFINITY; if beside { 3 } else { 2 }];
    for _ in 0..TURNS {
        for (way, float) in FLOATS.iter().enumerate() {
            let said: Json = serde_json::from_str(&op.say(&["measure"], (float, threads), &files)).unwrap();
            best[way] = best[way].min(said["min"].as_f64().unwrap());
        }
        if beside {
            let mut peer = python("operators/peers.py");
            let out = peer.arg(threads.to_string()).arg(op.name).arg(&theirs).args(&files).output().unwrap();
            assert!(out.status.success(), "numpy does not compute {}", op.name);
            let seconds: f64 = String::from_utf8(out.stdout).unwrap().trim().parse().unwrap();
            best[2] = best[2].min(seconds);
        }
    }
    let mut furthest: f64 = 0.0;
    for float in FLOATS.iter().filter(|_| beside) {
        op.say(&["run", "-o", &own.display().to_string()], (float, threads), &files);
        furthest = furthest.max(off(&elements(&own, op.bits), &elements(&theirs, op.bits)));
    }
    (best, furthest)
}

fn line(op: &Operator, threads: usize, best: &[f64], of_peak: f64) -> String {
    let name = op.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let own = format!("{:.4} | {:.4} | {of_peak:.2}", 1e3 * best[0], 1e3 * best[1]);
    let beside = best[2..].iter().map(|t| format!(" {:.4} | {:.2} | {:.2} |", 1e3 * t, best[0] / t, best[1] / t));
    format!("| {name} | {} | {} | {threads} | {own} |{}", op.sizes(), op.bits, beside.collect::<String>())
}

fn main() -> ExitCode {
    let chosen = Chosen::read();
    chosen.are_known("operator", OPERATORS.iter().map(|o| o.name));
    let version = version("operators/peers.py");
    match &version {
        Some(version) => eprintln!("beside numpy {version}"),
        None => eprintln!("no numpy is found: the table has no columns of it; PYTHON names a Python that has it"),
    }
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("roofline")));
    let ceilings = roofline::measure(&tools, &Machine::host()).unwrap_or_else(|d| panic!("{}", d.render()));
    let head = |k: usize| format!("{}{}", HEAD[k], if version.is_some() { BESIDE[k] } else { "" });
    let mut lines = vec![head(0), head(1)];
    println!("{}", lines.join("\n"));
    let mut wrong = vec![];
    for op in OPERATORS.iter().filter(|o| chosen.has(o.name)) {
        for threads in [1, 2] {
            let (best, furthest) = measured(op, threads, folder.path(), version.is_some());
            lines.push(line(op, threads, &best, op.of_peak(best[0].min(best[1]), &ceilings, threads)));
            println!("{}", lines[lines.len() - 1]);
            let bound = BOUNDS.iter().find(|(bits, _)| *bits == op.bits).map_or(0.0, |(_, b)| *b);
            if furthest > bound {
                wrong.push(format!("{} by {furthest:.0e}", op.name));
            }
        }
    }
    if !wrong.is_empty() {
        eprintln!("not what numpy makes: {}", wrong.join(", "));
        return ExitCode::FAILURE;
    }
    if let Some(page) = chosen.page {
        daedal::data::section(&page, "operators", &lines).unwrap();
    }
    ExitCode::SUCCESS
}
