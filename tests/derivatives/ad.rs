//! Derivatives agree with differences, with each other, and with themselves after every other pass.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::{Case, agree, arguments, corpus, points};
use daedal::ad;
use daedal::ad::check::{self, Checked};
use daedal::eval::Interpreter;
use daedal::ir::{Body, Def, Program, print};
use daedal::pipeline::native;
use daedal::pipeline::{Options, optimize};
use daedal::run::{Native, Toolchain};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;

/// Why a definition of the corpus is left out, where its derivative is refused with reason.
fn refused(message: &str) -> bool {
    ["no derivative", "no floats"].iter().any(|m| message.contains(m))
}

fn floats(def: &Def) -> Vec<bool> {
    def.params.iter().map(|p| ad::has_floats(p.ty)).collect()
}

/// Protects: both modes on the whole corpus, at the arguments of its run lines.
#[test]
fn the_corpus_has_right_derivatives() {
    let only = std::env::var("ONLY").ok();
    let results: Vec<(usize, usize, Vec<String>)> = corpus()
        .par_iter()
        .map(|case| {
            let (mut modes, mut smooth, mut failed) = (0, 0, vec![]);
            for run in &case.runs {
                if only.as_ref().is_some_and(|o| !format!("{}:{}", case.name, run.def).contains(o)) {
                    continue;
                }
                for def in case.program.named(&run.def) {
                    if !matches!(def.body, Body::Term(_)) {
                        continue;
                    }
                    let Ok(args) = arguments(def, &run.args) else { continue };
                    let wrt = floats(def);
                    let checked = match Checked::new(&case.program, def, &wrt) {
                        Ok(c) => c,
                        Err(d) if refused(&d.message) => continue,
                        Err(d) => {
                            failed.push(format!("{}:{} {}: {d}", case.name, run.line, run.def));
                            continue;
                        }
                    };
                    let show = || {
                        let (f, r) = checked.derivatives();
                        let p = checked.program();
                        [f, r].map(|f| print::def(&p.terms, &p.defs[&f])).join("\n")
                    };
                    match checked.at(&args, 7) {
                        Err(d) => failed.push(format!("{}:{} {}: {d}\n{}", case.name, run.line, run.def, show())),
                        Ok(None) => {}
                        Ok(Some(p)) => {
                            modes += 1;
                            if p.difference.is_some() {
                                smooth += 1;
                            }
                            let bad = p.off_modes() > checked.tolerance()
                                || p.off_difference().is_some_and(|d| d > check::DIFFERENCE);
                            if bad && p.forward.is_finite() {
                                failed.push(format!("{}:{} {}: {p:?}\n{}", case.name, run.line, run.def, show()));
                            }
                        }
                    }
                }
            }
            (modes, smooth, failed)
        })
        .collect();
    let modes: usize = results.iter().map(|r| r.0).sum();
    let smooth: usize = results.iter().map(|r| r.1).sum();
    println!("{modes} points, {smooth} smooth");
    let failed: Vec<String> = results.into_iter().flat_map(|r| r.2).collect();
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
    assert!(only.is_some() || modes >= 100, "only {modes} points were compared");
}

/// Protects: both modes on programs that nobody thought of, wherever those are smooth.
#[test]
fn random_programs_have_right_derivatives() {
    let from: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let results: Vec<(bool, bool, Option<String>)> = (from..from + 8000)
        .into_par_iter()
        .map(|seed| {
            let knobs = Knobs {
                budget: 30,
                dyadic: seed % 2 == 0,
                failing: seed % 3 == 0,
                casts: false,
                corners: false,
                ..Knobs::PLAIN
            };
            let made = generate::program(seed, &knobs);
            let program = common::read("random", &made.text).unwrap_or_else(|d| panic!("{d}"));
            let def = program.named("main")[0];
            let args = arguments(def, &made.args).unwrap();
            let fail = |what: String| (true, false, Some(format!("seed {seed}: {what}\n{}", made.text)));
            let checked = match Checked::new(&program, def, &floats(def)) {
                Ok(c) => c,
                Err(d) if refused(&d.message) => return (false, false, None),
                Err(d) => return fail(d.to_string()),
            };
            match checked.at(&args, seed as i64) {
                Err(d) => fail(d.to_string()),
                Ok(None) => (false, false, None),
                Ok(Some(p)) if !p.forward.is_finite() || !p.reverse.is_finite() => (false, false, None),
                Ok(Some(p)) => {
                    let modes = p.off_modes() > checked.tolerance();
                    let values = p.off_difference().is_some_and(|d| d > check::DIFFERENCE);
                    match modes || values {
                        true => fail(format!("{p:?}")),
                        false => (true, p.difference.is_some(), None),
                    }
                }
            }
        })
        .collect();
    let compared = results.iter().filter(|r| r.0).count();
    let smooth = results.iter().filter(|r| r.1).count();
    println!("{compared} compared, {smooth} smooth");
    let failed: Vec<&String> = results.iter().filter_map(|r| r.2.as_ref()).collect();
    let shown: Vec<&str> = failed.iter().take(12).map(|s| s.as_str()).collect();
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), shown.join("\n"));
    assert!(compared >= 2000 && smooth >= 1500, "only {compared} programs, {smooth} of them smooth");
}

