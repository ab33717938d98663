//! What is read where data say, again for each index of other loops, is gathered once.

use crate::common::scheduled::{check, empty, read, stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::tune::example::incoming;

/// Rows of a table, picked by words, times a matrix; each row is scaled.
const ROWS: &str =
    "(def f (Tensor 2 Float) ((e : (Tensor 2 Float) (v d)) (w : (Tensor 2 Float) (d k)) (word : (Vec Integer) n))
  (build (tuple n k) (lam ((i : Integer) (j : Integer))
    (sumbuild d (lam (l : Integer) (mul (index (tuple (index i word) l) e) (index (tuple l j) w)))))))";

fn words(n: usize, v: usize, wrong: Option<i64>) -> Value {
    let word = |i: usize| if i == n / 2 { wrong } else { None }.unwrap_or((i * 7 % v) as i64);
    Value::tensor(vec![n], (0..n).map(|i| Value::Scalar(Lit::int(word(i)))).collect())
}

fn args([v, d, k, n]: [usize; 4], wrong: Option<i64>) -> Vec<Value> {
    vec![tensor(Scalar::F64, &[v, d], 1), tensor(Scalar::F64, &[d, k], 2), words(n, v, wrong)]
}

/// Protects: rows that a product reads again and again are gathered once, with the bits of the program and its failures, where
/// an index is none.
#[test]
fn rows_are_gathered_once() {
    let program = read(ROWS);
    let def = program.named("f")[0];
    for size in [[9, 4, 8, 16], [30, 33, 17, 50], [2, 1, 40, 1], [5, 8, 9, 70]] {
        let cases = vec![args(size, None), args(size, Some(-1)), args(size, Some(size[0] as i64))];
        let graph = empty(&program, "f").graph.only_for(&incoming(def, &cases[0]));
        let shown = graph.to_string();
        assert!(shown.contains("gathered[") && shown.matches("check ").count() == 2, "{shown}");
        for vector_bytes in [16, 32, 64] {
            let s = daedal::schedule::default(graph.clone(), &Machine { vector_bytes, ..Machine::host() });
            check(&program, "f", &s, &cases);
        }
    }
}

/// Protects: what is read seldom, or where a condition says that there is something to read, is read where it is.
#[test]
fn others_are_read_where_they_are() {
    let few = stages(ROWS, &args([9, 4, 3, 16], None));
    assert!(!few.contains("gathered["), "{few}");
    let asked = ROWS.replace(
        "(index (tuple (index i word) l) e)",
        "(if (gte (index i word) 0) (index (tuple (index i word) l) e) 0.5)",
    );
    for wrong in [None, Some(-1)] {
        let shown = stages(&asked, &args([9, 4, 20, 16], wrong));
        assert!(!shown.contains("gathered["), "{shown}");
    }
}

/// Protects: an index that is divided first is no table's where nothing says that the divisor is not 0, and checks stay where some
/// of what they guard is read as it stands; failures are those of the program.
#[test]
fn what_guards_an_index_stays() {
    let numbers =
        |all: &[i64]| Value::tensor(vec![all.len()], all.iter().map(|v| Value::Scalar(Lit::int(*v))).collect());
    let by = "(def f (Tensor 2 Float) ((e : (Tensor 2 Float) (v d)) (w : (Tensor 2 Float) (d k)) (word : (Vec Integer) n) (by : (Vec Integer) n))
      (build (tuple n k) (lam ((i : Integer) (j : Integer))
        (sumbuild d (lam (l : Integer)
          (mul (index (tuple (div (index i word) (index i by)) l) e) (index (tuple l j) w)))))))";
    let arm = "(def f (Tensor 2 Float) ((e : (Tensor 2 Float) (v d)) (w : (Tensor 2 Float) (d k)) (word : (Vec Integer) n) (by : (Vec Integer) n))
      (build (tuple n k) (lam ((i : Integer) (j : Integer))
        (sumbuild d (lam (l : Integer)
          (mul (index (tuple (index i word) l) e)
               (if (gt (index i by) 1) (index (tuple (sub (index i by) 2) l) e) (index (tuple l j) w))))))))";
    for (text, gathers) in [(by, false), (arm, true)] {
        let program = read(text);
        let def = program.named("f")[0];
        let case = |word: &[i64], by: &[i64]| {
            vec![tensor(Scalar::F64, &[6, 5], 1), tensor(Scalar::F64, &[5, 20], 2), numbers(word), numbers(by)]
        };
        let cases = vec![
            case(&[0, 5, 3, 2], &[1, 2, 1, 3]),
            case(&[0, 5, 3, 2], &[1, 2, 0, 3]),
            case(&[0, 6, 3, -1], &[1, 1, 1, 1]),
            case(&[0, 5, 3, 2], &[1, 2, 9, 3]),
        ];
        let graph = empty(&program, "f").graph.only_for(&incoming(def, &cases[0]));
        assert_eq!(graph.to_string().contains("gathered["), gathers, "{graph}");
        for vector_bytes in [16, 64] {
            let s = daedal::schedule::default(graph.clone(), &Machine { vector_bytes, ..Machine::host() });
            check(&program, "f", &s, &cases);
        }
    }
}

