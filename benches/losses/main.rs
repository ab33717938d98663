//! Losses written plainly become values and gradients, which are timed beside those of JAX.
//!
//! `cargo bench --bench losses [-- NAME…] [--write FILE]` derives each program of this folder by the command line that
//! anybody would use, and times it under the default schedule on one thread, with every bit kept, and with values over the
//! reals kept. Where `python3`, or what PYTHON names, has JAX, the same losses run there (`peers.py`), in turns, and values
//! and gradients must agree. Names behind choose losses. `--write` puts the table into its section of a page.
//!
//! Exit code 1 where a value or a gradient is not that of JAX; no page is written then.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

#[path = "../common/mod.rs"]
mod common;
mod data;

use common::command::{Chosen, daedal, python, version};
use common::compare::off;
use data::Loss;
use serde_json::Value as Json;
use std::path::Path;
use std::process::ExitCode;

/// What a schedule keeps: every bit, or values over the reals.
const FLOATS: [&str; 2] = ["exact", "real"];
/// Rounds in which each way, and JAX, is timed once.
const TURNS: usize = 3;
/// What a component may differ from JAX's by, as a part of the greatest magnitude of its gradient.
const BOUND: f64 = 1e-8;

const HEAD: [&str; 2] = ["| loss | data | exact | real |", "|---|---|---:|---:|"];
const BESIDE: [&str; 2] = [" JAX | exact to JAX | real to JAX |", "---:|---:|---:|"];

/// The derivative of a loss: its file, its name there, and its arguments.
struct Derived {
    file: String,
    def: String,
    arguments: Vec<String>,
}

impl Derived {
    fn of(loss: &Loss, folder: &Path) -> Derived {
        let source = format!("{}/benches/losses/{}.ks", env!("CARGO_MANIFEST_DIR"), loss.name);
        let file = folder.join(format!("{}.ks", loss.name)).display().to_string();
        let mut words = vec!["grad", &source, "loss", "--value", "--optimize", "--json", "-o", &file];
        words.extend(loss.by.iter().flat_map(|p| ["--wrt", p]));
        let said: Json = serde_json::from_str(&daedal(&words)).unwrap();
        let files = loss.files(folder).into_iter().map(|f| format!("@{}", f.display()));
        // The last argument is the adjoint of the loss.
        let arguments = files.chain(["1.0".into()]).collect();
        Derived { def: said["name"].as_str().unwrap().into(), file, arguments }
    }

    /// What a command about the derivative under the default schedule says of it.
    fn say(&self, command: &[&str], float: &str) -> Json {
        let mut words = command.to_vec();
        words.extend(["--schedule", "default", "--threads", "1", "--float", float, &self.file, &self.def]);
        words.extend(self.arguments.iter().map(String::as_str));
        serde_json::from_str(&daedal(&words)).unwrap()
    }

    /// Seconds of the fastest call.
    fn seconds(&self, float: &str) -> f64 {
        self.say(&["measure"], float)["min"].as_f64().unwrap()
    }

    /// The numbers of the value, and of the gradient by each of so many parameters.
    fn parts(&self, float: &str, parameters: usize) -> Vec<Vec<f64>> {
        let said = self.say(&["run", "--json"], float);
        let gradients = match parameters {
            1 => std::slice::from_ref(&said["value"][1]),
            _ => said["value"][1].as_array().unwrap(),
        };
        std::iter::once(&said["value"][0]).chain(gradients).map(flat).collect()
    }
}

