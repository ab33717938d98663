//! `daedal rules check --mutate`: changed rules become a score of the check itself.

use super::proved::{Proof, proof};
use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::rules::Library;
use crate::rules::check::mutate::{Mutant, mutants};
use crate::rules::check::{Effort, check_unless};
use crate::run::solver::installed;
use rayon::prelude::*;
use serde_json::json;

/// What became of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Found wrong.
    Killed,
    /// Says the same as its rule, by symmetry.
    Same,
    /// Proved to be a true rule.
    Proved,
    /// Found wrong only with ten times the work, or refuted by the solver: missed.
    Missed,
    /// Never found wrong: as far as is known, a true rule.
    True,
}

/// The least share of wrong rules that must be noticed, in percent.
const LEAST: usize = 95;

/// Changes every rule, and counts what the check notices.
pub fn mutated(library: &Library, effort: &Effort, as_json: bool, world: &mut World<'_>) -> Result<()> {
    let all: Vec<Mutant> = library.rules.iter().flat_map(mutants).collect();
    let solver = installed();
    let line = world.progress(as_json);
    line.all(all.len());
    let interrupt = world.interrupt;
    let judged = |m: &Mutant| {
        line.doing(&m.rule.name);
        let fate = fate(m, effort, solver, &|| interrupt.raised())?;
        line.done();
        Some(fate)
    };
    let done: Vec<(&Mutant, Fate)> =
        interrupt.during(|| all.par_iter().filter_map(|m| Some((m, judged(m)?))).collect());
    line.clear();
    let fates: Vec<Fate> = done.iter().map(|(_, fate)| *fate).collect();
    let count = |fate: Fate| fates.iter().filter(|f| **f == fate).count();
    let (killed, missed, left) = (count(Fate::Killed), count(Fate::Missed), count(Fate::True));
    let (same, proved) = (count(Fate::Same), count(Fate::Proved));
    let percent = 100 * killed / (killed + missed).max(1);
    let survivors: Vec<(&Mutant, Fate)> =
        done.iter().copied().filter(|(_, f)| matches!(f, Fate::Missed | Fate::True)).collect();
    if as_json {
        let each: Vec<_> = survivors
            .iter()
            .map(|(m, f)| json!({ "rule": m.rule.name, "change": m.change, "missed": *f == Fate::Missed }))
            .collect();
        let object = json!({
            "mutants": done.len(), "killed": killed, "missed": missed, "same": same, "proved": proved,
            "not_found_wrong": left,
            "score": percent, "survivors": each,
        });
        world.say(&object.to_string())?;
    } else {
        for (m, f) in &survivors {
            let what = if *f == Fate::Missed { "missed" } else { "not found wrong with 10 times the work" };
            world.say(&format!("{}: {}: {what}", m.rule.name, m.change))?;
        }
        world.say(&format!(
            "{} mutants: {killed} found wrong, {missed} missed, {same} say the same as their rule, {proved} proved true, {left} never found wrong",
            done.len()
        ))?;
        world.say(&format!("score {percent}%"))?;
    }
    match percent >= LEAST {
        _ if done.len() < all.len() => {
            let message = format!("interrupted: {} of {} changed rules were checked", done.len(), all.len());
            Err(Diagnostic::limit(message))
        }
        true => Ok(()),
        false => Err(Diagnostic::user(format!("the check notices {percent}% of the wrong rules, fewer than {LEAST}%"))),
    }
}

/// What becomes of a changed rule; nothing where it is stopped before that is known.
fn fate(mutant: &Mutant, effort: &Effort, solver: bool, stop: &dyn Fn() -> bool) -> Option<Fate> {
    if mutant.same {
        return Some(Fate::Same);
    }
    let wrong = |e: &Effort| {
        let v = check_unless(&mutant.rule, e, stop)?;
        Some(v.counterexample.is_some() || !v.exercised())
    };
    if wrong(effort)? {
        return Some(Fate::Killed);
    }
    match if solver { proof(&mutant.rule) } else { Ok(None) } {
        Ok(Some(Proof::Proved)) => return Some(Fate::Proved),
        Ok(Some(Proof::Refuted)) => return Some(Fate::Missed),
        Ok(Some(Proof::Unknown | Proof::Unsaid) | None) | Err(_) => {}
    }
    let deep = Effort { seed: effort.seed.wrapping_add(1), ..effort.times(10) };
    Some(if wrong(&deep)? { Fate::Missed } else { Fate::True })
}
