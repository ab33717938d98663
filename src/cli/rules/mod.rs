//! `daedal rules`: files of rewrite rules are listed, checked, and tried on programs.

mod check;
mod chosen;
mod list;
mod mutated;
mod proved;
mod test;
mod together;

use super::World;
use crate::diag::Result;
use clap::{Args, Subcommand};

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
