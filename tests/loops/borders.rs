//! Sums that ask in each term whether it is in range, as adjoints of convolutions do: rows are cut into ends that ask and a middle
//! that does not, products that a condition chooses are contracted, and no bit is another one.

use crate::common::scheduled::{compare, contracted, empty, read, stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::{self, Schedule, Step};

/// The adjoint of a correlation by what is correlated, of such terms.
fn spread(term: &str) -> String {
    format!(
        "(def f (Tensor 2 Float) ((y : (Tensor 2 Float) (h w)) (k : (Tensor 2 Float) (a b)))
           (build (tuple (sub (add h a) 1) (sub (add w b) 1)) (lam ((i : Integer) (j : Integer))
             (sumbuild a (lam (p : Integer)
               (if (and (gte (sub i p) 0) (lt (sub i p) h))
                 (sumbuild b (lam (q : Integer) {term}))
                 0.0))))))"
    )
}

const TERMS: [&str; 3] = [
    "(if (and (gte (sub j q) 0) (lt (sub j q) w)) (mul (index (tuple (sub i p) (sub j q)) y) (index (tuple p q) k)) 0.0)",
    "(if (or (lt j q) (gte (sub j q) w)) 0.0 (mul (index (tuple p q) k) (index (tuple (sub i p) (sub j q)) y)))",
    "(if (lte q j) (if (gt (add w q) j) (mul (index (tuple (sub i p) (sub j q)) y) (index (tuple p q) k)) 0.0) 0.0)",
];

/// Numbers of which a product with 0 is no number, and zeros of both signs.
fn edges(dims: &[usize]) -> Value {
    let all = [f64::INFINITY, -0.0, 1.5, f64::NAN, 0.0, f64::NEG_INFINITY, -2.25];
    let n = dims.iter().product();
    Value::tensor(dims.to_vec(), (0..n).map(|k| Value::Scalar(Lit::float(all[(k * 5) % 7]))).collect())
}

/// Protects: long rows are cut where the terms of the sums within begin and end to be in range, short ones stay in one piece, and
/// whatever the sizes are, each element has its bits: nothing is read, or multiplied, out of range.
#[test]
fn rows_are_cut_where_sums_within_ask() {
    for (term, [h, w, a, b]) in TERMS.into_iter().flat_map(|t| {
        [[3, 130, 2, 5], [2, 128, 1, 9], [2, 255, 3, 1], [1, 140, 2, 20], [4, 40, 3, 3], [2, 3, 4, 6]].map(|n| (t, n))
    }) {
        let text = spread(term);
        stages(&text, &[tensor(Scalar::F64, &[h, w], 3), tensor(Scalar::F64, &[a, b], 5)]);
        let (program, args) = (read(&text), [edges(&[h, w]), edges(&[a, b])]);
        let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
        let machine = Machine { vector_bytes: 64, ..Machine::host() };
        let graph = empty(&program, "f").graph.only_for(&sizes);
        let made = schedule::default(graph.clone(), &machine);
        compare(&program, "f", &made, &[args.to_vec()], false);
        // Without a step, rows are whole.
        let made = Schedule::new(graph);
        compare(&program, "f", &made, &[args.to_vec()], false);
        let nest = native::scheduled_nest(program.named("f")[0], &made, &machine).unwrap().to_string();
        let long = w + b > 128 && b > 1 && 8 * (b - 1) < w + b;
        assert_eq!(nest.contains("middle"), long, "{h} {w} {a} {b}\n{nest}");
    }
}

/// Protects: a product that a condition chooses beside 0 is contracted as one that it does not choose, in either arm and through
/// more than one condition.
#[test]
fn chosen_products_are_contracted() {
    for term in TERMS {
        let program = read(&spread(term));
        let mut graph = empty(&program, "f").graph.as_ref().clone();
        graph.real = true;
        let made = contracted(graph);
        let shown = made.graph.to_string();
        assert!(shown.contains("(fma "), "{shown}");
        assert!(!shown.contains("(add acc0 (if (lt (sub j") && !shown.contains("(mul y"), "{shown}");
    }
}

/// Protects: a table of several numbers of which each is read twice at most is no table, however many read it: each of its
/// numbers is computed where it is read.
#[test]
fn tables_of_parts_are_computed_where_each_is_read() {
    let sum = |part: &str| {
        format!("(build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (get${part} (index (tuple i j) t))))))")
    };
    let text = format!(
        "(def f (Vec (Tuple Float Float Float)) ((x : (Vec Float) n) (y : (Vec Float) m))
           (let ((t (build (tuple n m) (lam ((i : Integer) (j : Integer))
                   (tuple (mul (index i x) (sub (index j y) 1.0)) (mul (index j y) (add (index i x) (index j y)))
                          (mul (mul (index i x) (index j y)) (sub (index i x) 2.0))))))
                 (a {}) (b {}) (c {}) (d {}))
             (build n (lam (i : Integer)
               (tuple (mul (index i a) (index i d)) (index i b) (index i c))))))",
        sum("1$3"),
        sum("2$3"),
        sum("3$3"),
        sum("1$3").replace("(index (tuple i j) t)", "(index (tuple i (sub (sub m 1) j)) t)"),
    );
    let program = read(&text);
    let args = [tensor(Scalar::F64, &[40], 3), tensor(Scalar::F64, &[50], 4)];
    let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
    let made = schedule::default(empty(&program, "f").graph.only_for(&sizes), &Machine::host());
    compare(&program, "f", &made, &[args.to_vec()], false);
    let inline = |s: &Step| matches!(s, Step::Inline { stage } if stage == "t");
    assert!(made.steps.iter().any(inline), "{made}\n{}", made.graph);
}