/// Protects: a gradient is one value, however it is run: optimized or not, interpreted or native.
#[test]
fn gradients_agree_in_every_mode() {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("ad");
    let toolchain = Toolchain::discover(None, Some(cache));
    let cases = corpus();
    let gradients: Vec<&Case> = cases.iter().filter(|c| c.name.starts_with("programs/grad/")).collect();
    let compared: usize = gradients.par_iter().map(|case| agreements(case, &toolchain)).sum();
    assert!(compared >= 60, "only {compared} values were compared");
}

/// How many values of a case agree; a panic where one does not.
fn agreements(case: &Case, toolchain: &Toolchain) -> usize {
    let options = Options { max_nodes: 1500, ..Options::standard() };
    let fast = optimize(&case.program, &options).unwrap_or_else(|d| panic!("{}: {d}", case.name)).program;
    // A definition with several lines is compiled once.
    let mut compiled: BTreeMap<&str, [Native; 2]> = BTreeMap::new();
    for run in &case.runs {
        let def = case.program.named(&run.def)[0];
        let args = arguments(def, &run.args).unwrap();
        let want = Interpreter::new(&case.program).run(def, &args).unwrap();
        let again = fast.named(&run.def)[0];
        let [native, fast_native] = compiled.entry(&run.def).or_insert_with(|| {
            [(&case.program, def), (&fast, again)].map(|(program, def)| {
                native::compile(program, def, toolchain).unwrap_or_else(|d| panic!("{} {}: {d}", case.name, run.def))
            })
        });
        let found = [native.call(&args), Interpreter::new(&fast).run(again, &args), fast_native.call(&args)];
        for (how, value) in ["native", "optimized", "optimized and native"].iter().zip(found) {
            let value = value.unwrap_or_else(|d| panic!("{}:{} {how}: {d}", case.name, run.line));
            let good = agree(&want, &value, 1e-9);
            assert!(good, "{}:{} {how}: {} is not {}", case.name, run.line, value.to_json(), want.to_json());
        }
    }
    3 * case.runs.len()
}

/// Protects: what `docs/derivatives.md` says of corners.
#[test]
fn corners_have_the_documented_derivatives() {
    let text = "
(def f Float (x : Float) (abs x))
(def g Float ((a : Float) (b : Float)) (max a b))
(def h Float ((a : Float) (b : Float)) (min a b))
(def r Float (v : (Vec Float) n) (reduce max n (lam (i : Integer) (index i v))))
(def s Float (x : Float) (sqrt x))
(def p Float (v : (Vec Float) n) (reduce mul n (lam (i : Integer) (index i v))))
(gdef rev [f Float]) (gdef rev [g (Tuple Float Float)]) (gdef rev [h (Tuple Float Float)])
(gdef rev [r (Vec Float)]) (gdef rev [s Float]) (gdef rev [p (Vec Float)])";
    let program = common::read("corners", text).unwrap();
    let wanted = [
        ("[rev f]", ["0.0", "1.0"], "-1.0"),
        ("[rev g]", ["[2.0,2.0]", "1.0"], "[0.0,1.0]"),
        ("[rev h]", ["[2.0,2.0]", "1.0"], "[0.0,1.0]"),
        ("[rev r]", ["[1.0,3.0,3.0]", "2.0"], "[0.0,0.0,2.0]"),
        ("[rev r]", ["[]", "2.0"], "[]"),
        ("[rev s]", ["0.0", "1.0"], "\"inf\""),
        ("[rev p]", ["[0.0,3.0,5.0]", "1.0"], "[15.0,0.0,0.0]"),
    ];
    for (name, args, want) in wanted {
        gives(&program, name, &args, want);
    }
}

/// Asserts the value of a call.
pub(super) fn gives(program: &Program, name: &str, args: &[&str], want: &str) {
    let words: Vec<String> = args.iter().map(ToString::to_string).collect();
    let fits = |d: &&Def| arguments(d, &words).is_ok();
    let named = program.named(name);
    let def = named.iter().copied().find(fits).unwrap_or_else(|| panic!("no `{name}` takes {words:?}"));
    let found = Interpreter::new(program).run(def, &arguments(def, &words).unwrap()).unwrap();
    assert_eq!(found, common::value(want, def.fun.sig().ret), "{name} {words:?}");
}

