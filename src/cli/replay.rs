//! `daedal replay`: a program and a derivation become a verdict for each definition.

use super::{World, input};
use crate::data;
use crate::derive::record;
use crate::derive::replay::replay;
use crate::diag::Result;
use crate::rules::Library;
use clap::Args;
use std::path::PathBuf;

/// Check a derivation, step by step, without the search that found it
#[derive(Args, Debug)]
pub struct Replay {
    /// The program
    file: PathBuf,
    /// The derivation, as `daedal optimize --derivation` writes it
    derivation: PathBuf,
    /// A file of further rules that the derivation uses; may be given more than once
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
}

impl Replay {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program(&self.file)?;
        let mut library = Library::shipped()?;
        for file in &self.rules {
            library.extend(&data::source(file)?)?;
        }
        let source = data::source(&self.derivation)?;
        let record = record::read(&source)?;
        let verdicts = replay(&program, &record, &library, &source.name)?;
        let width = verdicts.iter().map(|v| v.name.chars().count()).max().unwrap_or_default();
        for v in &verdicts {
            world.say(&format!(
                "{:width$}  {:>5} steps hold; {} inputs agree, {} programs on the way ran",
                v.name, v.steps, v.inputs, v.ran
            ))?;
        }
        world.say(&format!("{} definitions replayed", verdicts.len()))
    }
}
