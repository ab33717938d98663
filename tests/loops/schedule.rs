//! Scheduled programs have the bits of the interpreter, whatever the schedule: as nests, compiled, on one thread and two.

use crate::common::scheduled::{check, compare, empty, read, scheduled, tensor, tools};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use daedal::schedule::{Schedule, text};
use daedal::stage::extract;

const MATMUL: &str = "
(def plain (Tensor 2 Float32) ((a : (Tensor 2 Float32) (n m)) (b : (Tensor 2 Float32) (m p)))
  (build (tuple n p) (lam ((i : Integer) (j : Integer))
    (sumbuild m (lam (k : Integer) (mul (index (tuple i k) a) (index (tuple k j) b)))))))
(def contracted (Tensor 2 Float32) ((a : (Tensor 2 Float32) (n m)) (b : (Tensor 2 Float32) (m p)))
  (build (tuple n p) (lam ((i : Integer) (j : Integer))
    (iterate m (lam ((acc : Float32) (k : Integer)) (fma (index (tuple i k) a) (index (tuple k j) b) acc)) 0f32))))
";

/// Protects: what is scheduled by nobody has the interpreter's bits.
#[test]
fn the_empty_schedule_is_the_program() {
    let program = read(MATMUL);
    for def in ["plain", "contracted"] {
        let schedule = empty(&program, def);
        println!("{}", schedule.graph);
        let case = |n, m, p| vec![tensor(Scalar::F32, &[n, m], 1), tensor(Scalar::F32, &[m, p], 2)];
        check(&program, def, &schedule, &[case(3, 4, 5), case(1, 1, 1), case(0, 2, 3), case(2, 0, 3)]);
    }
}

const TILED: &str = "
split sum j 32
split sum ji 16
split sum i 4
reorder sum jo io k ii jio jii
vectorize sum jii
unroll sum ii
unroll sum jio
cache-read sum b at jo as panel
split panel panel1 16
vectorize panel panel1i
parallel sum jo
";

/// Protects: tiles, vectors, packed operands and threads, at sizes that no tile divides, smaller than a tile, and empty.
#[test]
fn a_tiled_product_is_the_product() {
    let program = read(MATMUL);
    for def in ["plain", "contracted"] {
        let schedule = scheduled(&program, def, TILED);
        let case = |n, m, p| vec![tensor(Scalar::F32, &[n, m], 1), tensor(Scalar::F32, &[m, p], 2)];
        let sizes = [(8, 8, 64), (1, 1, 1), (3, 5, 7), (4, 3, 32), (9, 13, 71), (0, 3, 40), (5, 0, 40), (13, 2, 33)];
        check(&program, def, &schedule, &sizes.map(|(n, m, p)| case(n, m, p)));
    }
}

const BLUR: &str = "
(def blur (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (across (build (tuple h (sub w 2)) (lam ((y : Integer) (c : Integer))
      (div (add (add (index (tuple y c) x) (index (tuple y (add c 1)) x)) (index (tuple y (add c 2)) x)) 3f32))))
    (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (div (add (add (index (tuple y c) across) (index (tuple (add y 1) c) across)) (index (tuple (add y 2) c) across))
           3f32)))))
