//! Loops that become vectors, are split, or are computed once mean what the interpreter means, failures included.

use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use daedal::schedule::{self, Schedule};
use daedal::stage;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

fn read(text: &str) -> Program {
    daedal::types::program(&Source::new("lanes.ks", text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// The loops of a definition, as they are printed.
fn loops(program: &Program, name: &str) -> String {
    let machine = Machine { vector_bytes: 64, threads: 1, ..Machine::host() };
    native::nest(program, program.named(name)[0], &machine).unwrap().to_string()
}

/// Compares compiled code with the interpreter on many arguments; gives how many calls failed.
fn agree(program: &Program, name: &str, all: &[Vec<Json>]) -> usize {
    let tools = Toolchain::discover(
        std::env::var("CXX").ok(),
        Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vectorize")),
    );
    let def = program.named(name)[0];
    let native = native::compile(program, def, &tools).unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(program);
    // The nest for other widths of vectors, too: the interpreter of nests has all of them.
    let nests = [8, 32, 64].map(|vector_bytes| {
        native::nest(program, def, &Machine { vector_bytes, threads: 1, ..Machine::host() }).unwrap()
    });
    let mut failed = 0;
    for args in all {
        let values: Vec<Value> =
            args.iter().zip(&def.params).map(|(a, p)| Value::from_json(a, p.ty).unwrap()).collect();
        for nest in &nests {
            match (interpreter.run(def, &values), interpret(nest, &values, &mut String::new())) {
                (Ok(a), Ok(b)) => {
                    assert_eq!(a.to_json().to_string(), b.to_json().to_string(), "{name} {args:?}\n{nest}")
                }
                (Err(a), Err(b)) => assert_eq!(a.message, b.message, "{name} {args:?}\n{nest}"),
                (a, b) => {
                    panic!("{name} {args:?}: {:?} and {:?}\n{nest}", a.map(|v| v.to_json()), b.map(|v| v.to_json()))
                }
            }
        }
        match (interpreter.run(def, &values), native.call(&values)) {
            (Ok(a), Ok(b)) => assert_eq!(a.to_json().to_string(), b.to_json().to_string(), "{name} {args:?}"),
            (Err(a), Err(b)) => {
                failed += 1;
                assert_eq!((a.message, a.places), (b.message, b.places), "{name} {args:?}");
            }
            (a, b) => panic!("{name} {args:?}: {:?} and {:?}", a.map(|v| v.to_json()), b.map(|v| v.to_json())),
        }
    }
    failed
}

fn default(program: &Program, name: &str, machine: &Machine) -> Schedule {
    let def = program.named(name)[0];
    schedule::default(stage::extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program))), machine)
}

/// Compares code under the default schedule with the interpreter; gives how many calls failed.
fn scheduled(program: &Program, name: &str, all: &[Vec<Json>]) -> usize {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vectorize");
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(folder));
    let (def, made) = (program.named(name)[0], default(program, name, &Machine::host()));
    let native = native::compile_scheduled(program, def, &made, &tools).unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(program);
    let mut failed = 0;
    for args in all {
        let values: Vec<Value> =
            args.iter().zip(&def.params).map(|(a, p)| Value::from_json(a, p.ty).unwrap()).collect();
        match (interpreter.run(def, &values), native.call(&values)) {
            (Ok(a), Ok(b)) => assert_eq!(a.to_json().to_string(), b.to_json().to_string(), "{name} {args:?}"),
            (Err(a), Err(b)) => {
                failed += 1;
                assert_eq!((a.message, a.places), (b.message, b.places), "{name} {args:?}");
            }
            (a, b) => panic!("{name} {args:?}: {:?} and {:?}", a.map(|v| v.to_json()), b.map(|v| v.to_json())),
        }
    }
    failed
}

struct Data(StdRng);

impl Data {
    fn floats(&mut self, n: usize) -> Json {
        json!((0..n).map(|_| self.0.random_range(-2.0..2.0)).collect::<Vec<f64>>())
    }

    fn rows(&mut self, n: usize, m: usize) -> Json {
        Json::Array((0..n).map(|_| self.floats(m)).collect())
    }

    fn integers(&mut self, n: usize, low: i64, high: i64) -> Json {
        json!((0..n).map(|_| self.0.random_range(low..high)).collect::<Vec<i64>>())
    }
}

