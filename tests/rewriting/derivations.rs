//! Derivations replay: those of the corpus and of random programs; what was tampered with does not.

use crate::common;
use crate::common::corpus;
use crate::common::generate::{self, Knobs};
use crate::common::random::{Trial, replayed};
use crate::common::steps::told;
use daedal::cost::Model;
use daedal::derive::record::{self, Record};
use daedal::derive::replay::replay;
use daedal::derive::spot;
use daedal::diag::Source;
use daedal::ir::{Lit, Program, Scalar};
use daedal::pipeline::{self, Engine, Options, optimize_with, prepare};
use daedal::rewrite::agent::Bind;
use daedal::rules::{Level, Library};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

fn options(cost: Model, float: Level, max_nodes: usize) -> Options<'static> {
    Options { cost, float, max_nodes, derive: true, ..Options::standard() }
}

fn read(text: &str) -> Record {
    record::read(&Source::new("steps.jsonl", text)).unwrap_or_else(|d| panic!("{d}"))
}

/// What the search knows to be evaluated anyway may leave the arms of a loop with its let, or an assertion; where every
/// use stands in an arm, the checker follows that only if it proves that nothing fails. These results are told to be
/// better, with the reason, and are not used. `steps_fwd` reads a tensor of a size that only another read proves. What
/// a region of `row_losses` and `entropy` becomes needs a number over the reals, which the greatest of a row is only
/// where the row is not empty.
const UNPROVED: [(&str, &str); 4] = [
    ("grad/unreached.ks by_steps", EARLY),
    ("grad/conditions.ks steps_fwd", "what `index-of-const` brings back could fail where the program did not"),
    ("apps/logsumexp.ks row_losses", REAL),
    ("apps/logsumexp.ks entropy", REAL),
];
const REAL: &str = "the lemma needs that a number is real, which is not proved here";
const EARLY: &str = "a let of the result evaluates early what might fail";

/// Protects: every result for the corpus is derived, at both levels, and its derivation replays. A result costs
/// what it costs without a derivation, or the better one is told.
#[test]
fn derivations_of_the_corpus_replay_and_cost_nothing() {
    let library = Library::shipped().unwrap();
    let cases = corpus();
    let mut wrong: Vec<String> = vec![];
    for (cost, float) in [(Model::Knossos, Level::Real), (Model::Analytic, Level::Exact)] {
        let rules = prepare(&library, float).unwrap();
        let one = |case: &common::Case| -> (usize, Vec<String>) {
            let with = options(cost, float, 600);
            let without = Options { derive: false, ..options(cost, float, 600) };
            let outcome = optimize_with(&case.program, &rules, &with).unwrap();
            let steps = replayed(&case.program, &outcome, &library, &with);
            let steps = steps.unwrap_or_else(|d| panic!("{} ({float}): {d}", case.name));
            let rows = optimize_with(&case.program, &rules, &without).unwrap().rows;
            let dearer = outcome.rows.iter().zip(&rows).filter(|(a, b)| a.cost_after > b.cost_after * (1.0 + 1e-9));
            let told: Vec<String> = outcome
                .rows
                .iter()
                .filter_map(|r| {
                    Some(format!("{} {}: {:?} < {}", case.name, r.name, r.unproved.as_ref()?, r.cost_after))
                })
                .collect();
            // What calls a definition is dearer with it.
            let silent = told.is_empty() && dearer.clone().count() > 0;
            assert!(!silent, "{}: dearer in silence: {:?}", case.name, dearer.collect::<Vec<_>>());
            (steps, told)
        };
        let all: Vec<(usize, Vec<String>)> = cases.par_iter().map(one).collect();
        let steps: usize = all.iter().map(|(steps, _)| steps).sum();
        assert!(steps > 300, "only {steps} steps at {float}");
        wrong.extend(all.into_iter().flat_map(|(_, told)| told).map(|told| format!("{float}: not derived: {told}")));
    }
    wrong.retain(|told| !UNPROVED.iter().any(|(name, why)| told.contains(name) && told.contains(why)));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Derives random programs and replays; how many had steps, and how many results were given up.
fn random(seeds: std::ops::Range<u64>, float: Level) -> (usize, usize) {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, float).unwrap();
    let knobs = Knobs { dyadic: float == Level::Real, ..Knobs::PLAIN };
    let trial = Trial { library: &library, rules: &rules, float, knobs, engines: &[Engine::Egraph], derive: true };
    let results: Vec<_> = seeds.into_par_iter().map(|seed| trial.check(seed)).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    let all = || results.iter().flatten();
    (all().filter(|c| c.steps > 0).count(), all().map(|c| c.given_up).sum())
}

