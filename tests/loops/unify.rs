//! Stages that compute the same are one, in two directions or by other tables, with the interpreter's bits; others stay two.

use crate::common::scheduled::{compare, empty, read, tensor};
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

/// The graph of `f` for all sizes, after it was held against the interpreter where two tensors of one or two axes have these sizes.
fn held(text: &str, sizes: &[[&[usize]; 2]]) -> Graph {
    let program = read(text);
    let graph = Graph::clone(&empty(&program, "f").graph);
    for dims in sizes {
        let args = [tensor(Scalar::F64, dims[0], 1), tensor(Scalar::F64, dims[1], 2)];
        compare(&program, "f", &Schedule::new(graph.clone()), &[args.to_vec()], true);
    }
    graph
}

/// How many reductions a graph has with so many dimensions.
fn reductions(g: &Graph, dims: usize) -> usize {
    g.stages.iter().filter(|s| !s.over().is_empty() && s.dims.len() == dims).count()
}

/// Sizes of two vectors.
const VECTORS: [[&[usize]; 2]; 6] =
    [[&[3], &[4]], [&[1], &[1]], [&[17], &[9]], [&[0], &[2]], [&[2], &[0]], [&[33], &[33]]];

/// How many sums of pairs a program has where one reads a table of `max`, and the other one has `AGAIN` in its place.
fn pools(again: &str) -> usize {
    let text = "(def f (Tuple Float Float (Vec Float)) ((x : (Vec Float) n) (y : (Vec Float) m))
           (let ((half (div n 2))
                 (positive (build n (lam (i : Integer) (max (index i x) 0.0))))
                 (pool (build half (lam (i : Integer) (sumbuild 2 (lam (j : Integer) (index (add (mul 2 i) j) positive))))))
                 (other (build half (lam (i : Integer) (sumbuild 2 (lam (j : Integer)
                   (let (v (index (add (mul 2 i) j) x)) AGAIN)))))))
             (tuple (sum pool) (sumbuild half (lam (i : Integer) (mul 2.0 (index i other)))) positive)))";
    reductions(&held(&text.replace("AGAIN", again), &VECTORS), 1)
}

/// Protects: it is the same whether a table is read or what is in it is computed in its place.
#[test]
fn tables_are_looked_through() {
    assert_eq!(pools("(max v 0.0)"), 1);
    assert_eq!(pools("(max 0.0 v)"), 2);
    assert_eq!(pools("(max v 1.0)"), 2);
}

/// How many products a program has that two results read, one of them, `OTHER`, in the other order of rows and columns.
fn products(other: &str) -> usize {
    let text = "(def f (Tuple (Vec Float) (Vec Float)) ((a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float) (m k)))
           (tuple
             (build n (lam (i : Integer) (sumbuild m (lam (j : Integer)
               (mul (to_float j) (sumbuild k (lam (l : Integer) (mul (index (tuple i l) a) (index (tuple j l) b)))))))))
             (build m (lam (j : Integer) (sumbuild n (lam (i : Integer)
               (mul (sumbuild k (lam (l : Integer) OTHER)) (to_float i))))))))";
    let sizes: [[&[usize]; 2]; 5] =
        [[&[3, 5], &[4, 5]], [&[1, 1], &[2, 1]], [&[9, 3], &[17, 3]], [&[4, 4], &[4, 4]], [&[0, 3], &[2, 3]]];
    reductions(&held(&text.replace("OTHER", other), &sizes), 2)
}

/// Protects: a product is computed once, also where it is read across, as gradients of products of three factors do.
#[test]
fn products_are_read_across() {
    assert_eq!(products("(mul (index (tuple j l) b) (index (tuple i l) a))"), 1);
    assert_eq!(products("(mul (index (tuple j l) b) (index (tuple i (sub (sub k 1) l)) a))"), 2);
    assert_eq!(products("(add (index (tuple j l) b) (index (tuple i l) a))"), 2);
}

