//! Networks that experiments train: each becomes a file of weights beside the runs, and a line among them. A
//! training that was interrupted goes on where it was.

use super::pages::SAME;
use super::runs::{self, Runs, Task};
use crate::cli::bench::Watching;
use crate::data::{self, Output};
use crate::derive::record::hash;
use crate::diag::Result;
use crate::ir::Program;
use crate::pipeline::prepare;
use crate::rewrite::agent::value::train::{self, EpochReport, Settings, Trainer};
use crate::rewrite::agent::value::{Network, Setting, weights};
use crate::rewrite::agent::{Bind, Engine};
use crate::rules::{Level, Library};
use crate::run;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a network learns, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Course {
    /// From which definitions.
    pub subject: Subject,
    /// From which search.
    pub by: Engine,
}

/// Definitions to learn from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The eight arithmetic expressions that it is tested on
    Arithmetic,
    /// The 36 expressions in other contexts than those that it is tested on
    Sharing,
    /// The eleven helpers of linear algebra of which the functions that it is tested on are made
    Linear,
}

impl Subject {
    /// What networks learn that are tested on definitions of a program.
    pub fn of(file: &str) -> Subject {
        match file {
            "arithmetic" => Subject::Arithmetic,
            "sharing" => Subject::Sharing,
            _ => Subject::Linear,
        }
    }

    /// The name of the program.
    fn name(self) -> &'static str {
        match self {
            Subject::Arithmetic => "arithmetic",
            Subject::Sharing => "sharing",
            Subject::Linear => "blas",
        }
    }

    /// The definitions.
    fn tasks<'a>(self, programs: &'a [(&'static str, Program)]) -> Vec<Task<'a>> {
        let mut tasks = runs::tasks(programs, self.name());
        tasks.retain(|t| match self {
            Subject::Arithmetic => true,
            Subject::Sharing => t.def.name().starts_with("train"),
            Subject::Linear => t.known.is_none(),
        });
        tasks
    }
}

/// How far a step of learning goes.
const RATE: f64 = 0.0015;
/// A training that is tested on what it learned from ends early, once all searches of so many epochs in a row met the
/// least cost that is known.
const SETTLED: usize = 3;

impl Course {
    /// The name of its files.
    pub fn name(self) -> String {
        let by = if self.by == Engine::Astar { String::new() } else { format!("-{}", self.by.name()) };
        format!("{}{by}", self.subject.name())
    }

    /// Epochs at most: in the paper 40 (Section 4.1).
    fn epochs(self) -> usize {
        match self.subject {
            Subject::Arithmetic => 40,
            Subject::Sharing => 12,
            Subject::Linear => 12,
        }
    }

    /// Whether each definition has one goal, whose cost is known.
    pub fn goals(self) -> bool {
        self.subject != Subject::Linear
    }

    /// Whether a training may end early.
    fn settles(self) -> bool {
        self.subject == Subject::Arithmetic
    }

    /// How it is learned.
    fn settings(self, seed: u64) -> Settings {
        let (engine, bind, passes) = (self.by, Bind::Searched, 3);
        let general = Settings { engine, bind, passes, seed, ..Settings::standard() };
        let one_goal =
            Settings { depth: 10, budget: 300, walks: 100, binding: 1000, even: true, above: true, ..general };
        match self.subject {
            Subject::Arithmetic => Settings { programs: 8, ..one_goal },
            Subject::Sharing => Settings { programs: 12, walks: 40, binding: 30_000, ..one_goal },
            Subject::Linear => Settings { programs: 11, budget: 800, ..general },
        }
    }

    /// What tells courses apart: other settings or expressions make another one.
    pub fn identity(self) -> String {
        let of =
            format!("{} {SETTLED} {RATE} {:?} {:?}", self.epochs(), self.settings(0), runs::text(self.subject.name()));
        format!("{}-{}", self.name(), &hash(&of)[..8])
    }

    /// What tells trainings apart.
    pub fn key(self, seed: u64) -> String {
        format!("{}-{seed}", self.identity())
    }

    /// The name of the file of the weights of a training.
    pub fn file(self, seed: u64) -> String {
        format!("knossos-{}.safetensors", self.key(seed))
    }
}

/// How a training went.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Training {
    /// What tells it from others.
    pub training: String,
    /// Epochs made.
    pub epochs: usize,
    /// States that searches and walks evaluated.
    pub evaluations: usize,
    /// Definitions whose least known cost was met.
    pub met: usize,
    /// Definitions that were learned from.
    pub of: usize,
    /// Seconds of the process that ended it.
    pub seconds: f64,
}

