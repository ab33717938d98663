//! Tables whose axes lie in another order, and tables that are computed in part: every bit stays, and what is gained is there.

use crate::common::scheduled::{compare, empty, read, scheduled, tensor};
use daedal::eval::Value;
use daedal::ir::{Program, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native::scheduled_nest;
use daedal::schedule::{Schedule, text};
use daedal::stage::Graph;

/// Differences of points and parts, and for each part their products with all coordinates, summed over points.
const MOMENTS: &str = "
(def f (Tensor 3 Float) ((x : (Tensor 2 Float) (n d)) (c : (Tensor 2 Float) (k d)) (w : (Tensor 2 Float) (n k)))
  (let (t (build (tuple n k d) (lam ((i : Integer) (j : Integer) (l : Integer))
            (mul (index (tuple i j) w) (exp (sub (index (tuple i l) x) (index (tuple j l) c)))))))
    (build (tuple k d d) (lam ((j : Integer) (l : Integer) (m : Integer))
      (sumbuild n (lam (i : Integer) (mul (index (tuple i j l) t) (index (tuple i m) x))))))))
";

/// The lower triangle of these products.
const TRIANGLE: &str = "
(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n d)) (y : (Tensor 2 Float) (n d)))
  (let (s (build (tuple d d) (lam ((l : Integer) (m : Integer))
            (sumbuild n (lam (i : Integer) (mul (index (tuple i l) x) (index (tuple i m) y)))))))
    (build (tuple d d) (lam ((l : Integer) (m : Integer))
      (if CONDITION (add 1.0 (index (tuple l m) s)) 0.0)))))
";

fn arguments(n: usize, d: usize, k: usize) -> Vec<Value> {
    [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[k, d], 2), tensor(Scalar::F64, &[n, k], 3)].to_vec()
}

/// A machine whose caches are told, since they decide what is laid out and what is computed in batches.
fn machine() -> Machine {
    Machine { vector_bytes: 32, caches: [32 << 10, 2 << 20, 32 << 20], ..Machine::host() }
}

/// The default schedule for the sizes of arguments, after it was held against the interpreter.
fn held(program: &Program, args: &[Value]) -> Schedule {
    let sizes = daedal::tune::example::incoming(program.named("f")[0], args);
    let graph = empty(program, "f").graph.only_for(&sizes);
    let made = daedal::schedule::default(graph, &machine());
    compare(program, "f", &made, &[args.to_vec()], sizes.contains(&0.0));
    made
}

/// Protects: axes in any order keep every bit, whatever loops write and read them, at sizes that fill vectors and that do not.
#[test]
fn any_order_keeps_every_bit() {
    let program = read(MOMENTS);
    let cases: Vec<Vec<Value>> =
        [[5, 3, 2], [1, 1, 1], [0, 2, 3], [4, 8, 3], [7, 9, 1]].map(|[n, d, k]| arguments(n, d, k)).to_vec();
    for order in ["i j l", "i l j", "j i l", "j l i", "l i j", "l j i"] {
        let steps = if order < "j" { "split t l 4\nvectorize t li\n" } else { "reorder t l i j\nparallel t l\n" };
        let s = scheduled(&program, "f", &format!("compute-root t\n{steps}layout t {order}\n"));
        compare(&program, "f", &s, &cases, false);
    }
}

/// Protects: a step that cannot be says why, and changes nothing.
#[test]
fn what_cannot_be_laid_out_says_why() {
    let program = read(MOMENTS);
    let start = empty(&program, "f");
    let names: Vec<String> = start.graph.stages.iter().map(|s| s.name.clone()).collect();
    let result = names.iter().rfind(|n| *n != "t").unwrap();
    for (steps, why) in [
        ("layout t i j".to_string(), "each must be named once"),
        ("layout t i i l".to_string(), "each must be named once"),
        ("layout t i j z".to_string(), "each must be named once"),
        (format!("layout {result} m l j"), "handed out"),
        ("layout nothing i j".to_string(), "no stage"),
        ("layout t j i l\nfuse t i j".to_string(), "laid out before"),
    ] {
        let source = daedal::diag::Source::new("test.sched", &steps);
        let refused = text::apply(start.clone(), &source).err().unwrap_or_else(|| panic!("{steps} was taken"));
        assert!(refused.render().contains(why), "{steps}: {}", refused.render());
    }
}