/// How many stages take a hyperbolic tangent.
fn tangents(body: &str) -> usize {
    let text = "(def f (Tuple Float (Vec Float)) ((x : (Vec Float) n) (y : (Vec Float) m)) BODY)".replace("BODY", body);
    held(&text, &VECTORS).to_string().lines().filter(|l| l.contains("(tanh ")).count()
}

/// Protects: an elementary function is taken once for a sum and for a table, with a table of its own; but where no table is there
/// anyway, none is made, nor where some elements might not be there.
#[test]
fn functions_are_taken_once() {
    let sum = "(sumbuild n (lam (i : Integer) (mul (index i x) (tanh (mul 2.0 (index i x))))))";
    let slope = "(build n (lam (i : Integer) (let (t (tanh (mul 2.0 (index i x)))) (sub 1.0 (mul t t)))))";
    assert_eq!(tangents(&format!("(tuple {sum} {slope})")), 1);
    let other = slope.replace("2.0", "3.0");
    assert_eq!(tangents(&format!("(tuple {sum} {other})")), 2);
    let pairs = "(sumbuild n (lam (i : Integer) (sumbuild m (lam (j : Integer) OF))))".to_string();
    let [a, b] = ["TANH", "(mul 3.0 TANH)"]
        .map(|of| pairs.replace("OF", &of.replace("TANH", "(tanh (mul (index i x) (index j y)))")));
    assert_eq!(tangents(&format!("(tuple (add {a} {b}) x)")), 2);
    let beyond = "(build n (lam (i : Integer) (if (lt i m) (tanh (index i y)) 0.0)))";
    let all = "(sumbuild m (lam (i : Integer) (tanh (index i y))))";
    assert_eq!(tangents(&format!("(tuple {all} {beyond})")), 2);
}

/// Protects: so is one that stands inside of another: the exponential of a logistic loss is that of its slope.
#[test]
fn functions_inside_of_others_are_taken_once() {
    let loss = "(sumbuild n (lam (i : Integer) (log (add 1.0 (exp (mul 2.0 (index i x)))))))";
    let slope = "(build n (lam (i : Integer) (let (e (exp (mul 2.0 (index i x)))) (mul 2.0 (div e (add 1.0 e))))))";
    let text =
        |body: &str| format!("(def f (Tuple Float (Vec Float)) ((x : (Vec Float) n) (y : (Vec Float) m)) {body})");
    let count = |body: String, function: &str| {
        let all = held(&text(&body), &VECTORS).to_string();
        all.lines().filter(|l| l.contains(&format!("({function} "))).count()
    };
    let both = || format!("(tuple {loss} {slope})");
    assert_eq!((count(both(), "exp"), count(both(), "log")), (1, 1));
    // The logarithm that two stages take is taken once, with what is inside of it; the slope takes its own exponential then.
    let table = "(build n (lam (i : Integer) (sub 1.0 (log (add 1.0 (exp (mul 2.0 (index i x))))))))";
    let three = || format!("(tuple (add {loss} (index 0 {slope})) {table})");
    assert_eq!((count(three(), "exp"), count(three(), "log")), (2, 1));
}

/// Protects: what does not depend on a loop is taken once and not for each of its indices, where it is of elements that are read
/// as they lie; elsewhere it stays, since there might be nothing to read where the loop has no indices.
#[test]
fn functions_leave_loops() {
    let in_loop = |of: &str| {
        let body =
            "(tuple (sumbuild n (lam (i : Integer) (sumbuild m (lam (j : Integer) (mul (index i x) (tanh OF)))))) x)";
        let text = "(def f (Tuple Float (Vec Float)) ((x : (Vec Float) n) (y : (Vec Float) m)) BODY)";
        let graph = held(&text.replace("BODY", &body.replace("OF", of)), &VECTORS);
        graph
            .stages
            .iter()
            .any(|s| s.over().is_empty() && graph.to_string().contains(&format!("{}[j < y_size0]", s.name)))
    };
    assert!(in_loop("(index j y)"));
    assert!(!in_loop("(index (sub (sub m 1) j) y)"));
    assert!(!in_loop("(mul (index j y) (index i x))"));
}
