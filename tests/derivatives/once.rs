//! Folds whose steps set one element each, in order: their derivatives are right wherever the elements lie, and keep the last
//! state alone.

use crate::common;
use daedal::ad::{self, Mode, Wanted, check};
use daedal::eval::{Interpreter, Tally, Value};
use daedal::ir::{Def, Program, print};

/// Losses by a matrix, a vector and a number of steps.
const FORMS: [(&str, &str); 14] = [
    // A triangle, row by row.
    (
        "cholesky",
        "(fold (lam ((l : (Vec (Vec Float))) (i : Integer))
           (setAt i l (fold (lam ((r : (Vec Float)) (j : Integer))
             (let (s (sub (if (eq i j) (add 9.0 (index j (index i a))) (index j (index i a)))
                          (sumbuild j (lam (t : Integer)
                            (mul (index t r) (if (eq i j) (index t r) (index t (index j l))))))))
               (setAt j r (if (lt j i) (div s (index j (index j l))) (if (eq i j) (sqrt s) 0.0)))))
             (constVec n 0.0) (build (add i 1) (lam (j : Integer) j)))))
         (constVec n (constVec n 0.0)) (build n (lam (i : Integer) i)))",
    ),
    // Systems of triangles, from both ends.
    (
        "forwards",
        "(fold (lam ((z : (Vec Float)) (i : Integer))
           (setAt i z (div (sub (index i x) (sumbuild i (lam (t : Integer) (mul (index t z) (index t (index i a))))))
                           (add 2.0 (index i (index i a))))))
         (constVec n 0.0) (build n (lam (i : Integer) i)))",
    ),
    (
        "backwards",
        "(fold (lam ((z : (Vec Float)) (i : Integer))
           (let (k (sub (sub n 1) i))
             (setAt k z (div (sub (index k x) (sumbuild i (lam (t : Integer)
                                (let (c (add k (add t 1))) (mul (index c z) (index c (index k a)))))))
                             (add 2.0 (index k (index k a)))))))
         (constVec n 0.0) (build n (lam (i : Integer) i)))",
    ),
    (
        "listed backwards",
        "(fold (lam ((z : (Vec Float)) (k : Integer))
           (setAt k z (add (index k x) (if (lt (add k 1) n) (sin (index (add k 1) z)) 0.5))))
         (constVec n 0.0) (build n (lam (i : Integer) (sub (sub n 1) i))))",
    ),
    // A series goes on from its own past; a derivative flows to where it starts.
    (
        "series",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (setAt (add t 2) s (add (mul 0.5 (index (add t 1) s)) (tanh (index t s)))))
         (build (add n 2) (lam (i : Integer) (if (lt i n) (index i x) 0.3))) (build n (lam (i : Integer) i)))",
    ),
    // Elements far apart, and beyond the last one.
    (
        "apart",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (setAt (mul 2 t) s (mul (index t s) (index t x))))
         (constVec (mul 2 n) 0.7) (build n (lam (i : Integer) i)))",
    ),
    (
        "beyond",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (build n (lam (j : Integer) (if (eq (add t 1) j) (mul (index t s) (index t x)) (index j s)))))
         (constVec n 0.7) (build n (lam (i : Integer) i)))",
    ),
    (
        "before",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (build n (lam (j : Integer) (if (ne j (sub t 1)) (index j s) (exp (mul (index t s) (index t x)))))))
         x (build n (lam (i : Integer) i)))",
    ),
    // What is not set yet is read, and what the step itself sets.
    (
        "ahead",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (setAt t s (add (mul (index t s) (index (mod (add t 1) n) s)) (index t x))))
         (build n (lam (i : Integer) (mul 0.5 (index i x)))) (build n (lam (i : Integer) i)))",
    ),
    // Rows of a tensor, and elements of tuples.
    (
        "rows",
        "(fold (lam ((s : (Tensor 2 Float)) (t : Integer))
           (build (tuple n n) (lam ((i : Integer) (j : Integer))
             (if (eq i t) (mul (index j x) (if (gt t 0) (index (tuple (sub t 1) j) s) 1.0)) (index (tuple i j) s)))))
         (build (tuple n n) (lam ((i : Integer) (j : Integer)) 0.0)) (build n (lam (i : Integer) i)))",
    ),
    (
        "pairs",
        "(fold (lam ((s : (Vec (Tuple Float Float))) (t : Integer))
           (setAt t s (tuple (mul (index t x) (if (gt t 0) (get$2$2 (index (sub t 1) s)) 1.0)) (sin (index t x)))))
         (constVec n (tuple 0.5 0.0)) (build n (lam (i : Integer) i)))",
    ),
    // At each of many points.
    (
        "points",
        "(build n (lam (p : Integer)
           (fold (lam ((z : (Vec Float)) (i : Integer))
             (setAt i z (div (sub (index p x) (sumbuild i (lam (t : Integer) (mul (index t z) (index t (index p a))))))
                             (add 2.0 (index i (index i a))))))
           (constVec n 0.0) (build n (lam (i : Integer) i)))))",
    ),
    // Not in order, or again and again.
    (
        "anywhere",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (setAt (mod (mul 3 t) n) s (add (mul 0.5 (index (mod (mul 3 t) n) s)) (mul (index t x) (index 0 s)))))
         (constVec n 0.7) (build n (lam (i : Integer) i)))",
    ),
    (
        "one place",
        "(fold (lam ((s : (Vec Float)) (t : Integer))
           (setAt 0 s (add (mul 0.5 (index 0 s)) (index t x))))
         (constVec n 0.7) (build n (lam (i : Integer) i)))",
    ),
];