const PROGRAM: &str = r"
; Reads rows with a stride, or side by side.
(def product (Vec Float) ((a : (Vec (Vec Float)) (n m)) (x : (Vec Float) m))
  (build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (mul (index j (index i a)) (index j x)))))))
(def columns (Vec Float) ((a : (Vec (Vec Float)) (n m)) (m2 : Integer))
  (build m2 (lam (j : Integer) (sumbuild n (lam (i : Integer) (index j (index i a)))))))

; Each iteration has its own vector, its own condition, and as many rounds as it wants.
(def mixed (Vec Float) ((x : (Vec Float) n) (m : Integer))
  (build n (lam (i : Integer)
    (let ((own (build m (lam (j : Integer) (mul (index i x) (to_float j)))))
          (rounds (sumbuild i (lam (j : Integer) (index j x))))
          (pairs (sumbuild m (lam (j : Integer)
                   (sumbuild m (lam (l : Integer) (mul (index j own) (index l own)))))))
          (best (argmax m (lam (j : Integer) (mul pairs (index j own))))))
      (if (gt (index i x) 0.0)
          (add (mul pairs rounds) (sumbuild m (lam (j : Integer) (exp (index j own)))))
          (sub (to_float best) (reduce max m (lam (j : Integer) (index j own)))))))))

; Fails in the lane of a bad index or divisor, and before others in the order of the interpreter.
(def chosen (Vec Float) ((x : (Vec Float) n) (at : (Vec Integer) m) (by : (Vec Integer) m))
  (build m (lam (i : Integer)
    (sumbuild n (lam (j : Integer)
      (mul (index (div (add (index i at) j) (index i by)) x) (to_float (mod j 3))))))))

; Only the end of an iteration is done one after another: the lanes are those of the outer loop, then of the inner.
(def sums (Tuple Float Integer) ((a : (Vec (Vec Float)) (n m)) (at : (Vec Integer) n) (k : Integer))
  (tuple
    (sumbuild n (lam (i : Integer)
      (let (own (build m (lam (l : Integer) (mul (index l (index i a)) (to_float (add i l))))))
        (exp (neg (sumbuild k (lam (l : Integer) (mul (index l own) (index l (index i a))))))))))
    (sumbuild n (lam (i : Integer)
      (sumbuild k (lam (j : Integer) (mul (div i (add j 1)) (div 100 (index i at)))))))))

; The lower triangle, and what is packed by columns.
(def triangle Float ((a : (Vec Float) n) (b : (Vec Float) n))
  (let (t (sumbuild n (lam (k : Integer)
            (build (tuple n n) (lam ((i : Integer) (j : Integer))
              (if (lt j i) (mul (index i a) (index j b)) (if (gte j 5) 0.0 (to_float k))))))))
    (sumbuild (mul n n) (lam (i : Integer) (mul (to_float (add i 1)) (index (tuple (div i n) (mod i n)) t))))))

; The same scan in two places.
(def twice (Tuple Float Float) ((x : (Vec Float) n))
  (let ((a (scan (lam ((s : (Vec Float)) (i : Integer)) (add s (mul (index i x) x))) x n))
        (b (scan (lam ((t : (Vec Float)) (k : Integer)) (add t (mul (index k x) x))) x n)))
    (tuple (sumbuild n (lam (i : Integer) (index 0 (index i a))))
           (sumbuild n (lam (i : Integer) (index (sub n 1) (index i b)))))))
";

/// Protects: lanes, the iterations that are left over, and the order of additions, at all sizes around one vector.
#[test]
fn lanes_have_the_bits_of_single_iterations() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(1)));
    for name in ["product", "columns", "mixed", "chosen"] {
        assert!(loops(&program, name).contains("for block."), "{name} has no lanes:\n{}", loops(&program, name));
    }
    let sizes = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31];
    let mut product = vec![];
    let mut columns = vec![];
    let mut mixed = vec![];
    for n in sizes {
        for m in [0usize, 1, 3, 8, 11] {
            if n > 0 {
                product.push(vec![d.rows(n, m), d.floats(m)]);
                columns.push(vec![d.rows(n, m), json!(m)]);
            }
            mixed.push(vec![d.floats(n), json!(m)]);
        }
    }
    agree(&program, "product", &product);
    agree(&program, "columns", &columns);
    columns.iter_mut().for_each(|c| c[1] = json!(c[1].as_u64().unwrap() + 2));
    assert_eq!(agree(&program, "columns", &columns), columns.len());
    agree(&program, "mixed", &mixed);
}

