//! Jacobians agree with differences and with forward mode, and have the structure that they say.

use crate::common;
use crate::common::command::{good, refused};
use crate::common::generate::{self, Knobs};
use crate::common::losses::loss;
use crate::common::points::{self, compared, floats};
use crate::common::sized::{Setting, Sizes};
use crate::common::{arguments, corpus, read, value};
use daedal::ad::check::{Checked, Point};
use daedal::ad::jacobian::{Jacobian, Layout, jacobian};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::Interpreter;
use daedal::eval::Value;
use daedal::ir::{Def, Program};
use rayon::prelude::*;
use std::process::Command;

const LAYOUTS: [Layout; 2] = [Layout::Rows, Layout::Columns];

fn point(
    program: &Program,
    def: &Def,
    args: &[Value],
    (layout, what): (Layout, &str),
) -> Result<Option<Point>, String> {
    let checked = Checked::jacobian(program, def, &floats(def), (layout, false));
    points::point(checked, args, &format!("{layout:?} of {what}"), &["no derivative", "no floats"])
}

/// Protects: the Jacobians of the whole corpus, at the arguments of its run lines.
#[test]
fn the_corpus_has_right_jacobians() {
    let cases = corpus();
    let found = cases.par_iter().flat_map_iter(|case| {
        let calls = case.runs.iter().flat_map(|run| case.program.named(&run.def).into_iter().map(move |d| (run, d)));
        let calls = calls.filter(|(_, d)| d.term().is_some() && ad::has_floats(d.fun.sig().ret));
        calls.flat_map(|(run, def)| {
            let args = arguments(def, &run.args).ok();
            let what = format!("{}:{} {}", case.name, run.line, run.def);
            LAYOUTS.map(|layout| args.as_ref().map(|args| point(&case.program, def, args, (layout, &what))))
        })
    });
    let (points, smooth) = compared(found.flatten().collect());
    assert!(points >= 300 && smooth >= 150, "only {points} points, {smooth} of them smooth");
}

/// Protects: the Jacobians of programs and losses that nobody thought of.
#[test]
fn random_programs_have_right_jacobians() {
    let found = (0..600u64).into_par_iter().map(|seed| {
        let knobs = Knobs { budget: 20, failing: false, casts: false, corners: false, ..Knobs::PLAIN };
        let losses = seed % 3 == 0;
        let made = match losses {
            true => generate::Generated { text: loss(seed, 10, seed % 2 == 1), args: vec![] },
            false => generate::program(seed, &Knobs { dyadic: seed % 2 == 0, states: seed % 5 == 0, ..knobs }),
        };
        let program = read("random.ks", &made.text).unwrap();
        let def = program.named("main")[0];
        let args = match losses {
            true => Sizes::new(def).arguments(&Setting { sizes: vec![4, 3], positive: false }, seed as i64),
            false => arguments(def, &made.args).unwrap(),
        };
        let layout = LAYOUTS[usize::from(seed % 4 < 2)];
        point(&program, def, &args, (layout, &format!("seed {seed}\n{}", made.text)))
    });
    let (points, smooth) = compared(found.collect());
    assert!(points >= 300 && smooth >= 120, "only {points} points, {smooth} of them smooth");
}

/// The Jacobian of a definition, by the floats of parameters that are named.
fn made(program: &Program, name: &str, (layout, by): (Layout, &dyn Fn(&str) -> bool)) -> Jacobian {
    let def = program.named(name)[0];
    let wrt = floats(def).iter().zip(&def.params).map(|(w, p)| *w && by(&p.name)).collect();
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: false, checkpoint: false };
    jacobian(program, &wanted, layout).unwrap_or_else(|d| panic!("{d}"))
}

