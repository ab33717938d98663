//! Calls of definitions, for laws that hold of all: the run lines of the corpus, and random programs.

use super::generate::{self, Knobs};
use super::{arguments, corpus, read};
use daedal::eval::Value;
use daedal::ir::{Body, Def, Program};
use rayon::prelude::*;

/// A call of a definition.
pub struct Call<'a> {
    pub name: &'a str,
    pub program: &'a Program,
    pub def: &'a Def,
    pub args: &'a [Value],
    /// What further random choices follow from.
    pub seed: u64,
}

/// Of how many calls of the corpus, and of how many of so many random programs with one of these words in their text, a law
/// was asked; `law` says whether it speaks of a call.
pub fn asked(seeds: u64, words: &[&str], law: &(dyn Fn(&Call<'_>) -> bool + Sync)) -> [usize; 2] {
    let cases = corpus();
    let of_corpus = cases
        .par_iter()
        .flat_map_iter(|case| case.runs.iter().map(move |run| (case, run)))
        .filter(|(case, run)| {
            let defs = case.program.named(&run.def);
            let Some(def) = defs.iter().find(|d| matches!(d.body, Body::Term(_))) else { return false };
            let Ok(args) = arguments(def, &run.args) else { return false };
            law(&Call { name: &case.name, program: &case.program, def, args: &args, seed: 7 })
        })
        .count();
    let random = (0..seeds)
        .into_par_iter()
        .filter(|seed| {
            let (dyadic, corners) = (true, seed % 2 == 1);
            let knobs = Knobs { budget: 30, dyadic, failing: false, casts: false, corners, ..Knobs::PLAIN };
            let made = generate::program(*seed, &knobs);
            if !words.iter().any(|w| made.text.contains(w)) {
                return false;
            }
            let program = read("random", &made.text).unwrap_or_else(|d| panic!("seed {seed}: {}", d.render()));
            let def = program.named("main")[0];
            let args = arguments(def, &made.args).unwrap_or_else(|d| panic!("seed {seed}: {d}"));
            law(&Call { name: &format!("seed {seed}"), program: &program, def, args: &args, seed: *seed })
        })
        .count();
    println!("{of_corpus} of the corpus, {random} random");
    [of_corpus, random]
}
