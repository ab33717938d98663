//! Calls of the language's library print as calls again, where the source has such calls.

use crate::common;
use crate::common::read;
use daedal::cost::Model;
use daedal::ir::{Program, print};
use daedal::pipeline::{Options, optimize_with, prepare};
use daedal::rules::{Level, Library};

fn program(text: &str) -> Program {
    read("spelled.ks", text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// Protects: what a program prints as, and that it reads back as the same terms.
fn prints(text: &str, expected: &str) {
    let one = program(text);
    let printed = print::program(&one);
    assert_eq!(printed.trim_end(), expected, "of {text}");
    let again = program(&printed);
    let mut terms = one.terms.clone();
    for (a, b) in one.defs.values().zip(again.defs.values()) {
        let b = b.term().map(|id| terms.import(&again.terms, id));
        assert!(a.term() == b, "`{}` reads back as another term:\n{printed}", a.name());
    }
    assert_eq!(print::program(&again), printed, "the second time");
}

const MATRICES: &str = "(a : (Tensor 2 Float)) (b : (Tensor 2 Float))";

#[test]
fn calls_of_variables_stay_calls() {
    for (ret, params, call) in [
        ("(Tensor 2 Float)", MATRICES, "(matmul a b)"),
        ("(Tensor 2 Float)", MATRICES, "(matmul b a)"),
        ("(Tensor 2 Float)", MATRICES, "(matmul a a)"),
        ("(Tensor 2 Float)", "(a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float) (k m))", "(matmul a b)"),
        ("(Tensor 2 Float)", "(a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float))", "(add (matmul a b) (matmul a b))"),
        ("(Vec Float)", "(a : (Tensor 2 Float) (n k)) (x : (Vec Float) k)", "(matmul a x)"),
        ("(Vec Float)", "(x : (Vec Float) k) (a : (Vec (Vec Float)) (n k))", "(mul a x)"),
        ("Float", "(x : (Vec Float) n) (y : (Vec Float) n)", "(add 1.0 (ts_dot x y))"),
        ("Float", "(x : (Vec (Tuple Float Float)))", "(ts_dot x x)"),
        ("Float", "(x : (Vec Float))", "(sub (max x) (min x))"),
        ("Integer", "(x : (Vec Float))", "(sub (imax x) (imin x))"),
        ("(Vec Float)", "(k : Integer) (x : (Vec Float) n) (y : Float)", "(setAt k x y)"),
        ("(Vec Float)", "(x : (Vec Float) n) (y : Float)", "(setAt 0 x 1.0)"),
        ("(Tensor 2 Float)", "(p : (Tuple Integer Integer)) (x : (Tensor 2 Float)) (y : Float)", "(setAt p x y)"),
        (
            "(Vec Float)",
            "(x : (Vec Float)) (y : (Vec Float))",
            "(build (size x) (lam (i : Integer) (mul (index i x) (ts_dot x y))))",
        ),
    ] {
        // Parameters print in brackets of their own, and the body in a line of its own.
        let text = format!("(def f {ret} ({params})\n  {call})");
        prints(&text, &text);
    }
}

/// Protects: arguments that are no variables are bound before the call, once.
#[test]
fn arguments_are_bound() {
    prints(
        "(def f (Vec Float) ((a : (Tensor 2 Float)) (x : (Vec Float))) (matmul a (add x x)))",
        "(def f (Vec Float) ((a : (Tensor 2 Float)) (x : (Vec Float)))\n  (let (v (add x x)) (matmul a v)))",
    );
}

/// Protects: a loop that somebody wrote stays a loop, and a name means what the program says it does.
#[test]
fn loops_stay_loops() {
    let dot = "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n))\n  (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))";
    prints(dot, dot);
    let two = format!("{dot}\n\n(def g Float ((x : (Vec Float)) (y : (Vec Float)))\n  (add 1.0 (ts_dot y x)))");
    prints(&two, &two.replace("(sumbuild n (lam (i : Integer) (mul (index i x) (index i y))))", "(ts_dot x y)"));
    let own = "(def matmul (Tensor 2 Float) ((a : (Tensor 2 Float)) (b : (Tensor 2 Float)))\n  a)";
    let text = format!("(def f (Tensor 2 Float) ({MATRICES}) (matmul a b))\n\n{own}");
    let printed = print::program(&program(&text));
    assert!(!printed.contains("(matmul a b)"), "{printed}");
}

/// Protects: `optimize` leaves calls that it changes nothing of, also where other parts of the definition change.
#[test]
fn unchanged_calls_stay_calls() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    for (text, call) in [
        (format!("(def f (Tensor 2 Float) ({MATRICES}) (matmul a b))"), "(matmul a b)"),
        ("(def f Float ((x : (Vec Float) n) (y : (Vec Float) n)) (add 0.0 (ts_dot x y)))".into(), "(ts_dot x y)"),
    ] {
        for cost in [Model::Knossos, Model::Analytic] {
            let outcome = optimize_with(&program(&text), &rules, &Options { cost, ..Options::standard() }).unwrap();
            let printed = print::program(&outcome.program);
            assert!(printed.contains(call) && !printed.contains("assert"), "{cost:?}: {printed}");
        }
    }
}

/// Every form and function of the library that is spelled out: parameters, the type of a call, the call, and arguments.
const FORMS: &[(&str, &str, &str, &str)] = &[
    ("(v : (Vec Float) n)", "(Vec Float)", "(map (lam (x : Float) (sin x)) v)", "[1.0,2.0]"),
    ("(v : (Vec Float))", "(Vec Float)", "(map (lam (x : Float) (add x (sin x))) v)", "[1.0,2.0]"),
    (
        "(v : (Vec (Vec Float)))",
        "(Vec Float)",
        "(map (lam (row : (Vec Float)) (add (index 0 row) (index 1 row))) v)",
        "[[1.0,2.0],[3.0,0.5]]",
    ),
    ("(t : (Tensor 2 Float) (n m))", "(Tensor 2 Float)", "(map (lam (x : Float) (exp x)) t)", "[[1.0,2.0]]"),
    (
        "(v : (Vec Float) n) (w : (Vec Float) n)",
        "(Vec Float)",
        "(map2 (lam ((x : Float) (y : Float)) (pow x (mul y y))) v w)",
        "[1.0,2.0] [3.0,4.0]",
    ),
    ("(v : (Vec Float) n)", "(Vec (Vec Float))", "(diag n n (lam (i : Integer) (index i v)))", "[1.0,2.0]"),
    ("(n : Integer) (m : Integer)", "(Vec (Vec Float))", "(diag n m (lam (k : Integer) (sin (to_float k))))", "2 3"),
    ("(n : Integer) (x : Float)", "Float", "(iterate n (lam (y : Float) (sin (add y 1.0))) x)", "3 0.5"),
    (
        "(n : Integer) (x : Float)",
        "Float",
        "(ifold n (lam ((y : Float) (k : Integer)) (sin (add y (to_float k)))) x)",
        "3 0.5",
    ),
    ("(i : Integer) (j : Integer) (x : Float)", "Float", "(delta i j x)", "1 1 0.5"),
    ("(k : Integer) (v : (Vec Float) n) (w : (Vec Float) n)", "(Vec Float)", "(slice k n v)", "0 [1.0,2.0] [3.0,4.0]"),
    ("(k : Integer) (v : (Vec Float))", "(Vec Float)", "(slice k 2 v)", "1 [1.0,2.0,3.0]"),
    ("(v : (Vec (Vec Float)))", "(Tensor 2 Float)", "(stack v)", "[[1.0,2.0]]"),
    ("(t : (Tensor 2 Float) (n m))", "(Vec (Vec Float))", "(unstack t)", "[[1.0,2.0]]"),
    ("(v : (Vec (Tuple Float Float)) n)", "(Tuple (Vec Float) (Vec Float))", "(unzip v)", "[[1.0,2.0],[3.0,4.0]]"),
    ("(v : (Vec Float)) (w : (Vec Float))", "(Vec Float)", "(ts_add v w)", "[1.0,2.0] [3.0,4.0]"),
    ("(r : Float) (w : (Vec Float))", "(Vec Float)", "(ts_scale r w)", "2.0 [3.0,4.0]"),
    ("(w : (Vec Float))", "(Vec Float)", "(ts_neg w)", "[3.0,4.0]"),
    ("(v : (Vec Float) n) (w : (Vec Float) n)", "Float", "(ts_dot w v)", "[1.0,2.0] [3.0,4.0]"),
    ("(x : (Vec Float) n) (v : (Vec Float) n)", "(Vec Float)", "(map (lam (y : Float) (sin y)) v)", "[1.0] [2.0]"),
    ("(x : Float) (lo : Float) (hi : Float)", "Float", "(clamp x lo hi)", "0.5 1.0 2.0"),
    ("(x : Integer)", "UInt8", "(saturate UInt8 x)", "300"),
    ("(x : Float) (y : Float)", "Float", "(cond ((lt x y) 1.0) ((lt 2.0 x) y) (else 3.0))", "2.5 1.5"),
    ("(v : (Vec Float) n) (w : (Vec Float) n)", "Bool", "(eq w v)", "[1.0] [1.0]"),
    (
        "(a : (Tensor 2 Float) (n k)) (b : (Tensor 2 Float) (k m))",
        "(Tensor 2 Float)",
        "(matmul a b)",
        "[[1.0,2.0]] [[3.0],[4.0]]",
    ),
    ("(x : (Vec Float) k) (a : (Tensor 2 Float) (n k))", "(Vec Float)", "(mul a x)", "[1.0,2.0] [[3.0,4.0]]"),
    ("(v : (Vec Float))", "Float", "(max v)", "[1.0,2.0]"),
    ("(v : (Vec Float))", "Integer", "(imin v)", "[1.0,2.0]"),
    ("(r : Float) (w : (Vec Float))", "(Vec Float)", "(mymul r w)", "2.0 [3.0,4.0]"),
];

/// Those of tensors whose sizes have no names: where these are bound is up to the optimizer, so they stay where nothing of
/// a definition changes.
const UNNAMED: &[(&str, &str, &str, &str)] = &[
    (
        "(v : (Vec Float)) (w : (Vec Float))",
        "(Vec Float)",
        "(map2 (lam ((x : Float) (y : Float)) (sub (sin y) x)) v w)",
        "[1.0,2.0] [3.0,4.0]",
    ),
    (
        "(v : (Tensor 2 Float)) (w : (Tensor 2 Float))",
        "(Tensor 2 Float)",
        "(map2 (lam ((x : Float) (y : Float)) (sub (sin y) x)) v w)",
        "[[1.0,2.0]] [[3.0,4.0]]",
    ),
    ("(t : (Tensor 2 Float))", "(Vec (Vec Float))", "(unstack t)", "[[1.0,2.0]]"),
    ("(v : (Vec (Tuple Float Float)))", "(Tuple (Vec Float) (Vec Float))", "(unzip v)", "[[1.0,2.0],[3.0,4.0]]"),
    ("(v : (Vec Float)) (w : (Vec Float))", "Bool", "(eq v w)", "[1.0] [1.0]"),
    ("(v : (Vec Float))", "(Vec (Tuple))", "(shape v)", "[1.0]"),
    ("(a : (Tensor 2 Float)) (b : (Tensor 2 Float))", "(Tensor 2 Float)", "(matmul a b)", "[[1.0,2.0]] [[3.0],[4.0]]"),
];

/// A program whose one definition calls a form, and has a part beside it that the optimizer changes.
fn beside(params: &str, ret: &str, call: &str) -> String {
    format!("(def f (Tuple {ret} Float) ({params} (z : Float))\n  (tuple {call} (mul (add z 0.0) 1.0)))")
}

/// Protects: every form of the library stays what the source calls it where the optimizer changed other parts: the text
/// has the call, reads back as the same term, and gives the same bits.
#[test]
fn every_form_stays() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Exact).unwrap();
    let mut wrong = vec![];
    for (params, ret, call, args) in FORMS {
        let text = beside(params, ret, call);
        let source = program(&text);
        for cost in [Model::Knossos, Model::Analytic] {
            // Products with a number are cheaper as loops under the model of sizes.
            let loops = ["(ts_scale r w)", "(ts_neg w)", "(mymul r w)"];
            if cost == Model::Analytic && loops.contains(call) {
                continue;
            }
            let options = Options { cost, float: Level::Exact, ..Options::standard() };
            let printed = print::program(&optimize_with(&source, &rules, &options).unwrap().program);
            let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
            if !plain.contains(call) || plain.contains("(mul (add z 0.0) 1.0)") {
                wrong.push(format!("{cost:?}: {call} became\n{printed}"));
                continue;
            }
            prints(&printed, printed.trim_end());
            let def = &source.defs[0];
            let words: Vec<String> = args.split(' ').map(str::to_string).chain(["0.25".to_string()]).collect();
            let values = common::arguments(def, &words).unwrap();
            common::random::compare(&source, &program(&printed), "f", &values, Level::Exact).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: derivatives call what the source calls, too, and take the elements of tensors by `map` where it does.
#[test]
fn derivatives_have_the_forms_of_the_source() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Exact).unwrap();
    let text = "(def f Float ((z : Float) (v : (Vec Float) n) (w : (Vec Float) n)) (mul z (ts_dot w v)))
      (def g Float ((v : (Vec Float) n)) (sum (map (lam (y : Float) (sin y)) v)))
      (gdef rev [f (Tuple Float (Vec Float) (Vec Float))]) (gdef rev [g (Vec Float)])";
    let source = program(text);
    let options = Options { float: Level::Exact, ..Options::standard() };
    for made in [source.clone(), optimize_with(&source, &rules, &options).unwrap().program] {
        let printed = print::program(&made);
        for call in ["(ts_dot w v)", "(map (lam (y : Float)"] {
            let derivatives = printed.split_once("(def rev$f").unwrap().1;
            assert!(derivatives.contains(call), "{call} is not in\n{printed}");
        }
        prints(&printed, printed.trim_end());
    }
}

