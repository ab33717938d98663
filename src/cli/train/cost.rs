//! `daedal train cost`: schedules of random pipelines are measured, and become the weights of a model of costs.

use crate::cli::World;
use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use crate::pipeline::grades::{Grades, grade, graded, learned, linear};
use crate::pipeline::lessons::{Collect, Lessons};
use crate::run::Watch;
use crate::tune::Model;
use crate::tune::mlp::train::{Epoch, Settings};
use crate::tune::mlp::weights;
use crate::tune::ranking::Ranking;
use crate::tune::record::Outcome;
use clap::{Args, value_parser};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train a model of what schedules cost, on random pipelines that are measured on this machine
#[derive(Args, Debug)]
pub struct Cost {
    /// Where what is measured is kept, a line each; what stands there is not measured again
    #[arg(long, value_name = "FILE")]
    records: PathBuf,
    /// How many pipelines there are to be, those of the records included; 0 to learn from the records alone
    #[arg(long, value_name = "N", default_value_t = 100)]
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
    /// How often all pipelines are learned from
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = value_parser!(u32).range(1..))]
    epochs: u32,
    /// How far the first steps of learning go
    #[arg(long, value_name = "RATE", default_value_t = 2e-3)]
    rate: f64,
    /// Where the weights are written; without it nothing is learned
    #[arg(short, long, value_name = "W.safetensors")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Cost {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let daedal = world.program.clone();
        let daedal = daedal.ok_or_else(|| Diagnostic::user("this program cannot be found, and so not be started"))?;
        let machine = crate::cli::how::machine_of(self.threads);
        let lessons = self.collected(&daedal, &machine, world)?;
        let failed = lessons.all.iter().filter(|l| matches!(l.outcome, Outcome::Failed(_))).count();
        let count = lessons.all.len();
        let Some(place) = place else {
            let object = json!({ "schedules": count, "failed": failed });
            return self.say(world, &format!("{count} schedules are measured, {failed} of them failed"), object);
        };
        let progress = world.progress(self.json);
        progress.all(self.epochs as usize);
        progress.doing("counting what schedules do");
        let all = graded(&lessons.all, &machine)?;
        if all.len() < 10 {
            let d = Diagnostic::user(format!("{} measured pipelines are too few to learn from", all.len()));
            return Err(d.note("hint: `--pipelines` says how many there are to be, and ten are the least"));
        }
        let settings = Settings { epochs: self.epochs as usize, rate: self.rate, seed: self.seed };
        let mut last = Epoch { learned: 0.0, checked: 0.0 };
        let interrupt = world.interrupt;
        let mut told = |_: usize, e: &Epoch| {
            last = *e;
            progress.done();
            progress.doing(&format!("loss {:.4}, of others {:.4}", e.learned, e.checked));
            !interrupt.raised()
        };
        let (network, about) = interrupt.during(|| learned(&all, &settings, &machine, &mut told));
        drop(progress);
        place.bytes(&weights::bytes(&network, &about)?)?;
        let models = [("linear", Model::default()), ("linear, fitted", linear(&all)), ("mlp", Model::learned(network))];
        let grades: Vec<(&str, Ranking)> = models.iter().map(|(name, m)| (*name, grade(&all, m))).collect();
        let text = table(&all, count, failed, &grades, &last);
        let each = grades.iter().map(|(name, r)| {
            json!({ "model": name, "pairs": r.pairs, "ranks": r.ranks, "first": r.first, "pipelines": r.groups })
        });
        let object = json!({ "schedules": count, "failed": failed, "pipelines": all.len(),
            "loss": { "learned": last.learned, "checked": last.checked }, "held_out": each.collect::<Vec<_>>() });
        self.say(world, &text, object)
    }

    fn say(&self, world: &mut World<'_>, text: &str, object: serde_json::Value) -> Result<()> {
        if self.json { world.say(&object.to_string()) } else { world.say(text) }
    }

    /// What is measured, now or before.
    fn collected(&self, daedal: &Path, machine: &Machine, world: &World<'_>) -> Result<Lessons> {
        let mut lessons = Lessons::read(&self.records, machine)?;
        if lessons.unread > 0 {
            // Where the standard error is gone, nobody reads it.
            let _ = writeln!(
                std::io::stderr(),
                "note: {} lines of {} are of other pipelines or machines, or cannot be read; nothing there is changed",
                lessons.unread,
                self.records.display()
            );
        }
        let (interrupt, line) = (world.interrupt, world.progress(self.json));
        let watch = Watch::new(interrupt, self.max_seconds, None);
        line.all(self.pipelines as usize);
        let mut told = |done: usize, what: &str| {
            line.done_many(done);
            line.doing(what);
        };
        let (stop, interrupted) = (|| watch.spent(1.0).is_some(), || interrupt.raised());
        let collect = Collect { daedal, machine, stop: &stop, interrupted: &interrupted };
        let seeds = self.seed..self.seed + u64::from(self.pipelines);
        interrupt.during(|| lessons.collect(seeds, &collect, &mut told))?;
        line.clear();
        Ok(lessons)
    }
}

/// What was learned, and how well models order the schedules of pipelines that nothing learned from.
fn table(all: &Grades, count: usize, failed: usize, grades: &[(&str, Ranking)], last: &Epoch) -> String {
    let held_out = grades.first().map_or(0, |(_, r)| r.groups);
    let mut out = format!(
        "{count} schedules, {failed} failed; {} pipelines, {held_out} held out; loss {:.4}, of others {:.4}\n",
        all.len(),
        last.learned,
        last.checked
    );
    out += &format!("{:<16}{:>8}{:>10}{:>16}", "model", "pairs", "ranks", "best expected");
    for (name, r) in grades {
        out += &format!("\n{name:<16}{:>7.1}%{:>10.3}{:>15.3}x", 100.0 * r.pairs, r.ranks, r.first);
    }
    out
}
