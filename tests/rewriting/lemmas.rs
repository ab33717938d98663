//! Lemmas: bodies go from one to the next by what is proved once; what was tampered with is refused.

use crate::common;
use crate::common::arguments;
use crate::common::generate::{self, Knobs};
use crate::common::random::{compare, replayed};
use crate::common::steps::told;
use daedal::cost::Model;
use daedal::pipeline::{Engine, Options, optimize_with, prepare};
use daedal::rules::{Level, Library};
use rayon::prelude::*;

const PARAMS: &str = "((x : (Vec Float) n) (y : Float))";
const LEMMA: &str = r#"{"lemma":"region 1","params":[["v0","(Vec Float)"],["v1","Integer"]],"type":"Float","left":"(sumbuild v1 (lam (i : Integer) (mul 2.0 (index i v0))))","given":[["v1","(size v0)"]],"below":[],"defined":[],"unfolded":1}"#;
const SCALED: &str = r#"{"step":1,"by":"sum-of-scaled","at":[[]],"cost":1}"#;
const GIVEN: &str = r#"{"step":2,"by":"given","at":[[1,0]],"cost":1}"#;
const AS_SUM: &str = r#"{"step":3,"by":"sumbuild-as-sum","at":[[1]],"cost":1}"#;
const RIGHT: &str = r#"{"right":"(mul 2.0 (sum v0))","cost":1}"#;
const HEAD: &str = r#"{"def":"f","params":["(Vec Float)","Float"],"cost":1,"bodies":1}"#;
const TAKEN: &str = r#"{"step":1,"by":"region 1","at":[[1,0]],"to":"x _1","cost":1}"#;

fn program(m: &str) -> String {
    let sum = "(sumbuild m (lam (i : Integer) (mul 2.0 (index i x))))";
    format!("(def f Float {PARAMS} (let ((m {m}) (s {sum})) (if (gt y 0.0) (add s y) s)))")
}

