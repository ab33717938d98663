//! What optimization costs at other sizes than those it was told: never more.
//!
//! Work is counted by the interpreter, or predicted by the analytic model. What is made again in every round of a
//! loop shows at ten times the size.

use crate::common::generate::{self, Knobs};
use crate::common::random::{compare, replayed};
use crate::common::{arguments, read};
use daedal::ad::{self, Mode, Wanted};
use daedal::cost::{Costing, Model, Sweep};
use daedal::eval::{Interpreter, Value};
use daedal::ir::op::Class;
use daedal::ir::{Def, Program, print};
use daedal::pipeline::{Engine, Options, Outcome, optimize, optimize_with, prepare};
use daedal::rules::{Level, Library};
use daedal::search::Algorithm as Agent;
use rayon::prelude::*;

/// A filter with its window, negative parts cut off, the greatest of each pair, and a layer behind them.
const POOLED: &str = "
(def filtered (Vec Float) ((w : (Vec Float)) (x : (Vec Float)))
  (build (add (sub (size x) (size w)) 1) (lam (i : Integer)
    (sumbuild (size w) (lam (j : Integer) (mul (index j w) (index (add i j) x)))))))
(def cut (Vec Float) (v : (Vec Float))
  (map (lam (x : Float) (max x 0.0)) v))
(def pooled (Vec Float) (v : (Vec Float))
  (build (div (size v) 2) (lam (i : Integer)
    (reduce max 2 (lam (j : Integer) (index (add (mul 2 i) j) v))))))
(def loss Float ((w : (Vec Float)) (x : (Vec Float)) (a : (Tensor 2 Float)) (label : Integer))
  (let ((y (mul a (pooled (cut (filtered w x)))))
        (m (max y)))
    (sub (add m (log (sumbuild (size y) (lam (i : Integer) (exp (sub (index i y) m))))))
         (index label y))))";

const LSE: &str = "
(def lse Float (x : (Vec Float) n)
  (let (m (max x))
    (add m (log (sumbuild n (lam (i : Integer) (exp (sub (index i x) m))))))))
(gdef rev [lse (Vec Float)])";

/// A sum that no round of the loop changes stands in an arm: there it is made as often as the arm is taken.
const ARM: &str = "
(def gated (Vec Float) ((x : (Vec Float) n) (y : (Vec Float) m))
  (build n (lam (i : Integer)
    (if (gt (index i x) 0.0)
        (mul (index i x) (sumbuild m (lam (j : Integer) (exp (index j y)))))
        0.0))))";

fn options(cost: Model, sizes: &[(&str, u64)]) -> Options<'static> {
    let sizes = sizes.iter().map(|(name, n)| ((*name).to_string(), *n)).collect();
    Options { cost, sizes, threads: 1, ..Options::standard() }
}

/// What a call does to numbers, weighted: arithmetic of indices counts nothing.
fn work(program: &Program, name: &str, args: &[Value]) -> f64 {
    let total = std::cell::Cell::new(0.0);
    let watch = |e: &daedal::eval::Event<'_>| {
        let daedal::eval::What::Op(op) = e.what else { return };
        if e.args.iter().all(|a| a.as_int().is_none()) {
            let weight = match op.row().class {
                Class::Cheap | Class::Multiply => 1.0,
                Class::Divide => 8.0,
                Class::Transcendental => 20.0,
            };
            total.set(total.get() + weight);
        }
    };
    let def = program.named(name)[0].clone();
    Interpreter::new(program).watched(&watch).run(&def, args).unwrap();
    total.get()
}

fn vector(n: usize, from: usize) -> String {
    let each: Vec<String> = (0..n).map(|i| format!("{:?}", ((i * 7 + from) % 11) as f64 / 8.0 - 0.5)).collect();
    format!("[{}]", each.join(","))
}

/// The gradient of the loss by its filter and its layer.
fn gradient(program: &Program) -> (Program, String) {
    let fun = program.named("loss")[0].fun;
    let wrt = vec![true, false, true, false];
    let wanted = Wanted { fun, mode: Mode::Reverse, wrt, value: false, checkpoint: false };
    let (made, fun) = ad::derive(program, &wanted).unwrap();
    (made, fun.sig().name.clone())
}

