//! Tensors of every small, empty, negative and failing size mean the same in every mode.

use crate::common;
use crate::common::native::{difference, quick, same};
use daedal::ad::{self, Mode, Wanted, check};
use daedal::cost::Model;
use daedal::diag::Result;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Fun, Lit, Program, print};
use daedal::pipeline::{Options, optimize};
use daedal::rules::Level;
use rayon::prelude::*;

/// Functions that elements call.
const HELPERS: &str = "
(def made (Vec Float) ((m : Integer) (k : Integer)) (build m (lam (j : Integer) (to_float (div j k)))))
(def named (Vec Float) (x : (Vec Float) s) (build (sub s 1) (lam (j : Integer) (index (add j 1) x))))
(def again (Vec Float) (m : Integer) (if (lt m 1) (constVec (add m 1) 0.5) (again (sub m 1))))
";

/// Elements of sums and tensors: a type, and an expression over `i` (the loop's variable), `m`, `k`, `v` and `rows`.
const ELEMENTS: &[(&str, &str)] = &[
    (V, "(build m (lam (j : Integer) (to_float (add i j))))"),
    (V, "(build (div m k) (lam (j : Integer) (to_float (add i j))))"),
    (V, "(build (sub m k) (lam (j : Integer) (to_float (mul i j))))"),
    (V, "(build (add i k) (lam (j : Integer) 1.5))"),
    (V, "(build 2 (lam (j : Integer) (to_float (div j m))))"),
    (V, "(constVec m 1.5)"),
    (V, "(constVec (div m k) 1.0)"),
    (V, "(constVec k (to_float (div i m)))"),
    (V, "(deltaVec m i 1.5)"),
    (V, "(deltaVec (mod m k) (sub i 1) 2.0)"),
    (V, "(deltaVec k (div i m) 2.0)"),
    (V, "(scan (lam ((s : Float) (j : Integer)) (add s (to_float i))) 0.5 m)"),
    (V, "(scan (lam ((s : Float) (j : Integer)) (to_float (div j m))) 0.5 (div k m))"),
    (V, "(if (gt m 0) (build m (lam (j : Integer) 1.0)) (constVec k 2.0))"),
    (V, "(if (gt (div m k) 0) v (constVec m 2.0))"),
    (V, "(if (gt i 0) (constVec (div 2 m) 1.0) (constVec 2 2.0))"),
    (V, "(let (x (index m v)) (build (div 2 k) (lam (j : Integer) x)))"),
    (V, "(let (d (div 4 m)) (constVec d 1.0))"),
    (V, "(assert (gt m 0) (build (div m k) (lam (j : Integer) 1.0)))"),
    (V, "(sumbuild m (lam (j : Integer) (build k (lam (l : Integer) (to_float (add j l))))))"),
    (V, "(sumbuild m (lam (j : Integer) (sumbuild k (lam (l : Integer) (constVec (sub m k) 1.0)))))"),
    (V, "(sum (build m (lam (j : Integer) (constVec k 1.0))))"),
    (V, "(sum (build (div m k) (lam (j : Integer) v)))"),
    (V, "(sum (constVec m (build k (lam (j : Integer) 2.5))))"),
    (V, "(add (build m (lam (j : Integer) 1.0)) (constVec k 1.0))"),
    (V, "(neg (build (sub m k) (lam (j : Integer) (to_float j))))"),
    (V, "(buildFromSparse m k (lam (j : Integer) (tuple j 1.0)))"),
    (V, "(fold (lam ((s : (Vec Float)) (x : Float)) (mul x s)) (build m (lam (j : Integer) 2.0)) v)"),
    (V, "(index m rows)"),
    (V, "(made m k)"),
    (V, "(named (constVec m (to_float k)))"),
    (V, "(again m)"),
    (V, "(constVec (size (again k)) 1.0)"),
    (V, "(let (x (index m v)) (constVec (size (again k)) x))"),
    (V, "(Vec_init (to_float (div m k)) 1.0)"),
    ("(Tensor 2 Float)", "(build (tuple m k) (lam ((j : Integer) (l : Integer)) (to_float (sub j l))))"),
    ("(Tensor 2 Float)", "(constVec (tuple 2 (div m k)) 0.5)"),
    ("(Vec (Vec Float))", "(build m (lam (j : Integer) (build k (lam (l : Integer) (to_float (sub j l))))))"),
    ("(Vec (Vec Float))", "(build m (lam (j : Integer) (build (div k m) (lam (l : Integer) 1.0))))"),
    ("(Vec (Vec Float))", "(Vec_init (constVec m 1.0) (constVec k 1.0))"),
    ("(Vec (Vec Float))", "(Vec_init (let (x (index m v)) (constVec (div 2 k) x)) (constVec (div 1 m) 2.0))"),
    ("(Vec (Tuple Float Integer))", "(build m (lam (j : Integer) (tuple 1.5 (div j k))))"),
    ("(Vec (Tuple Float (Vec Float)))", "(build m (lam (j : Integer) (tuple 1.5 (constVec k 2.0))))"),
    ("(Tuple (Vec Float) Float)", "(tuple (build m (lam (j : Integer) 1.0)) (to_float (div i k)))"),
    ("(Tuple Integer (Tuple (Vec Float) (Vec Float)))", "(tuple i (tuple (constVec m 1.0) (constVec (div m k) 1.0)))"),
];

