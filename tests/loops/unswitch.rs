//! Conditions that tell lanes of a sum apart leave it, with the interpreter's bits; others stay in it.

use crate::common::scheduled::{compare, empty, read, tensor};
use daedal::eval::Value;
use daedal::ir::{Op, Scalar, Ty};
use daedal::machine::Machine;
use daedal::schedule::Schedule;
use daedal::stage::{Graph, Node, Stage};

/// A matrix of sums over points, in each of which something is asked; it is read once.
fn program(element: &str) -> String {
    "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n d)) (y : (Tensor 2 Float) (n d)))
       (let (s (build (tuple d d) (lam ((l : Integer) (m : Integer)) (sumbuild n (lam (i : Integer) ELEMENT)))))
         (build (tuple d d) (lam ((l : Integer) (m : Integer))
           (mul (index (tuple m l) s) (add 2.0 (index (tuple l m) s)))))))"
        .replace("ELEMENT", element)
}

/// Whether a sum of the graph asks something, after the graph was held against the interpreter.
fn asks(element: &str, [n, d]: [usize; 2]) -> bool {
    let program = read(&program(element));
    let args = [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)];
    let sizes = daedal::tune::example::incoming(program.named("f")[0], &args);
    let graph = empty(&program, "f").graph;
    compare(&program, "f", &Schedule::new(Graph::clone(&graph)), &[args.to_vec()], sizes.contains(&0.0));
    asked(&graph)
}

fn asked(g: &Graph) -> bool {
    let sums = g.stages.iter().filter(|s| !s.over().is_empty());
    let all = g.bodies.reachable(sums.flat_map(|s| s.bodies()));
    all.into_iter().any(|b| matches!(g.bodies.node(b), Node::If(_)))
}

/// Protects: triangles of sums ask once for each sum, on either side of the diagonal.
#[test]
fn conditions_of_lanes_leave_sums() {
    for element in [
        "(if (lt m l) (mul (index (tuple i l) x) (index (tuple i m) y)) 0.0)",
        "(if (lt m l) 0.0 (mul (index (tuple i l) x) (index (tuple i m) y)))",
        "(if (gte (add m 1) l) (exp (sub (index (tuple i l) x) (index (tuple i m) y))) 0.0)",
    ] {
        for sizes in [[5, 3], [1, 1], [9, 17], [0, 3], [4, 0]] {
            assert!(!asks(element, sizes), "{element} {sizes:?}");
        }
    }
}

/// Protects: the same of a sum of matrices, whose elements stand in a stage of their own.
#[test]
fn conditions_of_elements_leave_the_sum_that_reads_them() {
    let program = read(
        "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n d)) (y : (Tensor 2 Float) (n d)))
           (let (s (sumbuild n (lam (i : Integer)
                     (build (tuple d d) (lam ((l : Integer) (m : Integer))
                       (if (lt m l) (mul (index (tuple i l) x) (index (tuple i m) y)) 0.0))))))
             (build (tuple d d) (lam ((l : Integer) (m : Integer))
               (mul (index (tuple m l) s) (add 2.0 (index (tuple l m) s)))))))",
    );
    let graph = empty(&program, "f").graph;
    let conditions = |s: &Stage| {
        let all = graph.bodies.reachable(s.bodies());
        all.into_iter().filter(|b| matches!(graph.bodies.node(*b), Node::If(_))).count()
    };
    let each: Vec<usize> = graph.stages.iter().map(conditions).collect();
    assert_eq!(each.iter().sum::<usize>(), 2, "{each:?}");
    assert!(!asked(&graph));
    // What is left is a product in the sum, and no table of all of them.
    let sums = graph.stages.iter().filter(|s| !s.over().is_empty());
    let product = |s: &&Stage| {
        let all = graph.bodies.reachable(s.bodies());
        all.into_iter().any(|b| matches!(graph.bodies.node(b), Node::Op(Op::Mul, ..)))
    };
    assert_eq!((sums.filter(product).count(), graph.stages.len()), (1, 2));
    for [n, d] in [[5, 3], [1, 1], [9, 17], [0, 3], [4, 0]] {
        let args = [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)];
        compare(&program, "f", &Schedule::new(Graph::clone(&graph)), &[args.to_vec()], n == 0 || d == 0);
    }
}

/// Protects: a sum that an arm of a triangle reads is made everywhere where it has a value, and in the arm where it may have none,
/// or where hardly any element has it.
#[test]
fn sums_leave_the_arms_of_triangles() {
    let arm = |condition: &str, at: &str| {
        "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n d)) (y : (Tensor 2 Float) (n d)))
           (build (tuple d d) (lam ((l : Integer) (m : Integer))
             (if CONDITION (sumbuild n (lam (i : Integer) (mul (index (tuple i l) x) (index (tuple i AT) y)))) 0.0))))"
            .replace("CONDITION", condition)
            .replace("AT", at)
    };
    for (condition, at, everywhere) in [
        ("(lt m l)", "m", true),
        ("(gte (add m 1) l)", "m", true),
        ("(ne m l)", "m", true),
        ("(ne m l)", "(sub l (add m 1))", false),
        ("(eq m l)", "m", false),
        ("(lt m 2)", "m", false),
        ("(lt m l)", "(sub l (add m 1))", false),
    ] {
        let program = read(&arm(condition, at));
        let graph = empty(&program, "f").graph;
        assert_eq!(graph.stages.iter().all(|s| s.when.is_none()), everywhere, "{condition} {at}\n{graph}");
        for [n, d] in [[5, 3], [1, 1], [9, 17], [0, 3], [4, 0]] {
            let args = [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)];
            compare(&program, "f", &Schedule::new(Graph::clone(&graph)), &[args.to_vec()], n == 0 || d == 0);
        }
    }
}

