//! Stages that are computed in one loop though none of them reads the other; and stages of few elements at many points, which
//! the default schedule runs with points as lanes.

use crate::common::scheduled::{check, empty, read, scheduled, tensor};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::schedule::{Schedule, Step, text};
use daedal::tune::example::incoming;

/// Two results that share what they read.
const TWO: &str = "(def f (Tuple (Tensor 2 Float) (Vec Float)) (x : (Tensor 2 Float) (n m))
  (let (y (build (tuple n m) (lam ((i : Integer) (j : Integer)) (exp (index (tuple i j) x)))))
    (tuple (build (tuple n m) (lam ((i : Integer) (j : Integer)) (mul 2.0 (index (tuple i j) y))))
           (build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (index (tuple i j) y))))))))";

/// Distances between moving points and their partners, and what pushes them.
const PAIRS: &str = "(def f (Tuple (Tensor 2 Float) (Vec Float) Float)
    ((x : (Tensor 2 Float) (n three)) (partner : (Vec Integer) n) (w : (Vec Float) n))
  (let ((d (build (tuple n 3) (lam ((i : Integer) (c : Integer))
             (sub (index (tuple i c) x) (index (tuple (index i partner) c) x)))))
        (r2 (build n (lam (i : Integer) (sumbuild 3 (lam (c : Integer)
              (mul (index (tuple i c) d) (index (tuple i c) d)))))))
        (push (build (tuple n 3) (lam ((i : Integer) (c : Integer))
             (if (gt (index i r2) 0.25) (div (index (tuple i c) d) (index i r2)) (index (tuple i c) d))))))
    (tuple (build (tuple n 3) (lam ((i : Integer) (c : Integer)) (mul (index i w) (index (tuple i c) push))))
           (build n (lam (i : Integer) (sqrt (index i r2))))
           (sumbuild n (lam (i : Integer) (mul (index i w) (index i r2)))))))";

fn pairs(n: usize, wrong: Option<i64>) -> Vec<Value> {
    let partner =
        (0..n).map(|i| Value::Scalar(Lit::int(if i == n / 2 { wrong } else { None }.unwrap_or((i * 7 % n) as i64))));
    vec![tensor(Scalar::F64, &[n, 3], 5), Value::tensor(vec![n], partner.collect()), tensor(Scalar::F64, &[n], 6)]
}

/// Protects: stages fused in one loop have their bits at all sizes, those smaller than a part included, in memory that is whole,
/// with what both read computed there.
#[test]
fn stages_are_fused() {
    let program = read(TWO);
    for steps in [
        "split tensor i 4\nfuse-stages sum tensor io\ncompute-at y tensor io",
        "split tensor i 8\nreorder tensor io j ii\nvectorize tensor ii\nfuse-stages sum tensor io
         split sum i 8\nreorder sum io j ii\nvectorize sum ii
         compute-at y tensor io\nsplit y i 8\nreorder y io j ii\nvectorize y ii",
        "fuse-stages sum tensor i\nparallel tensor i",
        "compute-root y\nsplit sum i 4\nfuse-stages y sum io",
    ] {
        let s = scheduled(&program, "f", steps);
        let sizes = [[0, 3], [1, 1], [3, 5], [4, 4], [7, 2], [8, 9], [13, 17], [64, 3]];
        let cases: Vec<Vec<Value>> = sizes.iter().map(|d| vec![tensor(Scalar::F64, d, 7)]).collect();
        check(&program, "f", &s, &cases);
    }
}

