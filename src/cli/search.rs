//! `daedal schedule --mode`: a schedule is searched for a definition at sizes, by model or by measurements.

use super::World;
use super::case::Case;
use super::how::{machine_of, staged};
use super::optimize::Float;
use super::picture::Picture;
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::pipeline::lab::{self, Book, Lab};
use crate::pipeline::tuning::{self, Mode, Options, Tuned};
use crate::run::Watch;
use crate::tune::explore::{Settings, Way};
use crate::tune::mlp::weights;
use crate::tune::record::{self, Known, Outcome};
use crate::tune::work::PARTS;
use crate::tune::{Model, example, tree};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// How a schedule is searched.
#[derive(Args, Debug)]
pub struct Search {
    /// Search a schedule: by model alone, measuring the best of one search, or measuring in rounds that correct the model
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "apply")]
    mode: Option<How>,
    /// The search by model
    #[arg(long, value_enum, value_name = "NAME", default_value = "beam", requires = "mode")]
    search: Name,
    /// What says how long schedules take: weights of counted work, or a network that was trained on random pipelines
    #[arg(long, value_enum, value_name = "MODEL", default_value_t, requires = "mode")]
    model: Costs,
    /// The weights of the network, as `daedal train cost` writes them
    #[arg(long, value_name = "W.safetensors", requires = "mode")]
    weights: Option<PathBuf>,
    /// How many states a beam keeps
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..))]
    beam: u16,
    /// Schedules that the model judges at most in the search
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..))]
    evaluations: u32,
    /// Schedules that are measured at most, those among the records included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "mode")]
    measurements: Option<u32>,
    /// End after so many seconds with the best so far
    #[arg(long, value_name = "S", value_parser = super::optimize::positive, requires = "mode")]
    max_seconds: Option<f64>,
    /// Parallel loops run on so many threads at most; on all cores where it is not said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Keep what is measured in a file, and measure nothing again that stands there
    #[arg(long, value_name = "FILE", requires = "mode")]
    records: Option<PathBuf>,
    /// Write the schedule to a file
    #[arg(short, long, value_name = "FILE", requires = "mode")]
    output: Option<PathBuf>,
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

/// Names of the searches.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// Always the best next decision
    Greedy,
    /// Beam search
    Beam,
    /// Memory-bounded best-first beam search
    Mb2fbs,
    /// Monte-Carlo tree search
    Mcts,
    /// Random decisions
    Random,
}

/// Names of the models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Costs {
    /// Weights of counted work, stated and fitted
    #[default]
    Linear,
    /// A network
    Mlp,
}

impl Search {
    /// Whether a schedule is searched.
    pub fn wanted(&self) -> bool {
        self.mode.is_some()
    }

    /// Carries it out.
    pub fn run(
        &self,
        case: &Case,
        (program, def): (&Program, &Def),
        float: Float,
        (json, picture): (bool, Option<&Picture>),
        world: &mut World<'_>,
    ) -> Result<()> {
        let Some(how) = self.mode else { return Ok(()) };
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let (graph, args) = (staged(program, def, float)?, case.arguments(program, def)?);
        let machine = machine_of(self.threads);
        let (mode, measurements) = match how {
            How::OneShot => (Mode::OneShot, 0),
            How::TopK => (Mode::TopK, 16),
            How::Autotune => (Mode::Autotune, 64),
        };
        let measurements = self.measurements.map_or(measurements, |n| n as usize);
        let incoming = example::incoming(def, &args);
        let case_key = lab::key(&[&program.source.text, def.name(), &format!("{incoming:?}{machine:?}{float:?}")]);
        let (known, cut) = self.known(&case_key)?;
        let (interrupt, line) = (world.interrupt, world.progress(json));
        let watch = Watch::new(interrupt, self.max_seconds, None);
        let stop = || watch.spent(1.0).is_some();
        let search = self.settings(case.seed, measurements);
        let options = Options { mode, model: self.judge()?, search, measurements, stop: &stop, known };
        let daedal = world.program.clone();
        let daedal = daedal.ok_or_else(|| Diagnostic::user("this program cannot be found, and so not be started"))?;
        let book = self.records.as_deref().map(|path| Book { path, case: &case_key, cut });
        let mut best = f64::INFINITY;
        let mut told = |outcome: Option<&Outcome>| {
            best = outcome.map_or(best, |o| best.min(o.seconds()));
            outcome.iter().for_each(|_| line.done());
            line.doing(&if best.is_finite() { format!("best so far {}", time(best)) } else { "compiling".into() });
        };
        let mut lab =
            Lab::new(daedal, (case.words(), machine.threads), float == Float::Real, book, &mut told, interrupt)?;
        line.all(measurements);
        line.doing("judging schedules");
        let mut measure = |steps: &[String]| lab.measure(steps);
        let tuned = interrupt.during(|| tuning::tune(def, graph, &args, &machine, &options, &mut measure));
        line.clear();
        let tuned = tuned?;
        let reference = lab.reference();
        let text = text(case, def, (&machine, float), &tuned);
        if let Some(place) = &place {
            place.bytes(text.as_bytes())?;
        }
        if let Some(picture) = picture {
            picture.draw(&tuned.schedule.specialized(&incoming), Some(&incoming))?;
        }
        if json {
            return world.say(&object(def, &tuned, reference).to_string());
        }
        summary(&tuned, reference).iter().try_for_each(|line| world.say(line))?;
        if place.is_none() { world.say(text.trim_end()) } else { Ok(()) }
    }

