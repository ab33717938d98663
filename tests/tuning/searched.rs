//! What searches of schedules return for random pipelines: each has every bit of its own rewritten program, and its text reads
//! back as itself, steps that rewrite included.
//!
//! `DAEDAL_CASES=2000 cargo test --test tuning searched::` tries so many pipelines.

use crate::common::native::difference;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::{native, tuning};
use daedal::schedule::text;
use daedal::stage::extract;
use daedal::tune::edits::offspring;
use daedal::tune::estimate::Estimates;
use daedal::tune::explore::{Settings, Way, search};
use daedal::tune::random::Pipeline;
use daedal::tune::tree::{Judged, steps};
use daedal::tune::{Model, example};
use rayon::prelude::*;

const WAYS: [Way; 6] = [Way::Beam, Way::Mb2fbs, Way::Greedy, Way::Mcts, Way::Random, Way::Toy];

/// What was seen of a pipeline.
#[derive(Default)]
struct Came {
    schedules: usize,
    /// Those that rewrite, and those of programs that are estimated.
    rewritten: usize,
    estimated: usize,
}

/// Searches schedules of the pipeline of a seed by one of the ways; what is wrong with them.
fn searched(seed: u64) -> Result<Came, String> {
    let pipeline = Pipeline::new(seed);
    let told = |what: &str| format!("seed {seed}: {what}\n{}", pipeline.text);
    let program = daedal::types::program(&Source::new("main", &pipeline.text)).map_err(|d| told(&d.render()))?;
    let def = program.named("main")[0];
    let mut graph = extract(&program, def).map_err(|u| told(&u.diagnostic(&program).render()))?;
    graph.real = seed.is_multiple_of(2);
    let args = example::arguments(def, &pipeline.small, seed).map_err(|d| told(&d.render()))?;
    let incoming = example::incoming(def, &args);
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] };
    let (tree, standard) = tuning::space(def, graph.clone(), &args, &machine);
    // The program after its rewrites, which the language can say, or is as it was.
    let rewrites: Vec<String> = standard.steps.iter().filter(|s| s.is_rewrite()).map(ToString::to_string).collect();
    let again = tree.empty().graph.program(def);
    let want = match (&again, rewrites.is_empty()) {
        (Ok(p), _) => Interpreter::new(p).run(&p.defs[&def.fun], &args),
        (Err(_), true) => Interpreter::new(&program).run(def, &args),
        (Err(why), false) => return Err(told(&format!("its rewrites cannot be said: {why}"))),
    };
    let settings = Settings { way: WAYS[seed as usize % WAYS.len()], beam: 4, evaluations: 250, seed, keep: 2 };
    let mut found = search(&tree, &Model::default(), &settings, &|| false).0;
    let parents: Vec<_> = found.iter().map(|j| j.schedule.clone()).chain([standard]).collect();
    found.extend(offspring(&tree, &Model::default(), &parents, 3, seed).into_iter().take(1));
    for Judged { schedule, .. } in &found {
        let shown = steps(schedule);
        let read = text::apply_for(graph.clone(), &incoming, &Source::new("s.sched", shown.clone()));
        let read = read.map_err(|d| told(&format!("it does not read back: {}\n{shown}", d.render())))?;
        if steps(&read) != shown || read.plans != schedule.plans {
            return Err(told(&format!("it reads back as another one:\n{shown}\nis\n{}", steps(&read))));
        }
        let nest = native::scheduled_nest(def, schedule, &machine).map_err(|d| told(&d.render()))?;
        if let Some(d) = difference(&want, &interpret(&nest, &args, &mut String::new())) {
            return Err(told(&format!("{d}\n{shown}")));
        }
    }
    let estimated = usize::from(Estimates::of(&tree).is_some());
    Ok(Came { schedules: found.len(), rewritten: if rewrites.is_empty() { 0 } else { found.len() }, estimated })
}

/// Protects: whatever searches return keeps every bit of its own rewritten program, and its rewrites and steps replay.
#[test]
fn what_searches_return_keeps_every_bit() {
    let cases = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let all: Vec<Result<Came, String>> = (0..cases).into_par_iter().map(searched).collect();
    let bad: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    let shown: Vec<&str> = bad.iter().take(3).map(|s| s.as_str()).collect();
    assert!(bad.is_empty(), "{} of {cases} are wrong:\n{}", bad.len(), shown.join("\n"));
    let (mut schedules, mut rewritten, mut estimated) = (0, 0, 0);
    for came in all.into_iter().flatten() {
        schedules += came.schedules;
        rewritten += came.rewritten;
        estimated += came.estimated;
    }
    println!(
        "{schedules} schedules of {cases} pipelines, {rewritten} with rewrites; {estimated} pipelines are estimated"
    );
    let cases = cases as usize;
    assert!(schedules >= 2 * cases && rewritten * 10 >= cases && estimated * 3 >= cases);
}

const SUMS: &str = "(def f (Vec Float) ((a : (Tensor 2 Float) (n m)) (x : (Vec Float) m))
  (let (y (build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (mul (index (tuple i j) a) (exp (index j x))))))))
    (build n (lam (i : Integer) (div (index i y) (sum y))))))";

/// Protects: what is nothing at the sizes of a search, such as the rest of a sum behind whole lanes, is neither inlined nor given
/// loops: at other sizes it is a reduction, and there such steps would be refused.
#[test]
fn what_is_nothing_at_some_sizes_is_left_alone() {
    let program = daedal::types::program(&Source::new("f", SUMS)).unwrap();
    let def = program.named("f")[0];
    let mut graph = extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
    graph.real = true;
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] };
    let mut nothing = 0;
    for (n, m) in [(40, 30), (64, 32), (96, 64)] {
        let sizes = [("n".to_string(), n), ("m".to_string(), m)];
        let (tree, standard) =
            tuning::space(def, graph.clone(), &example::arguments(def, &sizes, 1).unwrap(), &machine);
        let start = &tree.start().graph;
        let pure = |name: &str| {
            start.find(name).is_some_and(|s| matches!(start.stage(s).def, daedal::stage::Definition::Pure(_)))
        };
        let rewrites: Vec<&daedal::schedule::Step> = standard.steps.iter().filter(|s| s.is_rewrite()).collect();
        let sums = rewrites.iter().filter(|s| s.to_string().starts_with("reassociate")).map(|s| s.stage());
        let left: Vec<&str> = sums.filter(|name| pure(name)).collect();
        nothing += left.len();
        let settings = Settings { way: Way::Random, beam: 1, evaluations: 400, seed: 1, keep: 24 };
        let found = search(&tree, &Model::default(), &settings, &|| false).0;
        assert!(found.len() >= 8, "{}", found.len());
        for Judged { schedule, .. } in found {
            for step in schedule.steps.iter().filter(|s| !s.is_rewrite() && left.contains(&s.stage())) {
                let words = step.to_string();
                assert!(words.starts_with("compute-"), "{words}\n{}", steps(&schedule));
            }
        }
    }
    assert!(nothing > 0, "no sum has whole lanes alone");
}
