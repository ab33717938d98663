//! How fast programs run under the default schedule, beside what runs where nothing is said.
//!
//! `cargo bench --bench schedules` compiles each kernel of `kernels.ks` both ways. They take turns on one thread, and the
//! scheduled one on two, so that a slow moment of the machine hits all, and all results must be equal to the bit.
//! `-- --write` puts the table into `docs/results.md`; other words choose kernels. There is no bound; needs g++, or what CXX
//! names.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Def, Lit, Program, Scalar, Ty, TyKind};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::run::{Native, Toolchain};
use daedal::{schedule, stage, types};
use std::path::Path;
use std::time::Instant;

/// How often both have their turn.
const TURNS: usize = 5;

/// Calls in one turn.
const CALLS: usize = 10;

/// The kernels, with the dimensions of their arguments.
const KERNELS: &[(&str, &[&[usize]])] = &[
    ("product", &[&[512, 512], &[512, 512]]),
    ("product_by_rows", &[&[512, 512], &[512, 512]]),
    ("product_of_columns", &[&[512, 512], &[512, 512]]),
    ("products", &[&[8, 128, 128], &[8, 128, 128]]),
    ("times_vector", &[&[2048, 2048], &[2048]]),
    ("columns_times_vector", &[&[2048, 2048], &[2048]]),
    ("distances", &[&[1000, 32], &[200, 32]]),
    ("softmax", &[&[512, 512]]),
    ("attention", &[&[512, 64], &[512, 64], &[512, 64]]),
    ("normalized", &[&[512, 512]]),
    ("gelu", &[&[1 << 20]]),
    ("scaled_sum", &[&[1 << 20], &[1 << 20]]),
    ("transposed", &[&[2048, 2048]]),
    ("blur", &[&[1024, 1536]]),
    ("clamped_blur", &[&[1024, 1536]]),
    ("convolution", &[&[1024, 1536], &[5, 5]]),
    ("corners", &[&[1024, 1536]]),
];

/// The element type of a tensor.
fn element(ty: Ty) -> Scalar {
    match ty.kind() {
        TyKind::Tensor(_, elem) => element(*elem),
        _ => ty.as_scalar().unwrap(),
    }
}

/// Numbers between -1 and 1, the same for the same seed.
fn tensor(ty: Scalar, dims: &[usize], seed: u64) -> Value {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Value::Scalar(Lit::of(ty, (state >> 33) as f64 / f64::from(1 << 30) - 1.0))
    };
    Value::tensor(dims.to_vec(), (0..dims.iter().product()).map(next).collect())
}

/// The least time of a call in one turn, and its value.
fn turn(native: &Native, args: &[Value]) -> (f64, Value) {
    let t = native.time(args, CALLS).unwrap_or_else(|d| panic!("{}", d.render()));
    (t.min_seconds, t.value)
}

/// A row of the table.
fn row(program: &Program, def: &Def, dims: &[&[usize]], tools: &Toolchain) -> String {
    let args: Vec<Value> =
        (1..).zip(def.params.iter().zip(dims)).map(|(k, (p, d))| tensor(element(p.ty), d, k)).collect();
    let plain = native::compile(program, def, tools).unwrap_or_else(|d| panic!("{}", d.render())).with_threads(1);
    let start = Instant::now();
    let graph = stage::extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
    let made = schedule::default(graph, &Machine::host());
    let chosen = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut scheduled =
        native::compile_scheduled(program, def, &made, tools).unwrap_or_else(|d| panic!("{}", d.render()));
    let compiled = start.elapsed().as_secs_f64();
    let (mut before, mut after) = (f64::INFINITY, [f64::INFINITY; 2]);
    for _ in 0..TURNS {
        let (seconds, want) = turn(&plain, &args);
        before = before.min(seconds);
        for (threads, least) in (1..).zip(&mut after) {
            scheduled = scheduled.with_threads(threads);
            let (seconds, have) = turn(&scheduled, &args);
            assert!(want == have, "{}: the schedule changes bits on {threads} threads", def.name());
            *least = least.min(seconds);
        }
    }
    let [after, two] = after;
    let sizes: Vec<String> =
        dims.iter().map(|d| d.iter().map(ToString::to_string).collect::<Vec<_>>().join("×")).collect();
    format!(
        "| `{}` | {} | {:.3} | {:.3} | {:.2} | {:.3} | {:.2} | {} | {:.1} | {compiled:.1} |",
        def.name(),
        sizes.join(", "),
        1e3 * before,
        1e3 * after,
        before / after,
        1e3 * two,
        after / two,
        made.steps.len(),
        1e3 * chosen,
    )
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let path = root.join("benches/schedules/kernels.ks");
    let text = std::fs::read_to_string(path).unwrap();
    let program = types::program(&Source::new("kernels.ks", text)).unwrap_or_else(|d| panic!("{}", d.render()));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = words.iter().filter(|w| !w.starts_with("--")).collect();
    let mut rows = vec![
        "| kernel | sizes | unscheduled | default schedule | speed | on two threads | speed | steps | to choose them | to compile, s |"
            .to_string(),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|".to_string(),
    ];
    for (name, dims) in KERNELS.iter().filter(|(n, _)| names.is_empty() || names.iter().any(|w| w == n)) {
        rows.push(row(&program, program.named(name)[0], dims, &tools));
        println!("{}", rows[rows.len() - 1]);
    }
    if words.iter().any(|w| w == "--write") {
        daedal::data::section(&root.join("docs/results.md"), "schedules", &rows).unwrap();
    }
}
