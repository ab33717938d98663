//! What was found and measured becomes lines of a file, and lines become that again.
//!
//! Lines about single measurements stand in the same file, as searches write them.

use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::pipeline::lab::append;
use crate::run::roofline::Ceiling;
use crate::tune::record::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A way to come by a schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The schedule where nobody asks.
    Default,
    /// The one that stands beside the program.
    Hand,
    /// A search by model alone, as `--mode one-shot` does it.
    OneShot,
    /// The sixteen that the model likes best, measured.
    Top,
    /// Rounds of measurements.
    Autotuned,
    /// A beam of 32 states.
    Beam32,
    /// A beam of 64 states.
    Beam64,
    /// Memory-bounded best-first beam search, (30, 2, ∞).
    Uncontrolled,
    /// The same, (28, 4, 32).
    Controlled,
    /// The toy autoscheduler.
    Toy,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 10] = [
        Way::Default,
        Way::Hand,
        Way::OneShot,
        Way::Top,
        Way::Autotuned,
        Way::Beam32,
        Way::Beam64,
        Way::Uncontrolled,
        Way::Controlled,
        Way::Toy,
    ];

    /// What it is called in tables.
    pub fn name(self, measurements: usize) -> String {
        match self {
            Way::Default => "default".into(),
            Way::Hand => "by hand".into(),
            Way::OneShot => "one-shot".into(),
            Way::Top => "top 16".into(),
            Way::Autotuned => format!("autotuned, {measurements} measured"),
            Way::Beam32 => "beam 32".into(),
            Way::Beam64 => "beam 64".into(),
            Way::Uncontrolled => "MB2FBS (30, 2, ∞)".into(),
            Way::Controlled => "MB2FBS (28, 4, 32)".into(),
            Way::Toy => "toy autoscheduler".into(),
        }
    }
}

/// What a way found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// What stands for the program, its sizes and the machine.
    pub key: String,
    /// The way.
    pub way: Way,
    /// The steps; nothing where there is no such schedule.
    pub steps: Option<String>,
    /// Seconds that the linear model expects of it.
    pub expected: Option<f64>,
    /// The published cost of the toy system, and that of its default tree.
    pub published: Option<(f64, f64)>,
    /// States that were expanded and judged.
    pub expanded: usize,
    /// See there.
    pub judged: usize,
    /// Seconds that it took, those of measuring included.
    pub seconds: f64,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What all ways take, measured in turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// As in [`Found`].
    pub key: String,
    /// The least seconds of each way; why there are none where it failed.
    pub of: BTreeMap<Way, std::result::Result<f64, String>>,
    /// Seconds that the machine needs at least.
    pub least: f64,
}

/// A line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Ceilings { ceilings: Vec<Ceiling> },
    Found(Found),
    Timed(Timed),
    Measured(Record),
}

/// The file.
pub struct Records {
    path: PathBuf,
    cut: bool,
    ceilings: Vec<Ceiling>,
    found: Vec<Found>,
    timed: Vec<Timed>,
}

impl Records {
    /// Reads a file, where there is one. A last line that was cut off is left out.
    ///
    /// # Errors
    /// It cannot be read, or a line is none of this suite.
    pub fn open(path: &Path) -> Result<Records> {
        let text = match path.exists() {
            true => String::from_utf8_lossy(&data::bytes(path)?).into_owned(),
            false => String::new(),
        };
        let cut = !text.is_empty() && !text.ends_with('\n');
        let mut out = Records { path: path.to_path_buf(), cut, ceilings: vec![], found: vec![], timed: vec![] };
        let count = text.lines().count();
        for (k, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            match serde_json::from_str(line) {
                Ok(Line::Ceilings { ceilings }) => out.ceilings = ceilings,
                Ok(Line::Found(found)) => out.found.push(found),
                Ok(Line::Timed(timed)) => out.timed.push(timed),
                Ok(Line::Measured(_)) => {}
                Err(_) if cut && k + 1 == count => {}
                Err(e) => {
                    let place = format!("{}:{}", path.display(), k + 1);
                    return Err(Diagnostic::user(format!(
                        "{place}: expected a line of this suite, found another: {e}"
                    ))
                    .note("hint: `--output` names another folder"));
                }
            }
        }
        Ok(out)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its last line was cut off, and none was written since.
    pub fn cut(&self) -> bool {
        self.cut
    }

    /// What the machine does at most.
    pub fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings
    }

    /// What a way found.
    pub fn found(&self, key: &str, way: Way) -> Option<&Found> {
        self.found.iter().rev().find(|f| f.key == key && f.way == way)
    }

    /// What was measured: the least of all times that were, where that was done more than once.
    pub fn timed(&self, key: &str) -> Option<Timed> {
        self.timed.iter().filter(|t| t.key == key).cloned().reduce(|mut all, t| {
            for (way, own) in t.of {
                let least = match (all.of.remove(&way), own) {
                    (Some(Ok(a)), Ok(b)) => Ok(a.min(b)),
                    (Some(Err(why)), _) | (_, Err(why)) => Err(why),
                    (None, Ok(b)) => Ok(b),
                };
                all.of.insert(way, least);
            }
            all
        })
    }

    /// Adds what the machine does at most.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_ceilings(&mut self, ceilings: Vec<Ceiling>) -> Result<()> {
        self.write(&Line::Ceilings { ceilings: ceilings.clone() })?;
        self.ceilings = ceilings;
        Ok(())
    }

    /// Adds what a way found.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_found(&mut self, found: Found) -> Result<()> {
        self.write(&Line::Found(found.clone()))?;
        self.found.push(found);
        Ok(())
    }

    /// Adds what was measured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_timed(&mut self, timed: Timed) -> Result<()> {
        self.write(&Line::Timed(timed.clone()))?;
        self.timed.push(timed);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let text = serde_json::to_string(line).map_err(|e| Diagnostic::bug(format!("a record: {e}")))?;
        append(&self.path, &mut self.cut, &text)
    }
}
