//! `daedal run`: a definition and arguments become a value, in native code.

use super::eval::Call;
use super::{World, input};
use crate::diag::Result;
use crate::run::{Native, Timing, Toolchain};
use clap::Args;
use serde_json::{Map, json};

/// Compile a definition through C++ and run it natively
///
/// The environment variable CXX picks the compiler, DAEDAL_CACHE the directory of compiled code.
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    call: Call,
    /// Run so many times after a warm-up, and print how long it takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    time: Option<u32>,
}

impl Run {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.call.file, &self.call.def)?;
        let def = input::definition(&program, &self.call.def)?;
        let place = self.call.place()?;
        let args = input::arguments(def, &self.call.args)?;
        let toolchain = Toolchain::discover(world.cxx.clone(), world.cache.clone());
        let native = Native::compile(&program, def, &toolchain)?;
        let ret = def.fun.sig().ret;
        let Some(repeats) = self.time else {
            return self.call.finish(place, (&native.call(&args)?, ret), Map::new(), world);
        };
        let Timing { value, min_seconds, median_seconds, peak_bytes } = native.time(&args, repeats as usize)?;
        let mut more = Map::new();
        more.insert("min_seconds".into(), json!(min_seconds));
        more.insert("median_seconds".into(), json!(median_seconds));
        more.insert("peak_bytes".into(), json!(peak_bytes));
        if !self.call.json {
            let line = format!("min {min_seconds:.9} s, median {median_seconds:.9} s, peak {peak_bytes} bytes");
            world.say(&line)?;
        }
        self.call.finish(place, (&value, ret), more, world)
    }
}