/// Protects: sums whose iterations run in lanes but for their end, left-over ones, and failures in some lanes.
#[test]
fn what_iterations_add_is_added_in_order() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(7)));
    let shown = loops(&program, "sums");
    let added = |l: &&str| l.trim_start().starts_with("for") && l.contains("for block.");
    assert_eq!(shown.lines().filter(added).count(), 2, "{shown}");
    let mut all = vec![];
    for n in [1usize, 2, 7, 8, 9, 16, 17, 31] {
        for k in [0usize, 1, 2, 3, 4, 9] {
            all.push(vec![d.rows(n, 3), d.integers(n, 1, 9), json!(k)]);
            all.push(vec![d.rows(n, 9), d.integers(n, 1, 9), json!(k)]);
            all.push(vec![d.rows(n, 9), d.integers(n, -1, 9), json!(k)]);
        }
    }
    let failed = agree(&program, "sums", &all);
    assert!((10..all.len() / 2).contains(&failed), "{failed} of {} fail", all.len());
}

/// Protects: of several failures, the first in the order of the interpreter, whatever lane it is in.
#[test]
fn the_first_failure_is_found_in_lanes() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(2)));
    let mut all = vec![];
    for m in [1usize, 5, 8, 9, 20] {
        for _ in 0..12 {
            all.push(vec![d.floats(9), d.integers(m, 0, 3), d.integers(m, 1, 4)]);
            all.push(vec![d.floats(9), d.integers(m, -1, 10), d.integers(m, 0, 9)]);
            all.push(vec![d.floats(4), d.integers(m, 0, 1), d.integers(m, 1, 2)]);
        }
    }
    let failed = agree(&program, "chosen", &all);
    assert!(failed > 20 && failed < all.len() - 20, "{failed} of {} failed", all.len());
}

/// Protects: where there are fewer iterations than lanes, the others read, write and fail nothing.
#[test]
fn few_iterations_are_the_first_lanes() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(5)));
    for name in ["product", "mixed", "chosen"] {
        let text = loops(&program, name);
        assert!(text.contains("for few."), "{name} has no such loop:\n{text}");
    }
    let (mut product, mut mixed, mut chosen) = (vec![], vec![], vec![]);
    for n in 1..10 {
        product.push(vec![d.rows(n, 3), d.floats(3)]);
        mixed.push(vec![d.floats(n), json!(5)]);
        for _ in 0..4 {
            chosen.push(vec![d.floats(4), d.integers(n, 0, 1), d.integers(n, 1, 2)]);
            chosen.push(vec![d.floats(9), d.integers(n, -1, 10), d.integers(n, 0, 9)]);
        }
    }
    assert_eq!(agree(&program, "product", &product) + agree(&program, "mixed", &mixed), 0);
    let failed = agree(&program, "chosen", &chosen);
    assert!(failed > 10 && failed < chosen.len() - 10, "{failed} of {} failed", chosen.len());
}

/// Protects: loops cut where a condition changes or a product is asked for its factors keep their order.
#[test]
fn split_loops_keep_their_order() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(3)));
    let text = loops(&program, "triangle");
    assert!(text.contains("middle") && text.contains(" q."), "{text}");
    let all: Vec<Vec<Json>> = (0..20).map(|n| vec![d.floats(n), d.floats(n)]).collect();
    agree(&program, "triangle", &all);
}

/// Protects: equal loops run once, and what they made is not written again.
#[test]
fn equal_loops_run_once() {
    let (program, mut d) = (read(PROGRAM), Data(StdRng::seed_from_u64(4)));
    let text = loops(&program, "twice");
    assert_eq!(text.matches("alloc made").count(), 1, "{text}");
    let all: Vec<Vec<Json>> = (1..12).map(|n| vec![d.floats(n)]).collect();
    assert_eq!(agree(&program, "twice", &all), 0);
}

