//! `daedal emit`: a program at one of its levels becomes text.

use super::{World, input};
use crate::diag::Result;
use crate::ir::print;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Print a program, or one definition of it, at a level of its way to native code
#[derive(Args, Debug)]
pub struct Emit {
    /// The program
    file: PathBuf,
    /// One definition; all of them where none is given
    def: Option<String>,
    /// The level
    #[arg(long, value_enum)]
    target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Target {
    /// The language itself, in its plain spelling
    Ks,
}

impl Emit {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program(&self.file)?;
        let text = match (&self.def, self.target) {
            (Some(name), Target::Ks) => print::def(&program.terms, input::definition(&program, name)?),
            (None, Target::Ks) => print::program(&program),
        };
        world.say(text.trim_end())
    }
}
