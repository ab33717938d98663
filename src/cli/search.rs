//! `daedal schedule --mode`: a schedule is searched for a definition at sizes, by model or by measurements.

use super::World;
use super::case::Case;
use super::found::{self, Page};
use super::how::staged;
use super::judging::Judging;
use super::measuring::{Measuring, measured, time};
use super::optimize::Float;
use super::picture::Picture;
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::pipeline::lab::{self, Book, Lab};
use crate::pipeline::tuning::{self, Mode, Options, Tuned};
use crate::schedule::{Step, text};
use crate::stage::Graph;
use crate::tune::record::Outcome;
use crate::tune::work::PARTS;
use crate::tune::{example, tree};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How a schedule is searched.
#[derive(Args, Debug)]
pub struct Search {
    /// Search a schedule: by model alone, measuring the best of one search, or measuring in rounds that correct the model
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<How>,
    /// Keep the steps of the schedule that `--apply` names, and search what they leave open; by model alone where no mode is
    /// said
    #[arg(long, requires = "apply")]
    complete: bool,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    measuring: Measuring,
    /// Write the schedule to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page about the search: loops, a picture, what the model counts, how it went, and what lost, and why
    #[arg(long, value_name = "R.html")]
    report: Option<PathBuf>,
}

/// Names of the modes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// The model decides, in seconds
    OneShot,
    /// The best schedules of one search are measured
    TopK,
    /// Rounds of measurements
    Autotune,
}

impl Search {
    /// Whether a schedule is searched, where one may be named.
    ///
    /// # Errors
    /// None is, and yet it is said how; or one is that is named and to be kept as it is.
    pub fn wanted(&self, apply: Option<&str>) -> Result<bool> {
        if self.complete {
            return match apply {
                Some("default" | "none") => Err(Diagnostic::user("`--complete` needs the file of a schedule")
                    .note("hint: the default schedule decides everything, and `--mode` alone searches everything")),
                _ if self.judging.is_toy() => Err(Diagnostic::user("schedule trees begin with everything inlined")
                    .note("hint: `--complete` searches `--space tree`")),
                _ => Ok(true),
            };
        }
        let said = self.measuring.said().or(self.judging.said()).or(self.output.is_some().then_some("--output"));
        let said = said.or(self.report.is_some().then_some("--report"));
        match said.filter(|_| self.mode.is_none()) {
            Some(word) => Err(Diagnostic::user(format!("`{word}` is for searches of schedules"))
                .note("hint: `--mode` says how a schedule is searched")),
            None if self.mode.is_some() && apply.is_some() => Err(Diagnostic::user(
                "`--mode` cannot be used with `--apply`: one searches a schedule, the other names it",
            )
            .note("hint: with `--complete` the steps of the file stay, and what they leave open is searched")),
            None => Ok(self.mode.is_some()),
        }
    }

    /// The steps that stay, where some do, each of which is legal.
    fn kept(&self, apply: Option<&str>, graph: &Graph, incoming: &[f64]) -> Result<Option<Vec<Step>>> {
        let Some(path) = apply.filter(|_| self.complete) else { return Ok(None) };
        let source = data::source(Path::new(path))?;
        let made = text::apply_for(graph.clone(), incoming, &source)?;
        if made.steps.is_empty() {
            return Err(
                Diagnostic::user(format!("`{path}` has no steps")).note("hint: `--mode` alone searches everything")
            );
        }
        Ok(Some(made.steps))
    }

