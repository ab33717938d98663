//! Sums over the steps of recurrences: states of these with the interpreter's bits, or sums still.

use crate::common::scheduled::{compare, empty, read, stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::tune::example::incoming;

/// What steps come to, and what each of them makes of it, of which `RESULT` is made.
const STEPS: &str = "
(def f RESULT ((w : (Vec Float) d) (x : (Tensor 2 Float) (n d)))
  (let ((made (scan (lam ((s : (Tuple (Vec Float) (Vec Float))) (i : Integer))
                (let (y (build d (lam (j : Integer)
                        (tanh (add (mul (index j w) (index j (get$1$2 s))) (index (tuple i j) x))))))
                  (tuple (build d (lam (j : Integer) (add (index j y) (mul 0.5 (index j (get$1$2 s)))))) y)))
              (tuple w w) n)))
    VALUE))
";

fn program(result: &str, value: &str) -> String {
    STEPS.replace("RESULT", result).replace("VALUE", value)
}

/// Whether there are sums besides the states of the recurrence.
fn has_sums(shown: &str) -> bool {
    shown.contains("\n    over ")
}

fn of_sizes(text: &str, [n, d]: [usize; 2]) -> String {
    stages(text, &[tensor(Scalar::F64, &[d], 3), tensor(Scalar::F64, &[n, d], 4)])
}

/// Protects: what steps make is added up as the recurrence goes, in the order of the steps, from where the sum begins, with
/// other values of the step and at other indices, at sizes of no and one step and element, and below and above a vector.
#[test]
fn sums_over_steps_are_states() {
    let terms = [
        "(index j (get$2$2 (index i made)))",
        "(mul (index j (get$2$2 (index i made))) (index (tuple i j) x))",
        "(index (sub (sub d 1) j) (get$2$2 (index i made)))",
        "(mul (index j (get$2$2 (index i made))) (index (tuple (sub (sub n 1) i) j) x))",
        "(add (index j (get$2$2 (index i made))) (index j (get$1$2 (index i made))))",
    ];
    for term in terms {
        let sum = format!("(build d (lam (j : Integer) (sumbuild n (lam (i : Integer) {term}))))");
        for of in [[5, 14], [1, 1], [3, 4], [2, 33], [0, 3], [3, 0]] {
            let shown = of_sizes(&program("(Vec Float)", &sum), of);
            assert!(of.contains(&0) || !has_sums(&shown), "{term} {of:?}\n{shown}");
        }
    }
}

/// Protects: several sums are parts of one state, each with its own first values and next ones; sums of other sizes are
/// another state.
#[test]
fn several_sums_over_steps_are_one_state() {
    let row = |d: &str, term: &str| format!("(build {d} (lam (j : Integer) (sumbuild n (lam (i : Integer) {term}))))");
    let kept = "(index j (get$2$2 (index i made)))";
    let value = format!(
        "(tuple {} {} {})",
        row("d", kept),
        row("d", &format!("(mul {kept} (index (tuple i j) x))")),
        row("(sub d 1)", kept)
    );
    for of in [[5, 14], [4, 2], [2, 19]] {
        let shown = of_sizes(&program("(Tuple (Vec Float) (Vec Float) (Vec Float))", &value), of);
        // One has no dimension but the steps, and one goes from step to step.
        assert!(!has_sums(&shown) && shown.matches("by step").count() == 4, "{shown}");
    }
}

/// Protects: sums stay which run from the last step on, which read what others read too, of which several elements read one,
/// and which are of numbers.
#[test]
fn other_sums_stay() {
    let row = |term: &str| format!("(build d (lam (j : Integer) (sumbuild n (lam (i : Integer) {term}))))");
    let kept = "(index j (get$2$2 (index i made)))";
    let cases = [
        ("(Vec Float)", row("(index j (get$2$2 (index (sub (sub n 1) i) made)))")),
        ("(Tuple (Vec Float) Float)", format!("(tuple {} (index 0 (get$2$2 (index 0 made))))", row(kept))),
        (
            "(Vec (Vec Float))",
            format!(
                "(build d (lam (k : Integer) {}))",
                row("(mul (index k (get$2$2 (index i made))) (index j (get$2$2 (index i made))))")
            ),
        ),
        ("Float", "(sumbuild n (lam (i : Integer) (index 0 (get$2$2 (index i made)))))".to_string()),
    ];
    for (result, value) in cases {
        let shown = of_sizes(&program(result, &value), [4, 9]);
        assert!(has_sums(&shown), "{value}\n{shown}");
    }
}

/// Protects: a sum that only some elements of the result ask for, since it checks indices there, is computed once, in the
/// steps, and not where nobody asks.
#[test]
fn sums_that_a_condition_asks_for() {
    let value = "(build (tuple 3 (size z)) (lam ((k : Integer) (j : Integer))
        (if (eq k 1) (sumbuild n (lam (i : Integer) (index j (get$2$2 (index i made))))) (index j z))))";
    let text = program("(Tensor 2 Float)", value).replace("(n d)))", "(n d)) (z : (Vec Float) e))");
    let shown = |text: &str, e: usize| {
        stages(text, &[tensor(Scalar::F64, &[9], 3), tensor(Scalar::F64, &[4, 9], 4), tensor(Scalar::F64, &[e], 5)])
    };
    for e in [1, 6, 9] {
        let shown = shown(&text, e);
        assert!(!has_sums(&shown) && !shown.contains("\n    when "), "{shown}");
    }
    let never = shown(&text.replace("(eq k 1)", "(eq k 7)"), 6);
    assert!(has_sums(&never), "{never}");
}

