//! Random pipelines: every seed is a program that stages, and its schedules keep its bits.

use crate::common::native::difference;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::stage::extract;
use daedal::tune::example;
use daedal::tune::random::Pipeline;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What is wrong with the pipeline of a seed; how many stages it has.
fn wrong(seed: u64) -> Result<usize, String> {
    let pipeline = Pipeline::new(seed);
    let told = |what: &str| format!("seed {seed}: {what}\n{}", pipeline.text);
    let program = daedal::types::program(&Source::new("main", &pipeline.text)).map_err(|d| told(&d.render()))?;
    let def = program.named("main")[0];
    let graph = extract(&program, def).map_err(|u| told(&u.diagnostic(&program).render()))?;
    let args = example::arguments(def, &pipeline.small, seed).map_err(|d| told(&d.render()))?;
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] };
    let stages = graph.stages.len();
    let schedule = daedal::schedule::default_for(graph, &example::incoming(def, &args), &machine);
    let nest = native::scheduled_nest(def, &schedule, &machine).map_err(|d| told(&d.render()))?;
    let want = Interpreter::new(&program).run(def, &args);
    // A check that fails would leave the call to the reference: pipelines have none that do.
    match difference(&want, &interpret(&nest, &args, &mut String::new())) {
        Some(d) => Err(told(&d)),
        None => want.map(|_| stages).map_err(|d| told(&d.render())),
    }
}

/// Protects: what a model of costs learns from are programs: 200 seeds are well typed, staged, run without a failure, and have
/// the interpreter's bits under their default schedules.
#[test]
fn pipelines_are_programs_whose_schedules_keep_their_bits() {
    let all: Vec<Result<usize, String>> = (0..200).into_par_iter().map(wrong).collect();
    let bad: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    let shown: Vec<&str> = bad.iter().take(3).map(|s| s.as_str()).collect();
    assert!(bad.is_empty(), "{} are wrong:\n{}", bad.len(), shown.join("\n"));
    let stages: Vec<usize> = all.into_iter().flatten().collect();
    assert!(stages.iter().any(|n| *n >= 10) && stages.iter().all(|n| (1..=24).contains(n)), "{stages:?}");
}

/// Protects: seeds stand for pipelines, on every machine and in every run; two of them are alike in nothing but chance; all
/// kinds of stages are among few of them.
#[test]
fn pipelines_are_functions_of_their_seeds() {
    let texts: BTreeMap<String, u64> = (0..200).map(|seed| (Pipeline::new(seed).text, seed)).collect();
    assert_eq!(texts.len(), 200, "two seeds have one text");
    assert!((0..200).all(|seed| texts.get(&Pipeline::new(seed).text) == Some(&seed)));
    let all: String = texts.into_keys().collect();
    let kinds = ["(scan ", "(reduce max", "(sumbuild (tuple", "(exp ", "(saturate UInt8", "(div i 2)", "(mul 2 i)"];
    for kind in kinds.into_iter().chain(["(min (sub ", "(max 0 (sub i", "Int16", "(cast Integer", "(bitxor"]) {
        assert!(all.contains(kind), "no pipeline has {kind}");
    }
}
