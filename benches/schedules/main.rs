//! How fast programs run under the default schedule, beside what runs where nothing is said.
//!
//! `cargo bench --bench schedules` compiles each kernel of `kernels.ks`, and the pipelines and operators of
//! `programs/imaging/` and `programs/tensor/`, both ways, as `daedal run` does: for the sizes of the call, on one thread and on
//! two. Where a schedule by hand stands beside a program (`NAME.sched` for the definition `NAME`), it has its turns, too. All
//! take turns, so that a slow moment of the machine hits all, and all results must be equal to the bit. `-- --write` puts the
//! table into `docs/results.md`, `--hand` leaves the programs with a schedule by hand; other words choose kernels. There is no bound; needs g++, or what CXX names.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

mod ceiling;

use ceiling::Least;
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Def, Lit, Param, Program, Scalar, Ty, TyKind};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::run::roofline::{self, Ceiling};
use daedal::run::{Native, Toolchain};
use daedal::schedule::{Schedule, text};
use daedal::tune::example::incoming;
use daedal::{schedule, stage, types};
use std::path::Path;
use std::time::Instant;

/// How often both have their turn.
const TURNS: usize = 5;

/// Seconds that a turn takes about, and the most calls in it.
const TURN: f64 = 0.1;
const MOST: f64 = 10.0;

