//! Scatters whose targets say what is added to them: reductions with the interpreter's bits, or scatters still; and the tables
//! that are taken apart with scatters over products.

use crate::common::scheduled::{stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};

/// Values of a matrix are added at `AT`, of row `r`, column `c` and tap `t`, where that is in a row of as many columns.
const ADDED: &str = "
(def f (Vec Float) ((x : (Tensor 2 Float) (n m)) (k : (Vec Float) taps))
  (buildFromSparse m (mul (mul n m) taps) (lam (j : Integer)
    (let ((t (mod j taps)) (c (mod (div j taps) m)) (r (div (div j taps) m)) (at AT))
      (if (not (or (lt at 0) (gte at m)))
        (tuple at (mul (index (tuple r c) x) (index t k)))
        (tuple 0 0.0))))))
";

const PLANES: &str = "
(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n m)) (k : (Tensor 2 Float) (a b)))
  (buildFromSparse (tuple n m) (mul (mul n m) (mul a b)) (lam (j : Integer)
    (let ((t (mod j b)) (s (mod (div j b) a)) (c (mod (div (div j b) a) m)) (r (div (div (div j b) a) m))
          (y (sub (add r 1) s)) (z (sub (add c t) 1)))
      (if (and (and (gte y 0) (lt y n)) (and (gte z 0) (lt z m)))
        (tuple (tuple y z) (mul (index (tuple r c) x) (index (tuple s t) k)))
        (tuple (tuple 0 0) 0.0))))))
";

fn added(at: &str, [n, m, taps]: [usize; 3]) -> String {
    let args = [tensor(Scalar::F64, &[n, m], 3), tensor(Scalar::F64, &[taps], 4)];
    stages(&ADDED.replace("AT", at), &args)
}

/// Protects: values that are added at places in order are summed for each place in that order, forwards or backwards, at sizes
/// below, at and above a vector, and of one and no element; nothing is lost at the ends.
#[test]
fn targets_collect_what_is_added_to_them() {
    let sizes = [[3, 20, 5], [2, 7, 3], [4, 1, 1], [1, 33, 40], [3, 8, 2], [2, 0, 3], [0, 5, 2], [2, 5, 0]];
    let places = ["(sub (add c 2) t)", "(sub (add c t) 1)", "(sub (sub m 1) c)", "(sub (add t (sub m 2)) c)", "c"];
    for at in places {
        for of in sizes {
            let shown = added(at, of);
            assert!(of.contains(&0) || !shown.contains("\n    at "), "{at} {of:?}\n{shown}");
        }
    }
}

/// Protects: planes are collected by both of their indices at once.
#[test]
fn planes_collect_what_is_added_to_them() {
    for [n, m, a, b] in [[6, 21, 3, 5], [1, 1, 1, 1], [9, 4, 2, 3], [3, 40, 4, 1]] {
        let args = [tensor(Scalar::F64, &[n, m], 5), tensor(Scalar::F64, &[a, b], 6)];
        let shown = stages(PLANES, &args);
        assert!(!shown.contains("\n    at "), "{shown}");
    }
}

/// Protects: scatters stay where an index is no single place for each target, where two loops decide the order, and where
/// collecting would look at many more points.
#[test]
fn other_scatters_stay() {
    for at in ["(mul 2 c)", "(div c 2)", "(if (lt c 3) c 1)"] {
        let shown = added(at, [3, 9, 4]);
        assert!(shown.contains("\n    at "), "{at}\n{shown}");
    }
    let two = PLANES.replace("(sub (add r 1) s)", "r").replace("(sub (add c t) 1)", "(add c (add s t))");
    let args = [tensor(Scalar::F64, &[4, 9], 5), tensor(Scalar::F64, &[2, 3], 6)];
    assert!(stages(&two, &args).contains("\n    at "));
    let sparse = "
        (def f (Vec Float) ((x : (Tensor 2 Float) (n m)) (like : (Vec Float) many))
          (buildFromSparse many (mul n m) (lam (j : Integer)
            (if (lt (mod j m) many) (tuple (mod j m) (index (tuple (div j m) (mod j m)) x)) (tuple 0 0.0)))))";
    for (many, stays) in [(100, true), (14, false)] {
        let args = [tensor(Scalar::F64, &[5, 7], 1), tensor(Scalar::F64, &[many], 2)];
        assert_eq!(stages(sparse, &args).contains("\n    at "), stays);
    }
}

/// Protects: a table over a product of sizes that is read at the index of a scatter is taken apart with it, and with whoever reads
/// it beside that; one that is part of the result, or is read elsewhere, stays.
#[test]
fn tables_of_scatters_are_taken_apart_with_them() {
    let text = "
        (def f (Tuple (Tensor 2 Float) (Vec Float) (Vec Float))
            ((x : (Tensor 2 Float) (n h)) (w : (Vec Float) e) (to : (Vec Integer) e))
          (let ((all (mul e h))
                (t (build all (lam (q : Integer)
                  (exp (mul (index (div q h) w) (index (tuple (mod (div q h) n) (mod q h)) x)))))))
            (tuple
              (buildFromSparse (tuple n h) all (lam (q : Integer)
                (tuple (tuple (index (div q h) to) (mod q h)) (index q t))))
              (buildFromSparse e all (lam (q : Integer) (tuple (div q h) (mul 2.0 (index q t)))))
              OTHER)))";
    let shown = |other: &str, [n, h, e]: [usize; 3]| {
        let to = (0..e).map(|k| Value::Scalar(Lit::of(Scalar::I64, (k * k % n) as f64)));
        let to = Value::tensor(vec![e], to.collect());
        let args = [tensor(Scalar::F64, &[n, h], 1), tensor(Scalar::F64, &[e], 2), to];
        stages(&text.replace("OTHER", other), &args)
    };
    for sizes in [[5, 4, 9], [3, 17, 2], [1, 8, 8]] {
        let whole = format!("< {}", sizes[1] * sizes[2]);
        for (other, apart) in [
            ("(Vec_init 1.0)", true),
            ("(Vec_init (sum t))", true),
            ("(build e (lam (k : Integer) (index (mul k h) t)))", false),
            ("t", false),
        ] {
            assert_eq!(!shown(other, sizes).contains(&whole), apart, "{other} {sizes:?}\n{}", shown(other, sizes));
        }
    }
    // One digit is the whole.
    shown("t", [2, 1, 5]);
    shown("(Vec_init (sum t))", [2, 5, 1]);
}