    /// The model that is asked for.
    fn judge(&self) -> Result<Model> {
        match (self.model, &self.weights) {
            (Costs::Linear, None) => Ok(Model::default()),
            (Costs::Linear, Some(_)) => Err(Diagnostic::user("`--weights` are those of `--model mlp`")),
            (Costs::Mlp, Some(path)) => Ok(Model::learned(weights::read(path)?.0)),
            (Costs::Mlp, None) => {
                Err(Diagnostic::user("`--model mlp` needs the weights of a network: `--weights FILE`")
                    .note("`daedal train cost` makes them on this machine"))
            }
        }
    }

    fn settings(&self, seed: u64, measurements: usize) -> Settings {
        let way = match self.search {
            Name::Greedy => Way::Greedy,
            Name::Beam => Way::Beam,
            Name::Mb2fbs => Way::Mb2fbs,
            Name::Mcts => Way::Mcts,
            Name::Random => Way::Random,
        };
        let (beam, evaluations) = (usize::from(self.beam), self.evaluations as usize);
        Settings { way, beam, evaluations, seed, keep: measurements.max(8) }
    }

    /// What was measured before, and whether the last line there was cut off.
    fn known(&self, key: &str) -> Result<(Known, bool)> {
        let Some(path) = self.records.as_deref().filter(|p| p.exists()) else { return Ok(Default::default()) };
        let text = String::from_utf8_lossy(&data::bytes(path)?).into_owned();
        let known = record::read(&text, key);
        if known.unread > 0 {
            let n = known.unread;
            let plural = if n == 1 { "line" } else { "lines" };
            // Where the standard error is gone, nobody reads it.
            let _ = writeln!(
                std::io::stderr(),
                "note: {n} {plural} of {} cannot be read; nothing there is changed",
                path.display()
            );
        }
        Ok((known, !text.is_empty() && !text.ends_with('\n')))
    }
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "none".into(),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

fn measured(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "not measured".into(),
        Some(Outcome::Seconds { min, .. }) => time(*min),
        Some(Outcome::Failed(why)) => format!("failed: {why}"),
    }
}

/// What was measured, and what the model expects.
fn both(outcome: Option<&Outcome>, expected: f64) -> String {
    format!("{}, expected {}", measured(outcome), time(expected))
}

/// What was found, in lines.
fn summary(t: &Tuned, reference: Option<f64>) -> Vec<String> {
    let count = t.tried.iter().filter(|t| t.outcome.is_some()).count();
    let mut out = vec![format!("; {} schedules judged, {count} measured", t.tally.evaluations)];
    out.extend(reference.map(|s| format!("; as it stands      {}", time(s))));
    out.push(format!("; default schedule  {}", both(t.default.outcome.as_ref(), t.default.expected)));
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

/// The schedule as a file.
fn text(case: &Case, def: &Def, (machine, float): (&Machine, Float), t: &Tuned) -> String {
    let mut out = format!("; a schedule for `{}`, found for {} threads", def.name(), machine.threads);
    let sizes: Vec<String> = case.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
    out += &if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(" ")) };
    out += if float == Float::Real { ", with `--float real`" } else { "" };
    let _ = writeln!(
        out,
        "\n; {}; the default schedule {}",
        both(t.outcome.as_ref(), t.expected),
        both(t.default.outcome.as_ref(), t.default.expected)
    );
    out + &tree::steps(&t.schedule)
}

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
        "tried": t.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}
