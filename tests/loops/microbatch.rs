//! Sums over points that are added up batch by batch, beside each other, by hand and by default.

use crate::common::scheduled::{check, compare, empty, read, scheduled, tensor};
use crate::common::schedules::{disagreement, random_after};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::Scalar;
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::plan::Kind;
use daedal::schedule::{Schedule, Step, text};

/// Rows of a layer at each point, and three sums of them: a number, one for each unit, one for each weight.
const LAYER: &str = "(def f (Tuple Float (Tensor 2 Float) (Vec Float)) ((x : (Tensor 2 Float) (n d)) (w : (Tensor 2 Float) (k d)))
  (let (h (build (tuple n k) (lam ((i : Integer) (j : Integer))
           (tanh (sumbuild d (lam (l : Integer) (mul (index (tuple i l) x) (index (tuple j l) w))))))))
    (tuple (sumbuild n (lam (i : Integer) (sumbuild k (lam (j : Integer) (index (tuple i j) h)))))
           (build (tuple k d) (lam ((j : Integer) (l : Integer))
             (sumbuild n (lam (i : Integer) (mul (index (tuple i j) h) (index (tuple i l) x))))))
           (build k (lam (j : Integer) (sumbuild n (lam (i : Integer) (mul (index (tuple i j) h) (index (tuple i j) h)))))))))";

/// Its stages in one loop over parts of the points.
const PARTS: &str = "split sum_3 i 8
fuse-stages sum_4 sum_3 io
fuse-stages sum_5 sum_3 io
compute-at sum_2 sum_3 io
compute-at h sum_3 io
compute-at sum sum_3 io";

/// What a mixture's gradient is made of: distances by a triangle, their squares, shares of each point, and sums of all that.
const MIXTURE: &str = "(def f (Tuple Float (Vec TYPE) (Tensor 2 TYPE) (Tensor 3 TYPE) (Vec TYPE))
    ((x : (Tensor 2 TYPE) (n d)) (c : (Tensor 2 TYPE) (k d)) (q : (Tensor 3 TYPE) (k d d)))
  (let ((away (build (tuple n k d) (lam ((i : Integer) (j : Integer) (l : Integer))
               (sub (index (tuple i l) x) (index (tuple j l) c)))))
        (turned (build (tuple n k d) (lam ((i : Integer) (j : Integer) (l : Integer))
               (add (index (tuple i j l) away) (sumbuild l (lam (m : Integer)
                 (mul (index (tuple j l m) q) (index (tuple i j m) away))))))))
        (far (build (tuple n k) (lam ((i : Integer) (j : Integer))
               (sumbuild d (lam (l : Integer) (mul (index (tuple i j l) turned) (index (tuple i j l) turned)))))))
        (least (build n (lam (i : Integer) (reduce min k (lam (j : Integer) (index (tuple i j) far))))))
        (share (build (tuple n k) (lam ((i : Integer) (j : Integer))
               (exp (sub (index i least) (index (tuple i j) far))))))
        (all (build n (lam (i : Integer) (sumbuild k (lam (j : Integer) (index (tuple i j) share))))))
        (pull (build (tuple n k d) (lam ((i : Integer) (j : Integer) (l : Integer))
               (mul (div (index (tuple i j) share) (index i all)) (index (tuple i j l) turned))))))
    (tuple (sumbuild n (lam (i : Integer) (cast Float (sub (log (index i all)) (index i least)))))
           (build k (lam (j : Integer) (sumbuild n (lam (i : Integer) (index (tuple i j) share)))))
           (build (tuple k d) (lam ((j : Integer) (l : Integer)) (sumbuild n (lam (i : Integer) (index (tuple i j l) pull)))))
           (build (tuple k d d) (lam ((j : Integer) (l : Integer) (m : Integer))
             (if (lt m l)
                 (sumbuild n (lam (i : Integer) (mul (index (tuple i j l) pull) (index (tuple i j m) away))))
                 ZERO)))
           least)))";

