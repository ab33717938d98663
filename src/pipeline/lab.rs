//! Schedules become times: each is compiled and run in a process of its own, with limits of time and memory, and what it
//! gives is compared with what the program as it stands gives.
//!
//! It must not know how schedules are searched.

use super::timed::StageTime;
use crate::diag::{Diagnostic, Result};
use crate::run::{child, memory};
use crate::schedule::Step;
use crate::tune::record::{Outcome, Record};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the process of one schedule may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Seconds to compile it.
    pub compiling: f64,
    /// Seconds to measure it.
    pub measuring: f64,
    /// Bytes of memory, the compiler's included.
    pub bytes: u64,
}

impl Limits {
    /// Those where nobody asks for others: half of the memory that this process may use, since two may be at work.
    pub fn standard() -> Limits {
        Limits { compiling: 120.0, measuring: 30.0, bytes: memory::available() / 2 }
    }
}

/// Where what is measured is kept.
pub struct Book<'a> {
    /// The file.
    pub path: &'a Path,
    /// What stands for program, definition, arguments and machine.
    pub case: &'a str,
    /// Whether the last line of the file was cut off: then the next one begins on a line of its own.
    pub cut: bool,
}

/// Told of each outcome, and of work that has none.
pub type Told<'a> = dyn FnMut(Option<&Outcome>) + 'a;

/// How schedules are measured.
pub struct Setup<'a> {
    /// The program that does it: `daedal` itself.
    pub daedal: PathBuf,
    /// The words that say what is measured.
    pub words: Vec<OsString>,
    /// Parallel loops run on so many threads.
    pub threads: usize,
    /// Whether only values over the reals have to stay: then a schedule is compared with what its steps that change bits give
    /// alone.
    pub real: bool,
    /// What a process may use.
    pub limits: Limits,
    /// Whether the work has to end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Where schedules are measured.
pub struct Lab<'a> {
    setup: Setup<'a>,
    folder: tempfile::TempDir,
    book: Option<Book<'a>>,
    told: &'a mut Told<'a>,
    /// The value of the program as it stands, as a digest, and how long it takes.
    reference: Option<(String, f64)>,
    /// Values, as digests, by the steps that change bits, where these may.
    rewritten: Option<BTreeMap<String, String>>,
}

/// What a measurement says.
struct Said {
    min: f64,
    median: f64,
    digest: String,
}

