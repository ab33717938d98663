//! What work grows with: small definitions take little of it, and large ones finish.
//!
//! Work is counted, not timed. What grew with the square of the size, or without end, does not come to an
//! end here in any patience.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{self, Knobs};
use common::{corpus, read, root};
use daedal::ad::{self, Mode, Wanted};
use daedal::cost::Model;
use daedal::ir::{Def, Program, Ty, print};
use daedal::pipeline::{Engine, Options, Row, optimize_with, prepare};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rewrite::inline::{MAX_FLAT, flatten, recursive};
use daedal::rules::{Level, Library};
use daedal::search::Algorithm;
use daedal::types;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// Nodes of a small definition once its calls are in their places, at most.
const SMALL: usize = 50;
/// What the search of a small definition looks at, at most: about half a microsecond each.
const LOOKED: usize = 820_000;

/// The rows of all definitions of a program that are small.
fn rows(program: &Program, rules: &[Compiled<'_>], cost: Model) -> Vec<Row> {
    let kept = recursive(program);
    let size = |d: &Def| {
        let params: Vec<Ty> = d.params.iter().map(|p| p.ty).collect();
        let flat = flatten(program, &kept, (&program.terms, d.term()?), &params, MAX_FLAT)?;
        Some(flat.terms.reachable(flat.id).len())
    };
    let small = program.defs.values().filter(|d| size(d).is_some_and(|n| n < SMALL));
    let defs: Vec<String> = small.map(|d| d.name().to_string()).collect();
    if defs.is_empty() {
        return vec![];
    }
    let options = Options { defs, cost, threads: 1, ..Options::standard() };
    optimize_with(program, rules, &options).unwrap().rows
}

/// Searches of programs, by name, look at no more than they may.
fn bounded(programs: &[(String, Program)]) {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let each = programs.par_iter().flat_map_iter(|(name, program)| {
        let all = [Model::Knossos, Model::Analytic].map(|cost| rows(program, &rules, cost));
        all.into_iter().flatten().map(move |row| (name, row))
    });
    let mut all: Vec<(&String, Row)> = each.collect();
    all.sort_by_key(|(_, row)| std::cmp::Reverse(row.looked));
    let told: Vec<String> =
        all.iter().take(12).map(|(name, row)| format!("{:>9} {name}: `{}`", row.looked, row.name)).collect();
    assert!(all.iter().all(|(_, row)| row.looked <= LOOKED), "\n{}", told.join("\n"));
    println!("{} searches, the longest:\n{}", all.len(), told.join("\n"));
}

/// Protects: classes that are part of themselves, as 0 is of every sum, are not unrolled without end.
#[test]
fn neutral_and_absorbing_elements_are_not_unrolled() {
    let texts = [
        "(add (mul y 0.0) y)",
        "(add (add (mul x 0.0) (mul y 0.0)) (mul x y))",
        "(mul (mul x 1.0) (mul (add y 0.0) (mul 1.0 z)))",
        "(sub (add x (sub y y)) (mul z (sub x x)))",
        "(add (neg (neg x)) (mul (neg (neg 0.0)) y))",
        "(max (max x x) (max (min y y) (max z z)))",
        "(if (or b false) (add x 0.0) (mul y 1.0))",
        "(if (and b true) (if b (add x y) z) (add z (mul 0.0 x)))",
        "(select b (add x y) (add y (add x 0.0)))",
        "(div (mul x y) (add (exp (mul z 0.0)) (mul 0.0 x)))",
        "(mul (exp (sub x x)) (add (log (exp y)) (mul z 0.0)))",
        "(add (to_float (mul k 0)) (mul (to_float (add k (sub k k))) x))",
        "(get$1$2 (tuple (add x (mul 0.0 y)) (mul 1.0 z)))",
        "(add (sub x y) (add (sub y x) (mul 0.0 z)))",
        "(add (sum (map (lam (e : Float) (mul e 0.0)) v)) (sumbuild k (lam (i : Integer) (mul 0.0 (to_float i)))))",
    ];
    let program = |text: &&str| {
        let params = "(x : Float) (y : Float) (z : Float) (b : Bool) (k : Integer) (v : (Vec Float))";
        let program = read("small.ks", &format!("(def main Float ({params}) {text})")).unwrap();
        ((*text).to_string(), program)
    };
    bounded(&texts.iter().map(program).collect::<Vec<_>>());
}

/// Protects: every small definition of the corpus.
#[test]
fn small_definitions_of_the_corpus_take_little_work() {
    bounded(&corpus().into_iter().map(|case| (case.name, case.program)).collect::<Vec<_>>());
}

/// Protects: derivatives of small functions, both ways.
#[test]
fn gradients_of_small_functions_take_little_work() {
    let path = root("tests/growth/small.ks");
    let source = read("small.ks", &std::fs::read_to_string(path).unwrap()).unwrap();
    let mut all = vec![];
    for def in source.defs.values() {
        for mode in [Mode::Forward, Mode::Reverse] {
            let wrt = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
            let wanted = Wanted { fun: def.fun, mode, wrt, value: false, checkpoint: false };
            let (derived, fun) = ad::derive(&source, &wanted).unwrap();
            let only = Program { defs: derived.defs.into_iter().filter(|(f, _)| *f == fun).collect(), ..derived };
            all.push((format!("{mode:?} of {}", def.name()), only));
        }
    }
    assert!(all.len() >= 86, "{}", all.len());
    bounded(&all);
}

/// Protects: small random programs.
#[test]
fn small_random_programs_take_little_work() {
    let knobs = Knobs { budget: 20, dyadic: true, casts: false, ..Knobs::PLAIN };
    let program = |seed: u64| {
        let text = generate::program(seed, &knobs).text;
        (format!("seed {seed}"), read("random.ks", &text).unwrap())
    };
    bounded(&(0..300).map(program).collect::<Vec<_>>());
}

/// Protects: what stands in many loops once it has no lets is given up where it has too many parts, and not written.
#[test]
fn chains_of_samplings_are_optimized() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let mut text = "(def main (Vec Float) (x : (Vec Float) n)\n".to_string();
    for k in 0..16 {
        let before = if k == 0 { "x".to_string() } else { format!("a{}", k - 1) };
        let half = |at: &str| format!("(index (max 0 (min (sub (size {before}) 1) (div {at} 2))) {before})");
        let element = format!("(mul 0.5 (add {} {}))", half("i"), half("(add i 1)"));
        text += &format!("(let (a{k} (build n (lam (i : Integer) {element})))\n");
    }
    let program = read("samplings.ks", &format!("{text}a15{})", ")".repeat(16))).unwrap();
    for cost in [Model::Knossos, Model::Analytic] {
        let out = optimize_with(&program, &rules, &Options { cost, ..Options::standard() }).unwrap();
        assert!(out.rows[0].cost_after <= out.rows[0].cost_before);
    }
}