fn args(ty: Scalar, [n, d, k]: [usize; 3]) -> Vec<Value> {
    vec![tensor(ty, &[n, d], 1), tensor(ty, &[k, d], 2), tensor(ty, &[k, d, d], 3)]
}

/// Protects: sums over points that are added up part by part have their bits at all sizes, those smaller than a part included;
/// the same where rows are vectors with a rest, and where a sum of many elements has the loop over parts.
#[test]
fn sums_are_added_up_part_by_part() {
    let program = read(LAYER);
    let vectors = "split sum_4 l 4\nsplit sum_4 j 2\nreorder sum_4 jo lo i ji li\nvectorize sum_4 li\nunroll sum_4 ji
split sum_5 j 4\nreorder sum_5 jo i ji\nvectorize sum_5 ji\nlayout h j i\nsplit h i 4\nreorder h io j ii\nvectorize h ii";
    for steps in [PARTS.to_string(), format!("{PARTS}\n{vectors}"), LARGEST.to_string()] {
        let s = scheduled(&program, "f", &steps);
        let sizes = [[0, 3, 2], [1, 1, 1], [5, 3, 2], [8, 4, 4], [9, 5, 3], [16, 2, 7], [37, 6, 5]];
        let case = |[n, d, k]: [usize; 3]| vec![tensor(Scalar::F64, &[n, d], 7), tensor(Scalar::F64, &[k, d], 8)];
        check(&program, "f", &s, &sizes.map(case));
    }
}

/// Protects: a sum that takes parts around loops over its elements takes all of each, also where it is computed for one element.
#[test]
fn sums_in_parts_take_all_of_them() {
    let program = read(LAYER);
    for steps in ["split sum l 2\nreorder sum lo i j li", "split sum l 2\nreorder sum lo i j li\ncompute-root sum"] {
        let s = scheduled(&program, "f", steps);
        let case = |[n, d, k]: [usize; 3]| vec![tensor(Scalar::F64, &[n, d], 7), tensor(Scalar::F64, &[k, d], 8)];
        check(&program, "f", &s, &[[3, 5, 2], [1, 1, 1], [4, 8, 3], [2, 0, 2]].map(case));
    }
}

/// Sums beside the one of most elements.
const LARGEST: &str = "split sum_4 i 8\nsplit sum_4 j 2\nreorder sum_4 io jo l ii ji\nfuse-stages sum_3 sum_4 io
fuse-stages sum_5 sum_4 io\ncompute-at sum_2 sum_4 io\ncompute-at h sum_4 io\ncompute-at sum sum_4 io";

/// Protects: whatever other steps come after, sums that collect keep their bits.
#[test]
fn random_steps_change_no_bit() {
    let program = read(LAYER);
    let def = program.named("f")[0];
    let mut collecting = 0;
    for seed in 0..300 {
        let begun = scheduled(&program, "f", [PARTS, LARGEST][seed as usize % 2]);
        let s = random_after(begun, seed, 16);
        collecting += s.graph.ids().filter(|p| s.collects(*p)).count();
        let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap_or_else(|d| panic!("{d}\n{s}"));
        for [n, d, k] in [[9, 5, 3], [16, 2, 7], [3, 1, 2]] {
            let args = vec![tensor(Scalar::F64, &[n, d], 7), tensor(Scalar::F64, &[k, d], 8)];
            if let (_, Some(d)) = disagreement(&program, def, &args, &nest) {
                panic!("{seed}: {d}\n{s}\n{nest}");
            }
        }
    }
    assert!(collecting >= 300, "{collecting}");
}

