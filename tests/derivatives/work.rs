//! Work is counted: what runs do, and the laws that derivatives and optimized programs keep at every size.
//!
//! A law that a program breaks is not loosened for it: the program stands in a list, with the share of what the law allows
//! that it takes and the reason, and leaves the list when it no longer breaks the law.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::losses::loss;
use crate::common::sized::{Setting, Sizes};
use crate::common::{Case, arguments, corpus, read};
use daedal::ad::{self, Mode, Wanted, check};
use daedal::diag::Kind;
use daedal::eval::{Interpreter, Tally, Value};
use daedal::ir::{Def, Fun, Program};
use daedal::machine::Machine;
use daedal::pipeline::{Options, native, optimize_with, prepare};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rules::{Level, Library};
use daedal::schedule::{self, Schedule};
use daedal::stage::extract;
use rayon::prelude::*;
use std::process::Command;

/// Terms that the interpreter evaluates at most for a value at some sizes: larger sizes are left out.
const TERMS: u64 = 100_000;

/// A definition with arguments that it has a value at.
struct Subject<'a> {
    name: String,
    program: &'a Program,
    def: &'a Def,
    args: Vec<Value>,
}

/// The definitions of a case that a line runs, each once.
fn subjects(case: &Case) -> Vec<Subject<'_>> {
    let mut out: Vec<Subject<'_>> = vec![];
    for run in &case.runs {
        for def in case.program.named(&run.def) {
            let known = out.iter().any(|s| std::ptr::eq(s.def, def));
            let Ok(args) = arguments(def, &run.args) else { continue };
            if !known && def.term().is_some() {
                let file = case.name.trim_start_matches("programs/");
                out.push(Subject { name: format!("{file} {}", run.def), program: &case.program, def, args });
            }
        }
    }
    out
}

/// The random program of a number: every other one is a loss.
fn random(k: u64) -> String {
    if k.is_multiple_of(2) {
        return loss(k / 2, 16, k.is_multiple_of(4));
    }
    let plain = Knobs { budget: 30, failing: false, casts: false, corners: false, ..Knobs::PLAIN };
    generate::program(k / 2, &Knobs { states: k % 8 == 1, ..plain }).text
}

/// What a law says of a definition: at how many points it was held against it, and the greatest share of what it allows
/// that was needed at any, with what was needed.
#[derive(Default)]
struct Verdict {
    name: String,
    points: usize,
    worst: f64,
    told: String,
}

impl Verdict {
    fn of(name: String) -> Verdict {
        Verdict { name, ..Verdict::default() }
    }

    fn add(&mut self, found: u64, most: u64, told: impl FnOnce() -> String) {
        self.points += 1;
        let share = found as f64 / most.max(1) as f64;
        if share > self.worst {
            (self.worst, self.told) = (share, format!("{}: {found} of {most}", told()));
        }
    }
}

/// A definition that breaks a law, the share of what is allowed that it takes at most, and why.
type Exception = (&'static str, f64, &'static str);

/// Holds verdicts against a law whose exceptions are known: there is no other, and each is one.
fn judge(law: &str, mut verdicts: Vec<Verdict>, exceptions: &[Exception], least: usize) {
    verdicts.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    let points: usize = verdicts.iter().map(|v| v.points).sum();
    let told = |v: &Verdict| format!("{:>9.3} {} at {}", v.worst, v.name, v.told);
    println!("{law}: {} definitions at {points} points", verdicts.iter().filter(|v| v.points > 0).count());
    verdicts.iter().take(60).for_each(|v| println!("{}", told(v)));
    let known = |v: &&Verdict| exceptions.iter().any(|(name, most, _)| *name == v.name && v.worst <= *most);
    let broken: Vec<String> = verdicts.iter().filter(|v| v.worst > 1.0 && !known(v)).map(told).collect();
    assert!(broken.is_empty(), "{law} is broken by {}\n{}", broken.len(), broken.join("\n"));
    let needed = |name: &str| verdicts.iter().any(|v| v.name == name && v.worst > 1.0);
    let over: Vec<&str> = exceptions.iter().filter(|(name, ..)| !needed(name)).map(|e| e.0).collect();
    assert!(over.is_empty(), "{law} is no longer broken by {over:?}");
    assert!(points >= least, "{law}: only {points} points");
}