    /// Carries it out.
    pub fn run(
        &self,
        (case, apply): (&Case, Option<&str>),
        (program, def): (&Program, &Def),
        float: Float,
        (json, picture): (bool, Option<&Picture>),
        world: &mut World<'_>,
    ) -> Result<()> {
        let how = self.mode.unwrap_or(How::OneShot);
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let page = self.report.as_deref().map(Output::at).transpose()?;
        let (graph, args) = (staged(program, def, float)?, case.arguments(program, def)?);
        let machine = self.measuring.machine();
        let (mode, measurements) = match how {
            How::OneShot => (Mode::OneShot, 0),
            How::TopK => (Mode::TopK, 16),
            How::Autotune => (Mode::Autotune, 64),
        };
        let measurements = self.measuring.measurements.map_or(measurements, |n| n as usize);
        let incoming = example::incoming(def, &args);
        let kept = self.kept(apply, &graph, &incoming)?;
        let case_key = lab::key(&[&program.source.text, def.name(), &format!("{incoming:?}{machine:?}{float:?}")]);
        let before = self.measuring.before()?;
        let known = before.known(&case_key);
        self.measuring.unused(&known);
        let (interrupt, line) = (world.interrupt, world.progress(json));
        let watch = self.measuring.watch(world);
        let stop = || watch.spent(1.0).is_some();
        let search = self.judging.settings(case.seed, measurements)?;
        let options = Options { mode, model: self.judging.model()?, search, measurements, stop: &stop, known };
        let records = self.measuring.records.as_deref();
        let book = records.map(|path| Book { path, case: &case_key, cut: before.cut() });
        let mut best = f64::INFINITY;
        let mut told = |outcome: Option<&Outcome>| {
            best = outcome.map_or(best, |o| best.min(o.seconds()));
            outcome.iter().for_each(|_| line.done());
            line.doing(&if best.is_finite() { format!("best so far {}", time(best)) } else { "compiling".into() });
        };
        let setup = self.measuring.setup((world, case.words(), float == Float::Real), &stop)?;
        let mut lab = Lab::new(setup, book, &mut told)?;
        line.all(measurements);
        line.doing("judging schedules");
        let mut measure = |steps: &[String]| lab.measure(steps);
        let all = graph.clone();
        let tuned = interrupt.during(|| match &kept {
            Some(kept) => tuning::complete(def, (graph, kept), &args, &machine, &options, &mut measure),
            None => tuning::tune(def, graph, &args, &machine, &options, &mut measure),
        });
        line.clear();
        let tuned = tuned?;
        let reference = lab.reference();
        let (tree, _) = match &kept {
            Some(kept) => tuning::space_from(def, all, &args, &machine, kept)?,
            None => tuning::space(def, all, &args, &machine),
        };
        let gains = gains(&tuned.schedule.steps, &tuning::grown(&tree, &tuned.model, &tuned.schedule));
        let text = file(case, def, (&machine, float, kept.as_deref()), (&tuned, &gains));
        if let Some(place) = &place {
            place.bytes(text.as_bytes())?;
        }
        if let Some(page) = &page {
            let about = summary(&tuned, reference, kept.is_some()).iter().map(|l| l[2..].to_string()).collect();
            let timed = interrupt.during(|| lab.by_stage(&tree::steps(&tuned.schedule)))?;
            let page_of = Page { tuned: &tuned, name: &case.def, about, text: &text, incoming: &incoming, timed };
            page.bytes(found::page(page_of, &found::ceilings(world))?.as_bytes())?;
        }
        if let Some(picture) = picture {
            picture.draw(&tuned.schedule.specialized(&incoming), Some(&incoming))?;
        }
        if json {
            return world.say(&object(def, &tuned, reference).to_string());
        }
        summary(&tuned, reference, kept.is_some()).iter().try_for_each(|line| world.say(line))?;
        if place.is_none() { world.say(text.trim_end()) } else { Ok(()) }
    }
}

/// What was measured, and what the model expects.
fn both(outcome: Option<&Outcome>, expected: f64) -> String {
    format!("{}, expected {}", measured(outcome), time(expected))
}

