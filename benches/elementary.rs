//! How fast elementary functions are: in vectors, one by one, as the C library's, and as vector code by hand.
//!
//! `cargo bench --bench elementary` compiles the functions with the flags of `src/run/toolchain.rs`, beside
//! `benches/baselines/elementary.cpp`, and takes turns. Printed are nanoseconds a number: the least of all turns.
//! `-- --write` writes the table into `docs/results.md`. Needs g++, or what CXX names, and AVX-512.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::ir::evaluate::ranhash;
use daedal::run::Toolchain;
use daedal::{codegen, data};
use std::fmt::Write;
use std::time::Instant;

/// Functions, and the range of their arguments.
const FUNCTIONS: &[(&str, f64, f64)] = &[
    ("exp", -5.0, 5.0),
    ("log", 0.01, 10.0),
    ("sin", -3.0, 3.0),
    ("cos", -3.0, 3.0),
    ("tan", -3.0, 3.0),
    ("sinh", -2.0, 2.0),
    ("cosh", -2.0, 2.0),
    ("tanh", -2.0, 2.0),
    ("asin", -1.0, 1.0),
    ("acos", -1.0, 1.0),
    ("atan", -2.0, 2.0),
    ("atan2", -2.0, 2.0),
    ("pow", 0.1, 4.0),
    ("erf", -3.0, 3.0),
    ("lgamma", 0.1, 10.0),
    ("sqrt", 0.1, 10.0),
    ("floor", -9.0, 9.0),
];
const BY_HAND: &[&str] = &["exp", "log", "sin", "tanh", "asin"];

/// Numbers at once: their memory fits the nearest cache.
const COUNT: usize = 2048;
/// How often all take turns, and calls in a turn.
const TURNS: usize = 60;
const CALLS: usize = 20;

type Run = unsafe extern "C" fn(*const u8, *const u8, *mut u8, i64);

fn two(name: &str) -> bool {
    matches!(name, "pow" | "atan2")
}

/// A loop over vectors of a type, or numbers.
fn text(out: &mut String, symbol: &str, ty: &str, vector: &str, call: &str) {
    let _ = writeln!(
        out,
        "extern \"C\" __attribute__((visibility(\"default\"))) void {symbol}\
         (const {ty}* x, const {ty}* y, {ty}* to, int64_t n) {{\n  \
         const int64_t lanes = sizeof({vector}) / sizeof({ty});\n  for (int64_t k = 0; k < n; k += lanes) {{\n    \
         {vector} a, b, c;\n    memcpy(&a, x + k, sizeof a);\n    memcpy(&b, y + k, sizeof b);\n    \
         c = {call};\n    memcpy(to + k, &c, sizeof c);\n  }}\n}}"
    );
}

fn driver() -> String {
    let mut out = String::new();
    for (name, ..) in FUNCTIONS {
        let (args, params) = if two(name) { ("a, b", "T, T") } else { ("a", "T") };
        for (ty, f) in [("double", ""), ("float", "f")] {
            let params = params.replace('T', ty);
            let _ = writeln!(out, "extern \"C\" {ty} {name}{f}({params}) noexcept __attribute__((const));");
        }
        text(&mut out, &format!("lanes_{name}"), "double", "ks::Double8", &format!("ks::{name}({args})"));
        text(&mut out, &format!("narrow_{name}"), "float", "ks::Float16", &format!("ks::{name}({args})"));
        text(&mut out, &format!("one_{name}"), "double", "double", &format!("ks::{name}({args})"));
        text(&mut out, &format!("library_{name}"), "double", "double", &format!("::{name}({args})"));
    }
    let hand = include_str!("baselines/elementary.cpp");
    let mut all = format!("{}{}\n{hand}", codegen::runtime(|_| 1), out);
    for name in BY_HAND {
        text(&mut all, &format!("hand_{name}"), "double", "__m512d", &format!("hand::{name}(a)"));
    }
    all
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let object = tools.object(&driver()).unwrap_or_else(|d| panic!("{}", d.render()));
    // SAFETY: the object was made from the text above.
    let library = unsafe { libloading::Library::new(object).unwrap() };
    let mut rows = String::from("| function | 8 lanes, 64 bits | by hand | 16 lanes, 32 bits | one | C library |\n");
    rows.push_str("|---|---:|---:|---:|---:|---:|\n");
    for (name, low, high) in FUNCTIONS {
        let x: Vec<f64> = (0..COUNT).map(|k| low + ranhash(k as i64) * (high - low)).collect();
        let y: Vec<f64> = (0..COUNT).map(|k| low + ranhash(k as i64 + 99_999) * (high - low)).collect();
        let [narrow_x, narrow_y] = [&x, &y].map(|v| v.iter().map(|v| *v as f32).collect::<Vec<f32>>());
        let mut to = vec![0f64; COUNT];
        let kinds = ["lanes", "hand", "narrow", "one", "library"];
        let mut least = [f64::INFINITY; 5];
        for _ in 0..TURNS {
            for (kind, least) in kinds.iter().zip(&mut least) {
                // SAFETY: the driver defines it with this form.
                let found = unsafe { library.get::<Run>(format!("{kind}_{name}").as_bytes()) };
                let Ok(run) = found else { continue };
                let [x, y] = match *kind {
                    "narrow" => [narrow_x.as_ptr().cast(), narrow_y.as_ptr().cast()],
                    _ => [x.as_ptr().cast(), y.as_ptr().cast()],
                };
                let start = Instant::now();
                for _ in 0..CALLS {
                    // SAFETY: all three hold so many numbers.
                    unsafe { run(x, y, to.as_mut_ptr().cast(), COUNT as i64) };
                }
                *least = least.min(start.elapsed().as_secs_f64() * 1e9 / (CALLS * COUNT) as f64);
            }
        }
        let show = |t: f64| if t.is_finite() { format!("{t:.2}") } else { "-".to_string() };
        let _ = writeln!(rows, "| `{name}` | {} |", least.map(show).join(" | "));
    }
    print!("{rows}");
    if std::env::args().any(|a| a == "--write") {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/results.md");
        let lines: Vec<String> = rows.lines().map(str::to_string).collect();
        data::section(page.as_ref(), "elementary", &lines).unwrap();
    }
}
