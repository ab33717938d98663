//! How fast searches of schedules judge states, and how that grows with the program.
//!
//! `cargo bench --bench estimates` goes through the decisions about `harris` as a beam does, on one core, and prints how many
//! schedules it judged in a second, in the least of five turns; then chains of 10 to 1,000 stages, with the time of a state, of the whole
//! search with one state kept, and the memory that its states took. Names behind choose: `harris`, `chains`.
//!
//! Bounds: 20,000 a second for `harris`; a state of the longest chain takes at most twice the time of one of the shortest.
//! Exit code 1 where one is not kept.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::diag::Source;
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::pipeline::tuning;
use daedal::search::{Limits, Mb2fbs, Tally, mb2fbs};
use daedal::stage::extract;
use daedal::tune::estimate::{Estimates, Guess};
use daedal::tune::{Model, Tree, example};
use daedal::types;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

/// The least time of so many turns counts.
const TURNS: usize = 5;
const RATE: f64 = 20_000.0;
const GROWTH: f64 = 2.0;

/// The most memory that the process has held, in megabytes.
fn megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e3
}

fn program(name: &str, text: String) -> Program {
    types::program(&Source::new(name, text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// What a search did: its counts, its seconds, and those of what is known before.
struct Ran {
    tally: Tally,
    search: f64,
    before: f64,
}

fn run(program: &Program, def: &str, sizes: &[(&str, u64)], beam: usize) -> Ran {
    let def = program.named(def)[0];
    let sizes: Vec<(String, u64)> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let incoming = example::incoming(def, &example::arguments(def, &sizes, 1).unwrap());
    let graph = extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 32 << 20] };
    let tree: Tree<'_> = Tree::new(def, tuning::plainly(graph, &incoming), incoming, machine);
    let mut out = Ran { tally: Tally::default(), search: f64::INFINITY, before: f64::INFINITY };
    for _ in 0..TURNS {
        let from = Instant::now();
        let space = Estimates::of(&tree).unwrap();
        out.before = out.before.min(from.elapsed().as_secs_f64());
        let model = Model::default();
        let mut judge = Guess::new(&model, 16);
        let from = Instant::now();
        out.tally = mb2fbs(&space, &mut judge, &Limits::of(usize::MAX), &Mb2fbs::beam(beam)).tally;
        out.search = out.search.min(from.elapsed().as_secs_f64());
    }
    out
}

/// A chain of stencils of three points, each of which reads the one before.
fn chain(stages: usize) -> Program {
    let mut text = "(def chain (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))\n  (let (".to_string();
    for k in 0..stages {
        let (from, cut) = if k == 0 { ("x".to_string(), 0) } else { (format!("s{}", k - 1), 2 * k) };
        let _ = writeln!(
            text,
            "    (s{k} (build (tuple h (sub w {})) (lam ((y : Integer) (x{k} : Integer)) (add (index (tuple y x{k}) {from}) \
             (mul 2f32 (index (tuple y (add x{k} 1)) {from})) (index (tuple y (add x{k} 2)) {from})))))",
            cut + 2
        );
    }
    let _ = write!(text, "  )\n  s{}))", stages - 1);
    program("chain.ks", text)
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    // All on this thread, whose time is taken.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    one.install(|| {
        let mut good = true;
        if wants("harris") {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/imaging/harris.ks");
            let harris = program("harris.ks", std::fs::read_to_string(path).unwrap());
            for beam in [6, 32] {
                let ran = run(&harris, "harris", &[("h", 1536), ("w", 2560), ("channels", 3)], beam);
                let rate = ran.tally.evaluations as f64 / ran.search;
                println!(
                    "harris, beam {beam}: {} judged in {:.3} s, {rate:.0} a second (bound: {RATE:.0}); {:.1} ms before",
                    ran.tally.evaluations,
                    ran.search,
                    1e3 * ran.before
                );
                good &= rate >= RATE;
            }
        }
        if wants("chains") {
            println!(
                "{:>8} {:>10} {:>12} {:>12} {:>12} {:>10}",
                "stages", "judged", "a state, µs", "search, s", "before, s", "MB, at most"
            );
            let mut each = vec![];
            for stages in [10, 30, 100, 300, 1000] {
                let ran = run(&chain(stages), "chain", &[("h", 512), ("w", 4096)], 1);
                let state = 1e6 * ran.search / ran.tally.evaluations as f64;
                println!(
                    "{stages:>8} {:>10} {state:>12.2} {:>12.3} {:>12.3} {:>10.0}",
                    ran.tally.evaluations,
                    ran.search,
                    ran.before,
                    megabytes()
                );
                each.push(state);
            }
            good &= each.last().unwrap() <= &(GROWTH * each[0]);
        }
        ExitCode::from(u8::from(!good))
    })
}
