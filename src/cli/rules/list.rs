//! `daedal rules list`: the rules become lines.

use super::chosen::library;
use crate::cli::World;
use crate::diag::Result;
use crate::rules::Rule;
use clap::Args;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// List the shipped rules and those of further files
#[derive(Args, Debug)]
pub struct List {
    /// Files of rules
    files: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let library = library(&self.files)?;
        if self.json {
            let rules: Vec<Json> = library.rules.iter().map(object).collect();
            return world.say(&json!({ "rules": rules }).to_string());
        }
        let width = library.rules.iter().map(|r| r.name.chars().count()).max().unwrap_or_default();
        for r in &library.rules {
            world.say(&format!("{:width$}  {:5}  {:>2}  {}", r.name, r.level.to_string(), r.phase, r.source.name))?;
        }
        world.say(&format!("{} rules", library.rules.len()))
    }
}

fn object(rule: &Rule) -> Json {
    json!({
        "name": rule.name,
        "level": rule.level.to_string(),
        "phase": rule.phase,
        "text": rule.text,
        "source": rule.source.name,
    })
}
