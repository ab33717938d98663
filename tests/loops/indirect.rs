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