/// Protects: conditions nested deep, which are made at once with their derivatives, have the ones of forward mode: of numbers
/// and of elements of tensors, with lets between, in one arm or both, on all sides of their conditions.
#[test]
fn nests_of_conditions_have_right_derivatives() {
    let levels: [fn(&str, &str) -> String; 6] = [
        |c, rest| format!("(if (gt x {c}) (mul x {rest}) (add y {c}))"),
        |c, rest| format!("(add (if (gt x {c}) {rest} (mul y {c})) x)"),
        |c, rest| format!("(if (lt y {c}) (mul x y) (sin (mul y {rest})))"),
        |c, rest| format!("(if (gt x {c}) (let (z (mul x {c})) (let (x z) (mul z {rest}))) (if (gt y 0.6) {rest} x))"),
        |c, rest| {
            format!("(if (gt x {c}) (mul (index 1 v) {rest}) (mul y (index (size v) (constVec (add 1 (size v)) y))))")
        },
        |c, rest| format!("(if (gt (index k v) {c}) (mul (index k v) {rest}) (mul x (index (sub k 1) v)))"),
    ];
    let mut points = 0;
    for (which, level) in levels.iter().enumerate() {
        for depth in if which == 3 { 2..6 } else { 1..16 } {
            let body = common::nested(depth, "(mul x y)", level);
            for loops in ["$E", "(sumbuild 2 (lam (i : Integer) (let (x (mul x (to_float i))) $E)))"] {
                let text = format!(
                    "(def main Float ((x : Float) (y : Float) (v : (Vec Float)) (k : Integer)) {})",
                    loops.replace("$E", &body)
                );
                let program = common::read("nest.ks", &text).unwrap();
                let def = program.named("main")[0];
                let checked = Checked::new(&program, def, &floats(def)).unwrap();
                for words in [["0.3", "0.7"], ["1.1", "0.45"], ["2.5", "1.5"], ["0.01", "3.0"]] {
                    let args = [words[0], words[1], "[0.4,1.2,2.0]", "1"].map(String::from);
                    let args = arguments(def, &args).unwrap();
                    let Some(point) = checked.at(&args, 7).unwrap() else { continue };
                    let off = point.off_modes().max(point.off_difference().unwrap_or(0.0) / 1e3);
                    assert!(off <= 1e-9, "{which}, {depth} deep, at {words:?}: {off}\n{text}");
                    points += 1;
                }
            }
        }
    }
    assert!(points > 600, "{points}");
}

/// Protects: what an arm that is not taken reads has the adjoint 0, also where that of the whole is infinite.
#[test]
fn infinite_adjoints_stay_out_of_other_arms() {
    let text = "
(def f Float ((x : Float) (y : Float))
  (sqrt (if (gt x 1.0) (mul x (if (gt x 2.0) (mul x (if (gt x 3.0) (mul x y) x)) (add x y))) (mul x (sub x 0.5)))))
(gdef rev [f (Tuple Float Float)])";
    let program = ad::complete(&common::read("root.ks", text).unwrap()).unwrap();
    let def = program.named("[rev f]")[0];
    let args = arguments(def, &["[0.5,2.0]".into(), "1.0".into()]).unwrap();
    let found = Interpreter::new(&program).run(def, &args).unwrap().to_json();
    assert_eq!(found[1], 0.0, "{found}");
}

/// Protects: a derivative that the program writes itself is the one that calls use, whatever it says:
/// those here are wrong on purpose, by factors of 10 and 100.
#[test]
fn derivatives_by_hand_take_precedence() {
    let text = "
(def f Float ((a : Float) (b : Float)) (mul a b))
(def [fwd f] Float ((x : (Tuple Float Float)) (dx : (Tuple Float Float)))
  (mul 10.0 (add (mul (get$1$2 dx) (get$2$2 x)) (mul (get$1$2 x) (get$2$2 dx)))))
(def [rev f] (Tuple Float Float) ((x : (Tuple Float Float)) (dr : Float))
  (tuple (mul 10.0 (mul dr (get$2$2 x))) (mul 100.0 (mul dr (get$1$2 x)))))
(gdef sufrev [f (Tuple Float Float)])
(def v Float (x : (Vec Float) n) (sum x))
(def [rev [v (Vec Float)]] (Vec Float) ((x : (Vec Float) n) (dr : Float)) (constVec n (mul 100.0 dr)))
(def h Float ((x : (Vec Float) n) (a : Float)) (add (mul 2.0 (f a (index 0 x))) (v x)))
(gdef rev [h (Tuple (Vec Float) Float)])
(gdef fwd [h (Tuple (Vec Float) Float)])";
    let program = common::read("by hand", text).unwrap();
    gives(&program, "[rev h]", &["[[3.0,5.0],7.0]", "1.0"], "[[1500.0,100.0],60.0]");
    // The tangent of `v` is made: only its reverse derivative is written.
    gives(&program, "[fwd h]", &["[[3.0,5.0],7.0]", "[[1.0,0.0],0.5]"], "171.0");
    gives(&program, "[sufrev f]", &["[3.0,5.0]", "1.0"], "[50.0,300.0]");
    let of = program.named("f")[0].fun;
    for (wrt, want) in [([true, false], "50.0"), ([false, true], "300.0")] {
        let wanted =
            ad::Wanted { fun: of, mode: ad::Mode::Reverse, wrt: wrt.to_vec(), value: false, checkpoint: false };
        let (made, fun) = ad::derive(&program, &wanted).unwrap();
        gives(&made, &fun.sig().name, &["3.0", "5.0", "1.0"], want);
    }
}

