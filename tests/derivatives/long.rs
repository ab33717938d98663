//! Bodies of loops that bind more values than there are bits in a word: their adjoints go to elements all the same.

use crate::common;
use daedal::ad::{self, Mode, Wanted, check};
use daedal::eval::{Interpreter, Tally};

/// Energies of a chain of points by its torsions: vectors between neighbours, their products, an angle.
const TORSIONS: &str = "
(def diff (Vec Float) ((x : (Vec (Vec Float)) (n d)) (i : Integer) (j : Integer))
  (build d (lam (k : Integer) (sub (index k (index j x)) (index k (index i x))))))
(def dot Float ((a : (Vec Float) n) (b : (Vec Float) n))
  (sumbuild n (lam (k : Integer) (mul (index k a) (index k b)))))
(def cross (Vec Float) ((a : (Vec Float)) (b : (Vec Float)))
  (Vec_init (sub (mul (index 1 a) (index 2 b)) (mul (index 2 a) (index 1 b)))
            (sub (mul (index 2 a) (index 0 b)) (mul (index 0 a) (index 2 b)))
            (sub (mul (index 0 a) (index 1 b)) (mul (index 1 a) (index 0 b)))))
(def f Float (x : (Vec (Vec Float)) (n d))
  (sumbuild (sub n 3) (lam (i : Integer)
    (let ((a (diff x i (add i 1))) (b (diff x (add i 1) (add i 2))) (c (diff x (add i 2) (add i 3)))
          (u (cross a b)) (v (cross b c))
          (phi (atan2 (mul (sqrt (dot b b)) (dot a v)) (dot u v))))
      (cos (mul 3.0 phi))))))";

fn points(n: usize) -> String {
    let of = |i: usize, k: usize| i as f64 * 0.7 + ((i * 3 + k * 5) as f64 * 1.3).sin();
    let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..3).map(|k| of(i, k)).collect()).collect();
    format!("{rows:?}")
}

/// Protects: the gradient is right, and takes twice the work for twice the points, since what a round of the loop adds to an element
/// is no tensor of them all.
#[test]
fn long_bodies_have_adjoints_by_element() {
    let program = common::read("f.ks", TORSIONS).unwrap_or_else(|d| panic!("{}", d.render()));
    let def = program.named("f")[0];
    let checked = check::Checked::new(&program, def, &[true]).unwrap();
    for n in [3, 4, 6, 9] {
        let args = common::arguments(def, &[points(n)]).unwrap();
        let point = checked.at(&args, 5).unwrap().unwrap_or_else(|| panic!("no value for {n}"));
        let good = point.off_difference().is_none_or(|d| d <= check::DIFFERENCE);
        assert!(good && point.off_modes() <= checked.tolerance(), "{n}: {point:?}");
    }
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![true], value: true, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let work = |n: usize| -> Tally {
        let mut args = common::arguments(def, &[points(n)]).unwrap();
        args.push(common::value("1.0", def.fun.sig().ret));
        let interpreter = Interpreter::new(&made).counted();
        interpreter.run(&made.defs[&fun], &args).unwrap_or_else(|d| panic!("{}", d.render()));
        interpreter.tally()
    };
    let [few, many] = [20, 40].map(|n| work(n).work() as f64);
    assert!(many < 2.3 * few, "{few} {many}");
}
