//! Optimized programs mean what the originals mean, cost no more, and reach the costs they promise.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{self, Knobs};
use common::{Case, Run, agree, arguments, corpus};
use daedal::cost::Model;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Head, Program};
use daedal::pipeline::{Options, optimize, optimize_with, prepare};
use daedal::rules::{Level, Library};
use daedal::run::{Native, Toolchain};
use rayon::prelude::*;

fn options(cost: Model, float: Level) -> Options<'static> {
    Options { cost, float, max_nodes: 3000, ..Options::standard() }
}

fn optimized(case: &Case, cost: Model, float: Level) -> Program {
    optimize(&case.program, &options(cost, float)).unwrap_or_else(|d| panic!("{}: {d}", case.name)).program
}

/// The definition that a run line means, with its arguments.
fn call<'a>(program: &'a Program, run: &Run) -> Option<(&'a Def, Vec<Value>)> {
    program.named(&run.def).into_iter().find_map(|d| Some((d, arguments(d, &run.args).ok()?)))
}

fn finite(v: &Value) -> bool {
    match v {
        Value::Scalar(l) => l.as_f64().is_none_or(f64::is_finite),
        Value::Tuple(parts) => parts.iter().all(finite),
        Value::Tensor(t) => t.data.iter().all(finite),
    }
}

/// Compares the original with the optimized program on one call. A failure may vanish, never appear.
fn compare(before: &Program, after: &Program, name: &str, args: &[Value], float: Level) -> Result<(), String> {
    let (one, two) = (Interpreter::new(before), Interpreter::new(after));
    let def =
        |p: &Program| p.defs.values().find(|d| d.name() == name && d.params.len() == args.len()).cloned().unwrap();
    let find = |p: &Program, like: &Def| p.defs.values().find(|d| d.fun == like.fun).cloned().unwrap();
    let def = before
        .named(name)
        .into_iter()
        .find(|d| d.params.len() == args.len() && one.run(d, args).is_ok())
        .cloned()
        .unwrap_or_else(|| def(before));
    let Ok(want) = one.run(&def, args) else { return Ok(()) };
    let have = two.run(&find(after, &def), args).map_err(|d| format!("`{name}` fails after optimization: {d}"))?;
    let good = match float {
        Level::Exact => agree(&want, &have, 0.0),
        // Where the reals have no value, no rule promises one.
        Level::Real => {
            !finite(&want) || agree(&want, &have, 1e-9) || near(&want, &have, one.magnitude().max(two.magnitude()))
        }
    };
    if good { Ok(()) } else { Err(format!("`{name}`: expected {}, found {}", want.to_json(), have.to_json())) }
}

/// Equal up to rounding at the scale of the numbers on the way.
fn near(a: &Value, b: &Value, scale: f64) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(p), Some(q)) => (p - q).abs() <= 1e-9 * scale.max(1.0),
            _ => x == y,
        },
        (Value::Tuple(x), Value::Tuple(y)) => x.iter().zip(y.iter()).all(|(p, q)| near(p, q, scale)),
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.data.iter().zip(&y.data).all(|(p, q)| near(p, q, scale))
        }
        _ => false,
    }
}

