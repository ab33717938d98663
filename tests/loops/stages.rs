//! What becomes which stages: the text of graphs, and that they have the interpreter's bits at all small sizes, under the
//! empty schedule and the default one.

use crate::common;
use crate::common::native::difference;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Program, TyKind};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::schedule::{self, Schedule};
use daedal::stage::extract;

fn read(text: &str) -> Program {
    daedal::types::program(&Source::new("test", text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// The stages of the definition `f`, without what is asked of sizes.
fn stages(program: &Program) -> String {
    let graph = extract(program, program.named("f")[0]).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
    let text = graph.to_string();
    let lines = text.lines().skip(1).filter(|l| !l.trim_start().starts_with("where"));
    lines.map(|l| format!("{}\n", l.strip_prefix("  ").unwrap_or(l))).collect()
}

/// Arguments where every size of a tensor is one of two numbers, and so is every integer.
fn arguments(program: &Program, [n, m]: [usize; 2]) -> Vec<Value> {
    let number = |k: usize| Value::Scalar(Lit::float(((k * 37 + 11) % 17) as f64 / 8.0 - 1.0));
    let each = program.named("f")[0].params.iter().enumerate().map(|(at, p)| match p.ty.kind() {
        TyKind::Tensor(1, row) if row.has_tensor() => {
            let row = |k: usize| Value::tensor(vec![m], (0..m).map(|j| number(k * m + j)).collect());
            Value::tensor(vec![n], (0..n).map(row).collect())
        }
        TyKind::Tensor(1, _) => Value::tensor(vec![n], (0..n).map(|k| number(k + at)).collect()),
        TyKind::Tensor(..) => Value::tensor(vec![n, m], (0..n * m).map(|k| number(k + at)).collect()),
        _ => Value::Scalar(Lit::int(m as i64)),
    });
    each.collect()
}

/// The stages are these; at all small sizes, nests under both schedules agree with the interpreter, and leave it alone only
/// where something is empty, or the program fails.
fn check(text: &str, expect: &str) {
    let program = read(text);
    let def = program.named("f")[0];
    let have = stages(&program);
    assert!(have == expect, "have\n{have}\nexpected\n{expect}");
    for sizes in [[0, 3], [3, 0], [1, 1], [1, 4], [2, 3], [5, 5], [9, 7], [17, 4]] {
        let args = arguments(&program, sizes);
        let want = Interpreter::new(&program).run(def, &args);
        let graph = extract(&program, def).unwrap();
        let incoming = daedal::tune::example::incoming(def, &args);
        let special = schedule::default(graph.only_for(&incoming), &Machine::host());
        for s in [Schedule::new(graph.clone()), schedule::default(graph, &Machine::host()), special] {
            let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap_or_else(|d| panic!("{d}"));
            let have = interpret(&nest, &args, &mut String::new());
            if have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run")) {
                assert!(sizes.contains(&0) || want.is_err(), "left to the reference at {sizes:?}\n{nest}");
            } else if let Some(d) = difference(&want, &have) {
                panic!("at {sizes:?}: {d}\n{nest}");
            }
        }
    }
}

/// Protects: a loop in an arm is computed where the arm is taken, and reads nothing elsewhere.
#[test]
fn loops_in_arms() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (build (size x) (lam (i : Integer)
             (if (lt i 2) 0.0 (sumbuild 2 (lam (k : Integer) (index (sub (sub i k) 1) x)))))))",
        "\
sum[i < x_size0]
  when (gte i 2)
  from 0.0
  over k < 2
  = (add acc0 x[(sub (sub i k) 1)])
tensor[i < x_size0]
  = (if (lt i 2) 0.0 sum[i])
result x_size0, tensor
",
    );
}

/// Protects: what an arm does not ask of a loop is computed once, not in all iterations of the loop.
#[test]
fn what_no_arm_asks_of_its_loops_is_hoisted() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (build m (lam (i : Integer) (if (gt i 1) (sumbuild (size x) (lam (k : Integer) (index k x))) 0.0))))",
        "\
sum[]
  from 0.0
  over k < x_size0
  = (add acc0 x[k])
tensor[i < m]
  = (if (gt i 1) sum[] 0.0)
result m, tensor
",
    );
}

/// Protects: sums of tensors and tuples are reductions over their elements, in the order of the source.
#[test]
fn sums_of_tensors_and_tuples() {
    check(
        "(def f (Tuple (Vec Float) Float) (x : (Tensor 2 Float) (n m))
           (sumbuild n (lam (i : Integer)
             (tuple (build m (lam (j : Integer) (mul 2.0 (index (tuple i j) x)))) (to_float i)))))",
        "\
tensor[i < x_size0, j < x_size1]
  = (mul 2.0 x[i, j])
sum[]
  from 0.0
  over i < x_size0
  = (add acc0 (to_float i))
sum_2[j < x_size1]
  from 0.0
  over i < x_size0
  = (add acc0 tensor[i, j])
result x_size1, sum_2, sum[]
",
    );
}

