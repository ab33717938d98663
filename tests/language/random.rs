//! Random programs have one meaning: interpreted, native, and optimized by every engine, interpreted and native.
//!
//! `DAEDAL_CASES=10000 cargo test --test language random::` tries so many programs, `DAEDAL_ENGINES=all` each of them by every
//! engine at both levels, not by one of them, and `DAEDAL_BATCH=12` the programs of one text alone. Many are compiled as
//! one text.

use crate::common::generate::census::{CORNERS, marks};
use crate::common::generate::{self, Knobs};
use crate::common::native::{difference, quick};
use crate::common::random::{ENGINES, compare};
use crate::common::{arguments, read};
use daedal::cost::Model;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program, print};
use daedal::pipeline::{Engine, Options, optimize_with, prepare};
use daedal::rewrite::agent::Bind;
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rules::{Level, Library};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many programs are one text.
const BATCH: usize = 40;

fn cases() -> usize {
    std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(360)
}

/// The engines that a batch is optimized by, of which the first ones of several batches differ.
fn engines(first: usize) -> Vec<Engine> {
    let count = if std::env::var("DAEDAL_ENGINES").is_ok_and(|v| v == "all") { ENGINES.len() } else { 1 };
    (first..first + count).map(|k| ENGINES[k % ENGINES.len()]).collect()
}

/// Random programs as one: those of seeds from `k * BATCH` on, and the arguments of each.
struct Batch {
    k: usize,
    program: Program,
    args: Vec<Vec<String>>,
}

impl Batch {
    fn new(k: usize) -> Batch {
        // Sums of short numbers do not depend on the order, so that `real` has to give the same.
        let knobs = Knobs { budget: 30, dyadic: k % 2 == 1, failing: !k.is_multiple_of(5), sums: true, ..Knobs::PLAIN };
        let (mut text, mut args) = (String::new(), vec![]);
        for seed in 0..BATCH {
            let made = generate::program((k * BATCH + seed) as u64, &knobs);
            let named = made.text.replace("(helper ", &format!("(helper{seed} "));
            text += &named
                .replace("(def helper ", &format!("(def helper{seed} "))
                .replace("(def main ", &format!("(def main{seed} "));
            args.push(made.args);
        }
        let program = read("random.ks", &text).unwrap_or_else(|d| panic!("batch {k}: {d}"));
        Batch { k, program, args }
    }

    /// The functions to call, with arguments.
    fn calls<'a>(&self, program: &'a Program) -> Vec<(&'a Def, Vec<Value>)> {
        let call = |(k, words): (usize, &Vec<String>)| {
            let def = program.named(&format!("main{k}"))[0];
            (def, arguments(def, words).unwrap_or_else(|e| panic!("{e}")))
        };
        self.args.iter().enumerate().map(call).collect()
    }

    /// The program of one call alone.
    fn own(&self, def: &Def) -> Program {
        let helper = def.name().replace("main", "helper");
        let mut program = self.program.clone();
        program.defs.retain(|_, d| d.name() == def.name() || d.name() == helper);
        program
    }

    /// What native code does otherwise than the interpreter.
    fn native(&self, program: &Program, what: &str) -> Vec<String> {
        let calls = self.calls(program);
        let defs: Vec<&Def> = calls.iter().map(|c| c.0).collect();
        let native = daedal::pipeline::native::compile_all(program, &defs, &quick("random"))
            .unwrap_or_else(|d| panic!("{}", d.render()));
        let (interpreter, mut wrong) = (Interpreter::new(program), vec![]);
        for ((def, args), native) in calls.iter().zip(native) {
            let have = native.unwrap_or_else(|d| panic!("{what}: {}", d.render())).call(args);
            let differs = difference(&interpreter.run(def, args), &have);
            wrong.extend(differs.map(|d| self.told(program, def, args, &format!("{what}: {d}"))));
        }
        wrong
    }

    fn told(&self, program: &Program, def: &Def, args: &[Value], what: &str) -> String {
        let shown: Vec<String> = args.iter().map(|a| a.to_json().to_string()).collect();
        let helper = def.name().replace("main", "helper");
        let before: Vec<String> = [&self.program, program].map(|p| text(p, &helper) + &text(p, def.name())).to_vec();
        format!("batch {} {} {}: {what}\n{}", self.k, def.name(), shown.join(" "), before.join("\n"))
    }

    /// What the program that an engine makes at a level does otherwise.
    fn optimized(&self, rules: &[Compiled<'_>], float: Level, engine: Engine) -> Vec<String> {
        let k = self.k as u64;
        let cost = if self.k.is_multiple_of(3) { Model::Analytic } else { Model::Knossos };
        let bind = if self.k % 4 < 2 { Bind::Placed } else { Bind::Searched };
        let phased = self.k.is_multiple_of(7);
        let base = Options { max_nodes: 600, budget: 100, depth: 12, threads: 1, ..Options::standard() };
        let options = Options { cost, float, engine, bind, phased, seed: k, ..base };
        let what = format!("{} at {float}", engine.name());
        let outcome = catch_unwind(AssertUnwindSafe(|| optimize_with(&self.program, rules, &options)));
        let after = match outcome {
            Ok(Ok(outcome)) => outcome.program,
            Ok(Err(d)) => return vec![format!("batch {k}, {what}: {}", d.render())],
            Err(_) => return vec![format!("batch {k}, {what}: the optimizer panics")],
        };
        let mut wrong = self.native(&after, &what);
        for (def, args) in self.calls(&self.program) {
            let told = compare(&self.program, &after, def.name(), &args, float);
            wrong.extend(told.err().map(|e| self.told(&after, def, &args, &format!("{what}: {e}"))));
        }
        wrong
    }
}