fn interpreted(program: &Program, def: &Def, args: &[Value], terms: u64) -> Option<(Value, Tally)> {
    let interpreter = Interpreter::new(program).with_work(terms).counted();
    let value = interpreter.run(def, args).ok()?;
    Some((value, interpreter.tally()))
}

/// How many numbers a value has.
fn elements(v: &Value) -> u64 {
    match v {
        Value::Scalar(_) => 1,
        Value::Tuple(parts) => parts.iter().map(elements).sum(),
        Value::Tensor(t) => t.iter().map(|v| elements(&v)).sum(),
    }
}

/// Value and derivative of a definition by all its floats; nothing where it has none.
fn gradient(program: &Program, def: &Def) -> Option<(Program, Fun)> {
    let wrt = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
    ad::derive(program, &Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false }).ok()
}

/// The work of value and derivative, without end where it is not done within a hundred times what the value may take.
fn derived((program, fun): &(Program, Fun), args: &[Value], value: &Value) -> Result<u64, String> {
    let interpreter = Interpreter::new(program).with_work(100 * TERMS).counted();
    let all = [args, &[check::change(value, 7)]].concat();
    match interpreter.run(&program.defs[fun], &all) {
        Ok(_) => Ok(interpreter.tally().work()),
        Err(d) if d.kind == Kind::Limit => Ok(u64::MAX),
        Err(d) => Err(d.message),
    }
}

/// Holds one definition against the law of derivatives.
fn derivative(subject: &Subject<'_>) -> Verdict {
    let mut verdict = Verdict::of(subject.name.clone());
    let Some(made) = gradient(subject.program, subject.def) else { return verdict };
    let sizes = Sizes::new(subject.def);
    let Some(start) = sizes.start(subject.program, &subject.args, TERMS) else { return verdict };
    for setting in sizes.doubled(&start, 8) {
        let args = sizes.arguments(&setting, 1);
        let Some((value, primal)) = interpreted(subject.program, subject.def, &args, TERMS) else { continue };
        let inputs: u64 = args.iter().map(elements).sum();
        let most = 8 * primal.work() + 4 * (inputs + elements(&value) + primal.written);
        match derived(&made, &args, &value) {
            Ok(found) => verdict.add(found, most, || sizes.told(&setting)),
            Err(why) => verdict.add(u64::MAX, 1, || format!("{} it fails, {why}", sizes.told(&setting))),
        }
    }
    verdict
}

/// Why derivatives take more than the law allows.
const CALLS: &str = "it calls itself and uses the result further: each call of the derivative makes the value anew";
const READS: &str =
    "elements at indices that no loop runs over: each element of the adjoint is compared with each of these";
const RANGES: &str = "loops over what may have been read ask for each index whether it was, instead of ending there";
const DIGAMMA: &str =
    "the derivative of `lgamma` is a recurrence and a series, where the function counts as one operation";
const ARMS: &str = "an arm that is not taken: its adjoint asks for the condition in every round of its loops";
const CHEAP: &str =
    "bodies of few operations, whose adjoints take guards, tables and scatters for each; not taken apart one by one";
const STEPS: &str = "steps go forwards for the value, forwards again for their states, and backwards, over tables";

/// Where the first law is broken in the corpus.
const COSTLY_DERIVATIVES: &[Exception] = &[
    ("grad/recursion.ks parts", f64::INFINITY, CALLS),
    ("grad/recursion.ks product", 13.87, CALLS),
    ("grad/recursion.ks swapped_slope", 5.76, CALLS),
    ("grad/recursion.ks newton_slope", 5.71, CALLS),
    ("grad/recursion.ks slope", 5.7, CALLS),
    ("grad/recursion.ks change", 5.62, CALLS),
    ("grad/recursion.ks swapped", 4.52, CALLS),
    ("grad/recursion.ks power", 4.41, CALLS),
    ("grad/recursion.ks doubled", 3.76, CALLS),
    ("grad/recursion.ks fib", 1.62, CALLS),
    ("grad/recursion.ks doubled_sum", 1.39, CALLS),
    ("grad/recursion.ks second", 1.3, CALLS),
    ("grad/recursion.ks fib_slopes", 1.05, CALLS),
    ("grad/conditions.ks steps_fwd", 58.02, READS),
    ("grad/conditions.ks steps_rev", 1.7, READS),
    ("apps/ba.ks cross", 3.22, READS),
    ("apps/ba.ks all_residuals", 2.5, READS),
    ("apps/ba.ks project", 1.16, READS),
    ("apps/ba.ks residual", 1.13, READS),
    ("grad/ba.ks jacobian", 3.07, READS),
    ("scalar/text.ks unbracketed", 1.37, READS),
    ("apps/conv1d.ks valid", 6.71, RANGES),
    ("apps/conv1d.ks strided", 6.65, RANGES),
    ("apps/conv1d.ks moving_average", 5.41, RANGES),
    ("apps/convnet.ks conv2d", 2.2, RANGES),
    ("array/slices.ks whole_rows", 1.23, RANGES),
    ("array/slices.ks middle", 1.12, RANGES),
    ("scalar/logexp.ks log_beta", 1.91, DIGAMMA),
    ("apps/gmm.ks log_gamma_distrib", 1.73, DIGAMMA),
    ("scalar/functions.ks gaussian", 1.06, DIGAMMA),
    ("array/fold.ks min_and_max", 1.57, STEPS),
    ("array/reduce.ks contracted_pairs", 1.27, READS),
];

