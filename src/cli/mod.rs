//! Words of the command line become calls of the layers below, and results become text.
//!
//! One file a subcommand. It must not read the environment or end the process: that is `main.rs`.

mod bench;
mod check;
mod emit;
mod eval;
mod explain;
mod grad;
mod input;
mod lowered;
mod optimize;
mod replay;
mod rules;
mod run;
mod story;
mod train;

use crate::diag::{Diagnostic, Result};
use crate::run::Interrupt;
use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 an error of the input, 2 a limit, 70 a bug of daedal.

For example:
  daedal optimize programs/blas.ks -o fast.ks
  daedal run fast.ks axpy 2.0 [1,2,3] [10,20,30]";

/// Makes array programs fast: checks, runs, optimizes and compiles `.ks` programs.
#[derive(Parser, Debug)]
#[command(name = "daedal", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Check(check::Check),
    Eval(eval::Eval),
    Run(run::Run),
    Optimize(optimize::Optimize),
    Replay(replay::Replay),
    Grad(grad::Grad),
    Emit(emit::Emit),
    Rules(rules::Rules),
    Train(train::Train),
    Bench(bench::Bench),
}

/// What a command may know of the world around it.
pub struct World<'a> {
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// The C++ compiler that the environment asks for.
    pub cxx: Option<String>,
    /// The directory for what may be kept between runs.
    pub cache: Option<PathBuf>,
    /// Whether a person watches the standard error.
    pub terminal: bool,
    /// Whether results are written to a terminal, which shows colours.
    pub colour: bool,
    /// The user's interrupt.
    pub interrupt: &'a Interrupt,
}

/// Carries out a command.
///
/// # Errors
/// Those of the command.
pub fn run(cli: &Cli, world: &mut World<'_>) -> Result<()> {
    match &cli.command {
        Command::Check(c) => c.run(world),
        Command::Eval(c) => c.run(world),
        Command::Run(c) => c.run(world),
        Command::Optimize(c) => c.run(world),
        Command::Replay(c) => c.run(world),
        Command::Grad(c) => c.run(world),
        Command::Emit(c) => c.run(world),
        Command::Rules(c) => c.run(world),
        Command::Train(c) => c.run(world),
        Command::Bench(c) => c.run(world),
    }
}

impl World<'_> {
    /// Writes a line of results. A reader that has gone away is no error.
    fn say(&mut self, line: &str) -> Result<()> {
        match writeln!(self.out, "{line}").and_then(|()| self.out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Diagnostic::user(format!("the standard output cannot be written: {e}")))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
