//! `--picture`: a schedule becomes a file of a drawing.

use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::report;
use crate::schedule::{Outline, Schedule};
use std::path::Path;

/// A file of a drawing, whose place is known to be good before there is anything to draw.
pub struct Picture(Output);

impl Picture {
    /// A drawing in a file.
    ///
    /// # Errors
    /// The file does not end in `.svg`, or cannot be written.
    pub fn at(path: &Path) -> Result<Picture> {
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
            return Err(Diagnostic::user(format!("`{}` has an unknown ending", path.display()))
                .note("a picture is an SVG: its name ends in `.svg`"));
        }
        Ok(Picture(Output::at(path)?))
    }

    /// Draws a schedule, which is for some numbers that come in alone, or for all.
    ///
    /// # Errors
    /// The file cannot be written; a bug, where the schedule cannot be lowered.
    pub fn draw(&self, schedule: &Schedule, incoming: Option<&[f64]>) -> Result<()> {
        self.0.bytes(report::picture(&Outline::of(schedule, incoming)?).as_bytes())
    }
}