const COSTLY_RANDOM_DERIVATIVES: &[Exception] = &[
    ("1189", 2.03, READS),
    ("948", 3.95, ARMS),
    ("648", 3.45, ARMS),
    ("66", 1.16, CHEAP),
    ("1974", 1.07, CHEAP),
    ("1681", 2.04, READS),
    ("228", 1.22, CHEAP),
    ("1072", 1.5, ARMS),
    ("169", 1.45, READS),
    ("1854", 1.37, CHEAP),
    ("1322", 1.26, CHEAP),
    ("724", 1.21, CHEAP),
    ("1832", 1.14, CHEAP),
    ("1598", 1.11, CHEAP),
    ("6", 1.12, CHEAP),
    ("1664", 1.05, CHEAP),
];

/// Protects: value and derivative as made cost at most 8 times the value, and 4 times the elements of arguments, result and
/// tensors of the value, at every size.
#[test]
fn derivatives_of_the_corpus_cost_a_constant_factor() {
    let cases = corpus();
    let all: Vec<Subject<'_>> = cases.iter().flat_map(subjects).collect();
    judge("the law of derivatives", all.par_iter().map(derivative).collect(), COSTLY_DERIVATIVES, 2000);
}

/// Protects: the same of programs and losses that nobody thought of.
#[test]
fn derivatives_of_random_programs_cost_a_constant_factor() {
    let one = |k: u64| {
        let text = random(k);
        let program = read("random.ks", &text).unwrap();
        let def = program.named("main")[0];
        let mut verdict = derivative(&Subject { name: format!("{k}"), program: &program, def, args: vec![] });
        if verdict.worst > 1.0 {
            verdict.told += &format!("\n{text}");
        }
        verdict
    };
    let verdicts = (0..2000).into_par_iter().map(one).collect();
    judge("the law of random derivatives", verdicts, COSTLY_RANDOM_DERIVATIVES, 10_000);
}

/// Protects: the same of conditions nested deep, with operations between, whatever arms are taken and however deep.
#[test]
fn derivatives_of_nested_conditions_cost_a_constant_factor() {
    let levels: [fn(&str, &str) -> String; 4] = [
        |c, rest| format!("(if (gt x {c}) (mul x {rest}) (add x {c}))"),
        |c, rest| format!("(add (if (gt x {c}) {rest} (mul x {c})) x)"),
        |c, rest| format!("(if (gt x {c}) (let (y (mul x {c})) (mul y {rest})) (sin x))"),
        |c, rest| format!("(if (lt x {c}) (mul x {c}) (sin (mul x (cos {rest}))))"),
    ];
    let mut verdicts = vec![];
    for (k, level) in levels.iter().enumerate() {
        for n in [4, 30, 300] {
            let body = common::nested(n, "x", level);
            let text = format!(
                "(def main Float (v : (Vec Float)) (sumbuild (size v) (lam (i : Integer) (let (x (index i v)) {body}))))"
            );
            let program = read("nest.ks", &text).unwrap();
            let def = program.named("main")[0];
            let made = gradient(&program, def).unwrap();
            let mut verdict = Verdict::of(format!("nest {k}, {n} deep"));
            for words in ["[0.1,0.2]", "[0.6,0.7]", "[3.1,0.1]", "[90.0,100.0]"] {
                let args = arguments(def, &[words.to_string()]).unwrap();
                let (value, primal) = interpreted(&program, def, &args, TERMS).unwrap();
                let most = 8 * primal.work() + 4 * (args.iter().map(elements).sum::<u64>() + elements(&value));
                verdict.add(derived(&made, &args, &value).unwrap(), most, || words.to_string());
            }
            verdicts.push(verdict);
        }
    }
    judge("the law of nested conditions", verdicts, &[], 48);
}

