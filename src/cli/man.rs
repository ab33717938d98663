//! `daedal man`: the command line becomes a page of the manual.

use super::World;
use crate::diag::{Diagnostic, Result, nearest};
use clap::{Args, Command};

/// Print the page of the manual for daedal, or for one of its commands
///
/// For example: daedal man optimize | man -l -
#[derive(Args, Debug)]
pub struct Man {
    /// The command, such as `optimize` or `rules check`
    command: Vec<String>,
}

impl Man {
    /// Carries it out, of all commands together.
    pub fn run(&self, mut all: Command, world: &mut World<'_>) -> Result<()> {
        all.build();
        let mut command = &all;
        for word in &self.command {
            command = command.find_subcommand(word).ok_or_else(|| unknown(command, word))?;
        }
        let mut page = vec![];
        clap_mangen::Man::new(command.clone())
            .render(&mut page)
            .map_err(|e| Diagnostic::bug(format!("the page cannot be made: {e}")))?;
        world.say(String::from_utf8_lossy(&page).trim_end())
    }
}

fn unknown(command: &Command, word: &str) -> Box<Diagnostic> {
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    let known: Vec<&str> = shown.map(Command::get_name).collect();
    let d = Diagnostic::user(format!("`{}` has no command `{word}`", command.get_name()));
    match nearest(word, known.iter().copied()) {
        Some(hint) => d.hint(Some(hint)),
        None if known.is_empty() => d,
        None => d.note(format!("it has {}", known.join(", "))),
    }
}
