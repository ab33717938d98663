//! `daedal check`: a program becomes the list of its signatures.

use super::{World, input};
use crate::diag::Result;
use crate::ir::{Body, Def};
use clap::Args;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Parse and type-check a program; prints the signature of each definition
#[derive(Args, Debug)]
pub struct Check {
    /// The program
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program(&self.file)?;
        if self.json {
            let defs: Vec<Json> = program.defs.values().map(object).collect();
            return world.say(&json!({ "defs": defs }).to_string());
        }
        for def in program.defs.values() {
            world.say(&format!("{}{}", input::signature(def), mark(def).unwrap_or_default()))?;
        }
        Ok(())
    }
}

/// What a definition without a body is.
fn mark(def: &Def) -> Option<&'static str> {
    match def.body {
        Body::Term(_) => None,
        Body::External => Some("  ; only declared"),
        Body::Derivative => Some("  ; a derivative"),
    }
}

fn object(def: &Def) -> Json {
    let params = def.params.iter().map(|p| json!({ "name": p.name, "type": p.ty.to_string(), "sizes": p.sizes }));
    json!({
        "name": def.name(),
        "params": params.collect::<Vec<Json>>(),
        "returns": def.fun.sig().ret.to_string(),
        "defined": def.term().is_some(),
    })
}