/// Elements out of tensors whose parts differ in shape as written. What a sum over nothing makes of them is the
/// interpreter's and native code's to agree on; rewriting takes the parts out of their tensor, and with it the size.
const PARTS: &[(&str, &str)] = &[
    (V, "(index (sub m 1) (build k (lam (j : Integer) (constVec (add m j) 1.0))))"),
    (V, "(index i (build 1 (lam (j : Integer) (build (div (add m j) k) (lam (l : Integer) 1.0)))))"),
];

const V: &str = "(Vec Float)";

/// Where an element stands: the type of the whole, in which `$T` is the element's, and the whole, in which `$E` is it.
const PLACES: &[(&str, &str)] = &[
    ("$T", "(sumbuild n (lam (i : Integer) $E))"),
    ("$T", "(sum (build n (lam (i : Integer) $E)))"),
    ("$T", "(sumbuild (tuple n 2) (lam ((i : Integer) (o : Integer)) $E))"),
    ("(Vec $T)", "(build n (lam (i : Integer) $E))"),
    ("(Vec $T)", "(build 2 (lam (o : Integer) (sumbuild n (lam (i : Integer) $E))))"),
    ("(Vec $T)", "(Vec_init (sumbuild n (lam (i : Integer) $E)) (let (i n) $E))"),
    ("(Tuple Integer $T)", "(reduce add n (lam (i : Integer) (tuple i $E)))"),
    ("$T", "(let (x (sumbuild n (lam (i : Integer) $E))) (let (i 1) (add x $E)))"),
    ("$T", "(if (gt n 0) (let (i 0) $E) (sumbuild (add n 1) (lam (i : Integer) $E)))"),
    ("Integer", "(sumbuild 2 (lam (o : Integer) (let (x (sumbuild n (lam (i : Integer) $E))) (div o (sub k m)))))"),
];

/// The sizes of what tensors have sizes.
const OUTER: &[(&str, &str)] = &[("Integer", "(size $P)"), ("(Vec Float)", "(constVec (size $P) 1.0)")];

