//! How long the interpreter takes, and how many bytes an element of its tensors takes.
//!
//! `cargo bench --bench interpreter` runs the definitions of `interpreter.ks` and those of the corpus that need no
//! arguments, and writes one line for each: its name, the least milliseconds of ten turns, and the value, so that lines
//! of two builds compare. Before come bytes an element, as the system counts them while a tensor of a million
//! elements is held. Words choose what runs. There is no bound.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Program};
use daedal::types;
use std::hint::black_box;
use std::time::Instant;

/// Turns of each definition.
const TURNS: usize = 10;

/// Elements of the tensors whose memory is measured.
const ELEMENTS: usize = 1_000_000;

/// Definitions, with a size for which a turn takes some tens of milliseconds.
const SIZED: &[(&str, i64)] = &[
    ("floats", 1_000_000),
    ("floats_summed", 1_000_000),
    ("narrow_summed", 200_000),
    ("dot", 100_000),
    ("product", 40),
    ("product_of_rows", 40),
    ("rows_of_three", 50_000),
    ("pairs_summed", 100_000),
    ("added_by_element", 100_000),
    ("folded", 200_000),
    ("states", 50),
    ("scattered", 100_000),
    ("deltas", 400),
    ("equal_rows", 500),
];

/// Definitions of the corpus that take no arguments.
const CORPUS: &[(&str, &str)] = &[
    ("apps/gmm", "main_small"),
    ("apps/kmeans", "main"),
    ("apps/lstm", "main"),
    ("apps/convnet", "main"),
    ("apps/ba", "main"),
    ("apps/stencil", "main"),
];

/// Definitions that give a vector, and how many numbers an element has.
const HELD: &[(&str, usize)] = &[("floats", 1), ("narrow", 1), ("truths", 1), ("pairs", 2), ("triples", 3)];

fn program(path: &str) -> Program {
    let path = format!("{}/{path}.ks", env!("CARGO_MANIFEST_DIR"));
    types::program(&Source::new("bench.ks", std::fs::read_to_string(path).unwrap())).unwrap_or_else(|d| panic!("{d}"))
}

fn run(program: &Program, name: &str, args: &[Value]) -> Value {
    let def = program.named(name)[0];
    Interpreter::new(program).run(def, args).unwrap_or_else(|d| panic!("{name}: {d}"))
}

fn size(n: i64) -> [Value; 1] {
    [Value::Scalar(Lit::int(n))]
}

/// Stops where a definition has another value than a `;; run` line says.
fn check(program: &Program) {
    for line in program.source.text.lines().filter_map(|l| l.strip_prefix(";; run ")) {
        let (call, want) = line.split_once(" => ").unwrap();
        let (name, n) = call.split_once(' ').unwrap();
        let found = run(program, name, &size(n.parse().unwrap())).to_json().to_string();
        assert_eq!(found, want, "{line}");
    }
}

/// Times a definition and writes its line. Of a long value only the length of its text is told.
fn timed(label: &str, program: &Program, name: &str, args: &[Value]) {
    let mut least = f64::INFINITY;
    for _ in 0..TURNS {
        let start = Instant::now();
        // Freeing a value is part of the work.
        drop(black_box(run(program, name, args)));
        least = least.min(start.elapsed().as_secs_f64());
    }
    let text = run(program, name, args).to_json().to_string();
    let told = if text.len() > 40 { format!("{} characters", text.len()) } else { text };
    println!("{label:24} {:10.3} ms   {told}", 1e3 * least);
}

/// Bytes of memory that this process holds. Nothing where the system does not tell.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? * 1024)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|w| !w.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()));
    let own = program("benches/interpreter");
    check(&own);
    if wanted("bytes") {
        // First of all, so that no memory is left from elsewhere to be used again.
        for (name, numbers) in HELD {
            let before = resident();
            let held = run(&own, name, &size(ELEMENTS as i64));
            if let (Some(from), Some(to)) = (before, resident()) {
                let bytes = to.saturating_sub(from) as f64 / ELEMENTS as f64;
                println!("bytes {name:18} {bytes:10.1} an element, of {numbers} numbers");
            }
            // Kept until the end: what is freed would be taken for the next one.
            std::mem::forget(held);
        }
    }
    for (name, n) in SIZED.iter().filter(|(name, _)| wanted(name)) {
        timed(name, &own, name, &size(*n));
    }
    for (path, name) in CORPUS.iter().filter(|(path, _)| wanted(path)) {
        timed(path, &program(&format!("programs/{path}")), name, &[]);
    }
}
