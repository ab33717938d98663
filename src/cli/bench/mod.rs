//! `daedal bench SUITE`: published comparisons are run again, or this machine is measured, and become a table.
//!
//! A suite is a function from nothing to a table. With `--write` the table replaces that suite's
//! section of a page, which stands between two comments.

mod autoschedule;
mod cost_model;
mod costs;
mod knossos;
mod roofline;
mod suite;
mod trees;

pub use roofline::ceilings;

use super::World;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::run::{self, Toolchain};
use clap::{Args, ValueEnum, value_parser};
use serde_json::json;
use std::path::PathBuf;
use suite::{Table, Watching};

/// Rerun a published comparison, or measure this machine; prints its table
#[derive(Args, Debug)]
pub struct Bench {
    /// What to compare
    #[arg(value_enum)]
    suite: Suite,
    /// Of `knossos`, the experiments: all where none is named
    #[arg(value_enum)]
    experiments: Vec<knossos::Experiment>,
    /// Of `knossos`, how often searches that go by chance run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    seeds: u64,
    /// Of `knossos`, the greatest number of terms that a search evaluates
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Of `autoschedule`, schedules that an autotuned search measures
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(1..))]
    measurements: u32,
    /// Of `autoschedule` and `cost-model`, a definition of the suite; all where none is named
    #[arg(long, value_name = "DEF")]
    only: Vec<String>,
    /// Of `knossos` and `autoschedule`, the folder for runs and plots; what was run before is not run again
    #[arg(long, value_name = "FOLDER", default_value = "docs/results")]
    output: PathBuf,
    /// Write the table into its section of a page, such as docs/results.md
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Of `roofline`, measure in this process
    #[arg(long, hide = true)]
    here: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Suite {
    /// Costs of linear algebra under the published cost model, beside the best that were published
    Costs,
    /// Search of random trees, beside the published study of memory-bounded best-first beam search
    Mb2fbs,
    /// The experiments of the Knossos paper: searches of rewrites beside the best that is known
    Knossos,
    /// Ways to find schedules, from the default one to those that measure, the published toy autoscheduler among them
    Autoschedule,
    /// What the optimizer's model says that programs cost, beside the time of their native code
    CostModel,
    /// What this machine does at most: `fma` and bytes moved, on one thread and on all, with the compiler of `daedal run`
    Roofline,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Suite::Costs => "costs",
            Suite::Mb2fbs => "mb2fbs",
            Suite::Knossos => "knossos",
            Suite::CostModel => "cost-model",
            Suite::Roofline => "roofline",
            Suite::Autoschedule => "autoschedule",
        }
    }
}

impl Bench {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        if !self.experiments.is_empty() && !matches!(self.suite, Suite::Knossos) {
            let message = format!("the suite `{}` has no experiments to choose", self.suite.name());
            return Err(Diagnostic::user(message).note("the suite `knossos` has"));
        }
        if !self.only.is_empty() && !matches!(self.suite, Suite::Autoschedule | Suite::CostModel) {
            let message = format!("the suite `{}` has no definitions to choose", self.suite.name());
            return Err(Diagnostic::user(message).note("the suites `autoschedule` and `cost-model` have: `--only`"));
        }
        let from = run::seconds();
        let watching = Watching { line: world.progress(self.json), interrupt: world.interrupt };
        let table = world.interrupt.during(|| match self.suite {
            Suite::Costs => costs::table(&watching),
            Suite::Mb2fbs => trees::table(&watching),
            Suite::Knossos => {
                let budget = self.budget.map(|n| n as usize);
                let asked = knossos::Asked { experiments: self.experiments.clone(), seeds: self.seeds, budget };
                knossos::table(&asked, &self.output, &watching)
            }
            Suite::CostModel => {
                let tools = Toolchain::discover(world.cxx.clone(), world.cache.clone());
                cost_model::table(&self.only, &watching, &tools)
            }
            Suite::Roofline => roofline::table(self.here, world),
            Suite::Autoschedule => {
                let asked = autoschedule::Asked { measurements: self.measurements as usize, only: self.only.clone() };
                autoschedule::table(&asked, &self.output, &watching, world)
            }
        });
        drop(watching);
        let (table, seconds) = (table?, run::seconds() - from);
        let cut = world.interrupt.raised();
        if let Some(path) = self.write.as_ref().filter(|_| !cut) {
            data::section(path, self.suite.name(), &table.lines)?;
        }
        self.tell(&table, seconds, world)?;
        if cut {
            let d = Diagnostic::limit("interrupted: these are the rows that were finished");
            return Err(match self.suite {
                Suite::Costs | Suite::CostModel | Suite::Mb2fbs | Suite::Roofline => d,
                Suite::Knossos | Suite::Autoschedule => {
                    d.note("finished runs are kept, and the same command goes on behind them")
                }
            });
        }
        Ok(())
    }

    fn tell(&self, table: &Table, seconds: f64, world: &mut World<'_>) -> Result<()> {
        if self.json {
            let object = json!({ "suite": self.suite.name(), "rows": table.rows, "seconds": seconds });
            return world.say(&object.to_string());
        }
        table.lines.iter().try_for_each(|line| world.say(line))?;
        world.say(&format!("\n{} rows in {seconds:.1} s", table.rows.len()))
    }
}