/// Protects: functions of vectors, and of single numbers, have the bits of the interpreter's, at the ends as well.
#[test]
fn functions_of_vectors_are_those_of_numbers() {
    let program = read(
        r"
(def all (Vec (Tuple Float Float Float)) ((x : (Vec Float) n) (y : (Vec Float) n))
  (build n (lam (i : Integer)
    (let (z (div (index i x) (index i y))) (tuple (exp z) (log z) (tanh z))))))
(def alone (Tuple Float Float Float) ((x : Float) (y : Float))
  (let (z (div x y)) (tuple (exp z) (log z) (tanh z))))
",
    );
    assert!(loops(&program, "all").contains("for block."), "{}", loops(&program, "all"));
    let ends = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 21.9, 22.1, 709.7, -708.5, 709.8, -745.2, 5e-324, 1e-310, 3.7e-308];
    let pairs: Vec<(f64, f64)> = ends.iter().flat_map(|x| [0.0, 1.0, -3.0, 1e-300, 1e300].map(|y| (*x, y))).collect();
    let mut d = StdRng::seed_from_u64(5);
    let wide: Vec<(f64, f64)> =
        (0..4096).map(|_| (d.random_range(-1.0..1.0f64), (2.0f64).powi(d.random_range(-12..40)))).collect();
    for pairs in [&pairs, &wide] {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        agree(&program, "all", &[vec![json!(x), json!(y)]]);
        let single: Vec<Vec<Json>> = pairs.iter().map(|(x, y)| vec![json!(x), json!(y)]).collect();
        agree(&program, "alone", &single);
    }
}
/// Random loops over `x`, `rows`, `at` and `by`, whose bodies have numbers of several kinds.
struct Loops(StdRng);

impl Loops {
    fn pick(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// An integer. Some are out of range of what they index, some are 0 where they divide.
    fn integer(&mut self, vars: &[&str], depth: usize) -> String {
        let var = vars[self.pick(vars.len())];
        if depth == 0 {
            return var.to_string();
        }
        let a = self.integer(vars, depth - 1);
        match self.pick(9) {
            0 => format!("(add {a} {})", self.pick(2)),
            1 => format!("(sub {a} {var})"),
            2 => format!("(div (add {a} {var}) (add (index i by) 1))"),
            3 => format!("(mod {a} 4)"),
            4 => format!("(index (mod {var} n) at)"),
            5 => format!("(min {a} (sub n 1))"),
            6 => format!("(argmax n (lam (g : Integer) (mul (index g x) (to_float {var}))))"),
            _ => a,
        }
    }

    fn condition(&mut self, vars: &[&str], depth: usize) -> String {
        let (a, b) = (self.integer(vars, 1), vars[self.pick(vars.len())]);
        match self.pick(3) {
            0 => format!("(lt {a} {b})"),
            1 => format!("(gte {b} {a})"),
            _ => format!("(gt {} 0.25)", self.float(vars, depth.min(1))),
        }
    }

    fn float(&mut self, vars: &[&str], depth: usize) -> String {
        let var = vars[self.pick(vars.len())];
        if depth == 0 {
            return match self.pick(4) {
                0 => format!("(to_float {var})"),
                1 => "(index i x)".to_string(),
                2 => format!("(index (mod {var} m) (index i rows))"),
                _ => format!("(index (mod {} n) x)", self.integer(vars, 1)),
            };
        }
        let a = self.float(vars, depth - 1);
        let name = format!("l{depth}");
        let inner = [vars, &[name.as_str()]].concat();
        match self.pick(11) {
            0 => format!("(add {a} {})", self.float(vars, depth - 1)),
            1 => format!("(mul {a} {})", self.float(vars, depth - 1)),
            2 => format!("(div {a} (add 2.5 (tanh {})))", self.float(vars, depth - 1)),
            3 => format!("(max {a} {})", self.float(vars, depth - 1)),
            4 => format!("(exp (neg (abs {a})))"),
            5 => format!("(if {} {a} {})", self.condition(vars, depth - 1), self.float(vars, depth - 1)),
            6 | 7 => format!("(sumbuild m (lam ({name} : Integer) {}))", self.float(&inner, depth - 1)),
            8 => format!("(reduce max m (lam ({name} : Integer) {}))", self.float(&inner, depth - 1)),
            9 => format!(
                "(let (r{depth} (build m (lam ({name} : Integer) {}))) (sumbuild m (lam (s{depth} : Integer) (mul {a} (index s{depth} r{depth})))))",
                self.float(&inner, depth - 1)
            ),
            _ => format!("(index {} x)", self.integer(vars, 1)),
        }
    }

    fn program(&mut self) -> String {
        let sizes =
            "((x : (Vec Float) n) (rows : (Vec (Vec Float)) (n m)) (at : (Vec Integer) n) (by : (Vec Integer) n))";
        let one = self.float(&["i"], 3);
        let two = self.float(&["i", "j"], 2);
        let row = self.float(&["i", "j"], 2);
        format!(
            "(def f (Tuple (Vec Float) Float (Vec (Vec Float))) {sizes}
               (tuple (build n (lam (i : Integer) {one}))
                      (sumbuild (tuple n m) (lam ((i : Integer) (j : Integer)) {two}))
                      (build n (lam (i : Integer) (build m (lam (j : Integer) {row}))))))"
        )
    }
}

