//! A definition with arguments, given or made up of sizes, as the searches of schedules and their measurements take it.

use super::{input, optimize};
use crate::diag::Result;
use crate::eval::Value;
use crate::ir::{Def, Program};
use crate::tune::example;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// What is scheduled, and for which sizes.
#[derive(Args, Debug)]
pub struct Case {
    /// The program
    pub file: PathBuf,
    /// The definition
    pub def: String,
    /// Arguments for which a schedule is made or searched, as `run` takes them; without any, they are made up of the sizes
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    pub args: Vec<String>,
    /// A named size or integer parameter of made-up arguments, or `x.1`, the first size of a parameter `x` without names,
    /// 256 where nothing is said; may be given more than once
    #[arg(long = "size", value_name = "NAME=N", value_parser = optimize::size)]
    pub sizes: Vec<(String, u64)>,
    /// The seed of made-up arguments and of searches
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl Case {
    /// The whole numbers that come in, where anything is said of them.
    ///
    /// # Errors
    /// As [`Case::arguments`].
    pub fn incoming(&self, program: &Program, def: &Def) -> Result<Option<Vec<f64>>> {
        let known = !self.args.is_empty() || !self.sizes.is_empty();
        let args = known.then(|| self.arguments(program, def)).transpose()?;
        Ok(args.map(|args| example::incoming(def, &args)))
    }

    /// The arguments.
    ///
    /// # Errors
    /// Words that are no arguments, sizes that nothing has, or arguments that would be too large.
    pub fn arguments(&self, program: &Program, def: &Def) -> Result<Vec<Value>> {
        if !self.args.is_empty() || def.params.is_empty() {
            return input::arguments(def, &self.args);
        }
        made_up(program, def, &self.sizes, self.seed)
    }

    /// The words that say the same to another process.
    pub fn words(&self) -> Vec<OsString> {
        let mut out: Vec<OsString> = vec!["--seed".into(), self.seed.to_string().into()];
        for (name, n) in &self.sizes {
            out.extend(["--size".into(), OsString::from(format!("{name}={n}"))]);
        }
        out.extend(["--".into(), self.file.clone().into(), self.def.clone().into()]);
        out.extend(self.args.iter().map(OsString::from));
        out
    }
}

/// Arguments of sizes that the program has.
///
/// # Errors
/// Sizes that nothing has, or arguments that would be too large.
pub fn made_up(program: &Program, def: &Def, sizes: &[(String, u64)], seed: u64) -> Result<Vec<Value>> {
    optimize::known_sizes(program, sizes)?;
    example::arguments(def, sizes, seed)
}