(def clamped (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (at (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (mul 2f32 (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (index (tuple (max 0 (sub y 1)) c) at) (index (tuple y (min (sub w 1) (add c 1))) at))))))
(def bordered (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (at (build (tuple h w) (lam ((y : Integer) (c : Integer)) (mul 2f32 (index (tuple y c) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (if (and (gt y 0) (lt c (sub w 1))) (index (tuple (sub y 1) (add c 1)) at) 0f32)))))
";

/// Protects: stages computed in tiles of others, over the boxes that those need: fixed, clamped, and in one arm.
#[test]
fn stencils_are_computed_in_tiles() {
    let program = read(BLUR);
    let inner = ["blur", "clamped", "bordered"].map(|def| {
        let graph = empty(&program, def).graph;
        let names: Vec<String> = graph.stages.iter().map(|s| s.name.clone()).collect();
        (def, names)
    });
    for (def, names) in inner {
        let [first, last] = names.as_slice() else { panic!("{def}: {names:?}") };
        let text = format!(
            "split {last} y 4\nsplit {last} c 8\nreorder {last} yo co yi ci\nvectorize {last} ci\n\
             compute-at {first} {last} co\nsplit {first} c 8\nvectorize {first} ci\nparallel {last} yo"
        );
        let case = |h, w| vec![tensor(Scalar::F32, &[h, w], 3)];
        let sizes = [(4, 10), (6, 18), (3, 3), (2, 2), (1, 1), (0, 5), (13, 29), (11, 8)];
        for text in [text.as_str(), &format!("inline {first}"), &format!("compute-root {first}"), ""] {
            check(&program, def, &scheduled(&program, def, text), &sizes.map(|(h, w)| case(h, w)));
        }
    }
}

const DOT: &str = "
(def lanes Float32 ((x : (Vec Float32) n) (y : (Vec Float32) n))
  (let (each (build 16 (lam (l : Integer)
      (iterate (div n 16) (lam ((acc : Float32) (k : Integer))
        (fma (index (add (mul k 16) l) x) (index (add (mul k 16) l) y) acc)) 0f32))))
    (add (sum each) (sumbuild (mod n 16) (lam (k : Integer)
      (mul (index (add (mul (div n 16) 16) k) x) (index (add (mul (div n 16) 16) k) y)))))))
";

/// Protects: loops over elements inside those over what is reduced: each lane has its own accumulator.
#[test]
fn sums_in_lanes_are_the_sums() {
    let program = read(DOT);
    let graph = empty(&program, "lanes").graph;
    let first = &graph.stages[0].name;
    let schedule =
        scheduled(&program, "lanes", &format!("split {first} l 16\nreorder {first} lo k li\nvectorize {first} li"));
    let cases = [0, 1, 15, 16, 17, 100, 161].map(|n| vec![tensor(Scalar::F32, &[n], 5), tensor(Scalar::F32, &[n], 6)]);
    check(&program, "lanes", &schedule, &cases);
}

const FAILING: &str = "
(def quotient (Vec Integer) (v : (Vec Integer))
  (let (q (div 10 (index 0 v))) (build 3 (lam (i : Integer) (add q i)))))
(def gathered (Vec Float) ((v : (Vec Float)) (at : (Vec Integer)))
  (build (size at) (lam (j : Integer)
    (let (a (index (index j at) v)) (sumbuild 4 (lam (i : Integer) (mul a (to_float i))))))))
(def strided (Vec Float) ((v : (Vec Float)) (k : Integer))
  (build 3 (lam (j : Integer)
    (let (a (index (mul j k) v)) (sumbuild 4 (lam (i : Integer) (mul a (to_float i))))))))
(def row (Vec Float) ((m : (Vec (Vec Float))) (at : (Vec Integer))) (index (index 0 at) m))
(def started Integer ((v : (Vec Integer)) (n : Integer))
  (iterate n (lam ((s : Integer) (i : Integer)) (add s i)) (div 10 (index 0 v))))
(def hoisted (Vec Float) ((v : (Vec Float)) (w : (Vec Integer)) (n : Integer))
  (let (t (build n (lam (d : Integer) (index 0 v))))
    (build n (lam (j : Integer) (let (a (index (index 0 w) t)) (sumbuild 4 (lam (i : Integer) (mul a (to_float i)))))))))
(def unread Integer ((v : (Vec Integer)))
  (let (t (build (size v) (lam (i : Integer) (div 10 (index i v)))))
    (sumbuild 1 (lam (i : Integer) (index i t)))))
";

/// Protects: what a check guards is never evaluated before it: stages that are taken out of a loop, rows that are
/// results, first values of reductions, sizes in arms. Else compiled code would trap, or read out of bounds.
#[test]
fn nothing_is_evaluated_before_its_check() {
    let program = read(FAILING);
    let ints =
        |each: &[i64]| Value::tensor(vec![each.len()], each.iter().map(|v| Value::Scalar(Lit::int(*v))).collect());
    let int = |v| Value::Scalar(Lit::int(v));
    let far = 1 << 40;
    let x = tensor(Scalar::F64, &[3], 1);
    let rows = Value::tensor(vec![2], vec![tensor(Scalar::F64, &[2], 2), tensor(Scalar::F64, &[2], 3)].into());
    let cases: [(&str, Vec<Vec<Value>>); 7] = [
        ("quotient", vec![vec![ints(&[0])], vec![ints(&[])], vec![ints(&[3])]]),
        ("gathered", [&[0, 2][..], &[1, far], &[-far], &[]].map(|at| vec![x.clone(), ints(at)]).to_vec()),
        ("strided", [0, 1, far, -far, i64::MAX].map(|k| vec![x.clone(), int(k)]).to_vec()),
        ("row", [&[1][..], &[far], &[-1], &[]].map(|at| vec![rows.clone(), ints(at)]).to_vec()),
        ("started", [(0, 0), (0, 3), (2, 3), (2, 0)].map(|(v, n)| vec![ints(&[v]), int(n)]).to_vec()),
        (
            "hoisted",
            [(3, 0, 2), (3, 1, 1), (0, 0, 0), (0, far, 2), (3, far, 2)]
                .map(|(len, w, n)| vec![tensor(Scalar::F64, &[len], 1), ints(&[w]), int(n)])
                .to_vec(),
        ),
        ("unread", [&[5][..], &[5, 0], &[]].map(|v| vec![ints(v)]).to_vec()),
    ];
    for (name, cases) in cases {
        let def = program.named(name)[0];
        let graph = extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
        let made = daedal::schedule::default(graph.clone(), &Machine::host());
        for schedule in [Schedule::new(graph), made] {
            compare(&program, name, &schedule, &cases, name == "hoisted");
        }
    }
}

/// Protects: the start asks no size of an arm that has no value. It may give up where the arm is not taken.
#[test]
fn a_size_in_an_arm_divides_by_no_zero() {
    let program = read(
        "(def guarded Integer ((n : Integer) (m : Integer))
           (if (ne m 0) (index 0 (build (div n m) (lam (i : Integer) i))) 7))",
    );
    let schedule = empty(&program, "guarded");
    let cases = [(5, 0), (5, 2), (0, 3), (5, -1), (i64::MIN, -1)];
    let cases = cases.map(|(n, m)| [n, m].map(|v| Value::Scalar(Lit::int(v))).to_vec());
    compare(&program, "guarded", &schedule, &cases, true);
}

const TRIANGLE: &str = "
(def triangle Float ((x : (Vec Float)))
  (sumbuild (size x) (lam (j : Integer)
    (let (t (build j (lam (i : Integer) (mul 2.0 (index i x)))))
      (mul (sum t) (sumbuild j (lam (k : Integer) (mul (index k t) (index (sub j (add k 1)) t)))))))))
";

/// Protects: stages of which one dimension says how long another is: memory for the longest row, loops of each row's length.
#[test]
fn triangles_are_computed_whole_and_in_parts() {
    let program = read(TRIANGLE);
    let cases = [0, 1, 2, 3, 9, 20].map(|n| vec![tensor(Scalar::F64, &[n], 4)]);
    let texts = [
        "",
        "compute-root t",
        "compute-at t sum_3 j",
        "compute-root t\nparallel t j",
        "compute-root t\nsplit t i 4\nvectorize t ii",
        "compute-root t\nsplit t j 3",
        "compute-root t\nsplit t j 2\nsplit t i 2\nreorder t jo ji io ii\nunroll t ii",
        "compute-root t\ncompute-root sum_2\ncache-read sum_2 t at j as copy",
    ];
    for text in texts {
        check(&program, "triangle", &scheduled(&program, "triangle", text), &cases);
    }
}

const MOVED: &str = "
(def scores (Tensor 2 Float32) ((a : (Tensor 2 Float32) (n m)) (b : (Tensor 2 Float32) (p m)))
  (build (tuple n p) (lam ((i : Integer) (j : Integer))
    (mul 0.5f32 (sumbuild m (lam (k : Integer) (mul (index (tuple i k) a) (index (tuple j k) b))))))))
(def turned (Tensor 2 Float32) (a : (Tensor 2 Float32) (n m))
  (build (tuple m n) (lam ((i : Integer) (j : Integer)) (index (tuple j i) a))))
(def filtered (Tensor 2 Float32) ((x : (Tensor 2 Float32) (h w)) (f : (Tensor 2 Float32) (a b)))
  (build (tuple (add 1 (sub h a)) (add 1 (sub w b))) (lam ((y : Integer) (c : Integer))
    (sumbuild (tuple a b) (lam ((i : Integer) (j : Integer))
      (mul (index (tuple (add y i) (add c j)) x) (index (tuple i j) f)))))))
(def smoothed (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
    (sumbuild (tuple 3 3) (lam ((i : Integer) (j : Integer)) (index (tuple (add y i) (add c j)) x))))))
";

/// Protects: operands that are packed transposed, blocks, and last parts that move inwards: at sizes that no tile divides,
/// smaller than a tile, and empty.
#[test]
fn the_default_schedule_tiles_packs_and_moves() {
    let program = read(MOVED);
    let two = |seed, a: &[usize], b: &[usize]| vec![tensor(Scalar::F32, a, seed), tensor(Scalar::F32, b, seed + 1)];
    let one = |a: &[usize]| vec![tensor(Scalar::F32, a, 5)];
    let scores = [(13, 7, 131), (6, 1, 64), (5, 3, 2), (0, 3, 70), (7, 0, 70)];
    let cases = [
        ("scores", "by 1 0", scores.map(|(n, m, p)| two(1, &[n, m], &[p, m])).to_vec()),
        ("turned", "reorder result jo i ji", [(33, 47), (16, 16), (3, 40), (0, 3)].map(|(n, m)| one(&[n, m])).to_vec()),
        (
            "filtered",
            "reorder sum yo co",
            [(15, 150), (8, 68), (5, 20)].map(|(h, w)| two(3, &[h, w], &[3, 5])).to_vec(),
        ),
        ("smoothed", "unroll sum j", [(9, 70), (3, 3), (5, 34), (2, 9)].map(|(h, w)| one(&[h, w])).to_vec()),
    ];
    for (def, has, cases) in cases {
        let schedule = daedal::schedule::default((*empty(&program, def).graph).clone(), &Machine::host());
        let steps = schedule.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(steps.contains(has), "{def}\n{steps}");
        check(&program, def, &schedule, &cases);
        // What is printed is read back.
        let again = scheduled(&program, def, &steps);
        assert_eq!(again.steps, schedule.steps);
    }
    let lacking = "cache-read sum b at j as packed by 1 1";
    let start = empty(&program, "scores");
    let error = text::apply(start, &Source::new("test.sched", lacking)).map(drop).unwrap_err().render();
    assert!(error.contains("2 axes"), "{error}");
}

/// Protects: no step lets a failure go unseen, or a first value be read before it is there; the reason is said.
#[test]
fn what_may_fail_is_computed_whole() {
    let program = read(FAILING);
    let refused = |def: &str, steps: &str| {
        let start = empty(&program, def);
        text::apply(start, &Source::new("test.sched", steps)).map(drop).unwrap_err().render()
    };
    let error = refused("unread", "compute-at t sum i");
    assert!(error.contains("`t` may fail, and in `i` of `sum` not all of it would be computed"), "{error}");
    let error = refused("unread", "inline t");
    assert!(error.contains("`t` may fail, and is computed whole"), "{error}");
    let text = "(def f Float (x : (Vec Float)) (let (t (sum x)) (fold (lam ((s : Float) (v : Float)) (add s v)) t x)))";
    let program = read(text);
    let start = empty(&program, "f");
    let names: Vec<String> = start.graph.stages.iter().map(|s| s.name.clone()).collect();
    let [first, last] = names.as_slice() else { panic!("{names:?}") };
    let of = start.plan(start.graph.find(last).unwrap()).loops[0].name.clone();
    let steps = format!("compute-at {first} {last} {of}");
    let error = text::apply(start, &Source::new("test.sched", steps)).map(drop).unwrap_err().render();
    assert!(error.contains(&format!("`{last}` reads `{first}` before it reduces")), "{error}");
}

const CHAINS: &str = "
(def smooth (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (a (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) x) (index (tuple (add y 1) (add c 1)) x)) (index (tuple (add y 2) (add c 2)) x)))))
  (let (b (build (tuple (sub h 4) (sub w 4)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) a) (index (tuple (add y 1) (add c 1)) a)) (index (tuple (add y 2) (add c 2)) a)))))
    (build (tuple (sub h 6) (sub w 6)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) b) (index (tuple (add y 1) (add c 1)) b)) (index (tuple (add y 2) (add c 2)) b)))))))
