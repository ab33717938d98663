//! What commands may know of the world around them, and how they speak to it.

use super::look::Look;
use crate::diag::{Diagnostic, Result};
use crate::run::{Interrupt, Progress};
use std::io::{self, Write};
use std::path::PathBuf;

/// What a command may know of the world around it.
pub struct World<'a> {
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// The C++ compiler that the environment asks for.
    pub cxx: Option<String>,
    /// The directory for what may be kept between runs.
    pub cache: Option<PathBuf>,
    /// How many megabytes of compiled code may be kept there.
    pub cache_size: Option<String>,
    /// This program itself, to be started again where work needs a process of its own.
    pub program: Option<PathBuf>,
    /// What is shown, and how.
    pub look: Look,
    /// The user's interrupt.
    pub interrupt: &'a Interrupt,
}

impl World<'_> {
    /// Writes what a program printed, before its result or its failure.
    pub(in crate::cli) fn printed(&mut self, text: &str) -> Result<()> {
        text.strip_suffix('\n').map_or(Ok(()), |lines| self.say(lines))
    }

    /// How far the work is, where somebody watches; nobody does who asked for JSON.
    pub(in crate::cli) fn progress(&self, json: bool) -> Progress {
        Progress::new(self.look.progress && !json)
    }

    /// Writes a line of results. A reader that has gone away is no error.
    pub(in crate::cli) fn say(&mut self, line: &str) -> Result<()> {
        if self.look.quiet {
            return Ok(());
        }
        match writeln!(self.out, "{line}").and_then(|()| self.out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Diagnostic::user(format!("the standard output cannot be written: {e}")))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