/// Protects: a state that is a sum of integers, which wraps as the interpreter does, and one of several numbers.
#[test]
fn sums_of_other_types() {
    let text = "
(def f (Vec (Tuple Integer Float)) ((w : (Vec Integer) d) (n : Integer))
  (let (made (scan (lam ((s : (Tuple (Vec Integer) (Vec Integer))) (i : Integer))
               (let (y (build d (lam (j : Integer) (mul 6364136223846793005 (add (index j (get$1$2 s)) i)))))
                 (tuple (build d (lam (j : Integer) (add 1 (index j y)))) y)))
             (tuple w w) n))
    (build d (lam (j : Integer)
      (sumbuild n (lam (i : Integer)
        (let (v (index j (get$2$2 (index i made)))) (tuple v (to_float v)))))))))
";
    let lit = |v: f64| Value::Scalar(Lit::of(Scalar::I64, v));
    let w = Value::tensor(vec![6], (0..6).map(|k| lit(f64::from(k))).collect());
    let shown = stages(text, &[w, lit(5.0)]);
    assert!(!has_sums(&shown), "{shown}");
}

/// Protects: a sum of tensors of which one row is not 0 computes that row alone, once, though its sum ends by the row; where
/// the row may be missing, it is asked whether it is there.
#[test]
fn sums_that_one_row_asks_for() {
    let text = "
(def f (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)) (y : (Vec (Vec Float)) (n m)))
  (sumbuild n (lam (i : Integer)
    (let (w (build (add i 1) (lam (p : Integer) (exp (index 0 (index p x))))))
      (build n (lam (j : Integer)
        (let (here (eq j ROW))
          (build m (lam (l : Integer)
            (if here (sumbuild (add i 1) (lam (p : Integer) (mul (index p w) (index l (index p y))))) 0.0))))))))))
";
    let rows = |n: usize, seed: u64| {
        Value::tensor(vec![n], (0..n).map(|k| tensor(Scalar::F64, &[5], seed + k as u64)).collect())
    };
    for n in [1, 2, 9] {
        for (row, there) in [("i", true), ("(sub (sub n 1) i)", true), ("(add i 1)", false)] {
            let shown = stages(&text.replace("ROW", row), &[rows(n, 3), rows(n, 20)]);
            let points = |l: &&str| l.starts_with("  sum") && l.matches('<').count() > 2;
            assert!(!shown.lines().any(|l| points(&l)), "{row} of {n}\n{shown}");
            // Of one row there is none after it, so that nothing asks for its sums.
            assert_eq!(!shown.contains("\n    when "), there || n == 1, "{row} of {n}\n{shown}");
        }
    }
}

/// Protects: a dimension that only says whether a sum is asked for stays, where another dimension ends by it.
#[test]
fn dimensions_that_others_end_by_stay() {
    let text = "
(def f (Vec Float) ((x : (Vec (Vec Float)) (n m)) (y : (Vec (Vec Float)) (n m)))
  (sumbuild n (lam (i : Integer)
    (build n (lam (j : Integer)
      (if (eq j i)
          (sumbuild (add j 1) (lam (q : Integer)
            (exp (sumbuild m (lam (p : Integer) (mul (index p (index q x)) (index p (index i y))))))))
          0.0))))))
";
    let rows = |n: usize, seed: u64| {
        Value::tensor(vec![n], (0..n).map(|k| tensor(Scalar::F64, &[4], seed + k as u64)).collect())
    };
    for n in [1, 2, 7] {
        let shown = stages(text, &[rows(n, 3), rows(n, 20)]);
        assert!(shown.contains("sum"), "{shown}");
    }
}

/// Protects: an index of a state that no step decides is checked before the steps read there, whether it is a number, one that
/// comes in or one of a loop in the step, and the failure is that of the program.
#[test]
fn indices_that_no_step_decides_are_checked_first() {
    for at in ["-1", "2", "1", "-1000000000000", "(sub j 1)", "(add j k)", "k", "(div k j)"] {
        let text = format!(
            "(def f (Vec Float) ((x : Float) (n : Integer) (k : Integer))
               (let (all (scan (lam ((s : (Vec Float)) (i : Integer))
                       (build 2 (lam (j : Integer) (add 1.0 (index {at} s))))) (constVec 2 x) n))
                 (build n (lam (i : Integer) (index 0 (index i all))))))"
        );
        let program = read(&text);
        let number = |n: i64| Value::Scalar(Lit::int(n));
        let cases: Vec<Vec<Value>> = [[0, 0], [1, 0], [3, 1], [3, -1], [2, 7]]
            .map(|[n, k]| vec![Value::Scalar(Lit::float(0.5)), number(n), number(k)])
            .to_vec();
        // Where there is no step the start may ask for more than is needed.
        compare(&program, "f", &empty(&program, "f"), &cases, true);
        for args in &cases {
            let sizes = incoming(program.named("f")[0], args);
            let graph = empty(&program, "f").graph.only_for(&sizes);
            let made = daedal::schedule::default(graph, &Machine { vector_bytes: 32, ..Machine::host() });
            compare(&program, "f", &made, std::slice::from_ref(args), true);
        }
    }
}
