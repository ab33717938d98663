//! `daedal completions`: the command line becomes a script that completes it in a shell.

use super::{Cli, World};
use crate::diag::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Print a script that completes command lines of daedal in a shell
///
/// For example, in ~/.bashrc: source <(daedal completions bash)
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let mut text = vec![];
        generate(self.shell, &mut Cli::command(), "daedal", &mut text);
        world.say(String::from_utf8_lossy(&text).trim_end())
    }
}