/// Protects: text that was printed once says the same when it is printed again, calls included.
#[test]
fn every_form_prints_as_it_is() {
    for (params, ret, call, _) in FORMS.iter().chain(UNNAMED) {
        let text = format!("(def f {ret} ({params})\n  {call})");
        let printed = print::program(&program(&text));
        prints(&text, printed.trim_end());
        let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(call), "{call} became\n{printed}");
    }
}

/// Protects: what is almost a call and means something else is printed as what it is, though the source has such calls.
#[test]
fn near_misses_stay_loops() {
    for (params, call, near) in [
        // Another tensor's size, a further use of the index, and a read in an inner loop.
        ("(v : (Vec Float)) (w : (Vec Float))", "map", "(build (size w) (lam (i : Integer) (sin (index i v))))"),
        (
            "(v : (Vec Float)) (w : (Vec Float))",
            "map",
            "(build (size v) (lam (i : Integer) (mul (to_float i) (index i v))))",
        ),
        ("(v : (Vec Float) n) (w : (Vec Float) m)", "map", "(build n (lam (i : Integer) (sin (index i w))))"),
        (
            "(v : (Vec Float) n) (w : (Vec Float) m)",
            "map",
            "(build n (lam (i : Integer) (sumbuild m (lam (j : Integer) (index i v)))))",
        ),
        // Without the comparison of sizes it reads where the other tensor has no elements.
        (
            "(v : (Vec Float)) (w : (Vec Float))",
            "map2",
            "(build (size v) (lam (i : Integer) (mul (index i v) (index i w))))",
        ),
        (
            "(v : (Vec Float)) (w : (Vec Float))",
            "diag",
            "(build (size v) (lam (i : Integer) (deltaVec (size w) 0 (index i v))))",
        ),
        ("(v : (Vec Float)) (w : (Vec Float))", "slice", "(build 2 (lam (i : Integer) (index (sub i 1) v)))"),
        (
            "(v : (Vec Float) n) (w : (Vec Float) m)",
            "ts_dot",
            "(sumbuild m (lam (i : Integer) (mul (index i v) (index i w))))",
        ),
    ] {
        let calls = "(def g (Tuple (Vec Float) (Vec Float) (Vec (Vec Float)) (Vec Float) Float) ((a : (Vec Float)) (b : (Vec Float)))
          (tuple (map (lam (x : Float) (sin x)) a) (map2 (lam ((x : Float) (y : Float)) (mul x y)) a b)
            (diag (size a) (size b) (lam (i : Integer) (index i a))) (slice 1 2 a) (ts_dot a b)))";
        let ret = match call {
            "diag" => "(Vec (Vec Float))",
            "ts_dot" => "Float",
            _ => "(Vec Float)",
        };
        let text = format!("{calls}\n(def f {ret} ({params}) {near})");
        let one = program(&text);
        let mut terms = one.terms.clone();
        // Names of indices would say alone that somebody wrote the loop.
        terms.forget_hints();
        for terms in [&one.terms, &terms] {
            let printed = print::def(terms, &one.defs[1]);
            assert!(!printed.contains(&format!("({call} ")), "{near} became\n{printed}");
        }
    }
}
