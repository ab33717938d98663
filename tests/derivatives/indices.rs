//! What loops read at indices that can be solved for them comes back by element: without a scatter, and without more work than the
//! loss.

use super::ad::gives;
use super::once::counted;
use crate::common::{self, arguments, points};
use daedal::ad::check::Checked;
use daedal::ad::{self, Mode, Wanted};
use daedal::ir::print;

/// Protects: what is read at an index of two digits comes back by element, without a loop; a base of 0
/// and elements beyond the last one that is read included.
#[test]
fn digits_of_an_index_are_solved() {
    let text = "
(def f Float ((v : (Vec Float) n) (k : Integer) (m : Integer))
  (sumbuild k (lam (c : Integer) (sumbuild m (lam (j : Integer)
    (mul (to_float (add j 1)) (exp (index (add j (mul c m)) v))))))))";
    let program = common::read("digits", text).unwrap();
    let of = program.named("f")[0].fun;
    let wrt = vec![true, false, false];
    let wanted = ad::Wanted { fun: of, mode: ad::Mode::Reverse, wrt, value: false, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let printed = print::def(&made.terms, &made.defs[&fun]);
    assert!(!printed.contains("sumbuild") && !printed.contains("buildFromSparse"), "{printed}");
    let name = &fun.sig().name;
    gives(&made, name, &["[0.0,0.0,0.0,0.0,0.0]", "2", "2", "3.0"], "[3.0,6.0,3.0,6.0,0.0]");
    gives(&made, name, &["[0.0,0.0]", "3", "0", "1.0"], "[0.0,0.0]");
}

/// Protects: what windows read that are a stride apart comes back from the windows that overlap there, whatever the width and the
/// stride, beside other indices, before and behind the tensor; without a loop over all windows, or a scatter.
#[test]
fn windows_a_stride_apart_are_solved() {
    let along = "(def f Float ((v : (Vec Float) n) (w : (Vec Float) k) (frames : Integer))
  (sumbuild frames (lam (a : Integer) (sumbuild k (lam (t : Integer)
    (mul (mul (to_float (add a 1)) (index t w)) (exp (index INDEX v))))))))";
    let across =
        "(def f Float ((v : (Tensor 2 Float) (n m)) (w : (Tensor 2 Float) (k l)) (rows : Integer) (columns : Integer))
  (sumbuild (tuple rows columns) (lam ((a : Integer) (b : Integer))
    (tanh (sumbuild (tuple k l) (lam ((t : Integer) (u : Integer))
      (mul (index (tuple t u) w) (index (tuple (add (mul 2 a) t) (add (mul b 3) u)) v))))))))";
    // From before the tensor and to behind it, where the program asks.
    let padded = "(def f Float ((v : (Vec Float) n) (w : (Vec Float) k) (frames : Integer))
  (sumbuild frames (lam (a : Integer) (sumbuild k (lam (t : Integer)
    (let (i (add (sub (mul 2 a) 3) t))
      (mul (index t w) (if (and (gte i 0) (lt i n)) (mul (index i v) (index i v)) 0.0))))))))";
    let numbers = |n: usize| {
        let each = (0..n).map(|k| format!("{}", ((k * 5) % 7) as f64 * 0.25 - 0.5));
        format!("[{}]", each.collect::<Vec<_>>().join(","))
    };
    let rows = |n: usize, m: usize| format!("[{}]", vec![numbers(m); n].join(","));
    let mut cases: Vec<(String, Vec<String>)> = vec![];
    for (index, n) in [("(add (mul a 2) t)", 30), ("(add t (mul 4 a))", 40), ("(sub (add (mul 3 a) t) 0)", 34)] {
        for (k, frames) in [(1, 5), (3, 4), (4, 9), (7, 1), (8, 8), (5, 0), (0, 3)] {
            let text = along.replace("INDEX", index);
            cases.push((text, vec![numbers(n), numbers(k), frames.to_string()]));
        }
    }
    for (k, frames, n) in [(3, 5, 7), (4, 8, 12), (6, 3, 2), (1, 1, 1)] {
        cases.push((padded.to_string(), vec![numbers(n), numbers(k), frames.to_string()]));
    }
    cases.push((across.to_string(), vec![rows(12, 14), rows(3, 5), "4".into(), "3".into()]));
    cases.push((across.to_string(), vec![rows(9, 9), rows(2, 3), "4".into(), "3".into()]));
    let mut found = vec![];
    for (text, args) in cases {
        let program = common::read("windows", &text).unwrap();
        let def = program.named("f")[0];
        let wanted = |wrt| ad::Wanted { fun: def.fun, mode: ad::Mode::Reverse, wrt, value: false, checkpoint: false };
        let by_v: Vec<bool> = def.params.iter().map(|p| &*p.name == "v").collect();
        let (made, fun) = ad::derive(&program, &wanted(by_v)).unwrap();
        let printed = print::def(&made.terms, &made.defs[&fun]);
        // One element in a loop over all windows is what there was before.
        let all = ["buildFromSparse", "(sumbuild frames", "(sumbuild rows", "(sumbuild columns"];
        assert!(!all.iter().any(|o| printed.contains(o)), "{printed}");
        let values = arguments(def, &args).unwrap();
        found.push(points::point(Checked::new(&program, def, &points::floats(def)), &values, &text, &[]));
    }
    let n = found.len();
    assert!(points::compared(found).0 * 2 > n, "few of {n} are told");
}