/// Protects: several stages that gather the same read one table.
#[test]
fn equal_tables_are_one() {
    let two = "(def f (Tuple (Tensor 2 Float) (Vec Float)) ((e : (Tensor 2 Float) (v d)) (w : (Tensor 2 Float) (d k)) (word : (Vec Integer) n))
      (tuple
        (build (tuple n k) (lam ((i : Integer) (j : Integer))
          (sumbuild d (lam (l : Integer) (mul (index (tuple (index i word) l) e) (index (tuple l j) w))))))
        (build n (lam (i : Integer) (sumbuild d (lam (l : Integer)
          (mul (index (tuple (index i word) l) e) (index (tuple (index i word) l) e))))))))";
    let shown = stages(two, &args([9, 6, 20, 16], None));
    assert_eq!(shown.matches("\n  gathered").count(), 1, "{shown}");
    assert_eq!(shown.matches(" e[word").count(), 1, "{shown}");
}

/// A table at places that a float says, in both widths, and what is made of three neighbours of that, of its rows, and of it alone.
const LOOKED_UP: &str = "
(def f (Tuple (Tensor 2 TYPE) (Vec TYPE) (Tensor 2 TYPE)) ((x : (Tensor 2 TYPE) (h w)) (t : (Vec TYPE) n))
  (let ((found (build (tuple h w) (lam ((y : Integer) (z : Integer))
            (index (max 0 (min (sub n 1) (cast Integer (mul (cast TYPE n) (abs (index (tuple y z) x)))))) t))))
        (next (build (tuple h w) (lam ((y : Integer) (z : Integer))
            (index (max 0 (min (sub n 1) (cast Integer (mul 9.0SUFFIX (index (tuple y z) found))))) t)))))
    (tuple
      (build (tuple h w) (lam ((y : Integer) (z : Integer))
        (add (index (tuple y (max 0 (sub z 1))) found)
             (index (tuple y z) found)
             (mul 0.5SUFFIX (index (tuple y (min (sub w 1) (add z 1))) found)))))
      (build w (lam (z : Integer) (sumbuild h (lam (y : Integer) (index (tuple y z) found)))))
      next)))
";

/// Protects: places that floats say are looked up in lanes, once for all that read them, with the interpreter's bits for all
/// lengths of vectors, at sizes that fill them and that do not, and for what is no number.
#[test]
fn tables_are_looked_up_in_lanes() {
    for (ty, name, suffix) in [(Scalar::F64, "Float", ""), (Scalar::F32, "Float32", "f32")] {
        let text = LOOKED_UP.replace("TYPE", name).replace("SUFFIX", suffix);
        for [h, w, n] in [[3, 5, 1], [4, 32, 16], [7, 37, 5], [1, 1, 2]] {
            let x = tensor(ty, &[h, w], 1);
            stages(&text, &[x, tensor(ty, &[n], 2)]);
        }
        let no_number =
            Value::tensor(vec![1, 3], (0..3).map(|k| Value::Scalar(Lit::of(ty, [f64::NAN, 1e300, -2.0][k]))).collect());
        stages(&text, &[no_number, tensor(ty, &[4], 2)]);
        let program = read(&text);
        let def = program.named("f")[0];
        let sizes = incoming(def, &[tensor(ty, &[64, 96], 1), tensor(ty, &[16], 2)]);
        let graph = empty(&program, "f").graph.only_for(&sizes);
        let s = daedal::schedule::default(graph, &Machine { vector_bytes: 64, ..Machine::host() });
        let steps: Vec<String> = s.steps.iter().map(ToString::to_string).collect();
        assert!(!steps.contains(&"inline found".to_string()), "{steps:#?}");
        assert!(steps.iter().any(|s| s.starts_with("vectorize next")), "{steps:#?}");
    }
}
