//! Simplified bodies have the bits that they had, do no more work, and nothing is left in them; what they take grows with
//! their size.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::losses::loss;
use crate::common::native::same;
use crate::common::{arguments, corpus, nested, read};
use daedal::ad::{self, Mode, Wanted, check};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Body, Def, Program, print};
use daedal::pipeline::{prepare, simplify::simplified};
use daedal::rewrite::simplify::{Directed, Report, simplify};
use daedal::rules::{Level, Library};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// One definition of a program simplified, and what was done.
fn one(program: &Program, def: &Def, level: Level) -> (Program, Report) {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, level).unwrap();
    let (mut out, mut directed) = (program.clone(), Directed::new(&rules));
    let (new, report) = simplify(&mut out.terms, def.term().unwrap(), &def.params, &mut directed);
    out.defs.insert(def.fun, Def { body: Body::Term(new), ..def.clone() });
    (out, report)
}

/// The body of `main` as text, on one line.
fn body(program: &Program) -> String {
    let text = print::def(&program.terms, program.named("main")[0]);
    let (_, body) = text.split_once('\n').unwrap();
    body.split_whitespace().collect::<Vec<_>>().join(" ").strip_suffix(')').unwrap().to_string()
}

const PARAMS: &str = "((v : (Vec Float) n) (w : (Vec Float)) (m : (Tensor 2 Float)) (r : (Vec (Vec Float)) (k l)) (x : Float) (i : Integer))";

/// Protects: each step, and beside it what is nearly that and stays.
#[test]
fn steps_are_taken_where_they_hold() {
    let cases = [
        // Lets.
        ("Float", "(let (y (mul x x)) x)", "x"),
        ("Float", "(let (y x) (mul y y))", "(mul x x)"),
        ("Float", "(let (y 2.0) (mul y x))", "(mul 2.0 x)"),
        ("Float", "(let (y (mul x x)) (mul y x))", ""),
        ("Float", "(let (y (let (z (sin x)) (mul z z))) (mul y y))", "(let (z (sin x)) (let (y (mul z z)) (mul y y)))"),
        (
            "Float",
            "(let (t (tuple (sin x) (cos x))) (mul (get$1$2 t) (get$1$2 t)))",
            "(let (v_1 (sin x)) (mul v_1 v_1))",
        ),
        ("Float", "(let (c (constVec n (sin x))) (add (index i c) (index 0 c)))", "(let (c (sin x)) (add c c))"),
        // Parts, sizes, elements.
        ("Float", "(get$2$2 (tuple (sin x) x))", "x"),
        ("Integer", "(size (build i (lam (j : Integer) x)))", "i"),
        (
            "(Tuple Integer Float)",
            "(let (b (build i (lam (j : Integer) x))) (tuple (size b) (sum b)))",
            "(let (b (build i (lam (j : Integer) x))) (tuple i (sum b)))",
        ),
        ("Float", "(index i (build n (lam (j : Integer) (mul x (index j v)))))", "(mul x (index i v))"),
        ("Float", "(index 1 (Vec_init x (sin x)))", "(sin x)"),
        // Copies.
        ("(Vec Float)", "(build n (lam (j : Integer) (index j v)))", "v"),
        ("(Vec Float)", "(build (size w) (lam (j : Integer) (index j w)))", "w"),
        ("(Vec Float)", "(build n (lam (j : Integer) (index j w)))", "(build n (lam (j : Integer) (index j w)))"),
        ("(Vec Float)", "(build (size (index i r)) (lam (j : Integer) (index j (index i r))))", "(index i r)"),
        ("(Vec Float)", "(build l (lam (j : Integer) (index j (index i r))))", ""),
        ("(Vec (Vec Float))", "(build k (lam (a : Integer) (build l (lam (j : Integer) (index j (index a r))))))", "r"),
        ("(Tensor 2 Float)", "(build (size m) (lam ((a : Integer) (b : Integer)) (index (tuple a b) m)))", "m"),
        ("(Tensor 2 Float)", "(build (size m) (lam ((a : Integer) (b : Integer)) (index (tuple b a) m)))", ""),
        // Tensors that are read once, or in one loop.
        ("Float", "(let (b (build n (lam (j : Integer) (sin (index j v))))) (index i b))", "(sin (index i v))"),
        (
            "(Vec Float)",
            "(let (b (build n (lam (j : Integer) (sin (index j v))))) (build n (lam (j : Integer) (mul x (index j b)))))",
            "(build n (lam (j : Integer) (mul x (sin (index j v)))))",
        ),
        (
            "Float",
            "(let (b (build n (lam (j : Integer) (sin (index j v))))) (sumbuild n (lam (j : Integer) (mul (index j b) (index j b)))))",
            "(sumbuild n (lam (j : Integer) (let (b (sin (index j v))) (mul b b))))",
        ),
        (
            "Float",
            "(let (b (build n (lam (j : Integer) (sin (index j v))))) (sumbuild i (lam (j : Integer) (index j b))))",
            "",
        ),
        (
            "Float",
            "(let (b (build n (lam (j : Integer) (sin (index j v))))) (sumbuild n (lam (j : Integer) (index 0 b))))",
            "",
        ),
        (
            "(Vec Float)",
            "(build k (lam (a : Integer) (let (b (build n (lam (j : Integer) (sin (index j v))))) (index a b))))",
            "(build k (lam (a : Integer) (sin (index a v))))",
        ),
        // Arithmetic that keeps the bits.
        ("Float", "(mul 1.0 (sub x 0.0))", "x"),
        ("Float", "(add 0.0 x)", "(add 0.0 x)"),
        ("Integer", "(add (mul 0 (size v)) (mul 1 i))", "i"),
        ("Float", "(if (and (gt 2 1) true) x (sin x))", "x"),
        (
            "Float",
            "(sum (build n (lam (j : Integer) (sin (index j v)))))",
            "(sumbuild n (lam (j : Integer) (sin (index j v))))",
        ),
    ];
    for (ty, from, want) in cases {
        let program =
            read("main.ks", &format!("(def main {ty} {PARAMS} {from})")).unwrap_or_else(|d| panic!("{from}: {d}"));
        let (out, _) = one(&program, program.named("main")[0], Level::Exact);
        let want = if want.is_empty() { body(&program) } else { want.to_string() };
        assert_eq!(body(&out), want, "{from}");
    }
}