/// Protects: a scatter over a product of sizes is loops over its factors, its indices need no check where they are digits,
/// and steps that add 0 are none.
#[test]
fn scatters() {
    check(
        "(def f (Vec Float) (x : (Tensor 2 Float) (n m))
           (buildFromSparse m (mul n m) (lam (k : Integer)
             (let (v (index (tuple (div k m) (mod k m)) x)) (if (gt v 0.0) (tuple (mod k m) v) (tuple 0 0.0))))))",
        "\
scatter[i < x_size1]
  over k_1 < x_size0, k < x_size1
  only (gt x[k_1, k] 0.0)
  at k add x[k_1, k]
result x_size1, scatter
",
    );
}

/// Protects: what is computed for each index of such a scatter is computed for its digits, and so where there may be no index
/// at all.
#[test]
fn scatters_of_what_is_computed() {
    check(
        "(def f (Vec Float) (x : (Tensor 2 Float) (n m))
           (buildFromSparse 2 (if (gt n 1) (mul n m) 0) (lam (k : Integer)
             (let (best (argmax 2 (lam (j : Integer) (mul (to_float j) (index (tuple (div k m) (mod k m)) x)))))
               (tuple best (index (tuple (div k m) (mod k m)) x))))))",
        "\
best[k_1 < (if (gt x_size0 1) x_size0 0), k < (if (gt x_size0 1) x_size1 0)]
  from 0.0
  from 0
  over j < 2
  = (if (or (eq j 0) (precedes (neg (mul (to_float j) x[k_1, k])) (neg acc0))) (mul (to_float j) x[k_1, k]) acc0)
  = (if (or (eq j 0) (precedes (neg (mul (to_float j) x[k_1, k])) (neg acc0))) j acc1)
scatter[i < 2]
  over k_1 < (if (gt x_size0 1) x_size0 0), k < (if (gt x_size0 1) x_size1 0)
  at best.1[k_1, k] add x[k_1, k]
result 2, scatter
",
    );
}

/// Protects: stages that compute the same are one, whatever their loops are called.
#[test]
fn equal_stages_are_one() {
    check(
        "(def f Float (x : (Vec Float))
           (let ((a (build (size x) (lam (i : Integer) (exp (index i x)))))
                 (b (build (size x) (lam (j : Integer) (exp (index j x))))))
             (add (sumbuild (size x) (lam (k : Integer) (mul (index k a) (index k b)))) (sum b))))",
        "\
a[i < x_size0]
  = (exp x[i])
sum[]
  from 0.0
  over k < x_size0
  = (add acc0 (mul a[k] a[k]))
sum_2[]
  from 0.0
  over i < x_size0
  = (add acc0 a[i])
result (add sum[] sum_2[])
",
    );
}

/// Protects: so are those whose sums and products of floats have their operands in the other order, which rounds the same.
#[test]
fn stages_of_swapped_operands_are_one() {
    check(
        "(def f Float (x : (Vec Float))
           (let ((a (build (size x) (lam (i : Integer) (exp (add 1.0 (mul (index i x) 2.0))))))
                 (b (build (size x) (lam (j : Integer) (exp (add (mul 2.0 (index j x)) 1.0))))))
             (add (sumbuild (size x) (lam (k : Integer) (mul (index k a) (index k b)))) (sum b))))",
        "\
a[i < x_size0]
  = (exp (add 1.0 (mul x[i] 2.0)))
sum[]
  from 0.0
  over k < x_size0
  = (add acc0 (mul a[k] a[k]))
sum_2[]
  from 0.0
  over i < x_size0
  = (add acc0 a[i])
result (add sum[] sum_2[])
",
    );
}

/// Protects: the index of a least element is in range, and what it reads needs no check.
#[test]
fn least_indices_are_in_range() {
    check(
        "(def f (Vec Float) (x : (Tensor 2 Float) (n m))
           (build n (lam (i : Integer)
             (index (tuple i (argmin m (lam (j : Integer) (index (tuple i j) x)))) x))))",
        "\
sum[i < x_size0]
  from 0.0
  from 0
  over j < x_size1
  = (if (or (eq j 0) (precedes x[i, j] acc0)) x[i, j] acc0)
  = (if (or (eq j 0) (precedes x[i, j] acc0)) j acc1)
tensor[i < x_size0]
  = x[i, sum.1[i]]
result x_size0, tensor
",
    );
}