/// Protects: random loops mean natively what they mean in the interpreter, their first failure included, however
/// they run; at sizes around one vector.
#[test]
fn random_loops_agree() {
    let (mut lanes, mut failed, mut calls) = (0, 0, 0);
    for seed in 0..24 {
        let mut loops_of = Loops(StdRng::seed_from_u64(seed));
        let text = loops_of.program();
        let (program, mut d) = (read(&text), Data(StdRng::seed_from_u64(100 + seed)));
        lanes += usize::from(loops(&program, "f").contains("for block."));
        let mut all = vec![];
        for n in [1usize, 7, 8, 9, 17] {
            for m in [1usize, 3, 8] {
                all.push(vec![d.floats(n), d.rows(n, m), d.integers(n, 0, n as i64), d.integers(n, 0, 9)]);
                all.push(vec![d.floats(n), d.rows(n, m), d.integers(n, -1, n as i64 + 1), d.integers(n, -1, 2)]);
            }
        }
        calls += all.len();
        failed += agree(&program, "f", &all);
    }
    assert!(lanes >= 6, "only {lanes} of 24 programs have lanes");
    assert!(failed >= 24 && failed + 200 <= calls, "{failed} of {calls} calls failed");
}

/// Protects: operations on bits and division rounded down agree at all sizes around a vector and at
/// the edges of every width, failures included; a counted loop makes no vector of its steps.
#[test]
fn bits_agree_in_vectors_and_counted_loops_allocate_nothing() {
    let each = |name: &str, body: &str| {
        format!(
            "(def {name} (Vec Integer) ((x : (Vec Integer) n) (y : (Vec Integer) n))
  (build n (lam (i : Integer) (let ((a (index i x)) (b (index i y))) {body}))))\n"
        )
    };
    let narrow = |ty: &str| {
        let body = format!(
            "(let ((p (cast {ty} a)) (q (cast {ty} b)))
      (cast Integer (bitxor (shl p q) (bitor (shr p q) (bitand (bitnot p) q)))))"
        );
        each(&format!("narrow_{ty}"), &body)
    };
    let text = each(
        "bits",
        "(sumbuild 3 (lam (k : Integer) (bitxor (shl a (add b k)) (bitor (shr a b) (bitand a (bitnot b))))))",
    ) + &each("rounded", "(add (mul 3 (floordiv a b)) (floormod a b))")
        + &each("guarded", "(if (eq b 0) (shr a 1) (bitxor (floordiv a b) (floormod a b)))")
        + &["Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32"].map(narrow).concat()
        + "(def counted Float ((n : Integer) (x : Float)) (iterate n (lam (y : Float) (mul y y)) x))";
    let program = read(&text);
    let edges = [0, 1, -1, 2, -2, 7, 63, 64, -64, 127, 128, 255, -128, 65535, i64::MAX, i64::MIN, i64::MIN + 1];
    let mut random = StdRng::seed_from_u64(11);
    let mut all = vec![];
    for n in (0..=19).chain([31, 32, 33]) {
        for _ in 0..4 {
            let mut some = || json!((0..n).map(|_| edges[random.random_range(0..edges.len())]).collect::<Vec<i64>>());
            all.push(vec![some(), some()]);
        }
    }
    for def in program.defs.values().filter(|d| d.name() != "counted") {
        let failed = agree(&program, def.name(), &all);
        assert_eq!(failed > 0, def.name() == "rounded", "{}", def.name());
    }
    agree(&program, "counted", &[-1, 0, 1, 5].map(|n| vec![json!(n), json!(1.25)]));
    assert!(loops(&program, "bits").contains("for block."), "{}", loops(&program, "bits"));
    let nest = loops(&program, "counted");
    assert!(!nest.contains("alloc") && nest.contains("for "), "{nest}");
}