(def clamped (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (across (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y (max 0 (sub c 2))) x) (index (tuple y c) x))
           (index (tuple y (max 0 (min (sub w 1) (sub (add c 3) 1)))) x)))))
    (build (tuple h w) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple (max 0 (sub y 1)) c) across) (index (tuple y c) across))
           (index (tuple (min (sub h 1) (add y 1)) c) across))))))
(def weighed (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (build (tuple h w) (lam ((y : Integer) (c : Integer))
    (sumbuild 5 (lam (k : Integer)
      (mul (cast Float32 (add k 1)) (index (tuple y (max 0 (min (sub w 1) (add c (sub k 2))))) x)))))))
(def spread (Tensor 2 Float32) (a : (Tensor 2 Float32) (n m))
  (let (mean (build n (lam (i : Integer) (div (sumbuild m (lam (k : Integer) (index (tuple i k) a))) (cast Float32 m)))))
  (let (e (build (tuple n m) (lam ((i : Integer) (j : Integer)) (exp (sub (index (tuple i j) a) (index i mean))))))
  (let (s (build n (lam (i : Integer) (sumbuild m (lam (k : Integer) (index (tuple i k) e))))))
    (build (tuple n m) (lam ((i : Integer) (j : Integer)) (div (index (tuple i j) e) (index i s))))))))
(def far (Vec Float) ((x : (Vec Float) n) (low : Integer) (by : Integer))
  (build n (lam (i : Integer) (add (index i x) (to_float (max low (sub i by)))))))
(def twice (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (a (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (sub (index (tuple (add y 2) (add c 1)) x) (mul 3f32 (index (tuple y c) x))))))
  (let (b (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (sub (index (tuple (add y 1) (add c 2)) x) (mul 3f32 (index (tuple y c) x))))))
    (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (mul (add (index (tuple y c) a) (index (tuple y c) b)) (sub (index (tuple y c) a) 1f32)))))))
