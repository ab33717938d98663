//! Recurrences of which a step changes a part of a table, each element by itself, change it in place, in loops over that part:
//! to the interpreter's bits; and the way back through tables that are set element by element has no table of their states.

use crate::common::dice::Dice;
use crate::common::native::difference;
use crate::common::scheduled::{empty, read, stages, tensor};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::pipeline::simplify::simplified;
use daedal::rules::Level;
use daedal::schedule;
use daedal::stage::extract;

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 1, ..Machine::host() }
}

/// A fold over steps `k` with a matrix `t` as its state, of which a step has an element at `a` and `b`.
fn matrix(element: &str) -> String {
    format!(
        "(def f (Tensor 2 Float) ((t : (Tensor 2 Float) (n m)) (w : (Vec Float) steps))
           (fold (lam ((t : (Tensor 2 Float)) (k : Integer))
             (build (tuple n m) (lam ((a : Integer) (b : Integer))
               (let ((v (index (tuple a b) t)) (x (index k w))) {element}))))
           t (build steps (lam (k : Integer) k))))"
    )
}

/// Protects: a step that changes a part of the elements, each by itself alone, changes them in place, those in a triangle by
/// loops over that part; by the interpreter's bits and failures, at sizes around vectors and down to none.
#[test]
fn elements_that_change_by_themselves_change_in_place() {
    let all = [
        "(if (lt b a) (add v x) v)",
        "(if (lte a k) (if (lt b a) (add v (mul x (to_float b))) v) v)",
        "(if (lte 0 (sub (sub n 2) (add a k))) (if (gte b a) (mul v x) v) v)",
        "(if (gt k a) (if (eq b a) (add v x) (if (gt b a) (sub v x) v)) v)",
        "(let (u (if (lt a k) (if (eq a b) (add v 1.0) v) v)) (if (ne a k) (if (lt b a) (mul u x) u) u))",
        "(if (gt v 0.25) (mul v x) v)",
        "(if (lt (mul 2 b) a) (add v x) (if (lt b (sub a k)) 0.5 v))",
        "(if (eq (mod a (sub k 9)) 0) (add v x) v)",
    ];
    for element in all {
        let text = matrix(element);
        let program = read(&text);
        let nest = native::scheduled_nest(
            program.named("f")[0],
            &schedule::default(Clone::clone(&*empty(&program, "f").graph), &machine()),
            &machine(),
        )
        .unwrap();
        let shown = nest.to_string();
        // Of two states at once one would be copied to the other. What may fail is computed before the step changes anything.
        assert!(!shown.contains("[2 * ") || element.contains("mod"), "{element}\n{shown}");
        for [n, m, steps] in [[5, 7, 3], [16, 16, 9], [1, 33, 2], [0, 3, 2], [4, 4, 0]] {
            stages(&text, &[tensor(Scalar::F64, &[n, m], 3), tensor(Scalar::F64, &[steps], 4)]);
        }
    }
    // The step in which the divisor is 0 fails.
    stages(&matrix(all[7]), &[tensor(Scalar::F64, &[3, 3], 3), tensor(Scalar::F64, &[12], 4)]);
}

/// Protects: what reads other elements than its own, or another table that changes, reads those before the step.
#[test]
fn elements_that_read_others_read_those_before_the_step() {
    for element in [
        "(if (lt b a) (add v (index (tuple a (mod (add b 1) m)) t)) v)",
        "(add v (mul x (index (tuple (sub (sub n 1) a) b) t)))",
        "(if (gt (index (tuple a 0) t) 0.1) (mul v x) v)",
    ] {
        for [n, m, steps] in [[5, 7, 3], [8, 8, 4], [1, 2, 2]] {
            stages(&matrix(element), &[tensor(Scalar::F64, &[n, m], 3), tensor(Scalar::F64, &[steps], 4)]);
        }
    }
    // Two numbers of an element that change in parts that overlap, each by what the other one was.
    let pairs = "(def f (Vec (Tuple Float Float)) ((t : (Vec Float) n) (w : (Vec Float) steps))
        (fold (lam ((s : (Vec (Tuple Float Float))) (k : Integer))
          (build n (lam (a : Integer)
            (let ((p q) (index a s))
              (tuple (if (lt a k) (add p q) p) (if (lt a (add k 2)) (mul q p) q))))))
        (build n (lam (a : Integer) (tuple (index a t) (add 0.5 (index a t))))) (build steps (lam (k : Integer) k))))";
    for [n, steps] in [[6, 4], [33, 20], [4, 9], [0, 2]] {
        stages(pairs, &[tensor(Scalar::F64, &[n], 3), tensor(Scalar::F64, &[steps], 4)]);
    }
    let two = "(def f (Tuple (Vec Float) (Vec Float)) ((t : (Vec Float) n) (w : (Vec Float) steps))
        (fold (lam ((s : (Tuple (Vec Float) (Vec Float))) (k : Integer))
          (let (((p q) s))
            (tuple (build n (lam (a : Integer) (if (lt a k) (add (index a p) (index a q)) (index a p))))
                   (build n (lam (a : Integer) (if (gt a k) (mul (index a q) (index a p)) (index a q)))))))
        (tuple t t) (build steps (lam (k : Integer) k))))";
    for [n, steps] in [[9, 4], [33, 20], [4, 4], [0, 2]] {
        stages(two, &[tensor(Scalar::F64, &[n], 3), tensor(Scalar::F64, &[steps], 4)]);
    }
}

