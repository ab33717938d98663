//! Hessians times vectors agree with differences of the gradient, and are symmetric.

use crate::common::generate::{self, Knobs};
use crate::common::losses::loss;
use crate::common::points::{self, compared, floats};
use crate::common::sized::{Setting, Sizes};
use crate::common::{arguments, corpus, read};
use daedal::ad::check::{Checked, Point};
use daedal::ad::{Mode, Wanted, hessian};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program};
use rayon::prelude::*;
use std::process::Command;

fn point(program: &Program, def: &Def, args: &[Value], what: &str) -> Result<Option<Point>, String> {
    let checked = Checked::hessian(program, def, &floats(def), false);
    points::point(checked, args, what, &["no derivative", "no floats", "no Hessian"])
}

/// Protects: the products of the whole corpus, at the arguments of its run lines.
#[test]
fn the_corpus_has_right_products() {
    let cases = corpus();
    let found = cases.par_iter().flat_map_iter(|case| {
        let calls = case.runs.iter().flat_map(|run| case.program.named(&run.def).into_iter().map(move |d| (run, d)));
        let calls = calls.filter(|(_, d)| d.term().is_some() && d.fun.sig().ret.as_scalar().is_some());
        calls.filter_map(|(run, def)| {
            let args = arguments(def, &run.args).ok()?;
            Some(point(&case.program, def, &args, &format!("{}:{} {}", case.name, run.line, run.def)))
        })
    });
    let (points, smooth) = compared(found.collect());
    assert!(points >= 40 && smooth >= 20, "only {points} points, {smooth} of them smooth");
}

/// Protects: the products of programs and losses that nobody thought of.
#[test]
fn random_losses_have_right_products() {
    let found = (0..1500u64).into_par_iter().map(|seed| {
        let knobs = Knobs { budget: 24, failing: false, casts: false, corners: false, ..Knobs::PLAIN };
        let smooth = seed % 3 < 2;
        let made = match smooth {
            true => generate::Generated { text: loss(seed, 12, seed % 3 == 1), args: vec![] },
            false => generate::program(seed, &Knobs { dyadic: seed % 2 == 0, states: seed % 5 == 0, ..knobs }),
        };
        let program = read("random.ks", &made.text).unwrap();
        let def = program.named("main")[0];
        if def.fun.sig().ret.as_scalar().is_none_or(|s| !s.is_float()) {
            return Ok(None);
        }
        let args = match smooth {
            true => Sizes::new(def).arguments(&Setting { sizes: vec![4, 3], positive: false }, seed as i64),
            false => arguments(def, &made.args).unwrap(),
        };
        point(&program, def, &args, &format!("seed {seed}\n{}", made.text))
    });
    let (points, smooth) = compared(found.collect());
    assert!(points >= 1000 && smooth >= 500, "only {points} points, {smooth} of them smooth");
}

/// Protects: a product by hand, by all parameters and by one, with the gradient and without; its names and parameters.
#[test]
fn products_are_those_of_hand() {
    let text = "(def f Float ((x : (Vec Float) n) (a : Float))
      (mul a (sumbuild n (lam (i : Integer) (pow (index i x) 3)))))";
    let program = read("f.ks", text).unwrap();
    let def = program.named("f")[0];
    let run = |wrt: [bool; 2], value: bool, words: &[&str]| {
        let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: wrt.to_vec(), value, checkpoint: false };
        let made = hessian::product(&program, &wanted).unwrap();
        let product = &made.program.defs[&made.product];
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let args = arguments(product, &words).unwrap();
        let found = Interpreter::new(&made.program).run(product, &args).unwrap();
        (product.name().to_string(), found.to_json().to_string())
    };
    // The gradient is (3 a x², Σ x³), so the product with (v, w) is (6 a x v + 3 x² w, Σ 3 x² v).
    let (name, found) = run([true, true], false, &["[1.0,2.0]", "0.5", "[1.0,10.0]", "2.0"]);
    assert_eq!((name.as_str(), found.as_str()), ("hvp$f", "[[9.0,84.0],123.0]"));
    let (name, found) = run([true, false], false, &["[1.0,2.0]", "0.5", "[1.0,10.0]"]);
    assert_eq!((name.as_str(), found.as_str()), ("hvp$f$10", "[3.0,60.0]"));
    let (name, found) = run([true, false], true, &["[1.0,2.0]", "0.5", "[1.0,10.0]"]);
    assert_eq!((name.as_str(), found.as_str()), ("value$hvp$f$10", "[[1.5,6.0],[3.0,60.0]]"));
}

/// Protects: the command prints, checks and optimizes products, and refuses results that are no single float.
#[test]
fn the_command_makes_products() {
    let dir = tempfile::tempdir().unwrap();
    let text = "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n))
      (sumbuild n (lam (i : Integer) (exp (mul (index i x) (index i y))))))
    (def g (Vec Float) (x : (Vec Float) n) (mul x x))";
    std::fs::write(dir.path().join("p.ks"), text).unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    let grad = |more: &[&str]| run(&[&["grad", "p.ks", "f", "--mode", "hvp"], more].concat());
    let (code, text) = grad(&["--wrt", "x"]);
    assert!(code == 0 && text.contains("(def hvp$f$10 (Vec Float) ("), "{text}");
    assert!(text.contains("(dx : (Vec Float) n))") && !text.contains("grad$f"), "{text}");
    let values = [&[][..], &["--optimize"]].map(|more| {
        let (code, said) = grad(&[more, &["-o", "hvp.ks"]].concat());
        assert_eq!(code, 0, "{said}");
        run(&["eval", "hvp.ks", "hvp$f", "[0.0,1.0]", "[1.0,0.0]", "[1.0,1.0]", "[0.0,1.0]"])
    });
    assert_eq!(values[0], (0, "[[1.0,1.0],[1.0,2.0]]\n".into()));
    assert_eq!(values[0], values[1]);
    let (code, said) = grad(&["--check", "--samples", "3"]);
    assert!(code == 0 && said.lines().count() == 4 && said.contains("transposed"), "{said}");
    let (code, said) = grad(&["--check", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == 0 && json["points"][0]["product"].is_f64() && json["disagree"] == 0, "{said}");
    let (code, said) = run(&["grad", "p.ks", "g", "--mode", "hvp"]);
    assert!(code == 1 && said.contains("`g` gives (Vec Float), so it has no Hessian"), "{said}");
}
