//! The optimizer at length: random programs, and extraction beside the cheapest choice.
//!
//! `cargo bench --bench optimize -- random 100000` optimizes so many random programs, half of them at
//! each number level, by every engine in turn, and checks that each means the same, costs no more by a second
//! opinion from its text, and has a derivation that replays; a third word is the first seed. `-- extraction PLACES
//! BRANCHES` prints for each definition of the corpus what extraction finds by default, what the exact
//! search finds with that effort, and whether that is proved.
//!
//! Exit code 1 where a program is wrong.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::corpus;
use common::egraphs::{quality, saturated};
use common::generate::Knobs;
use common::random::{ENGINES, Trial};
use daedal::pipeline::prepare;
use daedal::rewrite::egraph::exact::Effort;
use daedal::rules::{Level, Library};
use rayon::prelude::*;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => ExitCode::from(u8::from(!random(1000, FIRST))),
        ["random", n] => ExitCode::from(u8::from(!random(n.parse().unwrap(), FIRST))),
        ["random", n, first] => ExitCode::from(u8::from(!random(n.parse().unwrap(), first.parse().unwrap()))),
        ["extraction", places, branches] => {
            extraction(Effort { places: places.parse().unwrap(), branches: branches.parse().unwrap() });
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("expected `random COUNT [SEED]` or `extraction PLACES BRANCHES`");
            ExitCode::from(2)
        }
    }
}

/// Seeds that the tests do not use.
const FIRST: u64 = 1_000_000;

/// Checks random programs; whether all are right.
fn random(count: u64, first: u64) -> bool {
    let library = Library::shipped().unwrap();
    let from = Instant::now();
    let mut good = true;
    for float in [Level::Exact, Level::Real] {
        let rules = prepare(&library, float).unwrap();
        let knobs = Knobs { dyadic: float == Level::Real, ..Knobs::PLAIN };
        let trial = Trial { library: &library, rules: &rules, float, knobs, engines: &ENGINES, derive: true };
        let (mut cheaper, mut derived, mut given_up, mut failed) = (0, 0, 0, 0);
        let seeds: Vec<u64> = (first..first + count / 2).collect();
        for part in seeds.chunks(5000) {
            let results: Vec<_> = part.par_iter().map(|seed| trial.check(*seed)).collect();
            for result in &results {
                match result {
                    Ok(checked) => {
                        cheaper += usize::from(checked.cheaper);
                        derived += usize::from(checked.steps > 0);
                        given_up += checked.given_up;
                    }
                    Err(what) => {
                        failed += 1;
                        println!("{what}\n");
                    }
                }
            }
            eprintln!(
                "{float}: {} done, {failed} failed, {:.0} s",
                part.last().unwrap() - first + 1,
                from.elapsed().as_secs_f64()
            );
        }
        println!(
            "{float}: {} programs, {cheaper} cheaper, {derived} with steps that replay, {given_up} results not used \
             for want of a proof, {failed} failed",
            seeds.len()
        );
        good &= failed == 0;
    }
    good
}

/// Prints extraction by default beside the exact one.
fn extraction(effort: Effort) {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    let cases = corpus();
    let defs: Vec<_> = cases.iter().flat_map(|c| c.program.defs.values().map(move |d| (c, d))).collect();
    let ratios: Vec<Option<f64>> = defs
        .par_iter()
        .filter_map(|(case, def)| {
            let (mut g, root) = saturated(&case.program, def, &rules, 3000)?;
            let q = quality(&case.program, def, &mut g, root, effort)?;
            let name = format!("{}:{}", case.name, def.name());
            let proved = if q.proved { "proved" } else { "" };
            println!(
                "{name:44} {:14.1} {:14.1} {:7.2} s {:7.2} s {proved}",
                q.found, q.least, q.seconds.0, q.seconds.1
            );
            Some(q.ratio())
        })
        .collect();
    let known: Vec<f64> = ratios.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    println!("{} of {} proved, there {mean:.5} times the cheapest on average", known.len(), ratios.len());
}
