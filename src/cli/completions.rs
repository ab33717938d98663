//! `daedal completions`: the command line becomes a script that completes it in a shell.

use super::World;
use crate::diag::Result;
use clap::{Args, Command};
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
    /// Carries it out, of all commands together.
    pub fn run(&self, mut all: Command, world: &mut World<'_>) -> Result<()> {
        let mut text = vec![];
        generate(self.shell, &mut all, "daedal", &mut text);
        world.say(String::from_utf8_lossy(&text).trim_end())
    }
}