/// The work that a call takes, and its value; none where it fails.
fn run(program: &Program, def: &Def, args: &[Value]) -> Option<(Value, u64)> {
    let interpreter = Interpreter::new(program).with_work(1_000_000).counted();
    let value = interpreter.run(&program.defs[&def.fun], args).ok()?;
    Some((value, interpreter.tally().work()))
}

/// Holds what became of a definition against what it was, at some arguments: where it has a value, the same bits, for no
/// more work. Whether it has.
fn holds(program: &Program, def: &Def, args: &[Value], level: Level) -> Result<(bool, Report), String> {
    let (out, report) = one(program, def, level);
    let new = out.defs[&def.fun].term().unwrap();
    let (size, before) = (out.terms.size(new), program.terms.size(def.term().unwrap()));
    let shown = || format!("{}\n{}", print::def(&program.terms, def), print::def(&out.terms, &out.defs[&def.fun]));
    daedal::types::verify::verify(&out).map_err(|d| format!("{d}\n{}", shown()))?;
    if size > before {
        return Err(format!("{before} nodes become {size}: {:?}\n{}", report.steps, shown()));
    }
    let (again, more) = one(&out, &out.defs[&def.fun], level);
    if !more.steps.is_empty() || again.defs[&def.fun] != out.defs[&def.fun] {
        return Err(format!("steps are left: {:?}\n{}", more.steps, shown()));
    }
    let Some((want, work)) = run(program, def, args) else { return Ok((false, report)) };
    let Some((have, less)) = run(&out, def, args) else { return Err(format!("it fails\n{}", shown())) };
    if level == Level::Exact && !same(&want, &have) {
        return Err(format!("{} becomes {}\n{}", want.to_json(), have.to_json(), shown()));
    }
    if less > work {
        return Err(format!("work {work} becomes {less}: {:?}\n{}", report.steps, shown()));
    }
    Ok((true, report))
}

/// The derivatives of a definition, with arguments for them from those of the definition.
fn derivatives(program: &Program, def: &Def, args: &[Value]) -> Vec<(Program, Def, Vec<Value>)> {
    let Ok(value) = Interpreter::new(program).with_work(1_000_000).run(def, args) else { return vec![] };
    let mut out = vec![];
    for (mode, value_too) in [(Mode::Reverse, false), (Mode::Reverse, true), (Mode::Forward, false)] {
        let wrt: Vec<bool> = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
        let wanted = Wanted { fun: def.fun, mode, wrt: wrt.clone(), value: value_too, checkpoint: false };
        let Ok((made, fun)) = ad::derive(program, &wanted) else { continue };
        let mut all = args.to_vec();
        match mode {
            Mode::Reverse => all.push(check::change(&value, 7)),
            Mode::Forward => {
                let moving = args.iter().zip(&wrt).filter(|(_, w)| **w);
                all.extend(moving.map(|(a, _)| check::change(a, 5)).collect::<Vec<_>>());
            }
        }
        let derivative = made.defs[&fun].clone();
        out.push((made, derivative, all));
    }
    out
}

