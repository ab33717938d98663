//! Many schedules of one program become times: compiled as one unit, and measured in turns in a process of their own.
//!
//! One unit takes a fraction of the time of many, and turns give each schedule the same share of what else the machine does. A
//! schedule that crashes or hangs is known by what the process wrote before; the others are measured without it.

use super::digest::digest;
use super::lab;
use super::native;
use crate::codegen::Unit;
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::machine::Machine;
use crate::nest::Nest;
use crate::run::{Native, Toolchain, child, memory};
use crate::schedule::text;
use crate::stage::extract;
use crate::tune::example;
use crate::tune::record::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Rounds in which each schedule has its turn.
const ROUNDS: usize = 4;
/// Seconds of one turn, and how many calls it has at most. What takes longer than the last number has one call in all.
const TURN: f64 = 0.012;
const CALLS: f64 = 40.0;
const LONG: f64 = 0.4;
/// Seconds that compiling may take, and a process that measures: for each schedule.
const COMPILING: f64 = 40.0;
const MEASURING: f64 = 8.0;

/// What one process compiles or measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The program; its definition is `main`.
    pub text: String,
    /// The sizes of made-up arguments.
    pub sizes: Vec<(String, u64)>,
    /// The seed of these.
    pub seed: u64,
    /// Parallel loops run on so many threads.
    pub threads: usize,
    /// Schedules, by their steps.
    pub schedules: Vec<String>,
    /// Those that are not measured.
    pub without: Vec<usize>,
}

/// What a process says, a line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The turn of a schedule begins; that of the program as it stands has no number.
    Running(Option<usize>),
    /// Its turn ended.
    Seconds {
        /// Which.
        of: usize,
        /// The least.
        min: f64,
        /// The one in the middle.
        median: f64,
    },
    /// It is of no use, and why.
    Failed(usize, String),
}

impl Task {
    /// Compiles all, which a later process finds compiled; measures them unless it is to compile only, and tells of it.
    ///
    /// # Errors
    /// The program or a schedule is wrong, or cannot be compiled.
    pub fn run(&self, tools: &Toolchain, only_compile: bool, say: &mut dyn FnMut(&Line) -> Result<()>) -> Result<()> {
        let program = crate::types::program(&Source::new("main", &self.text))?;
        let def = program.named("main").first().copied().ok_or_else(|| Diagnostic::user("there is no `main`"))?;
        let args = example::arguments(def, &self.sizes, self.seed)?;
        let machine = Machine { threads: self.threads, ..Machine::host() };
        let mut nests = vec![native::nest(&program, def, &machine)?];
        let graph = extract(&program, def).map_err(|u| u.diagnostic(&program))?;
        let incoming = example::incoming(def, &args);
        for steps in &self.schedules {
            let made = text::apply_for(graph.clone(), &incoming, &Source::new("steps", steps))?;
            nests.push(native::scheduled_nest(def, &made.specialized(&incoming), &machine)?);
        }
        let nests: Vec<&Nest> = nests.iter().collect();
        let all = Native::load(Unit::new(&nests), &program.source, tools)?;
        if only_compile { Ok(()) } else { self.measure(all, &args, say) }
    }

    fn measure(&self, all: Vec<Native>, args: &[Value], say: &mut dyn FnMut(&Line) -> Result<()>) -> Result<()> {
        let mut all: Vec<Native> = all.into_iter().map(|n| n.with_threads(self.threads)).collect();
        let scheduled = all.split_off(1);
        say(&Line::Running(None))?;
        let want = all.first().map(|n| n.call(args)).transpose()?.map(|v| digest(&v));
        let mut open: Vec<(usize, usize)> = vec![];
        for (k, native) in scheduled.iter().enumerate().filter(|(k, _)| !self.without.contains(k)) {
            say(&Line::Running(Some(k)))?;
            let timed = match native.time(args, 1) {
                Ok(timed) => timed,
                Err(d) => {
                    say(&Line::Failed(k, d.message.clone()))?;
                    continue;
                }
            };
            if Some(digest(&timed.value)) != want {
                say(&Line::Failed(k, "it gives another value".into()))?;
            } else if timed.min_seconds > LONG {
                say(&Line::Seconds { of: k, min: timed.min_seconds, median: timed.median_seconds })?;
            } else {
                open.push((k, (TURN / timed.min_seconds.max(1e-9)).clamp(2.0, CALLS) as usize));
            }
        }
        for _ in 0..ROUNDS {
            for (k, calls) in &open {
                say(&Line::Running(Some(*k)))?;
                let timed = scheduled[*k].time(args, *calls)?;
                say(&Line::Seconds { of: *k, min: timed.min_seconds, median: timed.median_seconds })?;
            }
        }
        Ok(())
    }
}