/// Protects: a function without a body has the derivative that is declared beside it, so that it is
/// called and not made.
#[test]
fn declared_derivatives_are_called() {
    let text = "
(edef g Float (Float))
(edef [rev g] Float (Float Float))
(def h Float (x : Float) (mul 2.0 (g (mul x x))))
(gdef rev [h Float])";
    let program = common::read("declared", text).unwrap();
    let printed = print::program(&program);
    let body = printed.split("(def ").find(|d| d.starts_with("rev$h ")).unwrap();
    assert!(body.contains("([rev g] "), "{printed}");
}

/// Protects: the derivatives of the reference whose programs keep what the way back needs.
#[test]
fn shapes_and_passes_are_those_of_the_reference() {
    let text = "
(def f Float ((a : Float) (v : (Vec Float) n)) (mul a (sum v)))
(def g (Tuple (Vec Float) (Vec (Vec Float)) Float) (v : (Vec Float) n)
  (tuple v (build 2 (lam (i : Integer) v)) (sum v)))
(def m (Tensor 2 Float) (n : Integer) (constVec (tuple n 3) 1.5))
(gdef shape [f (Tuple Float (Vec Float))])
(gdef shape [g (Vec Float)])
(gdef shape [m Integer])
(gdef rev [f (Tuple Float (Vec Float))])
(gdef shape [rev [f (Tuple Float (Vec Float))]])
(gdef sufrev [f (Tuple Float (Vec Float))])
(gdef suffwdpass [f (Tuple Float (Vec Float))])
(gdef sufrevpass [f (Tuple Float (Vec Float))])
(def both (Tuple Float (Tuple Float (Vec Float))) ((x : (Tuple Float (Vec Float))) (dr : Float))
  (let ((r bog) ([suffwdpass f] x))
    (tuple r ([sufrevpass [f (Tuple Float (Vec Float))]] dr bog))))";
    let program = common::read("passes", text).unwrap();
    gives(&program, "[shape f]", &["2.0", "[1.0,2.0]"], "[]");
    gives(&program, "[shape g]", &["[1.0,2.0,4.0]"], "[[[],[],[]],[[[],[],[]],[[],[],[]]],[]]");
    gives(&program, "[shape m]", &["2"], "[[[],[],[]],[[],[],[]]]");
    gives(&program, "[shape [rev f]]", &["[2.0,[1.0,2.0]]", "1.0"], "[[],[[],[]]]");
    let gradient = "[6.0,[4.0,4.0]]";
    gives(&program, "[rev f]", &["[2.0,[1.0,2.0]]", "2.0"], gradient);
    gives(&program, "[sufrev f]", &["[2.0,[1.0,2.0]]", "2.0"], gradient);
    gives(&program, "[suffwdpass f]", &["2.0", "[1.0,2.0]"], "[6.0,[2.0,[1.0,2.0]]]");
    gives(&program, "[sufrevpass f]", &["2.0", "[2.0,[1.0,2.0]]"], gradient);
    gives(&program, "both", &["[2.0,[1.0,2.0]]", "2.0"], "[6.0,[6.0,[4.0,4.0]]]");
    let again = common::read("printed", &print::program(&program)).unwrap();
    assert_eq!(print::program(&again), print::program(&program));
}