fn program(elements: &[(&str, &str)], places: &[(&str, &str)]) -> Program {
    let mut text = HELPERS.to_string();
    let params = "((n : Integer) (m : Integer) (k : Integer) (v : (Vec Float)) (rows : (Vec (Vec Float))))";
    let mut count = 0;
    let mut define = |ret: &str, body: &str| {
        text += &format!("(def f{count} {ret} {params}\n  {body})\n");
        count += 1;
    };
    for (ty, element) in elements {
        for (ret, place) in places {
            let body = place.replace("$E", element);
            define(&ret.replace("$T", ty), &body);
            if *ret == "$T" && *ty == V {
                OUTER.iter().for_each(|(ret, outer)| define(ret, &outer.replace("$P", &body)));
            }
        }
    }
    common::read("sizes.ks", &text).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// The functions under test: those with all parameters.
fn functions(program: &Program) -> Vec<&Def> {
    program.defs.values().filter(|d| d.params.len() == 5).collect()
}

/// Arguments of the functions: all sizes around nothing.
fn grid() -> Vec<Vec<Value>> {
    let int = |n: i64| Value::Scalar(Lit::int(n));
    let float = |x: f64| Value::Scalar(Lit::float(x));
    let v = Value::tensor(vec![2], vec![float(1.5), float(-0.25)].into());
    let mut out = vec![];
    for n in [-1, 0, 1, 2] {
        for m in [-1, 0, 1, 2] {
            for k in [-1, 0, 1, 2] {
                let rows = vec![Value::tensor(vec![3], vec![float(0.5), float(1.0), float(k as f64)].into()); 2];
                out.push(vec![int(n), int(m), int(k), v.clone(), Value::tensor(vec![2], rows.into())]);
            }
        }
    }
    out
}

/// Runs all functions of a program on the grid, interpreted and native: what the interpreter gives, and what differs.
fn run(program: &Program, what: &str) -> (Vec<Vec<Result<Value>>>, Vec<String>) {
    let defs = functions(program);
    let native = daedal::pipeline::native::compile_all(program, &defs, &quick("sizes"))
        .unwrap_or_else(|d| panic!("{}", d.render()));
    let interpreter = Interpreter::new(program);
    let (mut all, mut wrong) = (vec![], vec![]);
    for (def, native) in defs.iter().zip(&native) {
        let native = native.as_ref().unwrap_or_else(|d| panic!("{what} `{}`: {}", def.name(), d.render()));
        let mut each = vec![];
        for args in grid() {
            let want = interpreter.run(def, &args);
            if let Some(d) = difference(&want, &native.call(&args)) {
                wrong.push(format!("{what} `{}` {}\n{d}", def.name(), shown(&args)));
            }
            each.push(want);
        }
        all.push(each);
    }
    (all, wrong)
}

fn shown(args: &[Value]) -> String {
    args.iter().take(3).map(|a| a.to_json().to_string()).collect::<Vec<_>>().join(" ")
}

/// All modes of one program: what differs, and how many runs had values and failures.
fn modes(places: &[(&str, &str)]) -> (Vec<String>, usize, usize) {
    let before = program(ELEMENTS, places);
    let (want, mut wrong) = run(&before, "as it is,");
    for (cost, float) in [(Model::Knossos, Level::Exact), (Model::Analytic, Level::Real)] {
        let options = Options { cost, float, max_nodes: 400, ..Options::standard() };
        let after = optimize(&before, &options).unwrap_or_else(|d| panic!("{}", d.render())).program;
        let (have, differ) = run(&after, &format!("optimized at {float},"));
        wrong.extend(differ);
        for ((def, want), have) in functions(&before).iter().zip(&want).zip(&have) {
            for ((want, have), args) in want.iter().zip(have).zip(grid()) {
                // A failure may vanish, and never appear.
                let good = match (want, have) {
                    (Ok(a), Ok(b)) if float == Level::Exact => same(a, b),
                    // The reals have one zero.
                    (Ok(a), Ok(b)) => common::agree(a, b, 1e-12),
                    (Ok(_), Err(_)) => false,
                    (Err(_), _) => true,
                };
                if !good {
                    let text = print::program(&after);
                    let at = text.find(&format!("(def {} ", def.name())).unwrap_or(0);
                    let text: String = text[at..].chars().take(600).collect();
                    wrong.push(format!(
                        "optimized at {float}, `{}` {}: {want:?} {have:?}\n{text}",
                        def.name(),
                        shown(&args)
                    ));
                }
            }
        }
    }
    let values = want.iter().flatten().filter(|r| r.is_ok()).count();
    (wrong, values, want.iter().flatten().count() - values)
}

/// Protects: sums over nothing have the sizes, and fail with the failures, of the interpreter; sizes that cannot be
/// computed fail where and when they do there, never before what stands before them.
#[test]
fn tensors_of_all_small_sizes_agree_in_every_mode() {
    let parts: Vec<&[(&str, &str)]> = PLACES.chunks(3).collect();
    let results: Vec<_> = parts.into_par_iter().map(modes).collect();
    let wrong: Vec<&String> = results.iter().flat_map(|r| &r.0).collect();
    let (values, failures) = (results.iter().map(|r| r.1).sum::<usize>(), results.iter().map(|r| r.2).sum::<usize>());
    println!("{values} values and {failures} failures in each mode");
    let shown: Vec<String> = wrong.iter().take(5).map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{} of {} disagree\n{}", wrong.len(), values + failures, shown.join("\n\n"));
    assert!(values > 5_000 && failures > 5_000, "{values} values and {failures} failures");
}

/// Protects: the same of elements that are taken out of a tensor of them.
#[test]
fn sums_of_parts_of_tensors_agree() {
    let (all, wrong) = run(&program(PARTS, PLACES), "as it is,");
    assert!(wrong.is_empty(), "{} disagree\n{}", wrong.len(), wrong[0]);
    assert!(all.iter().flatten().filter(|r| r.is_ok()).count() > 100);
}

/// What derivatives flow through: the numbers of elements are those of `v`.
fn flowing(elements: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let numbers =
        [("1.5", "(index 0 v)"), ("2.5", "(index 1 v)"), ("2.0", "(mul 2.0 (index 1 v))"), ("1.0", "(index 0 v)")];
    let of = |e: &str| numbers.iter().fold(e.to_string(), |e, (from, to)| e.replace(from, to));
    elements.iter().map(|(ty, e)| (*ty, of(e))).collect()
}

/// Where tensors of elements are bound, and made again: their rows have sizes only where there are rows.
const BOUND: &[(&str, &str)] = &[
    ("$T", "(let (a (build n (lam (i : Integer) $E))) (sum a))"),
    ("$T", "(let (a (build n (lam (i : Integer) $E))) (sumbuild (size a) (lam (i : Integer) (index i a))))"),
    ("(Vec $T)", "(let (a (build n (lam (i : Integer) $E))) (build n (lam (i : Integer) (index i a))))"),
    ("(Vec $T)", "(let (a (build n (lam (i : Integer) $E))) (let (s (sum a)) (build 2 (lam (i : Integer) s))))"),
    (
        "(Vec $T)",
        "(let (a (build n (lam (i : Integer) $E))) (let (b (build n (lam (i : Integer) (index i a)))) (build 2 (lam (i : Integer) (sum b)))))",
    ),
    ("Integer", "(let (a (build n (lam (i : Integer) $E))) (let (s (sum a)) n))"),
];

/// As [`BOUND`], where elements are vectors: what is made of their sum has its size.
const OF_VECTORS: &[(&str, &str)] = &[
    ("Float", "(let (a (build n (lam (i : Integer) $E))) (sum (sum a)))"),
    (
        "Float",
        "(let (a (build n (lam (i : Integer) $E))) (let (s (sum a)) (sumbuild (size s) (lam (j : Integer) (index j s)))))",
    ),
    (
        V,
        "(let (a (build n (lam (i : Integer) $E))) (let (s (sum a)) (build (size s) (lam (j : Integer) (mul 2.0 (index j s))))))",
    ),
    (V, "(let (a (build n (lam (i : Integer) $E))) (let (s (sum a)) (add s (mul 3.0 s))))"),
    (
        V,
        "(let (a (build n (lam (i : Integer) $E))) (let (s (sumbuild n (lam (i : Integer) (mul 2.0 (index i a))))) (neg s)))",
    ),
    (V, "(let (a (build n (lam (i : Integer) $E))) (fold (lam ((s : (Vec Float)) (x : Float)) (mul x s)) (sum a) v))"),
    (
        V,
        "(let (a (build 2 (lam (o : Integer) (build n (lam (i : Integer) $E))))) (let (s (sum a)) (let (t (sum s)) (neg t))))",
    ),
    ("(Vec Float)", "(let (a (build n (lam (i : Integer) $E))) (if (gt k 0) (sum a) (neg (sum a))))"),
    (
        "Float",
        "(let (a (build n (lam (i : Integer) $E))) (sum (build (size (sum a)) (lam (j : Integer) (index 1 v)))))",
    ),
];

/// The sum of the products of all floats of two values of one shape; nothing where they have none.
fn dot(a: &Value, b: &Value) -> Option<f64> {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => Some(x.as_f64()? * y.as_f64()?),
        (Value::Tuple(x), Value::Tuple(y)) if x.len() == y.len() => {
            x.iter().zip(y.iter()).map(|(x, y)| dot(x, y)).sum()
        }
        (Value::Tensor(x), Value::Tensor(y)) if x.dims == y.dims => {
            x.iter().zip(y.iter()).map(|(x, y)| dot(&x, &y)).sum()
        }
        _ => None,
    }
}