";

/// The default schedule of a definition, as text.
fn by_default(program: &Program, def: &str, machine: &Machine) -> (Schedule, String) {
    let schedule = daedal::schedule::default((*empty(program, def).graph).clone(), machine);
    let shown = schedule.to_string();
    (schedule, shown)
}

/// Protects: by default, chains of stencils are computed in tiles, what reads whole rows a few rows at a time, what is read
/// once where it is read; with the interpreter's bits at sizes smaller than a tile, prime, and empty.
#[test]
fn the_default_schedule_computes_chains_in_tiles() {
    let program = read(CHAINS);
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 512 << 10, 8 << 20] };
    let tiles = [
        ("smooth", "tensor[y, c]\n  for yo, parallel\n    for co\n      a[y, c]\n", 3),
        (
            "clamped",
            "tensor[y, c]\n  for yo, parallel\n    for co\n      across[y, c]\n        for y < x_size0\n          for c < ",
            1,
        ),
        ("spread", "tensor[i, j]\n  for io, parallel\n    mean[i]\n", 2),
        (
            "twice",
            "tensor[y, c]\n  for y < (sub x_size0 2), parallel\n    for co\n      for ci < 8, vector\na where",
            1,
        ),
    ];
    let sizes = [(7, 9), (3, 3), (67, 131), (40, 73), (98, 70), (1, 1), (2, 17), (0, 5), (5, 0)];
    for (def, begins, vectors) in tiles {
        let (_, shown) = by_default(&program, def, &machine);
        assert!(shown.starts_with(begins), "{def}\n{shown}");
        assert_eq!(shown.matches("vector").count(), vectors, "{def}\n{shown}");
        let cases = sizes.map(|(h, w)| vec![tensor(Scalar::F32, &[h, w], 7)]);
        check(&program, def, &by_default(&program, def, &Machine::host()).0, &cases);
    }
}

