//! Sums over what comes before or after each element of a loop: each form becomes running sums, with a proof, and nothing
//! becomes wrong or fails where it did not.

use crate::common;
use crate::common::random::{compare, replayed};
use crate::common::{arguments, read};
use daedal::ad;
use daedal::cost::Model;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Fun, Program, print};
use daedal::pipeline::accumulated::accumulated;
use daedal::pipeline::{Options, optimize};
use daedal::rules::{Level, Library};
use proptest::prelude::*;

/// A definition `f` of a vector `x` of `n` numbers and a matrix `a` of `n` rows.
fn program(body: &str) -> Program {
    let text = format!(
        "(def f (Vec Float) ((x : (Vec Float) n) (a : (Vec (Vec Float)) (n d)))
           (build n (lam (i : Integer) {body})))"
    );
    read("f.ks", &text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

fn options(float: Level) -> Options<'static> {
    Options { cost: Model::Analytic, float, derive: true, max_nodes: 2_000, ..Options::standard() }
}

/// Optimizes with a derivation that replays, and compares for some sizes; the text that came out.
fn checked(program: &Program, float: Level) -> Result<String, String> {
    let (library, options) = (Library::shipped().map_err(|d| d.to_string())?, options(float));
    let after = optimize(program, &options).map_err(|d| d.to_string())?;
    let text = print::program(&after.program);
    replayed(program, &after, &library, &options)?;
    for (x, a) in POINTS {
        let words = [x.to_string(), a.to_string()];
        let args = arguments(program.named("f")[0], &words)?;
        compare(program, &after.program, "f", &args, float).map_err(|e| format!("{e}\n{text}\nat {x} {a}"))?;
    }
    Ok(text)
}

const POINTS: [(&str, &str); 4] = [
    ("[]", "[]"),
    ("[-0.0]", "[[2.5]]"),
    ("[1e16,1.0,-1e16]", "[[0.5,2.0],[1.0,-3.0],[4.0,0.25]]"),
    ("[0.3,-0.7,1.1,2.9,-0.1]", "[[1.0],[0.1],[0.7],[-2.0],[5.0]]"),
];

fn sum(extent: &str, element: &str) -> String {
    format!("(sumbuild {extent} (lam (j : Integer) {element}))")
}

/// Protects: each form of such a sum becomes running sums, whatever is added up, in loops inside of the one that it looks
/// back over too, and what keeps the bits does so where they are to be kept. Every step has a proof.
#[test]
fn each_form_becomes_running_sums() {
    let exact = [
        sum("(add i 1)", "(index j x)"),
        sum("(add i 1)", "(exp (index j x))"),
        sum("i", "(index j x)"),
        sum("i", "(mul (index j x) (sum (index j a)))"),
        format!("(if (gt i 2) {} 1.0)", sum("(add i 1)", "(index j x)")),
    ];
    let real = [
        sum("(sub n i)", "(exp (index (add i j) x))"),
        sum("(sub n i)", "(index (add j i) x)"),
        sum("(sub n (add i 1))", "(index (add (add i 1) j) x)"),
        sum("n", "(if (lt j i) (index j x) 0.0)"),
        sum("n", "(if (lte j i) (index j x) 0.0)"),
        sum("n", "(if (gt j i) (index j x) 0.0)"),
        sum("n", "(if (gte j i) (exp (index j x)) 0.0)"),
        sum("(add i 1)", "(mul (index i x) (index j x))"),
        format!("(sum (build d (lam (q : Integer) {})))", sum("(add i 1)", "(index q (index j a))")),
    ];
    let cases = exact.iter().flat_map(|b| [(b, Level::Exact), (b, Level::Real)]);
    for (body, float) in cases.chain(real.iter().map(|b| (b, Level::Real))) {
        let text = checked(&program(body), float).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert!(text.contains("(scan "), "{body} at level {float} stays\n{text}");
        assert!(!text.contains("sumbuild (add i") && !text.contains("sumbuild i"), "{text}");
    }
}

/// Protects: what would be added in another order stays where the bits are to be kept, and what could fail when all of it
/// is made.
#[test]
fn what_would_change_or_fail_stays() {
    let stays = [
        (sum("(sub n i)", "(index (add i j) x)"), Level::Exact),
        // The last element is not read.
        (sum("i", "(index (add j 1) x)"), Level::Real),
        (format!("(if (gt i 0) {} 0.0)", sum("i", "(index (sub (add j 1) 1) (index (sub i i) a))")), Level::Real),
        // There may be no columns.
        (sum("i", "(mul (index j x) (index 0 (index j a)))"), Level::Exact),
        // Each sum is over others.
        (sum("(add i 1)", "(index (sub i j) x)"), Level::Exact),
    ];
    for (body, float) in stays {
        let text = checked(&program(&body), float).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert!(!text.contains("(scan "), "{body} at level {float}\n{text}");
    }
}