fn ready((made, fun): &(Program, Fun)) -> (Interpreter<'_>, Def) {
    (Interpreter::new(made), made.defs[fun].clone())
}

/// What is wrong with the derivatives of a function where it has a value, and at how many points it has one.
fn derivatives(program: &Program, def: &Def) -> (Vec<String>, usize) {
    let wrt: Vec<bool> = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
    let by = |mode, checkpoint| {
        ad::derive(program, &Wanted { fun: def.fun, mode, wrt: wrt.clone(), value: true, checkpoint })
    };
    let made = [(Mode::Forward, false), (Mode::Reverse, false), (Mode::Reverse, true)].map(|(m, c)| by(m, c));
    let [Ok(forward), Ok(reverse), Ok(few)] = &made else { return (vec![], 0) };
    let (forward, reverse, few) = (ready(forward), ready(reverse), ready(few));
    let interpreter = Interpreter::new(program);
    let (mut wrong, mut points) = (vec![], 0);
    // Every other size is as good as 1.
    let one = Value::Scalar(Lit::int(1));
    for args in grid().into_iter().filter(|args| !args[..3].contains(&one)) {
        let Ok(value) = interpreter.run(def, &args) else { continue };
        points += 1;
        let changes: Vec<Value> = args[3..].iter().map(|a| check::change(a, 5)).collect();
        let dr = check::change(&value, 9);
        let run = |(interpreter, def): &(Interpreter<'_>, Def), more: &[Value]| {
            let parts = interpreter.run(def, &[&args[..], more].concat())?;
            let Value::Tuple(parts) = parts else { panic!("no pair") };
            Ok::<_, Box<daedal::diag::Diagnostic>>((parts[0].clone(), parts[1].clone()))
        };
        let told = |what: &str, told: String| format!("{what} of `{}` {}: {told}", def.name(), shown(&args));
        let along = match run(&forward, &changes) {
            Ok((v, d)) if common::agree(&v, &value, 1e-12) => dot(&d, &dr),
            Ok((v, _)) => {
                wrong.push(told("forward", format!("{} is not {}", v.to_json(), value.to_json())));
                continue;
            }
            Err(d) => {
                wrong.push(told("forward", d.render()));
                continue;
            }
        };
        for (what, of) in [("reverse", &reverse), ("reverse with few states", &few)] {
            match run(of, std::slice::from_ref(&dr)) {
                Ok((v, d)) => {
                    let back = dot(&d, &Value::tuple(changes.clone()));
                    let same = match (along, back) {
                        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + a.abs()),
                        _ => false,
                    };
                    if !same || !common::agree(&v, &value, 1e-12) {
                        wrong.push(told(what, format!("{v:?} {d:?}, {along:?} {back:?}, {value:?}")));
                    }
                }
                Err(d) => wrong.push(told(what, d.render())),
            }
        }
    }
    (wrong, points)
}

