//! Wrong rules are found, and right ones pass: the check of rules is itself checked.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::{files, root};
use daedal::data::argument;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::rewrite::audit::audit;
use daedal::rules::check::generate::Maker;
use daedal::rules::check::instance::{choices, instance};
use daedal::rules::check::judge::real;
use daedal::rules::check::mutate::mutants;
use daedal::rules::check::number::Arithmetic;
use daedal::rules::check::real::{Agreement, Prepared, Real, Reals, compare};
use daedal::rules::check::{Counterexample, Effort, Verdict, check};
use daedal::rules::{Level, Library, Rule};
use daedal::types;
use rayon::prelude::*;
use std::path::Path;

/// A fraction of the usual work: the command does it all.
fn quick() -> Effort {
    Effort { instances: 200, ..Effort::standard(1) }
}

/// The rules of files alone.
fn rules(below: &Path) -> Library {
    let mut library = Library::default();
    for path in files(below, "rules") {
        let source = Source::new(path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        library.extend(&source).unwrap_or_else(|d| panic!("{d}"));
    }
    library
}

fn verdicts(library: &Library, effort: Effort) -> Vec<(&Rule, Verdict)> {
    library.rules.par_iter().map(|r| (r, check(r, &effort))).collect()
}

/// What a counterexample's program gives when it is read back.
fn reproduced(c: &Counterexample) -> (String, String) {
    let program = types::program(&Source::new("case.ks", &*c.program)).unwrap_or_else(|d| panic!("{d}\n{}", c.program));
    let run = |name: &str| {
        let def = program.named(name)[0];
        let args: Vec<_> = def.params.iter().zip(&c.words).map(|(p, w)| argument(w, p.ty).unwrap()).collect();
        match Interpreter::new(&program).run(def, &args) {
            Ok(v) => v.to_json().to_string(),
            Err(d) => format!("error: {}", d.message),
        }
    };
    (run("lhs"), run("rhs"))
}

/// Protects: an instance that would run for hours is skipped, and the others still count.
#[test]
fn loops_without_end_are_given_up() {
    let text = "(rule \"count\" ((n : Integer)) (mul 1000000000000 (max n 0))
        (sumbuild (mul 1000000000000 (max n 0)) (lam (i : Integer) 1)) :level exact)";
    let mut library = Library::default();
    library.extend(&Source::new("long.rules", text)).unwrap();
    let verdict = check(&library.rules[0], &Effort { instances: 2000, ..Effort::standard(1) });
    assert!(verdict.counterexample.is_none() && verdict.exercised());
}