/// An argument: a tensor of such numbers of these dimensions, or a number.
enum Arg {
    T(&'static [usize]),
    N(f64),
}
use Arg::{N, T};

/// The programs, their definitions and arguments.
const KERNELS: &[(&str, &str, &[Arg])] = &[
    (KS, "product", &[T(&[512, 512]), T(&[512, 512])]),
    (KS, "product_by_rows", &[T(&[512, 512]), T(&[512, 512])]),
    (KS, "product_of_columns", &[T(&[512, 512]), T(&[512, 512])]),
    (KS, "products", &[T(&[8, 128, 128]), T(&[8, 128, 128])]),
    (KS, "times_vector", &[T(&[2048, 2048]), T(&[2048])]),
    (KS, "columns_times_vector", &[T(&[2048, 2048]), T(&[2048])]),
    (KS, "distances", &[T(&[1000, 32]), T(&[200, 32])]),
    (KS, "softmax", &[T(&[512, 512])]),
    (KS, "attention", &[T(&[512, 64]), T(&[512, 64]), T(&[512, 64])]),
    (KS, "normalized", &[T(&[512, 512])]),
    (KS, "gelu", &[T(&[1 << 20])]),
    (KS, "scaled_sum", &[T(&[1 << 20]), T(&[1 << 20])]),
    (KS, "transposed", &[T(&[2048, 2048])]),
    (KS, "clamped_blur", &[T(&[1024, 1536])]),
    (KS, "convolution", &[T(&[1024, 1536]), T(&[5, 5])]),
    (KS, "corners", &[T(&[1024, 1536])]),
    ("programs/imaging/blur.ks", "blur", &[T(&[2048, 2048])]),
    ("programs/imaging/blur.ks", "blur_float", &[T(&[2048, 2048])]),
    ("programs/imaging/unsharp.ks", "unsharp", &[T(&[2048, 2048, 3])]),
    ("programs/imaging/harris.ks", "harris", &[T(&[2048, 2048, 3])]),
    ("programs/imaging/stencil_chain.ks", "stencil_chain", &[T(&[768, 1280]), N(32.0)]),
    ("programs/imaging/stencil_chain.ks", "chain_of_four", &[T(&[1536, 2560])]),
    ("programs/imaging/max_filter.ks", "max_filter", &[T(&[384, 640, 3]), N(6.0)]),
    ("programs/imaging/iir_blur.ks", "iir_blur", &[T(&[1536, 2560, 3]), N(0.25)]),
    ("programs/imaging/histogram.ks", "histogram", &[T(&[1536, 2560, 3])]),
    ("programs/imaging/interpolate.ks", "interpolate", &[T(&[1536, 2560, 4])]),
    ("programs/imaging/bilateral_grid.ks", "bilateral_grid", &[T(&[1536, 2560]), N(8.0), N(0.1)]),
    ("programs/imaging/local_laplacian.ks", "local_laplacian", &[T(&[768, 1280]), N(8.0), N(0.125), N(1.0)]),
    ("programs/imaging/nl_means.ks", "nl_means", &[T(&[192, 320, 3]), N(3.0), N(3.0), N(1.0)]),
    ("programs/imaging/camera_pipe.ks", "camera_pipe", &[T(&[1968, 2592]), T(&[3, 3]), N(2.2)]),
    ("programs/tensor/c1d.ks", "c1d", &[T(&[1, 256, 64]), T(&[3, 64, 128]), N(2.0), N(1.0)]),
    ("programs/tensor/c2d.ks", "c2d", &[T(&[1, 56, 56, 64]), T(&[3, 3, 64, 64]), N(1.0), N(1.0)]),
    ("programs/tensor/c3d.ks", "c3d", &[T(&[1, 8, 28, 28, 32]), T(&[3, 3, 3, 32, 32]), N(1.0), N(1.0)]),
    ("programs/tensor/gmm.ks", "gmm", &[T(&[8, 128, 128]), T(&[8, 128, 128])]),
    ("programs/tensor/grp.ks", "grp", &[T(&[1, 56, 56, 64]), T(&[3, 3, 16, 64]), N(1.0), N(1.0), N(4.0)]),
    ("programs/tensor/dil.ks", "dil", &[T(&[1, 56, 56, 64]), T(&[3, 3, 64, 64]), N(1.0), N(2.0), N(2.0)]),
    ("programs/tensor/dep.ks", "dep", &[T(&[1, 112, 112, 32]), T(&[3, 3, 32]), N(1.0), N(1.0)]),
    ("programs/tensor/t2d.ks", "t2d", &[T(&[1, 14, 14, 64]), T(&[4, 4, 64, 32]), N(2.0), N(1.0)]),
    ("programs/tensor/cap.ks", "cap", &[T(&[1, 8, 8, 4, 4, 16]), T(&[3, 3, 4, 4, 16, 16]), N(1.0), N(1.0)]),
    ("programs/tensor/nrm.ks", "nrm", &[T(&[1, 1024, 1024])]),
    (
        "programs/tensor/conv_layer.ks",
        "conv_layer",
        &[T(&[1, 56, 56, 64]), T(&[3, 3, 64, 64]), T(&[64]), T(&[64]), T(&[64]), N(1.0), N(1.0)],
    ),
    (
        "programs/tensor/depthwise_separable.ks",
        "depthwise_separable",
        &[T(&[4, 112, 112, 32]), T(&[3, 3, 32, 1]), T(&[32, 1, 16]), T(&[16]), N(1.0), N(1.0)],
    ),
    ("programs/tensor/attention.ks", "attention", &[T(&[512, 64]), T(&[512, 64]), T(&[512, 64])]),
    ("programs/array/matmul.ks", "product", &[T(&[512, 512]), T(&[512, 512])]),
    ("programs/tensor/tbs.ks", "tbs", &[T(&[1, 128, 12, 64]), T(&[1, 128, 12, 64])]),
];

const KS: &str = "benches/schedules/kernels.ks";

/// The element type of a tensor.
fn element(ty: Ty) -> Scalar {
    match ty.kind() {
        TyKind::Tensor(_, elem) => element(*elem),
        _ => ty.as_scalar().unwrap(),
    }
}

/// Floats between -1 and 1, samples of pictures, or small integers, the same for the same seed.
fn tensor(ty: Scalar, dims: &[usize], seed: u64) -> Value {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (state >> 33) as f64 / f64::from(1 << 30);
        Value::Scalar(match ty {
            Scalar::U8 => Lit::of(ty, 127.5 * part),
            Scalar::U16 => Lit::of(ty, 511.5 * part),
            _ if ty.is_int() => Lit::of(ty, 100.0 * part),
            _ => Lit::of(ty, part - 1.0),
        })
    };
    Value::tensor(dims.to_vec(), (0..dims.iter().product()).map(next).collect())
}

/// The values of arguments.
fn values(def: &Def, args: &[Arg]) -> Vec<Value> {
    let of = |(k, (p, a)): (u64, (&Param, &Arg))| match a {
        T(dims) => tensor(element(p.ty), dims, k),
        N(n) => Value::Scalar(Lit::of(element(p.ty), *n)),
    };
    (1..).zip(def.params.iter().zip(args)).map(of).collect()
}

/// The least time of a call in one turn, and its value.
fn turn(native: &Native, args: &[Value], calls: usize) -> (f64, Value) {
    let t = native.time(args, calls).unwrap_or_else(|d| panic!("{}", d.render()));
    (t.min_seconds, t.value)
}

/// A schedule compiled, for so many threads.
fn compiled(program: &Program, def: &Def, made: &Schedule, tools: &Toolchain, threads: usize) -> Native {
    let native = native::compile_scheduled(program, def, made, tools).unwrap_or_else(|d| panic!("{}", d.render()));
    native.with_threads(threads)
}