/// Protects: derivatives have values wherever their functions have, at sizes of nothing too, in the shapes of results and
/// arguments; and the modes agree there.
#[test]
fn derivatives_have_the_sizes_of_their_functions() {
    let elements = flowing(ELEMENTS);
    let elements: Vec<(&str, &str)> = elements.iter().map(|(ty, e)| (*ty, e.as_str())).collect();
    let before = program(&elements, PLACES);
    let defs = functions(&before);
    let results: Vec<_> = defs.par_iter().map(|def| derivatives(&before, def)).collect();
    let (points, wrong) = (results.iter().map(|r| r.1).sum::<usize>(), results.into_iter().flat_map(|r| r.0));
    let wrong: Vec<String> = wrong.collect();
    let shown: Vec<&str> = wrong.iter().take(12).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} at {points} points\n{}", wrong.len(), shown.join("\n\n"));
    assert!(points > 3_000, "{points} points");
}

/// Protects: the same where tensors of elements, which may be none, are bound and their sizes read again.
#[test]
fn derivatives_of_bound_tensors_have_the_sizes_of_their_functions() {
    let elements = flowing(ELEMENTS);
    let all: Vec<(&str, &str)> = elements.iter().map(|(ty, e)| (*ty, e.as_str())).collect();
    let vectors: Vec<(&str, &str)> = all.iter().copied().filter(|(ty, _)| *ty == V).collect();
    let (mut points, mut wrong) = (0, vec![]);
    for (elements, places) in [(&all, BOUND), (&vectors, OF_VECTORS)] {
        let before = program(elements, places);
        let results: Vec<_> = functions(&before).par_iter().map(|def| derivatives(&before, def)).collect();
        points += results.iter().map(|r| r.1).sum::<usize>();
        wrong.extend(results.into_iter().flat_map(|r| r.0));
    }
    let shown: Vec<&str> = wrong.iter().take(12).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} at {points} points\n{}", wrong.len(), shown.join("\n\n"));
    assert!(points > 5_000, "{points} points");
}