/// Protects: the index of a convolution is solved, also around a middle that is half of the taps: what comes back is a sum for
/// each element and not a scatter.
#[test]
fn centred_taps_are_solved() {
    let text = "(def f Float ((w : (Vec Float) taps) (x : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (sumbuild taps (lam (t : Integer)
    (let (from (sub (add i (div taps HALF)) t))
      (mul (index t w) (if (or (lt from 0) (gte from n)) 0.0 (mul (index from x) (index from x))))))))))";
    let derived = |half: &str| {
        let program = common::read("taps", &text.replace("HALF", half)).unwrap();
        let (of, wrt) = (program.named("f")[0].fun, vec![false, true]);
        let wanted = ad::Wanted { fun: of, mode: ad::Mode::Reverse, wrt, value: false, checkpoint: false };
        ad::derive(&program, &wanted).unwrap()
    };
    let (made, fun) = derived("2");
    let printed = print::def(&made.terms, &made.defs[&fun]);
    assert!(!printed.contains("buildFromSparse"), "{printed}");
    gives(&made, &fun.sig().name, &["[1.0,10.0,100.0]", "[1.0,2.0,3.0,4.0]", "1.0"], "[220.0,444.0,666.0,88.0]");
    gives(&made, &fun.sig().name, &["[1.0,10.0,100.0]", "[1.0]", "1.0"], "[20.0]");
    // What may fail is asked where the program asks it.
    let (made, fun) = derived("(sub n n)");
    assert!(print::def(&made.terms, &made.defs[&fun]).contains("buildFromSparse"));
}

/// Protects: both indices of an element of a matrix are solved where one loop is in both, in either order, and beside loops that are
/// in none: the bands of a matrix, and the spans of a chart. Elements outside of a band take no loop.
#[test]
fn indices_that_share_a_loop_are_solved() {
    let bands = |index: &str| {
        format!(
            "(def f Float ((m : (Tensor 2 Float) (n l)) (x : (Vec Float) k) (y : (Vec Float) p))
  (sumbuild p (lam (j : Integer) (sumbuild n (lam (i : Integer) (sumbuild k (lam (t : Integer)
    (sin (mul (index t x) (mul (index j y) (index {index} m)))))))))))"
        )
    };
    for index in ["(tuple i (add i t))", "(tuple i (add t i))", "(tuple i (sub (add i 2) t))", "(tuple t (add i t))"] {
        let text = bands(index);
        let program = common::read("bands", &text).unwrap();
        let def = program.named("f")[0];
        let wrt = vec![true, false, false];
        let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: false, checkpoint: false };
        let (made, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::def(&made.terms, &made.defs[&fun]);
        assert!(!printed.contains("buildFromSparse"), "{index}\n{printed}");
        let args = |n: usize, k: usize, p: usize| {
            let row = |n: usize, by: f64| format!("{:?}", (0..n).map(|i| (i as f64 * by).sin()).collect::<Vec<f64>>());
            let m: Vec<String> = (0..n).map(|i| row(n + 3, 0.3 + i as f64)).collect();
            arguments(def, &[format!("[{}]", m.join(",")), row(k, 0.7), row(p, 1.1)]).unwrap()
        };
        for (n, k, p) in [(5, 3, 2), (3, 1, 1), (4, 3, 0)] {
            let of = Checked::new(&program, def, &[true; 3]);
            let found = points::point(of, &args(n, k, p), &text, &[]);
            assert_eq!(points::compared(vec![found]).0, 1, "{index} {n} {k} {p}");
        }
        // A band of three in a matrix of forty rows, for forty points.
        let own = args(40, 3, 40);
        let all = [&own[..], &[common::value("1.0", def.fun.sig().ret)]].concat();
        let [loss, both] = [counted(&program, def, &own), counted(&made, &made.defs[&fun], &all)];
        assert!(both.transcendental <= loss.transcendental, "{index}: {both:?} {loss:?}\n{printed}");
    }
}
