//! Bodies of any size are optimized by regions: they mean the same, equal regions are searched once, and nothing is left
//! alone because it is large.

use crate::common::generate::{self, Knobs};
use crate::common::random::compare;
use crate::common::{arguments, losses, read};
use daedal::ad::{self, Mode, Wanted};
use daedal::cost::Model;
use daedal::eval::Value;
use daedal::ir::{Program, Ty, print};
use daedal::pipeline::{Options, Row, optimize, optimize_with, prepare};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rewrite::inline::{flatten, recursive};
use daedal::rules::{Level, Library};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// E-graphs so small that regions have a dozen nodes, and whole definitions no more than thirty.
const SMALL: usize = 300;
const WHOLE: usize = SMALL / 10;

fn options(cost: Model, float: Level) -> Options<'static> {
    Options { cost, float, max_nodes: SMALL, regions: WHOLE, threads: 1, ..Options::standard() }
}

/// Whether a definition is too large to be searched as a whole.
fn large(program: &Program, name: &str) -> bool {
    let def = program.named(name)[0];
    let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let body = (&program.terms, def.term().unwrap());
    let flat = flatten(program, &recursive(program), body, &tys, 100_000);
    flat.is_none_or(|flat| flat.terms.reachable(flat.id).len() > WHOLE)
}

/// What is wrong with an optimized program, and whether a definition was searched by regions, and came out cheaper.
fn checked(
    (text, name): (&str, &str),
    rules: &[Compiled<'_>],
    (cost, float): (Model, Level),
    calls: &[Vec<Value>],
) -> Result<(bool, bool), String> {
    let before = read("random.ks", text).map_err(|d| d.render())?;
    let after = optimize_with(&before, rules, &options(cost, float)).map_err(|d| format!("{}\n{text}", d.render()))?;
    for args in calls {
        let of = |e: String| format!("{e}\n{text}\n{}\n{args:?}", print::program(&after.program));
        compare(&before, &after.program, name, args, float).map_err(of)?;
    }
    let row = after.rows.iter().find(|r| r.name == name).unwrap();
    Ok((large(&before, name), row.cost_after < row.cost_before - 1e-6))
}

/// Protects: what is known of variables in scope is true wherever a region stands: sizes of tables, extents of loops,
/// integers, what may fail, and what may have no value; with sizes that are empty, negative or computed.
#[test]
fn random_programs_mean_the_same_by_regions() {
    let library = Library::shipped().unwrap();
    let rules = [Level::Exact, Level::Real].map(|level| prepare(&library, level).unwrap());
    let one = |seed: u64| {
        let knobs = Knobs { budget: 90, dyadic: seed % 2 == 1, failing: !seed.is_multiple_of(5), ..Knobs::PLAIN };
        let made = generate::program(seed, &knobs);
        let program = read("random.ks", &made.text).unwrap();
        let args = vec![arguments(program.named("main")[0], &made.args).unwrap()];
        let float = if seed % 2 == 1 { Level::Real } else { Level::Exact };
        let cost = if seed.is_multiple_of(3) { Model::Knossos } else { Model::Analytic };
        checked((&made.text, "main"), &rules[(seed % 2) as usize], (cost, float), &args)
            .map_err(|e| format!("seed {seed}: {e}"))
    };
    assert_all((0..400).into_par_iter().map(one).collect(), 40);
}

/// A long row of random lets of numbers and tensors. They read what stands near, or hundreds of lets away; what nothing
/// reads may fail.
fn long(seed: u64) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut text = "(def main Float ((x : Float) (v : (Vec Float) n))\n".to_string();
    let (mut numbers, mut tensors) = (vec!["x".to_string()], vec!["v".to_string()]);
    let count = rng.random_range(120..200);
    for k in 0..count {
        let mut one = |all: &[String]| match rng.random_range(0..8) {
            0 => all[0].clone(),
            near => all[all.len().saturating_sub(near)].clone(),
        };
        let (a, b, t) = (one(&numbers), one(&numbers), one(&tensors));
        let value = match rng.random_range(0..9) {
            0 | 1 => format!("(add {a} {b})"),
            2 => format!("(sub {a} {b})"),
            3 => format!("(mul 0.5 {a})"),
            4 => format!("(if (gt {a} {b}) {a} (mul 0.25 {b}))"),
            5 => format!("(max {a} (min 8.0 {b}))"),
            6 => format!("(index 1 {t})"),
            7 => format!("(build n (lam (i : Integer) (mul 0.5 (add (index i {t}) {a}))))"),
            _ => format!("(build n (lam (i : Integer) (sub (index i {t}) (index i v))))"),
        };
        let (all, name) =
            if value.contains("build") { (&mut tensors, format!("t{k}")) } else { (&mut numbers, format!("a{k}")) };
        text += &format!("  (let ({name} {value})\n");
        all.push(name);
    }
    let (a, t) = (&numbers[numbers.len() - 1], &tensors[tensors.len() - 1]);
    format!("{text}  (add {a} (sum {t})){})", ")".repeat(count))
}

