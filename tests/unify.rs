//! Stages that compute the same in two directions are one, with the interpreter's bits; others stay two.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::scheduled::{compare, empty, read, tensor};
use daedal::ir::Scalar;
use daedal::schedule::Schedule;
use daedal::stage::Graph;

/// Distances to all centres, from the first and, at `BACK`, from the last.
fn program(back: &str) -> String {
    "(def f (Tuple (Vec Float) (Vec Integer)) ((x : (Tensor 2 Float) (n d)) (c : (Tensor 2 Float) (k d)))
       (tuple
         (build n (lam (i : Integer) (reduce min k (lam (j : Integer)
           (let (diff (build d (lam (l : Integer) (sub (index (tuple i l) x) (index (tuple j l) c)))))
             (sumbuild d (lam (l : Integer) (mul (index l diff) (index l diff)))))))))
         (build n (lam (i : Integer) (argmin k (lam (j : Integer)
           (sumbuild d (lam (l : Integer)
             (let (v (sub (index (tuple i l) x) (index (tuple BACK l) c))) (mul v v))))))))))"
        .replace("BACK", back)
}

/// How many sums over `d` the graph has for sizes, which are as many as for all sizes, so that a schedule of either is one of the
/// other; after it was held against the interpreter.
fn sums(back: &str, [n, d, k]: [usize; 3]) -> usize {
    let program = read(&program(back));
    let args = [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[k, d], 2)];
    let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
    let whole = empty(&program, "f").graph;
    let graph = whole.only_for(&sizes);
    compare(&program, "f", &Schedule::new(graph.clone()), &[args.to_vec()], sizes.contains(&0.0));
    let sums = |g: &Graph| g.stages.iter().filter(|s| !s.over().is_empty() && s.dims.len() == 2).count();
    assert_eq!(sums(&whole), sums(&graph));
    sums(&graph)
}

/// Protects: what is read from the last to the first is what is read from the first to the last.
#[test]
fn both_directions_are_one_stage() {
    for sizes in [[5, 3, 4], [1, 1, 1], [7, 2, 9], [4, 0, 3]] {
        assert_eq!(sums("(sub (sub k 1) j)", sizes), 1, "{sizes:?}");
    }
    // Of nothing there is an error in both.
    sums("(sub (sub k 1) j)", [0, 3, 2]);
}

/// Protects: what only looks like that, and is other elements, stays.
#[test]
fn other_directions_stay() {
    for back in ["(mod (add j 1) k)", "(max 0 (sub (sub k 2) j))", "(div j 2)"] {
        assert_eq!(sums(back, [5, 3, 4]), 2, "{back}");
    }
}
