//! `daedal replay`: a program and a derivation become a verdict for each definition.

use super::{World, input};
use crate::data;
use crate::derive::record;
use crate::diag::{Diagnostic, Result};
use crate::pipeline::replay::replayed;
use crate::rules::Library;
use clap::Args;
use serde_json::{Value as Json, json};
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
    /// Print one JSON object
    #[arg(long)]
    json: bool,
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
        let (progress, interrupt) = (world.progress(self.json), world.interrupt);
        progress.all(record.derivations.len());
        let mut begun = false;
        let wanted = |name: &str| {
            progress.done_many(usize::from(std::mem::replace(&mut begun, true)));
            progress.doing(name);
            !interrupt.raised()
        };
        let verdicts = interrupt.during(|| replayed(&program, &record, &library, &source.name, wanted));
        drop(progress);
        let (verdicts, all) = (verdicts?, record.derivations.len());
        if self.json {
            let defs = verdicts.iter().zip(&record.derivations).map(|(v, (d, _))| {
                json!({
                    "name": v.name,
                    "params": v.params,
                    "steps": v.steps,
                    "lemmas": d.lemmas.iter().map(|l| json!({ "name": l.name, "steps": l.steps.len() })).collect::<Vec<Json>>(),
                    "cost_before": d.cost_before,
                    "cost_after": d.cost_after,
                    "inputs": v.inputs,
                    "ran": v.ran,
                })
            });
            let (level, model) = (record.header.level.to_string(), &record.header.cost_model);
            let assumed: Vec<&str> = record.header.assume.iter().map(|a| a.name()).collect();
            let object = json!({
                "defs": defs.collect::<Vec<Json>>(),
                "definitions": all,
                "level": level,
                "assume": assumed,
                "cost_model": model,
            });
            world.say(&object.to_string())?;
            return whole(verdicts.len(), all);
        }
        for a in &record.header.assume {
            world.say(&format!("assumed `{}`: {}", a.name(), a.says()))?;
        }
        let width = verdicts.iter().map(|v| v.name.chars().count()).max().unwrap_or_default();
        for v in &verdicts {
            let lemmas = match v.lemmas.len() {
                0 => String::new(),
                n => {
                    format!(", by {n} lemmas of {} steps", v.lemmas.iter().map(|l| l.programs.len() - 1).sum::<usize>())
                }
            };
            world.say(&format!(
                "{:width$}  {:>5} steps hold{lemmas}; {} inputs agree, {} programs on the way ran",
                v.name, v.steps, v.inputs, v.ran
            ))?;
        }
        world.say(&format!("{} definitions replayed", verdicts.len()))?;
        whole(verdicts.len(), all)
    }
}

/// Whether all derivations were replayed.
fn whole(done: usize, all: usize) -> Result<()> {
    match done {
        done if done < all => Err(Diagnostic::limit(format!("interrupted: {done} of {all} were replayed"))),
        _ => Ok(()),
    }
}