/// Cholesky's triangle, and the logarithms of its diagonal.
const CHOLESKY: &str = "
(def f Float ((k : (Vec (Vec Float)) (n n2)))
  (let (l (fold (lam ((l : (Vec (Vec Float))) (i : Integer))
      (setAt i l (fold (lam ((r : (Vec Float)) (j : Integer))
        (let (s (sub (index j (index i k)) (sumbuild j (lam (t : Integer)
            (mul (index t r) (if (eq i j) (index t r) (index t (index j l))))))))
          (setAt j r (if (lt j i) (div s (index j (index j l))) (if (eq i j) (sqrt s) 0.0)))))
        (constVec n 0.0) (build (add i 1) (lam (j : Integer) j)))))
    (constVec n (constVec n 0.0)) (build n (lam (i : Integer) i))))
  (sumbuild n (lam (i : Integer) (log (index i (index i l)))))))
";

/// Protects: the way back through a matrix that is set row by row, each element by element, has memory for a few matrices and
/// no table of their states, by the interpreter's bits.
#[test]
fn the_way_back_through_a_triangle_keeps_a_few_matrices() {
    let program = read(CHOLESKY);
    let def = program.named("f")[0];
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![true], value: true, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let made = simplified(&made, &|_| true, Level::Exact).unwrap();
    let def = &made.defs[&fun];
    let graph = extract(&made, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&made)));
    let schedule = schedule::default(graph, &machine());
    for n in [1_usize, 8, 19] {
        let at = |k: usize| 1.0 / (1.0 + (k / n).abs_diff(k % n) as f64) + if k / n == k % n { 1.0 } else { 0.0 };
        let rows =
            (0..n).map(|i| Value::tensor(vec![n], (0..n).map(|j| Value::Scalar(Lit::float(at(i * n + j)))).collect()));
        let args = [Value::tensor(vec![n], rows.collect()), Value::Scalar(Lit::float(0.5))];
        let counted = native::counted(&made, def, Some(&schedule), (&args, &machine()), &mut String::new()).unwrap();
        assert!(counted.scheduled);
        assert_eq!(difference(&Interpreter::new(&made).run(def, &args), &Ok(counted.value)), None);
        let peak = counted.tally.peak_bytes.unwrap() as usize;
        assert!(peak <= 8 * (10 * n * n + 20 * n + 64), "{n}: {peak}");
    }
}

/// Protects: random steps that change parts of a table of pairs, each number where another condition holds, by itself, by the
/// other one, or by those of other elements, have the interpreter's bits.
#[test]
fn random_parts_of_pairs_have_the_interpreters_bits() {
    let conditions = [
        "(lt a k)",
        "(gte a (sub n k))",
        "(lte (add a k) n)",
        "(gt (mul 2 a) k)",
        "(ne a k)",
        "(eq (mod a 3) (mod k 3))",
        "(and (lt a (add k 2)) (gt a (sub k 2)))",
        "(or (eq a k) (lt p q))",
    ];
    let values = |own: &str, other: &str, part: u32| {
        [
            format!("(add {own} {other})"),
            format!("(mul {own} 0.5)"),
            other.to_string(),
            format!("(sub {own} (index k w))"),
            format!("(get${part}$2 (index (mod (add a 1) n) s))"),
            format!("(if (gt {other} {own}) (mul {own} {other}) {own})"),
        ]
    };
    let mut dice = Dice(11);
    for _ in 0..12 {
        let mut part = |own: &str, other: &str, at: u32| {
            let [c, d] = [(); 2].map(|()| conditions[dice.below(8) as usize]);
            let all = values(own, other, at);
            let [x, y] = [(); 2].map(|()| all[dice.below(6) as usize].clone());
            if dice.below(2) == 0 {
                format!("(if {c} {x} {own})")
            } else {
                format!("(if {c} (if {d} {x} {own}) (if {d} {own} {y}))")
            }
        };
        let (first, second) = (part("p", "q", 1), part("q", "p", 2));
        let text = format!(
            "(def f (Vec (Tuple Float Float)) ((t : (Vec Float) n) (w : (Vec Float) steps))
              (fold (lam ((s : (Vec (Tuple Float Float))) (k : Integer))
                (build n (lam (a : Integer) (let ((p q) (index a s)) (tuple {first} {second})))))
              (build n (lam (a : Integer) (tuple (index a t) (sub 0.5 (index a t))))) (build steps (lam (k : Integer) k))))"
        );
        let [n, steps] = [[9, 5], [6, 11], [17, 7]][dice.below(3) as usize];
        stages(&text, &[tensor(Scalar::F64, &[n], 3), tensor(Scalar::F64, &[steps], 4)]);
    }
}