/// Protects: what would be read before it is there, or computed in a loop that does not run through it, is refused.
#[test]
fn what_cannot_be_fused_says_why() {
    let program = read(TWO);
    let refused = |program: &daedal::ir::Program, steps: &str, why: &str| {
        let error = text::apply(empty(program, "f"), &Source::new("test.sched", steps)).map(|s| s.to_string());
        assert!(error.as_ref().is_err_and(|d| d.message.contains(why)), "{steps}: {error:?}");
    };
    refused(&program, "fuse-stages tensor tensor i", "is the stage with the loop");
    refused(&program, "fuse-stages sum tensor j", "loops of other dimensions than the first");
    refused(&program, "fuse-stages sum tensor k", "no loop `k`");
    refused(&program, "fuse-stages tensor sum j", "loops of other dimensions than the first");
    let early = "split tensor i 4\ncache-read tensor y at io as early\nfuse-stages y tensor ii";
    refused(&program, early, "`early` reads `y`, and is computed in a loop around that");
    let program = read("(def f (Tuple (Vec Float) (Vec Float)) ((x : (Vec Float) n) (y : (Vec Float) m))
       (tuple (build n (lam (i : Integer) (mul 2.0 (index i x)))) (build m (lam (i : Integer) (mul 3.0 (index i y))))))");
    refused(&program, "fuse-stages tensor tensor_2 i", "different lengths");
    let program = read(
        "(def f (Tuple (Vec Float) Float (Vec Float)) (x : (Vec Float) n)
       (let ((a (build n (lam (i : Integer) (exp (index i x)))))
             (s (sumbuild n (lam (i : Integer) (index i a)))))
         (tuple a s (build n (lam (i : Integer) (mul s (index i x)))))))",
    );
    let stages = empty(&program, "f").graph.stages.iter().map(|s| s.name.clone()).collect::<Vec<_>>();
    assert_eq!(stages, ["a", "s", "tensor"]);
    refused(&program, "fuse-stages tensor a i", "before what it reads, or after what reads it");
    refused(&program, "fuse-stages a tensor i", "before what it reads, or after what reads it");
}

/// Protects: points become lanes by default, all stages of them in one loop, with the bits and failures of the program.
#[test]
fn points_are_lanes_by_default() {
    let program = read(PAIRS);
    let def = program.named("f")[0];
    for n in [32, 37, 100, 1001] {
        let cases = vec![pairs(n, None), pairs(n, Some(-1)), pairs(n, Some(n as i64))];
        let graph = empty(&program, "f").graph.only_for(&incoming(def, &cases[0]));
        let s = daedal::schedule::default(graph, &Machine { vector_bytes: 64, ..Machine::host() });
        let fused = |s: &Schedule| s.steps.iter().filter(|s| matches!(s, Step::FuseStages { .. })).count();
        assert!(fused(&s) >= 1, "{s}");
        check(&program, "f", &s, &cases);
    }
}

/// Points that turn about axes, where their weights say so: each arm reads the partner.
const ARMS: &str =
    "(def f (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n three)) (partner : (Vec Integer) p) (w : (Vec Float) p))
  (build p (lam (i : Integer)
    (let ((d (build 3 (lam (c : Integer) (sub (index c (index (index i partner) x)) (index i w))))))
      (if (gt (index i w) 0.5)
          (let ((s (sqrt (add 1.0 (mul (index i w) (index i w)))))
                (axis (build 3 (lam (c : Integer) (div (index c (index (index i partner) x)) s)))))
            (build 3 (lam (c : Integer) (add (mul (index 0 axis) (index c d)) (mul (index 1 d) (index c axis))))))
          d)))))";

/// Protects: what is checked in arms and outside of them too is checked once, first, so that lanes need no arms; bits and
/// failures stay those of the program. What is checked in an arm alone stays there.
#[test]
fn what_is_checked_anyway_is_checked_first() {
    let program = read(ARMS);
    let def = program.named("f")[0];
    for p in [32, 33, 250] {
        let rows = || (0..p).map(|i| tensor(Scalar::F64, &[3], i as u64)).collect();
        let case = |wrong| [vec![Value::tensor(vec![p], rows())], pairs(p, wrong)[1..].to_vec()].concat();
        let cases = vec![case(None), case(Some(-1)), case(Some(p as i64))];
        let graph = empty(&program, "f").graph.only_for(&incoming(def, &cases[0]));
        let first = &graph.stages[0];
        assert!(first.tys.is_empty() && !first.checks.is_empty() && first.when.is_none(), "{graph}");
        assert!(graph.stages[1..].iter().all(|s| s.checks.is_empty()), "{graph}");
        let s = daedal::schedule::default(graph, &Machine { vector_bytes: 32, ..Machine::host() });
        assert!(s.graph.stages.iter().all(|s| s.when.is_none()), "{s}");
        check(&program, "f", &s, &cases);
    }
    let alone = ARMS.replace("(sub (index c (index (index i partner) x)) (index i w))", "(index i w)");
    let program = read(&alone);
    let rows = (0..32).map(|i| tensor(Scalar::F64, &[3], i)).collect();
    let args = [vec![Value::tensor(vec![32], rows)], pairs(32, None)[1..].to_vec()].concat();
    let graph = empty(&program, "f").graph.only_for(&incoming(program.named("f")[0], &args));
    assert!(graph.stages.iter().any(|s| s.when.is_some() && !s.checks.is_empty()), "{graph}");
}