/// A processor, so that the loops that are counted are the same everywhere.
fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 1, caches: [32 << 10, 512 << 10, 8 << 20] }
}

/// The work of what runs of a definition: as it stands, and under the default schedule of these sizes.
fn runs(program: &Program, def: &Def, args: &[Value]) -> Option<[u64; 2]> {
    let machine = machine();
    let count = |schedule: Option<&Schedule>| {
        native::counted(program, def, schedule, (args, &machine), &mut String::new()).ok().map(|c| c.tally.work())
    };
    let sizes = daedal::tune::example::incoming(def, args);
    let made = extract(program, def).ok().map(|g| schedule::default(g.only_for(&sizes), &machine));
    let plain = count(None)?;
    Some([plain, made.filter(|m| !m.steps.is_empty()).map_or(Some(plain), |m| count(Some(&m)))?])
}

/// Holds one definition against the law of optimization, at small sizes and at larger ones.
fn optimized(subject: &Subject<'_>, after: &Program) -> Verdict {
    let mut verdict = Verdict::of(subject.name.clone());
    let sizes = Sizes::new(subject.def);
    let Some(start) = sizes.start(subject.program, &subject.args, TERMS / 4) else { return verdict };
    let Some(other) = after.defs.get(&subject.def.fun) else { return verdict };
    if ENDLESS.contains(&subject.name.as_str()) {
        return verdict;
    }
    let settings = [1, 8].map(|f| Setting { sizes: start.sizes.iter().map(|n| n * f).collect(), ..start.clone() });
    for setting in settings {
        let args = sizes.arguments(&setting, 1);
        if interpreted(subject.program, subject.def, &args, TERMS / 4).is_none() {
            continue;
        }
        let Some(before) = runs(subject.program, subject.def, &args) else { continue };
        let Some(found) = runs(after, other, &args) else { continue };
        for (k, how) in ["as it stands", "scheduled"].iter().enumerate() {
            verdict.add(found[k], before[k], || format!("{}, {how}", sizes.told(&setting)));
        }
    }
    verdict
}

/// The options of the searches: small ones, since there are many.
fn options(max_nodes: usize) -> Options<'static> {
    Options { max_nodes, threads: 1, ..Options::standard() }
}

