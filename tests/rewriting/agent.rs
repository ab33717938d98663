//! Searches of terms: what they return means what the input means, whatever was tried on the way.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::random::compare;
use crate::common::{arguments, corpus, root, sharing};
use daedal::cost::Model;
use daedal::ir::Program;
use daedal::pipeline::{Engine, Options, optimize, optimize_with, prepare};
use daedal::rewrite::agent::Bind;
use daedal::rules::{Level, Library};
use daedal::search::Algorithm as Agent;
use rayon::prelude::*;

const AGENTS: [Agent; 6] = [Agent::Random, Agent::Astar, Agent::Mcts, Agent::Beam, Agent::Greedy, Agent::Mb2fbs];

fn options(k: u64, cost: Model, float: Level, budget: usize) -> Options<'static> {
    let engine = Engine::Agent(AGENTS[k as usize % AGENTS.len()]);
    let bind = if k % 4 < 2 { Bind::Placed } else { Bind::Searched };
    let phased = k.is_multiple_of(7);
    Options { cost, float, engine, bind, phased, budget, depth: 4 + (k % 9) as usize, seed: k, ..Options::standard() }
}

/// Rewrites random programs by every search in turn; how many got cheaper.
fn random_programs(float: Level, dyadic: bool) -> usize {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, float).unwrap();
    let knobs = Knobs { dyadic, ..Knobs::PLAIN };
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
        // A state of a large program takes long.
        let nodes: u64 =
            case.program.defs.values().filter_map(|d| d.term()).map(|id| case.program.terms.size(id)).sum();
        let budget = if nodes > 400 { 15 } else { 200 };
        let after = optimize(&case.program, &options(k as u64, Model::Knossos, float, budget)).unwrap().program;
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

fn costs(program: &Program, options: &Options<'_>) -> Vec<(f64, bool)> {
    optimize(program, options).unwrap().rows.iter().map(|r| (r.cost_after, r.proved)).collect()
}

/// Protects: the least costs that the agent's programs claim are proved, and that A* finds each with 5,000
/// evaluations; what is known of linear algebra, too.
#[test]
fn known_costs_of_the_programs_of_searches_hold() {
    for name in ["arithmetic", "blas"] {
        let case = corpus().into_iter().find(|c| c.name == format!("programs/agent/{name}.ks")).unwrap();
        let names: Vec<String> = case.costs.iter().map(|c| c.def.clone()).collect();
        let standard = || Options { cost: Model::Knossos, defs: names.clone(), ..Options::standard() };
        let astar = Options { engine: Engine::Agent(Agent::Astar), ..standard() };
        let found = optimize(&case.program, &astar).unwrap().rows;
        for known in &case.costs {
            let cost = found.iter().find(|row| row.name == known.def).unwrap().cost_after;
            assert!(cost <= known.most + 1e-6, "{name}: {} costs {cost}, not {}", known.def, known.most);
        }
        if name == "arithmetic" {
            let only = vec!["arith".into()];
            let exact = Options { exact: true, max_nodes: 2_000, only, ..standard() };
            let exact = optimize(&case.program, &exact).unwrap().rows;
            for known in &case.costs {
                let row = exact.iter().find(|row| row.name == known.def).unwrap();
                let (cost, proved) = (row.cost_after, row.proved);
                assert!(proved && (cost - known.most).abs() < 1e-6, "{} costs {cost}, {proved}", known.def);
            }
        }
    }
}

/// Protects: the expressions that searches are compared on are those that the generator makes, with the least
/// costs on which equality saturation and A* agree. `DAEDAL_BLESS=1` writes the file.
#[test]
fn shared_expressions_are_as_generated() {
    let path = root("programs/agent/sharing.ks");
    let text = sharing::text(&vec![0.0; sharing::expressions().len()]);
    let program = common::read("sharing.ks", &text).unwrap();
    let names: Vec<&str> = program.defs.values().map(daedal::ir::Def::name).collect();
    assert_eq!(names, sharing::expressions().iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>());
    let options =
        |engine| Options { cost: Model::Knossos, engine, max_nodes: 2_000, budget: 1_000, ..Options::standard() };
    let saturated = costs(&program, &options(Engine::Egraph));
    let least: Vec<f64> = saturated.iter().map(|(cost, _)| (cost * 1e6).round() / 1e6).collect();
    let text = sharing::text(&least);
    if std::env::var_os("DAEDAL_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        text,
        "write it again: DAEDAL_BLESS=1 cargo test --test rewriting agent::"
    );
    let found = costs(&program, &options(Engine::Agent(Agent::Astar)));
    for ((name, (cost, _)), least) in names.iter().zip(&found).zip(&least) {
        assert!((cost - least).abs() < 1e-6, "{name}: A* found {cost}, saturation {least}");
    }
}

/// Protects: rules by name; a name that nothing has, and rules that cannot be used, are refused.
#[test]
fn rules_are_chosen_by_name() {
    let text = "(def f Float ((x : Float) (y : Float) (z : Float)) (add (mul x y) (add (mul x z) 0.0)))";
    let program = common::read("only.ks", text).unwrap();
    let run = |only: &[&str], float| {
        let only = only.iter().map(|n| n.to_string()).collect();
        let engine = Engine::Agent(Agent::Astar);
        let options = Options { cost: Model::Knossos, float, engine, only, ..Options::standard() };
        optimize(&program, &options).map(|o| o.rows[0].cost_after).map_err(|d| d.to_string())
    };
    assert_eq!(run(&[], Level::Real), Ok(3.0));
    assert_eq!(run(&["arith"], Level::Real), Ok(3.0));
    assert_eq!(run(&["add-zero"], Level::Real), Ok(5.0));
    assert_eq!(run(&["logic"], Level::Real), Ok(6.0));
    let found = run(&["add-zeros"], Level::Real).unwrap_err();
    assert!(found.contains("there is no rule and no group of rules `add-zeros`"), "{found}");
    let found = run(&["add-zero"], Level::Exact).unwrap_err();
    assert!(found.contains("none of these rules keeps what `exact` asks for: add-zero"), "{found}");
}