/// How a search of terms differs from case to case.
fn walking(k: u64, cost: Model, float: Level) -> Options<'static> {
    use daedal::search::Algorithm::{Astar, Beam, Greedy, Mb2fbs, Mcts, Random};
    let engine = [Astar, Mcts, Random, Beam, Greedy, Mb2fbs][k as usize % 6];
    let bind = if k % 4 < 2 { Bind::Placed } else { Bind::Searched };
    let engine = if k.is_multiple_of(11) { Engine::Auto } else { Engine::Agent(engine) };
    Options { engine, bind, budget: 150, depth: 12, seed: k, ..options(cost, float, 400) }
}

/// Protects: what searches of terms return is derived, whatever became of bindings, and replays.
#[test]
fn searches_of_terms_are_derived() {
    let library = Library::shipped().unwrap();
    let (real, exact) = (prepare(&library, Level::Real).unwrap(), prepare(&library, Level::Exact).unwrap());
    let knobs = Knobs { dyadic: true, ..Knobs::PLAIN };
    let large = ["ba.ks", "gmm.ks", "lstm.ks", "convnet.ks", "hand.ks"];
    let mut programs: Vec<(String, Program)> = corpus()
        .into_iter()
        .filter(|c| !large.iter().any(|l| c.name.ends_with(l)))
        .map(|c| (c.name, c.program))
        .collect();
    for seed in 9000..9600 {
        let made = generate::program(seed, &knobs);
        programs.push((made.text.clone(), common::read("random.ks", &made.text).unwrap()));
    }
    let one = |(k, (name, program)): (usize, &(String, Program))| -> Result<(usize, usize, usize), String> {
        let float = if k % 3 == 0 { Level::Exact } else { Level::Real };
        let rules = if float == Level::Exact { &exact } else { &real };
        let cost = if k % 5 == 0 { Model::Analytic } else { Model::Knossos };
        let options = walking(k as u64, cost, float);
        let outcome = optimize_with(program, rules, &options).map_err(|d| format!("{name}: {d}"))?;
        let steps = replayed(program, &outcome, &library, &options)
            .map_err(|d| format!("{name}, {}: {d}", options.engine.name()))?;
        let better = outcome.rows.iter().filter(|r| r.cost_after < r.cost_before).count();
        let lost: usize = outcome.rows.iter().filter(|r| r.unproved.is_some()).count();
        for row in outcome.rows.iter().filter(|r| r.unproved.is_some()) {
            println!("{} {:?}: {:?}\n{name}", row.name, options.bind, row.unproved);
        }
        Ok((steps, better, lost))
    };
    let results: Vec<Result<(usize, usize, usize), String>> = programs.par_iter().enumerate().map(one).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    let sum = |f: fn(&(usize, usize, usize)) -> usize| results.iter().flatten().map(f).sum::<usize>();
    let (steps, better, lost) = (sum(|r| r.0), sum(|r| r.1), sum(|r| r.2));
    println!("{steps} steps, {better} better, {lost} of which needed another way");
    assert!(steps > 1000 && better > 300, "{steps} steps, {better} better");
    assert!(lost < 30, "{lost} results were given up");
}

/// Protects: what is claimed of random programs is proved, failures included, and means the same.
#[test]
fn derivations_of_random_programs_replay() {
    let (exact, lost_exact) = random(0..2500, Level::Exact);
    let (real, lost_real) = random(2500..5000, Level::Real);
    println!("with steps: {exact} {real}; given up: {lost_exact} {lost_real}");
    assert!(exact > 300 && real > 300, "only {exact} and {real} programs had steps");
    assert!(lost_exact + lost_real < 50, "{lost_exact} and {lost_real} results were given up");
}

