//! Recurrences of many rows take their steps together, in lanes or as text, by default and by hand, to the interpreter's bits;
//! loops that ask where they are have a middle that does not ask.

use crate::common;
use crate::common::dice::Dice;
use crate::common::scheduled::{compare, empty, read, scheduled, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::Schedule;

/// Sums along rows and along columns, and a filter whose state is two numbers.
const ROWS: &str = "
(def along (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)))
  (build n (lam (i : Integer) (scan (lam ((s : Float) (j : Integer)) (add s (index j (index i x)))) 0.0 m))))
(def down (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)))
  (build m (lam (j : Integer) (scan (lam ((s : Float) (i : Integer)) (add s (index j (index i x)))) 0.0 n))))
(def filter (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)))
  (build n (lam (i : Integer)
    (let (t (scan (lam ((s : (Tuple Float Float)) (k : Integer))
       (let ((p q) s) (tuple (add (index k (index i x)) (sub (mul 0.5 p) (mul 0.25 q))) p))) (tuple 0.0 1.0) m))
      (build m (lam (j : Integer) (let ((p q) (index j t)) (sub p q))))))))
(def summed (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)))
  (build n (lam (i : Integer)
    (scan (lam ((s : Float) (j : Integer)) (sumbuild 3 (lam (k : Integer) (mul s (index (mod (add k j) m) (index i x)))))) 1.0 m))))
";

impl Dice {
    /// A number of a step: of the state `p`, `q`, the element `v`, and where the step is.
    fn number(&mut self, depth: u64) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.one(&["p", "q", "v", "0.5", "(to_float k)", "(to_float i)"]).to_string();
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(6) {
            0 => format!("(if {} {a} {b})", self.question()),
            1 => format!("(div {a} (add 2.0 (mul v v)))"),
            k => format!("({} {a} {b})", ["add", "sub", "mul", "max"][k as usize - 2]),
        }
    }

    /// What is asked of the step, the row, or a number.
    fn question(&mut self) -> String {
        let by = self.below(4);
        match self.below(4) {
            0 => format!("({} k {by})", self.one(&["lt", "gte", "eq"])),
            1 => format!("({} (sub m k) {by})", self.one(&["gt", "lte", "ne"])),
            2 => format!("(lt i {by})"),
            _ => "(lt p v)".to_string(),
        }
    }

    /// A recurrence of each row of a matrix, or of each column, whose state is two numbers; all of its states, or the last ones.
    fn program(&mut self) -> String {
        let element =
            self.one(&["(index k (index i x))", "(index i (index k x))", "(index (sub (sub m k) 1) (index i x))"]);
        let [n, m] = if element.starts_with("(index i") { ["m", "n"] } else { ["n", "m"] };
        let (next, other) = (self.number(3), self.number(2));
        let of = |s: String| if m == "n" { s.replace("(sub m k)", "(sub n k)") } else { s };
        let result = match self.below(3) {
            0 => format!("(let (t STATES) (build {m} (lam (j : Integer) (let ((p q) (index j t)) (add p q)))))"),
            1 => format!(
                "(let (t STATES) (build {m} (lam (j : Integer) (let ((p q) (index (sub (sub {m} j) 1) t)) p))))"
            ),
            _ => format!(
                "(let (t STATES) (build (if (gt {m} 0) 2 0) (lam (j : Integer) (let ((p q) (index (sub {m} 1) t)) q))))"
            ),
        };
        let states = format!(
            "(scan (lam ((s : (Tuple Float Float)) (k : Integer)) \
               (let ((p q) s) (let (v {element}) (tuple {} {})))) (tuple 1.0 (to_float i)) {m})",
            of(next),
            of(other)
        );
        format!(
            "(def f (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n m)))\n  (build {n} (lam (i : Integer)\n    {})))",
            result.replace("STATES", &states)
        )
    }
}

/// The default schedule for arguments, by how long vectors are.
fn by_default(program: &Program, def: &str, args: &[Value], vector_bytes: u32) -> Schedule {
    let sizes = daedal::tune::example::incoming(program.named(def)[0], args);
    let graph = empty(program, def).graph.only_for(&sizes);
    daedal::schedule::default(graph, &Machine { vector_bytes, ..Machine::host() })
}