/// A case against the law of optimization.
fn optimized_case(case: &Case, rules: &[Compiled<'_>]) -> Vec<Verdict> {
    let nodes = if case.name.starts_with("programs/grad/") { 300 } else { 600 };
    let after = optimize_with(&case.program, rules, &options(nodes)).unwrap().program;
    subjects(case).par_iter().map(|s| optimized(s, &after)).collect()
}

/// Functions that call themselves and give tensors of a size that only the call says: loops make three calls for each, to find
/// the shape, and so have no end at larger sizes, before and after.
const ENDLESS: [&str; 2] = ["grad/recursion.ks doubled", "grad/recursion.ks doubled_sum"];

/// Why what runs does more after optimization.
const AGAIN: &str =
    "what a let made once is made again in a loop: the model of costs takes it for as little at every size";
const COPIED: &str = "a row is made and then copied, which the model does not see";
const PLAIN: &str =
    "scheduled: the loops that are left are not worth a schedule, and check indices that the default one proves";
const EARLY: &str = "what a loop makes in each round is made before it, and it runs no round here";
const KEPT: &str = "what does not depend on a loop is computed in each of its rounds, where it was made once before";
const SUITED: &str = "scheduled: the loops of the source suit the default schedule better";
const TABLED: &str = "indices become a table, which is read";
const CHECKED: &str = "a few indices or sizes are compared once more, or elements read before the arm that needs them";

/// Where the second law is broken in the corpus.
const COSTLIER: &[Exception] = &[
    ("array/reduce.ks contracted_square", 2.04, TABLED),
    ("apps/convnet.ks classify", 1.1, AGAIN),
    ("grad/still.ks nested_fwd", 1.96, COPIED),
    ("grad/lstm.ks gradient", 1.07, AGAIN),
    ("apps/lstm.ks hidden_states", 1.06, SUITED),
    ("apps/lstm.ks loss", 1.06, SUITED),
    ("apps/conv1d.ks strided", 1.84, PLAIN),
    ("array/sparse_loops.ks diagonals", 1.4, PLAIN),
    ("apps/gmm.ks logsumexp", 1.02, PLAIN),
    ("apps/ba.ks rotate", 1.28, CHECKED),
    ("apps/ba.ks project", 1.11, CHECKED),
    ("apps/ba.ks residual", 1.11, CHECKED),
    ("apps/ba.ks all_residuals", 1.1, CHECKED),
    ("array/elementwise.ks negated", 1.03, CHECKED),
    ("apps/logsumexp.ks logsumexp_direct", 1.02, CHECKED),
    ("array/fusion.ks used_twice", 1.02, CHECKED),
];

/// In the text as it stands all steps of a loop are text, and vectors of these that are equal are computed once after
/// vectorization; the optimized one has a loop left there, and takes what it took before.
const NUMBERED: &str = "equal vectors are found in unrolled steps, and not in the loop that is left";

/// The same of random programs, by number.
const COSTLIER_RANDOM: &[Exception] = &[
    ("206", 4.19, NUMBERED),
    ("176", 1.24, NUMBERED),
    ("257", 70.0, EARLY),
    ("31", 3.69, EARLY),
    ("137", 1.2, EARLY),
    ("240", 6.54, KEPT),
    ("265", 1.23, KEPT),
    ("287", 1.08, CHECKED),
    ("0", 1.05, PLAIN),
    ("144", 1.02, PLAIN),
    ("124", 1.01, PLAIN),
    ("172", 1.05, PLAIN),
    ("34", 1.01, PLAIN),
];

/// Protects: what runs after optimization, under small searches that were told no sizes, does no more than before, at small sizes and
/// at eight times these.
#[test]
fn optimized_programs_of_the_corpus_do_no_more() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let cases = corpus();
    let verdicts = cases.par_iter().flat_map_iter(|case| optimized_case(case, &rules)).collect();
    judge("the law of optimization", verdicts, COSTLIER, 1000);
}

/// Protects: the same of programs and losses that nobody thought of.
#[test]
fn optimized_random_programs_do_no_more() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let one = |k: u64| {
        let text = random(k);
        let program = read("random.ks", &text).unwrap();
        let after = optimize_with(&program, &rules, &options(300)).unwrap().program;
        let def = program.named("main")[0];
        let mut verdict = optimized(&Subject { name: format!("{k}"), program: &program, def, args: vec![] }, &after);
        if verdict.worst > 1.0 {
            verdict.told += &format!("\n{text}\n{}", daedal::ir::print::program(&after));
        }
        verdict
    };
    let verdicts = (0..300).into_par_iter().map(one).collect();
    judge("the law of random optimizations", verdicts, COSTLIER_RANDOM, 400);
}

