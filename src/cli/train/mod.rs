//! `daedal train`: what guides searches is learned, of terms and of schedules.

mod cost;
mod value;

use super::World;
use crate::diag::Result;
use clap::{Args, Subcommand};

/// Train what guides a search
#[derive(Args, Debug)]
pub struct Train {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Value(value::Value),
    Cost(cost::Cost),
}

impl Train {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        match &self.what {
            What::Value(value) => value.run(world),
            What::Cost(cost) => cost.run(world),
        }
    }
}
