//! Calls of the language's library print as calls again, where the source has such calls.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::read;
use daedal::cost::Model;
use daedal::ir::{Program, print};
use daedal::pipeline::{Options, optimize_with, prepare};
use daedal::rules::{Level, Library};

fn program(text: &str) -> Program {
    read("spelled.ks", text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// Protects: what a program prints as, and that it reads back as the same terms.
fn prints(text: &str, expected: &str) {
    let one = program(text);
    let printed = print::program(&one);
    assert_eq!(printed.trim_end(), expected, "of {text}");
    let again = program(&printed);
    let mut terms = one.terms.clone();
    for (a, b) in one.defs.values().zip(again.defs.values()) {
        let b = b.term().map(|id| terms.import(&again.terms, id));
        assert!(a.term() == b, "`{}` reads back as another term:\n{printed}", a.name());
    }
    assert_eq!(print::program(&again), printed, "the second time");
}

const MATRICES: &str = "(a : (Tensor 2 Float)) (b : (Tensor 2 Float))";

#[test]
fn calls_of_variables_stay_calls() {
    for (ret, params, call) in [
        ("(Tensor 2 Float)", MATRICES, "(matmul a b)"),
        ("(Tensor 2 Float)", MATRICES, "(matmul b a)"),
        ("(Tensor 2 Float)", MATRICES, "(matmul a a)"),
        ("(Tensor 2 Float)", "(a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float) (k m))", "(matmul a b)"),
        ("(Tensor 2 Float)", "(a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float))", "(add (matmul a b) (matmul a b))"),
        ("(Vec Float)", "(a : (Tensor 2 Float) (n k)) (x : (Vec Float) k)", "(matmul a x)"),
        ("(Vec Float)", "(x : (Vec Float) k) (a : (Vec (Vec Float)) (n k))", "(mul a x)"),
        ("Float", "(x : (Vec Float) n) (y : (Vec Float) n)", "(add 1.0 (ts_dot x y))"),
        ("Float", "(x : (Vec (Tuple Float Float)))", "(ts_dot x x)"),
        ("Float", "(x : (Vec Float))", "(sub (max x) (min x))"),
        ("Integer", "(x : (Vec Float))", "(sub (imax x) (imin x))"),
        ("(Vec Float)", "(k : Integer) (x : (Vec Float) n) (y : Float)", "(setAt k x y)"),
        ("(Vec Float)", "(x : (Vec Float) n) (y : Float)", "(setAt 0 x 1.0)"),
        ("(Tensor 2 Float)", "(p : (Tuple Integer Integer)) (x : (Tensor 2 Float)) (y : Float)", "(setAt p x y)"),
        (
            "(Vec Float)",
            "(x : (Vec Float)) (y : (Vec Float))",
            "(build (size x) (lam (i : Integer) (mul (index i x) (ts_dot x y))))",
        ),
    ] {
        // Parameters print in brackets of their own, and the body in a line of its own.
        let text = format!("(def f {ret} ({params})\n  {call})");
        prints(&text, &text);
    }
}

/// Protects: arguments that are no variables are bound before the call, once.
#[test]
fn arguments_are_bound() {
    prints(
        "(def f (Vec Float) ((a : (Tensor 2 Float)) (x : (Vec Float))) (matmul a (add x x)))",
        "(def f (Vec Float) ((a : (Tensor 2 Float)) (x : (Vec Float)))\n  (let (v (add x x)) (matmul a v)))",
    );
}

/// Protects: a loop that somebody wrote stays a loop, and a name means what the program says it does.
#[test]
fn loops_stay_loops() {
    let dot = "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n))\n  (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))";
    prints(dot, dot);
    let two = format!("{dot}\n\n(def g Float ((x : (Vec Float)) (y : (Vec Float)))\n  (add 1.0 (ts_dot y x)))");
    prints(&two, &two.replace("(sumbuild n (lam (i : Integer) (mul (index i x) (index i y))))", "(ts_dot x y)"));
    let own = "(def matmul (Tensor 2 Float) ((a : (Tensor 2 Float)) (b : (Tensor 2 Float)))\n  a)";
    let text = format!("(def f (Tensor 2 Float) ({MATRICES}) (matmul a b))\n\n{own}");
    let printed = print::program(&program(&text));
    assert!(!printed.contains("(matmul a b)"), "{printed}");
}

/// Protects: `optimize` leaves calls that it changes nothing of, also where other parts of the definition change.
#[test]
fn unchanged_calls_stay_calls() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    for (text, call) in [
        (format!("(def f (Tensor 2 Float) ({MATRICES}) (matmul a b))"), "(matmul a b)"),
        ("(def f Float ((x : (Vec Float) n) (y : (Vec Float) n)) (add 0.0 (ts_dot x y)))".into(), "(ts_dot x y)"),
    ] {
        for cost in [Model::Knossos, Model::Analytic] {
            let outcome = optimize_with(&program(&text), &rules, &Options { cost, ..Options::standard() }).unwrap();
            let printed = print::program(&outcome.program);
            assert!(printed.contains(call) && !printed.contains("assert"), "{cost:?}: {printed}");
        }
    }
}
