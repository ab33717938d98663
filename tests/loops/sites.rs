//! Where stages are computed, and what is kept there: windows that move on with a loop have the interpreter's bits and compute
//! nothing twice, and each place that is refused says why.

use crate::common::scheduled::{check, compare, empty, read, scheduled, tensor};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Program, Scalar};
use daedal::nest::count;
use daedal::schedule::{Schedule, lower, text};
use daedal::tune::example::incoming;

const WINDOWS: &str = "
(def blur (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h (sub w 2)) (lam ((y : Integer) (c : Integer))
      (exp (add (index (tuple y c) x) (index (tuple y (add c 2)) x))))))
    (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) first) (index (tuple (add y 1) c) first)) (index (tuple (add y 2) c) first))))))
(def clamped (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (sumbuild 5 (lam (k : Integer)
        (index (tuple (max 0 (min (sub h 1) (add y (sub k 2)))) (max 0 (min (sub w 1) (add c 1)))) first)))))))
(def bordered (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (if (and (gt y 1) (lt c (sub w 1))) (add (index (tuple (sub y 2) (add c 1)) first) (index (tuple y c) first))
          0f32)))))
(def smaller (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple (div h 2) w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple (max 0 (sub (mul 2 y) 1)) c) first) (index (tuple (min (sub h 1) (add (mul 2 y) 1)) c) first))))))
(def larger (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple (mul 2 h) w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple (div y 2) c) first) (index (tuple (min (sub h 1) (div (add y 1) 2)) c) first))))))
(def turned (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple (sub (sub h 1) y) c) first) 1f32)))))
(def skewed (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple (add h h) (add h w)) (lam ((y : Integer) (c : Integer)) (exp (cast Float32 (add y c))))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple (add y 1) (add c y)) first) (index (tuple y c) x))))))
(def around (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple y c) first)
           (add (index (tuple (max 0 (min (sub h 1) (sub y 3))) c) first)
                (index (tuple (max 0 (min (sub h 1) (add y 3))) c) first)))))))
(def pair (Tuple (Vec Float) (Vec Float)) (n : Integer)
  (tuple (build n (lam (i : Integer) (to_float i))) (build n (lam (i : Integer) (mul 2.0 (to_float i))))))