/// Protects: what rounds is no reason to refuse: floats that are no short numbers, of 64 and 32 bits, and jumps that
/// rounding may meet.
#[test]
fn derivations_hold_where_numbers_round() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let one = |seed: u64| -> Result<usize, String> {
        let made = generate::program(seed, &Knobs { dyadic: false, ..Knobs::PLAIN });
        let program = common::read("random.ks", &made.text).unwrap();
        let options = Options { threads: 1, ..options(Model::Knossos, Level::Real, 600) };
        let outcome = optimize_with(&program, &rules, &options).map_err(|d| d.to_string())?;
        replayed(&program, &outcome, &library, &options).map_err(|e| format!("seed {seed}: {e}\n{}", made.text))
    };
    let results: Vec<Result<usize, String>> = (6000..6800).into_par_iter().map(one).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    let with = results.iter().flatten().filter(|steps| **steps > 0).count();
    assert!(with > 100, "only {with} programs had steps");
    let texts = [
        "(def c Float32 (v : (Vec Float32) n) (sumbuild n (lam (i : Integer) (mul 0.1f32 (index i v)))))",
        "(def c Float (v : (Vec Float) n) (floor (sumbuild n (lam (i : Integer) (mul 0.1 (index i v))))))",
        "(def c Integer (v : (Vec Float) n)
            (if (gt (sumbuild n (lam (i : Integer) (mul 0.1 (index i v)))) 0.3) 1 (cast Integer (mul 0.1 (sum v)))))",
    ];
    for text in texts {
        let program = common::read("rounds.ks", text).unwrap();
        let options = options(Model::Knossos, Level::Real, 600);
        let outcome = optimize_with(&program, &rules, &options).unwrap();
        replayed(&program, &outcome, &library, &options).unwrap_or_else(|d| panic!("{d}"));
    }
}

/// Protects: a spot check tells rounding from a mistake, in 32 bits too, and beside a jump that no number is near.
#[test]
fn a_spot_check_finds_mistakes() {
    let pairs = [
        ("Float32", "(sumbuild n (lam (i : Integer) (mul 0.1f32 (index i v))))", "(mul 0.1001f32 (sum v))"),
        ("Float", "(mul 0.1 (sum v))", "(mul 0.10000001 (sum v))"),
        ("Float", "(floor (add 0.37 (sum v)))", "(add 0.37 (sum v))"),
    ];
    for (ty, one, two) in pairs {
        let [one, two] = [one, two].map(|body| {
            let text = format!("(def c {ty} (v : (Vec {ty}) n) {body})");
            common::read("spot.ks", &text).unwrap()
        });
        let (before, after) = ((&one, one.named("c")[0]), (&two, two.named("c")[0]));
        let found = spot::agree(before, after, (Level::Real, &[]), spot::TRIALS);
        assert!(found.is_err(), "{found:?}");
    }
}

/// Protects: a cost on the way may be left unsaid; one that is said is checked.
#[test]
fn costs_may_be_unsaid() {
    let lines = [
        r#"{"def":"f","params":["(Vec Float)"],"cost":1,"unfolded":null}"#,
        r#"{"step":1,"by":"sum-of-scaled","at":[[]],"cost":null}"#,
        r#"{"step":2,"by":"sumbuild-as-sum","at":[[1]],"cost":null}"#,
        RESULT,
    ];
    assert_eq!(told(DOUBLE, Level::Real, &lines), Ok(2));
    let without = RESULT.replace("\"cost\":1", "\"cost\":null");
    let found = told(DOUBLE, Level::Real, &[lines[0], lines[1], lines[2], &without]).unwrap_err();
    assert!(found.contains("the number `cost`"), "{found}");
}

const DOUBLE: &str = "(def f Float ((x : (Vec Float) n)) (sumbuild n (lam (i : Integer) (mul 2.0 (index i x)))))";
const HEAD: &str = r#"{"def":"f","params":["(Vec Float)"],"cost":1,"unfolded":1}"#;
const SCALED: &str = r#"{"step":1,"by":"sum-of-scaled","at":[[]],"cost":1}"#;
const AS_SUM: &str = r#"{"step":2,"by":"sumbuild-as-sum","at":[[1]],"cost":1}"#;
const RESULT: &str = r#"{"result":"(def f Float ((x : (Vec Float) n)) (mul 2.0 (sum x)))","cost":1}"#;

