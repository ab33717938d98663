//! Words of the command line become calls of the layers below, and results become text.
//!
//! One file a subcommand. It must not read the environment or end the process: that is `main.rs`.

mod bench;
mod bounded;
mod case;
mod check;
mod completions;
mod count;
mod derived;
mod emit;
mod engine;
mod eval;
mod explain;
mod found;
mod grad;
mod how;
mod input;
mod judging;
mod look;
mod lowered;
mod man;
mod measure;
mod measuring;
mod optimize;
mod picture;
mod replay;
mod rules;
mod run;
mod schedule;
mod search;
mod story;
mod train;
mod trial;
mod tune;
mod world;

pub use look::{Colour, Look};
pub use world::World;

use crate::diag::Result;
use clap::{Arg, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

const AFTER_HELP: &str = "\
Exit codes: 0 done (for `optimize` and `schedule --mode` also where a limit or an interrupt ends the
search: the best so far is the result), 1 an error of the input, 2 a limit or an interrupt that left
work undone, 70 a bug of daedal.

For example:
  daedal optimize programs/blas.ks -o fast.ks
  daedal run fast.ks axpy 2.0 [1,2,3] [10,20,30]";

/// Makes array programs fast: checks, runs, optimizes and compiles `.ks` programs.
#[derive(Parser, Debug)]
#[command(name = "daedal", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Whether messages and tables have colours; `auto` is on terminals, but not where NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: Colour,
    /// Print no results, nor how far the work is; errors and notes stay, and files are written
    #[arg(short, long, global = true)]
    quiet: bool,
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
    Schedule(Box<schedule::Schedule>),
    #[command(hide = true)]
    Measure(measure::Measure),
    Tune(Box<tune::Tune>),
    Rules(rules::Rules),
    Train(train::Train),
    #[command(hide = true)]
    Trial(trial::Trial),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
}

/// The command that words mean, the first of which is the name of the program.
///
/// # Errors
/// They mean none, or ask for help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> std::result::Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let command = negative(Cli::command()).color(asked(&words));
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// The colours that words ask for, whatever else may be wrong with them.
fn asked(words: &[OsString]) -> ColorChoice {
    let options = || words.iter().take_while(|w| *w != "--").map(|w| w.to_str().unwrap_or_default());
    let next = options().zip(options().skip(1)).filter(|(name, _)| *name == "--color").map(|(_, when)| when);
    let joined = options().filter_map(|w| w.strip_prefix("--color="));
    match next.chain(joined).last() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Every option may be followed by a negative number: what is wrong with it is for the option to say.
fn negative(command: clap::Command) -> clap::Command {
    let option = |a: &Arg| !a.is_positional() && a.get_action().takes_values();
    command.mut_args(|a| if option(&a) { a.allow_negative_numbers(true) } else { a }).mut_subcommands(negative)
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
        Command::Schedule(c) => c.run(world),
        Command::Measure(c) => c.run(world),
        Command::Tune(c) => c.run(world),
        Command::Rules(c) => c.run(world),
        Command::Train(c) => c.run(world),
        Command::Trial(c) => c.run(world),
        Command::Bench(c) => c.run(world),
        Command::Completions(c) => c.run(Cli::command(), world),
        Command::Man(c) => c.run(Cli::command(), world),
    }
}

impl Cli {
    /// What is shown, by what was asked for: whether results and messages go to a terminal, and whether the
    /// environment asks for no colours.
    pub fn look(&self, results: bool, messages: bool, plain: bool) -> Look {
        Look {
            results,
            colour: self.color.shown(results, plain),
            message_colour: self.color.shown(messages, plain),
            progress: messages && !self.quiet,
            quiet: self.quiet,
        }
    }
}
