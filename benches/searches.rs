//! How fast programs run under schedules that were searched, beside the default one and the program as it stands.
//!
//! `cargo bench --bench searches` asks the command line for a schedule of each kernel of `schedules/kernels.ks`, on all cores:
//! first by model alone, to see how long that takes, then with measurements. `-- --write` puts the table into
//! `docs/results.md`; other words choose kernels. There is no bound; needs g++, or what CXX names.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Schedules measured for each kernel.
const MEASUREMENTS: &str = "32";

/// The kernels, with their sizes.
const KERNELS: &[(&str, &[&str])] = &[
    ("product", &["n=512", "m=512", "p=512"]),
    ("product_by_rows", &["n=512", "m=512", "p=512"]),
    ("product_of_columns", &["n=512", "m=512", "p=512"]),
    ("products", &["z=8", "n=128", "m=128", "p=128"]),
    ("times_vector", &["n=2048", "m=2048"]),
    ("columns_times_vector", &["n=2048", "m=2048"]),
    ("distances", &["n=1000", "m=200", "d=32"]),
    ("softmax", &["n=512", "m=512"]),
    ("attention", &["n=512", "m=512", "d=64"]),
    ("normalized", &["n=512", "m=512"]),
    ("gelu", &["n=1048576"]),
    ("scaled_sum", &["n=1048576"]),
    ("transposed", &["n=2048", "m=2048"]),
    ("blur", &["h=1024", "w=1536"]),
    ("clamped_blur", &["h=1024", "w=1536"]),
    ("convolution", &["h=1024", "w=1536", "a=5", "b=5"]),
    ("corners", &["h=1024", "w=1536"]),
];

/// A search from the command line, and how long it takes in seconds.
fn search(root: &Path, cache: &Path, name: &str, sizes: &[&str], more: &[&str]) -> (Value, f64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.current_dir(root).env("DAEDAL_CACHE", cache).args([
        "schedule",
        "benches/schedules/kernels.ks",
        name,
        "--json",
    ]);
    for size in sizes {
        command.args(["--size", size]);
    }
    let start = Instant::now();
    let out = command.args(more).output().unwrap();
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    (serde_json::from_slice(&out.stdout).unwrap(), start.elapsed().as_secs_f64())
}

fn milliseconds(outcome: &Value) -> f64 {
    outcome["seconds"]["min"].as_f64().map_or(f64::NAN, |s| 1e3 * s)
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = words.iter().filter(|w| !w.starts_with("--")).collect();
    let mut rows = vec![
        "| kernel | as it stands | default | by model | measured | default to measured | judged | to search, s | with measurements, s |"
            .to_string(),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|".to_string(),
    ];
    let (mut logs, mut failed) = (vec![], 0);
    for (name, sizes) in KERNELS.iter().filter(|(n, _)| names.is_empty() || names.iter().any(|w| w == n)) {
        let (_, searching) = search(root, folder.path(), name, sizes, &["--mode", "one-shot"]);
        let measured = ["--mode", "autotune", "--measurements", MEASUREMENTS];
        let (object, measuring) = search(root, folder.path(), name, sizes, &measured);
        let tried = object["tried"].as_array().unwrap();
        failed += tried.iter().filter(|t| t["outcome"]["failed"].is_string()).count();
        let (default, best) = (milliseconds(&object["default"]["outcome"]), milliseconds(&object["outcome"]));
        // The first after the default one is what the model alone would choose.
        let first = tried.get(1).map_or(f64::NAN, |t| milliseconds(&t["outcome"]));
        logs.push((default / best).ln());
        rows.push(format!(
            "| `{name}` | {:.3} | {default:.3} | {first:.3} | {best:.3} | {:.2} | {} | {searching:.1} | {measuring:.0} |",
            1e3 * object["reference_seconds"].as_f64().unwrap_or(f64::NAN),
            default / best,
            object["judged"],
        ));
        println!("{}", rows[rows.len() - 1]);
    }
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    rows.push(format!("| geometric mean | | | | | {mean:.2} | | | |"));
    println!("{}\n{failed} schedules failed", rows[rows.len() - 1]);
    if words.iter().any(|w| w == "--write") {
        daedal::data::section(&root.join("docs/results.md"), "searches", &rows).unwrap();
    }
}
