//! `daedal schedule --mode`: a schedule is searched for a definition at sizes, by model or by measurements.

use super::World;
use super::case::Case;
use super::schedule::staged;
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::pipeline::tuning::{self, Mode, Options, Tuned};
use crate::run::{Interrupt, Progress, Watch, child};
use crate::tune::explore::{Settings, Way};
use crate::tune::record::{self, Known, Outcome, Record};
use crate::tune::tree;
use crate::tune::work::PARTS;
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How a schedule is searched.
#[derive(Args, Debug)]
pub struct Search {
    /// Search a schedule: by model alone, measuring the best of one search, or measuring in rounds that correct the model
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "apply")]
    mode: Option<How>,
    /// The search by model
    #[arg(long, value_enum, value_name = "NAME", default_value = "beam", requires = "mode")]
    search: Name,
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

/// Seconds that compiling, and measuring, a schedule may take.
const COMPILING: f64 = 120.0;
const MEASURING: f64 = 30.0;

impl Search {
    /// Whether a schedule is searched.
    pub fn wanted(&self) -> bool {
        self.mode.is_some()
    }

    /// Carries it out.
    pub fn run(&self, case: &Case, (program, def): (&Program, &Def), json: bool, world: &mut World<'_>) -> Result<()> {
        let Some(how) = self.mode else { return Ok(()) };
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let (graph, args) = (staged(program, def)?, case.arguments(program, def)?);
        let threads = self.threads.map_or(Machine::host().threads, |n| n as usize);
        let machine = Machine { threads, ..Machine::host() };
        let (mode, measurements) = match how {
            How::OneShot => (Mode::OneShot, 0),
            How::TopK => (Mode::TopK, 16),
            How::Autotune => (Mode::Autotune, 64),
        };
        let measurements = self.measurements.map_or(measurements, |n| n as usize);
        let incoming = crate::tune::example::incoming(def, &args);
        let key = key(&[&program.source.text, def.name(), &format!("{incoming:?}{machine:?}")]);
        let known = self.known(&key)?;
        let (interrupt, line) = (world.interrupt, world.progress(json));
        let watch = Watch::new(interrupt, self.max_seconds, None);
        let stop = || watch.spent(1.0).is_some();
        let options =
            Options { mode, search: self.settings(case.seed, measurements), measurements, stop: &stop, known };
        let folder = tempfile::tempdir().map_err(|e| Diagnostic::user(format!("no temporary folder: {e}")))?;
        let mut lab = Lab {
            program: world.program.clone(),
            words: case.words(),
            threads,
            folder: folder.path(),
            records: self.records.as_deref(),
            key: &key,
            reference: None,
            best: f64::INFINITY,
            line: &line,
            interrupt,
        };
        line.all(measurements);
        line.doing("judging schedules");
        let mut measure = |steps: &[String]| lab.measure(steps);
        let tuned = interrupt.during(|| tuning::tune(def, graph, &args, &machine, &options, &mut measure));
        line.clear();
        let tuned = tuned?;
        let reference = lab.reference.as_ref().map(|(_, seconds)| *seconds);
        let text = text(case, def, &machine, &tuned);
        if let Some(place) = &place {
            place.bytes(text.as_bytes())?;
        }
        if json {
            return world.say(&object(def, &tuned, reference).to_string());
        }
        summary(&tuned, reference).iter().try_for_each(|line| world.say(line))?;
        if place.is_none() { world.say(text.trim_end()) } else { Ok(()) }
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

    /// What was measured before.
    fn known(&self, key: &str) -> Result<Known> {
        let Some(path) = self.records.as_deref().filter(|p| p.exists()) else { return Ok(Known::default()) };
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
        Ok(known)
    }
}

/// Where schedules are measured.
struct Lab<'a> {
    program: Option<PathBuf>,
    words: Vec<OsString>,
    threads: usize,
    folder: &'a Path,
    records: Option<&'a Path>,
    key: &'a str,
    /// The value of the program as it stands, as a digest, and how long it takes.
    reference: Option<(String, f64)>,
    best: f64,
    line: &'a Progress,
    interrupt: &'a Interrupt,
}

/// What a measurement says.
struct Said {
    min: f64,
    median: f64,
    digest: String,
}

