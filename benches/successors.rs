//! How fast searches of terms make states, and in how much memory.
//!
//! `cargo bench --bench successors` goes breadth first through the terms of the mixture model and of its
//! gradient, makes and costs every successor, and prints for each definition how many it made in a second
//! of one core's time; then it holds 1,000,000 distinct states of the objective at once. Bindings are searched:
//! with lets placed by themselves a state costs more, and that is printed beside it.
//!
//! Bounds: 100,000 successors a second with bindings searched, 4 GB. Exit code 1 where one is not kept.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use daedal::ad;
use daedal::cost::{Costing, Model};
use daedal::diag::Source;
use daedal::ir::{Def, Program};
use daedal::pipeline::prepare;
use daedal::rewrite::agent::costs::Known;
use daedal::rewrite::agent::optimize::Settings;
use daedal::rewrite::agent::{Agent, Bind};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rewrite::inline::recursive;
use daedal::rules::{Level, Library};
use daedal::search::{Algorithm, Cost, Space};
use daedal::types;
use std::collections::{HashSet, VecDeque};
use std::process::ExitCode;

const PROGRAMS: [&str; 2] = ["programs/apps/gmm.ks", "programs/grad/gmm.ks"];
const RATE: f64 = 100_000.0;
const GIGABYTES: f64 = 4.0;

/// Seconds that this thread has run, whatever else the machine does.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}

/// The most memory that the process has held, in gigabytes.
fn gigabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e6
}

/// What a walk did.
struct Walked {
    successors: usize,
    distinct: usize,
    seconds: f64,
}

/// Goes breadth first until there are so many distinct states or successors.
fn walk(program: &Program, def: &Def, rules: &[Compiled<'_>], bind: Bind, most: (usize, usize)) -> Option<Walked> {
    let settings = Settings {
        engine: Algorithm::Astar,
        rules,
        bind,
        bindings: [true; 8],
        phased: false,
        level: Level::Real,
        model: Model::Knossos,
        budget: most.1,
        depth: 1000,
        seed: 0,
        value: None,
        stop: &|| false,
    };
    let kept = recursive(program);
    let agent = Agent::new(program, &kept, def, (&program.terms, def.term()?), &settings)?;
    let mut costing = Costing::new(program, Model::Knossos, &[]);
    let (space, mut cost) = (agent.space(), agent.cost(&mut costing, None, Known::default()));
    let from = seconds();
    let mut out = Walked { successors: 0, distinct: 1, seconds: 0.0 };
    let mut seen: HashSet<u64> = [space.key(&space.root(), 0)].into();
    let mut open = VecDeque::from([space.root()]);
    while let Some(state) = open.pop_front().filter(|_| out.distinct < most.0 && out.successors < most.1) {
        let made: Vec<_> = space.moves(&state).iter().map(|by| space.apply(&state, by)).collect();
        out.successors += made.len();
        cost.costs(space, &made);
        for state in made {
            if seen.insert(space.key(&state, 0)) {
                out.distinct += 1;
                open.push_back(state);
            }
        }
    }
    out.seconds = seconds() - from;
    Some(out)
}

fn main() -> ExitCode {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let mut good = true;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs: Vec<Program> = PROGRAMS
        .iter()
        .map(|name| {
            let source = Source::new(*name, std::fs::read_to_string(root.join(name)).unwrap());
            ad::complete(&types::program(&source).unwrap()).unwrap()
        })
        .collect();
    println!(
        "{:20} {:>10} {:>10} {:>12} {:>14}",
        "definition", "successors", "distinct", "a second", "placed, a second"
    );
    let (mut made, mut spent) = (0, 0.0);
    for program in &programs {
        for def in program.defs.values().filter(|d| d.term().is_some() && !d.params.is_empty()) {
            let Some(w) = walk(program, def, &rules, Bind::Searched, (usize::MAX, 200_000)) else { continue };
            let placed = walk(program, def, &rules, Bind::Placed, (usize::MAX, 5_000));
            let placed = placed.map_or(0.0, |w| w.successors as f64 / w.seconds.max(1e-6));
            let rate = w.successors as f64 / w.seconds;
            println!("{:20} {:>10} {:>10} {rate:>12.0} {placed:>14.0}", def.name(), w.successors, w.distinct);
            (made, spent) = (made + w.successors, spent + w.seconds);
        }
    }
    let rate = made as f64 / spent;
    println!("all: {rate:.0} successors a second of one core (bound: {RATE:.0})");
    good &= rate >= RATE;
    let before = gigabytes();
    let def = programs[0].named("gmm_objective")[0];
    let w = walk(&programs[0], def, &rules, Bind::Searched, (1_000_000, usize::MAX)).unwrap();
    let rate = w.successors as f64 / w.seconds;
    let most = gigabytes();
    println!("gmm_objective: {} distinct states, {rate:.0} successors a second", w.distinct);
    println!("memory: {most:.2} GB at most, {before:.2} GB before (bound: {GIGABYTES:.0} GB)");
    good &= most <= GIGABYTES;
    ExitCode::from(u8::from(!good))
}