/// Protects: what a condition needs from each lane stands before it is asked.
#[test]
fn conditions_of_lanes_have_their_operands() {
    let text = "(def checkered (Vec Float) ((x : (Vec Float) n))
      (build n (lam (i : Integer)
        (let ((p (if (eq 0 (floormod (truncate (mul 4.0 (index i x))) 2)) (tuple 24.0 1.5) (tuple 228.0 2.5))))
          (mul (get$1$2 p) (exp (mul (index i x) (get$2$2 p))))))))";
    let program = read(text);
    let mut d = Data(StdRng::seed_from_u64(12));
    let all: Vec<Vec<Json>> = (0..20).map(|n| vec![d.floats(n)]).collect();
    agree(&program, "checkered", &all);
    assert!(loops(&program, "checkered").contains("let taken."), "{}", loops(&program, "checkered"));
}

const ARMS: &str = r"
; Neighbours that are in range, of each element; what is asked for lies beside others, apart, or anywhere.
(def near (Vec Float) (x : (Vec Float) n)
  (build n (lam (i : Integer)
    (add (sqrt (abs (if (gte (sub i 1) 0) (if (lt (add i 1) n) (sub (index (add i 1) x) (index (sub i 1) x)) (index i x)) 0.5)))
         (if (lt (mul 2 i) n) (exp (index (mul 2 i) x)) (neg (index i x)))))))
(def anywhere (Vec Float) ((x : (Vec Float) n) (at : (Vec Integer) n))
  (build n (lam (i : Integer)
    (exp (if (lt (index i at) n) (if (gte (index i at) 0) (index (index i at) x) -1.0) (if (gt (index i x) 1.0) 1.0 (index i x)))))))
(def near_32 (Vec Float32) ((x : (Vec Float) n) (k : Integer))
  (let (y (build n (lam (i : Integer) (cast Float32 (index i x)))))
    (build n (lam (i : Integer) (mul 2.0f32 (if (gte (sub i k) 0) (if (lt (sub i k) n) (index (sub i k) y) 1.5f32) 0f32))))))
; One number that all lanes ask for, or none of them, because it is not there.
(def one (Vec Float) ((x : (Vec Float) n) (v : (Vec Float) m) (k : Integer))
  (build n (lam (i : Integer)
    (exp (if (gt (index i x) 0.0) (mul (index i x) (if (lt k m) (index k v) 3.0)) (if (lt (index i x) -1.5) (index k v) 0.25))))))
";

/// Protects: arms that only some lanes take read memory for these alone, whatever they compute in all of them.
#[test]
fn arms_of_lanes_read_under_masks() {
    let program = read(ARMS);
    let mut data = Data(StdRng::seed_from_u64(7));
    let (mut near, mut anywhere, mut narrow, mut one) = (vec![], vec![], vec![], vec![]);
    for n in (0..36).chain([64, 100, 129]) {
        let (x, at) = (data.floats(n), data.integers(n, -3, n as i64 + 3));
        near.push(vec![x.clone()]);
        anywhere.push(vec![x.clone(), at]);
        narrow.extend([-20, -1, 0, 1, 5].map(|k| vec![x.clone(), json!(k)]));
        one.extend([0, 2, 3].map(|k| vec![x.clone(), data.floats(3), json!(k)]));
    }
    for (name, all, fails) in
        [("near", &near, false), ("anywhere", &anywhere, false), ("near_32", &narrow, false), ("one", &one, true)]
    {
        let failed = agree(&program, name, all);
        assert_eq!(failed, scheduled(&program, name, all), "{name}");
        assert!(fails == (failed > 0) && failed < all.len(), "{name}: {failed}");
    }
    for name in ["near", "near_32", "one"] {
        let machine = Machine { vector_bytes: 64, threads: 1, ..Machine::host() };
        let nest = native::scheduled_nest(program.named(name)[0], &default(&program, name, &machine), &machine);
        let nest = nest.unwrap().to_string();
        assert!(nest.contains(" where taken") || name == "one" && nest.contains("(if (not (all"), "{nest}");
    }
}