/// What was found, in lines.
fn summary(t: &Tuned, reference: Option<f64>, completed: bool) -> Vec<String> {
    let count = t.tried.iter().filter(|t| t.outcome.is_some()).count();
    let mut out = vec![format!("; {} schedules judged, {count} measured", t.tally.evaluations)];
    out.extend(t.notes.iter().map(|n| format!("; {n}")));
    out.extend(reference.map(|s| format!("; as it stands      {}", time(s))));
    out.push(format!("; {}  {}", first(completed), both(t.default.outcome.as_ref(), t.default.expected)));
    out.push(format!("; this schedule     {}", both(t.outcome.as_ref(), t.expected)));
    if reference.is_some_and(|s| t.outcome.as_ref().is_some_and(|o| o.seconds() > s)) {
        out.push("; the program as it stands is faster than any schedule that was measured".into());
    }
    let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
    for tried in &t.tried {
        if let Some(Outcome::Failed(why)) = &tried.outcome {
            *failed.entry(why).or_insert(0) += 1;
        }
    }
    out.extend(failed.into_iter().map(|(why, n)| format!("; {n} failed, and are not chosen: {why}")));
    out
}

/// What the first schedule is called that others are compared with.
fn first(completed: bool) -> &'static str {
    if completed { "the rest plainly" } else { "default schedule" }
}

/// The schedule as a file.
fn file(
    case: &Case,
    def: &Def,
    (machine, float, kept): (&Machine, Float, Option<&[Step]>),
    (t, gains): (&Tuned, &[String]),
) -> String {
    let mut out = format!("; a schedule for `{}`, found for {} threads", def.name(), machine.threads);
    let sizes: Vec<String> = case.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
    out += &if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(" ")) };
    out += if float == Float::Real { ", with `--float real`" } else { "" };
    let _ = writeln!(
        out,
        "\n; {}; {} {}",
        both(t.outcome.as_ref(), t.expected),
        if kept.is_some() { "with the rest done plainly" } else { "the default schedule" },
        both(t.default.outcome.as_ref(), t.default.expected)
    );
    let given = kept.map_or(0, <[Step]>::len);
    for (k, line) in gains.iter().enumerate() {
        if k == given && k > 0 {
            out += "; found for what the steps above leave open\n";
        }
        // Steps that were given stay as they are.
        let _ = match t.schedule.steps.get(k).filter(|_| k < given) {
            Some(step) => writeln!(out, "{step}"),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// Where the comments of steps begin, if these are no longer.
const MARGIN: usize = 40;

/// The steps, each with what the model expects it to gain where it is taken, and then of the whole.
fn gains(steps: &[Step], grown: &[Option<f64>]) -> Vec<String> {
    let first = (steps.len() + 1).saturating_sub(grown.len());
    let one = |(k, step): (usize, &Step)| {
        let at = |k: usize| k.checked_sub(first).and_then(|k| grown.get(k).copied().flatten());
        let (Some(before), Some(after)) = (at(k), at(k + 1)) else { return step.to_string() };
        let change = before - after;
        let says = match change.abs() >= LEAST * before.max(after) {
            false => "no difference by itself".to_string(),
            true if change > 0.0 => format!("{} less: {}", time(change), time(after)),
            true => format!("{} more: {}", time(-change), time(after)),
        };
        format!("{:MARGIN$}; {says}", step.to_string())
    };
    steps.iter().enumerate().map(one).collect()
}

/// Smaller shares of the time are no difference.
const LEAST: f64 = 1e-3;

fn object(def: &Def, t: &Tuned, reference: Option<f64>) -> serde_json::Value {
    let tried = |t: &tuning::Tried| {
        let work: serde_json::Map<String, serde_json::Value> = t
            .work
            .iter()
            .flat_map(|w| PARTS.iter().zip(w.0))
            .map(|(name, n)| ((*name).to_string(), json!(n)))
            .collect();
        json!({ "steps": t.steps.lines().collect::<Vec<_>>(), "expected": t.expected, "work": work, "outcome": t.outcome })
    };
    json!({
        "def": def.name(),
        "steps": tree::steps(&t.schedule).lines().collect::<Vec<_>>(),
        "expected": t.expected,
        "outcome": t.outcome,
        "default": tried(&t.default),
        "reference_seconds": reference,
        "judged": t.tally.evaluations,
        "expanded": t.tally.expansions,
        "notes": t.notes,
        "tried": t.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}