/// Protects: conditions that all sizes but 0 decide are decided; empty tensors are left to the reference.
#[test]
fn sizes_above_0_are_taken_for_granted() {
    check(
        "(def f (Vec Float) (x : (Vec (Vec Float)))
           (if (gt (size x) 0) (build (size$2 x) (lam (j : Integer) (index j (index 0 x)))) (constVec 0 0.0)))",
        "\
result[j < x_size1]
  = x[0, j]
result x_size1, result
",
    );
}

/// Protects: sizes that wrap around are not taken for what their linear forms say.
#[test]
fn forms_of_large_coefficients_prove_nothing() {
    check(
        "(def f Float ((n : Integer))
           (let ((v (build n (lam (i : Integer) 1.0)))
                 (w (build (mul n 4611686018427387904) (lam (i : Integer) 0.0))))
             (if (gt n 0) (if (gt (size w) 0) (sum v) 2.0) 3.0)))",
        "\
sum[]
  when (gt (mul n 4611686018427387904) 0)
  from 0.0
  over i < n
  = (add acc0 1.0)
result (if (gt (mul n 4611686018427387904) 0) sum[] 2.0)
",
    );
}

/// Protects: the condition of an arm is evaluated only where what guards it holds, the index that it reads at included.
#[test]
fn conditions_of_arms_are_guarded() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (y : (Vec Float)))
           (build (size x) (lam (i : Integer)
             (if (gt (index (cast Integer (mul 4.0 (index i x))) y) 0.0)
               (sumbuild 3 (lam (k : Integer) (mul (to_float k) (index i x)))) 0.0))))",
        "\
sum[i < x_size0]
  when (if (gte (cast Integer (mul 4.0 x[i])) 0) (if (lt (cast Integer (mul 4.0 x[i])) y_size0) (gt y[(cast Integer (mul 4.0 x[i]))] 0.0) false) false)
  check (gte (cast Integer (mul 4.0 x[i])) 0)
  check (lt (cast Integer (mul 4.0 x[i])) y_size0)
  from 0.0
  over k < 3
  = (add acc0 (mul (to_float k) x[i]))
tensor[i < x_size0]
  check (gte (cast Integer (mul 4.0 x[i])) 0)
  check (lt (cast Integer (mul 4.0 x[i])) y_size0)
  = (if (gt y[(cast Integer (mul 4.0 x[i]))] 0.0) sum[i] 0.0)
result x_size0, tensor
",
    );
}

/// Protects: where there is nothing to choose from, nothing is read at what was chosen.
#[test]
fn least_indices_of_nothing_read_nothing() {
    check(
        "(def f (Vec Float) (x : (Tensor 2 Float) (n m))
           (build n (lam (i : Integer)
             (if (gt (to_float i) 0.5)
               (sumbuild 2 (lam (k : Integer)
                 (index (tuple i (argmin m (lam (j : Integer) (index (tuple i j) x)))) x))) 0.0))))",
        "\
sum[i < x_size0]
  when (gt (to_float i) 0.5)
  from 0.0
  from 0
  over j < x_size1
  = (if (or (eq j 0) (precedes x[i, j] acc0)) x[i, j] acc0)
  = (if (or (eq j 0) (precedes x[i, j] acc0)) j acc1)
sum_2[i < x_size0]
  when (gt (to_float i) 0.5)
  check (if (gt (to_float i) 0.5) (gt x_size1 0) true)
  from 0.0
  over k < 2
  = (add acc0 x[i, sum.1[i]])
tensor[i < x_size0]
  = (if (gt (to_float i) 0.5) sum_2[i] 0.0)
result x_size0, tensor
",
    );
}

/// Protects: what is asked before a row is asked where the row is empty, also where rows are summed.
#[test]
fn checks_of_empty_rows_are_made() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (sumbuild (size x) (lam (i : Integer)
             (assert (gt (index i x) 0.0) (build m (lam (j : Integer) (mul (to_float j) (index i x))))))))",
        "\
tensor[i < x_size0, j < m]
  = (mul (to_float j) x[i])
check[i < x_size0]
  check (gt x[i] 0.0)
sum[j < m]
  from 0.0
  over i < x_size0
  check (gt x[i] 0.0)
  = (add acc0 tensor[i, j])
result m, sum
",
    );
}

/// Protects: scans are stages over their steps; numbers of a state are variables.
#[test]
fn scans() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (scan (lam ((s : Float) (i : Integer)) (add (mul 0.5 s) (index i x))) 1.0 (size x)))",
        "\
state[step < (add x_size0 1)]
  from 1.0
  by step, after at
  = (add (mul 0.5 state[(sub step 1)]) x[(sub step 1)])
