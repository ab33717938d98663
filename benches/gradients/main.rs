//! How fast gradients are: hand-written C++, and beside it what Daedal makes of the objective.
//!
//! `cargo bench --bench gradients [-- NAME…]` compiles the baselines of `benches/baselines/` with and
//! without `-ffast-math`, checks each (`check.rs`), and times it on the data of `workloads.rs`, one thread.
//! Everything takes turns, so that a slow moment of the machine hits all; the table has the least time
//! and in brackets the middle one. With `--daedal` the optimized objectives and their gradients (value
//! and gradient together, as the hand-written ones) are timed too, and with `--scheduled` the gradient runs
//! under the default schedule for its sizes, with the same bits and with the same values over the reals;
//! `--write FILE` puts the tables into their sections of a page. Needs g++, or what CXX names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

mod baseline;
mod check;
mod data;
mod workloads;

use baseline::Call;
use daedal::ad::jacobian::{Layout, jacobian};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::Value;
use daedal::ir::Def;
use daedal::machine::Machine;
use daedal::pipeline::{self, Options, around, native};
use daedal::run::Toolchain;
use daedal::tune::example;
use daedal::{schedule, stage};
use libloading::Library;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use workloads::{Meaning, Workload};

/// How often everything has its turn, and how long a turn is at least, in seconds.
const TURNS: usize = 9;
const TURN: f64 = 0.02;

/// The heads of the two tables.
const GRADIENTS: &str = "| workload | size | hand-written | primal | gradient | Daedal primal | gradient | ratio by hand | ratio | to hand |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|";
const SCHEDULED: &str = "| workload | size | by hand | unscheduled | exact | real | exact to hand | real to hand |
|---|---|---:|---:|---:|---:|---:|---:|";

/// What a schedule keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Float {
    /// The same bits.
    Exact,
    /// The same values over the reals.
    Real,
}

/// Something that is timed: one turn of it gives the seconds of its calls.
type Timer = Box<dyn FnMut() -> Vec<f64>>;

/// The times of all turns, sorted.
struct Times(Vec<f64>);

impl Times {
    fn least(&self) -> f64 {
        self.0[0]
    }

    fn text(&self) -> String {
        format!("{:.4} [{:.4}]", 1e3 * self.least(), 1e3 * self.0[self.0.len() / 2])
    }
}

/// The objective and its gradient, by one entry of a baseline compiled one way.
struct Hand {
    entry: &'static str,
    way: &'static str,
    primal: Timer,
    gradient: Timer,
}

/// What stands in a row of the table; Daedal's columns are empty where there is nothing to time.
struct Row {
    hand: Vec<Hand>,
    daedal_primal: Option<Timer>,
    daedal_gradient: Option<Timer>,
    /// The gradient under the default schedule, where it is staged: with the same bits, and where only values over the reals
    /// stay.
    scheduled: [Option<Timer>; 2],
}

/// Compiled baselines by file, in the order of `baseline::WAYS`.
type Libraries = BTreeMap<&'static str, Vec<Arc<Library>>>;

fn turn(mut step: impl FnMut()) -> Vec<f64> {
    let (start, mut out) = (Instant::now(), vec![]);
    while out.len() < 5 || start.elapsed().as_secs_f64() < TURN {
        let from = Instant::now();
        step();
        out.push(from.elapsed().as_secs_f64());
    }
    out
}

fn timer(library: &Arc<Library>, w: &Workload, name: &str, with_gradient: bool) -> Timer {
    let as_needed = |a: data::Array| if w.precise.is_some() { a.single() } else { a };
    let inputs: Vec<data::Array> = w.large.inputs.iter().cloned().map(as_needed).collect();
    let outputs: Vec<data::Array> = check::outputs(&w.large, with_gradient).into_iter().map(as_needed).collect();
    let mut call = Call::new(library, name, &w.large.sizes, &inputs, &outputs);
    Box::new(move || turn(|| call.run()))
}

