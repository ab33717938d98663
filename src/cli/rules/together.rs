//! `daedal rules check --set`: the rules together become a verdict.

use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::rewrite::audit::{Disagreement, audit};
use crate::rules::{Level, Library, Rule};
use rayon::prelude::*;
use serde_json::json;

/// Saturates random programs with all rules, and reports the first two members that disagree.
pub fn together(library: &Library, seed: u64, programs: u64, as_json: bool, world: &mut World<'_>) -> Result<()> {
    let rules: Vec<&Rule> = library.rules.iter().collect();
    let start = seed.wrapping_mul(1_000_003);
    for level in [Level::Real, Level::Exact] {
        let run = |k: u64| audit(&rules, level, start.wrapping_add(k)).transpose();
        let found = (0..programs).into_par_iter().filter_map(run).find_first(|_| true).transpose()?;
        if let Some(d) = found {
            report(&d, level, as_json, world)?;
            return Err(Diagnostic::user(format!("the rules together contradict each other at level {level}")));
        }
    }
    let n = rules.len();
    match as_json {
        true => world.say(&json!({ "rules": n, "programs": 2 * programs, "disagreement": null }).to_string()),
        false => world.say(&format!("{n} rules agree with each other on {} random programs", 2 * programs)),
    }
}

fn report(d: &Disagreement, level: Level, as_json: bool, world: &mut World<'_>) -> Result<()> {
    if as_json {
        let found = json!({ "level": level.to_string(), "rules": d.rules, "what": d.what, "program": d.program, "arguments": d.words });
        return world.say(&json!({ "disagreement": found }).to_string());
    }
    world.say(&format!("{} at level {level}; needed for it: {}", d.what, d.rules.join(", ")))?;
    d.program.lines().try_for_each(|l| world.say(&format!("  {l}")))?;
    match d.words.is_empty() {
        true => Ok(()),
        false => world.say(&format!("  ; at {}", d.words.join(" "))),
    }
}