/// Its type and value, and those of its pattern.
fn shown(text: &str, layout: Layout, words: &[&str]) -> [String; 2] {
    let program = read("f.ks", text).unwrap_or_else(|d| panic!("{d}"));
    let made = made(&program, "f", (layout, &|_| true));
    [Some(made.fun), made.pattern].map(|fun| {
        let Some(fun) = fun else { return String::new() };
        let def = &made.program.defs[&fun];
        let args = arguments(def, &words.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        let found = Interpreter::new(&made.program).run(def, &args).unwrap_or_else(|d| panic!("{d}"));
        format!("{} {}", fun.sig().ret, found.to_json())
    })
}

/// Protects: a dense matrix in both layouts, and the names of the function.
#[test]
fn a_dense_jacobian_is_that_of_hand() {
    // Sums before each element, squared: row i is 2 s_i up to i.
    let text = "(def f (Vec Float) ((x : (Vec Float) n)) (build n (lam (i : Integer)
      (let (s (sumbuild (add i 1) (lam (j : Integer) (index j x)))) (mul s s)))))";
    let words = ["[1.0,2.0,3.0]"];
    let rows = "(Vec (Vec Float)) [[2.0,0.0,0.0],[6.0,6.0,0.0],[12.0,12.0,12.0]]";
    let columns = "(Vec (Vec Float)) [[2.0,6.0,12.0],[0.0,6.0,12.0],[0.0,0.0,12.0]]";
    assert_eq!(shown(text, Layout::Rows, &words), [rows, ""]);
    assert_eq!(shown(text, Layout::Columns, &words), [columns, ""]);
}

/// Protects: floats that read single elements have blocks of these, in both layouts, also behind lets and tables; where a
/// float reads an element beyond the end only under a condition that says no, its block is 0.
#[test]
fn single_elements_have_blocks_of_their_own() {
    let gather = "(def f (Vec Float) ((x : (Vec (Tuple Float Float)) n) (of : (Vec Integer) p) (w : Float))
      (let (products (build p (lam (i : Integer)
             (let ((at (index i of)) ((a b) (index at x))) (mul a b)))))
        (build p (lam (i : Integer) (mul w (index i products))))))";
    let words = ["[[2.0,3.0],[5.0,7.0]]", "[1,0,1]", "10.0"];
    let rows = "(Vec (Tuple (Tuple Float Float) Float)) [[[70.0,50.0],35.0],[[30.0,20.0],6.0],[[70.0,50.0],35.0]]";
    let columns =
        "(Tuple (Tuple (Vec Float) (Vec Float)) (Vec Float)) [[[70.0,30.0,70.0],[50.0,20.0,50.0]],[35.0,6.0,35.0]]";
    let pattern = "(Vec (Tuple Integer (Tuple))) [[1,[]],[0,[]],[1,[]]]";
    assert_eq!(shown(gather, Layout::Rows, &words), [rows, pattern]);
    assert_eq!(shown(gather, Layout::Columns, &words), [columns, pattern]);
    let steps = "(def f (Vec Float) (x : (Vec Float) n) (build n (lam (i : Integer)
      (if (lt (add i 1) n) (sub (index (add i 1) x) (mul (index i x) (index i x))) (index i x)))))";
    let rows = "(Vec (Tuple Float Float)) [[1.0,-4.0],[1.0,-6.0],[0.0,1.0]]";
    let pattern = "(Vec (Tuple Integer Integer)) [[1,0],[2,1],[3,2]]";
    assert_eq!(shown(steps, Layout::Rows, &["[2.0,3.0,4.0]"]), [rows, pattern]);
    // Two elements of one float cannot be told apart in one pass.
    let columns = "(Vec (Vec Float)) [[-4.0,0.0,0.0],[1.0,-6.0,0.0],[0.0,1.0,1.0]]";
    assert_eq!(shown(steps, Layout::Columns, &["[2.0,3.0,4.0]"]), [columns, ""]);
}