/// Protects: what depends on what is summed over, is rare, may have no value, or is not 0, is asked where it was.
#[test]
fn other_conditions_stay() {
    for element in [
        "(if (lt m i) (mul (index (tuple i l) x) (index (tuple i m) y)) 0.0)",
        "(if (lt m 1) (mul (index (tuple i l) x) (index (tuple i m) y)) 0.0)",
        "(if (eq m l) (mul (index (tuple i l) x) (index (tuple i m) y)) 0.0)",
        "(if (lt m l) (index (tuple i (sub (sub l m) 1)) x) 0.0)",
        "(if (lt m l) (index (tuple i m) y) -0.0)",
        "(if (lt m l) (index (tuple i m) y) 1.0)",
    ] {
        for sizes in [[5, 3], [1, 1], [0, 3]] {
            assert!(asks(element, sizes), "{element} {sizes:?}");
        }
    }
}

/// Protects: a sum of what is 0 at all indices but one is what is there, with the sum's bits: of tensors, of pairs, and of zeros.
#[test]
fn sums_of_one_element_are_that() {
    let row = |condition: &str, element: &str| {
        format!(
            "(def f (Tensor 2 Float) ((x : (Tensor 2 Float) (n d)) (y : (Tensor 2 Float) (n d)))
               (let (s (sumbuild n (lam (i : Integer)
                         (build n (lam (j : Integer) (build d (lam (l : Integer) (if {condition} {element} 0.0))))))))
                 (build (tuple n d) (lam ((i : Integer) (l : Integer))
                   (div 1.0 (add (index l (index i s)) (index l (index (sub (sub n i) 1) s))))))))"
        )
    };
    let element = "(mul (index (tuple i l) x) (neg (index (tuple j l) y)))";
    for (condition, element, one) in [
        ("(eq j i)", element, true),
        ("(eq i j)", element, true),
        ("(eq i j)", "-0.0", true),
        ("(eq j 0)", element, false),
        ("(eq j (sub (sub n i) 1))", element, true),
        ("(eq j (sub n i))", element, true),
        ("(lt j i)", element, false),
    ] {
        let program = read(&row(condition, element));
        let graph = empty(&program, "f").graph;
        assert_eq!(graph.stages.iter().all(|s| s.over().is_empty()), one, "{condition} {element}\n{graph}");
        for [n, d] in [[5, 3], [1, 1], [3, 9], [0, 3]] {
            let args = [tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)];
            compare(&program, "f", &Schedule::new(Graph::clone(&graph)), &[args.to_vec()], n == 0 || d == 0);
        }
    }
}

/// Protects: where data say at which index a sum has its one element, it is read there, if there is such an index; the index
/// itself is not asked for where the sum is over nothing.
#[test]
fn data_say_which_element_of_a_sum_there_is() {
    let text = |condition: &str| {
        format!(
            "(def f (Vec Float) ((x : (Vec Float) n) (u : (Vec Integer) m))
               (build m (lam (k : Integer)
                 (div 1.0 (sumbuild n (lam (i : Integer) (if {condition} (neg (index i x)) 0.0)))))))"
        )
    };
    let values = |text: &str, ty: Ty| Value::from_json(&serde_json::from_str(text).unwrap(), ty).unwrap();
    for (condition, one) in [
        ("(eq i (index k u))", true),
        ("(eq (index k u) i)", true),
        ("(eq (index (sub (sub m 1) k) u) i)", true),
        ("(eq (mul 2 i) (index k u))", false),
        ("(eq (index (mod i m) u) i)", false),
    ] {
        let program = read(&text(condition));
        let graph = empty(&program, "f").graph;
        assert_eq!(graph.stages.iter().all(|s| s.over().is_empty()), one, "{condition}\n{graph}");
        let schedule = daedal::schedule::default(Graph::clone(&graph), &Machine::host());
        let tys = [Ty::tensor(1, Ty::float()), Ty::tensor(1, Ty::int())];
        for (x, u) in [
            ("[1.5,-0.0,0.0,2.0,4.0]", "[0,1,2,3,4,5,-1,9223372036854775807,-9223372036854775808]"),
            ("[3.0]", "[0,1,-1]"),
            ("[]", "[0,1,-1]"),
            ("[1.0,2.0]", "[]"),
        ] {
            compare(&program, "f", &schedule, &[vec![values(x, tys[0]), values(u, tys[1])]], x == "[]" || u == "[]");
        }
    }
}
