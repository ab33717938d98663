//! `daedal rules check`: each rule becomes a verdict, and what is wrong a program that shows it.

use super::chosen::Chosen;
use super::{mutated, proved, together};
use crate::cli::World;
use crate::cli::look::Ink;
use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::rules::Rule;
use crate::rules::check::number::DIGITS;
use crate::rules::check::{Counterexample, Effort, Verdict, check_unless, filled};
use clap::Args;
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Look for instances at which rules do not keep what they claim
#[derive(Args, Debug)]
pub struct Check {
    /// Files of rules; the shipped rules where there are none
    files: Vec<PathBuf>,
    /// Check the shipped rules beside those of the files
    #[arg(long)]
    all: bool,
    /// Check these rules only
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Where randomness starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do so many times the usual work
    #[arg(long, value_name = "N", default_value_t = 1)]
    effort: usize,
    /// Print a line for each rule
    #[arg(long)]
    verbose: bool,
    /// Check the rules together, and with the shipped ones: saturate random programs that begin with their left
    /// sides, and compare what is found equal
    #[arg(long)]
    set: bool,
    /// Programs that `--set` saturates at each level, and more where a rule does not fire
    #[arg(long, value_name = "N", default_value_t = 200)]
    programs: u64,
    /// Change each rule in small ways, and count how many of the changed rules are found wrong
    #[arg(long, conflicts_with = "set")]
    mutate: bool,
    /// Prove rules over scalars with z3, where it is installed
    #[arg(long, conflicts_with_all = ["set", "mutate"])]
    prove: bool,
    /// Write the first counterexample to a program
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let chosen = Chosen::new(&self.files, self.all, &self.rule)?;
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let effort = Effort::standard(self.seed).times(self.effort.max(1));
        if self.set {
            return together::together(&chosen, self.seed, self.programs, self.json, world);
        }
        let library = chosen.alone();
        if self.mutate {
            return mutated::mutated(&library, &effort, self.json, world);
        }
        if self.prove {
            return proved::proved(&library, self.json, world);
        }
        let line = world.progress(self.json);
        line.all(library.rules.len());
        let interrupt = world.interrupt;
        let one = |rule: &Rule| {
            line.doing(&rule.name);
            let verdict = check_unless(rule, &effort, &|| interrupt.raised())?;
            line.done();
            Some(verdict)
        };
        let each = || library.rules.par_iter().filter_map(|rule| Some((rule, one(rule)?))).collect();
        let verdicts: Vec<(&Rule, Verdict)> = interrupt.during(each);
        line.clear();
        if let (Some(place), Some((rule, c))) =
            (&place, verdicts.iter().find_map(|(r, v)| Some((r, v.counterexample.as_ref()?))))
        {
            place.bytes(program(rule, c, &self.name()).as_bytes())?;
        }
        match self.json {
            true => world.say(&json!({ "rules": verdicts.iter().map(object).collect::<Vec<_>>() }).to_string())?,
            false => self.tell(&verdicts, world)?,
        }
        let (done, all) = (verdicts.len(), library.rules.len());
        match verdicts.iter().filter(|(_, v)| !v.passes()).count() {
            0 if done < all => Err(Diagnostic::limit(format!("interrupted: {done} of {all} rules were checked"))),
            0 => Ok(()),
            1 => Err(Diagnostic::user("1 rule does not pass")),
            n => Err(Diagnostic::user(format!("{n} rules do not pass"))),
        }
    }

    /// What the program of a counterexample is called.
    fn name(&self) -> String {
        self.output.as_ref().map_or("case.ks".into(), |p| p.display().to_string())
    }

    fn tell(&self, verdicts: &[(&Rule, Verdict)], world: &mut World<'_>) -> Result<()> {
        for (rule, v) in verdicts {
            if self.verbose {
                world.say(&line(rule, v))?;
            }
            if let Some(c) = &v.counterexample {
                let wrong = world.look.ink(Ink::Bad, "wrong");
                world.say(&format!("{} is {wrong} at level {}: {}", rule.name, c.level, c.wrong.words()))?;
                for (name, term) in filled(rule, &c.case.filling) {
                    world.say(&format!("  {name} = {term}"))?;
                }
                for l in program(rule, c, &self.name()).lines() {
                    world.say(&format!("  {l}"))?;
                }
            } else if !v.exercised() {
                let rate = 100.0 * v.counts.pass_rate();
                let holds = v.counts.holds;
                world.say(&format!("{} is hardly exercised: it applied {holds} times, and its conditions held in {rate:.1}% of the instances", rule.name))?;
            }
            for (k, n) in &v.unneeded {
                if v.counterexample.is_none() && self.verbose {
                    world.say(&format!("  note: without {} it held {n} times too", condition(rule, *k)))?;
                }
            }
        }
        let passed = verdicts.iter().filter(|(_, v)| v.passes()).count();
        let applied: usize = verdicts.iter().map(|(_, v)| v.counts.holds).sum();
        world.say(&format!(
            "{passed} of {} rules pass, in {applied} instances; real numbers agree to {DIGITS} digits",
            verdicts.len()
        ))
    }
}