/// Protects: what was written holds, and each way of changing it is refused on the line that changed.
#[test]
fn tampered_derivations_are_refused() {
    assert_eq!(told(DOUBLE, Level::Real, &[HEAD, SCALED, AS_SUM, RESULT]), Ok(2));
    let wrong = |from: &str, to: &str| -> &'static str { SCALED.replace(from, to).leak() };
    let head = HEAD.replace("\"f\"", "\"h\"");
    let swapped = AS_SUM.replace("\"step\":2", "\"step\":1");
    let other = RESULT.replace("2.0", "3.0");
    let renamed = RESULT.replace("(def f", "(def g");
    let sizes = RESULT.replace(") n)", "))");
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec![HEAD, wrong("sum-of-scaled", "sum-of-negated"), AS_SUM, RESULT], "steps.jsonl:3: `f`: the left side of"),
        (vec![HEAD, wrong("sum-of-scaled", "sum-of-luck"), AS_SUM, RESULT], "there is no rule `sum-of-luck`"),
        (vec![HEAD, wrong("[[]]", "[[1]]"), AS_SUM, RESULT], "does not match here"),
        (vec![HEAD, wrong("[[]]", "[[7]]"), AS_SUM, RESULT], "there is no part 7"),
        (vec![HEAD, wrong("[[]]", "[]"), AS_SUM, RESULT], "at least one place"),
        (vec![HEAD, wrong("\"cost\":1", "\"cost\":1,\"to\":\"(mul 2.0 (sum x))\""), AS_SUM, RESULT], "does not match"),
        (vec![HEAD, SCALED, RESULT], "without its lets the result is not the term"),
        (vec![HEAD, &swapped, RESULT], "does not match here"),
        (vec![HEAD, AS_SUM, SCALED, RESULT], "expected step 1"),
        (vec![HEAD, SCALED, AS_SUM, &other], "steps.jsonl:5: `f`: without its lets"),
        (vec![HEAD, SCALED, AS_SUM, &renamed], "no definition of this name"),
        (vec![HEAD, SCALED, AS_SUM, &sizes], "no definition of this name with these parameters"),
        (vec![HEAD, SCALED, AS_SUM], "ends before the result of `f`"),
        (vec![&head, SCALED, AS_SUM, RESULT], "no such definition"),
        (vec![HEAD, RESULT], "the result is not the term"),
    ];
    for (lines, want) in cases {
        let found = told(DOUBLE, Level::Real, &lines).unwrap_err();
        assert!(found.contains(want), "expected {want}\nfound {found}");
    }
    let found = told(DOUBLE, Level::Exact, &[HEAD, SCALED, AS_SUM, RESULT]).unwrap_err();
    assert!(found.contains("is a rule for `real`, and `exact` is asked for"), "{found}");
}