impl<'a> Lab<'a> {
    /// A place to measure.
    ///
    /// # Errors
    /// There is no temporary folder.
    pub fn new(setup: Setup<'a>, book: Option<Book<'a>>, told: &'a mut Told<'a>) -> Result<Lab<'a>> {
        let folder = tempfile::tempdir().map_err(|e| Diagnostic::user(format!("no temporary folder: {e}")))?;
        let rewritten = setup.real.then(BTreeMap::new);
        Ok(Lab { setup, folder, book, told, reference: None, rewritten })
    }

    /// The seconds of the program as it stands, where it was measured.
    pub fn reference(&self) -> Option<f64> {
        self.reference.as_ref().map(|(_, seconds)| *seconds)
    }

    /// Compiles schedules, given as their steps, on all cores, then measures one after another. There are fewer outcomes where
    /// the work has to end.
    ///
    /// # Errors
    /// The program as it stands cannot be measured, or nothing can be written.
    pub fn measure(&mut self, steps: &[String]) -> Result<Vec<Outcome>> {
        (self.told)(None);
        if !self.refer()? {
            return Ok(vec![]);
        }
        let paths: Vec<PathBuf> = (0..steps.len()).map(|k| self.folder.path().join(format!("{k}.sched"))).collect();
        for (path, text) in paths.iter().zip(steps) {
            std::fs::write(path, text).map_err(|e| cannot_write(path, &e))?;
        }
        let (worker, compiling) = (self.worker(), self.setup.limits.compiling);
        let compiled: Vec<_> = paths.par_iter().map(|p| worker.child(p.clone().into(), true, compiling)).collect();
        let mut out = vec![];
        for ((path, steps), compiled) in paths.into_iter().zip(steps).zip(compiled) {
            let outcome = match compiled? {
                Ok(_) => {
                    let want = self.wanted(steps)?;
                    judged(self.worker().child(path.into(), false, self.setup.limits.measuring)?, want.as_deref())
                }
                Err(why) => Outcome::Failed(why),
            };
            // What was ended from outside says nothing of the schedule.
            if (self.setup.stop)() {
                break;
            }
            self.record(steps, &outcome)?;
            (self.told)(Some(&outcome));
            out.push(outcome);
        }
        Ok(out)
    }

    /// Measures the program as it stands, where that was not done; not where the work has to end.
    fn refer(&mut self) -> Result<bool> {
        if self.reference.is_some() {
            return Ok(true);
        }
        let said = self.worker().child("none".into(), false, self.both())?;
        if (self.setup.stop)() {
            return Ok(false);
        }
        let said = said.map_err(|why| {
            let d = Diagnostic::user("the program cannot be measured at these arguments").note(why);
            d.note("hint: give arguments after the definition, or other sizes with `--size`")
        })?;
        self.reference = Some((said.digest, said.min));
        Ok(true)
    }

    /// Why the program as it stands is of no use: it cannot be measured, or differs by more than rounding from what the same
    /// definition of another program gives.
    ///
    /// # Errors
    /// Nothing can be started.
    pub fn refused(&mut self, like: Option<&Path>) -> Result<Option<String>> {
        if let Err(d) = self.refer() {
            return Ok(Some(d.notes.first().cloned().unwrap_or(d.message)));
        }
        let Some(other) = like.filter(|_| !(self.setup.stop)()) else { return Ok(None) };
        let mut words: Vec<OsString> = vec!["measure".into(), "--schedule=none".into(), "--like".into(), other.into()];
        words.extend(self.setup.words.iter().cloned());
        let (bytes, stop) = (self.setup.limits.bytes, self.setup.stop);
        let limits = child::Limits { seconds: 2.0 * self.both(), bytes, stop };
        Ok(match child::output(&self.setup.daedal, &words, &limits)? {
            Err(why) => Some(why),
            Ok(text) => {
                let object: serde_json::Value = serde_json::from_str(text.trim()).unwrap_or_default();
                match object.get("apart") {
                    Some(serde_json::Value::Null) => None,
                    Some(why) => Some(format!("it differs from the source: {why}")),
                    None => Some("it said nothing of its value".into()),
                }
            }
        })
    }

    /// The seconds of a schedule with timers around the loops of its stages, and those of each; else why there are none.
    ///
    /// # Errors
    /// Nothing can be started, or written.
    pub fn by_stage(&self, steps: &str) -> Result<std::result::Result<(f64, Vec<StageTime>), String>> {
        let path = self.folder.path().join("timed.sched");
        std::fs::write(&path, steps).map_err(|e| cannot_write(&path, &e))?;
        let mut words: Vec<OsString> = vec!["measure".into(), "--stages".into(), "--schedule".into(), path.into()];
        words.extend(["--threads".into(), self.setup.threads.to_string().into()]);
        words.extend(self.setup.real.then(|| "--float=real".into()));
        words.extend(self.setup.words.iter().cloned());
        let (bytes, stop) = (self.setup.limits.bytes, self.setup.stop);
        let said = child::output(&self.setup.daedal, &words, &child::Limits { seconds: self.both(), bytes, stop })?;
        Ok(said.and_then(|text| {
            let object: serde_json::Value = serde_json::from_str(text.trim()).unwrap_or_default();
            let stages = serde_json::from_value(object["stages"].clone());
            object["min"].as_f64().zip(stages.ok()).ok_or_else(|| "it said nothing of its stages".into())
        }))
    }

    /// Seconds to compile and measure.
    fn both(&self) -> f64 {
        self.setup.limits.compiling + self.setup.limits.measuring
    }

    /// The value that a schedule has to have; nothing where that cannot be computed.
    fn wanted(&mut self, steps: &str) -> Result<Option<String>> {
        let Some(known) = &self.rewritten else { return Ok(self.reference.as_ref().map(|(digest, _)| digest.clone())) };
        let rewrites = |l: &&str| Step::read(&l.split_whitespace().collect::<Vec<_>>()).is_ok_and(|s| s.is_rewrite());
        let rewrites: String = steps.lines().filter(rewrites).map(|l| format!("{l}\n")).collect();
        if let Some(digest) = known.get(&rewrites) {
            return Ok(Some(digest.clone()));
        }
        let path = self.folder.path().join("rewrites.sched");
        std::fs::write(&path, &rewrites).map_err(|e| cannot_write(&path, &e))?;
        let said = self.worker().child(path.into(), false, self.both())?;
        let digest = said.ok().map(|said| said.digest);
        if let (Some(known), Some(digest)) = (&mut self.rewritten, &digest) {
            known.insert(rewrites, digest.clone());
        }
        Ok(digest)
    }

    fn worker(&self) -> Worker<'_> {
        let (bytes, stop) = (self.setup.limits.bytes, self.setup.stop);
        let Setup { daedal, words, threads, real, .. } = &self.setup;
        Worker { daedal, words, threads: *threads, real: *real, bytes, stop }
    }

    /// Appends a line to the records; it is on disk when this returns.
    fn record(&mut self, steps: &str, outcome: &Outcome) -> Result<()> {
        let Some(book) = &mut self.book else { return Ok(()) };
        let record = Record { case: book.case.to_string(), steps: steps.to_string(), outcome: outcome.clone() };
        let line = serde_json::to_string(&record).map_err(|e| Diagnostic::bug(format!("a record: {e}")))?;
        append(book.path, &mut book.cut, &line)
    }
}