/// Whether loops over rows stand in a loop over steps.
fn takes_steps_together(s: &Schedule) -> bool {
    s.graph.ids().any(|p| {
        let plan = s.plan(p);
        let over = plan.loops.iter().position(|l| plan.steps.is_some() && plan.root(&l.name) == plan.steps);
        over.is_some_and(|k| k + 1 < plan.loops.len())
    })
}

/// Protects: by default, random recurrences of rows have the interpreter's bits, at sizes that fill vectors and that do not.
#[test]
fn random_recurrences_of_rows_change_no_bit() {
    let cases: u64 = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut together = 0;
    for seed in 0..cases {
        let mut dice = Dice(seed * 77 + 5);
        let program = read(&dice.program());
        let [n, m] = [[9, 20], [33, 5], [40, 40], [3, 17], [16, 1], [4, 0], [70, 18]][(seed % 7) as usize];
        let args = vec![rows(n, m)];
        let s = by_default(&program, "f", &args, [16, 32, 64][(seed % 3) as usize]);
        together += usize::from(takes_steps_together(&s));
        compare(&program, "f", &s, &[args], true);
    }
    assert!(together * 3 >= cases as usize, "only {together} of {cases} take steps together");
}

/// A matrix as rows.
fn rows(n: usize, m: usize) -> Value {
    let row = |i: usize| {
        let each = (0..m).map(|j| Value::Scalar(Lit::of(Scalar::F64, ((i * 7 + j * 3) % 13) as f64 * 0.7 - 3.0)));
        Value::tensor(vec![m], each.collect())
    };
    Value::tensor(vec![n], (0..n).map(row).collect())
}

/// Protects: the loops over rows stand in that over steps, in any order and in parts that do not divide them, as vectors and
/// as text, on threads; also where only some states are read.
#[test]
fn rows_by_hand() {
    let program = read(ROWS);
    let calls = [(9, 10), (16, 18), (1, 1), (0, 5), (3, 0), (5, 33)].map(|(n, m)| vec![rows(n, m)]);
    let cases = [
        ("along", "compute-root state\nreorder state step i"),
        ("along", "compute-root state\nsplit state i 4\nreorder state io step ii\nunroll state ii\nparallel state io"),
        (
            "down",
            "compute-root state\nsplit state j 4\nreorder state jo step ji\nvectorize state ji\nparallel state jo",
        ),
        ("down", "split result j 4\ncompute-at state result jo\nreorder state step j"),
        (
            "filter",
            "compute-root t\nsplit t i 8\nsplit t ii 4\nreorder t io step iio iii\nvectorize t iii\nunroll t iio",
        ),
    ];
    for (def, steps) in cases {
        // Of nothing, sizes of what is never made are asked of the reference.
        compare(&program, def, &scheduled(&program, def, steps), &calls, true);
    }
}

/// Protects: what a step computes by itself of a state is computed for all rows that take it together.
#[test]
fn what_waits_for_a_step_is_computed_for_all_rows() {
    let program = read(ROWS);
    let calls = [(9, 10), (16, 18), (1, 1), (0, 5), (3, 0), (5, 33)].map(|(n, m)| vec![rows(n, m)]);
    for steps in [
        "compute-root state\nreorder state step i",
        "compute-root state\nsplit state i 4\nreorder state io step ii\nvectorize state ii",
    ] {
        compare(&program, "summed", &scheduled(&program, "summed", steps), &calls, true);
    }
}

/// Protects: by default rows take their steps together, in blocks that stay in a near cache, and are vectors where they lie next
/// to each other; each block takes all steps once.
#[test]
fn the_default_schedule_takes_the_steps_of_rows_together() {
    let program = read(ROWS);
    let machine = Machine { vector_bytes: 32, threads: 1, caches: [32 << 10, 512 << 10, 8 << 20] };
    let shown = |def: &str| {
        let sizes = daedal::tune::example::incoming(program.named(def)[0], &[rows(100, 50)]);
        daedal::schedule::default(empty(&program, def).graph.only_for(&sizes), &machine).to_string()
    };
    let along = "\
result[i, i2]
  for io
    state[i, step]
      for io
        for step < 51, reduced
          for ii < 8, unrolled
    for ii < 32
      for i2o
        for i2i < 4, vector
";
    assert_eq!(shown("along"), along);
    let down = "\
state[j, step]
  for jo
    for step < 101, reduced
      for jio, unrolled
        for jii < 4, vector
result[j, i]
  for j < 50
    for io
      for ii < 4, vector
";
    assert_eq!(shown("down"), down);
}