/// Protects: results of several parts have the blocks of each, parameters that a part does not read have none, and tensors
/// of several axes are compressed by all their indices.
#[test]
fn parts_and_axes_have_their_own_blocks() {
    let text = "(def f (Tuple (Tensor 2 Float) Float) ((x : (Tensor 2 Float) (n m)) (y : (Vec Float) m) (s : Float))
      (tuple (build (tuple n m) (lam ((i : Integer) (j : Integer)) (mul (index j y) (sin (index (tuple i j) x)))))
             (mul s s)))";
    let words = ["[[0.0,0.0],[0.0,0.0]]", "[3.0,4.0]", "5.0"];
    let rows = "(Tuple (Tensor 2 (Tuple Float Float (Tuple))) (Tuple (Tuple) (Tuple) Float)) \
      [[[[3.0,0.0,[]],[4.0,0.0,[]]],[[3.0,0.0,[]],[4.0,0.0,[]]]],[[],[],10.0]]";
    let pattern = "(Tuple (Tensor 2 (Tuple (Tuple Integer Integer) Integer (Tuple))) (Tuple (Tuple) (Tuple) (Tuple))) \
      [[[[[0,0],0,[]],[[0,1],1,[]]],[[[1,0],0,[]],[[1,1],1,[]]]],[[],[],[]]]";
    assert_eq!(shown(text, Layout::Rows, &words), [rows, pattern]);
    let columns = "(Tuple (Tuple (Tensor 2 Float) Float) (Tuple (Tensor 2 Float) Float) (Tuple (Tensor 2 Float) Float)) \
      [[[[3.0,4.0],[3.0,4.0]],0.0],[[[0.0,0.0],[0.0,0.0]],0.0],[[[0.0,0.0],[0.0,0.0]],10.0]]";
    assert_eq!(shown(text, Layout::Columns, &words)[0], columns);
}

/// Protects: the blocks of bundle adjustment are those that are written by hand from the same residuals, and belong to the
/// camera and point of each observation.
#[test]
fn bundle_adjustment_has_a_block_for_each_observation() {
    let cases = corpus();
    let case = |name: &str| cases.iter().find(|c| c.name == name).unwrap();
    let (hand, loss) = (case("programs/grad/ba.ks"), case("programs/apps/ba.ks"));
    let run = hand.runs.iter().find(|r| r.def == "jacobian").unwrap();
    let by_hand = hand.program.named("jacobian")[0];
    let args = arguments(by_hand, &run.args).unwrap();
    let want = Interpreter::new(&hand.program).run(by_hand, &args).unwrap();
    let made = made(&loss.program, "all_residuals", (Layout::Rows, &|name| name != "features"));
    let run = |fun| Interpreter::new(&made.program).run(&made.program.defs[&fun], &args).unwrap();
    let Value::Tuple(parts) = run(made.fun) else { panic!("no tuple") };
    assert!(common::agree(&parts[0], &want, 1e-12), "{}", parts[0].to_json());
    let weights = value("[[[],[],-2.0],[[],[],-1.0]]", made.fun.sig().ret.as_tuple().unwrap()[1]);
    assert!(common::agree(&parts[1], &weights, 1e-12), "{}", parts[1].to_json());
    let pattern = run(made.pattern.unwrap()).to_json().to_string();
    assert_eq!(pattern, "[[[[0,0,0],[0,0,0]],[[0,1,1],[0,1,1]]],[[[],[],0],[[],[],1]]]");
}

/// Protects: a derivative by hand is used where there is one, whatever the body says.
#[test]
fn derivatives_by_hand_are_used() {
    let text = "(def g Float (x : Float) (mul x x))
    (def [rev g] Float ((x : Float) (dr : Float)) (mul dr 100.0))
    (def [fwd g] Float ((x : Float) (dx : Float)) (mul dx 200.0))
    (def f (Vec Float) (x : (Vec Float) n) (build n (lam (i : Integer) (g (index i x)))))";
    assert_eq!(shown(text, Layout::Rows, &["[1.0,2.0]"])[0], "(Vec Float) [100.0,100.0]");
    assert_eq!(shown(text, Layout::Columns, &["[1.0,2.0]"])[0], "(Vec Float) [200.0,200.0]");
}

