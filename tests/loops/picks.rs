//! Loops of which a condition picks one index are gone, with the interpreter's bits; others stay.

use crate::common::scheduled::{compare, empty, read, stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};

/// Whole numbers from -2 on to `n + 1`, so that some are no index.
fn indices(count: usize, n: usize, seed: u64) -> Value {
    let Value::Tensor(t) = tensor(Scalar::F64, &[count], seed) else { unreachable!() };
    let at = |k: usize| {
        let Value::Scalar(x) = t.get(k) else { unreachable!() };
        let x = x.to_f64().unwrap();
        Value::Scalar(Lit::of(Scalar::I64, ((x + 1.0) / 2.0 * (n as f64 + 4.0)).floor() - 2.0))
    };
    Value::tensor(vec![count], (0..count).map(at).collect())
}

/// Rows of `x` are added at the indices `to`, where `CONDITION` holds.
const EDGES: &str = "
(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n h)) (from : (Vec Integer) e) (to : (Vec Integer) e))
  (sumbuild e (lam (k : Integer)
    (build (tuple n h) (lam ((i : Integer) (j : Integer))
      (if CONDITION (mul (index (tuple (mod (add 2 (index k from)) n) j) x) 1.5) 0.0))))))
";

fn edges(condition: &str, [n, h, e]: [usize; 3]) -> String {
    let args = [tensor(Scalar::F64, &[n, h], 1), indices(e, n, 2), indices(e, n, 3)];
    stages(&EDGES.replace("CONDITION", condition), &args)
}

/// Protects: a sum of rows, each at an index that data say, adds them there and does not ask all others; indices out of range
/// add nothing; of few rows each is asked.
#[test]
fn sums_of_rows_at_indices_are_scatters() {
    for condition in [
        "(eq i (index k to))",
        "(eq (index k to) (add i 1))",
        "(and (gt (index k from) 0) (eq i (index k to)))",
        "(and (eq i (index k to)) (lt i 9))",
        "(and (eq i (index k to)) (eq j (index k from)))",
    ] {
        let shown = edges(condition, [21, 5, 30]);
        assert!(shown.contains("\n    at "), "{condition}\n{shown}");
        assert!(!shown.contains("i < 21, j") || !shown.contains("over k < 30, i"), "{condition}\n{shown}");
    }
    for sizes in [[17, 1, 1], [40, 9, 3], [0, 3, 4], [20, 0, 3], [20, 3, 0]] {
        edges("(eq i (index k to))", sizes);
    }
    assert!(!edges("(eq i (index k to))", [7, 5, 30]).contains("\n    at "));
}

/// Protects: what is no single index, or is added in another order, stays a sum or a loop.
#[test]
fn other_conditions_stay() {
    for condition in
        ["(lt i (index k to))", "(eq (mod i 3) (index k to))", "(eq (mul i 2) (index k to))", "(ne i (index k to))"]
    {
        assert!(!edges(condition, [21, 5, 6]).contains("\n    at "), "{condition}");
    }
    // The rows come first: what is added at one column comes by rows.
    let shown = stages(&totals("(tuple n e)", "(i : Integer) (k : Integer)"), &total_args([21, 4, 9]));
    assert!(shown.contains("over i < 21, k < 9"), "{shown}");
}

/// A sum over pairs of which data pick one for each `k`.
fn totals(shape: &str, indices: &str) -> String {
    "(def f (Vec Float) ((x : (Tensor 2 Float) (n h)) (w : (Vec Float) e) (to : (Vec Integer) e))
       (build h (lam (j : Integer)
         (sumbuild SHAPE (lam (INDICES)
           (if (eq i (index k to)) (mul (index (tuple i j) x) (index k w)) 0.0))))))"
        .replace("SHAPE", shape)
        .replace("INDICES", indices)
}

fn total_args([n, h, e]: [usize; 3]) -> [Value; 3] {
    [tensor(Scalar::F64, &[n, h], 1), tensor(Scalar::F64, &[e], 2), indices(e, n, 3)]
}