/// A chain of so many lets, each a call of one stencil.
fn stencils(n: usize) -> Program {
    let at = |index: &str| format!("(index {index} x)");
    let (before, after) = (at("(max 0 (sub i 1))"), at("(min (sub n 1) (add i 1))"));
    let element = format!("(add {before} (mul {} {after}))", at("i"));
    let stencil = format!("(def g (Vec Float) (x : (Vec Float) n) (build n (lam (i : Integer) {element})))");
    let mut text = format!("{stencil}\n(def main (Vec Float) (x : (Vec Float) n)\n");
    for k in 0..n {
        text += &format!("(let (v{k} (g {}))\n", if k == 0 { "x".to_string() } else { format!("v{}", k - 1) });
    }
    read("stencils.ks", &format!("{text}v{}{})", n - 1, ")".repeat(n))).unwrap()
}

/// Protects: tensors in tensors are made once for each that matters, not for each choice of those around them: a long
/// chain of calls is searched, and what a search of terms finds in it derived, with no limit of time.
#[test]
fn chains_of_stencils_are_optimized_and_derived() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let program = stencils(30);
    let defs = vec!["main".to_string()];
    let whole = Options { defs: defs.clone(), ..Options::standard() };
    let greedy = Engine::Agent(Algorithm::Greedy);
    let derived = Options { defs, engine: greedy, derive: true, ..Options::standard() };
    for options in [&whole, &derived] {
        let out = optimize_with(&program, &rules, options).unwrap();
        let row = &out.rows[0];
        assert!(row.cost_after < row.cost_before && row.unproved.is_none(), "{row:?}");
    }
}