/// Protects: the command prints, checks and optimizes Jacobians with their patterns, and refuses what means nothing there.
#[test]
fn the_command_makes_jacobians() {
    let dir = tempfile::tempdir().unwrap();
    let text = "(def f (Vec Float) ((x : (Vec Float) n) (k : (Vec Integer) p))
      (build p (lam (i : Integer) (exp (index (index i k) x)))))";
    std::fs::write(dir.path().join("p.ks"), text).unwrap();
    let grad = ["grad", "p.ks", "f", "--mode", "jacobian"];
    let with = |more: &[&'static str]| [&grad[..], more].concat();
    let printed = good(dir.path(), &grad);
    assert!(printed.contains("(def jacobian$f (Vec Float) ("), "{printed}");
    assert!(printed.contains("(def pattern$f (Vec Integer) ("), "{printed}");
    good(dir.path(), &with(&["--value", "--optimize", "-o", "j.ks"]));
    let found = good(dir.path(), &["run", "j.ks", "value$jacobian$f", "[0.0,0.0]", "[1,1,0]"]);
    assert_eq!(found, "[[1.0,1.0,1.0],[1.0,1.0,1.0]]\n");
    assert_eq!(good(dir.path(), &["run", "j.ks", "pattern$f", "[0.0,0.0]", "[1,1,0]"]), "[1,1,0]\n");
    for layout in ["rows", "columns"] {
        let checked = good(dir.path(), &with(&["--layout", layout, "--check", "[1.0,2.0]", "[1,0,1]"]));
        assert!(checked.contains("jacobian") && checked.lines().count() == 2, "{checked}");
    }
    let said = refused(dir.path(), &["grad", "p.ks", "f", "--layout", "rows"]);
    assert!(said.contains("`--layout` is for `--mode jacobian` only"), "{said}");
    let said = refused(dir.path(), &with(&["--layout", "columns", "--max-memory", "1", "--size", "n=2"]));
    assert!(said.contains("`--max-memory` is for reverse mode only"), "{said}");
    let said = refused(dir.path(), &with(&["--layout", "columns", "--checkpoint"]));
    assert!(said.contains("`--checkpoint` is for reverse mode only"), "{said}");
}

/// Protects: a Jacobian by rows fits in the memory that it may take, by passes that keep fewer states, and is the same; what no
/// Jacobian fits in is said, with the tensor that takes the most.
#[test]
fn jacobians_fit_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let text = "(def f (Vec Float) ((w : (Vec Float) d) (xs : (Vec Float) n) (p : Integer))
      (build p (lam (q : Integer)
        (sum (fold (lam ((s : (Vec Float)) (x : Float))
                     (build d (lam (i : Integer) (tanh (add (mul (index i w) (index i s)) (mul x (to_float q)))))))
                   w xs)))))";
    std::fs::write(dir.path().join("p.ks"), text).unwrap();
    let sizes = ["--size", "d=50", "--size", "n=900", "--size", "p=3"];
    let with = |more: &[&'static str]| [&["grad", "p.ks", "f", "--wrt", "w", "--mode", "jacobian"][..], more].concat();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
        (out.status.success(), [out.stdout, out.stderr].map(|s| String::from_utf8_lossy(&s).to_string()))
    };
    good(dir.path(), &with(&["-o", "all.ks"]));
    let (done, [_, notes]) = run(&with(&[&sizes[..], &["--max-memory", "0.2", "-o", "few.ks"]].concat()));
    assert!(done && notes.contains("it keeps √n states of the fold at 3:14"), "{notes}");
    let args = ["[0.1,-0.2,0.3]", "[0.5,0.1,-0.4,0.2,0.3]", "3"];
    let [all, few] =
        ["all.ks", "few.ks"].map(|f| good(dir.path(), &[&["eval", f, "jacobian$f$100"][..], &args].concat()));
    // What steps give to a parameter is added up part by part.
    let numbers = |s: &str| -> Vec<f64> {
        s.split(|c: char| "[],\n".contains(c)).filter(|w| !w.is_empty()).map(|w| w.parse().unwrap()).collect()
    };
    let (all, few) = (numbers(&all), numbers(&few));
    assert_eq!(all.len(), few.len());
    assert!(all.iter().zip(&few).all(|(a, b)| (a - b).abs() <= 1e-14), "{all:?} {few:?}");
    let (done, [_, said]) = run(&with(&[&sizes[..], &["--max-memory", "0.001"]].concat()));
    assert!(!done && said.contains("no derivative of `f` fits in") && said.contains("is the least"), "{said}");
}