fn judged(said: std::result::Result<Said, String>, want: Option<&str>) -> Outcome {
    match said {
        Ok(said) if Some(said.digest.as_str()) != want => Outcome::Failed("it gives another value".into()),
        Ok(said) => Outcome::Seconds { min: said.min, median: said.median },
        Err(why) => Outcome::Failed(why),
    }
}

/// What starts processes, and may do so from several threads at once.
struct Worker<'a> {
    daedal: &'a Path,
    words: &'a [OsString],
    threads: usize,
    real: bool,
    bytes: u64,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl Worker<'_> {
    /// One schedule, compiled or measured, for so many seconds at most.
    fn child(&self, schedule: OsString, compile: bool, seconds: f64) -> Result<std::result::Result<Said, String>> {
        let mut words: Vec<OsString> = vec!["measure".into(), "--schedule".into(), schedule];
        words.extend(["--threads".into(), self.threads.to_string().into()]);
        words.extend(compile.then(|| "--compile".into()));
        words.extend(self.real.then(|| "--float=real".into()));
        words.extend(self.words.iter().cloned());
        let limits = child::Limits { seconds, bytes: self.bytes, stop: self.stop };
        Ok(child::output(self.daedal, &words, &limits)?.and_then(|text| {
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
}

/// Appends a line to a file, whose last line may have been cut off; it is on disk when this returns.
///
/// # Errors
/// It cannot be written.
pub fn append(path: &Path, cut: &mut bool, line: &str) -> Result<()> {
    let gap = if std::mem::take(cut) { "\n" } else { "" };
    let written = std::fs::OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| {
        f.write_all(format!("{gap}{line}\n").as_bytes())?;
        f.sync_data()
    });
    written.map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Box<Diagnostic> {
    Diagnostic::user(format!("cannot write {}: {e}", path.display()))
}

/// A short number for texts together.
pub fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
}