/// Protects: so are conditions in conditions, right in each other's arms or with lets between: which variables are
/// read in one is not looked for again in all that it stands in.
#[test]
fn nested_conditions_are_optimized() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let plain =
        nest(20_000, |_, c| [format!("(if (gt x {c}) (mul x {c}) "), ")".into()], "(def main Float (x : Float) $E)");
    let with_lets = |k: usize, c: &str| {
        [
            format!("(if (gt x {c}) (let (y{k} (mul x {c})) (mul y{k} y{k})) (let (z{k} (mul x x)) (add z{k} "),
            ")))".into(),
        ]
    };
    let with_lets = nest(3_000, with_lets, "(def main Float (x : Float) $E)");
    for program in [plain, with_lets] {
        let out = optimize_with(&program, &rules, &Options::standard()).unwrap();
        assert!(out.rows[0].cost_after <= out.rows[0].cost_before);
    }
}

fn chain(n: usize, left: &str, right: &str) -> Program {
    read("chain.ks", &format!("(def main Float (x : Float) {}x{})", left.repeat(n), right.repeat(n))).unwrap()
}

/// A chain of lets, each of what `value` makes of the one before.
fn lets(ty: &str, n: usize, value: impl Fn(&str) -> String) -> Program {
    let mut text = format!("(def main {ty} (x : {ty})\n");
    let mut last = "x".to_string();
    for k in 0..n {
        text += &format!("(let (a{k} {})\n", value(&last));
        last = format!("a{k}");
    }
    read("lets.ks", &format!("{text}{last}{})", ")".repeat(n))).unwrap()
}

/// The derivative of `main`, and how many terms were made for it.
fn derived(program: &Program, mode: Mode) -> usize {
    let fun = program.named("main")[0].fun;
    let wanted = Wanted { fun, mode, wrt: vec![true], value: false, checkpoint: false };
    let (derived, _) = ad::derive(program, &wanted).unwrap();
    types::verify::verify(&derived).unwrap();
    derived.terms.len() - program.terms.len()
}

/// Protects: derivatives of deep terms are made in time linear in their depth, whichever operand is deep.
#[test]
fn derivatives_of_deep_terms_are_linear() {
    for (left, right) in [("(add 1.0 ", ")"), ("(add ", " 1.0)"), ("(mul 1.5 ", ")"), ("(sin ", ")")] {
        for mode in [Mode::Forward, Mode::Reverse] {
            let [one, two] = [2000, 4000].map(|n| derived(&chain(n, left, right), mode));
            assert!(two <= 2 * one + 100, "{left}: {one} terms, then {two}");
            derived(&chain(if left == "(add 1.0 " { 200_000 } else { 50_000 }, left, right), mode);
        }
    }
}

/// Protects: so are those of long chains of lets, of numbers and of tensors.
#[test]
fn derivatives_of_many_lets_are_linear() {
    let scaled = |a: &str| format!("(mul 1.5 {a})");
    let squared = |a: &str| format!("(mul {a} (sin {a}))");
    let tensor = |a: &str| format!("(build (size x) (lam (i : Integer) (mul 1.5 (index i {a}))))");
    for mode in [Mode::Forward, Mode::Reverse] {
        derived(&lets("Float", 10_000, scaled), mode);
        derived(&lets("Float", 3_000, squared), mode);
        derived(&lets("(Vec Float)", 1_000, tensor), mode);
    }
}

/// Protects: so are those of long chains of conditions, right in each other's arms or with lets between.
#[test]
fn derivatives_of_many_conditions_are_linear() {
    let program = |n: usize, between: &str, after: &str| {
        let arms: String = (0..n).map(|k| format!("(if (gt x {k}.0) (mul x {k}.5) {between}")).collect();
        let text = format!("(def main Float (x : Float) {arms}x{})", format!("){after}").repeat(n));
        read("conditions.ks", &text).unwrap()
    };
    for mode in [Mode::Forward, Mode::Reverse] {
        let [one, two] = [1000, 2000].map(|n| derived(&program(n, "", ""), mode));
        assert!(two <= 2 * one + 100, "{one} terms, then {two}");
        derived(&program(10_000, "", ""), mode);
        derived(&program(200, "(let (y (mul x x)) ", ")"), mode);
    }
}

/// A nest of conditions, each level by its number and what is within.
fn nest(n: usize, level: impl Fn(usize, &str) -> [String; 2], outside: &str) -> Program {
    let levels: Vec<[String; 2]> = (1..=n).map(|k| level(k, &format!("{}.{}", k / 10, k % 10))).collect();
    let (left, right): (String, String) =
        (levels.iter().map(|l| l[0].as_str()).collect(), levels.iter().rev().map(|l| l[1].as_str()).collect());
    read("nest.ks", &outside.replace("$E", &format!("{left}x{right}"))).unwrap()
}