/// Protects: the derivative of a loss with such sums takes linear work, and is right: where a condition says what is added
/// up, and where a sum over pairs is of products, too.
#[test]
fn derivatives_take_linear_work() {
    let each = [
        "(log (sumbuild (sub n i) (lam (j : Integer) (exp (index (add i j) x)))))",
        "(log (sumbuild n (lam (j : Integer) (if (gte j i) (exp (index j x)) 0.0))))",
        "(log (sumbuild n (lam (j : Integer) (if (lt i j) 0.0 (exp (index j x))))))",
        "(sumbuild i (lam (j : Integer) (mul (index i x) (mul (index j x) (sumbuild 3 (lam (q : Integer)
           (mul (sin (mul (to_float q) (index i x))) (cos (mul (to_float q) (index j x))))))))))",
    ];
    for element in each {
        let text = format!("(def f Float (x : (Vec Float) n) (sumbuild n (lam (i : Integer) {element})))");
        let source = read("f.ks", &text).unwrap();
        let (plain, fast) = (derived(&source), derived(&accumulated(&source).unwrap()));
        assert!(common::agree(&run(&plain, 40).0, &run(&fast, 40).0, 1e-9), "{text}");
        assert_eq!(run(&plain, 0).0, run(&fast, 0).0, "{text}");
        let (small, large) = (run(&fast, 64).1, run(&fast, 256).1);
        assert!(large < 5 * small, "{text}: {small} operations for 64 numbers, {large} for 256");
    }
}

/// The gradient of `f`.
fn derived(program: &Program) -> (Program, Fun) {
    let fun = program.named("f")[0].fun;
    let wanted = ad::Wanted { fun, mode: ad::Mode::Reverse, wrt: vec![true], value: false, checkpoint: false };
    ad::derive(program, &wanted).unwrap()
}

/// The gradient at so many numbers, and what it takes.
fn run((program, fun): &(Program, Fun), n: usize) -> (Value, u64) {
    let numbers: Vec<String> = (0..n).map(|k| format!("{:.3}", (k as f64 * 0.7).sin())).collect();
    let words = [format!("[{}]", numbers.join(",")), "1.0".to_string()];
    let interpreter = Interpreter::new(program).counted();
    let value = interpreter.run(&program.defs[fun], &arguments(&program.defs[fun], &words).unwrap()).unwrap();
    (value, interpreter.tally().work())
}

fn element() -> impl Strategy<Value = String> {
    let index = prop_oneof![
        Just("j"),
        Just("(add i j)"),
        Just("(add j i)"),
        Just("(add (add i 1) j)"),
        Just("(sub i j)"),
        Just("(add j 1)"),
        Just("(sub j 1)"),
        Just("i"),
        Just("0"),
    ];
    let read = index.prop_map(|i| format!("(index {i} x)"));
    let leaf = prop_oneof![4 => read, 1 => Just("(to_float j)".to_string()), 1 => Just("2.0".to_string())];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(mul {a} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(add {a} {b})")),
            inner.clone().prop_map(|a| format!("(exp (min {a} 3.0))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(if (lt j i) {a} {b})")),
            inner.clone().prop_map(|a| format!("(if (gte j i) {a} 0.0)")),
            inner.clone().prop_map(|a| format!("(if (lte i j) 0.0 {a})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!(
                "(sumbuild d (lam (q : Integer) (mul (index q (index i a)) (mul {a} (mul (index q (index j a)) {b})))))"
            )),
        ]
    })
}

fn extent() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("i"),
        Just("(add i 1)"),
        Just("(sub n i)"),
        Just("(sub n (add i 1))"),
        Just("(sub (sub n i) 1)"),
        Just("n"),
        Just("(sub n 1)"),
        Just("(add i 2)"),
        Just("(size (index i a))"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    /// Protects: whatever extents, indices and conditions go together, values and failures stay, and every step replays.
    #[test]
    fn random_sums_agree(
        extent in extent(),
        element in element(),
        around in prop_oneof![3 => Just(""), 1 => Just("(gt i 1)"), 1 => Just("(lt (index i x) 0.5)")],
        exact in any::<bool>(),
    ) {
        let sum = sum(extent, &element);
        let body = if around.is_empty() { sum } else { format!("(if {around} {sum} 1.0)") };
        let float = if exact { Level::Exact } else { Level::Real };
        let program = program(&body);
        let found = checked(&program, float);
        prop_assert!(found.is_ok(), "{body} at level {float}: {}", found.unwrap_err());
        let running = accumulated(&program).unwrap();
        for (x, a) in POINTS {
            let args = arguments(program.named("f")[0], &[x.to_string(), a.to_string()]).unwrap();
            let same = compare(&program, &running, "f", &args, Level::Real);
            prop_assert!(same.is_ok(), "{body}: {}\n{}", same.unwrap_err(), print::program(&running));
        }
    }
}
