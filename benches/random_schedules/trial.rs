//! One block of seeds: their nests are interpreted, then compiled together and called.
//!
//! What is found is printed, a line each, for the process that started this one: which seed runs, what is wrong, counts.

use crate::common::arguments;
use crate::common::schedules::{Scheduled, compiled_telling, disagreement, generated, random, threaded};
use daedal::eval::Value;
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::nest::Nest;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use daedal::schedule::lower;
use daedal::stage::extract;
use daedal::tune::example::incoming;
use std::io::Write;
use std::path::PathBuf;

/// A program that is staged: its call, and its nest under a random schedule.
struct Staged {
    seed: u64,
    program: Program,
    args: Vec<Value>,
    nest: Nest,
    given_up: bool,
    shown: String,
}

/// Says a line at once: what comes after may end the process.
fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

fn wrong(seed: u64, shown: &str) {
    say(&format!("wrong {seed} {}", serde_json::to_string(shown).unwrap()));
}

/// Runs seeds; with more loops on threads where these are what is looked at.
pub fn run(first: u64, count: u64, threads: bool, compiler: Option<String>, cache: PathBuf) {
    let mut all = vec![];
    for seed in first..first + count {
        say(&format!("running {seed}"));
        all.extend(staged(seed, threads));
    }
    let parallel = all.iter().filter(|s| s.nest.to_string().contains(" parallel")).count();
    let given_up = all.iter().filter(|s| s.given_up).count();
    let calls: Vec<Scheduled<'_>> = all.iter().map(call).collect();
    let tools = Toolchain { level: 1, ..Toolchain::discover(compiler, Some(cache)) };
    let running = |name: &str| say(&format!("running {}", seed_of(name)));
    for shown in compiled_telling(&calls, &tools, &running) {
        wrong(seed_of(&shown), &shown);
    }
    say(&format!("came {} {parallel} {given_up}", all.len()));
}

fn call(s: &Staged) -> Scheduled<'_> {
    let name = format!("{}\n{}", s.seed, s.shown);
    let def = s.program.named("main")[0];
    let reference = s.given_up.then(|| native::reference(&s.program, def).unwrap());
    Scheduled::of(name, (&s.program, def, s.args.clone()), s.nest.clone(), reference)
}

/// The seed that the name of a call begins with.
fn seed_of(name: &str) -> u64 {
    name.lines().next().and_then(|l| l.parse().ok()).unwrap_or_default()
}

/// The nest of a seed, which its interpreter has run; nothing where it is no graph, or wrong already, or where threads are
/// looked at and it has no loop on them.
fn staged(seed: u64, threads: bool) -> Option<Staged> {
    let (program, made) = generated(seed);
    let def = program.named("main")[0];
    let args = arguments(def, &made.args).unwrap();
    let graph = extract(&program, def).ok()?;
    // For all sizes, for all and then for these, and for these from the start: more is legal there.
    let sizes = incoming(def, &args);
    let start = if seed % 3 == 2 { graph.specialized(&sizes) } else { graph.clone() };
    let (mut schedule, ..) = random(&start, seed);
    if threads || seed % 4 == 1 {
        schedule = threaded(schedule);
    }
    if seed % 3 == 1 {
        schedule = schedule.specialized(&sizes);
    }
    let steps: Vec<String> = schedule.steps.iter().map(ToString::to_string).collect();
    let shown = format!("{}\n{:?}\n{graph}\n{}", made.text, made.args, steps.join("\n"));
    let mut last = None;
    for nest in [lower(&schedule, def), native::scheduled_nest(def, &schedule, &Machine::host())] {
        let nest = match nest {
            Ok(nest) => nest,
            Err(d) => {
                wrong(seed, &format!("{}\n{shown}", d.render()));
                return None;
            }
        };
        let (given_up, d) = disagreement(&program, def, &args, &nest);
        if let Some(d) = d {
            wrong(seed, &format!("{d}\n{shown}\n{nest}"));
            return None;
        }
        last = Some((nest, given_up));
    }
    let (nest, given_up) = last.filter(|(nest, _)| !threads || nest.to_string().contains(" parallel"))?;
    Some(Staged { seed, program, args, nest, given_up, shown })
}
