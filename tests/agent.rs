//! Searches of terms: what they return means what the input means, whatever was tried on the way.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{self, Knobs};
use common::random::compare;
use common::{arguments, corpus};
use daedal::cost::Model;
use daedal::pipeline::{Engine, Options, optimize, optimize_with, prepare};
use daedal::rewrite::agent::Engine as Agent;
use daedal::rules::{Level, Library};
use rayon::prelude::*;

const AGENTS: [Agent; 6] = [Agent::Random, Agent::Astar, Agent::Mcts, Agent::Beam, Agent::Greedy, Agent::Mb2fbs];

fn options(k: u64, cost: Model, float: Level, budget: usize) -> Options<'static> {
    let engine = Engine::Agent(AGENTS[k as usize % AGENTS.len()]);
    Options { cost, float, engine, budget, depth: 4 + (k % 9) as usize, seed: k, ..Options::standard() }
}

/// Rewrites random programs by every search in turn; how many got cheaper.
fn random_programs(float: Level, dyadic: bool) -> usize {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, float).unwrap();
    let knobs = Knobs { budget: 24, dyadic, failing: true, renamed: false };
    let one = |seed: u64| -> Result<bool, String> {
        let made = generate::program(seed, &knobs);
        let before = common::read("random.ks", &made.text).map_err(|d| d.to_string())?;
        let cost = if seed.is_multiple_of(5) { Model::Analytic } else { Model::Knossos };
        let options = options(seed, cost, float, 60 + (seed % 7 * 40) as usize);
        let after = optimize_with(&before, &rules, &options).map_err(|d| format!("seed {seed}: {d}\n{}", made.text))?;
        let main = before.named("main")[0].clone();
        let args = arguments(&main, &made.args).map_err(|e| format!("seed {seed}: {e}"))?;
        compare(&before, &after.program, "main", &args, float)
            .map_err(|e| format!("seed {seed}: {e}\n{}", made.text))?;
        Ok(after.rows.iter().any(|r| r.cost_after < r.cost_before))
    };
    let results: Vec<Result<bool, String>> = (0..2_000).into_par_iter().map(one).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    results.iter().filter(|r| **r == Ok(true)).count()
}

/// Protects: soundness of rules and bindings as moves, failures included.
#[test]
fn random_programs_mean_the_same() {
    let exact = random_programs(Level::Exact, false);
    let real = random_programs(Level::Real, true);
    assert!(exact > 100 && real > 100, "{exact} and {real} programs got cheaper");
}

/// Protects: the meaning of the corpus, lets, calls and failures included.
#[test]
fn the_corpus_means_the_same() {
    let failed = |(k, case): (usize, common::Case)| -> Vec<String> {
        let float = if k % 2 == 0 { Level::Real } else { Level::Exact };
        let after = optimize(&case.program, &options(k as u64, Model::Knossos, float, 200)).unwrap().program;
        let check = |run: &common::Run| {
            let def = case.program.named(&run.def).into_iter().find(|d| arguments(d, &run.args).is_ok())?;
            let args = arguments(def, &run.args).ok()?;
            let wrong = compare(&case.program, &after, def.name(), &args, float).err()?;
            Some(format!("{}:{} {wrong}", case.name, run.line))
        };
        case.runs.iter().filter_map(check).collect()
    };
    let failed: Vec<String> = corpus().into_iter().enumerate().flat_map(failed).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Protects: `auto` is at least as good as equality saturation, and finds what needs a dearer term on
/// the way.
#[test]
fn auto_is_the_best_of_both() {
    let text = "(def f Float ((x : Float) (y : Float)) (div (mul (add x y) (exp (add x y))) (exp (add x y))))";
    let program = common::read("auto.ks", text).unwrap();
    let cost = |engine| {
        let options = Options { cost: Model::Knossos, engine, budget: 500, ..Options::standard() };
        optimize(&program, &options).unwrap().rows[0].cost_after
    };
    assert!(cost(Engine::Auto) <= cost(Engine::Egraph));
    assert!(cost(Engine::Agent(Agent::Astar)) < cost(Engine::Agent(Agent::Greedy)) + 1e-9);
}
