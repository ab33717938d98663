//! Recurrences whose states are independent along a dimension take their steps in strips of it: to the interpreter's bits, on
//! one thread and two; states that read others are refused.

use crate::common::scheduled::{check, empty, read, scheduled, tensor};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::schedule::text;

const STATES: &str = "
(def averaged (Vec (Vec Float32)) ((m : (Tensor 2 Float32) (h w)) (alpha : Float32))
  (scan (lam ((above : (Vec Float32)) (y : Integer))
          (build w (lam (x : Integer) (add (mul alpha (index (tuple y x) m)) (index x above)))))
        (constVec w 1f32) h))
(def last (Vec Float32) ((m : (Tensor 2 Float32) (h w)) (alpha : Float32))
  (fold (lam ((above : (Vec Float32)) (y : Integer))
          (build w (lam (x : Integer) (add (mul alpha (index (tuple y x) m)) (index x above)))))
        (constVec w 1f32) (build h (lam (y : Integer) y))))
(def both (Tensor 2 Float32) ((m : (Tensor 2 Float32) (h w)) (alpha : Float32))
  (let (s (scan (lam ((s : (Tuple (Vec Float32) (Vec Float32))) (y : Integer))
          (tuple (build w (lam (x : Integer) (add (mul alpha (index x (get$2$2 s))) (index x (get$1$2 s)))))
                 (build w (lam (x : Integer) (add (index (tuple y x) m) (index x (get$1$2 s)))))))
        (tuple (constVec w 1f32) (constVec w 2f32)) h))
    (build (tuple h w) (lam ((y : Integer) (x : Integer))
      (add (index x (get$1$2 (index y s))) (index x (get$2$2 (index y s))))))))
(def constant (Vec Float32) ((x : (Vec Float32) n) (y : Float32))
  (fold (lam ((s : (Vec Float32)) (k : Integer)) (build n (lam (i : Integer) (mul 2f32 (index i x)))))
        (constVec n y) (build 4 (lam (k : Integer) k))))
(def mixed (Vec (Vec Float32)) ((m : (Tensor 2 Float32) (h w)) (alpha : Float32))
  (scan (lam ((above : (Vec Float32)) (y : Integer))
          (build w (lam (x : Integer) (add (index (tuple y x) m) (index (max 0 (sub x 1)) above)))))
        (constVec w 1f32) h))
(def counted (Tensor 2 Float32) ((m : (Tensor 2 Float32) (h w)) (alpha : Float32))
  (let (s (scan (lam ((s : (Tuple Float32 (Vec Float32))) (y : Integer))
          (tuple (add 1f32 (get$1$2 s))
                 (build w (lam (x : Integer) (add (get$1$2 s) (index x (get$2$2 s)))))))
        (tuple 0f32 (constVec w 1f32)) h))
    (build (tuple h w) (lam ((y : Integer) (x : Integer)) (index x (get$2$2 (index y s)))))))
";

/// Protects: strips of states that are all kept, of which two or only the last are; their lanes, and threads.
#[test]
fn strips_change_no_bit() {
    let program = read(STATES);
    let sizes = [(4, 10), (6, 18), (1, 1), (0, 5), (3, 0), (5, 33)];
    let calls = sizes.map(|(h, w)| vec![tensor(Scalar::F32, &[h, w], 3), Value::Scalar(Lit::of(Scalar::F32, 0.25))]);
    let cases = [
        ("averaged", "inline tensor\nstrip state_2 i 4\nparallel state io"),
        ("averaged", "inline tensor\nsplit state_2 i 2\nvectorize state_2 ii\ncompute-root result"),
        ("last", "inline tensor\nstrip state_2 i 8\nsplit state_2 i 4\nvectorize state_2 ii\nparallel state io"),
        ("both", "inline tensor\ninline tensor_2\nstrip s_3 i 3\nparallel s io"),
        ("both", "inline tensor\ninline tensor_2\nstrip s_2 i 16\nsplit s_2 i 4\nvectorize s_2 ii"),
    ];
    for (def, steps) in cases {
        check(&program, def, &scheduled(&program, def, steps), &calls);
    }
}

/// Protects: states that are not independent, and what a step would compute for others, have no strips.
#[test]
fn states_that_read_others_have_no_strips() {
    let program = read(STATES);
    let cases = [
        ("mixed", "inline tensor\nstrip state_2 i 4", "reads the state before at other indices than its own"),
        ("counted", "inline tensor\nstrip s_2 i 4", "its state has numbers, which all elements share"),
        ("averaged", "strip state_2 i 4", "`tensor` is computed whole in a step of `state_2`"),
        ("averaged", "strip result i 4", "`result` is no tensor of a state"),
        ("averaged", "inline tensor\nstrip state_2 step 4", "is that of the steps, or around them"),
        ("constant", "inline tensor\nstrip state_2 step 4", "is that of the steps, or around them"),
        ("averaged", "inline tensor\nstrip state_2 i 0", "at least 1 is needed"),
        (
            "averaged",
            "inline tensor\nsplit state_2 i 4\nstrip state_2 ii 4",
            "a dimension of `state_2` that was not split",
        ),
        ("averaged", "inline tensor\nstrip state_2 i 4\nstrip state_2 i 2", "taken in strips already"),
        ("averaged", "inline tensor\nstrip state_2 i 4\nsplit state io 2", "runs over strips"),
        (
            "averaged",
            "inline tensor\nstrip state_2 i 4\ncompute-at tensor state step",
            "`tensor` is computed where it is read",
        ),
    ];
    for (def, steps, why) in cases {
        let line = steps.lines().count();
        let error = text::apply(empty(&program, def), &Source::new("steps", steps)).unwrap_err().render();
        assert!(error.contains(why) && error.contains(&format!("steps:{line}:1")), "{def} {steps}: {error}");
    }
}
