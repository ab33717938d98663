//! Compiled programs agree with the interpreter bit for bit, failures and their places included.

#![allow(clippy::unwrap_used, reason = "a test may stop where it finds something wrong")]

use daedal::diag::{Kind, Result, Source};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Lit, Program};
use daedal::run::{Native, Toolchain};
use std::path::{Path, PathBuf};

/// The compiler with full optimization, as users run it.
fn tools() -> Toolchain {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native");
    Toolchain::discover(std::env::var("CXX").ok(), Some(cache))
}

fn read(name: &str, text: &str) -> Program {
    let program = daedal::types::program(&Source::new(name, text)).and_then(|p| daedal::ad::complete(&p));
    program.unwrap_or_else(|d| panic!("{}", d.render()))
}

/// Equal bits, but for NaNs.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => {
            let nan = |l: &Lit| l.as_f64().is_some_and(f64::is_nan);
            x == y || nan(x) && nan(y) && x.ty() == y.ty()
        }
        (Value::Tuple(x), Value::Tuple(y)) => x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| same(a, b)),
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.data.len() == y.data.len() && x.data.iter().zip(&y.data).all(|(a, b)| same(a, b))
        }
        _ => false,
    }
}

/// Says how two outcomes differ.
fn difference(want: &Result<Value>, have: &Result<Value>) -> Option<String> {
    match (want, have) {
        (Ok(a), Ok(b)) if same(a, b) => None,
        (Err(a), Err(b)) if a.message == b.message && a.places == b.places && a.kind == b.kind => None,
        _ => {
            let show = |r: &Result<Value>| match r {
                Ok(v) => v.to_json().to_string(),
                Err(d) => d.render(),
            };
            Some(format!("the interpreter gives\n{}\nand compiled code\n{}", show(want), show(have)))
        }
    }
}

/// The definition that the arguments fit, and their values.
fn target<'a>(program: &'a Program, name: &str, args: &[&str]) -> (&'a Def, Vec<Value>) {
    for def in program.named(name) {
        let json = |a: &str| serde_json::from_str(a).unwrap_or_else(|e| panic!("{a}: {e}"));
        let values: Vec<Value> =
            args.iter().zip(&def.params).filter_map(|(a, p)| Value::from_json(&json(a), p.ty).ok()).collect();
        if values.len() == args.len() && args.len() == def.params.len() {
            return (def, values);
        }
    }
    panic!("no `{name}` takes {args:?}")
}

/// The functions and arguments of the `;; run` lines.
fn cases(program: &Program) -> Vec<(&Def, Vec<Value>, String)> {
    let lines = program.source.text.lines().filter_map(|l| l.strip_prefix(";; run "));
    lines
        .map(|line| {
            let (call, _) = line.split_once(" => ").unwrap_or((line, ""));
            let words: Vec<&str> = call.split_whitespace().collect();
            let (def, args) = target(program, words[0], &words[1..]);
            (def, args, line.to_string())
        })
        .collect()
}

