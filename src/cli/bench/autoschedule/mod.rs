//! Suite `autoschedule`: ways to find a schedule, beside each other: the default one, searches by model and by measurements, the
//! published configurations of memory-bounded best-first beam search, the toy autoscheduler, and schedules by hand.
//!
//! What a way finds, and what is measured, are lines of a file, so that a bench that was interrupted goes on where it was.

mod cases;
mod find;
mod page;
mod records;
mod time;

use super::roofline;
use super::suite::{Table, Watching};
use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use cases::CASES;
use find::Finding;
use page::Page;
use records::{Records, Way};
use std::path::Path;

/// What of it to run.
pub struct Asked {
    /// Schedules that an autotuned search measures.
    pub measurements: usize,
    /// Definitions; all where none is named.
    pub only: Vec<String>,
}

/// The file of what was run, in the folder of results.
const FILE: &str = "autoschedule.jsonl";

/// Runs what is not done yet, and makes a page of it.
///
/// # Errors
/// The folder cannot be written, its file is none of this suite, or no definition has a name that is asked for.
pub fn table(asked: &Asked, folder: &Path, watching: &Watching<'_>, world: &World<'_>) -> Result<Table> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Diagnostic::user(format!("the folder `{}` cannot be made: {e}", folder.display())))?;
    if let Some(name) = asked.only.iter().find(|n| !CASES.iter().any(|c| c.def == **n)) {
        let known: Vec<String> = CASES.iter().map(|c| format!("`{}`", c.def)).collect();
        return Err(Diagnostic::user(format!("no program of this suite is called `{name}`"))
            .note(format!("there are {}", known.join(", "))));
    }
    let chosen = CASES.iter().filter(|c| asked.only.is_empty() || asked.only.iter().any(|n| n == c.def));
    let made = chosen.map(|c| Ok((c, Finding::new(c, asked.measurements, world)?)));
    let cases = made.collect::<Result<Vec<_>>>()?;
    let mut records = Records::open(&folder.join(FILE))?;
    if records.ceilings().is_empty() && !watching.interrupt.raised() {
        watching.line.doing("what the machine does at most");
        records.add_ceilings(roofline::ceilings(world)?)?;
    }
    watching.line.all(cases.len() * Way::ALL.len());
    for (case, finding) in &cases {
        for way in Way::ALL {
            watching.line.doing(&format!("{}: {}", case.def, way.name(asked.measurements)));
            if !watching.interrupt.raised() && records.found(&finding.key, way).is_none() {
                finding.find(way, &mut records, watching)?;
            }
            watching.line.done();
        }
        if !watching.interrupt.raised() && records.timed(&finding.key).is_none() {
            watching.line.doing(&format!("{}: all in turns", case.def));
            time::all(finding, &mut records, watching)?;
        }
    }
    let page = Page { cases: &cases, records: &records, measurements: asked.measurements };
    Ok(Table { lines: page.lines(), rows: page.objects() })
}