/// Protects: so are those of conditions with operations between them, each of which needs the value of all within it: in
/// one arm or both, with lets between, by earlier values, in loops.
#[test]
fn derivatives_of_nested_conditions_are_linear() {
    type Level = fn(usize, &str) -> [String; 2];
    let levels: [Level; 6] = [
        |_, c| [format!("(if (gt x {c}) (mul x "), format!(") (add x {c}))")],
        |_, c| [format!("(add (if (gt x {c}) "), format!(" (mul x {c})) x)")],
        |_, c| [format!("(if (lt x {c}) (mul x {c}) (sin (mul x (cos "), "))))".into()],
        |k, c| [format!("(if (gt x {c}) (let (y{k} (mul x {c})) (mul y{k} "), format!(")) (add x {c}))")],
        |k, c| [format!("(let (y{k} (mul x {c})) (if (gt y{k} 1.5) (mul y{k} "), format!(") (add x {c})))")],
        |_, c| [format!("(if (gt x {c}) (add (mul x "), format!(") (if (gt x 2.5) (sin x) x)) (mul {c} x))")],
    ];
    let plain = "(def main Float (x : Float) $E)";
    let summed = "(def main Float (v : (Vec Float)) (sumbuild (size v) (lam (i : Integer) (let (x (index i v)) $E))))";
    for (k, level) in levels.into_iter().enumerate() {
        for outside in [plain, summed] {
            for mode in [Mode::Forward, Mode::Reverse] {
                let [one, two] = [200, 400].map(|n| derived(&nest(n, level, outside), mode));
                assert!(two <= 2 * one + 100, "nest {k}, {mode:?}: {one} terms, then {two}");
            }
        }
        for mode in [Mode::Forward, Mode::Reverse] {
            derived(&nest(5_000, level, plain), mode);
        }
    }
}

/// Protects: so are those of conditions in both arms of others, by the size of the tree.
#[test]
fn derivatives_of_trees_of_conditions_are_linear() {
    fn tree(depth: usize, number: &mut usize) -> String {
        *number += 1;
        let c = format!("{}.{}", *number / 10, *number % 10);
        if depth == 0 {
            return format!("(mul x {c})");
        }
        let arms = [tree(depth - 1, number), tree(depth - 1, number)];
        format!("(if (gt x {c}) (mul x {}) (sin {}))", arms[0], arms[1])
    }
    let program = |depth| read("tree.ks", &format!("(def main Float (x : Float) {})", tree(depth, &mut 0))).unwrap();
    for mode in [Mode::Forward, Mode::Reverse] {
        let [one, two] = [7, 8].map(|depth| derived(&program(depth), mode));
        assert!(two <= 2 * one + one / 20 + 100, "{mode:?}: {one} terms, then {two}");
    }
}

/// Protects: so are those of wide tuples, whose parts all speak of one variable.
#[test]
fn derivatives_of_wide_tuples_are_linear() {
    let program = |n: usize| {
        let parts: String = (0..n).map(|k| format!(" (mul x {k}.5)")).collect();
        let text = format!("(def main (Tuple{}) (x : Float) (tuple{parts}))", " Float".repeat(n));
        read("wide.ks", &text).unwrap()
    };
    for mode in [Mode::Forward, Mode::Reverse] {
        let [one, two] = [1000, 2000].map(|n| derived(&program(n), mode));
        assert!(two <= 2 * one + 100, "{one} terms, then {two}");
        derived(&program(20_000), mode);
    }
}

/// Protects: a body of many lets is rewritten by regions, in space that is linear, whatever its lets bind.
#[test]
fn many_lets_are_optimized_in_linear_space() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let tensor = |a: &str| format!("(build (size x) (lam (i : Integer) (mul 1.5 (index i {a}))))");
    let summed = |a: &str| format!("(sub (mul 1.5 {a}) (sumbuild 3 (lam (i : Integer) (mul {a} (to_float i)))))");
    for program in [lets("(Vec Float)", 10_000, tensor), lets("Float", 10_000, summed)] {
        let out = optimize_with(&program, &rules, &Options { cost: Model::Knossos, ..Options::standard() }).unwrap();
        assert!(out.rows[0].cost_after <= out.rows[0].cost_before);
        assert!(!print::program(&out.program).is_empty());
    }
}