impl Lab<'_> {
    /// Compiles schedules on all cores, then measures one after another.
    fn measure(&mut self, steps: &[String]) -> Result<Vec<Outcome>> {
        if self.reference.is_none() {
            self.line.doing("the program as it stands");
            let said = self.child("none".into(), false)?.map_err(|why| {
                let d = Diagnostic::user("the program cannot be measured at these arguments").note(why);
                d.note("hint: give arguments after the definition, or other sizes with `--size`")
            })?;
            self.reference = Some((said.digest, said.min));
        }
        let paths: Vec<PathBuf> = (0..steps.len()).map(|k| self.folder.join(format!("{k}.sched"))).collect();
        for (path, text) in paths.iter().zip(steps) {
            std::fs::write(path, text)
                .map_err(|e| Diagnostic::user(format!("cannot write {}: {e}", path.display())))?;
        }
        self.line.doing("compiling");
        let compiled: Vec<Result<std::result::Result<(), String>>> =
            paths.par_iter().map(|p| Ok(self.child(p.clone().into(), true)?.map(|_| ()))).collect();
        let mut out = vec![];
        for ((path, steps), compiled) in paths.into_iter().zip(steps).zip(compiled) {
            let outcome = match compiled? {
                Ok(()) => self.judged(self.child(path.into(), false)?),
                Err(why) => Outcome::Failed(why),
            };
            // What an interrupt ended says nothing of the schedule.
            if self.interrupt.raised() {
                break;
            }
            self.best = self.best.min(outcome.seconds());
            self.line.done();
            self.line.doing(&format!("best so far {}", time(self.best)));
            self.record(steps, &outcome)?;
            out.push(outcome);
        }
        Ok(out)
    }

    fn judged(&self, said: std::result::Result<Said, String>) -> Outcome {
        let want = self.reference.as_ref().map(|(digest, _)| digest.as_str());
        match said {
            Ok(said) if Some(said.digest.as_str()) != want => Outcome::Failed("it gives another value".into()),
            Ok(said) => Outcome::Seconds { min: said.min, median: said.median },
            Err(why) => Outcome::Failed(why),
        }
    }

    /// One measurement, in a process of its own.
    fn child(&self, schedule: OsString, compile: bool) -> Result<std::result::Result<Said, String>> {
        let program = self.program.as_deref();
        let program = program.ok_or_else(|| Diagnostic::user("this program cannot be found, and so not be started"))?;
        let mut words: Vec<OsString> = vec!["measure".into(), "--schedule".into(), schedule];
        words.extend(["--threads".into(), self.threads.to_string().into()]);
        words.extend(compile.then(|| "--compile".into()));
        words.extend(self.words.iter().cloned());
        let said = child::output(program, &words, if compile { COMPILING } else { MEASURING })?;
        Ok(said.and_then(|text| {
            let object: serde_json::Value = serde_json::from_str(text.trim()).unwrap_or_default();
            let number = |name: &str| object.get(name).and_then(serde_json::Value::as_f64);
            let digest = object.get("digest").and_then(|d| d.as_str()).map(ToString::to_string);
            match (number("min"), number("median"), digest) {
                (Some(min), Some(median), Some(digest)) => Ok(Said { min, median, digest }),
                _ if compile => Ok(Said { min: 0.0, median: 0.0, digest: String::new() }),
                _ => Err("it said nothing of its time".into()),
            }
        }))
    }

    /// Appends a line to the records; it is on disk when this returns.
    fn record(&self, steps: &str, outcome: &Outcome) -> Result<()> {
        let Some(path) = self.records else { return Ok(()) };
        let record = Record { case: self.key.to_string(), steps: steps.to_string(), outcome: outcome.clone() };
        let line = serde_json::to_string(&record).map_err(|e| Diagnostic::bug(format!("a record: {e}")))?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let written = file.as_mut().map_err(|e| std::io::Error::new(e.kind(), e.to_string())).and_then(|f| {
            f.write_all(format!("{line}\n").as_bytes())?;
            f.sync_data()
        });
        written.map_err(|e| Diagnostic::user(format!("cannot write {}: {e}", path.display())))
    }
}

fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|p| {
        hash.update((p.len() as u64).to_le_bytes());
        hash.update(p.as_bytes());
    });
    hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
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
    let failed = t.tried.iter().filter(|t| matches!(t.outcome, Some(Outcome::Failed(_)))).count();
    out.extend((failed > 0).then(|| format!("; {failed} failed, and are not chosen")));
    out
}

/// The schedule as a file.
fn text(case: &Case, def: &Def, machine: &Machine, t: &Tuned) -> String {
    let mut out = format!("; a schedule for `{}`, found for {} threads", def.name(), machine.threads);
    let sizes: Vec<String> = case.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
    out += &if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(" ")) };
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