/// Protects: a loop that asks whether it is at an end has a middle that asks nothing; one that is asked in the middle of it stays.
#[test]
fn loops_that_ask_are_cut() {
    let program = read(
        "(def f (Vec Float) ((x : (Vec Float) n))
           (build n (lam (i : Integer)
             (if (lt (add i 2) n) (add (index i x) (if (eq i 1) 3.0 (index (add i 1) x))) (neg (index i x))))))
         (def g (Vec Float) ((x : (Vec Float) n) (k : Integer))
           (build n (lam (i : Integer) (if (lt i k) (exp (index i x)) (index i x)))))",
    );
    let machine = Machine { vector_bytes: 32, ..Machine::host() };
    for n in [0, 1, 2, 3, 16, 17, 40] {
        let x = tensor(Scalar::F64, &[n], 3);
        let (chosen, all) = (by_default(&program, "f", std::slice::from_ref(&x), 32), empty(&program, "f"));
        let nest = native::scheduled_nest(program.named("f")[0], &all, &machine).unwrap().to_string();
        assert!(nest.contains("middle") && !nest.contains("leave"), "{n}\n{nest}");
        for s in [chosen, all] {
            compare(&program, "f", &s, &[vec![x.clone()]], true);
        }
        for k in [-3, 0, 7, 100] {
            let args = vec![x.clone(), Value::Scalar(Lit::int(k))];
            compare(&program, "g", &by_default(&program, "g", &args, 32), std::slice::from_ref(&args), true);
        }
    }
}

/// Protects: what a step computes of a state of a few numbers runs in whole vectors and shorter ones, as text, none of which
/// overlaps another, with the interpreter's bits however many numbers there are.
#[test]
fn short_rows_of_a_step_are_text() {
    let program = read(
        "(def f (Vec (Vec Float)) ((x : (Tensor 2 Float) (n d)) (w : (Vec Float) d))
           (scan (lam ((s : (Vec Float)) (k : Integer))
                   (let ((a (build d (lam (i : Integer) (exp (mul 0.1 (index i s))))))
                         (b (build d (lam (i : Integer) (div (index i w) (add 1.0 (index i a)))))))
                     (build d (lam (i : Integer)
                       (mul 0.5 (add (mul (index i a) (index i b)) (add (index (tuple k i) x) (sub (index i b) (index i a)))))))))
                 w n))",
    );
    for (d, vector_bytes) in
        [(1, 32), (2, 32), (3, 32), (5, 32), (6, 64), (7, 64), (14, 32), (14, 64), (16, 32), (19, 32), (40, 32)]
    {
        let matrix = common::scheduled::tensor(Scalar::F64, &[6, d], 3);
        let args = vec![matrix, common::scheduled::tensor(Scalar::F64, &[d], 4)];
        let s = by_default(&program, "f", &args, vector_bytes);
        compare(&program, "f", &s, std::slice::from_ref(&args), false);
        let lanes = vector_bytes as usize / 8;
        if d > lanes && d <= 4 * lanes {
            let nest = daedal::pipeline::native::scheduled_nest(program.named("f")[0], &s, &Machine::host()).unwrap();
            let (steps, _) =
                nest.to_string().split_once("alloc result").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
            assert!(!steps.contains("(min "), "{d} in {lanes} lanes\n{steps}");
        }
    }
}

/// Protects: exponentials that the steps of one running sum read are made before it, in vectors; additions stay in the steps.
#[test]
fn what_takes_long_is_made_before_the_steps_of_a_number() {
    let text = |of: &str| {
        format!(
            "(def f (Vec Float) (x : (Vec Float) n)
               (let (v (build n (lam (i : Integer) {of})))
                 (scan (lam ((s : Float) (i : Integer)) (add s (mul 0.5 (index i v)))) 0.0 n)))"
        )
    };
    for (of, inlined) in [("(exp (index i x))", false), ("(add 1.0 (index i x))", true)] {
        let program = read(&text(of));
        for n in [0, 1, 50] {
            let args = [tensor(Scalar::F64, &[n], 1)];
            let made = by_default(&program, "f", &args, 32);
            let is_inlined = made.steps.iter().any(|s| s.to_string().starts_with("inline "));
            assert_eq!(is_inlined, inlined, "{:#?}", made.steps);
            compare(&program, "f", &made, &[args.to_vec()], n == 0);
        }
    }
}