/// Protects: what a loop over points makes by folds with states of several parts is made once, for the value and for all that
/// comes back, whatever it comes back to: states and what steps make are tables over the points.
#[test]
fn folds_at_points_run_once() {
    let text = "(def f Float ((x : (Tensor 2 Float) (n d)) (u : (Tensor 2 Float) (l d)) (w : (Tensor 2 Float) (l d)) (b : (Vec Float) l))
  (sumbuild n (lam (i : Integer)
    (let (last (fold (lam ((s : (Tuple (Vec Float) Float)) (k : Integer))
           (let (((z t) s)
                 (a (tanh (add (index k b) (sumbuild d (lam (j : Integer) (mul (index (tuple k j) w) (index j z))))))))
             (tuple (build d (lam (j : Integer) (add (index j z) (mul a (index (tuple k j) u)))))
                    (add t (exp a)))))
         (tuple (build d (lam (j : Integer) (index (tuple i j) x))) 0.0) (build l (lam (k : Integer) k))))
      (add (get$2$2 last) (ts_dot (get$1$2 last) (get$1$2 last)))))))";
    let program = common::read("flows", text).unwrap();
    let def = program.named("f")[0];
    let wanted = ad::Wanted { fun: def.fun, mode: ad::Mode::Reverse, wrt: floats(def), value: true, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let printed = print::def(&made.terms, &made.defs[&fun]);
    for (what, most) in [("tanh", 1), ("exp", 1), ("scan", 2), ("fold", 0)] {
        assert!(printed.matches(&format!("({what} ")).count() <= most, "{what}\n{printed}");
    }
    let words = ["[[0.5,0.25],[-1.0,0.75],[0.1,0.2]]", "[[0.3,0.1],[0.2,-0.4]]", "[[0.7,-0.1],[0.6,0.2]]", "[0.1,0.3]"];
    let values = arguments(def, &words.map(String::from)).unwrap();
    let found = points::point(Checked::new(&program, def, &points::floats(def)), &values, text, &[]);
    assert_eq!(points::compared(vec![found]), (1, 1));
}

/// Protects: what the steps of folds and scans make is kept for the way back, in nested ones too, and where there
/// are no steps. Without tables the way back would make each of these up to six times more.
#[test]
fn steps_are_not_made_again() {
    let text = "
(def scans Float ((w : (Vec (Vec Float)) (l b)) (x : (Vec Float) b) (n : Integer))
  (let (runs (scan (lam ((s : (Vec (Vec Float))) (t : Integer))
               (scan (lam ((r : (Vec Float)) (k : Integer))
                       (build b (lam (i : Integer)
                         (let (old (mul (index i (index k w)) (index i (index k s))))
                           (mul (tanh old) (exp (index i r)))))))
                     x l))
             (build l (lam (k : Integer) x)) n))
    (sumbuild n (lam (t : Integer) (sumbuild l (lam (k : Integer) (sum (index k (index t runs)))))))))
(def folds Float ((w : (Vec (Vec Float)) (l b)) (x : (Vec Float) b) (n : Integer))
  (sum (fold (lam ((s : (Vec Float)) (t : Float))
               (let (inner (fold (lam ((r : (Vec Float)) (row : (Vec Float)))
                                   (build b (lam (i : Integer)
                                     (mul (tanh (mul (index i row) (index i r))) (exp (index i s))))))
                                 s w))
                 (build b (lam (i : Integer) (add t (mul (index i s) (index i inner)))))))
             x (build n (lam (i : Integer) 0.5)))))";
    let program = common::read("steps", text).unwrap();
    for (name, most) in [("scans", 2), ("folds", 4)] {
        let def = program.named(name)[0];
        let wrt = floats(def);
        let wanted =
            ad::Wanted { fun: def.fun, mode: ad::Mode::Reverse, wrt: wrt.clone(), value: true, checkpoint: false };
        let (made, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::def(&made.terms, &made.defs[&fun]);
        for op in ["(tanh ", "(exp "] {
            let count = printed.matches(op).count();
            assert!(count <= most, "{name} has {count} times {op}:\n{printed}");
        }
        let checked = Checked::new(&program, def, &wrt).unwrap();
        for [l, b, n] in [[2, 3, 4], [1, 1, 1], [3, 2, 0], [0, 2, 3]] {
            let row = |k: usize| (0..b).map(|i| 0.1 * (i + k + 1) as f64).collect::<Vec<_>>();
            let rows: Vec<_> = (0..l).map(row).collect();
            let words = [format!("{rows:?}"), format!("{:?}", row(4)), n.to_string()];
            let args = arguments(def, &words.clone()).unwrap();
            let Some(point) = checked.at(&args, 7).unwrap() else { continue };
            let good = point.off_difference().is_none_or(|d| d <= check::DIFFERENCE);
            assert!(good && point.off_modes() <= checked.tolerance(), "{name} {words:?}: {point:?}");
        }
    }
}

/// What `grad --check` prints of a definition `f` in `p.ks`, and its exit code.
fn checked(text: &str, args: &[&str]) -> (i32, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.ks"), text).unwrap();
    let command = [&["grad", "p.ks", "f", "--check"][..], args].concat();
    let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(command).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8_lossy(&said).to_string())
}

