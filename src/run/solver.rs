//! A question in SMT-LIB becomes an answer of the solver z3, where that is installed.
//!
//! It must not know what is asked.

use crate::diag::{Diagnostic, Result};
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// What the solver says of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// There is no model: what was negated is proved.
    Unsatisfiable,
    /// There is a model.
    Satisfiable,
    /// It gave up.
    Unknown,
    /// It was ended from outside, and came to say nothing.
    Ended,
}

/// Whether a solver can be called.
pub fn installed() -> bool {
    Command::new("z3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Asks the solver; it gives up after some seconds.
///
/// # Errors
/// The solver cannot be started or does not understand the text.
pub fn ask(text: &str, seconds: u32) -> Result<Answer> {
    let bad = |e: io::Error| Diagnostic::user(format!("z3 cannot be run: {e}"));
    let mut command = Command::new("z3");
    command.arg(format!("-T:{seconds}")).arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(bad)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).map_err(bad)?;
    }
    let out = child.wait_with_output().map_err(bad)?;
    let said = String::from_utf8_lossy(&out.stdout);
    match said.lines().map(str::trim).find(|l| !l.is_empty()) {
        Some("unsat") => Ok(Answer::Unsatisfiable),
        Some("sat") => Ok(Answer::Satisfiable),
        None if out.status.code().is_none() => Ok(Answer::Ended),
        Some("unknown" | "timeout") | None => Ok(Answer::Unknown),
        Some(other) => Err(Diagnostic::bug("z3 does not understand what it is asked").note(other.to_string())),
    }
}
