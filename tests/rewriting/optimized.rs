//! Optimized programs mean what the originals mean, cost no more, and reach the costs they promise.

use crate::common;
use crate::common::generate::{self, Knobs};
use crate::common::random::{Trial, compare, recosted};
use crate::common::{Case, Run, agree, arguments, corpus, read, root, workloads};
use daedal::cost::{Costing, Model};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Head, Program};
use daedal::pipeline::native;
use daedal::pipeline::{Engine, Options, optimize, optimize_with, prepare};
use daedal::rewrite::egraph::plan::same_totality;
use daedal::rules::{Level, Library};
use daedal::run::Toolchain;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

fn options(cost: Model, float: Level) -> Options<'static> {
    Options { cost, float, max_nodes: 3000, ..Options::standard() }
}

/// Derivatives are large, and their programs many: they get a smaller search.
fn nodes(case: &Case, most: usize) -> usize {
    if case.name.starts_with("programs/grad/") { most / 5 } else { most }
}

fn optimized(case: &Case, cost: Model, float: Level) -> Program {
    let options = Options { max_nodes: nodes(case, 3000), ..options(cost, float) };
    optimize(&case.program, &options).unwrap_or_else(|d| panic!("{}: {d}", case.name)).program
}

/// The definition that a run line means, with its arguments.
fn call<'a>(program: &'a Program, run: &Run) -> Option<(&'a Def, Vec<Value>)> {
    program.named(&run.def).into_iter().find_map(|d| Some((d, arguments(d, &run.args).ok()?)))
}

/// Protects: the meaning of the corpus under optimization, at both levels and under both models,
/// interpreted and native.
#[test]
fn the_corpus_means_the_same_after_optimization() {
    let tools =
        Toolchain::discover(None, Some(std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("optimized")));
    let modes = [(Model::Analytic, Level::Real), (Model::Knossos, Level::Exact)];
    let cases = corpus();
    let each: Vec<(&Case, (Model, Level))> = cases.iter().flat_map(|c| modes.map(|m| (c, m))).collect();
    let failed: Vec<String> =
        each.into_par_iter().flat_map_iter(|(case, mode)| differences(case, mode, &tools)).collect();
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
}

/// Protects: the bits of the workloads after optimization.
#[test]
fn the_workloads_mean_the_same_after_optimization() {
    let tools = Toolchain::discover(None, None);
    let differ = |case: &Case| differences(case, (Model::Analytic, Level::Exact), &tools);
    let failed: Vec<String> = workloads().par_iter().flat_map_iter(differ).collect();
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
}

/// What the optimized program of a case gives otherwise than the case, or otherwise natively than interpreted.
fn differences(case: &Case, (cost, float): (Model, Level), tools: &Toolchain) -> Vec<String> {
    let after = optimized(case, cost, float);
    let defs: Vec<&Def> = after.defs.values().filter(|d| d.term().is_some()).collect();
    let native = match (cost, float) {
        (Model::Analytic, Level::Real) => native::compile_all(&after, &defs, tools).unwrap(),
        _ => vec![],
    };
    let (interpreter, mut failed) = (Interpreter::new(&after), vec![]);
    for run in &case.runs {
        let Some((def, args)) = call(&case.program, run) else { continue };
        let place = format!("{}:{} ({cost:?}, {float})", case.name, run.line);
        failed.extend(compare(&case.program, &after, def.name(), &args, float).err().map(|e| format!("{place} {e}")));
        let at = defs.iter().position(|d| d.fun == def.fun);
        if let Some(Ok(native)) = at.and_then(|k| native.get(k)) {
            let (want, have) = (interpreter.run(defs[at.unwrap()], &args), native.call(&args));
            let same = match (&want, &have) {
                (Ok(a), Ok(b)) => agree(a, b, 0.0),
                (Err(a), Err(b)) => a.message == b.message,
                _ => false,
            };
            if !same {
                failed.push(format!("{place} native `{}`: {want:?} {have:?}", def.name()));
            }
        }
    }
    failed
}

/// The number of tensors that a definition makes, by nodes.
fn tensors(program: &Program, def: &Def) -> usize {
    let terms = &program.terms;
    let makes =
        |h: Head| matches!(h, Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Op(_));
    let body = def.term().unwrap();
    terms.reachable(body).into_iter().filter(|id| terms.ty(*id).as_tensor().is_some() && makes(terms.head(*id))).count()
}

