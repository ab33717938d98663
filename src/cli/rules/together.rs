//! `daedal rules check --set`: the rules together become a verdict.

use super::chosen::Chosen;
use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::rewrite::audit::{Audited, Disagreement, audit};
use crate::rewrite::egraph::pattern::compile;
use crate::rules::{Level, Rule};
use crate::run::Interrupt;
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// Programs for a rule that did not fire before it is given up.
const TRIES: u64 = 12;
/// Programs between two looks at what they showed.
const AT_ONCE: u64 = 32;

/// What programs of one level showed.
struct Shown {
    programs: u64,
    fired: BTreeSet<String>,
    disagreement: Option<Disagreement>,
    interrupted: bool,
}

/// Saturates random programs with all rules, and reports the first two members that disagree, and rules
/// of which the programs say nothing.
pub fn together(chosen: &Chosen, seed: u64, programs: u64, as_json: bool, world: &mut World<'_>) -> Result<()> {
    let rules: Vec<&Rule> = chosen.library.rules.iter().collect();
    // In programs without lets, rules about them have nothing to do.
    let (asked, idle): (Vec<&Rule>, Vec<&Rule>) =
        chosen.asked().partition(|r| compile(r).is_ok_and(|compiled| compiled.is_some()));
    let (mut count, mut unchecked, mut interrupted) = (0, vec![], false);
    for level in [Level::Real, Level::Exact] {
        let own: Vec<&Rule> = asked.iter().copied().filter(|r| r.level <= level).collect();
        let interrupt = world.interrupt;
        let shown = interrupt.during(|| shown(&rules, &own, level, seed, programs, interrupt))?;
        if let Some(d) = shown.disagreement {
            report(&d, level, as_json, world)?;
            return Err(Diagnostic::user(format!("the rules together contradict each other at level {level}")));
        }
        count += shown.programs;
        let silent = own.iter().filter(|r| r.level == level && !shown.fired.contains(&r.name));
        unchecked.extend(silent.map(|r| r.name.clone()));
        interrupted |= shown.interrupted;
    }
    let names = |each: &[&Rule]| each.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    if as_json {
        let object = json!({
            "rules": rules.len(), "asked": asked.len() + idle.len(), "programs": count, "disagreement": null,
            "unchecked": unchecked, "idle": names(&idle),
        });
        world.say(&object.to_string())?;
    } else {
        unchecked.iter().try_for_each(|name| world.say(&format!("{name} never fired, and is unchecked")))?;
        if !idle.is_empty() {
            world.say(&format!("in programs without lets these have nothing to do: {}", names(&idle).join(", ")))?;
        }
        let checked = asked.len() - unchecked.len();
        let among = if chosen.library.rules.len() == checked { "with each other" } else { "with all rules" };
        let fired =
            if checked == 1 { "1 rule fired and agrees".into() } else { format!("{checked} rules fired and agree") };
        world.say(&format!("{fired} {among}, on {count} random programs"))?;
    }
    match unchecked.len() {
        n if interrupted => Err(Diagnostic::limit(format!("interrupted: {n} rules are unchecked"))),
        0 if asked.is_empty() => Err(Diagnostic::user("no rule is left to check")),
        0 => Ok(()),
        1 => Err(Diagnostic::user("1 rule is unchecked: it fired in no program that could be evaluated")),
        n => {
            Err(Diagnostic::user(format!("{n} rules are unchecked: they fired in no program that could be evaluated")))
        }
    }
}

/// Programs that begin with the left sides of some rules in turn, and then more of those that did not fire.
fn shown(
    rules: &[&Rule],
    own: &[&Rule],
    level: Level,
    seed: u64,
    programs: u64,
    interrupt: &Interrupt,
) -> Result<Shown> {
    let mut out = Shown { programs: 0, fired: BTreeSet::new(), disagreement: None, interrupted: false };
    if own.is_empty() {
        return Ok(out);
    }
    let mut from = seed.wrapping_mul(1_000_003);
    let mut turn: Vec<&Rule> = own.to_vec();
    let mut n = programs.max(own.len() as u64);
    for _ in 0..=TRIES {
        let run = |k: u64| audit(rules, turn[(k % turn.len() as u64) as usize], level, from.wrapping_add(k));
        let mut done = 0;
        while done < n && out.disagreement.is_none() && !interrupt.raised() {
            let next = n.min(done + AT_ONCE);
            let all: Vec<Audited> = (done..next).into_par_iter().map(run).collect::<Result<_>>()?;
            done = next;
            for one in all {
                out.fired.extend(one.fired);
                out.disagreement = out.disagreement.or(one.disagreement);
            }
        }
        (out.programs, from) = (out.programs + done, from.wrapping_add(done));
        turn.retain(|r| r.level == level && !out.fired.contains(&r.name));
        n = turn.len() as u64;
        out.interrupted = n > 0 && interrupt.raised();
        if n == 0 || out.interrupted || out.disagreement.is_some() {
            break;
        }
    }
    Ok(out)
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