/// Protects: the same of long rows of lets, wherever they are cut.
#[test]
fn long_rows_of_lets_mean_the_same_by_regions() {
    let library = Library::shipped().unwrap();
    let rules = [Level::Exact, Level::Real].map(|level| prepare(&library, level).unwrap());
    let one = |seed: u64| {
        let (text, which) = (long(seed), (seed % 2) as usize);
        let float = [Level::Exact, Level::Real][which];
        let program = read("long.ks", &text).map_err(|d| d.render())?;
        let args = |words: [&str; 2]| arguments(program.named("main")[0], &words.map(String::from)).unwrap();
        let calls = [args(["0.5", "[0.5,-0.25,0.75]"]), args(["-1.25", "[2.0]"]), args(["3.0", "[]"])];
        checked((&text, "main"), &rules[which], (Model::Analytic, float), &calls)
            .map_err(|e| format!("seed {seed}: {e}"))
    };
    assert_all((0..80).into_par_iter().map(one).collect(), 60);
}

/// Protects: what becomes of regions does not depend on how many threads search them.
#[test]
fn one_thread_and_two_find_the_same_by_regions() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    for seed in 100..106 {
        let program = read("long.ks", &long(seed)).unwrap();
        let [one, two] = [1, 2].map(|threads| {
            let options = Options { threads, ..options(Model::Analytic, Level::Real) };
            let out = optimize_with(&program, &rules, &options).unwrap();
            let rows: Vec<_> = out.rows.into_iter().map(|r| (r.cost_after, r.fired, r.looked)).collect();
            (print::program(&out.program), rows)
        });
        assert!(large(&program, "main"));
        assert!(one == two, "seed {seed}");
    }
}

/// Protects: the same of gradients of random losses, whose bodies are mostly lets.
#[test]
fn gradients_of_random_losses_mean_the_same_by_regions() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let one = |seed: u64| {
        let loss = read("loss.ks", &losses::loss(seed, 24, false)).map_err(|d| d.render())?;
        let fun = loss.named("main")[0].fun;
        let wrt = vec![true, true, true, false, true];
        let wanted = Wanted { fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false };
        let (program, fun) = ad::derive(&loss, &wanted).map_err(|d| d.render())?;
        let def = &program.defs[&fun];
        let args = |words: [&str; 5]| {
            let words: Vec<String> = words.iter().chain(&["1.0"]).map(|w| w.to_string()).collect();
            arguments(def, &words).unwrap()
        };
        let calls = [
            args(["[0.5,-0.25,0.75]", "[0.3,0.6]", "[[0.1,0.2],[0.3,-0.4],[0.5,0.6]]", "[0,2,1]", "0.7"]),
            args(["[0.5]", "[0.3]", "[[0.1]]", "[0]", "-0.2"]),
        ];
        let text = print::program(&program);
        let how = (Model::Analytic, Level::Real);
        checked((&text, def.name()), &rules, how, &calls).map_err(|e| format!("seed {seed}: {e}"))
    };
    assert_all((0..150).into_par_iter().map(one).collect(), 60);
}

fn assert_all(results: Vec<Result<(bool, bool), String>>, least: usize) {
    let wrong: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    let few: Vec<&str> = wrong.iter().take(5).map(|w| w.as_str()).collect();
    assert!(wrong.is_empty(), "{} are wrong\n{}", wrong.len(), few.join("\n\n"));
    let cheaper = results.iter().flatten().filter(|r| **r == (true, true)).count();
    assert!(cheaper >= least, "only {cheaper} programs were searched by regions and became cheaper");
}

/// A network of so many layers that are alike, each of which multiplies with its matrix twice.
fn layers(count: usize) -> String {
    let mut text = "(def net Float ((x : (Vec Float) n) (a : (Tensor 2 Float) (n n)))\n".to_string();
    let mut input = "x".to_string();
    for layer in 0..count {
        let row = |a: &str, b: &str| format!("(sumbuild (size x) (lam (j : Integer) (mul {a} {b})))");
        let (weight, value) = ("(index (tuple i j) a)".to_string(), format!("(index j {input})"));
        let twice = format!("(add {} {})", row(&weight, &value), row(&value, &weight));
        text += &format!("  (let (h{layer} (build (size x) (lam (i : Integer) (tanh {twice}))))\n");
        input = format!("h{layer}");
    }
    text + &format!("  (sum {input})") + &")".repeat(count) + ")\n"
}

fn row(text: &str, options: &Options<'_>) -> Row {
    let program = read("layers.ks", text).unwrap();
    optimize(&program, options).unwrap().rows.into_iter().next().unwrap()
}

/// Protects: equal regions are searched once, so that the work of a search does not grow with their number; and each
/// of them gains what one alone does.
#[test]
fn equal_regions_are_searched_once() {
    let options = Options { max_nodes: 1_000, ..options(Model::Analytic, Level::Real) };
    let (few, many) = (row(&layers(20), &options), row(&layers(80), &options));
    assert_eq!(few.skipped, None);
    assert_eq!(many.skipped, None);
    assert!(few.looked > 0 && many.looked < few.looked * 3 / 2, "{} and {}", few.looked, many.looked);
    let gain = |row: &Row| row.cost_after / row.cost_before;
    assert!(gain(&few) < 0.6 && gain(&many) < 0.6, "{} and {}", gain(&few), gain(&many));
}

/// Protects: no size is too large: a body of 30,000 nodes, which no e-graph holds, is searched.
#[test]
fn no_body_is_left_alone_because_it_is_large() {
    let standard = Options { threads: 1, ..Options::standard() };
    let row = row(&layers(1_000), &standard);
    assert_eq!(row.skipped, None);
    assert!(row.cost_after < row.cost_before * 0.6, "{} to {}", row.cost_before, row.cost_after);
}