/// Protects: loops whose indices are clamped have a middle in which nothing is, however the ends overlap.
#[test]
fn clamped_loops_are_cut_into_ends_and_a_middle() {
    let program = read(CHAINS);
    for (def, schedule) in
        [("clamped", empty(&program, "clamped")), ("weighed", by_default(&program, "weighed", &Machine::host()).0)]
    {
        let nest = native::scheduled_nest(program.named(def)[0], &schedule, &Machine::host()).unwrap().to_string();
        let middle: Vec<&str> =
            nest.lines().skip_while(|l| !l.contains("let c.") || !l.contains("middle")).take(4).collect();
        assert!(!middle.is_empty() && !middle.concat().contains("(max") && !middle.concat().contains("(min"), "{nest}");
        let cases = [(2, 1), (3, 2), (1, 3), (2, 4), (3, 5), (5, 16), (3, 37)]
            .map(|(h, w)| vec![tensor(Scalar::F32, &[h, w], 3)]);
        check(&program, def, &schedule, &cases);
    }
    // Where the middle began would not be a number of 64 bits.
    let ends = [(i64::MAX, 5), (i64::MAX, -5), (5, i64::MAX), (-5, i64::MIN), (i64::MIN, 5)];
    let int = |n: i64| Value::Scalar(Lit::int(n));
    let cases = ends.map(|(low, by)| vec![tensor(Scalar::F64, &[37], 3), int(low), int(by)]);
    check(&program, "far", &empty(&program, "far"), &cases);
}