/// Protects: the costs and fusions that the corpus promises.
#[test]
fn promised_costs_and_fusions_are_reached() {
    let (mut checked, mut failed) = (0, vec![]);
    for case in corpus() {
        for bound in &case.costs {
            let model = Model::named(&bound.model).unwrap();
            let only = Options { defs: vec![bound.def.clone()], ..options(model, Level::Real) };
            let rows = optimize(&case.program, &only).unwrap().rows;
            let row = rows.iter().find(|r| r.name == bound.def).unwrap();
            checked += 1;
            if row.cost_after > bound.most + 1e-9 {
                failed.push(format!("{}:{}: {} costs {}", case.name, bound.line, bound.def, row.cost_after));
            }
        }
        for bound in &case.builds {
            let only = Options { defs: vec![bound.def.clone()], ..options(Model::Knossos, Level::Real) };
            let after = optimize(&case.program, &only).unwrap().program;
            let found = tensors(&after, after.named(&bound.def)[0]);
            checked += 1;
            if found as f64 > bound.most {
                failed.push(format!("{}:{}: {} makes {found} tensors", case.name, bound.line, bound.def));
            }
        }
    }
    assert!(checked >= 4 && failed.is_empty(), "{checked} checked\n{}", failed.join("\n"));
}

/// Protects: costs before any rewrite are those of the reference implementation: functions from outside with
/// stated costs whatever their parameters, tuples of arguments, and the lets that bind what is called and unpack
/// its parameters, the definition itself and its own among them.
#[test]
fn costs_of_calls_are_those_of_the_reference() {
    let cost = |path: &str, def: &str| {
        let case = corpus().into_iter().find(|c| c.name == path).unwrap();
        let def = case.program.named(def)[0].clone();
        Costing::new(&case.program, Model::Knossos, &[]).written(&def).unwrap()
    };
    let near = |found: f64, known: f64| assert!((found - known).abs() < 1e-9, "{found}, not {known}");
    near(cost("programs/agent/outside.ks", "gelu"), 24.1);
    // The reference inlines two of the lets that are written here.
    near(cost("programs/agent/outside.ks", "rev_gelu"), 90.4 + 0.2);
    let text = "(def scal (Vec Float) ((a : Float) (x : (Vec Float)))
          (let (n (size x)) (build n (lam (i : Integer) (mul a (index i x))))))
        (def axpy (Vec Float) ((a : Float) (x : (Vec Float)) (y : (Vec Float)))
          (let ((n (size x)) (ax (scal a x))) (build n (lam (i : Integer) (add (index i ax) (index i y))))))";
    let program = common::read("axpy.ks", text).unwrap();
    let axpy = program.named("axpy")[0].clone();
    near(Costing::new(&program, Model::Knossos, &[]).written(&axpy).unwrap(), 105.2);
    // What is rewritten has neither.
    near(Costing::new(&program, Model::Knossos, &[]).def(&axpy).unwrap(), 105.2 - 0.1 - 0.3);
}

/// Optimizes random programs at a level and compares what they mean and cost; how many got cheaper.
fn random_programs(seeds: std::ops::Range<u64>, float: Level, knobs: Knobs) -> usize {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, float).unwrap();
    let trial = Trial { library: &library, rules: &rules, float, knobs, engines: &[Engine::Egraph], derive: false };
    let results: Vec<_> = seeds.into_par_iter().map(|seed| trial.check(seed)).collect();
    let failed: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} failures, the first:\n{}", failed.len(), failed[0]);
    results.iter().flatten().filter(|c| c.cheaper).count()
}

/// Protects: soundness at level `exact`, failures included.
#[test]
fn random_programs_mean_the_same_at_exact() {
    let knobs = Knobs::PLAIN;
    let cheaper = random_programs(0..5_000, Level::Exact, knobs);
    assert!(cheaper > 250, "only {cheaper} programs got cheaper");
}

/// Protects: soundness at level `real`, on numbers that show no rounding.
#[test]
fn random_programs_mean_the_same_at_real() {
    let knobs = Knobs { dyadic: true, ..Knobs::PLAIN };
    let cheaper = random_programs(0..5_000, Level::Real, knobs);
    assert!(cheaper > 250, "only {cheaper} programs got cheaper");
}

