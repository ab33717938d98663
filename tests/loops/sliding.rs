//! Elementary functions in sliding windows are taken once for each element, with the interpreter's bits, where windows read all of
//! the elements that they may.

use crate::common::scheduled::{stages, tensor};
use daedal::ir::Scalar;

/// The stages of a sum over `k` for each of `m`, of an element of two vectors of `n`, of which windows read the first.
fn windows(element: &str, [n, k, m]: [usize; 3]) -> String {
    let text = format!(
        "(def f (Vec Float) ((x : (Vec Float) n) (w : (Vec Float) k) (y : (Vec Float) m))
           (build m (lam (i : Integer) (sumbuild k (lam (t : Integer) (mul (index t w) {element}))))))"
    );
    stages(&text, &[tensor(Scalar::F64, &[n], 1), tensor(Scalar::F64, &[k], 2), tensor(Scalar::F64, &[m], 3)])
}

/// How many stages have values of functions, and whether a sum takes one itself.
fn found(stages: &str) -> (usize, bool) {
    let tables =
        stages.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_alphabetic()) && l.contains("_values["));
    let sums = stages.lines().filter(|l| l.trim_start().starts_with("= (add acc"));
    (tables.count(), sums.clone().any(|l| l.contains("tanh") || l.contains("exp")))
}

/// Protects: functions of what windows read are tables, whichever way windows slide, at all sizes.
#[test]
fn windows_take_functions_once() {
    for sizes in [[10, 3, 8], [3, 3, 1], [8, 1, 8], [40, 16, 20], [5, 2, 0]] {
        assert_eq!(found(&windows("(tanh (index (add i t) x))", sizes)), (1, false), "{sizes:?}");
    }
    let back = "(tanh (index (sub (add i (sub k 1)) t) x))";
    assert_eq!(found(&windows(back, [40, 16, 20])), (1, false));
    let mirrored = "(exp (mul 0.5 (index (sub (sub (sub n 1) i) t) x)))";
    assert_eq!(found(&windows(mirrored, [40, 16, 20])), (1, false));
    // No window goes around.
    let around = "(tanh (index (mod (add i t) n) x))";
    assert_eq!(found(&windows(around, [40, 16, 20])), (1, false));
    // An exponential within a logarithm is taken in the table of that.
    let nested = "(log (add 1.0 (exp (index (add i t) x))))";
    assert_eq!(found(&windows(nested, [40, 16, 20])), (1, false));
    // Of nothing no element is read.
    found(&windows("(tanh (index (add i t) x))", [3, 0, 5]));
}

/// Protects: what depends on an index for itself, too, stays, as does what windows read only where a condition holds.
#[test]
fn other_functions_stay() {
    for element in [
        "(tanh (mul (index (add i t) x) (index i y)))",
        "(tanh (mul (index (add i t) x) (index t w)))",
        "(if (lt t 2) (tanh (index (add i t) x)) 0.0)",
    ] {
        assert_eq!(found(&windows(element, [40, 16, 20])).0, 0, "{element}");
    }
}

/// Protects: windows that slide along two dimensions are one table.
#[test]
fn windows_of_two_dimensions_are_one_table() {
    let text = "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (h w)) (k : (Tensor 2 Float) (p q)))
       (build (tuple (add 1 (sub h p)) (add 1 (sub w q))) (lam ((i : Integer) (j : Integer))
         (sumbuild (tuple p q) (lam ((a : Integer) (b : Integer))
           (mul (index (tuple a b) k) (exp (index (tuple (add i a) (add j b)) x))))))))";
    for (x, k) in [([9, 11], [3, 4]), ([5, 5], [5, 1]), ([20, 34], [3, 3])] {
        let args = [tensor(Scalar::F64, &x, 1), tensor(Scalar::F64, &k, 2)];
        let shown = stages(text, &args);
        assert_eq!(shown.matches("(exp ").count(), 1, "{shown}");
        assert!(shown.contains("= (exp x["), "{shown}");
    }
}
