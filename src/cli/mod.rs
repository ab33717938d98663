//! Words of the command line become calls of the layers below, and results become text.
//!
//! One file a subcommand. It must not read the environment or end the process: that is `main.rs`.

mod check;
mod emit;
mod eval;
mod input;

use crate::diag::{Diagnostic, Result};
use clap::{Parser, Subcommand};
use std::io::{self, Write};

/// Makes array programs fast: checks, runs, optimizes and compiles `.ks` programs.
#[derive(Parser, Debug)]
#[command(name = "daedal", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Check(check::Check),
    Eval(eval::Eval),
    Emit(emit::Emit),
}

/// Carries out a command; its results go to `out`.
///
/// # Errors
/// Those of the command.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<()> {
    match &cli.command {
        Command::Check(c) => c.run(out),
        Command::Eval(c) => c.run(out),
        Command::Emit(c) => c.run(out),
    }
}

/// Writes a line. A reader that has gone away is no error.
fn say(out: &mut dyn Write, line: &str) -> Result<()> {
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::user(format!("the standard output cannot be written: {e}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