/// Where tasks are carried out: the program that does it, `daedal` itself, and a folder.
pub struct Bench<'a> {
    /// The program.
    pub daedal: &'a Path,
    /// The folder.
    pub folder: &'a Path,
    /// Whether the work has to end at once.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Bench<'_> {
    /// Compiles a task; why not, where that fails.
    ///
    /// # Errors
    /// Nothing can be written or started.
    pub fn compile(&self, task: &Task) -> Result<std::result::Result<(), String>> {
        self.process(task, &["--compile".into()], COMPILING * (2 + task.schedules.len()) as f64).map(|(done, _)| done)
    }

    /// Measures a task that is compiled: an outcome of each schedule.
    ///
    /// # Errors
    /// Nothing can be written or started, or the program as it stands cannot be measured.
    pub fn measure(&self, task: &Task) -> Result<Vec<Outcome>> {
        let mut out: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut task = task.clone();
        loop {
            let limit = MEASURING * (2 + task.schedules.len()) as f64;
            let (done, lines) = self.process(&task, &[], limit)?;
            let mut running = None;
            let mut times: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            for line in lines {
                match line {
                    Line::Running(of) => running = of,
                    Line::Seconds { of, min, median } => {
                        let least = times.entry(of).or_insert((f64::INFINITY, f64::INFINITY));
                        *least = (least.0.min(min), least.1.min(median));
                    }
                    Line::Failed(of, why) => drop(out.insert(of, Outcome::Failed(why))),
                }
            }
            match (done, running) {
                (Ok(()), _) => {
                    out.extend(times.into_iter().map(|(k, (min, median))| (k, Outcome::Seconds { min, median })));
                    break;
                }
                (Err(why), Some(k)) if !task.without.contains(&k) => {
                    out.insert(k, Outcome::Failed(why));
                    task.without = out.keys().copied().collect();
                }
                (Err(why), _) => {
                    return Err(Diagnostic::user("a pipeline cannot be measured").note(why));
                }
            }
        }
        let lost = || Outcome::Failed("it said nothing of its time".into());
        Ok((0..task.schedules.len()).map(|k| out.remove(&k).unwrap_or_else(lost)).collect())
    }

    /// Runs a process on a task; what it wrote, and how it ended.
    fn process(
        &self,
        task: &Task,
        more: &[OsString],
        limit: f64,
    ) -> Result<(std::result::Result<(), String>, Vec<Line>)> {
        let text = serde_json::to_string(task).map_err(|e| Diagnostic::bug(format!("a task: {e}")))?;
        let name = lab::key(&[&text]);
        let (path, said) = (self.folder.join(format!("{name}.json")), self.folder.join(format!("{name}.said")));
        let wrong = |e: std::io::Error| Diagnostic::user(format!("cannot write {}: {e}", path.display()));
        std::fs::write(&path, &text).map_err(wrong)?;
        std::fs::write(&said, "").map_err(wrong)?;
        let words = ["trial".into(), path.clone().into(), said.clone().into()];
        let words: Vec<OsString> = words.into_iter().chain(more.iter().cloned()).collect();
        let limits = child::Limits { seconds: limit, bytes: memory::available() / 2, stop: self.stop };
        let done = child::output(self.daedal, &words, &limits)?.map(|_| ());
        let lines = std::fs::read_to_string(&said).unwrap_or_default();
        let lines = lines.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let _ = (std::fs::remove_file(&path), std::fs::remove_file(&said));
        Ok((done, lines))
    }
}