const ARMS: &str = "
(def lower (Tensor 2 Float) ((a : (Tensor 2 Float) (n d)) (b : (Tensor 2 Float) (n d)))
  (build (tuple d d) (lam ((i : Integer) (j : Integer))
    (sumbuild n (lam (k : Integer)
      (if (lt j i) (mul (index (tuple k i) a) (index (tuple k j) b)) 0.0))))))
(def shifted (Tensor 2 Float) ((a : (Tensor 2 Float) (n d)) (m : Integer))
  (build (tuple d d) (lam ((i : Integer) (j : Integer))
    (sumbuild n (lam (k : Integer)
      (if (lt j (sub d 1)) (index (tuple k (add j 1)) a) (to_float (div i m))))))))
(def kept (Vec Float) ((x : (Vec Float) n) (m : Integer))
  (get$1$2 (if (eq m 0) (tuple x m)
    (fold (lam ((s : (Tuple (Vec Float) Integer)) (v : Float))
        (tuple (build n (lam (i : Integer) (add v (index i (get$1$2 s))))) (add 1 (get$2$2 s))))
      (tuple x m) x))))
";

/// Protects: both arms are evaluated only where they have a value at all indices; then lanes that take different ones are one
/// vector, by default, too.
#[test]
fn arms_that_have_a_value_are_selected_from() {
    let program = read(ARMS);
    let machine = Machine { vector_bytes: 32, ..Machine::host() };
    let by_hand = scheduled(&program, "lower", "if-convert sum\nsplit sum j 4\nreorder sum k ji\nvectorize sum ji");
    let by_default = daedal::schedule::default(empty(&program, "lower").graph.as_ref().clone(), &machine);
    assert!(by_default.steps.iter().any(|s| s.to_string() == "if-convert sum"), "{by_default}");
    for s in [by_hand, by_default] {
        let nest = native::scheduled_nest(program.named("lower")[0], &s, &machine).unwrap().to_string();
        assert!(nest.contains("(select ") && !nest.contains("lane "), "{nest}");
        let cases = [(3, 5), (0, 4), (4, 0), (1, 1), (5, 17)]
            .map(|(n, d)| vec![tensor(Scalar::F64, &[n, d], 1), tensor(Scalar::F64, &[n, d], 2)]);
        check(&program, "lower", &s, &cases);
    }
    // A state is there only where its recurrence takes its steps, in one arm.
    for (def, stage) in [("shifted", "sum"), ("kept", "result")] {
        let step = Source::new("test.sched", format!("if-convert {stage}"));
        let error = text::apply(empty(&program, def), &step).map(drop).unwrap_err().render();
        assert!(error.contains("no condition both arms of which are known to have a value"), "{error}");
    }
}

const TRANSPOSED: &str = "
(def spread (Tensor 2 Float) ((g : (Tensor 2 Float) (m c)) (k : (Tensor 2 Float) (t c)) (n : Integer))
  (build (tuple c n) (lam ((z : Integer) (j : Integer))
    (sumbuild c (lam (q : Integer)
      (sumbuild t (lam (i : Integer)
        (if (and (gte (sub j i) 0) (lt (sub j i) m))
            (mul (index (tuple (sub j i) q) g) (index (tuple i z) k))
            0.0))))))))
";

/// Protects: sums in which lanes would take arms that have no value elsewhere stay loops, of the indices at which they have one.
#[test]
fn sums_over_what_is_in_range_stay_loops() {
    let program = read(TRANSPOSED);
    let s = daedal::schedule::default(empty(&program, "spread").graph.as_ref().clone(), &Machine::host());
    let nest = native::scheduled_nest(program.named("spread")[0], &s, &Machine::host()).unwrap().to_string();
    assert!(!nest.contains("lane "), "{nest}");
    let cases =
        [(5, 2, 3, 7), (1, 1, 1, 1), (0, 3, 2, 4), (9, 4, 0, 9), (17, 3, 5, 40), (3, 0, 2, 5)].map(|(m, c, t, n)| {
            let n = Value::Scalar(Lit::int(n));
            vec![tensor(Scalar::F64, &[m, c], 1), tensor(Scalar::F64, &[t, c], 2), n]
        });
    check(&program, "spread", &s, &cases);
}

