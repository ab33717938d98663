//! What shares the loops of its reader, or is no loop of its own, by default: sums that stay in registers until all that is made
//! of them is done, dimensions of one index, elements of which most are never read, short rows, pixels that change places.

use crate::common::scheduled::{compare, empty, read, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::Schedule;

/// A product of each place with all filters, and what is made of that alone, or with its neighbour.
const LAYER: &str = "
(def f (Tensor 3 TYPE) ((x : (Tensor 3 TYPE) (h w c)) (k : (Tensor 2 TYPE) (c o)) (b : (Vec TYPE) o))
  (let ((sums (build (tuple h w o) (lam ((y : Integer) (z : Integer) (q : Integer))
          (sumbuild c (lam (r : Integer) (mul (index (tuple y z r) x) (index (tuple r q) k))))))))
    (build (tuple h w o) (lam ((y : Integer) (z : Integer) (q : Integer))
      (max (add (index (tuple y z q) sums) (index q b)) (mul (index q b) (index (tuple y PLACE q) sums)))))))
";

/// Three pixels in a row of each channel, by kernels of its own, and a product of that.
const APART: &str = "
(def f (Tensor 3 TYPE) ((x : (Tensor 3 TYPE) (h w c)) (k : (Tensor 3 TYPE) (n c m)) (p : (Tensor 3 TYPE) (c m o)))
  (let ((apart (build (tuple h (add 1 (sub w n)) c m)
          (lam ((y : Integer) (z : Integer) (r : Integer) (i : Integer))
            (sumbuild n (lam (l : Integer)
              (mul (index (tuple y (add z l) r) x) (index (tuple l r i) k))))))))
    (build (tuple h (add 1 (sub w n)) o) (lam ((y : Integer) (z : Integer) (q : Integer))
      (max ZERO (sumbuild (tuple c m) (lam ((r : Integer) (i : Integer))
        (mul (index (tuple y z r i) apart) (index (tuple r i q) p)))))))))
";

/// A stack of pictures, of which each pixel wants two that data decide.
const STACK: &str = "
(def f (Tensor 2 TYPE) ((x : (Tensor 2 TYPE) (h w)) (n : Integer))
  (let ((stack (build (tuple n h w) (lam ((k : Integer) (y : Integer) (z : Integer))
          (exp (mul (cast TYPE k) (index (tuple y z) x))))))
        (blurred (build (tuple n h w) (lam ((k : Integer) (y : Integer) (z : Integer))
          (add (index (tuple k y z) stack) (index (tuple k y (max 0 (sub z 1))) stack)))))
        (away (build (tuple n h w) (lam ((k : Integer) (y : Integer) (z : Integer))
          (sub (exp (index (tuple k y z) stack)) (index (tuple k y z) blurred))))))
    (build (tuple h w) (lam ((y : Integer) (z : Integer))
      (let (k (max 0 (min (sub n 2) (cast Integer (mul (cast TYPE n) (index (tuple y z) x))))))
        (sub (index (tuple k y z) away) (index (tuple (add k 1) y z) away)))))))
";

/// Rows of a few channels, each of which is made of all others; and pixels that change places.
const PIXELS: &str = "
(def f (Tuple (Tensor 3 TYPE) (Tensor 3 TYPE)) (x : (Tensor 3 TYPE) (h w c))
  (tuple
    (build (tuple h w c) (lam ((y : Integer) (z : Integer) (q : Integer))
      (mul (index (tuple (max 0 (sub y 1)) (div z 2) q) x) (index (tuple y z 0) x))))
    (build (tuple w h c) (lam ((z : Integer) (y : Integer) (q : Integer)) (index (tuple y z q) x)))))
";

/// Weighted pixels around each place, shifted by as many rows as columns; borders repeat.
const WINDOW: &str = "
(def f (Tensor 3 TYPE) ((x : (Tensor 3 TYPE) (h w c)) (v : (Tensor 3 TYPE) (n h w)))
  (build (tuple h w c) (lam ((y : Integer) (z : Integer) (q : Integer))
    (sumbuild n (lam (k : Integer)
      (mul (index (tuple k y z) v)
           (index (tuple (max 0 (min (sub h 1) (add y (sub k 9)))) (max 0 (min (sub w 1) (add z (sub k 3)))) q) x)))))))
";

/// What is made of each element of a row, what is greater of its pairs, and sums of neighbours.
const ROWS: &str = "
(def f (Tuple (Tensor 2 TYPE) (Tensor 2 TYPE) (Tensor 2 TYPE)) (x : (Tensor 2 TYPE) (n m))
  (tuple
    (build (tuple n m) (lam ((y : Integer) (z : Integer)) (exp (mul (index (tuple y z) x) (index (tuple y z) x)))))
    (build (tuple n (div m 2)) (lam ((y : Integer) (z : Integer))
      (reduce max 2 (lam (i : Integer) (index (tuple y (add (mul 2 z) i)) x)))))
    (build (tuple n (max 0 (sub m 2))) (lam ((y : Integer) (z : Integer))
      (sumbuild 3 (lam (i : Integer) (mul (index (tuple y i) x) (index (tuple y (add z i)) x))))))))
";

/// The default schedule of a program for arguments and vectors of 32 bytes, after those for all lengths of vectors were held
/// against the interpreter.
fn held(text: &str, ty: Scalar, args: &[Value]) -> Schedule {
    let (name, zero) = if ty == Scalar::F32 { ("Float32", "0.0f32") } else { ("Float", "0.0") };
    let program = read(&text.replace("TYPE", name).replace("ZERO", zero));
    let sizes = daedal::tune::example::incoming(program.named("f")[0], args);
    let graph = empty(&program, "f").graph.only_for(&sizes);
    let made = |vector_bytes| {
        daedal::schedule::default(graph.clone(), &Machine { vector_bytes, threads: 2, ..Machine::host() })
    };
    for vector_bytes in [16, 32, 64] {
        // Of nothing, sizes of what is never made are asked of the reference.
        compare(&program, "f", &made(vector_bytes), &[args.to_vec()], args.iter().any(is_empty));
    }
    made(32)
}

fn is_empty(arg: &Value) -> bool {
    matches!(arg, Value::Tensor(t) if t.is_empty())
}

/// Whether a stage is computed in the loops of another.
fn inside(s: &Schedule, stage: &str) -> bool {
    let shown = s.to_string();
    shown.lines().any(|l| l.starts_with(' ') && l.trim_start().starts_with(&format!("{stage}[")))
}

/// Protects: a sum stays in registers until what is made of it at its own place is done, where a tile of both fits; sums of
/// which a neighbour is read, too, are computed whole. All have the interpreter's bits, at sizes that tiles divide or not.
#[test]
fn sums_stay_until_all_is_made_of_them() {
    const SIZES: [[usize; 4]; 6] =
        [[2, 12, 30, 16], [3, 13, 41, 37], [1, 7, 26, 18], [2, 3, 30, 5], [2, 8, 3, 9], [0, 9, 30, 16]];
    for (ty, sizes) in [(Scalar::F32, &SIZES[..]), (Scalar::F64, &SIZES[..2])] {
        for [h, w, c, o] in sizes.iter().copied() {
            let fits = w >= 6 && c > 25 && o >= 16;
            for place in ["z", "(max 0 (sub z 1))"].into_iter().take(if fits { 2 } else { 1 }) {
                let args = [tensor(ty, &[h, w, c], 1), tensor(ty, &[c, o], 2), tensor(ty, &[o], 3)];
                let s = held(&LAYER.replace("PLACE", place), ty, &args);
                assert!(!fits || inside(&s, "sums") == (place == "z"), "{ty:?} {h} {w} {c} {o} {place}\n{s}");
            }
        }
    }
}

/// Protects: a dimension of one index is one with that before it, so that vectors are of channels, and what a sum in registers
/// reads is computed for rows of its tiles.
#[test]
fn single_images_of_channels_run_in_vectors_of_channels() {
    for ty in [Scalar::F64, Scalar::F32] {
        for [h, w, c, m, o] in
            [[2, 14, 32, 1, 16], [3, 9, 35, 1, 17], [2, 14, 16, 2, 16], [1, 5, 1, 1, 1], [2, 20, 40, 1, 3]]
        {
            let args = [tensor(ty, &[h, w, c], 1), tensor(ty, &[3, c, m], 2), tensor(ty, &[c, m, o], 3)];
            let s = held(APART, ty, &args);
            let joined = s.steps.iter().any(|step| step.to_string().starts_with("fuse apart"));
            assert_eq!(joined, m == 1 && [h, w - 2, c] != [1, 1, 1], "{ty:?} {h} {w} {c} {m} {o}\n{s}");
            assert!(m > 1 || w < 8 || o < 16 || inside(&s, "apart"), "{ty:?} {h} {w} {c} {m} {o}\n{s}");
        }
    }
}

/// Protects: elements of which most are never read are computed where they are, and what only these read with them; others
/// stay, whatever is read of them.
#[test]
fn what_is_hardly_read_is_computed_where_it_is() {
    for ty in [Scalar::F64, Scalar::F32] {
        for (n, [h, w]) in [(8, [5, 19]), (9, [3, 40]), (7, [4, 9]), (2, [6, 6]), (8, [0, 4])] {
            let s = held(STACK, ty, &[tensor(ty, &[h, w], 7), Value::Scalar(Lit::of(Scalar::I64, n as f64))]);
            let inlined = |of: &str| s.steps.iter().any(|step| step.to_string() == format!("inline {of}"));
            let hardly = n >= 8 && h > 0;
            assert_eq!(inlined("away"), hardly, "{ty:?} {n} {h} {w}\n{s}");
            assert!(!inlined("stack"), "{s}");
        }
    }
}

/// Protects: rows that are half of a vector, or a quarter, run in vectors as short as they are, but none shorter than 16 bytes; pixels
/// that change places move in blocks, with all their channels.
#[test]
fn short_rows_fill_vectors_and_pixels_move_in_blocks() {
    for ty in [Scalar::F64, Scalar::F32] {
        for [h, w, c] in [[3, 40, 4], [40, 37, 2], [33, 50, 3], [18, 35, 1], [4, 5, 6], [2, 3, 12], [0, 3, 4]] {
            let s = held(PIXELS, ty, &[tensor(ty, &[h, w, c], 9)]);
            let (steps, lanes) =
                (s.steps.iter().map(ToString::to_string).collect::<Vec<_>>(), 32 / ty.bytes() as usize);
            let narrow = (16 / ty.bytes() as usize..lanes).contains(&c) && c > 1 && c.is_power_of_two();
            let cut = format!("split tensor q {c}");
            assert!(!narrow || steps.contains(&cut), "{ty:?} {h} {w} {c}\n{s}");
            let blocks = steps.iter().any(|step| step.starts_with("reorder result zo yo"));
            assert!(c >= lanes || c == 1 || h.min(w) < 32 || blocks, "{ty:?} {h} {w} {c}\n{}", steps.join("\n"));
        }
    }
}

/// How many lanes the widest vectors have that read every other element.
fn widest_pairs(nest: &str) -> Option<usize> {
    let lanes = |l: &str| l.split(" by 2 x").nth(1)?.split(')').next()?.parse().ok();
    nest.lines().filter_map(lanes).max()
}

/// Protects: rows that are shorter than a vector are two vectors of at least four lanes that overlap, by the default schedule and
/// in loops of which it says nothing.
#[test]
fn short_rows_are_vectors_that_overlap() {
    let machine = Machine { vector_bytes: 64, threads: 2, ..Machine::host() };
    for (ty, name, full) in [(Scalar::F32, "Float32", 16), (Scalar::F64, "Float", 8)] {
        let program = read(&ROWS.replace("TYPE", name));
        for row in [3, 6, 9, 14, 17, 28] {
            let args = [tensor(ty, &[3, row], 17)];
            held(ROWS, ty, &args);
            let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
            let s = daedal::schedule::default(empty(&program, "f").graph.only_for(&sizes), &machine);
            let lanes = |row: usize| if (4..full).contains(&row) { 1 << row.ilog2() } else { full };
            let steps: Vec<String> = s.steps.iter().map(ToString::to_string).collect();
            let sums = row - 2;
            let cut = ["z", "zi"].map(|of| format!("split sum_2 {of} {}", lanes(sums)));
            assert!(sums < 4 || cut.iter().any(|c| steps.contains(c)), "{ty:?} {row}\n{}", steps.join("\n"));
            let nest = native::scheduled_nest(program.named("f")[0], &s, &machine).unwrap().to_string();
            let pairs = row / 2;
            let want = (pairs >= 4).then(|| lanes(pairs).min(full));
            assert_eq!(widest_pairs(&nest), want, "{ty:?} {row}\n{nest}");
        }
    }
}

/// Protects: long sums at places of few channels run over rows of places, where these are long and fit the nearest cache, with
/// the interpreter's bits at the clamped ends; channels that fill half a vector are lanes.
#[test]
fn sums_of_few_channels_run_over_rows_of_places() {
    for ([h, w, c, n], rows) in [
        ([3, 40, 3, 30], true),
        ([2, 19, 2, 41], true),
        ([3, 40, 4, 30], false),
        ([2, 11, 3, 30], false),
        ([2, 3000, 3, 26], false),
        ([4, 33, 3, 0], false),
        ([0, 40, 3, 30], true),
    ] {
        let s = held(WINDOW, Scalar::F32, &[tensor(Scalar::F32, &[h, w, c], 11), tensor(Scalar::F32, &[n, h, w], 12)]);
        let runs = s.steps.iter().any(|step| step.to_string().ends_with(" y k q z"));
        assert_eq!(runs, rows, "{h} {w} {c} {n}\n{s}");
    }
}

/// Sums of which data say, one by one, whether they are asked for: the slope of a layer of rectifiers.
const RECTIFIED: &str = "
(def f (Tensor 2 TYPE) ((x : (Tensor 2 TYPE) (n d)) (w : (Tensor 2 TYPE) (d k)) (t : (Tensor 2 TYPE) (n k)))
  (build (tuple n k) (lam ((i : Integer) (j : Integer))
    (if (lt (index (tuple i j) t) ZERO)
        ZERO
        (sumbuild d (lam (l : Integer) (mul (index (tuple i l) x) (index (tuple l j) w))))))))
";

/// Protects: a product whose elements are asked for by data is computed whole, in tiles, at sizes that fill them and that do not,
/// with the interpreter's bits; one that is asked for by row stays in its arm.
#[test]
fn sums_that_data_ask_for_are_computed_whole() {
    for (ty, name, zero) in [(Scalar::F64, "Float", "0.0"), (Scalar::F32, "Float32", "0.0f32")] {
        for by_row in [false, true] {
            let text = if by_row {
                RECTIFIED.replace("(lt (index (tuple i j) t)", "(lt (index (tuple i 0) t)")
            } else {
                RECTIFIED.into()
            };
            let program = read(&text.replace("TYPE", name).replace("ZERO", zero));
            for [n, d, k] in [[20, 30, 40], [7, 64, 9], [1, 26, 1], [33, 31, 100]] {
                let args = [tensor(ty, &[n, d], 1), tensor(ty, &[d, k], 2), tensor(ty, &[n, k], 3)];
                let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
                let graph = empty(&program, "f").graph.only_for(&sizes);
                for vector_bytes in [16, 32, 64] {
                    let s = daedal::schedule::default(graph.clone(), &Machine { vector_bytes, ..Machine::host() });
                    let in_arms = s.graph.stages.iter().filter(|s| s.when.is_some()).count();
                    assert!(k == 1 || in_arms == usize::from(by_row), "{by_row} {n} {d} {k}\n{s}");
                    compare(&program, "f", &s, &[args.to_vec()], false);
                }
            }
        }
    }
}

/// Protects: elements that change rows and columns are stored in vectors where rows are long, and in blocks where they are
/// short, with the interpreter's bits for elements of every width.
#[test]
fn what_is_turned_is_stored_in_vectors() {
    for (name, ty) in [("Float", Scalar::F64), ("Float32", Scalar::F32), ("UInt8", Scalar::U8)] {
        let program = read(&format!(
            "(def f (Tensor 3 {name}) (x : (Tensor 3 {name}) (n h w))
               (build (tuple n w h) (lam ((k : Integer) (z : Integer) (y : Integer)) (index (tuple k y z) x))))"
        ));
        for [n, h, w] in [[1, 150, 3], [2, 130, 37], [1, 5, 300], [2, 0, 4]] {
            let args = vec![tensor(ty, &[n, h, w], 1)];
            let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
            let graph = empty(&program, "f").graph.only_for(&sizes);
            let s = daedal::schedule::default(graph, &Machine { vector_bytes: 32, ..Machine::host() });
            compare(&program, "f", &s, &[args], h == 0);
            let lanes = s.steps.iter().any(|s| s.to_string().starts_with("vectorize"));
            assert_eq!(lanes, h > 128, "{:#?}", s.steps);
        }
    }
}