/// Stops with an error where a baseline is wrong.
fn check_all(root: &Path, w: &Workload, libraries: &[Arc<Library>]) {
    let program = check::program(root, &w.objective);
    let def = check::definition(&program, &w.objective);
    for library in libraries {
        for entry in w.entries {
            let checked = w.precise.unwrap_or(entry);
            for case in &w.small {
                check::differences(library, checked, w.meaning, case, 0.0);
                check::meaning(library, checked, case, &program, def);
            }
            // Among a million maxima some change place within a step of the differences.
            let kinks = if w.precise.is_some() { 0.02 } else { 0.0 };
            check::differences(library, checked, w.meaning, &w.large, kinks);
            if let Some(precise) = w.precise {
                check::precision(library, entry, precise, &w.large);
            }
        }
    }
}

/// The objective as Daedal optimizes and compiles it.
fn daedal_primal(root: &Path, w: &Workload, tools: &Toolchain) -> Timer {
    let program = check::program(root, w.timed());
    let options = Options { defs: vec![w.timed().def.into()], ..Options::standard() };
    let optimized = pipeline::optimize(&program, &options).unwrap_or_else(|d| panic!("{d}")).program;
    let def = check::definition(&optimized, w.timed());
    let arguments = check::arguments(def, &w.large);
    let native = native::compile(&optimized, def, tools).unwrap_or_else(|d| panic!("{d}"));
    Box::new(move || {
        let call = || native.time(&arguments, 3).unwrap_or_else(|d| panic!("{d}"));
        let first = call();
        vec![first.min_seconds, first.median_seconds]
    })
}

/// Value and gradient as Daedal derives, optimizes and compiles them, by the inputs that `w.meaning`
/// names; of many numbers, the whole Jacobian. The result is compared with that of the first
/// hand-written one before anything is timed. Under the default schedule there is nothing where it is not staged.
fn daedal_gradient(
    root: &Path,
    w: &Workload,
    tools: &Toolchain,
    library: &Arc<Library>,
    scheduled: Option<Float>,
) -> Option<Timer> {
    let inputs = check::inputs_of(w.meaning);
    let program = around::before(&check::program(root, w.timed())).unwrap_or_else(|d| panic!("{d}"));
    let def = check::definition(&program, w.timed());
    let wrt = (0..def.params.len()).map(|k| inputs.contains(&k)).collect();
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false };
    let whole = |layout| jacobian(&program, &wanted, layout).map(|made| (made.program, made.fun));
    let made = match w.meaning {
        Meaning::Gradient(_) => ad::derive(&program, &wanted),
        Meaning::Observations => whole(Layout::Rows),
        Meaning::Angles => whole(Layout::Columns),
    };
    let (derived, fun) = made.unwrap_or_else(|d| panic!("{d}"));
    let made = |d: &Def| d.name() == fun.sig().name;
    let derived = around::after(&derived, &made).unwrap_or_else(|d| panic!("{d}"));
    let options = Options { defs: vec![fun.sig().name.clone()], ..Options::standard() };
    let optimized = pipeline::optimize(&derived, &options).unwrap_or_else(|d| panic!("{d}")).program;
    let def = optimized.defs.values().find(|d| d.name() == fun.sig().name).unwrap();
    let with_adjoint = |case: &workloads::Case| {
        let mut arguments = check::arguments(def, case);
        if let Meaning::Gradient(_) = w.meaning {
            arguments.push(check::one(def.params[def.params.len() - 1].ty));
        }
        arguments
    };
    let graph = scheduled.map(|_| stage::extract(&optimized, def)).transpose();
    let mut graph = graph.map_err(|u| println!("{} has no schedule: {}", w.name, u.reason)).ok()?;
    if let Some(graph) = &mut graph {
        graph.real = scheduled == Some(Float::Real);
    }
    let compile = |arguments: &[Value]| {
        let made = if let Some(graph) = &graph {
            let (sizes, machine) = (example::incoming(def, arguments), Machine { threads: 1, ..Machine::host() });
            let schedule = schedule::default_for(graph.clone(), &sizes, &machine);
            native::compile_scheduled(&optimized, def, &schedule, tools)
        } else {
            native::compile(&optimized, def, tools)
        };
        made.unwrap_or_else(|d| panic!("{d}")).with_threads(1)
    };
    let entry = w.precise.unwrap_or(w.entries[0]);
    for case in &w.small {
        let arguments = with_adjoint(case);
        let made = compile(&arguments).call(&arguments).unwrap_or_else(|d| panic!("{d}"));
        let tolerance = if w.single.is_some() { 1e-3 } else { 1e-9 };
        check::gradient(library, entry, case, &made, tolerance);
    }
    let arguments = with_adjoint(&w.large);
    let native = compile(&arguments);
    Some(Box::new(move || {
        let call = || native.time(&arguments, 3).unwrap_or_else(|d| panic!("{d}"));
        let first = call();
        vec![first.min_seconds, first.median_seconds]
    }))
}

