//! Laws of the front end and the interpreter, on random programs and on very deep ones.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{Generated, Knobs, program};
use common::{arguments, read};
use daedal::diag::Kind;
use daedal::eval::Interpreter;
use daedal::ir::{Program, print};
use daedal::types::verify::verify;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::test_runner::RngSeed;

/// How many random programs each law is tried on.
const CASES: u32 = 2000;

/// Nesting that programs made by other programs may have.
const DEEP: usize = 100_000;

const PLAIN: Knobs = Knobs { budget: 40, dyadic: false, failing: true, renamed: false };

fn checked(text: &str) -> Program {
    let program = read("random.ks", text).unwrap_or_else(|d| panic!("{d}\n{text}"));
    verify(&program).unwrap_or_else(|d| panic!("{d}\n{text}"));
    program
}

/// Panics unless two programs have equal terms.
fn assert_same(a: &Program, b: &Program, texts: &str) {
    let mut terms = a.terms.clone();
    assert_eq!(a.defs.len(), b.defs.len(), "{texts}");
    for (x, y) in a.defs.values().zip(b.defs.values()) {
        assert_eq!(x.fun, y.fun, "{texts}");
        let y = y.term().map(|id| terms.import(&b.terms, id));
        assert!(x.term() == y, "{} differs\n{texts}", x.name());
    }
}

/// Runs `main`: whether it has a value.
fn evaluates(made: &Generated) -> bool {
    let program = checked(&made.text);
    let def = program.named("main")[0];
    let args = arguments(def, &made.args).unwrap_or_else(|e| panic!("{e}\n{}", made.text));
    match Interpreter::new(&program).run(def, &args) {
        Ok(_) => true,
        Err(d) => {
            assert!(d.kind != Kind::Bug, "{d}\n{}\n{:?}", made.text, made.args);
            assert!(!d.places.is_empty(), "a failure without a place: {d}\n{}", made.text);
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Protects: printing loses nothing, and prints the same again.
    #[test]
    fn printing_and_reading_are_inverse(seed in any::<u64>()) {
        let made = program(seed, &PLAIN);
        let first = checked(&made.text);
        let printed = print::program(&first);
        let second = checked(&printed);
        assert_same(&first, &second, &format!("{}\n{printed}", made.text));
        assert_eq!(printed, print::program(&second), "{}", made.text);
    }

    /// Protects: names of local variables mean nothing, whatever they hide.
    #[test]
    fn renaming_changes_no_term(seed in any::<u64>()) {
        let made = program(seed, &PLAIN);
        let other = program(seed, &Knobs { renamed: true, ..PLAIN });
        let texts = format!("{}\n{}", made.text, other.text);
        assert_same(&checked(&made.text), &checked(&other.text), &texts);
    }

    /// Protects: evaluation ends in a value or in a failure with a place, never in a panic or a bug.
    #[test]
    fn evaluation_never_panics(seed in any::<u64>()) {
        evaluates(&program(seed, &PLAIN));
    }

    /// Protects: programs made without failing operations do not fail, so that tests may rely on it.
    #[test]
    fn nothing_else_fails(seed in any::<u64>(), dyadic in any::<bool>()) {
        let made = program(seed, &Knobs { failing: false, dyadic, ..PLAIN });
        assert!(evaluates(&made), "{}\n{:?}", made.text, made.args);
    }
}

/// Protects: the laws above are tried on programs that matter.
#[test]
fn random_programs_are_varied() {
    let all: Vec<Generated> = (0..400).map(|seed| program(seed, &PLAIN)).collect();
    for word in "let if assert tuple get$3$3 build sumbuild reduce index fold scan map helper size deltaVec".split(' ')
    {
        let n = all.iter().filter(|g| g.text.contains(&format!("({word} "))).count();
        assert!(n >= 10, "only {n} of {} programs have `{word}`", all.len());
    }
    let values = all.iter().filter(|g| evaluates(g)).count();
    assert!(values > 200 && values < 390, "{values} of {} programs have a value", all.len());
    assert!(all.iter().any(|g| g.text.len() > 1000));
}

/// Reads, checks, prints, reads again and evaluates a program of one definition, on the stack that
/// a thread has if nobody asks for more.
fn survives(text: String, want: &'static str) {
    let work = move || {
        let deep = |text: &str| read("deep.ks", text).unwrap_or_else(|d| panic!("{}", d.message));
        let first = deep(&text);
        let printed = print::program(&first);
        let second = deep(&printed);
        let mut terms = first.terms.clone();
        let (a, b) = (&first.defs[0], &second.defs[0]);
        let again = b.term().map(|id| terms.import(&second.terms, id));
        assert!(a.term() == again, "a deep term changes when it is printed");
        let value = Interpreter::new(&first).run(a, &[]).unwrap_or_else(|d| panic!("{}", d.message));
        assert_eq!(value.to_json().to_string(), want);
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}

/// Protects: no stack overflows on chains of lets.
#[test]
fn deep_lets_survive() {
    let lets: String = (1..DEEP).map(|k| format!("(let (v{k} (add v{} 1))\n", k - 1)).collect();
    let text = format!("(def f Integer () (let (v0 1) {lets} v{}{})", DEEP - 1, ")".repeat(DEEP));
    survives(text, "100000");
}

/// Protects: no stack overflows on chains of operations, to the left and to the right.
#[test]
fn deep_operations_survive() {
    survives(format!("(def f Integer () {}1{})", "(add ".repeat(DEEP), " 1)".repeat(DEEP)), "100001");
    survives(format!("(def f Integer () {}1{})", "(add 1 ".repeat(DEEP), ")".repeat(DEEP)), "100001");
}

/// Protects: no stack overflows where every level is another kind of form.
#[test]
fn deep_forms_survive() {
    let open = "(if true (get$1$1 (tuple (assert true (let (x 2) (sum (Vec_init ".repeat(DEEP / 100);
    let close = ")))))) 0)".repeat(DEEP / 100);
    survives(format!("(def f Integer () {open}7{close})"), "7");
}

/// Protects: brackets that make no sense end in an error, however many there are.
#[test]
fn deep_brackets_are_refused() {
    let work = || {
        for (open, close) in [("(", ")"), ("[", "]"), ("(", "")] {
            let text = format!("(def f Integer () {}{})", open.repeat(DEEP), close.repeat(DEEP));
            assert!(read("deep.ks", &text).is_err());
        }
        let ty = format!("(def f {}Float{} () 1.0)", "(Vec ".repeat(1000), ")".repeat(1000));
        assert!(read("deep.ks", &ty).is_err());
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}