/// The loss: the squares of all numbers that the fold comes to.
fn text(fold: &str) -> String {
    let squares = if fold.contains("(Tensor 2 Float)) (t") {
        "(sum (build n (lam (i : Integer) (sum (build n (lam (j : Integer) (let (v (index (tuple i j) all)) (mul v v))))))))"
    } else if fold.contains("(Tuple Float Float)") {
        "(sum (build n (lam (i : Integer) (let ((p q) (index i all)) (mul p (add p q))))))"
    } else if fold.starts_with("(build") || fold.contains("(Vec (Vec Float)))") {
        "(sum (build n (lam (i : Integer) (sum (build n (lam (j : Integer) (let (v (index j (index i all))) (mul v v))))))))"
    } else {
        "(sum (build (size all) (lam (i : Integer) (let (v (index i all)) (mul v (add v 1.0))))))"
    };
    format!(
        "(def f Float ((a : (Vec (Vec Float)) (n m)) (x : (Vec Float) n) (c : Float)) (let (all {fold}) (mul c {squares})))"
    )
}

/// A matrix that is symmetric, a vector and a factor.
fn words(n: usize) -> [String; 3] {
    let of = |i: usize, j: usize| 0.3 * ((i * j) as f64 * 0.37 + (i + j) as f64 * 0.11).sin();
    let row = |i: usize| (0..n).map(|j| of(i, j)).collect::<Vec<f64>>();
    let a: Vec<Vec<f64>> = (0..n).map(row).collect();
    [format!("{a:?}"), format!("{:?}", (0..n).map(|i| of(i, 2) + 0.4).collect::<Vec<f64>>()), "0.5".into()]
}

/// What the interpreter counts.
pub(super) fn counted(program: &Program, def: &Def, args: &[Value]) -> Tally {
    let interpreter = Interpreter::new(program).counted();
    interpreter.run(def, args).unwrap_or_else(|d| panic!("{}", d.render()));
    interpreter.tally()
}

/// Protects: derivatives of folds that set one element a step agree with differences and with forward mode: elements in order and
/// not, from either end, read before they are set, beyond the ends, none at all.
#[test]
fn folds_that_set_elements_have_right_derivatives() {
    for (name, fold) in FORMS {
        let program = common::read("f.ks", &text(fold)).unwrap_or_else(|d| panic!("{name}: {}", d.render()));
        let def = program.named("f")[0];
        let checked = check::Checked::new(&program, def, &[true; 3]).unwrap();
        for n in [1, 2, 5, 8] {
            let args = common::arguments(def, &words(n)).unwrap();
            let point = checked.at(&args, 7).unwrap().unwrap_or_else(|| panic!("{name} has no value for {n}"));
            let good = point.off_difference().is_none_or(|d| d <= check::DIFFERENCE);
            assert!(good && point.off_modes() <= checked.tolerance(), "{name} {n}: {point:?}");
        }
    }
}

/// Protects: of such folds the last state is kept, and no table of states; what steps and folds within steps make is made once,
/// also where these differ in length. A table of the states of the triangle would have n³ numbers.
#[test]
fn the_last_state_is_all_that_is_kept() {
    for (name, fold) in &FORMS[..9] {
        let program = common::read("f.ks", &text(fold)).unwrap();
        let def = program.named("f")[0];
        let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![true; 3], value: true, checkpoint: false };
        let (made, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::def(&made.terms, &made.defs[&fun]);
        let args = common::arguments(def, &words(16)).unwrap();
        let all = [&args[..], &[common::value("1.0", def.fun.sig().ret)]].concat();
        let [once, both] = [counted(&program, def, &args), counted(&made, &made.defs[&fun], &all)];
        let count = |t: &Tally| t.divisions + t.transcendental;
        assert!(count(&both) <= 4 * count(&once) + 64, "{name}: {both:?} {once:?}\n{printed}");
    }
}