/// The schedule by hand that stands beside a program, for these sizes.
fn by_hand(file: &Path, program: &Program, def: &Def, args: &[Value]) -> Option<Schedule> {
    let path = file.with_file_name(format!("{}.sched", def.name()));
    let source = Source::new(path.display().to_string(), std::fs::read_to_string(&path).ok()?);
    let graph = stage::extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
    Some(text::apply_for(graph, &incoming(def, args), &source).unwrap_or_else(|d| panic!("{}", d.render())))
}

/// A row of the table.
fn row(
    file: &Path,
    program: &Program,
    (name, given): (&str, &[Arg]),
    tools: &Toolchain,
    ceilings: &[Ceiling],
) -> String {
    let def = program.named(name)[0];
    let args = values(def, given);
    let plain = native::compile(program, def, tools).unwrap_or_else(|d| panic!("{}", d.render())).with_threads(1);
    let (mut chosen, mut seconds, mut steps, mut least) = (0.0, 0.0, 0, None);
    let mut each: Vec<Native> = [1, 2]
        .map(|threads| {
            let start = Instant::now();
            let graph = stage::extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
            let machine = Machine { threads, ..Machine::host() };
            let special = graph.only_for(&incoming(def, &args));
            let made = schedule::default(special.clone(), &machine);
            (chosen, steps) = (start.elapsed().as_secs_f64(), made.steps.len());
            least = Least::of(&special).map(|least| least.seconds(&machine, ceilings));
            let start = Instant::now();
            let native = compiled(program, def, &made, tools, threads);
            seconds = start.elapsed().as_secs_f64();
            native
        })
        .into();
    if let Some(hand) = by_hand(file, program, def, &args) {
        each.extend([1, 2].map(|threads| compiled(program, def, &hand, tools, threads)));
    }
    let calls = |seconds: f64| (TURN / seconds).clamp(1.0, MOST) as usize;
    let (mut before, mut after) = (f64::INFINITY, [f64::INFINITY; 4]);
    for _ in 0..TURNS {
        let (seconds, want) = turn(&plain, &args, calls(before));
        before = before.min(seconds);
        for (native, least) in each.iter().zip(&mut after) {
            let (seconds, have) = turn(native, &args, calls(*least));
            assert!(want == have, "{}: the schedule changes bits", def.name());
            *least = least.min(seconds);
        }
    }
    let [after, two, hand, hand_two] = after;
    let shown = given.iter().map(|a| match a {
        T(dims) => dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("×"),
        N(n) => n.to_string(),
    });
    let there = |seconds: f64| if seconds.is_finite() { format!("{:.3}", 1e3 * seconds) } else { "-".into() };
    let part = least.map_or("-".into(), |s| format!("{:.2}", s / after.min(hand)));
    format!(
        "| `{}` | {} | {:.3} | {:.3} | {:.2} | {:.3} | {:.2} | {} | {} | {part} | {steps} | {:.1} | {seconds:.1} |",
        def.name(),
        shown.collect::<Vec<_>>().join(", "),
        1e3 * before,
        1e3 * after,
        before / after,
        1e3 * two,
        after / two,
        there(hand),
        there(hand_two),
        1e3 * chosen,
    )
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ceilings = roofline::measure(&tools, &Machine::host()).unwrap_or_else(|d| panic!("{}", d.render()));
    let names: Vec<&String> = words.iter().filter(|w| !w.starts_with("--")).collect();
    let mut rows = vec![
        "| kernel | sizes | unscheduled | default schedule | speed | on two threads | speed | by hand | on two threads | of the roofline | steps | to choose them | to compile, s |"
            .to_string(),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|".to_string(),
    ];
    let asked = |n: &str| names.is_empty() || names.iter().any(|w| *w == n);
    let hand = words.iter().any(|w| w == "--hand");
    let beside = |file: &str, n: &str| root.join(file).with_file_name(format!("{n}.sched")).exists();
    for (file, name, args) in KERNELS.iter().filter(|(f, n, _)| asked(n) && (!hand || beside(f, n))) {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let program = types::program(&Source::new(*file, text)).unwrap_or_else(|d| panic!("{}", d.render()));
        rows.push(row(&root.join(file), &program, (name, args), &tools, &ceilings));
        println!("{}", rows[rows.len() - 1]);
    }
    if words.iter().any(|w| w == "--write") {
        daedal::data::section(&root.join("docs/results.md"), if hand { "hand" } else { "schedules" }, &rows).unwrap();
    }
}
