//! Fits written in the language: a loss, its gradient, and a thousand steps against it, beside numpy and JAX.
//!
//! `cargo bench --bench fits [-- NAME…] [--write FILE]` makes data, optimizes each program of this folder, and times its
//! `fit` as it stands and under the default schedule, one thread, by the command line that anybody would use. Where
//! `python3`, or what PYTHON names, has numpy, the same fits with gradients written by hand run beside it (`peers.py`), and
//! jitted JAX where that is installed. All must find the same parameters. `--write` puts the table into its section of a page.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

#[path = "../common/mod.rs"]
mod common;

use common::command::{Chosen, daedal, python};
use common::npy;
use common::numbers::Numbers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Steps of a fit.
const STEPS: usize = 1000;

const HEAD: &str = "| fit | data | unscheduled | default schedule | numpy | JAX | to numpy | to JAX |
|---|---|---:|---:|---:|---:|---:|---:|";

/// A program of this folder: its arguments, which are arrays but for the numbers at the end, and which of the arrays that
/// it finds the libraries show.
struct Fit {
    name: &'static str,
    data: &'static str,
    arrays: Vec<(&'static str, Vec<usize>, Vec<f64>)>,
    rate: &'static str,
    shown: Option<usize>,
}

fn logistic() -> Fit {
    let (n, d, mut numbers) = (1000, 20, Numbers(1));
    let (x, w) = (numbers.some(n * d, 1.7), numbers.some(d, 1.7));
    let label = |row: &[f64]| {
        let z: f64 = row.iter().zip(&w).map(|(a, b)| a * b).sum();
        f64::from(u8::from(numbers.next() < 2.0 / (1.0 + (-z).exp()) - 1.0))
    };
    let y = x.chunks(d).map(label).collect();
    let arrays = vec![("x", vec![n, d], x), ("y", vec![n], y)];
    Fit { name: "logistic", data: "1000 points, 20 dimensions", arrays, rate: "0.5", shown: None }
}

fn network() -> Fit {
    let (n, d, h, mut numbers) = (500, 10, 16, Numbers(2));
    let x = numbers.some(n * d, 1.7);
    let y = x.chunks(d).map(|r| r[0].sin() + r[1] * r[2]).collect();
    let (a, c) = (numbers.some(d * h, 0.5), numbers.some(h, 0.4));
    let arrays = vec![
        ("a", vec![d, h], a),
        ("b", vec![h], vec![0.0; h]),
        ("c", vec![h], c),
        ("x", vec![n, d], x),
        ("y", vec![n], y),
    ];
    Fit { name: "network", data: "500 points, 10 dimensions, 16 hidden", arrays, rate: "0.05", shown: Some(2) }
}

fn mixture() -> Fit {
    let (n, d, k, mut numbers) = (1000, 4, 5, Numbers(3));
    let centers = numbers.some(k * d, 5.0);
    let near = |i: usize| centers[i % k * d..][..d].to_vec();
    let x: Vec<f64> = (0..n).flat_map(near).map(|c| c + 1.7 * numbers.next()).collect();
    // One point of each cluster is where its mean starts.
    let m = x[..k * d].to_vec();
    let below = d * (d - 1) / 2;
    let arrays = vec![
        ("a", vec![k], vec![0.0; k]),
        ("m", vec![k, d], m),
        ("q", vec![k, d], vec![0.0; k * d]),
        ("l", vec![k, below], vec![0.0; k * below]),
        ("x", vec![n, d], x),
    ];
    Fit { name: "mixture", data: "1000 points, 4 dimensions, 5 Gaussians", arrays, rate: "0.1", shown: Some(0) }
}

fn file(folder: &Path, fit: &Fit, array: &str) -> PathBuf {
    folder.join(format!("{}_{array}.npy", fit.name))
}

/// Seconds of the fastest call, and the first parameters that it finds.
fn run(program: &str, folder: &Path, fit: &Fit, schedule: &[&str]) -> (f64, Vec<f64>) {
    let files: Vec<String> =
        fit.arrays.iter().map(|(name, ..)| format!("@{}", file(folder, fit, name).display())).collect();
    let steps = STEPS.to_string();
    let mut words = vec!["run", program, "fit"];
    words.extend(files.iter().map(String::as_str));
    words.extend([fit.rate, &steps, "--threads", "1", "--time", "5", "--json"]);
    words.extend(schedule);
    let made: serde_json::Value = serde_json::from_str(&daedal(&words)).unwrap();
    let value = fit.shown.map_or(&made["value"], |k| &made["value"][k]);
    let first = value.as_array().unwrap().iter().take(3).map(|v| v.as_f64().unwrap()).collect();
    (made["min_seconds"].as_f64().unwrap(), first)
}

/// What the libraries that are installed make of it: seconds and first parameters, by library and fit.
fn peers(folder: &Path) -> BTreeMap<(String, String), (f64, Vec<f64>)> {
    let out = python("fits/peers.py").arg(folder).arg(STEPS.to_string()).output();
    let text = out.map(|o| String::from_utf8(o.stdout).unwrap()).unwrap_or_default();
    let line = |l: &str| {
        let words: Vec<&str> = l.split(' ').collect();
        let numbers: Vec<f64> = words[2..].iter().map(|w| w.parse().unwrap()).collect();
        ((words[0].to_string(), words[1].to_string()), (numbers[0], numbers[1..].to_vec()))
    };
    text.lines().map(line).collect()
}

fn main() {
    let chosen = Chosen::read();
    let folder = tempfile::tempdir().unwrap();
    let all = [logistic(), network(), mixture()];
    chosen.are_known("fit", all.iter().map(|f| f.name));
    for fit in &all {
        for (name, shape, values) in &fit.arrays {
            npy::write(&file(folder.path(), fit, name), shape, values.clone());
        }
    }
    let beside = peers(folder.path());
    println!("{HEAD}");
    let mut lines = vec![];
    for fit in all.iter().filter(|f| chosen.has(f.name)) {
        let source = format!("{}/benches/fits/{}.ks", env!("CARGO_MANIFEST_DIR"), fit.name);
        let made = folder.path().join(format!("{}.ks", fit.name)).display().to_string();
        daedal(&["optimize", &source, "--def", "fit", "-o", &made]);
        let (plain, found) = run(&made, folder.path(), fit, &["--schedule", "none"]);
        let (scheduled, same) = run(&made, folder.path(), fit, &["--schedule", "default"]);
        assert!(found.iter().zip(&same).all(|(a, b)| a.to_bits() == b.to_bits()), "{found:?} {same:?}");
        let [numpy, jax] = ["numpy", "jax"].map(|library| beside.get(&(library.into(), fit.name.into())));
        for (_, theirs) in [numpy, jax].into_iter().flatten() {
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
            assert!(found.iter().zip(theirs).all(near), "{}: {found:?} {theirs:?}", fit.name);
        }
        let ms = |t: Option<f64>| t.map_or("-".into(), |t| format!("{:.1}", 1e3 * t));
        let to = |t: Option<&(f64, Vec<f64>)>| t.map_or("-".into(), |t| format!("{:.2}", scheduled / t.0));
        let [a, b] = [numpy, jax].map(|t| ms(t.map(|t| t.0)));
        let (plain, own) = (ms(Some(plain)), ms(Some(scheduled)));
        let line =
            format!("| {} | {} | {plain} | {own} | {a} | {b} | {} | {} |", fit.name, fit.data, to(numpy), to(jax));
        println!("{line}");
        lines.push(line);
    }
    if let Some(page) = chosen.page {
        let head = HEAD.lines().map(str::to_string);
        daedal::data::section(&page, "fits", &head.chain(lines).collect::<Vec<_>>()).unwrap();
    }
}
