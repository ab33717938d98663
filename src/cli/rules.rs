//! `daedal rules`: files of rewrite rules become a list.

use super::World;
use crate::data;
use crate::diag::Result;
use crate::rewrite::egraph::pattern::compile;
use crate::rules::{Level, Library, Rule};
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Show rewrite rules
#[derive(Args, Debug)]
pub struct Rules {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List the shipped rules and those of further files
    List {
        /// Files of rules
        files: Vec<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Rules {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let What::List { files, json } = &self.what;
        let mut library = Library::shipped()?;
        for file in files {
            library.extend(&data::source(file)?)?;
        }
        // A rule that the engine refuses is told here already.
        library.rules.iter().try_for_each(|r| compile(r).map(drop))?;
        if *json {
            let rules: Vec<Json> = library.rules.iter().map(object).collect();
            return world.say(&json!({ "rules": rules }).to_string());
        }
        let width = library.rules.iter().map(|r| r.name.chars().count()).max().unwrap_or_default();
        for r in &library.rules {
            world.say(&format!("{:width$}  {:5}  {:>2}  {}", r.name, level(r), r.phase, r.source.name))?;
        }
        world.say(&format!("{} rules", library.rules.len()))
    }
}

fn level(rule: &Rule) -> &'static str {
    match rule.level {
        Level::Exact => "exact",
        Level::Real => "real",
    }
}

fn object(rule: &Rule) -> Json {
    json!({
        "name": rule.name,
        "level": level(rule),
        "phase": rule.phase,
        "text": rule.text,
        "source": rule.source.name,
    })
}