/// Arguments of that gradient for a signal of so many numbers.
fn signal(n: usize) -> Vec<String> {
    let pooled = (n - 2) / 2;
    let rows: Vec<String> = (0..4).map(|k| vector(pooled, k)).collect();
    vec![vector(3, 1), vector(n, 5), format!("[{}]", rows.join(",")), "2".into(), "1.0".into()]
}

/// Protects: an optimized gradient of a pooled layer does no more than it did as made, by count, whatever sizes
/// were told and however much larger they are; by either model.
#[test]
fn gradients_of_pooled_layers_do_not_grow() {
    let (made, name) = gradient(&read("pooled.ks", POOLED).unwrap());
    let def = made.named(&name)[0].clone();
    for cost in [Model::Analytic, Model::Knossos] {
        let chosen = Options { defs: vec![name.clone()], ..options(cost, &[]) };
        let after = optimize(&made, &chosen).unwrap().program;
        for n in [12, 40, 120] {
            let args = arguments(&def, &signal(n)).unwrap();
            let (was, is) = (work(&made, &name, &args), work(&after, &name, &args));
            assert!(is <= was, "{}: {is} after {was} at {n}\n{}", cost.name(), print::program(&after));
            compare(&made, &after, &name, &args, Level::Real).unwrap();
        }
    }
}

/// Protects: sizes that are told reach the wrapper of a derivative as they reach the derivative, and neither does
/// more than before, at these sizes and at ten times them.
#[test]
fn sizes_reach_the_wrappers_of_derivatives() {
    let program = ad::complete(&read("lse.ks", LSE).unwrap()).unwrap();
    let Outcome { program: after, rows, .. } = optimize(&program, &options(Model::Analytic, &[("n", 100)])).unwrap();
    let cost = |name: &str| rows.iter().find(|r| r.name == name).map(|r| (r.cost_before, r.cost_after)).unwrap();
    let (flat, wrapper) = (cost("rev$lse"), cost("[rev lse]"));
    assert!((wrapper.0 - flat.0).abs() < 10.0 && (wrapper.1 - flat.1).abs() < 10.0, "{flat:?} {wrapper:?}");
    for name in ["rev$lse", "[rev lse]"] {
        for n in [100, 1000] {
            let def = program.named(name)[0].clone();
            let args = arguments(&def, &[vector(n, 3), "1.0".into()]).unwrap();
            let (was, is) = (work(&program, name, &args), work(&after, name, &args));
            assert!(is <= was, "`{name}`: {is} after {was} at {n}");
            compare(&program, &after, name, &args, Level::Real).unwrap();
        }
    }
}

/// Protects: what only takes tuples apart for one call of a large definition is not searched once more, and gains what that
/// gains; what calls it twice, or something small, is searched.
#[test]
fn wrappers_of_large_definitions_are_not_searched() {
    let terms = |k: u32| format!("(mul (mul x {k}.25) (add y (mul {k}.5 0.0)))");
    let large = (1..60).fold("x".to_string(), |sum, k| format!("(add {} {sum})", terms(k)));
    let program = read(
        "wrappers.ks",
        &format!(
            "(def large Float ((x : Float) (y : Float)) {large})
             (def small Float ((x : Float) (y : Float)) (mul (mul x 1.0) y))
             (def once (Tuple Float Float) (t : (Tuple Float Float))
               (let (r (large (get$1$2 t) (get$2$2 t))) (tuple r r)))
             (def twice (Tuple Float Float) (t : (Tuple Float Float))
               (tuple (large (get$1$2 t) (get$2$2 t)) (large (get$1$2 t) (get$2$2 t))))
             (def of_small Float (t : (Tuple Float Float)) (small (get$1$2 t) (get$2$2 t)))"
        ),
    )
    .unwrap();
    for derive in [false, true] {
        let options = Options { derive, ..options(Model::Analytic, &[]) };
        let rows = optimize(&program, &options).unwrap().rows;
        let row = |name: &str| rows.iter().find(|r| r.name == name).unwrap();
        assert!(row("large").cost_after < 0.9 * row("large").cost_before);
        assert!(row("once").looked == 0 && row("once").cost_after < row("large").cost_after + 10.0);
        for name in ["large", "twice", "of_small"] {
            assert!(row(name).looked > 0, "`{name}` is not searched");
        }
    }
}

