//! `daedal eval`: a definition and arguments become a value, in the interpreter.

use super::{World, bounded, count, input};
use crate::data::{self, Output};
use crate::diag::Result;
use crate::eval::{Interpreter, Value};
use crate::ir::{Def, Ty};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Run a definition in the interpreter, which defines the language
#[derive(Args, Debug)]
pub struct Eval {
    #[command(flatten)]
    call: Call,
    /// Count what the interpreter does: operations, elements read and written, bytes
    #[arg(long)]
    count: bool,
}

/// What to call, and where its result goes.
#[derive(Args, Debug)]
pub struct Call {
    /// The program
    pub file: PathBuf,
    /// The definition to run
    pub def: String,
    /// A literal, a JSON array, `@file.npy`, `@file.png` or `@file.json`; one a parameter
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    pub args: Vec<String>,
    /// Print one JSON object on the last line
    #[arg(long)]
    pub json: bool,
    /// Write the result to a file that ends in .npy, .png or .json
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Call {
    /// The place of the result of a definition, checked before the work starts.
    pub fn place(&self, def: &Def) -> Result<Option<Output>> {
        let place = self.output.as_deref();
        place.map(|path| Output::for_value(path, def.fun.sig().ret)).transpose()
    }

    /// Writes and prints a result of a type, with further members of the JSON object.
    pub fn finish(
        &self,
        place: Option<Output>,
        (value, ty): (&Value, Ty),
        more: serde_json::Map<String, serde_json::Value>,
        world: &mut World<'_>,
    ) -> Result<()> {
        if let Some(place) = &place {
            place.value(value, ty)?;
        }
        if self.json {
            let mut object = json!({ "value": value.to_json() });
            if let Some(members) = object.as_object_mut() {
                members.extend(more);
            }
            return world.say(&object.to_string());
        }
        if place.is_some() || world.look.quiet {
            return Ok(());
        }
        match data::shortened(value).filter(|_| world.look.results) {
            None => world.say(&value.to_json().to_string()),
            Some((text, left_out)) => {
                world.say(&text)?;
                world.say(&format!("; {left_out} elements are left out here; a file (`-o`) or a pipe gets all"))
            }
        }
    }
}

impl Eval {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.call.file, &self.call.def)?;
        let def = input::definition(&program, &self.call.def)?;
        let place = self.call.place(def)?;
        let args = input::arguments(def, &self.call.args)?;
        let interpreter = Interpreter::new(&program);
        let interpreter = if self.count { interpreter.counted() } else { interpreter };
        let value = interpreter.run(def, &args);
        world.printed(&interpreter.take_printed())?;
        let value = value.map_err(|d| bounded::hinted(d, &program, def))?;
        let mut more = serde_json::Map::new();
        if self.count {
            count::tell(&interpreter.tally(), self.call.json, &mut more, world)?;
        }
        self.call.finish(place, (&value, def.fun.sig().ret), more, world)
    }
}