fn result(body: &str) -> String {
    format!(r#"{{"result":"(def f Float {PARAMS} {body})","cost":1}}"#)
}

fn ended() -> String {
    result("(let ((s (mul 2.0 (sum x)))) (if (gt y 0.0) (add s y) s))")
}

/// Protects: a lemma is taken where it stands, and each way of changing it, or of taking it, is refused.
#[test]
fn tampered_lemmas_are_refused() {
    let good = ended();
    let told = |program: &str, lines: &[&str]| told(program, Level::Real, lines);
    let (of, whole) = (program("(size x)"), [LEMMA, SCALED, GIVEN, AS_SUM, RIGHT, HEAD, TAKEN, &good]);
    assert_eq!(told(&of, &whole), Ok(1));
    let changed = |at: usize, from: &str, to: &str| -> Vec<String> {
        assert!(whole[at].contains(from), "{from}");
        whole.iter().enumerate().map(|(k, l)| if k == at { l.replace(from, to) } else { l.to_string() }).collect()
    };
    let without = |gone: &[usize]| -> Vec<String> {
        whole.iter().enumerate().filter(|(k, _)| !gone.contains(k)).map(|(_, l)| l.to_string()).collect()
    };
    let twice = whole[..5].iter().chain(&whole).map(ToString::to_string).collect();
    let cases: Vec<(Vec<String>, &str)> = vec![
        (
            changed(0, r#"[["v1","(size v0)"]]"#, "[]"),
            "steps.jsonl:4: `f`: the lemma `region 1`: `given` does not apply",
        ),
        (changed(0, r#"(size v0)"]]"#, r#"v1"]]"#), "leads to another that is given"),
        (changed(0, r#""(size v0)""#, r#""(div 4 v1)""#), "leads to another that is given"),
        (changed(0, r#"[["v1","(size v0)"]]"#, r#"[["v1","(div 4 (size v0))"]]"#), "speaks of what may have no value"),
        (changed(0, "(mul 2.0", "(mul 3.0"), "steps.jsonl:6: `f`: the lemma `region 1`: without its lets"),
        (changed(0, r#"["v1","Integer"]"#, r#"["v1","Float"]"#), "the lemma `region 1`"),
        (changed(0, r#""defined":[]"#, r#""defined":["v7"]"#), "there is no parameter `v7`"),
        (changed(1, "sum-of-scaled", "sum-of-negated"), "steps.jsonl:3: `f`: the lemma `region 1`: the left side of"),
        (changed(1, "sum-of-scaled", "region 1"), "there is no rule `region 1`"),
        (changed(4, "2.0", "3.0"), "steps.jsonl:6: `f`: the lemma `region 1`: without its lets the result is not"),
        (changed(4, "(mul 2.0 (sum v0))", "(let ((z (index 7 v0))) (mul 2.0 (sum v0)))"), "evaluates early what might"),
        (changed(5, "bodies", "unfolded"), "only steps between bodies take lemmas"),
        (changed(6, "region 1", "region 2"), "steps.jsonl:8: `f`: there is no lemma `region 2`"),
        (changed(6, "region 1", "sum-of-scaled"), "there is no lemma `sum-of-scaled`"),
        (changed(6, "[1,0]", "[1]"), "the left side of the lemma does not stand here"),
        (changed(6, "[1,0]", "[1,0,5]"), "there is no such part"),
        (changed(6, "x _1", "x"), "the variables are not those of the lemma"),
        (changed(6, "x _1", "y _1"), "the variables are not those of the lemma"),
        (changed(6, "x _1", "x _9"), "a variable is not in scope there"),
        (changed(6, r#","to":"x _1""#, ""), "says to what"),
        (changed(7, "2.0", "3.0"), "without its lets the body is another one"),
        (without(&[0, 1, 2, 3, 4]), "there is no lemma `region 1`"),
        (without(&[4]), "expected"),
        (without(&[5, 6, 7]), "ends before the definition that takes `region 1`"),
        (without(&[4, 5, 6, 7]), "ends before the right side of `region 1`"),
        (without(&[3]), "without its lets the result is not the term"),
        (without(&[6]), "without its lets the body is another one"),
        (twice, "something else has this name"),
    ];
    for (lines, want) in cases {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let found = told(&of, &lines);
        assert!(found.as_ref().is_err_and(|e| e.contains(want)), "expected {want}\nfound {found:?}\n{lines:#?}");
    }
    // A hypothesis that does not hold where the lemma is taken.
    for m in ["(sub (size x) 1)", "3"] {
        let found = told(&program(m), &whole).unwrap_err();
        assert!(found.contains("the lemma needs that sizes are equal, which is not proved here"), "{found}");
    }
}

/// Protects: what is a number over the reals, or the index of a loop, has to be proved where a lemma is taken.
#[test]
fn hypotheses_hold_where_lemmas_are_taken() {
    let lemma = r#"{"lemma":"a","params":[["v0","Float"]],"type":"Float","left":"(mul v0 0.0)","given":[],"below":[],"defined":["v0"],"unfolded":1}"#;
    let step = r#"{"step":1,"by":"mul-zero","at":[[]],"cost":1}"#;
    let (right, head) = (r#"{"right":"0.0","cost":1}"#, r#"{"def":"f","params":["Float"],"cost":1,"bodies":1}"#);
    let taken = r#"{"step":1,"by":"a","at":[[1]],"to":"_1","cost":1}"#;
    let verdict = |value: &str, lemma: &str| {
        let text = |tail: &str| format!("(def f Float (y : Float) (let ((z {value})) {tail}))");
        let result = format!(r#"{{"result":"{}","cost":1}}"#, text("0.0"));
        told(&text("(mul z 0.0)"), Level::Real, &[lemma, step, right, head, taken, &result])
    };
    assert_eq!(verdict("(exp y)", lemma), Ok(1));
    let found = verdict("(log y)", lemma).unwrap_err();
    assert!(found.contains("the lemma needs that a number is real"), "{found}");
    let found = verdict("(exp y)", &lemma.replace(r#"["v0"],"unf"#, r#"[],"unf"#)).unwrap_err();
    assert!(found.contains("the condition `defined` of `mul-zero` is not proved here"), "{found}");

    // An element that is brought back is there only where the index is in range.
    let lemma = r#"{"lemma":"b","params":[["v0","(Vec Float)"],["v1","Integer"]],"type":"Float","left":"1.0","given":[],"below":[["v1","(size v0)"]],"defined":["v0","v1"],"unfolded":1}"#;
    let back = "(sub (add (index v1 v0) 1.0) (index v1 v0))";
    let step = format!(r#"{{"step":1,"by":"add-sub-cancel-left","at":[[]],"to":"{back}","cost":1}}"#);
    let right = format!(r#"{{"right":"{back}","cost":1}}"#);
    let head = r#"{"def":"f","params":["(Vec Float)"],"cost":1,"bodies":1}"#;
    let taken = r#"{"step":1,"by":"b","at":[[0,1]],"to":"x _1","cost":1}"#;
    let verdict = |extent: &str, lemma: &str| {
        let text =
            |e: &str| format!("(def f Float ((x : (Vec Float) n)) (sum (build {extent} (lam (i : Integer) {e}))))");
        let result = format!(r#"{{"result":"{}","cost":1}}"#, text("(sub (add (index i x) 1.0) (index i x))"));
        told(&text("1.0"), Level::Real, &[lemma, &step, &right, head, taken, &result])
    };
    assert_eq!(verdict("(size x)", lemma), Ok(1));
    let found = verdict("(add 1 (size x))", lemma).unwrap_err();
    assert!(found.contains("the lemma needs that an index is in range"), "{found}");
    let found = verdict("(size x)", &lemma.replace(r#"[["v1","(size v0)"]]"#, "[]")).unwrap_err();
    assert!(found.contains("the condition `defined` of `add-sub-cancel-left` is not proved here"), "{found}");
}

/// Protects: a body with other lets evaluates nothing that might fail but what the one before evaluates there: in the
/// same loop, whatever its state is, and in the same arm.
#[test]
fn lets_stand_where_they_stood() {
    let head = r#"{"def":"f","params":["(Vec Float)","(Vec Float)","Float"],"cost":1,"bodies":1}"#;
    let text = |body: &str| format!("(def f Float ((x : (Vec Float)) (v : (Vec Float)) (y : Float)) {body})");
    let verdict = |from: &str, to: &str| {
        let step = format!(r#"{{"step":1,"by":"lets","at":[[]],"to":"{}","cost":1}}"#, text(to));
        let result = format!(r#"{{"result":"{}","cost":1}}"#, text(to));
        told(&text(from), Level::Real, &[head, &step, &result])
    };
    let fold = |step: &str| format!("(fold (lam ((s : Float) (e : Float)) {step}) y x)");
    let (early, late) = ("(let ((q (index 0 v))) (if (gt s e) (add s q) s))", "(if (gt s e) (add s (index 0 v)) s)");
    let doubled = "(let ((p (mul e 2.0)) (q (index 0 v))) (if (gt s e) (add s q) s))";
    let state = "(let ((q (index (if (gt s 0.0) 1 0) v))) (if (gt s e) (add s q) s))";
    let by_state = "(if (gt s e) (add s (index (if (gt s 0.0) 1 0) v)) s)";
    let outside = format!("(let ((q (index 0 v))) {})", fold("(if (gt s e) (add s q) s)"));
    let two = |a: &str, b: &str| format!("(add {} {})", fold(a), fold(b));
    let other = "(mul s e)";
    for (from, to, good) in [
        (fold(early), fold(late), true),
        (fold(doubled), fold(early), true),
        (fold(late), fold(early), false),
        (fold(early), outside.clone(), false),
        (outside.clone(), fold(early), true),
        (fold(state), fold(by_state), true),
        (fold(by_state), fold(state), false),
        // What one loop evaluates says nothing of another one.
        (two(early, &late.replace("gt", "lt")), two(early, &early.replace("gt", "lt")), false),
        (two(early, other), two(late, other), true),
        // An arm evaluates what it did, and what is evaluated around it.
        (
            "(if (gt y 0.0) (let ((q (index 0 v))) (if (gt y 1.0) q 1.0)) 2.0)".into(),
            "(if (gt y 0.0) (if (gt y 1.0) (index 0 v) 1.0) 2.0)".into(),
            true,
        ),
        (
            "(if (gt y 0.0) (let ((q (index 0 v))) (if (gt y 1.0) q 1.0)) 2.0)".into(),
            "(let ((q (index 0 v))) (if (gt y 0.0) (if (gt y 1.0) q 1.0) 2.0))".into(),
            false,
        ),
        (
            "(let ((q (index 0 v))) (if (gt y 0.0) q 2.0))".into(),
            "(if (gt y 0.0) (let ((q (index 0 v)) (r (index 0 v))) q) 2.0)".into(),
            true,
        ),
    ] {
        let verdict = verdict(&from, &to);
        assert_eq!(verdict.is_ok(), good, "{from}\n{to}\n{verdict:?}");
    }
}

/// Protects: bodies are compared whichever of the parameters that share the name of a size is asked for it, and not
/// where the names differ.
#[test]
fn sizes_of_one_name_are_one() {
    let head = r#"{"def":"f","params":["(Vec Float)","(Vec Float)"],"cost":1,"bodies":1}"#;
    for (name, good) in [("n", true), ("m", false)] {
        let text = |body: &str| format!("(def f Float ((x : (Vec Float) n) (v : (Vec Float) {name})) {body})");
        let (from, to) = ("(mul (to_float (size v)) (to_float (size v)))", "(let ((s (to_float n))) (mul s s))");
        let step = format!(r#"{{"step":1,"by":"lets","at":[[]],"to":"{}","cost":1}}"#, text(to));
        let result = format!(r#"{{"result":"{}","cost":1}}"#, text(to));
        let verdict = told(&text(from), Level::Real, &[head, &step, &result]);
        assert_eq!(verdict.is_ok(), good, "{name}: {verdict:?}");
    }
}

/// Protects: arguments of calls are evaluated, too: a result that only looks like the input without its calls may fail
/// where that does not.
#[test]
fn arguments_of_calls_may_not_fail() {
    let (first, text) = ("(def g Float (a : Float) 1.0)", "(def f Float (v : (Vec Float)) ");
    let verdict = |head: &str, body: &str| {
        let unchanged = r#"{"def":"g","params":["Float"],"cost":1,"unfolded":1}"#;
        let result = format!(r#"{{"result":"{text}{body})","cost":1}}"#);
        let lines = [unchanged, r#"{"result":"(def g Float (a : Float) 1.0)","cost":1}"#, head, &result];
        told(&format!("{first}{text}1.0)"), Level::Real, &lines)
    };
    for key in ["unfolded", "bodies"] {
        let head = format!(r#"{{"def":"f","params":["(Vec Float)"],"cost":1,"{key}":1}}"#);
        assert!(verdict(&head, "(g 2.0)").is_ok(), "{:?}", verdict(&head, "(g 2.0)"));
        let found = verdict(&head, "(g (index 5 v))").unwrap_err();
        assert!(found.contains("evaluates early what might fail"), "{found}");
    }
}

/// Protects: random programs that are searched by regions mean the same, cost the same with a derivation, and their
/// derivations replay, lemmas and costs included.
#[test]
fn random_programs_by_regions_are_derived() {
    let library = Library::shipped().unwrap();
    let one = |seed: u64| -> Result<(usize, usize, bool), String> {
        let float = if seed.is_multiple_of(3) { Level::Exact } else { Level::Real };
        let rules = prepare(&library, float).unwrap();
        let knobs = Knobs { dyadic: true, ..Knobs::PLAIN };
        let made = generate::program(seed, &knobs);
        let before = common::read("random.ks", &made.text).map_err(|d| d.to_string())?;
        let cost = if seed.is_multiple_of(2) { Model::Knossos } else { Model::Analytic };
        // What is larger than ten nodes is searched by regions.
        let base = Options { engine: Engine::Egraph, max_nodes: 40, regions: 10, threads: 1, ..Options::standard() };
        let with = Options { cost, float, derive: true, ..base };
        let of = |e: String| format!("seed {seed} ({cost:?}, {float}): {e}\n{}", made.text);
        let after = optimize_with(&before, &rules, &with).map_err(|d| of(d.to_string()))?;
        let main = before.named("main")[0].clone();
        let args = arguments(&main, &made.args).map_err(&of)?;
        compare(&before, &after.program, "main", &args, float).map_err(&of)?;
        replayed(&before, &after, &library, &with).map_err(&of)?;
        let lemmas = after.derivations.iter().map(|d| d.derivation.lemmas.len()).sum();
        let without =
            optimize_with(&before, &rules, &Options { derive: false, ..with }).map_err(|d| of(d.to_string()))?;
        let pairs = after.rows.iter().zip(&without.rows);
        let dearer = pairs.clone().any(|(a, b)| a.cost_after > b.cost_after * (1.0 + 1e-9));
        let lost = after.rows.iter().filter(|r| r.unproved.is_some()).count();
        if dearer && lost == 0 {
            return Err(of("it is dearer with a derivation, in silence".into()));
        }
        Ok((lemmas, lost, dearer))
    };
    let results: Vec<_> = (0..1200u64).into_par_iter().map(|k| one(20_000 + k)).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    let lemmas: usize = results.iter().flatten().map(|r| r.0).sum();
    let (lost, dearer) =
        (results.iter().flatten().map(|r| r.1).sum::<usize>(), results.iter().flatten().filter(|r| r.2).count());
    println!("{lemmas} lemmas; {lost} results were given up, {dearer} programs are dearer");
    assert!(lemmas > 300, "{lemmas} lemmas");
    assert!(lost < 30, "{lost} results were given up");
}