/// Protects: what reads a sum before it is whole, or would begin it with what is not there, is refused.
#[test]
fn sums_that_are_read_too_early_are_refused() {
    let refused = |text: &str, steps: &str, why: &str| {
        let error = text::apply(empty(&read(text), "f"), &Source::new("test.sched", steps)).map(|s| s.to_string());
        assert!(error.as_ref().is_err_and(|d| d.message.contains(why)), "{steps}: {error:?}");
    };
    let apart = "(def f (Tuple Float Float) ((x : (Vec Float) n) (y : (Vec Float) m))
      (tuple (sumbuild n (lam (i : Integer) (index i x))) (sumbuild m (lam (i : Integer) (index i y)))))";
    refused(apart, "fuse-stages sum sum_2 i", "different lengths");
    let normed = "(def f (Tuple Float Float) (x : (Vec Float) n)
      (let ((s (sumbuild n (lam (i : Integer) (index i x)))))
        (tuple s (sumbuild n (lam (i : Integer) (mul s (index i x)))))))";
    refused(normed, "fuse-stages s sum i", "`sum` reads `s` in loops of `sum`, and it is not whole before their end");
    refused(normed, "fuse-stages sum s i", "before what it reads, or after what reads it");
}

/// Protects: by default, tables of points of which sums are read are there for a batch at a time where they would leave the near
/// cache, at sizes that fill batches, vectors and tiles and that do not, with the interpreter's bits, for all lengths of vectors.
#[test]
fn tables_of_points_are_there_for_a_batch() {
    for ty in [Scalar::F64, Scalar::F32] {
        let (name, zero) = if ty == Scalar::F32 { ("Float32", "0.0f32") } else { ("Float", "0.0") };
        let program = read(&MIXTURE.replace("TYPE", name).replace("ZERO", zero));
        for size in [[300, 3, 4], [257, 10, 3], [256, 17, 2], [1000, 5, 1], [290, 1, 6], [5, 3, 2], [0, 3, 2]] {
            let args = args(ty, size);
            let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
            let graph = empty(&program, "f").graph.only_for(&sizes);
            for vector_bytes in [16, 32, 64] {
                let caches = [4 << 10, 32 << 10, 1 << 20];
                let s = daedal::schedule::default(graph.clone(), &Machine { vector_bytes, threads: 1, caches });
                let batched = |s: &Schedule| s.steps.iter().any(|s| matches!(s, Step::FuseStages { .. }));
                assert!(size[0] < 256 || size[2] == 1 || batched(&s), "{ty:?} {size:?}\n{s}");
                compare(&program, "f", &s, std::slice::from_ref(&args), sizes.contains(&0.0));
            }
        }
    }
}

/// Protects: what is much work for each batch of points has parallel loops around it, for sizes where it is, and what is little
/// has none; such loops keep the interpreter's bits on two threads.
#[test]
fn threads_share_what_is_much_work_for_a_batch() {
    let program = read(&MIXTURE.replace("TYPE", "Float").replace("ZERO", "0.0"));
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 512 << 10, 16 << 20] };
    let made = |size| {
        let sizes = daedal::tune::example::incoming(program.named("f")[0], &args(Scalar::F64, size));
        daedal::schedule::default(empty(&program, "f").graph.only_for(&sizes), &machine)
    };
    let parallel = |s: &Schedule| {
        let inside = |stage: &str| {
            let at = |step: &Step| matches!(step, Step::ComputeAt { stage: of, .. } if of == stage);
            s.steps.iter().any(|step| at(step) || matches!(step, Step::FuseStages { stage: of, .. } if of == stage))
        };
        let runs = |step: &Step| matches!(step, Step::Run { stage, kind: Kind::Parallel, .. } if inside(stage));
        s.steps.iter().any(runs)
    };
    assert!(parallel(&made([1000, 64, 25])));
    assert!(!parallel(&made([1000, 10, 5])));
    let by_hand = format!("{PARTS}\nparallel h i\nparallel sum_5 j\nparallel sum_4 j");
    let case = |[n, d, k]: [usize; 3]| vec![tensor(Scalar::F64, &[n, d], 7), tensor(Scalar::F64, &[k, d], 8)];
    let s = scheduled(&read(LAYER), "f", &by_hand);
    check(&read(LAYER), "f", &s, &[[37, 6, 5], [8, 4, 4], [1, 1, 1], [0, 3, 2]].map(case));
}
