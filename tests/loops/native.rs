//! Compiled programs agree with the interpreter bit for bit, failures and their places included.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::native::difference;
use crate::common::{files, root};
use daedal::diag::{Kind, Source};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Body, Def, Head, Id, Lit, Program, Ty};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use std::path::PathBuf;

/// The compiler with full optimization, as users run it.
fn tools() -> Toolchain {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native");
    Toolchain::discover(std::env::var("CXX").ok(), Some(cache))
}

fn read(name: &str, text: &str) -> Program {
    let program = daedal::types::program(&Source::new(name, text)).and_then(|p| daedal::ad::complete(&p));
    program.unwrap_or_else(|d| panic!("{}", d.render()))
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

/// The nest of a definition as it is lowered, and after all passes.
fn nests(program: &Program, def: &Def) -> [(&'static str, daedal::nest::Nest); 2] {
    let all = native::nest(program, def, &Machine::host()).unwrap();
    [("reference", native::reference(program, def).unwrap()), ("final", all)]
}

/// Compiles all functions that the cases name as one object, and lists every disagreement.
fn disagreements(program: &Program, cases: &[(&Def, Vec<Value>, String)]) -> Vec<String> {
    let mut defs: Vec<&Def> = vec![];
    for (def, ..) in cases {
        if !defs.iter().any(|d| d.fun == def.fun) {
            defs.push(def);
        }
    }
    let compiled = native::compile_all(program, &defs, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(program);
    let mut out = vec![];
    for (def, args, line) in cases {
        let at = defs.iter().position(|d| d.fun == def.fun).unwrap();
        let native = match &compiled[at] {
            Ok(native) => native,
            // What only the interpreter runs is refused with a limit.
            Err(d) if d.kind == Kind::Limit && d.places.iter().any(|p| p.1 == "only the interpreter runs this") => {
                continue;
            }
            Err(d) => {
                out.push(format!("{line}\nis not compiled: {}", d.render()));
                continue;
            }
        };
        let want = interpreter.run(def, args);
        if let Some(d) = difference(&want, &native.call(args)) {
            out.push(format!("{line}\n{d}"));
        }
        let printed = (interpreter.take_printed(), native.take_printed());
        if printed.0 != printed.1 {
            out.push(format!("{line}\nthe interpreter prints\n{}\nand compiled code\n{}", printed.0, printed.1));
        }
        for (level, nest) in nests(program, def) {
            let mut text = String::new();
            let have = interpret(&nest, args, &mut text).map_err(|d| d.within(&program.source));
            if let Some(d) = difference(&want, &have) {
                out.push(format!("{line}\nas the {level} nest: {d}\n{nest}"));
            }
            if text != printed.0 {
                out.push(format!("{line}\nthe interpreter prints\n{}\nand the {level} nest\n{text}", printed.0));
            }
        }
    }
    out
}

/// Protects: native code means what the interpreter means, on every program of the corpus.
#[test]
fn the_corpus_runs_natively_as_in_the_interpreter() {
    let files = files(&root("programs"), "ks");
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
    for op in ["min", "max", "minimum", "maximum", "add", "sub", "mul", "div", "pow", "atan2", "hypot"] {
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
    text += "(def p_precedes Bool ((a : Float) (b : Float)) (precedes a b))\n";
    for a in ["0.0", "-0.0", "\"NaN\"", "1.5"] {
        lines.extend(["0.0", "-0.0", "\"NaN\"", "2.0"].map(|b| format!("p_precedes {a} {b}")));
    }
    for op in ["add", "sub", "mul", "div", "mod", "min", "max", "minimum", "maximum"] {
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
    let native = native::compile(&program, def, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
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
    let error = native::compile(&program, program.named("f")[0], &tools).err().unwrap();
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
    let native = native::compile_all(&program, &defs, &tools()).unwrap_or_else(|d| panic!("{}", d.render()));
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
                None => Value::tensor(vec![2], floats.clone().into()),
            });
            cases.push((def, args.collect(), format!("{} {n} {m}", def.name())));
        }
    }
    let found = disagreements(&program, &cases);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Protects: compiled code prints what the interpreter prints, byte for byte: texts and numbers of every
/// type, in loops and functions, before a failure too, and from every round of a timed call the last one.
#[test]
fn what_is_printed_is_the_same() {
    let text = r#"
(def show Integer ((s : String) (x : Float) (t : (Tuple Integer (Vec String) (Tensor 2 Float) Bool)))
  (print "s = " s ", x = " x ", " t "\n\t\"quoted\" \u{20ac}"))
(def nothing Integer () (print))
(def loops Float (n : Integer)
  (sumbuild n (lam (i : Integer)
    (let (p (print "round " i ": " (sqrt (to_float i))))
      (fold (lam ((s : Float) (x : Float)) (let (q (print s x)) (add s x))) (to_float p) (constVec i 0.5))))))
(def fails Integer (v : (Vec Integer))
  (sumbuild (size v) (lam (i : Integer)
    (let (p (print "dividing by " (index i v))) (add p (div 100 (index i v)))))))
(def down Integer (n : Integer)
  (if (lte n 0) (print "done") (let (p (print "at " n)) (add p (down (sub n 1))))))
(def table (Vec (Vec Float)) (n : Integer)
  (build n (lam (i : Integer) (build n (lam (j : Integer) (let (p (print i j)) (to_float (mul i (mul j p)))))))))
(def arms (Vec Float) ((b : Bool) (n : Integer))
  (if b (let (p (print "first")) (build n (lam (i : Integer) (let (q (print i)) (to_float (add p q))))))
    (constVec (add n 1) 2.5)))
(def pick String ((b : Bool) (s : String)) (let (t (if b s "other")) (let (p (print t)) (if (eq t "other") "" t))))
(def twice Integer (n : Integer) (add (print "again " n) (print "again " n)))
(def edges Integer (x : Float) (print (div x 0.0) (div (neg x) 0.0) (sub (div x 0.0) (div x 0.0)) (mul x 1e300) -0.0
  (cast Float32 x) (cast UInt8 255) true (tuple) (constVec 0 1.0) (build 0 (lam (i : Integer) (constVec 2 1.0)))))
(edef elsewhere Float (Float))
(def outside Float (x : Float) (let (p (print "before")) (elsewhere x)))
"#;
    let lines = [
        r#"show "text" 1e-7 [3,["a","","a"],[[1.0,2.5],[-0.0,1e22]],true]"#,
        "nothing",
        "loops 0",
        "loops 4",
        "fails [1,2]",
        "fails [7,0,3]",
        "down 3",
        "table 0",
        "table 3",
        "arms true 2",
        "arms false 2",
        r#"pick true "mine""#,
        r#"pick true "other""#,
        r#"pick false "mine""#,
        "twice 2",
        "edges 1.25",
        "outside 1.0",
    ];
    agree(text, &lines);
    let program = read("timed.ks", "(def f Integer (n : Integer) (print n))");
    let native = native::compile(&program, program.named("f")[0], &tools()).unwrap();
    native.time(&[Value::Scalar(Lit::int(12))], 3).unwrap();
    assert_eq!((native.take_printed(), native.take_printed()), ("12\n".to_string(), String::new()));
}

/// Lets print some of the numbers that a program makes, as they are made.
fn with_prints(program: &Program, seed: u64) -> Program {
    let mut out = program.clone();
    let mut count = seed;
    for def in program.defs.values() {
        let Some(body) = def.term() else { continue };
        let mut made: std::collections::HashMap<Id, Id> = std::collections::HashMap::default();
        for id in program.terms.reachable(body) {
            let kids: Vec<Id> = program.terms.kids(id).iter().map(|k| made[k]).collect();
            let (head, ty) = (program.terms.head(id), program.terms.ty(id));
            let mut new = out.terms.put(head, kids);
            for span in program.terms.spans(id) {
                out.terms.mark(new, *span);
            }
            count = count.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if matches!(head, Head::Op(_) | Head::Index(_) | Head::Let | Head::Call(_))
                && (count >> 33).is_multiple_of(4)
            {
                let (x, y) = (out.terms.var(0, ty), out.terms.var(1, ty));
                let shown = out.terms.put(Head::Print, [x]);
                let inner = out.terms.put(Head::Let, [shown, y]);
                new = out.terms.put(Head::Let, [new, inner]);
            }
            made.insert(id, new);
        }
        out.defs[&def.fun].body = Body::Term(made[&body]);
    }
    out
}

/// Protects: the same in programs that nobody thought of, those that fail included.
#[test]
fn random_programs_print_the_same() {
    let (mut printed, mut failed, mut refused) = (0, 0, 0);
    for chunk in 0..7u64 {
        let (mut text, mut calls) = (String::new(), vec![]);
        for seed in chunk * 40..(chunk + 1) * 40 {
            let knobs = Knobs { budget: 25, failing: seed % 2 == 0, ..Knobs::PLAIN };
            let made = generate::program(seed, &knobs);
            text += &made
                .text
                .replace("(def main ", &format!("(def main{seed} "))
                .replace("helper", &format!("helper{seed}"));
            calls.push((format!("main{seed}"), made.args));
        }
        let program = with_prints(&read("random.ks", &text), chunk);
        daedal::types::verify::verify(&program).unwrap();
        let defs: Vec<&Def> = calls.iter().map(|(name, _)| program.named(name)[0]).collect();
        let compiled = native::compile_all(&program, &defs, &tools()).unwrap();
        let interpreter = Interpreter::new(&program);
        for ((def, (_, args)), native) in defs.into_iter().zip(&calls).zip(compiled) {
            let native = match native {
                Ok(native) => native,
                Err(d) if d.kind == Kind::Limit => {
                    refused += 1;
                    continue;
                }
                Err(d) => panic!("{}", d.render()),
            };
            let args = common::arguments(def, args).unwrap();
            let (want, have) = (interpreter.run(def, &args), native.call(&args));
            let (want_text, have_text) = (interpreter.take_printed(), native.take_printed());
            printed += usize::from(!want_text.is_empty());
            failed += usize::from(!want_text.is_empty() && want.is_err());
            let show = || daedal::ir::print::def(&program.terms, def);
            assert!(difference(&want, &have).is_none(), "{args:?}\n{}\n{}", show(), difference(&want, &have).unwrap());
            assert_eq!(want_text, have_text, "{args:?}\n{}", show());
        }
    }
    println!("{printed} print, {failed} of them fail, {refused} are refused");
    assert!(printed > 120 && failed > 5 && refused < 60, "{printed} print, {failed} fail, {refused} are refused");
}

/// Protects: types of what stands for texts.
#[test]
fn text_is_compared_and_passed_on() {
    let text = r#"
(def same Bool ((a : String) (b : String)) (eq a b))
(def other Bool ((a : (Tuple Integer String)) (b : (Tuple Integer String))) (ne a b))
(def count Integer ((all : (Vec String)) (s : String))
  (sumbuild (size all) (lam (i : Integer) (if (eq s (index i all)) 1 0))))
(def parts (Tuple String (Vec String)) (s : String) (tuple s (Vec_init "one" s "two")))
(def after String (v : (Vec String)) (fold (lam ((s : String) (x : String)) (if (eq x "stop") s x)) "none" v))
"#;
    let lines = [
        r#"same "a" "a""#,
        r#"same "a" "b""#,
        r#"other [1,"x"] [1,"x"]"#,
        r#"other [1,"x"] [1,"y"]"#,
        r#"count ["x","y","x"] "x""#,
        r#"count [] "x""#,
        r#"parts "two""#,
        r#"after ["a","stop","b","stop"]"#,
    ];
    agree(text, &lines);
    assert_eq!(read("one.ks", text).named("same")[0].fun.sig().ret, Ty::bool());
}