/// Protects: a large table that a product reads part by part lies part by part, and a small one as the program says.
#[test]
fn tables_lie_as_they_are_read() {
    let program = read(MOMENTS);
    let large = held(&program, &arguments(100, 24, 40));
    let steps: Vec<String> = large.steps.iter().map(ToString::to_string).collect();
    assert!(steps.contains(&"layout t j i l".to_string()), "{steps:#?}");
    let small = held(&program, &arguments(9, 5, 3));
    assert!(!small.steps.iter().any(|s| s.to_string().starts_with("layout")));
}

/// Protects: what is packed so that rows are lanes stays packed, though it is read in steps of a page: lanes that are put
/// together one by one take longer.
#[test]
fn what_is_packed_for_lanes_stays_so() {
    let program = read(
        "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n h)) (w : (Tensor 2 Float) (c h)))
           (let (r (build (tuple n h) (lam ((i : Integer) (k : Integer)) (max 0.0 (exp (index (tuple i k) x))))))
             (build (tuple n c) (lam ((i : Integer) (j : Integer))
               (sumbuild h (lam (k : Integer) (mul (index (tuple i k) r) (index (tuple j k) w))))))))",
    );
    let made = held(&program, &[tensor(Scalar::F64, &[600, 32], 1), tensor(Scalar::F64, &[7, 32], 2)]);
    let steps: Vec<String> = made.steps.iter().map(ToString::to_string).collect();
    assert!(steps.iter().any(|s| s.starts_with("cache-read")), "{steps:#?}");
    assert!(!steps.iter().any(|s| s.starts_with("layout packed")), "{steps:#?}");
}

/// How many products of a nest's sums are made, in vectors or alone.
fn products(program: &Program, graph: &Graph, args: &[Value]) -> u64 {
    let def = program.named("f")[0];
    let schedule = daedal::schedule::default(graph.clone(), &machine());
    let nest = scheduled_nest(def, &schedule, &Machine::host()).unwrap();
    let (_, tally) = daedal::nest::count(&nest, args, &mut String::new()).unwrap().unwrap();
    tally.simple
}

/// Protects: tiles of a square of sums of which no element is read are not computed, on either side of the diagonal; all that is
/// read has the interpreter's bits, and where all is read all is computed.
#[test]
fn tiles_that_nothing_reads_are_left_out() {
    let counts = |condition: &str| {
        let program = read(&TRIANGLE.replace("CONDITION", condition));
        for [n, d] in [[3, 5], [0, 4], [30, 33]] {
            held(&program, &[tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)]);
        }
        let args = [tensor(Scalar::F64, &[40, 48], 1), tensor(Scalar::F64, &[40, 48], 2)];
        let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
        products(&program, &empty(&program, "f").graph.only_for(&sizes), &args)
    };
    let whole = counts("(lt (mod m 7) l)");
    for side in ["(lt m l)", "(lte l m)", "(gt m l)", "(gte (add m 3) l)"] {
        let part = counts(side);
        assert!((part as f64) < 0.75 * whole as f64, "{side}: {part} of {whole}");
    }
}

/// Protects: constants whose first lanes are alike and whose last ones are zeros are stored as they are, in vectors of all
/// lengths: a compiler may take them for one number that repeats.
#[test]
fn constants_in_front_of_zeros_are_stored() {
    for (ty, one, zero) in
        [("Float", "1.0", "0.0"), ("Float32", "1.0f32", "0.0f32"), ("Integer", "-1", "0"), ("Int32", "7i32", "0i32")]
    {
        let text = format!(
            "(def f (Tensor 2 {ty}) ((x : (Vec Float) n))
               (build (tuple n n) (lam ((l : Integer) (m : Integer)) (if (lt (mod m 17) l) {one} {zero}))))"
        );
        let program = read(&text);
        for n in [2, 3, 4, 8, 16] {
            held(&program, &[tensor(Scalar::F64, &[n], 1)]);
        }
    }
}