/// Protects: a line that is no step says what is one, once.
#[test]
fn steps_that_are_mistyped_are_explained() {
    let program = read(MATMUL);
    let refused = |steps: &str| {
        text::apply(empty(&program, "plain"), &Source::new("test.sched", steps)).map(drop).unwrap_err().render()
    };
    let error = refused("split sum j 64\nvectorise sum ji");
    assert!(error.contains("`cache-read`; did you mean `vectorize`?\n") && error.contains("test.sched:2:1"), "{error}");
    assert!(refused("cache-read sum b at j as p by 0 x").contains("expected the number of an axis, not `x`"));
    assert!(refused("split sum j").contains("expected `split STAGE LOOP FACTOR`"));
}

/// Protects: the reference is compiled in the first call that needs it, and once; where that does not work, the call says
/// so, and the next one tries again.
#[test]
fn the_reference_is_compiled_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, script) = (folder.path().join("cache"), folder.path().join("compiler"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_string());
    let write = || {
        std::fs::write(&script, format!("#!/bin/sh\nexec {compiler} \"$@\"\n")).unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    write();
    let tools = Toolchain::discover(script.to_str().map(ToString::to_string), Some(cache.clone()));
    let objects = || std::fs::read_dir(&cache).unwrap().filter(|e| is_object(&e.as_ref().unwrap().path())).count();
    let program = read(
        "(def main (Vec Integer) ((x : (Vec Integer) n) (y : (Vec Integer) n))
        (build n (lam (i : Integer) (div (index i x) (index i y)))))",
    );
    let def = program.named("main")[0];
    let made = native::compile_scheduled(&program, def, &empty(&program, "main"), &tools).unwrap();
    let vector =
        |each: &[i64]| Value::tensor(vec![each.len()], each.iter().map(|n| Value::Scalar(Lit::int(*n))).collect());
    let call = |y: &[i64]| made.call(&[vector(&[12, 12]), vector(y)]);
    assert_eq!((call(&[3, 4]).unwrap(), objects()), (vector(&[4, 3]), 1));
    std::fs::remove_file(&script).unwrap();
    let error = call(&[3, 0]).unwrap_err().render();
    assert!(error.contains("cannot be run"), "{error}");
    write();
    for _ in 0..2 {
        let error = call(&[3, 0]).unwrap_err().render();
        assert!(error.contains("division by zero") && error.contains("div (index i x)"), "{error}");
        assert_eq!(objects(), 2);
    }
    assert_eq!(call(&[2, 6]).unwrap(), vector(&[6, 2]));
}

fn is_object(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|e| e == "so")
}

/// Protects: small loops stay on one thread and large ones do not, which shows in the memory that packed operands take; and
/// where the outer loop has few iterations, the one inside runs on threads.
#[test]
fn threads_start_where_there_is_enough_to_do() {
    let program = read(MATMUL);
    let def = program.named("plain")[0];
    let machine = Machine { threads: 2, ..Machine::host() };
    let schedule = daedal::schedule::default((*empty(&program, "plain").graph).clone(), &machine);
    let steps = schedule.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(steps.contains("parallel sum jo\nparallel sum io"), "{steps}");
    let native = native::compile_scheduled(&program, def, &schedule, &tools()).unwrap();
    let text = native.cpp().to_string();
    assert!(text.contains("ks::parallel<true, true>(arena, 0L, ks::div<int64_t>((b_size1"), "{text}");
    let (one, two) = (native.with_threads(1), native::compile_scheduled(&program, def, &schedule, &tools()).unwrap());
    let two = two.with_threads(2);
    let call = |n, m, p| {
        let args = [tensor(Scalar::F32, &[n, m], 1), tensor(Scalar::F32, &[m, p], 2)];
        let [a, b] = [&one, &two].map(|native| native.time(&args, 1).unwrap());
        assert!(a.value == b.value, "{n} {m} {p}");
        (a.peak_bytes, b.peak_bytes)
    };
    let (a, b) = call(16, 16, 256);
    assert_eq!(a, b, "a small product runs on threads");
    let (a, b) = call(256, 128, 512);
    assert!(a < b, "a large product takes {a} bytes on one thread and {b} on two");
}