/// Protects: polynomials are smooth everywhere, also where their derivatives are 0 or change quickly, and so
/// are other functions that decide nothing; their differences are accurate enough to say so.
#[test]
fn smooth_functions_are_smooth_everywhere() {
    let functions = [
        "(mul x x)",
        "(sub (mul x (mul x x)) (mul 3.0 x))",
        "(mul (sub x 1.0) (mul (sub x 1.0) (mul (sub x 1.0) (sub x 1.0))))",
        "(sub (mul 1000.0 (mul x (mul x x))) (mul 0.001 x))",
        "(pow x 7)",
        "(sin (mul 50.0 x))",
        "(exp (mul 30.0 x))",
        "(div 1.0 (add 0.001 (mul x x)))",
        "(sumbuild 5 (lam (i : Integer) (pow x (add i 1))))",
    ];
    let points = [0.0, 1e-6, 1e-4, 0.5, 1.0, -1.0, 1.0001, 3.0, -7.25];
    let mut rough = vec![];
    for f in functions {
        let program = common::read("smooth", &format!("(def f Float (x : Float) {f})")).unwrap();
        let def = program.named("f")[0];
        let both = Checked::new(&program, def, &[true]).unwrap();
        for x in points {
            let args = arguments(def, &[format!("{x:?}")]).unwrap();
            let p = both.at(&args, 3).unwrap().unwrap();
            let good = p.difference.is_some() && p.off_difference().is_some_and(|d| d <= check::DIFFERENCE);
            if !good || p.off_modes() > check::MODES || p.noise > 1e-4 * p.forward.abs().max(p.scale) {
                rough.push(format!("{f} at {x}: {p:?}"));
            }
        }
    }
    assert!(rough.is_empty(), "{}", rough.join("\n"));
}

/// Protects: where a function is not smooth, the operation is named that makes it so, with its place and its
/// numbers; a corner a little away is none.
#[test]
fn corners_are_told_with_their_places() {
    let cases = [
        ("(def f Float (x : Float)\n  (abs x))", "0.0", "`(abs 0.0)` is 0.0 at p.ks:2:3 here, but `(abs "),
        (
            "(def f Float ((a : Float) (b : Float)) (max a b))",
            "2.0 2.0",
            "`(max 2.0 2.0)` is 2.0 at p.ks:1:40 here, but",
        ),
        (
            "(def f Float (x : Float) (if (gt x 0.5) (mul x x) x))",
            "0.5",
            "`(gt 0.5 0.5)` is false at p.ks:1:30 here, but `(gt 0.5000",
        ),
        ("(def f Float (x : Float) (mul x (floor x)))", "2.0", "`(floor 2.0)` is 2.0 at p.ks:1:33 here, but"),
        (
            "(def f Float (v : (Vec Float) n) (reduce max n (lam (i : Integer) (index i v))))",
            "[1.0,1.0]",
            "`(maximum 1.0 1.0)`",
        ),
        ("(def f Float (x : Float) (to_float (truncate x)))", "3.0", "`(truncate 3.0)` is 3 at p.ks:1:36 here, but"),
        (
            "(def f Float (x : Float) (mul x (to_float (truncate x))))",
            "3.0",
            "`(truncate 3.0)` is 3 at p.ks:1:43 here, but",
        ),
    ];
    for (text, words, want) in cases {
        let words: Vec<&str> = words.split(' ').collect();
        let (_, said) = checked(text, &words);
        let told = said.contains("line 1: no difference: ") || want == "no derivative";
        // `floor` has a derivative only where a program makes it a constant.
        assert!(told && said.contains(want) || said.contains("no derivative"), "{text}: {said}");
        let away: Vec<String> = words.iter().map(|w| w.replace("2.0", "2.001").replace("0.0", "0.0001")).collect();
        if text.contains("abs") {
            let (code, said) = checked(text, &[&away[0]]);
            assert!(code == 0 && !said.contains("no difference"), "{text}: {said}");
        }
    }
    let (_, said) = checked("(def f Float (x : Float) (abs x))", &["0.0", "--json"]);
    let json: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let why = json["points"][0]["not_smooth"].as_str().unwrap();
    assert!(why.starts_with("`(abs 0.0)`") && json["points"][0]["difference"].is_null(), "{said}");
}