/// Protects: a condition that does not hold, a failure brought back, and a let before its guard.
#[test]
fn what_is_not_proved_is_refused() {
    let head = |params: &str| format!(r#"{{"def":"f","params":[{params}],"cost":1,"unfolded":1}}"#);
    let step = |by: &str, rest: &str| format!(r#"{{"step":1,"by":"{by}","at":[[]],"cost":1{rest}}}"#);
    let result = |text: &str| format!(r#"{{"result":"{text}","cost":1}}"#);
    let two = head(r#""Float","Float""#);
    let quotient = |divisor: &str| {
        let program = format!("(def f Float ((a : Float) (b : Float)) (div (mul a {divisor}) {divisor}))");
        let result = result("(def f Float ((a : Float) (b : Float)) a)");
        told(&program, Level::Real, &[&two, &step("mul-div-cancel", ""), &result])
    };
    assert_eq!(quotient("(exp b)"), Ok(1));
    let found = quotient("b").unwrap_err();
    assert!(found.contains("the condition `nonzero` of `mul-div-cancel` is not proved here"), "{found}");

    // A state that starts infinite is no real number, whatever the program evaluates.
    let program =
        "(def f Float ((a : Float) (v : (Vec Float) n)) (fold (lam ((s : Float) (x : Float)) (mul 0.0 s)) a v))";
    let zero = result("(def f Float ((a : Float) (v : (Vec Float) n)) (fold (lam ((s : Float) (x : Float)) 0.0) a v))");
    let step_inside = r#"{"step":1,"by":"zero-mul","at":[[2]],"cost":1}"#;
    let found = told(program, Level::Real, &[&head(r#""Float","(Vec Float)""#), step_inside, &zero]).unwrap_err();
    assert!(found.contains("the condition `defined` of `zero-mul` is not proved here"), "{found}");

    // That a logarithm is evaluated does not give it a value: without it, the program would gain one.
    let zero = |inside: &str| format!("(def f Float (x : Float) {inside})");
    let by_zero = r#"{"step":1,"by":"zero-mul","at":[[]],"cost":1}"#;
    let lines = |from: &str| told(&zero(from), Level::Real, &[&head(r#""Float""#), by_zero, &result(&zero("0.0"))]);
    let found = lines("(mul 0.0 (log x))").unwrap_err();
    assert!(found.contains("the condition `defined` of `zero-mul` is not proved here"), "{found}");
    assert_eq!(lines("(mul 0.0 (exp x))"), Ok(1));

    let vector = head(r#""(Vec Float)","Bool""#);
    let params = "((x : (Vec Float) n) (p : Bool))";
    let bring = |to: &str| {
        let program = format!("(def f Float {params} 1.0)");
        let result = result(&format!("(def f Float {params} {to})"));
        told(&program, Level::Exact, &[&vector, &step("if-same", &format!(r#","to":"{to}""#)), &result])
    };
    assert_eq!(bring("(if p 1.0 1.0)"), Ok(1));
    let found = bring("(if (gt (index 0 x) 0.0) 1.0 1.0)").unwrap_err();
    assert!(found.contains("what `if-same` brings back could fail where the program did not"), "{found}");
    let found = bring("(if q 1.0 1.0)").unwrap_err();
    assert!(found.contains("the term given"), "{found}");
    let found = bring("(if p 1.0 2.0)").unwrap_err();
    assert!(found.contains("does not match here"), "{found}");
    let found = bring("(if p 2.0 2.0)").unwrap_err();
    assert!(found.contains("from right to left `if-same` does not lead here"), "{found}");
    let found = bring("(if p 1.0 1.0)) (def g Float () 1.0").unwrap_err();
    assert!(found.contains("steps.jsonl:3"), "{found}");

    let guarded = format!("(def f Float {params} (if p (index 0 x) 0.0))");
    let early = result(&format!("(def f Float {params} (let (v (index 0 x)) (if p v 0.0)))"));
    let found = told(&guarded, Level::Exact, &[&vector, &early]).unwrap_err();
    assert!(found.contains("a let of the result evaluates early what might fail"), "{found}");
    let late = result(&format!("(def f Float {params} (if p (let (v (index 0 x)) v) 0.0))"));
    assert_eq!(told(&guarded, Level::Exact, &[&vector, &late]), Ok(0));
}

/// Protects: a record is about one text and one set of rules.
#[test]
fn a_record_is_about_one_program_and_its_rules() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let program = common::read("p.ks", DOUBLE).unwrap();
    let options = options(Model::Knossos, Level::Real, 1000);
    let outcome = optimize_with(&program, &rules, &options).unwrap();
    let text = pipeline::replay::record(&program, &outcome, &library, &options);
    assert!(replay(&program, &read(&text), &library, "s").is_ok());
    let other = common::read("p.ks", &DOUBLE.replace("2.0", "2.5")).unwrap();
    let found = replay(&other, &read(&text), &library, "s").err().unwrap().to_string();
    assert!(found.contains("made for another text"), "{found}");
    let mut more = Library::shipped().unwrap();
    more.extend(&Source::new("more.rules", "(rule \"x\" (a : Float) (sub a a) 0.0)")).unwrap();
    let found = replay(&program, &read(&text), &more, "s").err().unwrap().to_string();
    assert!(found.contains("made with other rules"), "{found}");
}

/// A scalar expression of casts, literals of all types and arithmetic, as text, and its type.
fn converted(rng: &mut StdRng, depth: usize) -> (String, Scalar) {
    let types: Vec<Scalar> = Scalar::NAMES.iter().map(|(s, _)| *s).filter(|s| *s != Scalar::Bool).collect();
    let s = types[rng.random_range(0..types.len())];
    if depth == 0 || rng.random_bool(0.15) {
        return match rng.random_range(0..4) {
            0 => ("x".into(), Scalar::F64),
            1 => ("n".into(), Scalar::I64),
            _ => (Lit::of(s, f64::from(rng.random_range(0..9)) * if s.is_float() { 0.3 } else { 1.0 }).to_string(), s),
        };
    }
    let (one, of) = converted(rng, depth - 1);
    if rng.random_bool(0.5) {
        return (format!("(cast {} {one})", s.name()), s);
    }
    let (two, other) = converted(rng, depth - 1);
    let two = if of == other { two } else { format!("(cast {} {two})", of.name()) };
    let ops: &[&str] = if of.is_float() { &["add", "mul", "sub", "div", "max"] } else { &["add", "mul", "sub", "mod"] };
    (format!("({} {one} {two})", ops[rng.random_range(0..ops.len())]), of)
}

/// Protects: literals of all types on the way and in the result read back as themselves: what any engine
/// makes of conversions is derived, and replays.
#[test]
fn derivations_of_conversions_replay() {
    use daedal::search::Algorithm::{Astar, Greedy};
    let library = Library::shipped().unwrap();
    let (real, exact) = (prepare(&library, Level::Real).unwrap(), prepare(&library, Level::Exact).unwrap());
    let mut texts = vec![
        "(def f Float32 ((x : Float) (n : Integer)) (add (cast Float32 x) (cast Float32 (div 1.0 3.0))))".to_string(),
        "(def f Integer ((x : Float) (n : Integer)) (cast Integer (cast UInt8 (mod 1 -3))))".to_string(),
    ];
    let mut rng = StdRng::seed_from_u64(7);
    texts.extend((0..150).map(|_| {
        let (text, s) = converted(&mut rng, 4);
        format!("(def f {} ((x : Float) (n : Integer)) {text})", s.name())
    }));
    let engines = [Engine::Egraph, Engine::Auto, Engine::Agent(Greedy), Engine::Agent(Astar)];
    let one = |(k, text): (usize, &String)| -> usize {
        let program = common::read("casts.ks", text).unwrap_or_else(|d| panic!("{d}"));
        let each = engines.iter().map(|engine| {
            let float = if k % 3 == 2 { Level::Exact } else { Level::Real };
            let rules = if float == Level::Exact { &exact } else { &real };
            let bind = if k % 2 == 0 { Bind::Placed } else { Bind::Searched };
            let some = options(Model::Knossos, float, 400);
            let options = Options { engine: *engine, bind, phased: k % 4 == 1, budget: 150, ..some };
            let outcome = optimize_with(&program, rules, &options).unwrap_or_else(|d| panic!("{text}: {d}"));
            replayed(&program, &outcome, &library, &options)
                .unwrap_or_else(|d| panic!("{text} ({}): {d}", engine.name()))
        });
        each.sum()
    };
    let steps: usize = texts.par_iter().enumerate().map(one).sum();
    assert!(steps > 300, "only {steps} steps");
}

/// Protects: conditions around a place, and what both arms evaluate, count as known; where they say nothing, what
/// may fail is still refused.
#[test]
fn conditions_around_a_place_are_facts() {
    let header = |ret: &str| format!("(def f {ret} ((v : (Vec Float)) (k : Integer)) ");
    let lines = |at: &str, to: &str, result: &str| {
        let head = r#"{"def":"f","params":["(Vec Float)","Integer"],"cost":1,"unfolded":1}"#.to_string();
        let step = format!(r#"{{"step":1,"by":"add-sub-cancel-left","at":[[{at}]],"to":"{to}","cost":1}}"#);
        let result = format!(r#"{{"result":"{}{result})","cost":1}}"#, header("Float"));
        [head, step, result]
    };
    let tried = |from: &str, at: &str, to: &str, result: &str| {
        let lines = lines(at, to, result);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        told(&format!("{}{from})", header("Float")), Level::Real, &lines)
    };
    // What is brought back reads an element that is there only where the condition holds.
    let back = "(sub (add (index 0 v) 1.0) (index 0 v))";
    let arm = |cond: &str, x: &str| format!("(if {cond} {x} 2.0)");
    for (cond, good) in [
        ("(gt (size v) 0)", true),
        ("(lt 0 (size v))", true),
        ("(not (lte (size v) 0))", true),
        ("(and (gt k 3) (gte (size v) 1))", true),
        ("(eq (size v) 2)", true),
        ("(ne (size v) 0)", true),
        ("(gte (size v) 0)", false),
        ("(lte (size v) 0)", false),
        ("(or (gt k 3) (gte (size v) 1))", false),
        ("(gt k 0)", false),
    ] {
        let verdict = tried(&arm(cond, "1.0"), "1", back, &arm(cond, back));
        assert_eq!(verdict.is_ok(), good, "{cond}: {verdict:?}");
    }
    // A loop that is certain to run says that what it makes has an extent; one that may have no rounds says nothing.
    let ramp = "(sumbuild k (lam (j : Integer) (to_float j)))";
    let back_ramp = format!("(sub (add {ramp} 1.0) {ramp})");
    for (rounds, good) in [("(add 1 (size v))", true), ("(size v)", false)] {
        let looped = |x: &str| {
            let inner = "(sumbuild k (lam (j : Integer) (to_float (add i j))))";
            format!("(add {x} (sumbuild {rounds} (lam (i : Integer) {inner})))")
        };
        let verdict = tried(&looped("1.0"), "0", &back_ramp, &looped(&back_ramp));
        assert_eq!(verdict.is_ok(), good, "{rounds}: {verdict:?}");
    }
    // The greatest element is a number where there is one.
    let most = "(reduce max (size v) (lam (j : Integer) (index j v)))";
    let back_most = format!("(sub (add {most} 1.0) {most})");
    for (cond, good) in [("(gt (size v) 0)", true), ("(gte (size v) 0)", false)] {
        let verdict = tried(&arm(cond, "1.0"), "1", &back_most, &arm(cond, &back_most));
        assert_eq!(verdict.is_ok(), good, "{cond}: {verdict:?}");
    }
    // Both arms read the element, so that it may be read before; one arm alone says nothing.
    let both = |other: &str, x: &str| format!("(add {x} (if (gt k 0) (index 0 v) {other}))");
    for (other, good) in [("(neg (index 0 v))", true), ("2.0", false)] {
        let verdict = tried(&both(other, "1.0"), "0", back, &both(other, back));
        assert_eq!(verdict.is_ok(), good, "{other}: {verdict:?}");
    }
    // However many conditions are within each other.
    for (last, good) in [("(index 0 v)", true), ("2.0", false)] {
        let chain = |n: i64| {
            (0..n).fold(last.to_string(), |inner, k| format!("(if (gt k {k}) (mul {k}.0 (index 0 v)) {inner})"))
        };
        let both = |x: &str| format!("(add {x} {})", chain(9));
        let verdict = tried(&both("1.0"), "0", back, &both(back));
        assert_eq!(verdict.is_ok(), good, "{last}: {verdict:?}");
    }
    // What loops and conditions say together of linear indices, and of those of rows and columns.
    let n = "(size v)";
    let flat = "(mul (size v) (size v))";
    for (extent, cond, index, good) in [
        (n, "(gt k 3)", "(sub (sub (size v) 1) i)", true),
        (n, "(ne (sub (sub (size v) 1) i) 0)", "(sub (sub (sub (size v) 1) i) 1)", true),
        (n, "(ne 0 (sub (sub (size v) i) 1))", "(sub (sub (size v) i) 2)", true),
        (n, "(ne i 0)", "(sub i 1)", true),
        (n, "(ne i 0)", "(sub (sub (sub (size v) 1) i) 1)", false),
        (n, "(ne i 1)", "(sub i 1)", false),
        (n, "(ne i 0)", "(sub i 2)", false),
        (n, "(lt (add i 2) (size v))", "(add i 2)", true),
        (n, "(lt (add i 2) (size v))", "(add i 1)", true),
        (n, "(lt (add i 2) (size v))", "(add i 3)", false),
        (n, "(gt i k)", "(sub i k)", false),
        ("k", "(lt (mul 2 i) (size v))", "(mul 2 i)", true),
        ("k", "(lt (mul 2 i) (size v))", "(add 1 (mul 2 i))", false),
        ("k", "(gt (size v) 0)", "(min i (sub (size v) 1))", true),
        ("k", "(gt (size v) 0)", "(min i (size v))", false),
        (flat, "(gt k 3)", "(div i (size v))", true),
        (flat, "(gt k 3)", "(mod i (size v))", true),
        (flat, "(gt k 3)", "(mod i (add 1 (size v)))", false),
        ("(mul 2 (size v))", "(gt k 3)", "(div i 2)", true),
        ("(mul 3 (size v))", "(gt k 3)", "(div i 2)", false),
        ("(div (size v) 2)", "(gt k 3)", "(mul 2 i)", true),
        ("(div (size v) 2)", "(gt k 3)", "(add 1 (mul 2 i))", true),
        ("(div (size v) 2)", "(gt k 3)", "(add 2 (mul 2 i))", false),
        ("(div (add 1 (size v)) 2)", "(gt k 3)", "(add 1 (mul 2 i))", false),
        ("(if (gt k 3) (size v) 0)", "(gt k 3)", "i", true),
        ("(if (gt k 3) (size v) 1)", "(gt k 4)", "i", false),
    ] {
        let back = format!("(sub (add (index {index} v) 1.0) (index {index} v))");
        let brought = back.replace(" i ", " _1 ").replace(" i)", " _1)");
        let looped = |x: &str| format!("(sumbuild {extent} (lam (i : Integer) (if {cond} {x} 2.0)))");
        let verdict = tried(&looped("1.0"), "1,1", &brought, &looped(&back));
        assert_eq!(verdict.is_ok(), good, "{extent} {cond} {index}: {verdict:?}");
    }
}

/// Protects: what calls a definition whose best result has no derivation is dearer for it, and says so: what it would
/// cost, and why it does not.
#[test]
fn callers_are_told_what_they_pay_for() {
    let text = "(def f Float ((x : (Vec Float) n)) (sumbuild n (lam (i : Integer) (mul 2.0 (index i x)))))
        (def apart Float (a : Float) (mul a 1.0))
        (def shown Integer ((x : (Vec Float) n)) (print (add (f x) (f x))))
        (def alone Integer (a : Float) (print (apart a)))";
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let program = common::read("calls.ks", text).unwrap();
    let costs = |derive: bool, stop: &(dyn Fn(f64) -> Option<&'static str> + Sync)| {
        let options = Options { derive, stop, ..options(Model::Knossos, Level::Real, 600) };
        optimize_with(&program, &rules, &options).unwrap().rows
    };
    let free = costs(false, &|_| None);
    // The search is done in time, and no proof is.
    let late = costs(true, &|share| (share > 0.75).then_some("time"));
    let told = |k: usize| late[k].unproved.as_ref().map(|u| (u.cost, u.why.as_str()));
    assert!(free[2].cost_after < late[2].cost_after - 1.0, "{} {}", free[2].cost_after, late[2].cost_after);
    let (cost, why) = told(2).unwrap();
    assert!((cost - free[2].cost_after).abs() < 1e-6, "{cost} {}", free[2].cost_after);
    assert!(why.starts_with("it calls `f`: the time is up"), "{why}");
    assert!(told(0).is_some() && told(3).is_some_and(|(_, why)| why.starts_with("it calls `apart`")));
    // With a proof there is nothing to tell.
    let proved = costs(true, &|_| None);
    assert!(proved.iter().zip(&free).all(|(a, b)| a.unproved.is_none() && a.cost_after == b.cost_after));
}