/// All times of a row: for each hand-written one primal and gradient, then Daedal's.
fn measure(row: &mut Row) -> (Vec<[Times; 2]>, [Option<Times>; 4]) {
    let mut times: Vec<Vec<f64>> = vec![];
    for _ in 0..TURNS {
        let hand = row.hand.iter_mut().flat_map(|h| [Some(&mut h.primal), Some(&mut h.gradient)]);
        let [exact, real] = &mut row.scheduled;
        let daedal = [row.daedal_primal.as_mut(), row.daedal_gradient.as_mut(), exact.as_mut(), real.as_mut()];
        let all = hand.chain(daedal);
        for (k, timer) in all.enumerate() {
            times.resize_with(times.len().max(k + 1), Vec::new);
            if let Some(timer) = timer {
                times[k].extend(timer());
            }
        }
    }
    times.iter_mut().for_each(|t| t.sort_by(f64::total_cmp));
    let mut times = times.into_iter().map(Times);
    let mut next = || times.next().unwrap();
    let hand = (0..row.hand.len()).map(|_| [next(), next()]).collect();
    (hand, [next(), next(), next(), next()].map(|t| Some(t).filter(|t| !t.0.is_empty())))
}

/// A line for each entry, compiled the way that makes the faster gradient; the same for the page, and its line about
/// schedules.
fn print(w: &Workload, row: &mut Row) -> [Vec<String>; 2] {
    let mut page = vec![];
    let (hand, [primal, gradient, exact, real]) = measure(row);
    let text = |t: &Option<Times>| t.as_ref().map_or("-".into(), Times::text);
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).map_or("-".into(), |(a, b)| format!("{:.2}", a / b));
    let least = |t: &Option<Times>| t.as_ref().map(Times::least);
    for entry in w.entries {
        let mine = row.hand.iter().zip(&hand).filter(|(h, _)| h.entry == *entry);
        let (h, [p, g]) = mine.min_by(|a, b| a.1[1].least().total_cmp(&b.1[1].least())).unwrap();
        println!(
            "{:13} {:39} {:14} {:9} {:>19} {:>19} {:>6} | {:>19} {:>19} {:>6} {:>7} {:>8}",
            w.name,
            w.shape,
            h.entry,
            h.way,
            p.text(),
            g.text(),
            ratio(Some(g.least()), Some(p.least())),
            text(&primal),
            text(&gradient),
            ratio(least(&gradient), least(&primal)),
            ratio(least(&primal), Some(p.least())),
            ratio(least(&gradient), Some(g.least())),
        );
        let ms = |t: Option<f64>| t.map_or("-".into(), |t| format!("{:.3}", 1e3 * t));
        page.push(format!(
            "| {} | {} | `{}` | {} | {} | {} | {} | {} | {} | {} |",
            w.name,
            w.shape,
            h.entry,
            ms(Some(p.least())),
            ms(Some(g.least())),
            ms(least(&primal)),
            ms(least(&gradient)),
            ratio(Some(g.least()), Some(p.least())),
            ratio(least(&gradient), least(&primal)),
            ratio(least(&gradient), Some(g.least())),
        ));
    }
    let best = hand.iter().map(|[_, g]| g.least()).min_by(f64::total_cmp);
    let ms = |t: Option<f64>| t.map_or("-".into(), |t| format!("{:.3}", 1e3 * t));
    let line = exact.as_ref().map(|_| {
        let [gradient, exact, real] = [&gradient, &exact, &real].map(least);
        let columns = [ms(best), ms(gradient), ms(exact), ms(real), ratio(exact, best), ratio(real, best)];
        format!("| {} | {} | {} |", w.name, w.shape, columns.join(" | "))
    });
    line.iter().for_each(|l| println!("scheduled: {l}"));
    [page, line.into_iter().collect()]
}

