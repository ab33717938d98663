//! How much is measured, on how many threads, and where it is kept: what searches of schedules are told by words.

use super::World;
use super::how::machine_of;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use crate::pipeline::lab::{Limits, Setup};
use crate::run::Watch;
use crate::tune::record::{self, Known, Outcome};
use clap::Args;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

/// How schedules are measured.
#[derive(Args, Debug, Default)]
pub struct Measuring {
    /// Schedules that are measured at most, those among the records included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub measurements: Option<u32>,
    /// End after so many seconds with the best so far
    #[arg(long, value_name = "S", value_parser = super::optimize::positive)]
    pub max_seconds: Option<f64>,
    /// What takes more memory to compile or to run fails; half of what may be used where nothing is said
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub max_memory: Option<u64>,
    /// Parallel loops run on so many threads at most; on all cores where it is not said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Keep what is measured in a file, and measure nothing again that stands there
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

/// What was measured before.
#[derive(Default)]
pub struct Before {
    text: String,
}

impl Measuring {
    /// The first word that says something of measurements, but for threads.
    pub fn said(&self) -> Option<&'static str> {
        let all = [
            (self.measurements.is_some(), "--measurements"),
            (self.max_seconds.is_some(), "--max-seconds"),
            (self.max_memory.is_some(), "--max-memory"),
            (self.records.is_some(), "--records"),
        ];
        all.into_iter().find(|(said, _)| *said).map(|(_, name)| name)
    }

    /// This machine, with so many threads where they are said.
    pub fn machine(&self) -> Machine {
        machine_of(self.threads)
    }

    /// Limits of the whole work from now on.
    pub fn watch<'a>(&self, world: &World<'a>) -> Watch<'a> {
        Watch::new(world.interrupt, self.max_seconds, None)
    }

    /// How a case is measured that is told to another process by words.
    ///
    /// # Errors
    /// This program does not know where it is.
    pub fn setup<'a>(
        &self,
        (world, words, real): (&World<'_>, Vec<OsString>, bool),
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Setup<'a>> {
        let daedal = world.program.clone();
        let daedal = daedal.ok_or_else(|| Diagnostic::user("this program cannot be found, and so not be started"))?;
        let standard = Limits::standard();
        let limits = Limits { bytes: self.max_memory.map_or(standard.bytes, |mb| mb << 20), ..standard };
        Ok(Setup { daedal, words, threads: self.machine().threads, real, limits, stop })
    }

    /// What was measured before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn before(&self) -> Result<Before> {
        let Some(path) = self.records.as_deref().filter(|p| p.exists()) else { return Ok(Before::default()) };
        Ok(Before { text: String::from_utf8_lossy(&data::bytes(path)?).into_owned() })
    }

    /// Says what of the records is of no use here, on the standard error.
    pub fn unused(&self, known: &Known) {
        let Some(path) = &self.records else { return };
        let lines = |n: usize| if n == 1 { "1 line".to_string() } else { format!("{n} lines") };
        let mut notes = vec![];
        if known.unread > 0 {
            notes.push(format!(
                "{} of {} cannot be read; nothing there is changed",
                lines(known.unread),
                path.display()
            ));
        }
        if known.outcomes.is_empty() && known.others > 0 {
            notes.push(format!(
                "{} of {} tell of other programs, sizes or machines (or numbers of threads) than this one",
                lines(known.others),
                path.display()
            ));
        }
        for note in notes {
            // Where the standard error is gone, nobody reads it.
            let _ = writeln!(std::io::stderr(), "note: {note}");
        }
    }
}

impl Before {
    /// What is known of a case.
    pub fn known(&self, case: &str) -> Known {
        record::read(&self.text, case)
    }

    /// Whether the last line was cut off.
    pub fn cut(&self) -> bool {
        !self.text.is_empty() && !self.text.ends_with('\n')
    }
}

/// Seconds for people.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "none".into(),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

/// What came of a measurement, for people.
pub fn measured(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "not measured".into(),
        Some(Outcome::Seconds { min, .. }) => time(*min),
        Some(Outcome::Failed(why)) => format!("failed: {why}"),
    }
}