/// Adds up what was done, and panics with what is wrong.
fn summed(what: &str, all: Vec<Result<(bool, Report), String>>) -> BTreeMap<String, usize> {
    let (mut steps, mut valued) = (BTreeMap::<String, usize>::new(), 0);
    let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    for (has_value, report) in good.into_iter().flatten() {
        valued += usize::from(has_value);
        report.steps.into_iter().for_each(|(name, n)| *steps.entry(name).or_default() += n);
    }
    println!("{what}: {valued} definitions with a value, {steps:?}");
    let bad: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
    assert!(bad.is_empty(), "{what}: {} are wrong\n{}", bad.len(), bad[..bad.len().min(3)].join("\n\n"));
    steps
}

/// Protects: bits, failures, work, the measure, and that no step is left, of random programs with all corners.
#[test]
fn random_programs_keep_their_bits() {
    let count = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let one = |seed: u64| {
        let knobs = Knobs { states: seed % 3 == 1, sums: seed % 3 == 2, budget: 40, ..Knobs::PLAIN };
        let made = generate::program(seed, &knobs);
        let program = read("random.ks", &made.text).unwrap_or_else(|d| panic!("seed {seed}: {d}"));
        let def = *program.named("main").last().unwrap();
        let args = arguments(def, &made.args).unwrap();
        let level = if seed % 5 == 4 { Level::Real } else { Level::Exact };
        holds(&program, def, &args, level).map_err(|why| format!("seed {seed}: {why}"))
    };
    let steps = summed("random programs", (0..count).into_par_iter().map(one).collect());
    for step in ["dead-let", "name", "literals", "size", "part", "read-copy", "if-same"] {
        assert!(steps.contains_key(step), "`{step}` is never taken: {steps:?}");
    }
}

/// Protects: the same of derivatives of random programs and losses.
#[test]
fn random_derivatives_keep_their_bits() {
    let one = |seed: u64| {
        let (text, words) = match seed % 2 {
            0 => {
                let words = ["[0.5,-1.0,2.0]", "[1.5,0.25]", "[[1.0,2.0],[-1.0,0.5],[0.25,3.0]]", "[0,2,1]", "0.75"];
                (loss(seed / 2, 16, seed.is_multiple_of(4)), words.map(str::to_string).to_vec())
            }
            _ => {
                let made = generate::program(seed, &Knobs { casts: false, states: seed % 4 == 1, ..Knobs::PLAIN });
                (made.text, made.args)
            }
        };
        let program = read("random.ks", &text).unwrap_or_else(|d| panic!("seed {seed}: {d}"));
        let def = *program.named("main").last().unwrap();
        let Ok(args) = arguments(def, &words) else { return vec![] };
        let all = derivatives(&program, def, &args);
        all.iter()
            .map(|(p, d, args)| holds(p, d, args, Level::Exact).map_err(|why| format!("seed {seed}: {why}")))
            .collect()
    };
    let all: Vec<Vec<_>> = (0..500).into_par_iter().map(one).collect();
    let steps = summed("derivatives of random programs", all.into_iter().flatten().collect());
    for step in ["copy", "fused", "read-copy", "split"] {
        assert!(steps.contains_key(step), "`{step}` is never taken: {steps:?}");
    }
}

/// Protects: the same of the corpus and its derivatives.
#[test]
fn the_corpus_keeps_its_bits() {
    let one = |case: &common::Case| {
        let mut out = vec![];
        let printing = case.program.printing();
        for run in &case.runs {
            for def in case.program.named(&run.def) {
                let Ok(args) = arguments(def, &run.args) else { continue };
                if def.term().is_none() || printing.contains(&def.fun) {
                    continue;
                }
                let told = |why: String| format!("{} {}: {why}", case.name, run.def);
                out.push(holds(&case.program, def, &args, Level::Exact).map_err(told));
                for (p, d, args) in derivatives(&case.program, def, &args) {
                    out.push(holds(&p, &d, &args, Level::Exact).map_err(told));
                }
            }
        }
        out
    };
    let cases = corpus();
    let all: Vec<Vec<_>> = cases.par_iter().map(one).collect();
    let steps = summed("the corpus", all.into_iter().flatten().collect());
    assert!(steps.values().sum::<usize>() > 1000, "{steps:?}");
}

