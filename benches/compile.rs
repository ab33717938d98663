//! How long the compiler takes, and how much memory.
//!
//! `cargo bench --bench compile` first does each piece of work once and compares it with its bound,
//! then measures it with criterion. `-- --quick` is faster, `-- read` picks by name. The bounds:
//!
//! | work | seconds | memory |
//! |---|---|---|
//! | read and check a program of 1,000,000 nodes | 2 | 1 GB |
//! | read and check lets and operations nested 100,000 deep | 2 | 1 GB |
//! | optimize `programs/blas.ks` | 20 | 2 GB |
//! | optimize `programs/apps/gmm.ks` | 60 | 2 GB |
//!
//! Exit code 1 where a bound is not kept.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use criterion::{Criterion, SamplingMode};
use daedal::cost::Model;
use daedal::diag::Source;
use daedal::ir::Program;
use daedal::{pipeline, types};
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Nodes of the large program.
const NODES: usize = 1_000_000;

/// Nesting of the deep ones.
const DEEP: usize = 100_000;

/// Something to measure, and its bounds.
struct Work {
    name: &'static str,
    seconds: f64,
    gigabytes: f64,
    run: Box<dyn Fn()>,
}

/// Definitions of 500 lets in a loop each, no two of them equal, until there are enough nodes.
fn large() -> String {
    let mut out = String::new();
    let lets = 500;
    // A let, a sum and a literal for each; the products are the same everywhere.
    for f in 0..NODES.div_ceil(3 * lets) {
        write!(
            out,
            "(def f{f} (Vec Float) (x : (Vec Float) n)\n  (build n (lam (i : Integer)\n    (let (v0 (index i x))\n"
        )
        .unwrap();
        for k in 1..=lets {
            writeln!(out, "    (let (v{k} (add (mul v{} v{}) {f}.{k:03}))", k - 1, k / 2).unwrap();
        }
        writeln!(out, "    v{lets}{})))", ")".repeat(lets + 1)).unwrap();
    }
    out
}

fn deep_lets() -> String {
    let mut out = String::from("(def f Integer () (let (v0 1)\n");
    for k in 1..DEEP {
        writeln!(out, "(let (v{k} (add v{} 1))", k - 1).unwrap();
    }
    write!(out, "v{}{})", DEEP - 1, ")".repeat(DEEP)).unwrap();
    out
}

fn deep_operations() -> String {
    format!("(def f Integer () {}1{})", "(add 1 ".repeat(DEEP), ")".repeat(DEEP))
}

fn checked(text: &str) -> Program {
    types::program(&Source::new("generated.ks", text)).unwrap_or_else(|d| panic!("{d}"))
}

fn file(path: &str) -> Program {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    checked(&std::fs::read_to_string(path).unwrap())
}

fn read(name: &'static str, text: String) -> Work {
    Work { name, seconds: 2.0, gigabytes: 1.0, run: Box::new(move || drop(black_box(checked(&text)))) }
}

fn optimize(name: &'static str, seconds: f64, program: Program) -> Work {
    let run = move || {
        // As the command line does where nothing else is asked for.
        let options = pipeline::Options { cost: Model::Knossos, ..pipeline::Options::standard() };
        drop(black_box(pipeline::optimize(&program, &options).unwrap_or_else(|d| panic!("{d}"))));
    };
    Work { name, seconds, gigabytes: 2.0, run: Box::new(run) }
}

/// The most memory that this process had since [`forget_peak`], in GB. Nothing where the system does not tell.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1e6)
}

/// From here on the peak counts anew, where the system allows it.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Does the work once; whether its bounds are kept.
fn kept(work: &Work) -> bool {
    forget_peak();
    let from = Instant::now();
    (work.run)();
    let (seconds, gigabytes) = (from.elapsed().as_secs_f64(), peak().unwrap_or_default());
    let kept = seconds <= work.seconds && gigabytes <= work.gigabytes;
    let verdict = if kept { "kept" } else { "NOT KEPT" };
    println!(
        "{:20} {seconds:7.2} s of {:4.0}   {gigabytes:6.3} GB of {:3.0}   {verdict}",
        work.name, work.seconds, work.gigabytes
    );
    kept
}

fn main() {
    let text = large();
    let nodes = checked(&text).terms.len();
    assert!(nodes >= NODES, "the large program has {nodes} nodes only");
    println!("the large program has {nodes} nodes in {} MB of text", text.len() / 1_000_000);
    let works = [
        read("read-large", text),
        read("read-deep-lets", deep_lets()),
        read("read-deep-operations", deep_operations()),
        optimize("optimize-blas", 20.0, file("programs/blas.ks")),
        optimize("optimize-gmm", 60.0, file("programs/apps/gmm.ks")),
    ];
    let broken = works.iter().filter(|w| !kept(w)).count();
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("compile");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(5));
    for work in &works {
        group.bench_function(work.name, |b| b.iter(&work.run));
    }
    group.finish();
    criterion.final_summary();
    std::process::exit(i32::from(broken > 0));
}
