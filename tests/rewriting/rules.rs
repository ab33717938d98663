//! Wrong rules are found, and right ones pass: the check of rules is itself checked.

use crate::common::{files, root};
use daedal::data::argument;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::rewrite::audit::{Audited, audit};
use daedal::rewrite::egraph::pattern::compile;
use daedal::rules::check::generate::{Maker, Shape};
use daedal::rules::check::instance::{choices, instance};
use daedal::rules::check::mutate::mutants;
use daedal::rules::check::number::Arithmetic;
use daedal::rules::check::real::{Evaluator, Prepared};
use daedal::rules::check::value::{Agreement, Real, compare, real};
use daedal::rules::check::{Counterexample, Effort, Verdict, check};
use daedal::rules::{Level, Library, Rule};
use daedal::types;
use rayon::prelude::*;
use std::path::Path;
use std::process::Command;

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
    assert!(library.rules.len() >= 130, "{} rules", library.rules.len());
    let mut wrong = vec![];
    for (rule, verdict) in verdicts(&library, Effort::standard(1)) {
        let Some(c) = &verdict.counterexample else {
            wrong.push(format!("{} is not found: {:?}", rule.name, verdict.counts));
            continue;
        };
        // Where the order of what goes to one place shows, each of four metavariables needs two nodes.
        if c.size() > 5.max(2 * (rule.sides.params.len() + rule.sides.funs.len())) {
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

/// Protects: a sum in another order is found whatever the seed, and the name of the rule, which is part of it.
#[test]
fn another_order_is_found_by_every_seed() {
    let text = "(rule \"order\" ((n : Integer) (m : Integer) (p : (Lam Integer Integer)) (b : (Lam Integer Float)))
        (sum (buildFromSparse n m (lam (i : Integer) (tuple (p i) (b i)))))
        (sumbuild m (lam (i : Integer) (b i))) :level exact)";
    let mut library = Library::default();
    library.extend(&Source::new("order.rules", text)).unwrap();
    let seeds: Vec<u64> = (1..=24).collect();
    let found = |seed: &u64| check(&library.rules[0], &Effort::standard(*seed)).counterexample.is_some();
    let missed: Vec<u64> = seeds.into_par_iter().filter(|seed| !found(seed)).collect();
    assert!(missed.is_empty(), "seeds that miss it: {missed:?}");
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

/// One program that begins with the left side of a rule, in turn.
fn audited(all: &[&Rule], own: &[&Rule], level: Level, k: u64) -> Audited {
    let own: Vec<&Rule> = own.iter().copied().filter(|r| r.level <= level).collect();
    audit(all, own[k as usize % own.len()], level, k).unwrap()
}

/// Protects: rules that are wrong only together are found, and none of those that are needed is left
/// out or named in vain; the shipped rules agree with each other.
#[test]
fn rules_that_contradict_each_other_are_found() {
    let library = rules(&root("tests/together"));
    let all: Vec<&Rule> = library.rules.iter().collect();
    let found = (0..200).into_par_iter().find_map_first(|k| audited(&all, &all, Level::Real, k).disagreement);
    let found = found.unwrap_or_else(|| panic!("no contradiction is found"));
    assert_eq!(found.rules, ["quotient-of-itself", "twice-over-once", "difference-with-itself"], "{found:?}");
    let shipped = Library::shipped().unwrap();
    let all: Vec<&Rule> = shipped.rules.iter().collect();
    for level in [Level::Real, Level::Exact] {
        let found = (0..40).into_par_iter().find_map_first(|k| audited(&all, &all, level, 7 * k).disagreement);
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
            let filling = maker.filling(&types[round % types.len()], Shape::Rich);
            let Some(made) = instance(rule, &filling) else { continue };
            let values = maker.values(&filling.slots, true);
            let interpreter = Interpreter::new(&made.program);
            let found = interpreter.run(&made.defs[0], &values).ok().map(|v| real(&v));
            let prepared = Prepared::new(&made.program.terms, &[made.sides.0]);
            let mut env: Vec<Real> = values.iter().map(real).collect();
            match (found, Evaluator::new(&prepared, &arithmetic).eval(made.sides.0, &mut env)) {
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

/// Runs the binary in a fresh directory with a file of rules: exit code, output, and errors.
fn daedal(rules: &str, args: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("r.rules"), rules).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

const TWICE: &str = "(rule \"twice\" (a : Float) (mul 2.0 (exp a)) (add (exp a) (exp a)) :level exact)";

/// Protects: the rules of a file are checked alone, the shipped ones beside them only where that is asked for.
#[test]
fn the_rules_of_a_file_are_checked_alone() {
    let (code, said, _) = daedal(TWICE, &["rules", "check", "r.rules"]);
    assert!(code == 0 && said.starts_with("1 of 1 rules pass"), "{said}");
    let (code, _, why) = daedal(TWICE, &["rules", "check", "r.rules", "--rule", "add-zero"]);
    assert!(code == 1 && why.contains("`--all` checks them too"), "{why}");
    let (code, said, _) =
        daedal(TWICE, &["rules", "check", "r.rules", "--all", "--rule", "add-zero", "--rule", "twice"]);
    assert!(code == 0 && said.starts_with("2 of 2 rules pass"), "{said}");
    let (code, _, why) = daedal("; none", &["rules", "check", "r.rules"]);
    assert!(code == 1 && why.contains("`r.rules` has no rules"), "{why}");
}

/// Protects: a set of rules agrees only where its rules fired: programs begin with their left sides, a wrong
/// one among them is found, and one that never fired is unchecked, in text, JSON and exit code.
#[test]
fn a_rule_that_never_fires_is_unchecked() {
    let set = |rules: &str, more: &[&str]| {
        daedal(rules, &[&["rules", "check", "r.rules", "--set", "--programs", "24"][..], more].concat())
    };
    let wrong = [
        "(rule \"gauss\" (n : Integer) (sumbuild n (lam (i : Integer) (mul i 2))) (mul n n))",
        "(rule \"late\" ((a : Float) (b : Float)) (atan2 (neg a) (neg b)) (atan2 a b) :phase 9)",
        "(rule \"asks\" ((a : Float) (b : Float)) (sqrt (mul a b)) (mul a (sqrt b)) :when (positive a) :when (defined b))",
    ];
    for rule in wrong {
        let (code, said, why) = set(rule, &[]);
        assert!(code == 1 && why.contains("contradict each other"), "{rule}: {said}{why}");
        assert!(said.contains("two members of one class differ") || said.contains("the rules show that"), "{said}");
    }
    let (code, said, why) = set(TWICE, &[]);
    assert!(code == 0 && said.starts_with("1 rule fired and agrees with all rules, on "), "{said}{why}");
    // Its conditions hold of nothing.
    let never = "(rule \"never\" ((i : Integer) (n : Integer)) (sub i n) (add i n) :level exact
        :when (in-range i n) :when (in-range n i))";
    let (code, said, why) = set(&format!("{TWICE}\n{never}"), &[]);
    assert!(code == 1 && said.contains("never never fired, and is unchecked\n1 rule fired and agrees"), "{said}");
    assert!(why.contains("1 rule is unchecked"), "{why}");
    let (code, said, _) = set(&format!("{TWICE}\n{never}"), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == 1 && json["unchecked"] == serde_json::json!(["never"]), "{said}");
    assert_eq!((&json["asked"], &json["disagreement"]), (&2.into(), &serde_json::Value::Null));
}

/// Protects: in programs that begin with its own left side every shipped rule fires, but for those about lets.
#[test]
fn shipped_rules_fire_in_programs_of_their_own() {
    let library = Library::shipped().unwrap();
    let all: Vec<&Rule> = library.rules.iter().collect();
    let fires = |rule: &&Rule| {
        compile(rule).unwrap().is_none()
            || (0..30).any(|k| {
                let one = audit(&[*rule], rule, rule.level, k).unwrap();
                assert!(one.disagreement.is_none(), "{}: {:?}", rule.name, one.disagreement);
                one.fired.contains(&rule.name)
            })
    };
    let silent: Vec<&str> = all.par_iter().filter(|r| !fires(r)).map(|r| r.name.as_str()).collect();
    assert!(silent.is_empty(), "{silent:?} fire nowhere");
}

/// Protects: the programs in which rules are tried are part of the binary.
#[test]
fn rules_are_tried_outside_of_the_source_tree() {
    let (code, said, why) = daedal(TWICE, &["rules", "test", "r.rules", "--max-nodes", "60", "--json"]);
    assert_eq!(code, 0, "{why}");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let rules = json["rules"].as_array().unwrap();
    assert_eq!(rules.last().unwrap()["name"], "twice");
    let fires = rules.iter().filter(|r| r["fires"].as_array().is_some_and(|f| !f.is_empty())).count();
    assert!(fires > 50, "{fires} rules fire");
    let file = "(def main Float (x : Float) (mul 2.0 (exp x)))";
    let (code, said, _) = daedal(&format!("{TWICE}\n{file}"), &["rules", "test", "r.rules", "--programs", "r.rules"]);
    assert!(code == 0 && said.contains("1 definitions, most in r.rules main"), "{said}");
}

/// Protects: what ships for floats of 64 bits holds of those of 32, too, under the same conditions, and programs are made
/// cheaper by it; sums of literals that 32 bits do not hold are none of it.
#[test]
fn rules_of_floats_are_there_in_both_widths() {
    let library = Library::shipped().unwrap();
    let is_word = |c: char| c.is_whitespace() || c == '(' || c == ')';
    let wide = |r: &&Rule| r.text.split(is_word).any(|w| w == "Float");
    let mut pairs = 0;
    for rule in library.rules.iter().filter(wide) {
        let narrow = library.rules.iter().find(|r| r.name == format!("{}-32", rule.name));
        let narrow = narrow.unwrap_or_else(|| panic!("{} is of 64 bits alone", rule.name));
        let what = |r: &Rule| (r.level, r.phase, r.simplify, r.when.len());
        assert_eq!(what(rule), what(narrow), "{}", rule.name);
        pairs += 1;
    }
    assert!(pairs > 90, "{pairs}");
    // All of these are their argument, which costs nothing.
    for before in [
        "(add (mul 1f32 x) 0f32)",
        "(sub (mul x 0f32) (neg x))",
        "(sumbuild 5 (lam (i : Integer) (if (eq i 2) (mul x (div 1f32 1f32)) 0f32)))",
    ] {
        let program = format!("(def f Float32 (x : Float32) {before})");
        let (code, said, why) = daedal(&program, &["optimize", "r.rules", "--cost", "analytic", "--json"]);
        assert!(code == 0 && said.contains("\"cost_after\":0.0"), "{before}: {said}{why}");
    }
}