/// Protects: a call costs what it does for the sizes that its caller hands over.
#[test]
fn calls_cost_what_their_callers_hand_over() {
    let text = "(def total Float (x : (Vec Float) k) (sumbuild k (lam (i : Integer) (exp (index i x)))))
        (def few Float (n : Integer) (total (build 3 (lam (i : Integer) (to_float (add i n))))))
        (def many Float (n : Integer) (total (build n (lam (i : Integer) (to_float i)))))";
    let program = read("calls.ks", text).unwrap();
    let sizes = [("k".to_string(), 50), ("n".to_string(), 1000)];
    let mut costing = Costing::new(&program, Model::Analytic, &sizes);
    let mut cost = |name: &str| costing.def(&program.named(name)[0].clone()).unwrap();
    let (total, few, many) = (cost("total"), cost("few"), cost("many"));
    assert!(1000.0 < total && total < 2000.0, "{total}");
    assert!(few < 200.0 && many > 20_000.0, "{few} {many}");
    assert_eq!((few, many), (cost("few"), cost("many")), "costs depend on what was asked before");
}

/// Protects: what no round of a loop changes is made once, also where an arm asks for it; that is proved where a
/// derivation is asked for; and what may fail stays in its arm.
#[test]
fn what_is_invariant_leaves_arms() {
    let library = Library::shipped().unwrap();
    let program = read("gated.ks", ARM).unwrap();
    for derive in [false, true] {
        let options = Options { derive, ..options(Model::Analytic, &[("n", 100), ("m", 100)]) };
        let out = optimize(&program, &options).unwrap();
        let row = &out.rows[0];
        assert!(row.cost_after < row.cost_before / 20.0, "{row:?}\n{}", print::program(&out.program));
        let def = program.named("gated")[0].clone();
        for n in [0, 1, 30] {
            let args = arguments(&def, &[vector(n, 2), vector(2 * n, 4)]).unwrap();
            compare(&program, &out.program, "gated", &args, Level::Real).unwrap();
            let few = arguments(&def, &["[-1.0,-2.0]".into(), vector(n, 4)]).unwrap();
            compare(&program, &out.program, "gated", &few, Level::Real).unwrap();
        }
        if derive {
            replayed(&program, &out, &library, &options).unwrap();
        }
    }
    // The first element is there only where the arm is taken.
    let failing = ARM.replace("(exp (index j y))", "(exp (mul (index 0 x) (index (add m j) y)))");
    let program = read("failing.ks", &failing).unwrap();
    let after = optimize(&program, &options(Model::Analytic, &[("n", 100), ("m", 100)])).unwrap().program;
    let def = program.named("gated")[0].clone();
    let args = arguments(&def, &["[-1.0,-2.0]".into(), "[1.0,2.0]".into()]).unwrap();
    compare(&program, &after, "gated", &args, Level::Real).unwrap();
}

/// Protects: random programs cost no more after optimization, at the sizes that were told, at ten times them, and
/// where sizes that nobody told differ.
#[test]
fn random_programs_cost_no_more_at_other_sizes() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let engines = [Engine::Egraph, Engine::Agent(Agent::Greedy), Engine::Auto, Engine::Agent(Agent::Beam)];
    let cheaper = |seed: u64| {
        let made = generate::program(seed, &Knobs::PLAIN);
        let before = read("random.ks", &made.text).unwrap();
        let names: Vec<&String> = before.defs.values().flat_map(|d| d.params.iter().flat_map(|p| &p.sizes)).collect();
        let told: Vec<(&str, u64)> = names.first().map(|n| (n.as_str(), 7 + seed % 90)).into_iter().collect();
        let base = options(Model::Analytic, &told);
        let engine = engines[seed as usize % engines.len()];
        let options = Options { engine, max_nodes: 600, budget: 100, depth: 8, seed, ..base };
        let out = optimize_with(&before, &rules, &options).unwrap();
        let mut any = false;
        for (old, new) in before.defs.values().zip(out.program.defs.values()) {
            let (sizes, body) = (&options.sizes, new.term().unwrap());
            let text = || format!("seed {seed}, `{}`\n{}\n{}", old.name(), made.text, print::program(&out.program));
            let cost = |program: &Program, def: &Def, sizes: &[(String, u64)]| {
                Costing::new(program, Model::Analytic, sizes).def(def).unwrap()
            };
            for scale in [1, 10] {
                let sizes: Vec<(String, u64)> = sizes.iter().map(|(n, v)| (n.clone(), v * scale)).collect();
                let (was, is) = (cost(&before, old, &sizes), cost(&out.program, new, &sizes));
                assert!(is <= was * (1.0 + 1e-9) + 1e-3, "{is} after {was} at {sizes:?}: {}", text());
                any |= is < was;
            }
            let mut sweep = Sweep::new(&before, old, Model::Analytic, sizes).unwrap();
            assert!(sweep.worse(body, &out.program.terms) <= 1.0, "{}", text());
        }
        any
    };
    let better = (0..600u64).into_par_iter().filter(|seed| cheaper(*seed)).count();
    assert!(better > 100, "only {better} got cheaper");
}