/// Protects: a derivative that is no number is explained: by the value, by an operation with an infinite
/// derivative, or by what the derivative itself computes; the line says which of them is none.
#[test]
fn what_is_no_number_is_explained() {
    let cases = [
        (
            "(def f Float (x : Float)\n  (sqrt x))",
            "0.0",
            "infinite: the derivative of `(sqrt 0.0)` at p.ks:2:3 is not finite there",
        ),
        (
            "(def f Float (x : Float) (sqrt (mul x x)))",
            "0.0",
            "not a number: the derivative of `(sqrt 0.0)` at p.ks:1:26",
        ),
        ("(def f Float (x : Float) (asin x))", "1.0", "the derivative of `(asin 1.0)` at p.ks:1:26"),
        ("(def f Float (x : Float) (exp x))", "1000.0", "`(exp 1000.0)` is inf at p.ks:1:26"),
        ("(def f Float (x : Float) (div 1.0 (exp x)))", "-800.0", "both derivatives are"),
    ];
    let (code, said) = checked("(def f Float (x : Float) (log x))", &["-1.0"]);
    let want = "line 1: no difference: there is no value: `(log -1.0)` is NaN at p.ks:1:26";
    assert!(code == 0 && said.contains(want), "{said}");
    for (text, x, want) in cases {
        let (_, said) = checked(text, &[x]);
        assert!(said.contains(want) && said.contains("line 1: both derivatives are"), "{text}: {said}");
    }
}

/// Protects: random arguments have sizes that fit each other, whether a name says so or only the body does;
/// where none are found, the failure is shown and what to do.
#[test]
fn sizes_that_depend_on_each_other_are_found() {
    let cases = [
        "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n)) (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))",
        "(def f Float ((x : (Vec Float)) (y : (Vec Float))) (sum (mul x y)))",
        // A matrix as one vector.
        "(def f Float ((a : (Vec Float)) (n : Integer) (m : Integer) (x : (Vec Float) k))
           (assert (and (eq (size a) (mul n m)) (and (gt n 1) (eq m k)))
             (sumbuild n (lam (i : Integer) (sumbuild m (lam (j : Integer)
               (mul (index (add (mul i m) j) a) (index j x))))))))",
        // Differences, one fewer than values.
        "(def f Float ((v : (Vec Float) n) (w : (Vec Float) m)) (assert (eq n (add m 1))
           (sumbuild m (lam (i : Integer) (mul (index i w) (sub (index (add i 1) v) (index i v)))))))",
        "(def f Float ((v : (Vec Float) n) (k : Integer)) (assert (and (gt k 0) (eq (mod n k) 0))
           (mul (index (sub k 1) v) (index (sub n k) v))))",
        "(def f Float (x : Float) (assert (gt x 0.0) (log x)))",
    ];
    for text in cases {
        let (code, said) = checked(text, &[]);
        assert_eq!(code, 0, "{text}: {said}");
        assert_eq!(said.lines().filter(|l| !l.starts_with("line")).count(), 6, "{text}: {said}");
    }
    let (code, said) = checked("(def f Float ((v : (Vec Float) n))\n  (index 1000 v))", &[]);
    let parts = [
        "`f` fails at all random arguments that were tried: index out of range: 1000",
        "p.ks:2:3",
        "give arguments at which it has a value: `--check ARG",
    ];
    assert!(code == 1 && parts.iter().all(|p| said.contains(p)), "{said}");
}

