//! Random pipelines become records of how long their schedules take: a file that grows, and from which work goes on.

use super::lab::append;
use super::samples::{Case, schedules};
use super::trial::{Bench, Task};
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use crate::tune::random::{Pipeline, VERSION};
use crate::tune::record::Outcome;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A schedule of a pipeline, and what was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lesson {
    /// Which pipelines seeds stand for.
    pub version: u32,
    /// The pipeline.
    pub seed: u64,
    /// The machine.
    pub machine: String,
    /// The steps, one a line.
    pub steps: String,
    /// What was measured.
    pub outcome: Outcome,
}

/// What was measured so far, on one machine.
pub struct Lessons {
    path: PathBuf,
    machine: String,
    cut: bool,
    /// All that was measured.
    pub all: Vec<Lesson>,
    /// Lines that are no records of this version and machine.
    pub unread: usize,
}

/// How records are made.
pub struct Collect<'a> {
    /// The program that compiles and measures, `daedal` itself.
    pub daedal: &'a Path,
    /// What schedules are made for.
    pub machine: &'a Machine,
    /// Whether no further pipeline is to begin.
    pub stop: &'a dyn Fn() -> bool,
    /// Whether an interrupt has ended what ran.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// Pipelines that are compiled at once.
const AT_ONCE: usize = 2;

/// A pipeline whose schedules are to be measured.
struct Open {
    seed: u64,
    tasks: Vec<Task>,
    failed: Vec<(String, String)>,
}

impl Lessons {
    /// What a file has; nothing where there is none yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path, machine: &Machine) -> Result<Lessons> {
        let machine = format!("{machine:?}");
        let mut out = Lessons { path: path.to_path_buf(), machine, cut: false, all: vec![], unread: 0 };
        if !path.exists() {
            return Ok(out);
        }
        let text = String::from_utf8_lossy(&data::bytes(path)?).into_owned();
        out.cut = !text.is_empty() && !text.ends_with('\n');
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            match serde_json::from_str::<Lesson>(line) {
                Ok(l) if l.version == VERSION && l.machine == out.machine => out.all.push(l),
                _ => out.unread += 1,
            }
        }
        Ok(out)
    }

    /// Measures the schedules of pipelines that the records lack; tells how many pipelines are done, and of what is being done.
    ///
    /// # Errors
    /// Nothing can be written or started.
    pub fn collect(
        &mut self,
        seeds: std::ops::Range<u64>,
        how: &Collect<'_>,
        told: &mut dyn FnMut(usize, &str),
    ) -> Result<()> {
        let folder = tempfile::tempdir().map_err(|e| Diagnostic::user(format!("no temporary folder: {e}")))?;
        let bench = Bench { daedal: how.daedal, folder: folder.path(), stop: how.interrupted };
        let seeds: Vec<u64> = seeds.collect();
        for some in seeds.chunks(AT_ONCE) {
            if (how.stop)() {
                break;
            }
            told(0, "compiling");
            let known = |seed: u64| -> BTreeSet<&str> {
                self.all.iter().filter(|l| l.seed == seed).map(|l| l.steps.as_str()).collect()
            };
            let open: Vec<Result<Open>> =
                some.par_iter().map(|seed| opened(*seed, &known(*seed), how.machine, &bench)).collect();
            // What an interrupt ended says nothing of a schedule.
            if (how.interrupted)() {
                return Ok(());
            }
            for open in open {
                let open = open?;
                told(0, &format!("measuring pipeline {}", open.seed));
                for (steps, why) in open.failed {
                    self.add(open.seed, steps, Outcome::Failed(why))?;
                }
                for task in open.tasks {
                    let outcomes = bench.measure(&task);
                    if (how.interrupted)() {
                        return Ok(());
                    }
                    for (steps, outcome) in task.schedules.into_iter().zip(outcomes?) {
                        self.add(open.seed, steps, outcome)?;
                    }
                }
                told(1, "");
            }
        }
        Ok(())
    }

    fn add(&mut self, seed: u64, steps: String, outcome: Outcome) -> Result<()> {
        let lesson = Lesson { version: VERSION, seed, machine: self.machine.clone(), steps, outcome };
        let line = serde_json::to_string(&lesson).map_err(|e| Diagnostic::bug(format!("a record: {e}")))?;
        append(&self.path, &mut self.cut, &line)?;
        self.all.push(lesson);
        Ok(())
    }
}

/// The schedules of a pipeline that are not known, compiled.
fn opened(seed: u64, known: &BTreeSet<&str>, machine: &Machine, bench: &Bench<'_>) -> Result<Open> {
    let pipeline = Pipeline::new(seed);
    let case = Case::of(&pipeline)?;
    let (tree, standard) = case.space(machine)?;
    let all = schedules(&tree, &standard, seed);
    let new: Vec<String> = all.into_iter().filter(|s| !known.contains(s.as_str())).collect();
    let (text, sizes, threads) = (pipeline.text, case.sizes, machine.threads);
    let mut open = Open { seed, tasks: vec![], failed: vec![] };
    let mut left: Vec<Vec<String>> = if new.is_empty() { vec![] } else { vec![new] };
    // Where a unit cannot be compiled in time, each half of it may be.
    while let Some(schedules) = left.pop() {
        let task = Task { text: text.clone(), sizes: sizes.clone(), seed, threads, schedules, without: vec![] };
        match bench.compile(&task)? {
            Ok(()) => open.tasks.push(task),
            Err(why) => match task.schedules.as_slice() {
                [one] => open.failed.push((one.clone(), why)),
                many => left.extend(many.chunks(many.len().div_ceil(2)).map(<[String]>::to_vec)),
            },
        }
    }
    Ok(open)
}