/// The numbers of nested lists.
fn flat(value: &Json) -> Vec<f64> {
    match value {
        Json::Array(all) => all.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// Seconds of the fastest call of JAX, and what it makes.
fn jax(loss: &Loss, folder: &Path) -> (f64, Vec<Vec<f64>>) {
    let out = python("losses/peers.py").arg(folder).arg(loss.name).args(loss.by).output().unwrap();
    assert!(out.status.success(), "JAX does not compute {}", loss.name);
    let said: Json = serde_json::from_slice(&out.stdout).unwrap();
    (said["seconds"].as_f64().unwrap(), said["parts"].as_array().unwrap().iter().map(flat).collect())
}

/// Milliseconds of the fastest calls: exact, real, and of JAX where it is there; and how far the ways are off from it.
fn measured(loss: &Loss, folder: &Path, beside: bool) -> (Vec<f64>, f64) {
    loss.write(folder);
    let derived = Derived::of(loss, folder);
    let mut best = vec![f64::INFINITY; if beside { 3 } else { 2 }];
    let mut theirs = vec![];
    for _ in 0..TURNS {
        for (way, float) in FLOATS.iter().enumerate() {
            best[way] = best[way].min(1e3 * derived.seconds(float));
        }
        if beside {
            let (seconds, parts) = jax(loss, folder);
            best[2] = best[2].min(1e3 * seconds);
            theirs = parts;
        }
    }
    let mut furthest: f64 = 0.0;
    for float in FLOATS.iter().filter(|_| beside) {
        let own = derived.parts(float, loss.by.len());
        assert_eq!(own.len(), theirs.len(), "{}", loss.name);
        furthest = own.iter().zip(&theirs).map(|(a, b)| off(a, b)).fold(furthest, f64::max);
    }
    (best, furthest)
}

fn line(loss: &Loss, best: &[f64]) -> String {
    let times = best.iter().map(|t| format!(" {t:.3} |"));
    let ratios = best[2..].iter().flat_map(|jax| best[..2].iter().map(move |own| format!(" {:.2} |", own / jax)));
    format!("| `{}` | {} |{}", loss.name, loss.data, times.chain(ratios).collect::<String>())
}

/// The last line: the geometric means of the ratios, where there are any.
fn means(all: &[Vec<f64>]) -> Option<String> {
    let mean = |way: usize| {
        let logarithms = all.iter().map(|best| (best[way] / best.get(2)?).ln().into());
        let sum: f64 = logarithms.sum::<Option<f64>>()?;
        Some((sum / all.len() as f64).exp())
    };
    Some(format!("| geometric mean | | | | | {:.2} | {:.2} |", mean(0)?, mean(1)?))
}

fn main() -> ExitCode {
    let chosen = Chosen::read();
    let all = data::all();
    chosen.are_known("loss", all.iter().map(|l| l.name));
    let version = version("losses/peers.py");
    match &version {
        Some(version) => eprintln!("beside JAX {version}"),
        None => eprintln!("no JAX is found: the table has no columns of it; PYTHON names a Python that has it"),
    }
    let folder = tempfile::tempdir().unwrap();
    let head = |k: usize| format!("{}{}", HEAD[k], if version.is_some() { BESIDE[k] } else { "" });
    let mut lines = vec![head(0), head(1)];
    println!("{}", lines.join("\n"));
    let (mut times, mut wrong) = (vec![], vec![]);
    for loss in all.iter().filter(|l| chosen.has(l.name)) {
        let (best, furthest) = measured(loss, folder.path(), version.is_some());
        lines.push(line(loss, &best));
        println!("{}", lines[lines.len() - 1]);
        if version.is_some() {
            eprintln!("{}: off by {furthest:.0e} of the greatest component", loss.name);
        }
        if furthest > BOUND {
            wrong.push(format!("{} by {furthest:.0e}", loss.name));
        }
        times.push(best);
    }
    if let Some(last) = means(&times) {
        println!("{last}");
        lines.push(last);
    }
    if !wrong.is_empty() {
        eprintln!("not what JAX makes, by more than {BOUND:.0e} of the greatest component: {}", wrong.join(", "));
        return ExitCode::FAILURE;
    }
    if let Some(page) = chosen.page {
        daedal::data::section(&page, "losses", &lines).unwrap();
    }
    ExitCode::SUCCESS
}