result[i < x_size0]
  = state[(add i 1)]
result x_size0, result
",
    );
}

/// Protects: a step may read any element of the state before it, in loops of its own, and states of several shapes go
/// together.
#[test]
fn folds_over_tensors() {
    check(
        "(def f (Tuple (Vec Float) Float) ((a : (Tensor 2 Float)) (m : Integer))
           (fold (lam ((s : (Tuple (Vec Float) Float)) (k : Integer))
               (let ((v (get$1$2 s)) (t (get$2$2 s)))
               (let (w (build (size v) (lam (i : Integer) (add t (index (sub (sub (size v) 1) i) v)))))
                 (tuple w (mul 0.5 (sum w))))))
             (tuple (build (get$2$2 (size a)) (lam (j : Integer) (index (tuple 0 j) a))) 1.0) (build m (lam (k : Integer) k))))",
        "\
state[step < (add m 1)]
  from 1.0
  by step, after at
  = (mul 0.5 sum[(sub step 1)])
state_2[step < (add m 1), j < a_size1]
  from a[0, j]
  by step, after at
  = w[(sub step 1), j]
w[at < m, i < a_size1]
  = (add state[at] state_2[at, (sub (sub a_size1 i) 1)])
sum[at < m]
  from 0.0
  over i < a_size1
  = (add acc0 w[at, i])
result[j < a_size1]
  = state_2[m, j]
result a_size1, result, state[m]
",
    );
}

/// Protects: a recurrence in the loops of others, whose steps may fail, in an arm, and in the steps of another.
#[test]
fn recurrences_in_loops() {
    check(
        "(def f (Tensor 1 (Vec Float)) (x : (Tensor 2 Float) (n m))
           (build n (lam (i : Integer)
             (if (gt i 0)
               (scan (lam ((s : Float) (j : Integer)) (assert (lt s 100.0) (max s (index (tuple i j) x)))) (to_float i) m)
               (build m (lam (j : Integer) 0.0))))))",
        "\
state[i < x_size0, step < (add x_size1 1)]
  when (gt i 0)
  from (to_float i)
  by step, after at
  check (if (gt i 0) (lt state[i, (sub step 1)] 100.0) true)
  = (max state[i, (sub step 1)] x[i, (sub step 1)])
result[i < x_size0, i < x_size1]
  = (if (gt i 0) state[i, (add i 1)] 0.0)
result x_size0, (if (gt x_size0 0) x_size1 0), result
",
    );
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (fold (lam ((s : (Vec Float)) (k : Integer))
               (let (t (fold (lam ((u : (Vec Float)) (j : Integer))
                     (build (size u) (lam (i : Integer) (add (index i u) (mul 0.25 (index (sub (sub (size u) 1) i) s))))))
                   s (build 2 (lam (j : Integer) j))))
                 (build (size s) (lam (i : Integer) (sub (index i t) (index i s))))))
             x (build m (lam (k : Integer) k))))",
        "\
state[step < (add m 1)]
  by step, after at
state_2[step < (add m 1), x_at0 < x_size0]
  from x[x_at0]
  by step, after at
  = tensor_2[(sub step 1), x_at0]
t[at < m, step < 3]
  by step, after at
t_2[at < m, step < 3, x_at0 < x_size0]
  from state_2[at, x_at0]
  by step, after at
  = tensor[at, (sub step 1), x_at0]
tensor[at < m, at < 2, i < x_size0]
  = (add t_2[at, at, i] (mul 0.25 state_2[at, (sub (sub x_size0 i) 1)]))
tensor_2[at < m, i < x_size0]
  = (sub t_2[at, 2, i] state_2[at, i])
result[x_at0 < x_size0]
  = state_2[m, x_at0]
result x_size0, result
",
    );
}

/// Protects: a reduction has the name of the tensor of its values, as in the source, and what reads it in another order none.
#[test]
fn reductions_have_the_names_of_their_tensors() {
    check(
        "(def f (Vec Float) ((x : (Tensor 2 Float) (n m)))
           (let ((totals (build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (index (tuple i j) x))))))
                 (most (reduce max n (lam (i : Integer) (index i totals))))
                 (turned (build n (lam (i : Integer) (index (sub (sub n 1) i) totals)))))
             (build n (lam (i : Integer) (div (index i turned) most)))))",
        "\
totals[i < x_size0]
  from 0.0
  over j < x_size1
  = (add acc0 x[i, j])
