//! `daedal train cost`: schedules of random pipelines are measured, and become the weights of a model of costs.

use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use crate::pipeline::lessons::{Collect, Lessons};
use crate::run::Watch;
use clap::{Args, value_parser};
use std::path::PathBuf;

/// Train a model of what schedules cost, on random pipelines that are measured on this machine
#[derive(Args, Debug)]
pub struct Cost {
    /// Where what is measured is kept, a line each; what stands there is not measured again
    #[arg(long, value_name = "FILE")]
    records: PathBuf,
    /// How many pipelines there are to be, those of the records included
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pipelines: u32,
    /// The seed of the first pipeline; the others follow
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Begin no pipeline after so many seconds
    #[arg(long, value_name = "S", value_parser = crate::cli::optimize::positive)]
    max_seconds: Option<f64>,
    /// Parallel loops run on so many threads at most; on all cores where it is not said
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Cost {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let daedal = world.program.clone();
        let daedal = daedal.ok_or_else(|| Diagnostic::user("this program cannot be found, and so not be started"))?;
        let machine = crate::cli::how::machine_of(self.threads);
        let lessons = self.collected(&daedal, &machine, world)?;
        world.say(&format!("{} records", lessons.all.len()))
    }

    /// What is measured, now or before.
    fn collected(&self, daedal: &std::path::Path, machine: &Machine, world: &World<'_>) -> Result<Lessons> {
        let mut lessons = Lessons::read(&self.records, machine)?;
        let (interrupt, line) = (world.interrupt, world.progress(self.json));
        let watch = Watch::new(interrupt, self.max_seconds, None);
        line.all(self.pipelines as usize);
        let mut told = |done: usize, what: &str| {
            line.done_many(done);
            line.doing(what);
        };
        let collect = Collect { daedal, machine, stop: &|| watch.spent(1.0).is_some() };
        let seeds = self.seed..self.seed + u64::from(self.pipelines);
        interrupt.during(|| lessons.collect(seeds, &collect, &mut told))?;
        line.clear();
        Ok(lessons)
    }
}
