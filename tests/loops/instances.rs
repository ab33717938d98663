//! Recurrences at many points whose states have tensors take their steps in the lanes of vectors, by default and by hand, to
//! the interpreter's bits.

use crate::common::scheduled::{compare, empty, read, scheduled, stages, tensor};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::Scalar;
use daedal::machine::Machine;
use daedal::schedule::{Schedule, text};
use daedal::tune::example::incoming;

/// Recurrences at the rows of `x`, by matrices or rows of `w`.
const FORMS: [(&str, &str); 8] = [
    // A vector and a number, of which the last are read.
    (
        "flow",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (fold (lam ((s : (Tuple (Vec Float) Float)) (k : Integer))
           (let (((z t) s)
                 (a (tanh (sumbuild d (lam (j : Integer) (mul (index (tuple k j) w) (index j z)))))))
             (tuple (build d (lam (j : Integer) (add (index j z) (mul a (index (tuple k j) w)))))
                    (add t (mul a t)))))
         (tuple (build d (lam (j : Integer) (index (tuple i j) x))) 1.0) (build l (lam (k : Integer) k))))
      (add (get$2$2 last) (sum (get$1$2 last)))))))",
    ),
    // A step computes a sum that is the same for all points.
    (
        "same",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (fold (lam ((s : (Tuple (Vec Float) Float)) (k : Integer))
           (let (((z t) s)
                 (a (sumbuild d (lam (j : Integer) (mul (index (tuple k j) w) (index j z)))))
                 (b (sumbuild d (lam (j : Integer) (mul (index (tuple k j) w) (index (tuple k j) w))))))
             (tuple (build d (lam (j : Integer) (add (index j z) (mul a (index (tuple k j) w)))))
                    (add t (mul (sub 1.0 (mul a a)) b)))))
         (tuple (build d (lam (j : Integer) (index (tuple i j) x))) 1.0) (build l (lam (k : Integer) k))))
      (add (get$2$2 last) (sum (get$1$2 last)))))))",
    ),
    // All states are read, the other way around.
    (
        "states",
        "(def f (Vec (Vec Float)) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (all (scan (lam ((z : (Vec Float)) (k : Integer))
           (build d (lam (j : Integer) (div (add (index j z) (index (tuple k j) w)) (add 2.0 (index 0 z))))))
         (build d (lam (j : Integer) (index (tuple i j) x))) l))
      (build l (lam (k : Integer) (index (sub d 1) (index (sub (sub l 1) k) all))))))))",
    ),
    // A system of a triangle is solved: a step sets one element, and sums those before it.
    (
        "solved",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (z (fold (lam ((z : (Vec Float)) (k : Integer))
           (setAt k z (div (sub (index (tuple i k) x) (sumbuild k (lam (j : Integer) (mul (index (tuple (mod k l) j) w) (index j z)))))
                           (add 2.0 (index (tuple (mod k l) k) w)))))
         (constVec d 0.0) (build d (lam (k : Integer) k))))
      (sumbuild d (lam (j : Integer) (mul (index j z) (index j z))))))))",
    ),
    // Two tables of a state change, each by what the other was; a row of one at an index that numbers say.
    (
        "tables",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (fold (lam ((s : (Tuple (Vec Float) (Vec Float) Integer)) (k : Integer))
           (let (((a b at) s))
             (tuple (setAt at a (add (index (mod k d) b) (index (tuple k at) w)))
                    (setAt (mod k d) b (index at a))
                    (mod (add at (add i 1)) d))))
         (tuple (build d (lam (j : Integer) (index (tuple i j) x))) (constVec d 0.5) (mod i d)) (build l (lam (k : Integer) k))))
      (add (sum (get$1$3 last)) (mul 2.0 (sum (get$2$3 last))))))))",
    ),
    // Arms of conditions that points take or not.
    (
        "arms",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (fold (lam ((z : (Vec Float)) (k : Integer))
           (build d (lam (j : Integer)
             (if (gt (index j z) (index (tuple k j) w)) (mul 0.5 (index j z))
               (if (eq j (mod k d)) (exp (index (sub (sub d 1) j) z)) (add (index j z) (index (tuple k j) w)))))))
         (build d (lam (j : Integer) (index (tuple i j) x))) (build l (lam (k : Integer) k))))
      (sum last)))))",
    ),
    // A matrix, and steps that may fail.
    (
        "checked",
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (iterate l (lam ((p : (Tensor 2 Float)) (k : Integer))
           (build (tuple d d) (lam ((a : Integer) (b : Integer))
             (add (mul (index (tuple k a) w) (index (tuple b a) p))
                  (assert (lt (index (tuple a b) p) 50.0) (index (tuple i b) x))))))
         (build (tuple d d) (lam ((a : Integer) (b : Integer)) (index (tuple i a) x)))))
      (sumbuild (tuple d d) (lam ((a : Integer) (b : Integer)) (index (tuple a b) last)))))))",
    ),
    // Numbers of 32 bits and integers beside each other.
    (
        "mixed",
        "(def f (Vec Float32) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (l d)))
  (build n (lam (i : Integer)
    (let (last (fold (lam ((s : (Tuple (Vec Float32) (Vec Integer))) (k : Integer))
           (let (((z c) s))
             (tuple (build d (lam (j : Integer) (add (mul 0.5f32 (index j z)) (cast Float32 (index (tuple k j) w)))))
                    (build d (lam (j : Integer) (if (gt (index j z) 0.25f32) (add (index j c) 1) (index j c)))))))
         (tuple (build d (lam (j : Integer) (cast Float32 (index (tuple i j) x)))) (constVec d 0)) (build l (lam (k : Integer) k))))
      (add (sum (get$1$2 last)) (cast Float32 (sum (get$2$2 last))))))))",
    ),
];

