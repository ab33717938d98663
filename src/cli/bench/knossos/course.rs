//! What networks learn, from what, and how a training went.

use super::tasks::{Task, tasks, text};
use crate::derive::record::hash;
use crate::ir::Program;
use crate::rewrite::agent::Bind;
use crate::rewrite::agent::value::Setting;
use crate::rewrite::agent::value::settings::Settings;
use crate::search::Algorithm;
use serde::{Deserialize, Serialize};

/// What a network learns, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Course {
    /// From which definitions.
    pub subject: Subject,
    /// From which search.
    pub by: Algorithm,
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
    pub fn tasks<'a>(self, programs: &'a [(&'static str, Program)]) -> Vec<Task<'a>> {
        let mut tasks = tasks(programs, self.name());
        tasks.retain(|t| match self {
            Subject::Arithmetic => true,
            Subject::Sharing => t.def.name().starts_with("train"),
            Subject::Linear => t.known.is_none(),
        });
        tasks
    }
}

/// How far a step of learning goes.
pub const RATE: f64 = 0.0015;

/// A training that is tested on what it learned from ends early, once all searches of so many epochs in a row met the
/// least cost that is known.
pub const SETTLED: usize = 3;

impl Course {
    /// The name of its files.
    pub fn name(self) -> String {
        let by = if self.by == Algorithm::Astar { String::new() } else { format!("-{}", self.by.name()) };
        format!("{}{by}", self.subject.name())
    }

    /// Epochs at most: in the paper 40 (Section 4.1).
    pub fn epochs(self) -> usize {
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
    pub fn settles(self) -> bool {
        self.subject == Subject::Arithmetic
    }

    /// How it is learned.
    pub fn settings(self, seed: u64) -> Settings {
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
        let of = format!("{} {SETTLED} {RATE} {:?} {:?}", self.epochs(), self.settings(0), text(self.subject.name()));
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