/// A condition as it is written.
fn condition(rule: &Rule, k: usize) -> String {
    let (condition, metas) = &rule.when[k];
    let name = condition.name();
    let each: Vec<&str> = metas.iter().map(|m| rule.meta_name(*m)).collect();
    format!("({name} {})", each.join(" "))
}

fn line(rule: &Rule, v: &Verdict) -> String {
    let c = &v.counts;
    let verdict = if v.counterexample.is_some() {
        "wrong"
    } else if v.exercised() {
        "holds"
    } else {
        "unknown"
    };
    let rate = if rule.when.is_empty() {
        String::new()
    } else {
        format!(", conditions hold in {:.0}%", 100.0 * c.pass_rate())
    };
    let exact = if v.seems_exact { ", keeps the bits too" } else { "" };
    let undecided = if c.skipped > 0 { format!(", {} undecided", c.skipped) } else { String::new() };
    let types: Vec<String> = v
        .types
        .iter()
        .filter(|(t, _)| !t.is_empty())
        .map(|(t, n)| {
            let each: Vec<String> = t.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
            format!("{} {n}", each.join(" "))
        })
        .collect();
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
    format!("{} {verdict} at {}: {} instances{types}{rate}{undecided}{exact}", rule.name, rule.level, c.holds)
}

/// The program that shows a counterexample.
fn program(rule: &Rule, c: &Counterexample, name: &str) -> String {
    let words: String =
        c.words.iter().map(|w| if w.contains(['"', '[', ' ']) { format!(" '{w}'") } else { format!(" {w}") }).collect();
    let (lhs, rhs) = &c.shown;
    format!(
        "; {}: {} (seed {})\n{}; daedal eval {name} lhs{words}  gives {lhs}\n; daedal eval {name} rhs{words}  gives {rhs}\n",
        rule.name,
        c.wrong.words(),
        c.seed,
        c.program
    )
}

fn object((rule, v): &(&Rule, Verdict)) -> Json {
    let types: Vec<Json> = v
        .types
        .iter()
        .map(|(t, n)| {
            let names: serde_json::Map<String, Json> =
                t.iter().map(|(k, ty)| ((*k).to_string(), ty.to_string().into())).collect();
            json!({ "types": names, "applied": n })
        })
        .collect();
    let case = v.counterexample.as_ref().map(|c| {
        json!({
            "level": c.level.to_string(), "wrong": c.wrong.words(), "nodes": c.size(), "seed": c.seed,
            "program": c.program, "arguments": c.words, "lhs": c.shown.0, "rhs": c.shown.1,
        })
    });
    let c = &v.counts;
    json!({
        "name": rule.name, "level": rule.level.to_string(), "passes": v.passes(), "exercised": v.exercised(),
        "judged": c.judged, "applied": c.holds, "undecided": c.skipped, "left_fails": c.left_fails, "guarded": c.guarded,
        "pass_rate": c.pass_rate(), "seems_exact": v.seems_exact, "types": types,
        "unneeded": v.unneeded.iter().map(|(k, _)| condition(rule, *k)).collect::<Vec<_>>(), "counterexample": case,
    })
}