/// Protects: the meaning of the corpus under optimization, at both levels and under both models,
/// interpreted and native.
#[test]
fn the_corpus_means_the_same_after_optimization() {
    let tools =
        Toolchain::discover(None, Some(std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("optimized")));
    let modes = [(Model::Analytic, Level::Real), (Model::Knossos, Level::Exact)];
    let mut failed = vec![];
    for case in corpus() {
        for (cost, float) in modes {
            let after = optimized(&case, cost, float);
            let defs: Vec<&Def> = after.defs.values().filter(|d| d.term().is_some()).collect();
            let native = match (cost, float) {
                (Model::Analytic, Level::Real) => Native::compile_all(&after, &defs, &tools).unwrap(),
                _ => vec![],
            };
            let interpreter = Interpreter::new(&after);
            for run in &case.runs {
                let Some((def, args)) = call(&case.program, run) else { continue };
                let place = format!("{}:{} ({cost:?}, {float})", case.name, run.line);
                failed.extend(
                    compare(&case.program, &after, def.name(), &args, float).err().map(|e| format!("{place} {e}")),
                );
                let at = defs.iter().position(|d| d.fun == def.fun);
                if let Some(Ok(native)) = at.and_then(|k| native.get(k)) {
                    let (want, have) = (interpreter.run(defs[at.unwrap()], &args), native.call(&args));
                    let same = match (&want, &have) {
                        (Ok(a), Ok(b)) => agree(a, b, 0.0),
                        (Err(a), Err(b)) => a.message == b.message,
                        _ => false,
                    };
                    if !same {
                        failed.push(format!("{place} native `{}`: {want:?} {have:?}", def.name()));
                    }
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
}

/// The number of tensors that a definition makes, by nodes.
fn tensors(program: &Program, def: &Def) -> usize {
    let terms = &program.terms;
    let makes =
        |h: Head| matches!(h, Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Op(_));
    let body = def.term().unwrap();
    terms.reachable(body).into_iter().filter(|id| terms.ty(*id).as_tensor().is_some() && makes(terms.head(*id))).count()
}

/// Protects: the costs and fusions that the corpus promises.
#[test]
fn promised_costs_and_fusions_are_reached() {
    let (mut checked, mut failed) = (0, vec![]);
    for case in corpus() {
        for bound in &case.costs {
            let model = Model::named(&bound.model).unwrap();
            let only = Options { defs: vec![bound.def.clone()], ..options(model, Level::Real) };
            let rows = optimize(&case.program, &only).unwrap().rows;
            let row = rows.iter().find(|r| r.name == bound.def).unwrap();
            checked += 1;
            if row.cost_after > bound.most + 1e-9 {
                failed.push(format!("{}:{}: {} costs {}", case.name, bound.line, bound.def, row.cost_after));
            }
        }
        for bound in &case.builds {
            let only = Options { defs: vec![bound.def.clone()], ..options(Model::Knossos, Level::Real) };
            let after = optimize(&case.program, &only).unwrap().program;
            let found = tensors(&after, after.named(&bound.def)[0]);
            checked += 1;
            if found as f64 > bound.most {
                failed.push(format!("{}:{}: {} makes {found} tensors", case.name, bound.line, bound.def));
            }
        }
    }
    assert!(checked >= 4 && failed.is_empty(), "{checked} checked\n{}", failed.join("\n"));
}

/// Optimizes random programs at a level and compares what they mean; how many got cheaper.
fn random_programs(seeds: std::ops::Range<u64>, float: Level, knobs: Knobs) -> usize {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, float).unwrap();
    let outcome = |seed: u64| -> Result<bool, String> {
        let made = generate::program(seed, &knobs);
        let before = common::read("random.ks", &made.text).map_err(|d| d.to_string())?;
        let cost = if seed.is_multiple_of(2) { Model::Knossos } else { Model::Analytic };
        let options = Options { max_nodes: 600, ..options(cost, float) };
        let after = optimize_with(&before, &rules, &options).map_err(|d| format!("seed {seed}: {d}\n{}", made.text))?;
        let main = before.named("main")[0].clone();
        let args = arguments(&main, &made.args).map_err(|e| format!("seed {seed}: {e}"))?;
        compare(&before, &after.program, "main", &args, float).map_err(|e| {
            format!(
                "seed {seed} ({cost:?}): {e}\n{}\n{}\nargs {:?}",
                made.text,
                daedal::ir::print::program(&after.program),
                made.args
            )
        })?;
        Ok(after.rows.iter().any(|r| r.cost_after < r.cost_before))
    };
    let results: Vec<Result<bool, String>> = seeds.into_par_iter().map(outcome).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    results.iter().filter(|r| **r == Ok(true)).count()
}

/// Protects: soundness at level `exact`, failures included.
#[test]
fn random_programs_mean_the_same_at_exact() {
    let knobs = Knobs { budget: 24, dyadic: false, failing: true, renamed: false };
    let cheaper = random_programs(0..10_000, Level::Exact, knobs);
    assert!(cheaper > 500, "only {cheaper} programs got cheaper");
}

/// Protects: soundness at level `real`, on numbers that show no rounding.
#[test]
fn random_programs_mean_the_same_at_real() {
    let knobs = Knobs { budget: 24, dyadic: true, failing: true, renamed: false };
    let cheaper = random_programs(0..10_000, Level::Real, knobs);
    assert!(cheaper > 500, "only {cheaper} programs got cheaper");
}

/// Protects: what is optimized does not depend on what the source calls its local names.
#[test]
fn renamed_programs_come_out_the_same() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let options = Options { max_nodes: 600, ..options(Model::Knossos, Level::Real) };
    let optimize = |text: &str| {
        let program = common::read("random.ks", text).unwrap();
        daedal::ir::print::program(&optimize_with(&program, &rules, &options).unwrap().program)
    };
    let mut compared = 0;
    for seed in 0..300 {
        let knobs = Knobs { budget: 24, dyadic: false, failing: true, renamed: false };
        let (a, b) = (generate::program(seed, &knobs), generate::program(seed, &Knobs { renamed: true, ..knobs }));
        let (one, two) = (optimize(&a.text), optimize(&b.text));
        if one != common::read("random.ks", &a.text).map(|p| daedal::ir::print::program(&p)).unwrap() {
            compared += 1;
        }
        // Parameters keep the names of the source, which is how callers know them.
        let again = common::read("random.ks", &two.replace("other_name", "x")).unwrap();
        assert_eq!(one, daedal::ir::print::program(&again), "seed {seed}");
    }
    assert!(compared > 50, "only {compared} programs were changed");
}