/// Protects: costs of the corpus, before and after, recomputed from the text by other code.
#[test]
fn the_corpus_costs_what_the_optimizer_says() {
    let told = |case: &Case| {
        let options = Options { max_nodes: nodes(case, 1000), ..options(Model::Knossos, Level::Real) };
        let after = optimize(&case.program, &options).unwrap();
        // A function that calls itself is charged once more inside itself, which no text shows.
        let recursive = daedal::rewrite::inline::recursive(&case.program);
        // The other code reads no names in brackets.
        let strange = |d: &Def| d.term().is_none() || recursive.contains(&d.fun) || d.name().starts_with('[');
        let external = case.program.defs.values().any(strange);
        let told = (!external).then(|| recosted(&case.program, &after.program, &after.rows));
        told.and_then(Result::err).map(|e| format!("{}: {e}", case.name))
    };
    let failed: Vec<String> = corpus().par_iter().filter_map(told).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Protects: results do not depend on how many threads find them.
#[test]
fn one_thread_and_two_find_the_same() {
    corpus().par_iter().for_each(|case| {
        let with = |threads: usize| {
            let options = Options { threads, max_nodes: nodes(case, 600), ..options(Model::Knossos, Level::Real) };
            let outcome = optimize(&case.program, &options).unwrap();
            let rows: Vec<_> = outcome.rows.into_iter().map(|r| (r.name, r.cost_after, r.fired, r.proved)).collect();
            (daedal::ir::print::program(&outcome.program), rows)
        };
        assert!(with(1) == with(2), "{}", case.name);
    });
}

/// Protects: the node limit, but for what one application makes.
#[test]
fn the_node_limit_is_kept() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let mut reached = 0;
    // Some derivatives have more nodes to begin with.
    for case in corpus().into_iter().filter(|c| !c.name.starts_with("programs/grad/")) {
        for def in case.program.defs.values() {
            let Some((g, _)) = common::egraphs::saturated(&case.program, def, &rules, 800) else { continue };
            reached += usize::from(g.total_size() >= 800);
            assert!(g.total_size() < 1000, "{}: `{}` has {} nodes", case.name, def.name(), g.total_size());
        }
    }
    assert!(reached > 5, "only {reached} definitions reach the limit");
}

/// Protects: choices that make no well-typed term. Random programs found these: all choices of small
/// e-graphs are tried, and loops that never run make variables of other types equal.
#[test]
fn choices_without_a_term_are_refused() {
    let library = Library::shipped().unwrap();
    let programs = [
        "(def main Float ((x2 : Float) (x3 : (Tuple Float Integer Float)))
          (max (min (if true (let (x4 x2) x4) (sumbuild 0 (lam (x5 : Integer) x2)))
                    (sum (map (lam (x7 : Float) x2) (map (lam (x2 : Float) x2) (Vec_init x2)))))
               (fold (lam ((x9 : Float) (x3 : Float)) (sum (constVec (min 3 (max 0 0)) x9)))
                     (let (x8 x3) -1.375) (Vec_init x2 x2 x2))))",
        "(def main Float ((x5 : Integer) (x6 : (Vec Float)))
          (fold (lam ((x11 : Float) (x12 : Float))
                  (let (x15 (sumbuild (min 3 (max 0 x5)) (lam (x14 : Integer) x12)))
                    (sum (if false (map (lam (x16 : Float) x12) x6) (if false x6 x6)))))
            (min (let (x7 1.6681168621231892) x7) (fold (lam ((x8 : Float) (x9 : Float)) x9) -1.25 (Vec_init 0.0)))
            (build (min 3 (max 0 (add -2 x5))) (lam (x10 : Integer) 412452.07274548826))))",
    ];
    for text in programs {
        let before = common::read("random.ks", text).unwrap();
        for float in [Level::Exact, Level::Real] {
            for cost in [Model::Knossos, Model::Analytic] {
                let rules = prepare(&library, float).unwrap();
                let options = Options { max_nodes: 600, ..options(cost, float) };
                optimize_with(&before, &rules, &options).unwrap_or_else(|d| panic!("{d}\n{text}"));
            }
        }
    }
}