/// Protects: sizes that a call hides are equal in a derivative that shows the call's body; its text reads back.
#[test]
fn derivatives_show_no_sizes_of_two_names() {
    let text = "
(def inner (Vec Float) ((a : (Vec Float)) (b : (Vec Float))) (mul a (sin b)))
(def outer Float ((x : (Vec Float) n) (y : (Vec Float) m) (z : (Vec Float) m)) (sum (add (inner x y) z)))
";
    let program = common::read("f.ks", text).unwrap();
    let def = program.named("outer")[0];
    for mode in [ad::Mode::Forward, ad::Mode::Reverse] {
        let wanted = ad::Wanted { fun: def.fun, mode, wrt: floats(def), value: false, checkpoint: false };
        let (derived, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::program(&derived);
        let again = common::read("again.ks", &printed).unwrap_or_else(|d| panic!("{}\n{printed}", d.render()));
        assert!(!again.named(&fun.sig().name).is_empty());
    }
}

/// Protects: derivatives keep the names of the source, and are named after what they are derivatives of.
#[test]
fn derivatives_have_names() {
    let text = "
(def f Float ((x : (Vec Float) n) (w : Float))
  (let ((scaled (build n (lam (row : Integer) (mul w (sin (index row x))))))
        (whole (sum scaled))
        (root (sqrt (add 1.0 (mul whole whole)))))
    (add (mul root (exp root)) (mul root whole))))
";
    let program = common::read("f.ks", text).unwrap();
    let def = program.named("f")[0];
    for mode in [ad::Mode::Forward, ad::Mode::Reverse] {
        let wanted = ad::Wanted { fun: def.fun, mode, wrt: floats(def), value: false, checkpoint: false };
        let (derived, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::def(&derived.terms, &derived.defs[&fun]);
        for name in ["(root ", "(d$whole ", "(lam (row : Integer)"] {
            assert!(printed.contains(name), "{name}\n{printed}");
        }
        let options = Options { defs: vec![fun.sig().name.clone()], ..Options::standard() };
        let optimized = optimize(&derived, &options).unwrap().program;
        let printed = print::def(&optimized.terms, optimized.named(&fun.sig().name)[0]);
        assert!(printed.contains("root"), "{printed}");
    }
}

/// Protects: derivatives do not ask what is known to hold, and have no arm that is never taken.
#[test]
fn what_is_known_to_hold_is_not_asked() {
    let text = "(def f Float (x : Float) (let (y (assert true (mul x x))) (add (assert true y) (if true y 1.0))))";
    let program = common::read("known.ks", text).unwrap();
    for mode in [ad::Mode::Reverse, ad::Mode::Forward] {
        let wanted =
            ad::Wanted { fun: program.named("f")[0].fun, mode, wrt: vec![true], value: false, checkpoint: false };
        let (made, fun) = ad::derive(&program, &wanted).unwrap();
        let printed = print::def(&made.terms, &made.defs[&fun]);
        assert!(!printed.contains("assert") && !printed.contains("(if"), "{printed}");
    }
}

/// The derivative of a function `f` by all its floats, as made.
fn derived(text: &str) -> String {
    let program = common::read("f.ks", text).unwrap();
    let def = program.named("f")[0];
    let checked = Checked::new(&program, def, &floats(def)).unwrap();
    let made = checked.program();
    print::def(&made.terms, &made.defs[&checked.derivatives().1])
}

/// Protects: an element that sums change has its sum before the loop over all elements, which asks for each whether it is that
/// one; so what is read of one element in a ragged loop is added up once.
#[test]
fn sums_of_one_element_stand_before_the_loop_over_all() {
    let pairs = "(def f Float (p : (Vec Float) n)
        (sumbuild n (lam (i : Integer) (sumbuild i (lam (j : Integer)
          (let (t (sub (index i p) (index j p))) (exp (mul t t))))))))";
    let made = derived(pairs);
    let inside = made.split("(build n").nth(1).unwrap_or_default();
    assert!(inside.contains("(if (eq j i)") && !inside.contains("sumbuild"), "{made}");
    for args in [["[0.5,-0.25,1.0,0.75]"], ["[0.5]"], ["[]"]] {
        let (code, said) = checked(pairs, &args);
        assert_eq!(code, 0, "{said}");
    }
}

/// Protects: what loops of a derivative need of a loop around them in every round is kept where it takes more than a read: the
/// products that are summed are those of elements.
#[test]
fn factors_of_sums_are_kept() {
    let layer = "(def f Float ((w : (Vec (Vec Float)) (h d)) (x : (Vec (Vec Float)) (n d)))
        (sumbuild n (lam (i : Integer) (sumbuild h (lam (r : Integer)
          (let ((z (sumbuild d (lam (j : Integer) (mul (index j (index r w)) (index j (index i x))))))
                (a (max 0.0 z)))
            (mul a a)))))))";
    let made = derived(layer);
    let inner = made.rsplit("(sumbuild").next().unwrap_or_default();
    assert!(!inner.contains("(if"), "{made}");
    let (code, said) = checked(layer, &["[[0.5,-1.0],[0.25,0.5]]", "[[1.0,0.5],[-0.5,0.25],[0.75,1.0]]"]);
    assert_eq!(code, 0, "{said}");
}

/// Protects: what is read at one place in several parts of a loop, and in loops over the same indices, comes back as one
/// scatter; other places have their own.
#[test]
fn what_is_read_at_one_place_comes_back_together() {
    let edges = "(def f Float ((x : (Vec Float) n) (p : (Vec Integer) m) (q : (Vec Integer) m))
        (add (sumbuild m (lam (i : Integer)
               (mul (sub (index (index i p) x) (index (index i q) x)) (index (index i p) x))))
             (sumbuild m (lam (k : Integer) (exp (index (index k p) x))))))";
    let made = derived(edges);
    assert_eq!(made.matches("buildFromSparse").count(), 2, "{made}");
    for args in [["[0.5,2.0,-0.25]", "[0,0,1]", "[1,2,2]"], ["[0.5]", "[]", "[]"]] {
        let (code, said) = checked(edges, &args);
        assert_eq!(code, 0, "{said}");
    }
}
