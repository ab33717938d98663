//! Elementary functions that loops compute again get tables before a definition is differentiated: where that costs less, with the
//! same bits, and not where something around them leaves the loop anyway.

use crate::common::random::compare;
use crate::common::{arguments, read};
use daedal::ir::{Program, print};
use daedal::pipeline::tabulated::tabulated;
use daedal::rules::Level;

fn program(body: &str) -> Program {
    let text =
        format!("(def f Float ((u : (Tensor 2 Float) (n k)) (v : (Tensor 2 Float) (m k)) (x : (Vec Float) n)) {body})");
    read("f.ks", &text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

fn over(body: &str) -> String {
    format!("(sumbuild (tuple n m) (lam ((i : Integer) (j : Integer)) {body}))")
}

/// Compares at sizes that are 0, 1 and more; the text.
fn same(before: &Program, after: &Program) -> String {
    for words in [
        ["[[0.5,-1.0],[2.0,0.25],[-0.0,3.0]]", "[[1.5,0.5],[-0.5,1.0]]", "[0.5,1.0,-2.0]"],
        ["[[0.5]]", "[[700.0],[-800.0],[0.0]]", "[1000.0]"],
        ["[]", "[[1.0,2.0]]", "[]"],
    ] {
        let args = arguments(before.named("f")[0], &words.map(String::from)).unwrap();
        compare(before, after, "f", &args, Level::Exact).unwrap_or_else(|e| panic!("{e}\n{}", print::program(after)));
    }
    print::program(after)
}

/// Protects: factors of rows and of columns that the innermost loop computes are tables of rows and of columns, also where the
/// loops over both are one; each keeps its bits.
#[test]
fn what_loops_compute_again_is_a_table() {
    let inner = "(sumbuild k (lam (q : Integer) (mul (exp (index (tuple i q) u)) (exp (index (tuple j q) v)))))";
    let sine = "(sumbuild k (lam (q : Integer) (mul (sin (mul 2.0 (index (tuple i q) u))) (index (tuple j q) v))))";
    for (body, tables) in [(inner, 2), (sine, 1)] {
        let before = program(&over(body));
        let after = same(&before, &tabulated(&before).unwrap());
        assert_eq!(after.matches("(build ").count(), tables, "{after}");
        let (head, body) = after.split_at(after.find("(sumbuild ").unwrap());
        let functions = |t: &str| t.matches("(exp ").count() + t.matches("(sin ").count();
        assert_eq!((functions(head), functions(body)), (tables, 0), "{after}");
    }
}

/// Protects: both factors get tables where rows and columns are of one size; arithmetic counts as functions do.
#[test]
fn loops_of_one_size_are_told_apart() {
    for f in ["(exp X)", "(div X (index P x))"] {
        let of = |row: &str, of: &str| f.replace('X', &format!("(index (tuple {row} q) {of})")).replace('P', row);
        let body = format!(
            "(sumbuild (tuple n n) (lam ((i : Integer) (j : Integer))
               (sumbuild k (lam (q : Integer) (mul {} {})))))",
            of("i", "u"),
            of("j", "w")
        );
        let text = format!(
            "(def f Float ((u : (Tensor 2 Float) (n k)) (w : (Tensor 2 Float) (n k)) (x : (Vec Float) n)) {body})"
        );
        let before = read("f.ks", &text).unwrap();
        let after = print::program(&tabulated(&before).unwrap());
        assert_eq!(after.matches("(build ").count(), 2, "{after}");
    }
}

/// Protects: what depends on all loops around, or stands in something that leaves the loop as a whole, stays as it is.
#[test]
fn what_is_computed_once_stays() {
    let once = [
        over("(exp (mul (index (tuple i 0) u) (index (tuple j 0) v)))"),
        // The greatest of a row is found outside of the loop that reads it.
        "(sumbuild n (lam (i : Integer)
           (let (m (reduce max k (lam (q : Integer) (exp (index (tuple i q) u)))))
             (sumbuild k (lam (p : Integer) (sub (index (tuple i p) u) m))))))"
            .to_string(),
        "(let (s (exp (sumbuild n (lam (i : Integer) (index i x))))) (sumbuild n (lam (i : Integer) (mul s (index i x)))))"
            .to_string(),
    ];
    for body in once {
        let before = program(&body);
        let after = tabulated(&before).unwrap();
        assert_eq!(print::program(&before), print::program(&after), "{body}");
    }
}