/// Protects: where all lanes ask the same, they take one arm, and read nothing under masks.
#[test]
fn lanes_that_ask_the_same_take_one_arm() {
    let text = "(def moved (Tensor 2 Float) ((x : (Tensor 2 Float) (n m)) (k : Integer))
      (build (tuple n m) (lam ((i : Integer) (j : Integer))
        (mul (index (tuple i j) x)
             (if (if (gte (sub i k) 0) (lt (sub i k) n) false) (exp (index (tuple (sub i k) j) x)) 0.5)))))";
    let program = read(text);
    let mut data = Data(StdRng::seed_from_u64(21));
    let mut all = vec![];
    for (n, m) in [(1, 1), (3, 4), (5, 19), (2, 33)] {
        let rows: Vec<Json> = (0..n).map(|_| data.floats(m)).collect();
        all.extend([-1, 0, 2, 9].map(|k| vec![json!(rows), json!(k)]));
    }
    assert_eq!(agree(&program, "moved", &all), 0);
    assert_eq!(scheduled(&program, "moved", &all), 0);
    let machine = Machine { vector_bytes: 32, threads: 1, ..Machine::host() };
    let nest = native::scheduled_nest(program.named("moved")[0], &default(&program, "moved", &machine), &machine);
    let nest = nest.unwrap().to_string();
    assert!(!nest.contains(" where taken"), "{nest}");
}

/// Protects: floats become narrow integers in vectors as one by one: towards 0, no further than the ends, and 0 for no number.
#[test]
fn floats_become_narrow_integers_in_vectors() {
    let each = |ty: &str, float: &str| {
        format!(
            "(def to_{ty}_{float} (Vec Integer) ((x : (Vec Float) n))
  (build n (lam (i : Integer) (let (v (cast {float} (index i x))) (cast Integer (cast {ty} (add v (mul (cast {float} 0.0) (tanh v)))))))))
(def back_{ty}_{float} (Vec {float}) ((x : (Vec Float) n))
  (build n (lam (i : Integer) (let (v (cast {float} (index i x)))
    (mul (cast {float} (cast {ty} v)) (exp (mul (cast {float} 0.0) (tanh v))))))))\n"
        )
    };
    let types = ["Int8", "UInt8", "Int16", "UInt16"];
    let text: String = types.iter().flat_map(|ty| ["Float", "Float32"].map(|float| each(ty, float))).collect();
    let program = read(&text);
    let ends =
        [0.0, -0.0, 0.5, -0.99, 127.4, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.9, -32768.9, 65535.9, 65536.0];
    let edges: Vec<Json> = ends
        .iter()
        .flat_map(|v| [json!(v), json!(-v)])
        .chain([json!("nan"), json!("inf"), json!("-inf"), json!(1e30), json!(-1e300)])
        .collect();
    let mut random = StdRng::seed_from_u64(13);
    let mut some = |n: usize| (0..n).map(|_| edges[random.random_range(0..edges.len())].clone()).collect::<Vec<_>>();
    let all: Vec<Vec<Json>> = (0..40).map(|n| vec![Json::Array(some(n))]).collect();
    for def in program.defs.values() {
        assert_eq!(agree(&program, def.name(), &all), 0);
        let nest = loops(&program, def.name());
        assert!(nest.contains("for block.") && !nest.contains("lanes lane."), "{nest}");
    }
}