(def column (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (first (build w (lam (c : Integer) (exp (index (tuple 0 c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer)) (add (index c first) (index (tuple y c) x))))))
";

/// The names of the first and the last stage.
fn ends(program: &Program, def: &str) -> [String; 2] {
    let graph = empty(program, def).graph;
    let [first, last] = [graph.stages.first().unwrap(), graph.stages.last().unwrap()];
    [first.name.clone(), last.name.clone()]
}

/// Steps with other names for the first and the last stage of a definition.
fn named(program: &Program, def: &str, steps: &str) -> String {
    let [first, last] = ends(program, def);
    steps.replace("FIRST", &first).replace("LAST", &last)
}

/// Why the last step of a text is refused.
fn refused(program: &Program, def: &str, steps: &str) -> String {
    let steps = named(program, def, steps);
    let line = steps.trim_end().lines().count();
    let error = text::apply(empty(program, def), &Source::new("steps", steps.clone())).unwrap_err().render();
    assert!(error.contains(&format!("steps:{line}:1")), "another step is refused: {error}");
    error
}

fn pictures() -> Vec<Vec<Value>> {
    let sizes = [(4, 10), (6, 18), (3, 3), (2, 2), (1, 1), (0, 5), (13, 29), (11, 8), (33, 5)];
    sizes.map(|(h, w)| vec![tensor(Scalar::F32, &[h, w], 3)]).to_vec()
}

const STRIPS: &str =
    "split LAST y 4\nreorder LAST yo yi c\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo\nparallel LAST yo";

/// Protects: windows of rows: fixed and clamped ones, those in one arm, and with two or half a new row an iteration; with whole
/// rows and tiles of them, two rows at once, unrolled ones, and columns of rows.
#[test]
fn windows_change_no_bit() {
    let program = read(WINDOWS);
    let all = [
        STRIPS,
        "split LAST y 4\nsplit LAST c 8\nreorder LAST yo co yi ci\nvectorize LAST ci\nparallel LAST yo\n\
         compute-at FIRST LAST yi\nstore-at FIRST LAST co\nsplit FIRST c 4\nvectorize FIRST ci",
        "split LAST y 8\nsplit LAST yi 2\nreorder LAST yo yio yii c\ncompute-at FIRST LAST yio\nstore-at FIRST LAST yo",
        "split LAST y 3\nreorder LAST yo yi c\nunroll LAST yi\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo",
        "split LAST c 3\nreorder LAST y co ci\ncompute-at FIRST LAST ci\nstore-at FIRST LAST y",
        "split LAST y 4\nsplit LAST c 4\nreorder LAST yo co yi ci\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo",
    ];
    for def in ["blur", "clamped", "bordered", "smaller", "larger", "around"] {
        for steps in all {
            // What is summed is inside of all loops but lanes.
            let steps = if def == "clamped" { steps.replace("yi ci\nvec", "yi k ci\nvec") } else { steps.to_string() };
            let steps = named(&program, def, &steps);
            check(&program, def, &scheduled(&program, def, &steps), &pictures());
        }
    }
}

/// Transcendental functions, and bytes taken, in the nest of a schedule.
fn counted(program: &Program, def: &str, schedule: &Schedule, args: &[Value]) -> (u64, u64) {
    let nest = lower(schedule, program.named(def)[0]).unwrap();
    let (_, tally) = count(&nest, args, &mut String::new()).unwrap().unwrap();
    (tally.transcendental, tally.bytes)
}

/// Protects: what windows are for: each element is computed once a strip, in memory for as many rows as are read at once.
#[test]
fn windows_compute_nothing_twice() {
    let program = read(WINDOWS);
    let (h, w, strip) = (34_u64, 9_u64, 16_u64);
    let args = [tensor(Scalar::F32, &[h as usize, w as usize], 1)];
    // Elements of a row, rows that strips read, strips, and rows that are read at once. The last strip begins so early that it is
    // whole, where the clamps leave out the rows beyond the ends.
    let cases =
        [("blur", w - 2, 2 * (strip + 2), 2, 3), ("clamped", w - 1, (strip + 2) + (strip + 4) + (strip + 2), 3, 5)];
    for (def, row, rows, strips, ring) in cases {
        let steps = STRIPS.replace(" 4\n", " 16\n").replace("store-at FIRST LAST yo\n", "");
        let again = scheduled(&program, def, &named(&program, def, &steps));
        let kept = scheduled(&program, def, &named(&program, def, &format!("{steps}\nstore-at FIRST LAST yo")));
        let ((once, bytes), (often, _)) = (counted(&program, def, &kept, &args), counted(&program, def, &again, &args));
        let outputs = if def == "blur" { (h - 2) * (w - 2) } else { h * w };
        assert_eq!(once, rows * row, "{def}: rows are computed twice");
        assert_eq!(bytes, 4 * (outputs + strips * ring * row), "{def}: memory is no ring of {ring} rows");
        assert!(often > 2 * once, "{def}: {once} with windows, {often} without");
    }
}

/// Protects: for stated sizes, a window between clamped rows and others has the length that sizes give it.
#[test]
fn windows_of_stated_sizes_are_rings() {
    let program = read(WINDOWS);
    let def = program.named("around")[0];
    let (h, w) = (48_u64, 9_u64);
    let args = [tensor(Scalar::F32, &[h as usize, w as usize], 1)];
    let steps = named(&program, "around", &STRIPS.replace(" 4\n", " 16\n"));
    let graph = empty(&program, "around").graph.as_ref().clone();
    let schedule = text::apply_for(graph, &incoming(def, &args), &Source::new("steps", steps)).unwrap();
    let (once, bytes) = counted(&program, "around", &schedule, &args);
    assert_eq!(once, (19 + 22 + 19) * w, "rows are computed twice");
    assert_eq!(bytes, 4 * (h * w + 3 * 7 * w), "memory is no ring of 7 rows");
}

/// Protects: stages that are kept and read each other, of which one window asks for more of another.
#[test]
fn windows_of_windows_change_no_bit() {
    let program = read(
        "(def chain (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
           (let ((first (build (tuple h w) (lam ((y : Integer) (c : Integer)) (exp (index (tuple y c) x)))))
                 (second (build (tuple h w) (lam ((y : Integer) (c : Integer))
                   (add (index (tuple (max 0 (sub y 1)) c) first) (index (tuple (min (sub h 1) (add y 1)) c) first)))))
                 (third (build (tuple h w) (lam ((y : Integer) (c : Integer))
                   (add (index (tuple (max 0 (sub y 2)) c) second) (index (tuple (min (sub h 1) (add y 1)) c) second))))))
             (build (tuple h w) (lam ((y : Integer) (c : Integer))
               (add (index (tuple (max 0 (sub y 1)) c) third) (index (tuple y c) first))))))",
    );
    let graph = empty(&program, "chain").graph;
    let last = graph.stages.last().unwrap().name.clone();
    let start = format!("split {last} y 8\nparallel {last} yo\n");
    let at = |p: &str| format!("compute-at {p} {last} yi\n");
    let kept = |p: &str| format!("store-at {p} {last} yo\n");
    let all: String = ["third", "second", "first"].map(at).concat();
    let each = ["first", "second", "third"];
    let some = |mask: usize| (0..3).filter(|k| mask & (1 << k) != 0).map(|k| kept(each[k])).collect::<String>();
    for mask in 0..8 {
        let schedule = scheduled(&program, "chain", &format!("{start}{all}{}", some(mask)));
        check(&program, "chain", &schedule, &pictures());
    }
}

/// Protects: a place where memory cannot be kept is refused with its reason.
#[test]
fn windows_that_do_not_move_on_are_refused() {
    let program = read(WINDOWS);
    let cases = [
        ("blur", "compute-root FIRST\nstore-at FIRST LAST y", "is computed in no loop of"),
        ("blur", "compute-at FIRST LAST y\nstore-at FIRST LAST y", "`y` of `LAST` is not around `y`"),
        ("blur", "compute-at FIRST LAST y\nstore-at FIRST LAST c", "`c` of `LAST` is not around `y`"),
        (
            "blur",
            "split LAST y 8\ncompute-at FIRST LAST yi\nparallel LAST yi\nstore-at FIRST LAST yo",
            "run on several threads, and cannot find what earlier ones computed of `FIRST`",
        ),
        (
            "blur",
            "split LAST y 8\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo\nparallel LAST yi",
            "run on several threads, and cannot find what earlier ones computed of `FIRST`",
        ),
        (
            "blur",
            "split LAST y 8\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo\nreorder LAST yo c yi\nreorder LAST c yi yo",
            "says how long",
        ),
        ("blur", "compute-at FIRST LAST c\nstore-at FIRST LAST y\nfuse LAST y c", "`FIRST` is computed in one of them"),
        ("blur", "compute-at FIRST LAST c\nstore-at FIRST LAST y\nreorder LAST c y", "which would not be around it"),
        ("pair", "split LAST i 2\nfuse-stages FIRST LAST ii\nstore-at FIRST LAST io", "is computed beside `LAST`"),
        ("column", "split LAST y 8\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo", "need the same of `FIRST`"),
        ("turned", "split LAST y 8\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo", "is not known to move on"),
        (
            "skewed",
            "split LAST y 8\ncompute-at FIRST LAST yi\nstore-at FIRST LAST yo",
            "more than one dimension of `FIRST`",
        ),
    ];
    for (def, steps, why) in cases {
        let (error, why) = (refused(&program, def, steps), named(&program, def, why));
        assert!(error.contains(&why), "{def} {steps}: {error}");
    }
}

const PLACES: &str = "
(def safe (Vec Float) ((v : (Vec Float)) (at : (Vec Integer)))
  (build (size at) (lam (i : Integer)
    (let (t (index (index i at) v)) (sumbuild 4 (lam (k : Integer) (mul t (to_float k))))))))
(def other (Vec Float) ((v : (Vec Float)) (at : (Vec Integer)))
  (let (t (build (size at) (lam (i : Integer) (index (index i at) v))))
    (build (size at) (lam (i : Integer) (mul (index i t) 2.0)))))
(def moved (Vec Float) ((v : (Vec Float)) (at : (Vec Integer)))
  (let (t (build (size at) (lam (i : Integer) (index (index i at) v))))
    (build (sub (size at) 1) (lam (i : Integer) (mul (index (add i 1) t) (index i t))))))
(def armed (Vec Float) ((v : (Vec Float)) (at : (Vec Integer)))
  (let (t (build (size at) (lam (i : Integer) (index (index i at) v))))
    (build (size at) (lam (i : Integer) (if (gt i 1) (index (sub i 1) t) 0.0)))))
(def counted (Vec Float) ((at : (Vec Integer)) (n : Integer))
  (let (t (buildFromSparse n (size at) (lam (i : Integer) (tuple (max 0 (min (sub n 1) (index i at))) 1.0))))
    (build n (lam (i : Integer) (mul 2.0 (index i t))))))
(def stepped (Vec Float) (m : (Tensor 2 Float) (h w))
  (let (s (fold (lam ((s : (Vec Float)) (k : Integer)) (build w (lam (c : Integer) (add (index c s) (index (tuple k c) m)))))
                (constVec w 0.0) (build h (lam (k : Integer) k))))
    (build w (lam (c : Integer) (mul 2.0 (index c s))))))
(def summed (Vec Float) (m : (Tensor 2 Float) (h w))
  (let (s (build h (lam (y : Integer) (sumbuild w (lam (c : Integer) (index (tuple y c) m))))))
    (build h (lam (y : Integer) (mul 2.0 (index y s))))))
";

/// Protects: a stage that may fail at its own index is computed in a loop of a reader only where all of it is computed there:
/// where both are over the same loop of the program; and then it fails where the program does. Not where it is read at another
/// index, in one arm, or in another loop.
#[test]
fn a_stage_that_may_fail_is_computed_whole() {
    let program = read(PLACES);
    let at = "compute-at FIRST LAST i";
    let schedule = scheduled(&program, "safe", "compute-root t\ncompute-at t sum i");
    let ints =
        |each: &[i64]| Value::tensor(vec![each.len()], each.iter().map(|v| Value::Scalar(Lit::int(*v))).collect());
    let calls = [&[0, 2, 1][..], &[1, 3], &[-1, 0], &[0, 1 << 40], &[]];
    let calls: Vec<Vec<Value>> = calls.iter().map(|at| vec![tensor(Scalar::F64, &[3], 1), ints(at)]).collect();
    compare(&program, "safe", &schedule, &calls, false);
    for def in ["moved", "armed", "other"] {
        let error = refused(&program, def, at);
        let why = named(&program, def, "`FIRST` may fail, and in `i` of `LAST` not all of it would be computed");
        assert!(error.contains(&why), "{error}");
    }
}

/// Protects: each reason why a stage cannot be where it was asked to be is told.
#[test]
fn places_that_cannot_be_are_refused() {
    let program = read(PLACES);
    let cases = [
        ("safe", "compute-root nothing", "no stage `nothing`"),
        ("safe", "compute-at FIRST LAST j", "no loop `j`"),
        ("other", "compute-at LAST FIRST i", "`LAST` is part of the result, or a size, and computed whole"),
        ("other", "inline LAST", "`LAST` is part of the result, or a size, and computed whole"),
        ("safe", "inline FIRST", "`FIRST` may fail, and is computed whole"),
        ("counted", "inline FIRST", "`FIRST` is a scatter: it is computed, and then read"),
        ("stepped", "inline s", "`s` is a state of a recurrence: each needs the one before"),
        ("summed", "inline FIRST", "`FIRST` is a reduction: it is computed, and then read"),
    ];
    for (def, steps, why) in cases {
        let (error, why) = (refused(&program, def, steps), named(&program, def, why));
        assert!(error.contains(&why), "{def} {steps}: {error}");
    }
}

/// Protects: what only checks, for a view that others read, comes before all of them: it is fused with none. Else compiled code
/// would read out of bounds.
#[test]
fn checks_of_views_come_first() {
    let program = read("(def middle (Vec Float) ((from : Integer) (n : Integer) (v : (Vec Float))) (slice from n v))");
    for steps in ["fuse-stages LAST FIRST i", "fuse-stages FIRST LAST i"] {
        let error = refused(&program, "middle", steps);
        assert!(error.contains("checks what is read after it, and would not come before `result`"), "{error}");
    }
}