/// Sums over what may be nothing, by one number.
const NOTHING: &str = "
(def row (Vec Float) ((x : Float) (m : Integer)) (build m (lam (j : Integer) (mul x (to_float j)))))
(def arms Float ((x : Float) (n : Integer))
  (sum (sum (build n (lam (i : Integer) (if false (constVec 3 x) (constVec 3 x)))))))
(def constants Float ((x : Float) (n : Integer)) (index 1 (sum (constVec n (constVec 3 (mul x x))))))
(def deltas Float ((x : Float) (n : Integer))
  (index 1 (sumbuild n (lam (i : Integer) (deltaVec 3 i (mul x x))))))
(def scans Float ((x : Float) (n : Integer))
  (sum (sumbuild n (lam (i : Integer) (scan (lam ((s : Float) (j : Integer)) (mul s x)) x 3)))))
(def builds Float ((x : Float) (n : Integer))
  (sum (sum (sum (build n (lam (i : Integer) (build 2 (lam (j : Integer) (constVec 3 (mul x x)))))))))) 
(def called Float ((x : Float) (n : Integer)) (index 1 (sumbuild n (lam (i : Integer) (row x 3)))))
(def added Float ((x : Float) (n : Integer))
  (index 1 (sumbuild n (lam (i : Integer) (add (row x 3) (mul x (constVec 3 x)))))))
(def chosen (Vec Float) ((x : Float) (n : Integer))
  (if (gt n 0) (constVec n (mul x x)) (constVec 2 (mul x x))))
";