/// The text of a definition.
fn text(program: &Program, name: &str) -> String {
    let all = print::program(program);
    let Some(at) = all.find(&format!("(def {name} ")) else { return String::new() };
    let end = all[at + 1..].find("\n(def ").map_or(all.len(), |n| at + 1 + n);
    all[at..end].trim_end().to_string() + "\n"
}

/// Protects: the programs have what other tests of programs missed: sums of vectors with sizes that are computed, empty and
/// negative, casts, folds with tuples as states, triangles, arms that fail; and their calls come by them.
#[test]
fn random_programs_have_the_corners() {
    let batches: Vec<Batch> = (0..50).into_par_iter().map(Batch::new).collect();
    let all: Vec<Vec<usize>> = batches
        .par_iter()
        .flat_map_iter(|b| b.calls(&b.program).into_iter().map(|(def, args)| marks(&b.own(def), def, &args)))
        .collect();
    let mut few = vec![];
    for (k, (corner, least)) in CORNERS.into_iter().enumerate() {
        let count = all.iter().filter(|m| m.contains(&k)).count();
        println!("{count:5} of {} have {corner}", all.len());
        few.extend((count * 100 < least * all.len()).then_some(corner));
    }
    assert!(few.is_empty(), "{few:?} are too few");
}

/// Protects: every mode of running and every engine, on programs whose sizes are empty, negative or computed, with
/// numbers of all types, states that are tuples, triangles, and arms that fail.
#[test]
fn random_programs_agree_in_every_mode() {
    let library = Library::shipped().unwrap();
    let (exact, real) = (prepare(&library, Level::Exact).unwrap(), prepare(&library, Level::Real).unwrap());
    let tried = |k: usize| {
        let batch = Batch::new(k);
        let mut wrong = batch.native(&batch.program, "as it is");
        for engine in engines(k + k / 8) {
            wrong.extend(batch.optimized(&exact, Level::Exact, engine));
        }
        // Sums of short numbers alone are the same in any order.
        let real_engines = if k % 2 == 1 { engines(k / 2) } else { vec![] };
        for engine in real_engines {
            wrong.extend(batch.optimized(&real, Level::Real, engine));
        }
        let interpreter = Interpreter::new(&batch.program);
        let values =
            batch.calls(&batch.program).iter().filter(|(def, args)| interpreter.run(def, args).is_ok()).count();
        (wrong, values)
    };
    // A long run loses nothing of what it found.
    let one = |k: usize| {
        let panics = |_| (vec![format!("batch {k} panics")], 0);
        let (wrong, values) = catch_unwind(AssertUnwindSafe(|| tried(k))).unwrap_or_else(panics);
        if cases() > 1000 {
            eprintln!("batch {k}: {} wrong\n{}", wrong.len(), wrong.join("\n\n"));
        }
        (wrong, values)
    };
    let batches = cases().div_ceil(BATCH);
    let only: Option<usize> = std::env::var("DAEDAL_BATCH").ok().and_then(|k| k.parse().ok());
    let all: Vec<usize> = only.map_or_else(|| (0..batches).collect(), |k| vec![k]);
    let batches = all.len();
    let results: Vec<(Vec<String>, usize)> = all.into_par_iter().map(one).collect();
    let wrong: Vec<&String> = results.iter().flat_map(|r| &r.0).collect();
    let values: usize = results.iter().map(|r| r.1).sum();
    let few: Vec<&str> = wrong.iter().take(10).map(|w| w.as_str()).collect();
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), few.join("\n\n"));
    let all = batches * BATCH;
    // One text alone may have none that fails.
    assert!(only.is_some() || (values * 2 > all && values * 20 < all * 19), "{values} of {all} programs have a value");
}
