//! Reductions in lanes of what they have in common: batches of points, whose tables stay in the nearest cache, and sums of sums.

use crate::common::scheduled::{compare, empty, read, tensor};
use daedal::eval::Value;
use daedal::ir::Scalar;
use daedal::machine::Machine;
use daedal::schedule::Schedule;

/// The least distance of each point to some centres, and where it is; all of them are summed.
const NEAREST: &str = "
(def f (Tuple Float (Vec Float) (Vec Integer)) ((x : (Tensor 2 TYPE) (n d)) (c : (Tensor 2 TYPE) (k d)))
  (let ((far (build (tuple n k) (lam ((i : Integer) (j : Integer))
               (sumbuild d (lam (l : Integer)
                 (let (v (sub (index (tuple i l) x) (index (tuple j l) c))) (mul v v)))))))
        (least (build n (lam (i : Integer) (reduce min k (lam (j : Integer) (index (tuple i j) far)))))))
    (tuple (sumbuild n (lam (i : Integer) (cast Float (index i least))))
           (build n (lam (i : Integer) (cast Float (index i least))))
           (build n (lam (i : Integer) (argmin k (lam (j : Integer) (index (tuple i j) far))))))))
";

/// What a convolution's derivative by its kernels sums: for each image, for each row, along each row; where there is a pixel.
const NESTED: &str = "
(def f (Tensor 4 TYPE) ((y : (Tensor 4 TYPE) (b o h w)) (x : (Tensor 4 TYPE) (b p H W)))
  (build (tuple o p (add 1 (sub H h)) (add 1 (sub W w)))
    (lam ((i : Integer) (j : Integer) (k : Integer) (l : Integer))
      (sumbuild b (lam (m : Integer)
        (sumbuild h (lam (r : Integer)
          (if (gte (add r k) 1)
            (sumbuild w (lam (q : Integer)
              (mul (index (tuple m i r q) y) (index (tuple m j (add k r) (add l q)) x))))
            ZERO))))))))
";

/// Images of a few columns, so that rows do not fill vectors.
const NARROW: &str = "
(def f (Tensor 4 TYPE) ((x : (Tensor 4 TYPE) (b p H W)) (k : (Tensor 4 TYPE) (o p h w)))
  (build (tuple b o (add 1 (sub H h)) (add 1 (sub W w)))
    (lam ((i : Integer) (j : Integer) (y : Integer) (z : Integer))
      (sumbuild (tuple p h w) (lam ((q : Integer) (r : Integer) (s : Integer))
        (mul (index (tuple j q r s) k) (index (tuple i q (add y r) (add z s)) x)))))))
";

/// The default schedule of a program for arguments and vectors of 64 bytes, after those for all lengths of vectors were held
/// against the interpreter.
fn held(text: &str, ty: Scalar, args: &[Value]) -> Schedule {
    let (name, zero) = if ty == Scalar::F32 { ("Float32", "0.0f32") } else { ("Float", "0.0") };
    let program = read(&text.replace("TYPE", name).replace("ZERO", zero));
    let sizes = daedal::tune::example::incoming(program.named("f")[0], args);
    let graph = empty(&program, "f").graph.only_for(&sizes);
    let made = |vector_bytes| daedal::schedule::default(graph.clone(), &Machine { vector_bytes, ..Machine::host() });
    for vector_bytes in [16, 32, 64] {
        // Of nothing, sizes of what is never made are asked of the reference.
        compare(&program, "f", &made(vector_bytes), &[args.to_vec()], sizes.contains(&0.0));
    }
    made(64)
}

/// Whether a stage is computed in the loops of another.
fn inside(s: &Schedule, stage: &str) -> bool {
    let shown = s.to_string();
    shown.lines().any(|l| l.starts_with(' ') && l.trim_start().starts_with(&format!("{stage}[")))
}

/// Protects: distances of a batch of points are never a table of all points, at sizes that fill batches and that do not, with
/// the interpreter's bits; of few points they may be.
#[test]
fn tables_of_points_stay_in_batches() {
    for ty in [Scalar::F64, Scalar::F32] {
        for [n, d, k] in
            [[128, 3, 5], [131, 16, 9], [300, 2, 2], [1000, 5, 1], [257, 1, 4], [5, 3, 2], [0, 3, 2], [140, 0, 3]]
        {
            let s = held(NEAREST, ty, &[tensor(ty, &[n, d], 1), tensor(ty, &[k, d], 2)]);
            let batched = n >= 256 && d > 1 && k > 1;
            assert!(!batched || inside(&s, "far"), "{ty:?} {n} {d} {k}\n{s}");
        }
    }
}

/// Protects: sums of sums run in the lanes of one dimension, with the interpreter's bits, where vectors are full and where they
/// are not, and of nothing.
#[test]
fn sums_of_sums_run_in_lanes() {
    for ty in [Scalar::F64, Scalar::F32] {
        for [b, o, p, h, w, k, l] in [
            [3, 16, 4, 5, 6, 3, 2],
            [2, 33, 1, 2, 9, 1, 1],
            [1, 5, 20, 3, 3, 2, 4],
            [2, 3, 2, 4, 4, 2, 2],
            [0, 16, 2, 3, 3, 1, 1],
        ] {
            let y = tensor(ty, &[b, o, h, w], 3);
            let x = tensor(ty, &[b, p, h + k - 1, w + l - 1], 4);
            let s = held(NESTED, ty, &[y, x]);
            let shown = s.to_string();
            assert!(o.max(p) < 16 || b == 0 || shown.contains(", vector"), "{ty:?} {b} {o}\n{s}");
        }
    }
}

/// Protects: products whose rows do not fill a vector run in lanes of another dimension.
#[test]
fn narrow_products_run_in_other_lanes() {
    for ty in [Scalar::F64, Scalar::F32] {
        for [b, o, p, w] in [[2, 16, 3, 6], [17, 2, 5, 4], [1, 40, 2, 5], [2, 3, 2, 4]] {
            let s = held(NARROW, ty, &[tensor(ty, &[b, p, 6, w], 5), tensor(ty, &[o, p, 3, 3], 6)]);
            assert!(o.max(b) < 16 || s.to_string().contains(", vector"), "{s}");
        }
    }
}
