//! What was measured, as lines of JSON: read at the start, so that no measurement is made twice, and appended to.
//!
//! A line is about one case: a program, a definition, sizes and a machine. Lines that cannot be read are counted and kept.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Seconds of a call: the least, and the one in the middle.
    Seconds {
        /// The least.
        min: f64,
        /// The one in the middle.
        median: f64,
    },
    /// There is no time, and why: it is never chosen.
    Failed(String),
}

impl Outcome {
    /// The least seconds; infinitely many where it failed.
    pub fn seconds(&self) -> f64 {
        match self {
            Outcome::Seconds { min, .. } => *min,
            Outcome::Failed(_) => f64::INFINITY,
        }
    }
}

/// A schedule and what was measured of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What stands for program, definition, arguments and machine.
    pub case: String,
    /// The steps, one a line.
    pub steps: String,
    /// What was measured.
    pub outcome: Outcome,
}

/// The records of one case.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// By steps.
    pub outcomes: BTreeMap<String, Outcome>,
    /// Lines that are no records.
    pub unread: usize,
    /// Records of other cases.
    pub others: usize,
}

/// Reads the lines of a file for one case; the last line about a schedule counts.
pub fn read(text: &str, case: &str) -> Known {
    let mut out = Known::default();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        match serde_json::from_str::<Record>(line) {
            Ok(record) if record.case == case => drop(out.outcomes.insert(record.steps, record.outcome)),
            Ok(_) => out.others += 1,
            Err(_) => out.unread += 1,
        }
    }
    out
}