/// Compiles all functions that the cases name as one object, and lists every disagreement.
fn disagreements(program: &Program, cases: &[(&Def, Vec<Value>, String)]) -> Vec<String> {
    let mut defs: Vec<&Def> = vec![];
    for (def, ..) in cases {
        if !defs.iter().any(|d| d.fun == def.fun) {
            defs.push(def);
        }
    }
    let compiled = Native::compile_all(program, &defs, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(program);
    let mut out = vec![];
    for (def, args, line) in cases {
        let at = defs.iter().position(|d| d.fun == def.fun).unwrap();
        let native = match &compiled[at] {
            Ok(native) => native,
            // What only the interpreter does is refused with a limit.
            Err(d) if d.kind == Kind::Limit && d.places.iter().any(|p| p.1 == "only the interpreter prints") => {
                continue;
            }
            Err(d) => {
                out.push(format!("{line}\nis not compiled: {}", d.render()));
                continue;
            }
        };
        if let Some(d) = difference(&interpreter.run(def, args), &native.call(args)) {
            out.push(format!("{line}\n{d}"));
        }
    }
    out
}

fn corpus() -> Vec<PathBuf> {
    let (mut found, mut todo) = (vec![], vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "ks") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Protects: native code means what the interpreter means, on every program of the corpus.
#[test]
fn the_corpus_runs_natively_as_in_the_interpreter() {
    let files = corpus();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(vec![]);
    let work = || {
        loop {
            let k = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(path) = files.get(k) else { return };
            let program = read(&path.to_string_lossy(), &std::fs::read_to_string(path).unwrap());
            let found = disagreements(&program, &cases(&program));
            wrong.lock().unwrap().extend(found.into_iter().map(|d| format!("{}: {d}", path.display())));
        }
    };
    std::thread::scope(|s| {
        s.spawn(work);
        s.spawn(work);
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs cases over a program that is given here.
fn agree(text: &str, lines: &[&str]) {
    let text = lines.iter().map(|l| format!(";; run {l}\n")).collect::<String>() + text;
    let program = read("edges.ks", &text);
    let found = disagreements(&program, &cases(&program));
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Protects: scalar operations at their edges have the same bits.
#[test]
fn scalars_at_the_edges_have_the_same_bits() {
    let mut text = String::new();
    let mut lines = vec![];
    for op in ["min", "max", "add", "sub", "mul", "div", "pow", "atan2"] {
        text += &format!("(def f_{op} Float ((a : Float) (b : Float)) ({op} a b))\n");
        for a in ["0.0", "-0.0", "\"NaN\"", "\"inf\"", "\"-inf\"", "1.5"] {
            lines.extend(["0.0", "-0.0", "\"NaN\"", "\"-inf\"", "2.0"].map(|b| format!("f_{op} {a} {b}")));
        }
    }
    for op in ["exp", "log", "sin", "tanh", "sqrt", "erf", "lgamma", "floor", "neg", "abs", "truncate"] {
        let ret = if op == "truncate" { "Integer" } else { "Float" };
        text += &format!("(def u_{op} {ret} (a : Float) ({op} a))\n");
        lines.extend(["-0.0", "\"NaN\"", "\"-inf\"", "0.7", "-3.5", "1e300"].map(|a| format!("u_{op} {a}")));
    }
    for op in ["add", "sub", "mul", "div", "mod", "min", "max"] {
        text += &format!("(def i_{op} Integer ((a : Integer) (b : Integer)) ({op} a b))\n");
        text += &format!("(def b_{op} Int8 ((a : Int8) (b : Int8)) ({op} a b))\n");
        for a in ["-9223372036854775808", "9223372036854775807", "-7"] {
            lines.extend(["-1", "0", "3", "9223372036854775807"].map(|b| format!("i_{op} {a} {b}")));
        }
        lines.extend(["-128 -1", "127 2", "-128 -128", "5 0", "-7 3"].map(|ab| format!("b_{op} {ab}")));
    }
    for to in ["Integer", "Int32", "Int16", "Int8", "UInt8", "UInt16", "UInt32", "Float32", "Bool", "Float"] {
        text +=
            &format!("(def c_{to} {to} (a : Float) (cast {to} a))\n(def d_{to} {to} (a : Integer) (cast {to} a))\n");
        let floats = ["\"NaN\"", "\"inf\"", "\"-inf\"", "-0.0", "-1.9", "300.7", "3e9", "1e19", "0.1"];
        lines.extend(floats.map(|a| format!("c_{to} {a}")));
        lines.extend(["-1", "4294967297", "9223372036854775807", "0"].map(|a| format!("d_{to} {a}")));
    }
    text += "(def folded Float () (add (exp 1.1) (add (sin 0.3) (add (pow 1.7 2.3) (log 10.0)))))";
    lines.push("folded".to_string());
    agree(&text, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Protects: empty tensors, shapes that depend on the index, and where failures come from.
#[test]
fn tensors_at_the_edges_agree() {
    agree(
        r#"
(def rows (Vec (Vec Float)) ((n : Integer) (m : Integer))
  (build n (lam (i : Integer) (build m (lam (j : Integer) (to_float (add i j)))))))
(def inner_size Integer ((n : Integer) (m : Integer)) (let (x (rows n m)) (size (index 0 x))))
(def sizes (Tuple Integer Integer) (x : (Vec (Vec Float)) (n m)) (tuple n m))
(def made_sizes (Tuple Integer Integer) ((n : Integer) (m : Integer)) (sizes (rows n m)))
(def ragged (Vec (Vec Integer)) (n : Integer) (build n (lam (i : Integer) (build i (lam (j : Integer) j)))))
(def late (Vec (Vec Integer)) ((n : Integer) (v : Vec Integer))
  (build n (lam (i : Integer) (build i (lam (j : Integer) (index j v))))))
(def even (Vec (Vec Integer)) (n : Integer)
  (build n (lam (i : Integer) (build (mod (mul i 2) 2) (lam (j : Integer) j)))))
(def total (Vec Float) ((n : Integer) (m : Integer))
  (sumbuild n (lam (i : Integer) (build m (lam (j : Integer) (to_float (mul i j)))))))
(def varied (Vec Float) (n : Integer)
  (sumbuild n (lam (i : Integer) (build (add i 1) (lam (j : Integer) 1.0)))))
(def deltas (Vec Float) (n : Integer) (sumbuild n (lam (i : Integer) (deltaVec n i -0.0))))
(def pairs (Vec (Tuple Float (Vec Integer))) (n : Integer)
  (build n (lam (i : Integer) (tuple (to_float i) (build 2 (lam (j : Integer) (add i j)))))))
(def swapped (Tuple (Vec Float) (Vec Float)) ((a : Vec Float) (b : Vec Float) (n : Integer))
  (fold (lam ((s : (Tuple (Vec Float) (Vec Float))) (x : Integer)) (tuple (get$2$2 s) (get$1$2 s)))
        (tuple a b) (build n (lam (i : Integer) i))))
(def fib Integer (n : Integer)
  (get$1$2 (fold (lam ((s : (Tuple Integer Integer)) (x : Integer)) (tuple (get$2$2 s) (add (get$1$2 s) (get$2$2 s))))
        (tuple 0 1) (build n (lam (i : Integer) i)))))
(def grows (Vec Float) (n : Integer)
  (fold (lam ((s : (Vec Float)) (x : Integer)) (build (add (size s) x) (lam (j : Integer) 1.0)))
        (build 1 (lam (j : Integer) 2.0)) (build n (lam (i : Integer) i))))
(def pick (Vec Float) ((c : Bool) (a : Vec Float) (n : Integer))
  (let (v (if c a (build n (lam (i : Integer) (to_float i))))) (add v v)))
(def deep Integer (n : Integer) (if (lt n 1) 0 (add 1 (deep (sub n 1)))))
(def halves (Vec Float) (v : (Vec Float) n)
  (if (lt n 2) v (halves (build (div n 2) (lam (i : Integer) (add (index (mul 2 i) v) (index (add (mul 2 i) 1) v)))))))
(def shifted (Vec Float) (v : (Vec Float) n)
  (build (sub n 2) (lam (i : Integer) (sub (index (add i 2) v) (index i v)))))
(def outside (Vec Float) (v : (Vec Float) n)
  (build n (lam (i : Integer) (index (add i 1) v))))
(def lifted (Vec (Tuple Float Float)) (v : (Vec (Tuple Float Float)) n) (mul 2.0 (add v v)))
(def unequal (Vec Float) ((v : Vec Float) (w : Vec Float)) (add v w))
(def least Integer (v : (Vec Float) n) (argmin n (lam (i : Integer) (index i v))))
(def small_max Int8 (v : (Vec Int8) n) (reduce max n (lam (i : Integer) (index i v))))
(def enormous (Vec Float) (n : Integer) (build n (lam (i : Integer) 0.0)))
(def not_there Float (x : Float) (missing x))
"#
        .replace("(missing x)", "x")
        .as_str(),
        &[
            "rows 2 3",
            "rows 0 3",
            "rows 3 0",
            "rows -1 2",
            "rows 2 -1",
            "rows 0 -1",
            "inner_size 2 3",
            "inner_size 0 3",
            "sizes []",
            "sizes [[],[]]",
            "made_sizes 0 4",
            "made_sizes 4 0",
            "made_sizes 2 2",
            "ragged 0",
            "ragged 1",
            "ragged 3",
            "late 3 [5]",
            "late 3 [5,6,7]",
            "even 3",
            "total 0 3",
            "total 3 2",
            "total 2 0",
            "varied 0",
            "varied 1",
            "varied 2",
            "deltas 3",
            "pairs 0",
            "pairs 2",
            "swapped [1.0] [2.0] 3",
            "swapped [1.0] [2.0,3.0] 1",
            "fib 30",
            "grows 0",
            "grows 1",
            "grows 2",
            "pick true [1.0] 3",
            "pick false [1.0] 3",
            "deep 1000",
            "deep 200000",
            "halves [1.0,2.0,3.0,4.0]",
            "halves []",
            "shifted [1.0,2.0,4.0]",
            "shifted [1.0,2.0]",
            "shifted [1.0]",
            "outside [1.0,2.0]",
            "outside []",
            "lifted [[1.0,-0.0]]",
            "lifted []",
            "unequal [1.0] [1.0,2.0]",
            "unequal [] []",
            "least []",
            "least [\"NaN\",1.0,0.5]",
            "small_max []",
            "enormous 4294967296",
            "not_there 1.0",
        ],
    );
}

/// Protects: a call that failed does not disturb the next, and timing gives the value.
#[test]
fn one_object_is_called_many_times() {
    let program = read(
        "dot.ks",
        "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n)) (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))",
    );
    let def = program.named("f")[0];
    let native = Native::compile(&program, def, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
    let vector =
        |n: i64| Value::tensor(vec![n as usize], (0..n).map(|k| Value::Scalar(Lit::float(0.1 * k as f64))).collect());
    let interpreter = Interpreter::new(&program);
    for (n, m) in [(1000, 1000), (3, 4), (17, 17)] {
        let args = [vector(n), vector(m)];
        assert_eq!(difference(&interpreter.run(def, &args), &native.call(&args)), None);
    }
    let timing = native.time(&[vector(100), vector(100)], 3).unwrap_or_else(|d| panic!("{}", d.render()));
    assert!(timing.min_seconds <= timing.median_seconds);
    assert!(native.cpp().contains("ks_entry_0"));
}

/// Protects: a compiler that is missing is the user's error, with a hint.
#[test]
fn a_missing_compiler_is_explained() {
    let program = read("one.ks", "(def f Float () 1.0)");
    let tools = Toolchain::discover(Some("no-such-compiler".to_string()), None);
    let error = Native::compile(&program, program.named("f")[0], &tools).err().unwrap();
    assert_eq!(error.kind, Kind::User);
    assert!(error.render().contains("hint: install g++"), "{}", error.render());
}

/// Protects: deep programs neither overflow a stack nor crash the compiler, and huge tensors are refused.
#[test]
fn deep_and_huge_programs_end_well() {
    let deep = |n: usize, open: &str, close: &str| format!("{}x{}", open.repeat(n), close.repeat(n));
    let text = format!(
        "(def sums Float (x : Float) {})\n(def lets Float (x : Float) {})\n(def ifs Float (x : Float) {})\n{}",
        deep(5000, "(add 1.5 ", ")"),
        deep(1000, "(let (x (mul x 1.001)) ", ")"),
        deep(1000, "(if (gt x 0.0) (assert (gt x 1.0) ", ") 2.0)"),
        "(def huge (Vec (Vec Float)) (n : Integer)
           (build n (lam (i : Integer) (build n (lam (j : Integer) 0.0)))))",
    );
    let program = read("deep.ks", &text);
    let defs: Vec<&Def> = program.defs.values().collect();
    let native = Native::compile_all(&program, &defs, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(&program);
    let x = [Value::Scalar(Lit::float(0.25))];
    for k in [0, 1] {
        let one = native[k].as_ref().unwrap_or_else(|d| panic!("{}", d.render()));
        assert_eq!(difference(&interpreter.run(defs[k], &x), &one.call(&x)), None);
    }
    assert_eq!(native[2].as_ref().err().unwrap().kind, Kind::Limit);
    let huge = native[3].as_ref().unwrap_or_else(|d| panic!("{}", d.render()));
    let error = huge.call(&[Value::Scalar(Lit::int(1 << 31))]).unwrap_err();
    assert_eq!(error.kind, Kind::Limit, "{}", error.render());
}

/// Protects: every kind of producer agrees at many small sizes, empty and negative ones included.
#[test]
fn producers_agree_at_small_sizes() {
    let text = r#"
(def a (Tuple (Vec Float) Integer) (n : Integer) (reduce add n (lam (i : Integer) (tuple (build 2 (lam (j : Integer) 1.0)) i))))
(def b (Vec (Vec Float)) (n : Integer) (scan (lam ((s : (Vec Float)) (i : Integer)) (add s (build (size s) (lam (k : Integer) (to_float (mul k i)))))) (build 3 (lam (k : Integer) 1.0)) n))
(def c (Vec Float) (n : Integer) (sum (build n (lam (i : Integer) (build 2 (lam (j : Integer) (to_float (add i j))))))))
(def rec2 (Tuple Float (Vec Float)) ((n : Integer) (v : Vec Float)) (if (lt n 1) (tuple 0.0 v) (let ((x w) (rec2 (sub n 1) (add v v))) (tuple (add x (sum w)) (mul 0.5 w)))))
(def d (Tensor 2 Float) ((n : Integer) (m : Integer)) (build (tuple n m) (lam ((i : Integer) (j : Integer)) (if (eq i j) 1.0 (to_float (sub i j))))))
(def e (Vec (Vec Float)) (n : Integer) (Vec_init (build n (lam (i : Integer) 1.0)) (build 2 (lam (i : Integer) 2.0))))
(def f (Vec (Tuple Float Integer)) (n : Integer) (let (p (build n (lam (i : Integer) (tuple (to_float i) i)))) (build n (lam (i : Integer) (index (sub (sub n i) 1) p)))))
(def g Integer (n : Integer) (let (x (build 0 (lam (i : Integer) (build n (lam (j : Integer) 1.0))))) (size (sum x))))
(def h (Vec Float) ((n : Integer) (k : Integer)) (constVec n (to_float (div 6 k))))
(def w (Vec (Vec Float)) (n : Integer) (constVec n (build n (lam (i : Integer) (to_float i)))))
(def q (Vec Float) (n : Integer) (fold (lam ((s : (Vec Float)) (x : Integer)) (build (size s) (lam (j : Integer) (index (sub (sub (size s) 1) j) s)))) (build n (lam (j : Integer) (to_float j))) (build 3 (lam (i : Integer) i))))
(def z (Vec Float) (n : Integer) (sumbuild n (lam (i : Integer) (if (eq (mod i 2) 0) (deltaVec n i 1.5) (build n (lam (j : Integer) (to_float j)))))))
(def u (Vec Float) (n : Integer) (sumbuild n (lam (i : Integer) (sumbuild i (lam (k : Integer) (build n (lam (j : Integer) (to_float (mul j k)))))))))
(def t (Vec Int8) (n : Integer) (build n (lam (i : Integer) (cast Int8 (mul i 50)))))
(def s (Vec Bool) (n : Integer) (build n (lam (i : Integer) (and (gt i 1) (lt i 3)))))
(def r (Vec (Vec Integer)) (n : Integer) (build n (lam (i : Integer) (if (lt i 2) (build 2 (lam (j : Integer) j)) (build n (lam (j : Integer) i))))))
"#;
    let program = read("sweep.ks", text);
    let mut cases = vec![];
    for def in program.defs.values() {
        for (n, m) in [-1, 0, 1, 2, 3, 5].into_iter().flat_map(|n| [-2, 0, 1, 3].map(|m| (n, m))) {
            let floats = [1.5, -0.25].map(|v| Value::Scalar(Lit::float(v))).to_vec();
            let mut sizes = [n, m].into_iter();
            let args = def.params.iter().map(|p| match p.ty.as_scalar() {
                Some(_) => Value::Scalar(Lit::int(sizes.next().unwrap_or(0))),
                None => Value::tensor(vec![2], floats.clone()),
            });
            cases.push((def, args.collect(), format!("{} {n} {m}", def.name())));
        }
    }
    let found = disagreements(&program, &cases);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
