//! Derivatives of folds and scans run them once: what their steps make is kept, and nothing that nobody asks for.

use crate::common;
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::{Interpreter, Tally, Value};
use daedal::ir::{Def, Fun, Program, print};

/// Value and gradient of a definition by all its floats.
fn gradient(program: &Program, def: &Def) -> (Program, Fun) {
    let wrt = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
    ad::derive(program, &Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false }).unwrap()
}

fn counted(program: &Program, def: &Def, args: &[Value]) -> Tally {
    let interpreter = Interpreter::new(program).counted();
    interpreter.run(def, args).unwrap_or_else(|d| panic!("{}", d.render()));
    interpreter.tally()
}

/// The transcendental functions of a definition of the corpus, and those of its value and gradient.
fn transcendental(def: &str, words: &[&str]) -> [u64; 2] {
    let text = std::fs::read_to_string(common::root("programs/grad/chains.ks")).unwrap();
    // Where a program has asked for a derivative, that does not give the value.
    let text = text.split("(gdef").next().unwrap();
    let program = common::read("chains.ks", text).unwrap();
    let def = program.named(def)[0];
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let args = common::arguments(def, &words).unwrap();
    let (made, fun) = gradient(&program, def);
    let all = [&args[..], &[common::value("1.0", def.fun.sig().ret)]].concat();
    [counted(&program, def, &args), counted(&made, &made.defs[&fun], &all)].map(|t| t.transcendental)
}

/// Protects: what steps make by transcendental functions is made once for the value and the way back: of sums, of loops of
/// folds, and of folds of folds.
#[test]
fn what_steps_make_is_made_once() {
    // Three steps of two exponentials for each of two tags, and a logarithm for each; at the end two exponentials, which stand
    // in no step and are made again, and a logarithm.
    let (t, e) = ("[[0.1,0.2],[0.3,-0.4]]", "[[0.5,0.1],[-0.2,0.3],[0.7,-0.6],[0.2,0.1]]");
    assert_eq!(transcendental("tagged", &[t, e, "[0,1,0,1]"]), [21, 23]);
    // One for each number; its derivative is of the value.
    assert_eq!(transcendental("many", &["0.3", "[[0.1,0.2,0.3],[0.4,0.5,0.6]]"]), [6, 6]);
    // A sine for each number, step and element, and its cosine.
    assert_eq!(transcendental("steps", &["[0.1,-0.2]", "[[0.3,0.4],[0.5,0.6],[0.7,0.8]]"]), [12, 24]);
}

fn check(text: &str, expected: &str) {
    let program = common::read("recurrence.ks", text).unwrap_or_else(|d| panic!("{}", d.render()));
    let def = program.defs.values().next().unwrap();
    let (made, fun) = gradient(&program, def);
    let simple = daedal::pipeline::simplify::simplified(&made, &|_| true, daedal::rules::Level::Exact).unwrap();
    let found = print::def(&simple.terms, &simple.defs[&fun]);
    assert_eq!(found.trim(), expected.trim(), "\n{found}");
}

/// Protects: a fold is one scan, whose last state is its value; what nobody asks for is no part of its states.
#[test]
fn a_fold_runs_once() {
    check(
        "(def decay Float ((a : Float) (xs : (Vec Float) n))
           (fold (lam ((s : Float) (x : Float)) (add (mul a s) (exp x))) 0.0 xs))",
        "
(def value$rev$decay (Tuple Float (Tuple Float (Vec Float))) ((a : Float) (xs : (Vec Float) n) (dr : Float))
  (let ((v (scan (lam ((s : (Tuple Float Float)) (i : Integer))
          (let (v (exp (index i xs))) (tuple (add (mul a (get$1$2 s)) v) v)))
          (tuple 0.0 0.0)
          n))
        (v_1 (scan (lam ((s : Float) (i : Integer)) (mul s a)) dr n)))
    (tuple
      (if (gt n 0) (get$1$2 (index (sub n 1) v)) 0.0)
      (tuple
        (sumbuild n (lam (i : Integer)
          (mul
            (if (eq i 0) dr (index (sub i 1) v_1))
            (if (eq (sub (sub n 1) i) 0) 0.0 (get$1$2 (index (sub (sub (sub n 1) i) 1) v))))))
        (build n (lam (i : Integer)
          (mul
            (if (eq (sub (sub n 1) i) 0) dr (index (sub (sub (sub n 1) i) 1) v_1))
            (get$2$2 (index i v)))))))))
        ",
    );
}

/// Protects: what the scan backwards makes for the adjoint of the state, and takes work, other variables read, in its order.
#[test]
fn other_variables_read_what_the_scan_backwards_makes() {
    check(
        "(def wave Float ((a : Float) (xs : (Vec Float) n))
           (fold (lam ((s : Float) (x : Float)) (sin (mul a (add s x)))) 0.0 xs))",
        "
(def value$rev$wave (Tuple Float (Tuple Float (Vec Float))) ((a : Float) (xs : (Vec Float) n) (dr : Float))
  (let ((v (scan (lam ((s : Float) (i : Integer)) (sin (mul a (add s (index i xs))))) 0.0 n))
        (v_1 (scan (lam ((s : (Tuple Float Float)) (i : Integer))
          (let ((v_1 (sub (sub n 1) i))
                (v_2 (mul
                  (get$1$2 s)
                  (cos (mul a (add (if (eq v_1 0) 0.0 (index (sub v_1 1) v)) (index v_1 xs)))))))
            (tuple (mul v_2 a) v_2)))
          (tuple dr 0.0)
          n)))
    (tuple
      (if (gt n 0) (index (sub n 1) v) 0.0)
      (tuple
        (sumbuild n (lam (i : Integer)
          (let ((v_2 (sub (sub n 1) i)))
            (mul
              (get$2$2 (index i v_1))
              (add (if (eq v_2 0) 0.0 (index (sub v_2 1) v)) (index v_2 xs))))))
        (build n (lam (i : Integer) (get$1$2 (index (sub (sub n 1) i) v_1))))))))
        ",
    );
}