/// Protects: what is not rewritten says why.
#[test]
fn what_is_skipped_is_told() {
    let text = "(def shown Float (x : Float) (let (u (print \"x\")) (mul x 1.0)))
        (def power Float ((x : Float) (n : Integer)) (if (lte n 0) 1.0 (mul x (power x (sub n 1)))))
        (def plain Float (x : Float) (add (mul x 1.0) 0.0))";
    let program = read("skipped.ks", text).unwrap();
    let rows = optimize(&program, &options(Model::Analytic, &[])).unwrap().rows;
    let why: Vec<Option<&str>> = rows.iter().map(|r| r.skipped.as_deref()).collect();
    assert_eq!(why, [Some("it prints"), Some("it calls itself"), None]);
    let (made, name) = gradient(&read("pooled.ks", POOLED).unwrap());
    let few = Options { defs: vec![name], max_nodes: 100, ..options(Model::Analytic, &[]) };
    let row = optimize(&made, &few).unwrap().rows.remove(0);
    let why = row.skipped.unwrap();
    assert!(why.starts_with("too large: ") && why.ends_with("no more than 25 are taken"), "{why}");
    assert_eq!(row.cost_before, row.cost_after);
}

/// Protects: a size without a name is guessed by the loops that read there, for costs alone, where definitions agree and it
/// was not told; else work would seem cheap in a loop over it.
#[test]
fn sizes_without_names_are_as_large_as_what_is_read() {
    let text = "
(def f (Vec Float) ((x : (Vec Float) n) (y : (Vec Float)) (m : (Tensor 2 Float)) (k : Integer) (rows : (Vec (Vec Float))))
  (build (size y) (lam (i : Integer) (if (lt i n)
    (add (sumbuild n (lam (j : Integer) (mul (index j x) (index (sub j 1) y))))
         (sumbuild (tuple k (sub n 1)) (lam ((a : Integer) (b : Integer))
            (mul (index (tuple a (add 1 b)) m) (let (row (index a rows)) (index (mul 2 b) row))))))
    0.0))))
(def g Float ((z : (Vec Float)) (x : (Vec Float) n) (k : Integer))
  (add (sumbuild n (lam (i : Integer) (index i z))) (sumbuild k (lam (i : Integer) (index i z)))))";
    let program = read("reads.ks", text).unwrap();
    let told = |sizes: &[(&str, u64)]| sizes.iter().map(|(name, n)| ((*name).to_string(), *n)).collect::<Vec<_>>();
    let known = |sizes: &[(&str, u64)]| {
        let mut all = daedal::cost::with_reads(&program, &told(sizes));
        all.sort();
        all
    };
    let all = told(&[("k", 9), ("m.1", 9), ("m.2", 500), ("n", 500), ("rows.1", 9), ("y.1", 500)]);
    assert_eq!(known(&[("n", 500), ("k", 9)]), all);
    assert_eq!(known(&[]), []);
    assert_eq!(known(&[("k", 9), ("y.1", 3)]), told(&[("k", 9), ("m.1", 9), ("rows.1", 9), ("y.1", 3), ("z.1", 9)]));
    let def = program.named("f")[0];
    let cost = |sizes: &[(String, u64)]| Costing::new(&program, Model::Analytic, sizes).def(def).unwrap();
    let (few, many) = (cost(&told(&[("n", 500), ("k", 9)])), cost(&all));
    assert!(many > 10.0 * few, "{few} and {many}");
}