/// Protects: integers divided by literals in vectors are those divided one by one, at the ends of all types.
#[test]
fn integers_are_divided_by_literals_in_vectors() {
    let types = [
        ("Int8", "i8", 127),
        ("UInt8", "u8", 255),
        ("Int16", "i16", 32767),
        ("UInt16", "u16", 65535),
        ("Int32", "i32", i64::from(i32::MAX)),
        ("UInt32", "u32", i64::from(u32::MAX)),
    ];
    let text: String = types
        .iter()
        .flat_map(|(ty, suffix, most)| [1, 2, 3, 7, 100, *most].map(|by| (*ty, *suffix, by)))
        // Of the widest, by powers of two alone.
        .chain([1, 2, 8, 1 << 40, 1 << 62].map(|by| ("Integer", "", by)))
        .map(|(ty, suffix, by)| {
            format!(
                "(def by_{by}_{ty} (Vec Float) ((x : (Vec Integer) n) (y : (Vec Float) n))
  (build n (lam (i : Integer) (let ((v (cast {ty} (index i x))) (d {by}{suffix}))
    (add (to_float (cast Integer (add (div v d) (mod v d)))) (exp (index i y)))))))\n"
            )
        })
        .collect();
    let program = read(&text);
    let mut ends = vec![0, 1, 2, 3, 99, 100, 101];
    ends.extend([i64::MIN, i64::MIN + 1, i64::MAX, -7, -8, -9, 1 << 40, -(1 << 62)]);
    ends.extend(types.iter().flat_map(|(_, _, most)| [*most, *most + 1, -*most, -*most - 1, most / 2]));
    let mut d = Data(StdRng::seed_from_u64(14));
    let mut random = StdRng::seed_from_u64(15);
    let all: Vec<Vec<Json>> = (0..40)
        .map(|n| {
            vec![json!((0..n).map(|_| ends[random.random_range(0..ends.len())]).collect::<Vec<i64>>()), d.floats(n)]
        })
        .collect();
    for def in program.defs.values() {
        assert_eq!(agree(&program, def.name(), &all), 0);
        let nest = loops(&program, def.name());
        assert!(nest.contains("for block.") && !nest.contains("(lane lane"), "{nest}");
    }
}

/// Protects: what a few lanes share is read as runs of neighbours, in vectors of all types, wherever the lanes begin, in front
/// of the first element, too; and lanes that take turns are those that have a remainder.
#[test]
fn lanes_that_share_an_element_read_runs() {
    let mut text = String::new();
    let kinds = [
        ("UInt8", "0u8", 2),
        ("Int16", "0i16", 4),
        ("Float32", "0f32", 2),
        ("Float32", "0f32", 8),
        ("Float", "0.0", 4),
    ];
    for (ty, zero, by) in kinds {
        text += &format!(
            "(def shared_{by}_{ty} (Vec {ty}) ((x : (Vec {ty}) m) (n : Integer) (from : Integer))
  (build n (lam (i : Integer) (add (index (div (add i from) {by}) x) (index (div i {by}) x)))))
(def clamped_{by}_{ty} (Vec {ty}) ((x : (Vec {ty}) m) (n : Integer) (from : Integer))
  (if (eq m 0) (constVec 0 {zero})
    (build n (lam (i : Integer) (sub
      (index (max 0 (min (sub m 1) (sub (div (add i from) {by}) 1))) x)
      (index (min (sub m 1) (max 0 (add 2 (div (sub i from) {by})))) x))))))
(def turns_{by}_{ty} (Vec {ty}) ((x : (Vec {ty}) m) (n : Integer) (from : Integer))
  (build (min n (mul {by} m)) (lam (i : Integer)
    (if (eq (mod (add i from) {by}) 1) (index (div i {by}) x) (sub {zero} (index (div i {by}) x))))))\n"
        );
    }
    let program = read(&text);
    let mut d = Data(StdRng::seed_from_u64(16));
    let mut all = vec![];
    for (m, n) in [(0, 0), (1, 2), (3, 5), (9, 17), (20, 40), (40, 79), (70, 140), (70, 513), (140, 129), (600, 1100)] {
        for from in [0, 1, 2, 3, 5, 7, -1, -2, -9] {
            all.push(vec![d.integers(m, 0, 100), json!(n), json!(from)]);
        }
    }
    let (mut failed, mut whole) = (0, 0);
    for def in program.defs.values() {
        failed += agree(&program, def.name(), &all) + scheduled(&program, def.name(), &all);
        whole += 2 * all.len();
        let nest = native::scheduled_nest(def, &default(&program, def.name(), &Machine::host()), &Machine::host());
        let nest = nest.unwrap().to_string();
        assert!(nest.contains("(div (ramp ") && !nest.contains("(lane lane"), "{nest}");
        assert!(!def.name().starts_with("turns") || nest.contains("(select "), "{nest}");
    }
    assert!(failed > whole / 10 && failed < whole / 2, "{failed} of {whole} failed");
}