/// Protects: a number is not at least 0 because it would be the size of a tensor that cannot be made.
#[test]
fn what_fails_says_nothing_of_what_it_is_made_of() {
    let text = "(def main Float (x : Float)
      (reduce max 0 (lam (i : Integer) (sum (scan (lam ((s : Float) (k : Integer)) s) -0.0 (mod -1 4))))))";
    let before = common::read("random.ks", text).unwrap();
    for cost in [Model::Knossos, Model::Analytic] {
        for float in [Level::Exact, Level::Real] {
            let after = optimize(&before, &options(cost, float)).unwrap().program;
            compare(&before, &after, "main", &[Value::Scalar(daedal::ir::Lit::float(1.0))], float)
                .unwrap_or_else(|e| panic!("{e}\n{}", daedal::ir::print::program(&after)));
        }
    }
}

/// Protects: what is certain to be evaluated may have an arm that fails, so of a copy with other variables only the
/// whole is known not to. The gradient of a recurrent network found an index that had lost its guard.
#[test]
fn a_guard_is_no_proof_for_what_it_guards() {
    let text = "(def main Float ((v : (Vec Float)) (k : Integer)) (exp (if (gt k 0) (index (sub k 1) v) 0.0)))";
    let mut program = common::read("guard.ks", text).unwrap();
    let whole = program.named("main")[0].term().unwrap();
    let terms = &mut program.terms;
    let copy = terms.shift(whole, 1);
    let index = |terms: &daedal::ir::Terms, of| {
        terms.reachable(of).into_iter().find(|id| matches!(terms.head(*id), Head::Index(_))).unwrap()
    };
    let (guarded, guarded_copy) = (index(terms, whole), index(terms, copy));
    let mut total: FxHashMap<_, _> = terms.reachable(whole).into_iter().map(|id| (id, id != guarded)).collect();
    same_totality(terms, &mut total, whole, copy, &mut FxHashSet::default());
    assert!(guarded != guarded_copy && total[&copy] && !total[&guarded_copy]);
}

/// Protects: the state of a loop may be infinite, and 0 rounds of it are 0 all the same.
#[test]
fn a_state_may_have_no_real_value() {
    let text = "(def main (Vec Float) (n : Integer)
      (scan (lam ((s : Float) (i : Integer)) (sumbuild (min 3 i) (lam (k : Integer) s)))
        (reduce max 0 (lam (i : Integer) -0.625)) n))";
    let before = common::read("random.ks", text).unwrap();
    for cost in [Model::Knossos, Model::Analytic] {
        let after = optimize(&before, &options(cost, Level::Real)).unwrap().program;
        compare(&before, &after, "main", &[Value::Scalar(daedal::ir::Lit::int(2))], Level::Real)
            .unwrap_or_else(|e| panic!("{e}\n{}", daedal::ir::print::program(&after)));
    }
}

/// Protects: what is optimized does not depend on what the source calls its local names.
#[test]
fn renamed_programs_come_out_the_same() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let options = Options { max_nodes: 600, ..options(Model::Knossos, Level::Real) };
    // Parameters keep the names of the source, which is how callers know them, and so do values.
    let plain = |mut program: Program| {
        for p in program.defs.values_mut().flat_map(|d| &mut d.params) {
            for name in std::iter::once(&mut p.name).chain(&mut p.sizes) {
                *name = name.replace("other_name", "x");
            }
        }
        program.terms.forget_names();
        daedal::ir::print::program(&program)
    };
    let optimize = |text: &str| {
        let program = common::read("random.ks", text).unwrap();
        plain(optimize_with(&program, &rules, &options).unwrap().program)
    };
    let mut compared = 0;
    for seed in 0..300 {
        let knobs = Knobs::PLAIN;
        let (a, b) = (generate::program(seed, &knobs), generate::program(seed, &Knobs { renamed: true, ..knobs }));
        let (one, two) = (optimize(&a.text), optimize(&b.text));
        if one != common::read("random.ks", &a.text).map(plain).unwrap() {
            compared += 1;
        }
        assert_eq!(one, two, "seed {seed}");
    }
    assert!(compared > 50, "only {compared} programs were changed");
}

/// The text of an optimized program.
fn text(source: &str, engine: Engine) -> String {
    let options = Options { engine, ..options(Model::Knossos, Level::Real) };
    daedal::ir::print::program(&optimize(&common::read("names.ks", source).unwrap(), &options).unwrap().program)
}