most[]
  from -inf
  over i < x_size0
  = (maximum acc0 totals[i])
tensor[i < x_size0]
  = (div totals[(sub (sub x_size0 i) 1)] most[])
result x_size0, tensor
",
    );
}

/// Protects: what nothing needs is no stage, but for what may fail: of a step that is asked for the step that is taken.
#[test]
fn dead_stages_go_but_for_checks() {
    check(
        "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
           (fold (lam ((s : (Vec Float)) (k : Integer))
               (let ((dead (build (size s) (lam (i : Integer) (exp (index i s)))))
                     (asked (build (size s) (lam (i : Integer) (assert (lt (index i s) 4.0) (index i dead))))))
                 (build (size s) (lam (i : Integer) (add 1.0 (index i s))))))
             x (build m (lam (k : Integer) k))))",
        "\
state[step < (add m 1)]
  by step, after at
state_2[step < (add m 1), x_at0 < x_size0]
  from x[x_at0]
  by step, after at
  = tensor[(sub step 1), x_at0]
asked[at < m, i < x_size0]
  check (lt state_2[at, i] 4.0)
tensor[at < m, i < x_size0]
  = (add 1.0 state_2[at, i])
result[x_at0 < x_size0]
  = state_2[m, x_at0]
result x_size0, result
",
    );
}

/// Protects: where only values over the reals stay, products that are added are fused, and nothing else changes: every number
/// is off by few roundings of the greatest one, at every size and under every schedule.
#[test]
fn fused_graphs_are_equal_over_the_reals() {
    let text = "(def f (Vec Float) ((x : (Vec Float)) (m : Integer))
      (build (size x) (lam (i : Integer)
        (sub (mul 0.5 (index i x)) (sumbuild m (lam (k : Integer) (mul (index i x) (to_float k))))))))";
    let program = read(text);
    let def = program.named("f")[0];
    let mut graph = extract(&program, def).unwrap();
    graph.real = true;
    let graph = common::scheduled::contracted(graph).graph.as_ref().clone();
    let shown = graph.to_string();
    assert!(
        shown.contains("= (fma x[i] (to_float k) acc0)") && shown.contains("= (fma 0.5 x[i] (neg sum[i]))"),
        "{shown}"
    );
    for sizes in [[0, 3], [1, 1], [5, 5], [9, 7], [17, 40]] {
        let args = arguments(&program, sizes);
        let want = Interpreter::new(&program).run(def, &args).unwrap();
        for s in [Schedule::new(graph.clone()), schedule::default(graph.clone(), &Machine::host())] {
            let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap();
            let Ok(have) = interpret(&nest, &args, &mut String::new()) else {
                assert!(sizes.contains(&0), "{nest}");
                continue;
            };
            assert!(common::random::near(&want, &have, 1.0), "{want:?} {have:?}");
        }
    }
}

/// Protects: a size that has no value in some iteration of a loop is not asked for: no check would come before it.
#[test]
fn sizes_in_loops_have_values() {
    let text = "(def f Float (n : Integer)
      (sumbuild n (lam (i : Integer) (sumbuild (div 3 i) (lam (k : Integer) 1.0)))))";
    let program = read(text);
    let why = extract(&program, program.named("f")[0]).unwrap_err();
    assert_eq!(why.reason, "a size that may have no value in a loop");
}

/// Protects: what an arm says of a size is not taken for known outside of it: a product that is a size where an index is at least 1
/// is below 0 at 0, where other arms ask for that.
#[test]
fn sizes_in_arms_are_sizes_there_alone() {
    let text = "(def f (Vec Float) (n : Integer)
      (build n (lam (l : Integer)
        (let (size (mul (mul n n) (sub l 1)))
          (add (if ARM (sumbuild size (lam (k : Integer) (sin (to_float (add k l))))) 0.0)
               (if (gte size 0) 1.0 7.0))))))";
    for arm in ["(gt l 0)", "(lt 1 l)"] {
        let program = read(&text.replace("ARM", arm));
        let def = program.named("f")[0];
        let graph = match extract(&program, def) {
            Ok(graph) => graph,
            Err(refused) => {
                assert_eq!(refused.reason, "a size that may be large in a loop");
                continue;
            }
        };
        for n in 0..5 {
            let args = [Value::Scalar(Lit::int(n))];
            let made = schedule::default(graph.clone(), &Machine::host());
            let nest = native::scheduled_nest(def, &made, &Machine::host()).unwrap();
            let have = interpret(&nest, &args, &mut String::new());
            assert_eq!(difference(&Interpreter::new(&program).run(def, &args), &have), None, "{arm} {n}");
        }
    }
}