/// Protects: each of the wrong rules is found wrong by a small case, and the printed program shows it.
#[test]
fn wrong_rules_are_found_with_small_counterexamples() {
    let library = rules(&root("tests/unsound"));
    assert!(library.rules.len() >= 60, "{} rules", library.rules.len());
    let mut wrong = vec![];
    for (rule, verdict) in verdicts(&library, Effort::standard(1)) {
        let Some(c) = &verdict.counterexample else {
            wrong.push(format!("{} is not found: {:?}", rule.name, verdict.counts));
            continue;
        };
        if c.size() > 5 {
            wrong.push(format!("{} has {} nodes: {}", rule.name, c.size(), c.program));
        }
        let again = reproduced(c);
        if again != c.shown {
            wrong.push(format!("{} shows {:?}, and again {again:?}\n{}", rule.name, c.shown, c.program));
        }
        if c.level == Level::Exact && again.0 == again.1 {
            wrong.push(format!("{} shows no difference: {}\n{}", rule.name, again.0, c.program));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: what is shipped keeps what it claims, and is exercised enough to say so.
#[test]
fn shipped_rules_pass() {
    let library = Library::shipped().unwrap();
    let bad: Vec<String> = verdicts(&library, quick())
        .into_iter()
        .filter(|(_, v)| !v.passes())
        .map(|(r, v)| match &v.counterexample {
            Some(c) => format!("{}: {}\n{}{:?}", r.name, c.wrong.words(), c.program, c.words),
            None => format!("{}: hardly exercised: {:?}", r.name, v.counts),
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Protects: equal seeds give equal verdicts, whatever the number of threads.
#[test]
fn verdicts_do_not_depend_on_threads() {
    let library = rules(&root("tests/unsound"));
    let few = Effort { instances: 60, ..Effort::standard(3) };
    let text = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let all = pool.install(|| verdicts(&library, few));
        let each = all.iter().map(|(r, v)| format!("{} {:?} {:?}", r.name, v.counts, v.counterexample));
        each.collect::<Vec<_>>().join("\n")
    };
    assert!(text(1) == text(2), "two threads find something else than one");
}

/// Protects: rules that are wrong only together are found, and none of those that are needed is left
/// out or named in vain; the shipped rules agree with each other.
#[test]
fn rules_that_contradict_each_other_are_found() {
    let library = rules(&root("tests/together"));
    let all: Vec<&Rule> = library.rules.iter().collect();
    let found = (0..200).into_par_iter().find_map_first(|k| audit(&all, Level::Real, k).unwrap());
    let found = found.unwrap_or_else(|| panic!("no contradiction is found"));
    assert_eq!(found.rules, ["quotient-of-itself", "twice-over-once", "difference-with-itself"], "{found:?}");
    let shipped = Library::shipped().unwrap();
    let all: Vec<&Rule> = shipped.rules.iter().collect();
    for level in [Level::Real, Level::Exact] {
        let found = (0..40).into_par_iter().find_map_first(|k| audit(&all, level, k).unwrap());
        assert!(found.is_none(), "{found:?}");
    }
}

/// Protects: small changes of shipped rules are noticed.
#[test]
fn mutants_are_noticed() {
    let library = Library::shipped().unwrap();
    let all: Vec<_> = library.rules.iter().step_by(18).flat_map(mutants).filter(|m| !m.same).collect();
    let effort = quick();
    let left: Vec<String> = all
        .par_iter()
        .filter(|m| check(&m.rule, &effort).counterexample.is_none())
        .map(|m| format!("{}: {}", m.rule.name, m.change))
        .collect();
    assert!(all.len() >= 60, "{} mutants", all.len());
    // Some of those that are left are true rules: a dropped condition that another one implies, say.
    assert!(left.len() * 10 <= all.len(), "{} of {} mutants are left:\n{}", left.len(), all.len(), left.join("\n"));
}

/// Protects: the two evaluators agree but for rounding, on values, failures, and shapes.
#[test]
fn both_evaluators_agree() {
    let library = Library::shipped().unwrap();
    let arithmetic = Arithmetic::new(160);
    let (mut judged, mut wrong) = (0, vec![]);
    for (k, rule) in library.rules.iter().enumerate() {
        let types = choices(rule);
        for round in 0..12 {
            let mut maker = Maker::new(rule, (1000 * k + round) as u64);
            let filling = maker.filling(&types[round % types.len()], false);
            let Some(made) = instance(rule, &filling) else { continue };
            let values = maker.values(&filling.slots, true);
            let interpreter = Interpreter::new(&made.program);
            let found = interpreter.run(&made.defs[0], &values).ok().map(|v| real(&v));
            let prepared = Prepared::new(&made.program.terms, &[made.sides.0]);
            let mut env: Vec<Real> = values.iter().map(real).collect();
            match (found, Reals::new(&prepared, &arithmetic).eval(made.sides.0, &mut env)) {
                (Some(a), Ok(b)) if near(&a, &b, interpreter.magnitude()) => judged += 1,
                (None, Err(daedal::rules::check::real::Stop::Fails(_))) => judged += 1,
                (_, Err(daedal::rules::check::real::Stop::Undecided)) => {}
                (a, b) => wrong.push(format!("{}: {a:?} {b:?}\n{}", rule.name, made.text())),
            }
        }
    }
    // Where rounding turns a comparison, they differ rightly.
    assert!(judged > 1_000 && wrong.len() * 200 <= judged, "{judged} agree, but not\n{}", wrong.join("\n"));
}

fn near(a: &Real, b: &Real, scale: f64) -> bool {
    match (a, b) {
        (Real::Number(x), Real::Number(y)) => {
            let (x, y) = (x.to_f64(), y.to_f64());
            (x - y).abs() <= 1e-5 * scale.max(x.abs()).max(1.0)
        }
        // A number over the reals may overflow, and an infinity is no number over the reals.
        (Real::Nothing, _) | (_, Real::Nothing | Real::Infinite(_)) => true,
        (Real::Tuple(a), Real::Tuple(b)) => a.iter().zip(b).all(|(x, y)| near(x, y, scale)),
        (Real::Tensor(m, a), Real::Tensor(n, b)) => m == n && a.iter().zip(b).all(|(x, y)| near(x, y, scale)),
        _ => compare(a, b) == Agreement::Same,
    }
}