const COUNTED: &str = "
(def dot Float ((x : (Vec Float) n) (y : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))
(def shifted (Vec Float) (x : (Vec Float) n)
  (build n (lam (i : Integer) (if (gt i 0) (div (exp (index (sub i 1) x)) 2.0) 0.0))))
(def table (Vec Float) (x : (Vec Float) n) (add x (map (lam (e : Float) (mul e e)) x)))
(def rows (Vec (Vec Float)) ((m : (Vec (Vec Float)) (n k))) (build n (lam (i : Integer) (index i m))))
(def count Integer (x : (Vec Float) n) (sumbuild n (lam (i : Integer) (if (gt (index i x) 0.0) 1 0))))
(def bins (Vec Float) ((p : (Vec Integer) n) (x : (Vec Float) n))
  (buildFromSparse 3 n (lam (i : Integer) (tuple (index i p) (index i x)))))
(def last Float (x : (Vec Float) n) (fold (lam ((s : Float) (e : Float)) (add s e)) 0.0 x))
";

/// The counts of a call by the interpreter of terms, and by that of loops without a schedule.
fn counts(name: &str, words: &[&str]) -> [Tally; 2] {
    let program = read("counted.ks", COUNTED).unwrap();
    let def = program.named(name)[0];
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let args = arguments(def, &words).unwrap();
    let (value, terms) = interpreted(&program, def, &args, u64::MAX).unwrap();
    let done = native::counted(&program, def, None, (&args, &machine()), &mut String::new()).unwrap();
    assert_eq!((done.value, done.scheduled), (value, false));
    [terms, done.tally]
}

/// Protects: what is counted, by hand: of terms, and of loops, whose sums have no accumulator in memory, whose sizes are
/// compared, and whose vectors count in all lanes.
#[test]
fn counts_are_those_of_hand() {
    let of = |name: &str, words: &[&str], wanted: [Tally; 2]| {
        let [terms, loops] = wanted;
        let loops = Tally { peak_bytes: Some(loops.bytes), ..loops };
        assert_eq!(counts(name, words), [terms, loops], "{name}");
    };
    let dot = Tally { simple: 8, read: 8, ..Tally::default() };
    of("dot", &["[1,2,3,4]", "[1,2,3,4]"], [dot, Tally { simple: 9, ..dot }]);
    // A comparison and a choice for each of three elements; in loops, three more comparisons of indices with sizes.
    let [divisions, transcendental, indices] = [2; 3];
    let shifted =
        Tally { simple: 6, divisions, transcendental, indices, read: 2, written: 3, bytes: 24, peak_bytes: None };
    of("shifted", &["[1,2,3]"], [shifted, Tally { simple: 12, ..shifted }]);
    let table = Tally { simple: 6, read: 9, written: 6, bytes: 48, ..Tally::default() };
    of("table", &["[1,2,3]"], [table; 2]);
    // The interpreter passes rows by reference.
    let rows = Tally { indices: 15, read: 6, written: 6, bytes: 48, ..Tally::default() };
    of("rows", &["[[1,2],[3,4],[5,6]]"], [Tally::default(), rows]);
    // What a sum of integers adds is taken for indices.
    of("count", &["[1,-1,1,1]"], [Tally { simple: 8, indices: 4, read: 4, ..Tally::default() }; 2]);
    let bins = Tally { simple: 4, read: 12, written: 7, bytes: 24, ..Tally::default() };
    of("bins", &["[0,2,2,0]", "[1,2,3,4]"], [bins, Tally { simple: 17, ..bins }]);
    of("last", &["[1,2,3]"], [Tally { simple: 3, read: 3, ..Tally::default() }; 2]);
}

/// Protects: what a function that calls itself gives is made once where it is used, not again for a shape that it does not
/// have: else native code would make exponentially more calls than the interpreter.
#[test]
fn calls_are_made_as_often_as_they_stand() {
    let text = "
(def both (Tuple Float Float) ((a : Float) (n : Integer))
  (let (v (if (gt n 0) (tuple (both a (sub n 1)) a) (tuple (tuple a 1.0) 0.0)))
    (tuple (add (get$1$2 (get$1$2 v)) (get$2$2 v)) (mul (get$2$2 (get$1$2 v)) 2.0))))";
    let program = read("both.ks", text).unwrap();
    let def = program.named("both")[0];
    let work = |n: i64| {
        let args = arguments(def, &["1.5".into(), n.to_string()]).unwrap();
        let (value, terms) = interpreted(&program, def, &args, u64::MAX).unwrap();
        let done = native::counted(&program, def, None, (&args, &machine()), &mut String::new()).unwrap();
        assert_eq!(done.value, value);
        (terms.work(), done.tally.work())
    };
    for n in [1, 10, 20] {
        let (terms, loops) = work(n);
        assert!(loops <= 3 * terms, "{n}: {loops} in loops, {terms} as it is written");
    }
}

/// Protects: the command line shows counts before the value, and in the object beside it.
#[test]
fn counts_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.ks"), COUNTED).unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let call = ["c.ks", "shifted", "[1,2,3]"];
    let value = run(&[&["eval"][..], &call].concat());
    for command in ["eval", "run"] {
        let shown = run(&[&[command][..], &call, &["--count"]].concat());
        assert_eq!(shown.lines().last(), value.lines().last(), "{shown}");
        assert!(shown.lines().any(|l| l.starts_with("transcendental functions") && l.ends_with("times 20")), "{shown}");
        let json = run(&[&[command][..], &call, &["--count", "--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        assert_eq!(json["value"].to_string(), value.trim_end());
        assert_eq!(json["count"]["transcendental"], 2);
        assert_eq!(json["count"]["peak_bytes"].is_null(), command == "eval");
    }
}
