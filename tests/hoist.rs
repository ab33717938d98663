//! Loop-invariant parts of elements are stages of their own for stated sizes, with the interpreter's bits; others stay.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::scheduled::{compare, empty, read, tensor};
use daedal::eval::Value;
use daedal::ir::Scalar;
use daedal::schedule::Schedule;

/// The graph for the sizes of arguments, after it was held against the interpreter.
fn stages(text: &str, args: &[Value]) -> String {
    let program = read(text);
    let sizes = daedal::tune::example::incoming(program.named("f")[0], args);
    let graph = empty(&program, "f").graph.only_for(&sizes);
    compare(&program, "f", &Schedule::new(graph.clone()), &[args.to_vec()], sizes.contains(&0.0));
    graph.to_string()
}

/// A matrix, and a vector of its columns.
fn args(n: usize, m: usize) -> Vec<Value> {
    vec![tensor(Scalar::F64, &[n, m], 1), tensor(Scalar::F64, &[m], 2)]
}

fn each(element: &str) -> String {
    format!(
        "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n m)) (q : (Vec Float) m))
           (build (tuple n m) (lam ((i : Integer) (j : Integer)) {element})))"
    )
}

/// How many exponentials the stages have.
fn exponentials(stages: &str) -> usize {
    stages.matches("exp").count()
}

/// Protects: what takes long and is the same for all rows is computed once for each column, and once for all rows and columns
/// where it is a number; what several stages have in common is one stage.
#[test]
fn invariants_are_computed_before_the_loop() {
    let once = stages(&each("(mul (exp (index j q)) (index (tuple i j) x))"), &args(16, 7));
    assert!(
        once.contains("= (mul tensor_invariant[j] x[i, j])\n  tensor_invariant[j < 7]\n    = (exp q[j])"),
        "{once}"
    );
    let number = stages(&each("(add (exp (index 0 q)) (index (tuple i j) x))"), &args(16, 7));
    assert!(number.contains("_invariant"), "{number}");
    let both = "(def f (Tuple (Tensor 2 Float) (Vec Float)) ((x : (Tensor 2 Float) (n m)) (q : (Vec Float) m))
       (tuple (build (tuple n m) (lam ((i : Integer) (j : Integer)) (mul (exp (index j q)) (index (tuple i j) x))))
              (build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (div (index (tuple i j) x) (exp (index j q)))))))))";
    let both = stages(both, &args(17, 9));
    assert_eq!(exponentials(&both), 1, "{both}");
}

/// Protects: what is evaluated for some elements only, in one iteration, or by elements that may not be there stays where it is,
/// and programs of nothing, whose loops have no iterations, neither fail nor read what is not there.
#[test]
fn what_may_not_be_evaluated_stays() {
    let arm = each("(if (gt (index (tuple i j) x) 0.0) (exp (index j q)) 1.0)");
    let far = each("(mul (exp (index (add j 0) q)) (index (tuple i j) x))");
    let out = each("(mul (exp (index (sub (mul 2 j) j) q)) (exp (index (mul 2 j) q)))");
    let cheap = each("(mul (add 1.0 (index j q)) (index (tuple i j) x))");
    assert!(!stages(&arm, &args(16, 7)).contains("_invariant"));
    assert!(!stages(&cheap, &args(16, 7)).contains("_invariant"));
    assert!(!stages(&each("(exp (index j q))"), &args(1, 7)).contains("_invariant"), "one row");
    assert!(
        !stages(&each("(mul (exp (index j q)) (index (tuple i j) x))"), &args(15, 7)).contains("_invariant"),
        "few rows"
    );
    for (n, m) in [(0, 7), (5, 0), (0, 0), (1, 1), (33, 2)] {
        for text in [&arm, &far, &cheap] {
            stages(text, &args(n, m));
        }
    }
    // It fails, as the program does, and where there are no rows it does not.
    stages(&out, &args(20, 3));
    stages(&out, &args(0, 3));
}