/// The row of the one definition of a program, optimized with e-graphs so small that it has many regions.
fn optimized(program: &Program, rules: &[Compiled<'_>]) -> Row {
    let options = Options { max_nodes: 1_000, regions: 500, threads: 1, ..Options::standard() };
    optimize_with(program, rules, &options).unwrap().rows.into_iter().next().unwrap()
}

/// Protects: long rows of lets that repeat themselves are cut where they repeat themselves, so that what is searched does
/// not grow with them; whatever is read from far away, what nothing reads any more stays in no region, and so most of
/// them become one loop.
#[test]
fn repeated_lets_are_searched_once() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let tensor = |a: &str| format!("(build (size x) (lam (i : Integer) (mul 1.5 (index i {a}))))");
    let mixed = |a: &str| {
        let step = format!("(a (add {a} 1.5)) (b (mul a 2.0)) (c (sin b)) (d (sub c b)) (e (if (gt d {a}) c d))");
        format!("(let ({step}) (div (add e {a}) 3.0))")
    };
    for (ty, value) in [("(Vec Float)", &tensor as &dyn Fn(&str) -> String), ("Float", &mixed)] {
        let [few, many] = [500, 2_000].map(|n| optimized(&lets(ty, n, value), &rules));
        assert!(few.looked > 0 && many.looked <= few.looked * 3 / 2, "{ty}: {} and {}", few.looked, many.looked);
        assert!(many.cost_after < many.cost_before, "{ty}");
        assert!(ty == "Float" || many.cost_after < many.cost_before / 10.0, "{}", many.cost_after);
    }
}

/// A body of random lets, no two of them equal, all of which are read.
fn different(n: usize) -> Program {
    let mut rng = StdRng::seed_from_u64(7);
    let mut text = "(def main Float ((x : Float) (y : Float))\n".to_string();
    let (mut last, mut total) = ("x".to_string(), "y".to_string());
    for k in 0..n {
        let other = if k < 3 { "y".to_string() } else { format!("a{}", k - rng.random_range(2..=k.min(9))) };
        let value = match rng.random_range(0..6) {
            0 => format!("(add {last} {other})"),
            1 => format!("(mul {last} {k}.5)"),
            2 => format!("(sin {last})"),
            3 => format!("(sub {last} {other})"),
            4 => format!("(if (gt {last} {other}) {last} (mul {other} x))"),
            _ => format!("(mul {last} {other})"),
        };
        text += &format!("(let (a{k} {value}) (let (s{k} (add {total} (mul a{k} {k}.25)))\n");
        (last, total) = (format!("a{k}"), format!("s{k}"));
    }
    read("different.ks", &format!("{text}{total}{})", ")".repeat(2 * n))).unwrap()
}

/// Protects: what is searched of lets that are all different grows as they do, and no faster.
#[test]
fn different_lets_are_searched_in_linear_work() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let [one, two] = [500, 1_000].map(|n| optimized(&different(n), &rules));
    assert!(one.looked > 0 && two.looked <= one.looked * 9 / 4, "{} and {}", one.looked, two.looked);
    assert!(two.cost_after < two.cost_before, "{}", two.cost_after);
}

/// Protects: what nothing reads is searched nowhere, however far away it was made and whatever reads it that nothing
/// reads.
#[test]
fn unread_lets_are_not_searched() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let program = |unread: usize| {
        let text = "(def main Float (x : Float)\n".to_string();
        let dead: String = (0..unread)
            .map(|k| format!("(let (d{k} (sin (add x {})))\n", if k == 0 { "x".into() } else { format!("d{}", k - 1) }))
            .collect();
        let lives: String = (0..600)
            .map(|k| {
                format!("(let (a{k} (sin (mul {}.5 {})))\n", k, if k == 0 { "x".into() } else { format!("a{}", k - 1) })
            })
            .collect();
        read("unread.ks", &format!("{text}{dead}{lives}a599{})", ")".repeat(unread + 600))).unwrap()
    };
    let [none, many] = [0, 2_000].map(|unread| optimized(&program(unread), &rules));
    assert!(none.looked > 0 && many.looked <= none.looked, "{} and {}", none.looked, many.looked);
    assert!((many.cost_after - none.cost_after).abs() < 1e-6, "{} and {}", many.cost_after, none.cost_after);
}