/// Protects: a loop of a sum of which data pick one index is gone.
#[test]
fn loops_of_sums_are_picked() {
    for sizes in [[21, 4, 9], [1, 1, 1], [5, 17, 0], [0, 2, 3], [3, 0, 3]] {
        let shown = stages(&totals("(tuple e n)", "(k : Integer) (i : Integer)"), &total_args(sizes));
        assert!(!shown.contains(&format!("i < {}\n", sizes[0])) || sizes[0] < 2, "{shown}");
    }
}

/// Protects: so is a loop of a scatter: the adjoint of rows that are added where data say.
#[test]
fn loops_of_scatters_are_picked() {
    let text = "
        (def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n h)) (from : (Vec Integer) e) (to : (Vec Integer) e))
          (buildFromSparse (tuple n h) (mul (mul e n) h) (lam (m : Integer)
            (let ((j (mod m h)) (i (mod (div m h) n)) (k (div (div m h) n)))
              (if (eq i (index k to))
                (tuple (tuple (mod (add 2 (index k from)) n) j) (index (tuple i j) x))
                (tuple (tuple 0 0) 0.0))))))";
    for [n, h, e] in [[6, 5, 9], [1, 1, 2], [17, 9, 40], [3, 2, 0]] {
        let shown = stages(text, &[tensor(Scalar::F64, &[n, h], 1), indices(e, n, 2), indices(e, n, 3)]);
        let lines: Vec<&str> = shown.lines().filter(|l| l.trim_start().starts_with("over")).collect();
        assert!(lines.iter().all(|l| l.matches('<').count() <= 2), "{shown}");
    }
}

/// Protects: what is made for one column is made once, not for each column that it is not made for.
#[test]
fn what_one_column_needs_has_no_columns() {
    let text = "
        (def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n m)) (y : (Vec Float) p))
          (build (tuple n m) (lam ((i : Integer) (j : Integer))
            (if (eq j (sub m 1 i))
              (sumbuild p (lam (k : Integer) (mul (index k y) (index (tuple i (mod k m)) x))))
              (index (tuple i j) x)))))"
        .replace("(sub m 1 i)", "(sub (sub m 1) i)");
    for [n, m, p] in [[4, 6, 5], [6, 4, 1], [9, 9, 33], [1, 1, 0], [0, 3, 2], [3, 0, 2]] {
        let args = [tensor(Scalar::F64, &[n, m], 1), tensor(Scalar::F64, &[p], 2)];
        let program = read(&text);
        let graph = empty(&program, "f").graph;
        let sum = graph.stages.iter().find(|s| !s.over().is_empty()).unwrap();
        assert_eq!(sum.dims.len(), 1, "{}", *graph);
        compare(&program, "f", &empty(&program, "f"), &[args.to_vec()], true);
    }
}

/// Protects: indices that go around once do not divide where loops are long, and what is added at such an index is summed there.
#[test]
fn indices_that_wrap_around_do_not_divide() {
    let text = "
        (def f (Tuple (Vec Float) (Vec Float)) (x : (Vec Float) n)
          (tuple
            (build n (lam (i : Integer) (sub (index (AROUND) x) (index i x))))
            (buildFromSparse n n (lam (i : Integer) (tuple (AROUND) (mul 2.0 (index i x)))))))";
    for around in ["mod (add i 1) n", "mod (add i (sub n 1)) n", "mod (add i n) n", "floormod (sub i 3) n"] {
        for n in [1, 2, 7, 16, 33] {
            let shown = stages(&text.replace("AROUND", around), &[tensor(Scalar::F64, &[n], 1)]);
            assert!(n < 16 || !shown.contains("mod"), "{around} {n}\n{shown}");
            assert!(n < 2 || !shown.contains("\n    at "), "{around} {n}\n{shown}");
        }
    }
    for other in ["mod (mul i 2) n", "mod (add i 1) (max 1 (sub n 1))", "mod (add i (mul 3 n)) n"] {
        let shown = stages(&text.replace("AROUND", other), &[tensor(Scalar::F64, &[33], 1)]);
        assert!(shown.contains("mod"), "{other}\n{shown}");
    }
}