/// Protects: what prints stays, and so does what is not chosen.
#[test]
fn what_prints_stays() {
    let text =
        "(def shown Integer (x : Float) (let (n (print x)) 1))\n(def main Float (x : Float) (let (n (sin x)) x))";
    let program = read("main.ks", text).unwrap();
    let all = simplified(&program, &|_| true, Level::Exact).unwrap();
    assert_eq!(print::def(&all.terms, all.named("shown")[0]), print::def(&program.terms, program.named("shown")[0]));
    assert_eq!(body(&all), "x");
    let none = simplified(&program, &|_| false, Level::Exact).unwrap();
    assert_eq!(print::program(&none), print::program(&program));
}

/// Texts of about so many nodes, of every shape in which something might be looked at again and again.
fn large(n: u32) -> Vec<(&'static str, String)> {
    let lets = |each: &dyn Fn(u32) -> String, last: String| {
        let all: Vec<String> = (1..=n).map(|k| format!("(x{k} {})", each(k))).collect();
        format!("(let ({}) {last})", all.join(" "))
    };
    let ones = |k: u32| if k == 1 { "x".to_string() } else { format!("x{}", k - 1) };
    let copy = |k: u32| {
        let from = if k == 1 { "v".to_string() } else { format!("x{}", k - 1) };
        format!("(build n (lam (i : Integer) (index i {from})))")
    };
    let wide: Vec<String> = (0..n).map(|k| format!("(mul 1.0 (sub x {k}.0))")).collect();
    let balanced = |parts: &[String]| {
        let mut level = parts.to_vec();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|c| if c.len() == 2 { format!("(add {} {})", c[0], c[1]) } else { c[0].clone() })
                .collect();
        }
        level.remove(0)
    };
    vec![
        ("dead lets", lets(&|k| format!("(mul {} 2.0)", ones(k)), "x".into())),
        ("names of names", lets(&|k| ones(k), format!("(add x1 x{n})"))),
        ("live lets", lets(&|k| format!("(mul {} {})", ones(k), ones(k)), format!("x{n}"))),
        (
            "lets that are used at the end",
            lets(&|k| format!("(sin (mul x {k}.5))"), balanced(&(1..=n).map(|k| format!("x{k}")).collect::<Vec<_>>())),
        ),
        ("copies of copies", lets(&copy, format!("(index 0 x{n})"))),
        (
            "fused loops",
            lets(&|k| copy(k).replace("(index i ", "(sin (index i ").replace(")))", "))))"), format!("(sum x{n})")),
        ),
        (
            "tuples",
            lets(
                &|k| format!("(tuple {} x)", if k == 1 { "x".into() } else { format!("(get$1$2 x{})", k - 1) }),
                format!("(get$1$2 x{n})"),
            ),
        ),
        ("a deep nest", nested(n, "x", |c, rest| format!("(mul 1.0 (sub {rest} {c}))"))),
        ("a nest of choices", nested(n, "x", |c, rest| format!("(if (gt x {c}) (sub {rest} 0.0) (if true x {c}))"))),
        ("a wide sum", balanced(&wide)),
        ("elements of elements", nested(n, "x", |_, rest| format!("(index 0 (build 1 (lam (i : Integer) {rest})))"))),
    ]
}

/// Protects: what is looked at grows with the size, whatever the shape.
#[test]
fn what_it_takes_grows_with_the_size() {
    let takes = |n: u32| -> Vec<(&'static str, u64, u64)> {
        let each = large(n).into_iter().map(|(name, body)| {
            let text = format!("(def main Float ((x : Float) (v : (Vec Float) n)) {body})");
            let program = read("large.ks", &text).unwrap_or_else(|d| panic!("{name}: {}", d.message));
            let def = program.named("main")[0];
            let (_, report) = one(&program, def, Level::Exact);
            (name, program.terms.size(def.term().unwrap()), report.looked)
        });
        each.collect()
    };
    for n in [100, 1_000, 10_000, 50_000] {
        for (name, size, looked) in takes(n) {
            println!("{name}: {size} nodes, {looked} looked at");
            assert!(looked <= 12 * size, "{name}: {looked} for {size} nodes");
        }
    }
}
