//! `daedal rules`: files of rewrite rules are listed, checked, and tried on programs.

mod check;
mod list;
mod mutated;
mod proved;
mod test;
mod together;

use super::World;
use crate::data;
use crate::diag::{Diagnostic, Result, nearest};
use crate::rewrite::egraph::pattern::compile;
use crate::rules::Library;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Show and check rewrite rules
#[derive(Args, Debug)]
pub struct Rules {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    List(list::List),
    Check(check::Check),
    Test(test::Test),
}

impl Rules {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        match &self.what {
            What::List(list) => list.run(world),
            What::Check(check) => check.run(world),
            What::Test(test) => test.run(world),
        }
    }
}

/// The shipped rules and those of files; all can be searched for.
fn library(files: &[PathBuf]) -> Result<Library> {
    let mut library = Library::shipped()?;
    for file in files {
        library.extend(&data::source(file)?)?;
    }
    // A rule that the engine refuses is told here already.
    library.rules.iter().try_for_each(|r| compile(r).map(drop))?;
    Ok(library)
}

/// Keeps only the rules that are named, if any are.
fn only(library: &mut Library, names: &[String]) -> Result<()> {
    for name in names {
        if !library.rules.iter().any(|r| r.name == *name) {
            let hint = nearest(name, library.rules.iter().map(|r| r.name.as_str()));
            return Err(Diagnostic::user(format!("there is no rule `{name}`")).hint(hint));
        }
    }
    library.rules.retain(|r| names.is_empty() || names.contains(&r.name));
    Ok(())
}