/// Whether this build can train.
pub const POSSIBLE: bool = cfg!(feature = "torch");

/// How networks learn, for the page.
pub fn about(course: Course) -> String {
    let Settings { budget, walks, binding, programs, states, passes, .. } = course.settings(0);
    let (width, epochs, by) = (Setting::small().width, course.epochs(), course.by.name());
    let binding = match binding {
        0 => String::new(),
        _ => format!(" The first search of each makes moves of bindings alone, {binding} evaluations."),
    };
    let settled = match course.settles() {
        true => format!(", fewer once the searches of {SETTLED} in a row meet the least cost of all that they search"),
        false => String::new(),
    };
    format!(
        "Networks of width {width}, at most {epochs} epochs{settled}. An epoch searches {programs} definitions by \
         `{by}` with {budget} evaluations each, walks at random for {walks} more, and goes {passes} times \
         through at most {states} states.{binding}"
    )
}

/// The network of a course and a seed: read where it was trained before, trained where that is possible, and
/// nothing where it is not.
///
/// # Errors
/// Files of the folder cannot be read or written, or hold something else.
pub fn network(
    course: Course,
    seed: u64,
    programs: &[(&'static str, Program)],
    runs: &Mutex<&mut Runs>,
    watching: &Watching<'_>,
) -> Result<Option<Network>> {
    let locked = || runs.lock().unwrap_or_else(PoisonError::into_inner);
    let path = locked().folder().join(course.file(seed));
    if path.exists() {
        return weights::read(&path).map(Some);
    }
    if !POSSIBLE {
        return Ok(None);
    }
    let tasks = course.subject.tasks(programs);
    let Some((network, training)) = trained(course, seed, &tasks, &path, watching)? else { return Ok(None) };
    locked().trained(training)?;
    Ok(Some(network))
}

fn trained(
    course: Course,
    seed: u64,
    tasks: &[Task<'_>],
    path: &Path,
    watching: &Watching<'_>,
) -> Result<Option<(Network, Training)>> {
    let from = run::seconds();
    let library = Library::shipped()?;
    let rules = prepare(&library, Level::Real)?;
    let settings = course.settings(seed);
    let setting = Setting { steps: settings.steps, ..Setting::small() };
    let first = Network::new(setting, seed);
    let fit = train::fit(&first, RATE)?;
    let learned: Vec<train::Task<'_>> = tasks.iter().map(Task::learned).collect();
    let mut trainer = Trainer::new(&learned, &rules, settings, fit)?;
    let beside = PathBuf::from(format!("{}.training", path.display()));
    if beside.exists() {
        trainer.resume(&beside.display().to_string(), &data::bytes(&beside)?)?;
    }
    let missed = |costs: &[(usize, f64)]| {
        costs.iter().filter(|(k, cost)| tasks[*k].known.is_some_and(|known| *cost > known + SAME)).count()
    };
    let settled = |reports: &[EpochReport]| {
        course.settles()
            && reports.len() >= SETTLED
            && reports[reports.len() - SETTLED..].iter().all(|r| missed(&r.costs) == 0)
    };
    while trainer.reports().len() < course.epochs() && !settled(trainer.reports()) {
        if watching.interrupt.raised() {
            return Ok(None);
        }
        let r = trainer.epoch();
        Output::at(&beside)?.bytes(&trainer.checkpoint()?)?;
        let met = r.costs.len() - missed(&r.costs);
        watching.line.doing(&format!(
            "{} {seed}, epoch {}: {met} of {} met, loss {:.5}, {:.0} s, unseen {:.5}",
            course.name(),
            r.epoch,
            r.costs.len(),
            r.loss,
            run::seconds() - from,
            r.unseen
        ));
    }
    Output::at(path)?.bytes(&weights::bytes(trainer.network())?)?;
    // The weights are complete; where this file stays it is written over, or goes on from its end.
    let _ = std::fs::remove_file(&beside);
    let reports = trainer.reports();
    let best: Vec<(usize, f64)> = reports.last().map_or(vec![], |r| r.best.iter().copied().enumerate().collect());
    let training = Training {
        training: course.key(seed),
        epochs: reports.len(),
        evaluations: reports.iter().map(|r| r.evaluations).sum(),
        met: best.len() - missed(&best),
        of: tasks.len(),
        seconds: ((run::seconds() - from) * 10.0).round() / 10.0,
    };
    Ok(Some((trainer.network().clone(), training)))
}