/// Protects: printed programs keep the names that the source has for values and variables of loops, also
/// where a function was inlined; a named size is used by its name, and what always holds is not asserted.
#[test]
fn names_of_the_source_stay() {
    let source = "
(def softly (Vec Float) (x : (Vec Float) n)
  (let ((peak (reduce max n (lam (row : Integer) (index row x))))
        (weights (build n (lam (row : Integer) (exp (sub (index row x) peak)))))
        (whole (sum weights)))
    (build n (lam (row : Integer) (div (index row weights) whole)))))
(def caller (Vec Float) ((data : (Vec Float) m) (a : Float))
  (softly (build m (lam (row : Integer) (mul (mul a 1.0) (index row data))))))
(def apart Float ((u : (Vec Float) k) (w : (Vec Float) k))
  (sqrt (sum (map (lam (d : Float) (mul d d)) (map2 (lam ((a : Float) (b : Float)) (sub a b)) u w)))))
";
    for engine in [Engine::Egraph, Engine::Agent(daedal::search::Algorithm::Greedy)] {
        let printed = text(source, engine);
        for name in ["peak", "weights", "whole", "(lam (row : Integer)"] {
            let times = printed.matches(name).count();
            assert!(times >= 2, "{name} stands {times} times in\n{printed}");
        }
        assert!(!printed.contains("(v n)") && !printed.contains("(v m)"), "{printed}");
        assert!(!printed.contains("assert true"), "{printed}");
    }
    let again = text(&text(source, Engine::Egraph), Engine::Egraph);
    assert!(again.contains("weights") && again.contains("peak"), "{again}");
}

/// Protects: calls stay where all that their removal gains is the calls themselves, once; a value is called what it
/// is called itself, wherever lets stand around it; and lets in each other are one.
#[test]
fn calls_that_gain_nothing_stay() {
    let source = "
(def norm Float (v : (Vec Float) n) (sqrt (sumbuild n (lam (i : Integer) (mul (index i v) (index i v))))))
(def twice Float (v : (Vec Float) n) (mul 2.0 (norm v)))
(def unit (Vec Float) (v : (Vec Float) n) (let (r (norm v)) (build n (lam (i : Integer) (div (index i v) r)))))
(def again (Vec Float) (v : (Vec Float) n) (unit v))
(def joined Float (v : (Vec Float) n) (mul (norm v) (norm v)))
(def norms (Vec Float) (a : (Vec (Vec Float)) (n m)) (build n (lam (k : Integer) (norm (index k a)))))
(def rows (Vec (Vec Float)) ((a : Vec (Vec Float)) (b : Vec (Vec Float)))
  (build (size a) (lam (i : Integer)
    (let ((p (index i a)) (q (index i b)))
      (build (add 0 (size p)) (lam (j : Integer) (add (index j p) (index j q))))))))
";
    let printed = text(source, Engine::Egraph);
    for stays in ["(mul 2.0 (norm v))", "(let (r (norm v))", "(unit v)", "(q (index i b))"] {
        assert!(printed.contains(stays), "{stays} is not in\n{printed}");
    }
    let joined = printed.split("(def ").find(|def| def.starts_with("joined")).unwrap();
    assert!(!joined.contains("sqrt") && !joined.contains("norm"), "{printed}");
    let norms = printed.split("(def ").find(|def| def.starts_with("norms")).unwrap();
    assert!(!norms.contains("(norm "), "a call in a loop is paid in each round\n{printed}");
    assert!(printed.contains("(let ((v (size$2 a)))\n    (build (size a)"), "{printed}");
}

/// Protects: a proof of what is cheapest is looked for from the best result, and so gives no worse one.
#[test]
fn exact_extraction_gives_no_worse_results() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let path = root("programs/agent/outside.ks");
    let program = read("outside.ks", &std::fs::read_to_string(path).unwrap()).unwrap();
    let costs = |exact: bool| {
        let options = Options { exact, cost: Model::Knossos, max_nodes: 1_000, ..Options::standard() };
        let rows = optimize_with(&program, &rules, &options).unwrap().rows;
        rows.into_iter().map(|row| (row.name, row.cost_after)).collect::<Vec<_>>()
    };
    for ((name, without), (_, with)) in costs(false).into_iter().zip(costs(true)) {
        assert!(with <= without + 1e-9, "{name}: {with}, and {without} without a proof");
    }
}