/// The command line.
struct Words {
    daedal: bool,
    scheduled: bool,
    page: Option<PathBuf>,
    names: Vec<String>,
}

fn words() -> Words {
    let mut out = Words { daedal: false, scheduled: false, page: None, names: vec![] };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--daedal" => out.daedal = true,
            "--scheduled" => (out.daedal, out.scheduled) = (true, true),
            "--write" => out.page = Some(words.next().expect("--write needs a file").into()),
            _ => {
                assert!(!word.starts_with("--"), "the options are --daedal, --scheduled and --write FILE");
                out.names.push(word);
            }
        }
    }
    out
}

fn main() {
    let Words { daedal, scheduled, page, names } = words();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder.path().join("cache")));
    let wanted = |w: &Workload| names.is_empty() || names.iter().any(|n| w.name.contains(n.as_str()));
    let chosen: Vec<Workload> = workloads::all().into_iter().filter(wanted).collect();
    assert!(!chosen.is_empty(), "no workload has such a name");
    let mut libraries = Libraries::new();
    for w in &chosen {
        libraries.entry(w.file).or_insert_with(|| {
            let source = root.join(format!("benches/baselines/{}.cpp", w.file));
            let made = |(way, flags): &(&str, &[&str])| {
                baseline::compile(&tools.compiler, &source, flags, folder.path(), &format!("{}-{way}", w.file))
            };
            baseline::WAYS.iter().map(made).collect()
        });
    }
    println!("milliseconds, least of all turns [middle]; 1 thread");
    println!(
        "{:13} {:39} {:14} {:9} {:>19} {:>19} {:>6} | {:>19} {:>19} {:>6} {:>7} {:>8}",
        "",
        "",
        "hand-written",
        "compiled",
        "primal",
        "gradient",
        "ratio",
        "Daedal primal",
        "gradient",
        "ratio",
        "p/hand",
        "g/hand"
    );
    let mut lines = [vec![], vec![]];
    for w in &chosen {
        let libraries = &libraries[w.file];
        check_all(&root, w, libraries);
        let ways = || baseline::WAYS.iter().map(|(way, _)| *way).zip(libraries);
        let hand = w.entries.iter().flat_map(|entry| {
            ways().map(move |(way, library)| Hand {
                entry,
                way,
                primal: timer(library, w, &format!("{entry}_primal"), false),
                gradient: timer(library, w, &format!("{entry}_gradient"), true),
            })
        });
        let mut row = Row {
            hand: hand.collect(),
            daedal_primal: daedal.then(|| daedal_primal(&root, w, &tools)),
            daedal_gradient: daedal.then(|| daedal_gradient(&root, w, &tools, &libraries[0], None)).flatten(),
            scheduled: [Float::Exact, Float::Real].map(|float| {
                scheduled.then(|| daedal_gradient(&root, w, &tools, &libraries[0], Some(float))).flatten()
            }),
        };
        let made = print(w, &mut row);
        lines.iter_mut().zip(made).for_each(|(all, own)| all.extend(own));
    }
    let Some(page) = page else { return };
    let [beside_hand, beside_schedules] = lines;
    let tables = [("gradients", GRADIENTS, beside_hand), ("scheduled gradients", SCHEDULED, beside_schedules)];
    for (name, head, rows) in tables.into_iter().take(if scheduled { 2 } else { 1 }) {
        let lines: Vec<String> = head.lines().map(str::to_string).chain(rows).collect();
        daedal::data::section(&page, name, &lines).unwrap();
    }
}