/// Protects: gradients of sums over nothing of all kinds, in compiled code too.
#[test]
fn gradients_of_sums_over_nothing_are_zeros() {
    let before = common::read("nothing.ks", NOTHING).unwrap_or_else(|d| panic!("{}", d.render()));
    let mut ran = 0;
    for def in before.defs.values().filter(|d| d.name() != "row") {
        let wanted =
            Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![true, false], value: true, checkpoint: false };
        let (program, fun) = ad::derive(&before, &wanted).unwrap();
        let native = daedal::pipeline::native::compile(&program, &program.defs[&fun], &quick("sizes")).unwrap();
        for n in [-1, 0, 1, 2] {
            let args = [Value::Scalar(Lit::float(1.5)), Value::Scalar(Lit::int(n))];
            let Ok(value) = Interpreter::new(&before).run(def, &args) else { continue };
            let args = [&args[..], &[check::change(&value, 4)]].concat();
            let made = Interpreter::new(&program).run(&program.defs[&fun], &args);
            assert!(difference(&made, &native.call(&args)).is_none(), "{} {n}", def.name());
            let made = made.unwrap_or_else(|d| panic!("{} {n}: {}", def.name(), d.render()));
            let Value::Tuple(parts) = &made else { panic!("no pair") };
            assert!(common::agree(&parts[0], &value, 1e-12), "{} {n}: {}", def.name(), made.to_json());
            if n == 0 && def.name() != "chosen" {
                assert!(same(&parts[1], &Value::Scalar(Lit::float(0.0))), "{}: {}", def.name(), made.to_json());
            }
            ran += 1;
        }
    }
    assert!(ran >= 24, "{ran}");
}

/// Protects: what `docs/language.md` says of sizes: where a tensor is never made, its size is what was asked for.
#[test]
fn a_size_of_what_is_never_made_is_what_was_asked_for() {
    let text = "(def f Integer (n : Integer) (size (build n (lam (i : Integer) 1.0))))";
    let before = common::read("size.ks", text).unwrap();
    let after = optimize(&before, &Options::standard()).unwrap().program;
    let run =
        |program: &Program, n: i64| Interpreter::new(program).run(program.named("f")[0], &[Value::Scalar(Lit::int(n))]);
    for n in [0, 3] {
        assert!(difference(&run(&before, n), &run(&after, n)).is_none());
    }
    assert!(run(&before, -1).unwrap_err().message.contains("negative size -1"));
    assert!(same(&run(&after, -1).unwrap(), &Value::Scalar(Lit::int(-1))));
}

/// Sums whose rows have one size, which is said in two ways, or would be said nowhere if it were bound outside.
const ONE_SIZE: &str = "
(def arms (Vec Float) ((x : Float) (y : Float) (n : Integer) (m : Integer))
  (let (k (div 3 2))
    (sum (build n (lam (i : Integer) (if (gte i m) (constVec k (mul x y)) (constVec k (mul y x))))))))
(def clamped Float ((x : Float) (y : Float) (n : Integer) (m : Integer))
  (fold (lam ((s : Float) (e : Float)) (add s e)) 1.0
    (let (k (min 3 (max 0 (let (unused true) 2))))
      (sumbuild n (lam (i : Integer) (if (eq i m) (constVec k x) (constVec k y)))))))
";

/// Protects: what a search says of the sizes of rows in one place is not lost in another, so that sums over nothing keep
/// them.
#[test]
fn searches_keep_the_sizes_of_sums_over_nothing() {
    let before = common::read("one_size.ks", ONE_SIZE).unwrap_or_else(|d| panic!("{}", d.render()));
    for engine in common::random::ENGINES {
        let options = Options { engine, max_nodes: 600, budget: 100, ..Options::standard() };
        let after = optimize(&before, &options).unwrap().program;
        for def in before.defs.values() {
            for n in [0, 2] {
                let float = |x: f64| Value::Scalar(Lit::float(x));
                let args = [float(1.5), float(2.5), Value::Scalar(Lit::int(n)), Value::Scalar(Lit::int(1))];
                let told = common::random::compare(&before, &after, def.name(), &args, Level::Real);
                assert!(told.is_ok(), "{} {n} by {}: {told:?}\n{}", def.name(), engine.name(), print::program(&after));
            }
        }
    }
}