fn args([n, l, d]: [usize; 3]) -> Vec<Value> {
    vec![tensor(Scalar::F64, &[n, d], 3), tensor(Scalar::F64, &[l, d], 4)]
}

/// Whether points are the lanes of what a recurrence computes in its steps.
fn has_lanes(s: &Schedule) -> bool {
    s.graph.ids().filter(|p| s.graph.leads(*p).is_some()).any(|p| {
        let plan = s.plan(p);
        let over = plan.loops.iter().position(|l| plan.steps.is_some() && plan.root(&l.name) == plan.steps);
        let inside = s.graph.ids().any(|q| q != p && s.inside(q, p).is_some());
        inside && over.is_some_and(|k| plan.loops[k..].iter().any(|l| l.kind == daedal::schedule::plan::Kind::Vector))
    })
}

/// Protects: by default, states of vectors, matrices, several tables and numbers, of all steps and the last, changed in place,
/// in arms, and under checks, have the interpreter's bits and failures at numbers of points around vectors, and of steps and
/// elements down to none; and they are computed in the lanes of points where there are enough of these.
#[test]
fn states_of_points_are_lanes() {
    for (name, form) in FORMS {
        let program = read(form);
        for sizes in [[16, 3, 4], [33, 2, 3]] {
            let known = incoming(program.named("f")[0], &args(sizes));
            let graph = empty(&program, "f").graph.only_for(&known);
            let machine = Machine { vector_bytes: 32, threads: 1, ..Machine::host() };
            assert!(has_lanes(&daedal::schedule::default(graph, &machine)), "{name} {sizes:?}");
        }
        for sizes in [[33, 2, 3], [12, 9, 5], [7, 5, 1], [9, 0, 3], [0, 3, 2]] {
            stages(form, &args(sizes));
        }
    }
}

/// Protects: where there are fewer points than lanes, or steps compute more than a few elements, vectors run along these, and each
/// point takes its steps by itself.
#[test]
fn few_points_and_long_rows_keep_their_lanes() {
    for (name, form) in FORMS {
        let program = read(form);
        for sizes in [[3, 3, 8], [2, 2, 4], [40, 3, 70]] {
            let known = incoming(program.named("f")[0], &args(sizes));
            let graph = empty(&program, "f").graph.only_for(&known);
            let machine = Machine { vector_bytes: 32, threads: 1, ..Machine::host() };
            let made = daedal::schedule::default(graph, &machine);
            for p in made.graph.ids().filter(|p| made.graph.leads(*p).is_some()) {
                let inner = made.plan(p).loops.last().is_some_and(|l| made.plan(p).reduces(&l.name));
                assert!(inner, "{name} {sizes:?}: {made:?}", made = made.steps);
            }
        }
    }
}

/// Protects: a step that fails for one point only fails as in the interpreter.
#[test]
fn a_point_that_fails_is_told() {
    let form = FORMS.iter().find(|f| f.0 == "checked").unwrap().1;
    let mut data: Vec<Value> = vec![];
    for k in 0..17 * 3 {
        let x = if k / 3 == 13 { 40.0 } else { 0.25 };
        data.push(Value::Scalar(daedal::ir::Lit::of(Scalar::F64, x)));
    }
    let x = Value::tensor(vec![17, 3], data.into());
    let shown = stages(form, &[x, tensor(Scalar::F64, &[4, 3], 4)]);
    assert!(shown.contains("check"), "{shown}");
}

/// Protects: by hand, rows take steps together in loops, parts, vectors and on threads, whether these divide their number or not,
/// for sizes that nobody told.
#[test]
fn states_of_points_by_hand() {
    let steps = [
        "compute-root last\nreorder last step i",
        "compute-root last\nsplit last i 4\nreorder last io step ii\nvectorize last ii\nparallel last io",
        "compute-root last\nsplit last i 8\nsplit last ii 4\nreorder last io step iio iii\nvectorize last iii\nunroll last iio\n\
         split last_2 i 4\nreorder last_2 step j io ii\nvectorize last_2 ii",
    ];
    let calls = [[9, 3, 4], [16, 2, 3], [1, 1, 1], [0, 2, 2], [5, 0, 3], [23, 4, 2]].map(args);
    let program = read(FORMS[0].1);
    for steps in steps {
        compare(&program, "f", &scheduled(&program, "f", steps), &calls, true);
    }
}

/// Protects: states that are computed in strips take all their steps by themselves, and not with other rows.
#[test]
fn strips_take_their_steps_alone() {
    let program = read(
        "(def f (Vec (Vec Float)) ((x : (Tensor 2 Float) (n d)))
  (build n (lam (i : Integer)
    (fold (lam ((z : (Vec Float)) (k : Integer)) (build d (lam (j : Integer) (mul 0.5 (add (to_float k) (index j z))))))
      (build d (lam (j : Integer) (index (tuple i j) x))) (build 7 (lam (k : Integer) k))))))",
    );
    let start = empty(&program, "f");
    let shown = start.graph.to_string();
    let steps = "compute-root state\ninline tensor\nstrip state_2 j 4\nreorder state step i";
    let error = text::apply(start, &Source::new("steps", steps)).map(|_| shown).unwrap_err().render();
    assert!(error.contains("its states are computed in strips"), "{error}");
}
