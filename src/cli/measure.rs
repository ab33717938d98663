//! `daedal measure`: how long a definition takes under a schedule, in a process of its own. Searches start it; people use
//! `daedal run --time`.

use super::case::Case;
use super::how::{self, How, machine_of};
use super::optimize::Float;
use super::{World, input};
use crate::diag::Result;
use crate::eval::Value;
use crate::pipeline::digest::digest;
use crate::pipeline::timed::Timed;
use crate::pipeline::{close, native, timed};
use crate::run::{Native, Toolchain};
use crate::tune::example;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Measure a definition under a schedule
#[derive(Args, Debug)]
pub struct Measure {
    #[command(flatten)]
    case: Case,
    /// The schedule, or `none`
    #[arg(long, value_name = "FILE")]
    schedule: String,
    /// Parallel loops run on so many threads at most
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// What the schedule keeps
    #[arg(long, value_enum, default_value = "exact")]
    float: Float,
    /// Only compile
    #[arg(long)]
    compile: bool,
    /// Time stages, by timers around their loops
    #[arg(long, conflicts_with = "compile")]
    stages: bool,
    /// Compare the value with what the same definition of this program gives
    #[arg(long, value_name = "FILE")]
    like: Option<PathBuf>,
    /// Seconds that repeated calls may take
    #[arg(long, value_name = "S", default_value_t = 0.3)]
    seconds: f64,
}

/// Calls that are measured at least, and at most.
const CALLS: [f64; 2] = [3.0, 1000.0];

impl Measure {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.case.file, &self.case.def)?;
        let def = input::definition(&program, &self.case.def)?;
        let tools = Toolchain::discover(world.cxx.clone(), world.cache.clone());
        let args = self.case.arguments(&program, def)?;
        // Without a reference to fall back on: a schedule whose checks fail is of no use here.
        let incoming = example::incoming(def, &args);
        let how = How {
            sizes: Some(&incoming),
            machine: machine_of(self.threads),
            ..How::general(Some(&self.schedule), self.float)
        };
        let named = how::named(&program, def, &how)?;
        if self.stages {
            let made = named.map_or_else(|| how.empty(&program, def), Ok)?;
            let mut code = timed::compile(&program, def, &made, &tools)?;
            if let Some(n) = self.threads {
                code = code.with_threads(n as usize);
            }
            return self.by_stage(&code, &args, world);
        }
        let native = match named {
            Some(made) => native::compile_alone(&program, def, &made, &tools)?,
            None => native::compile(&program, def, &tools)?,
        };
        if self.compile {
            return Ok(());
        }
        let native = match self.threads {
            Some(n) => native.with_threads(n as usize),
            None => native,
        };
        if let Some(other) = &self.like {
            let other = input::program_for(other, &self.case.def)?;
            let def = input::definition(&other, &self.case.def)?;
            let want = native::compile(&other, def, &tools)?.call(&args)?;
            let apart = close::apart(&native.call(&args)?, &want);
            return world.say(&json!({ "apart": apart }).to_string());
        }
        let (min, median, value) = self.time(&native, &args)?;
        world.say(&json!({ "min": min, "median": median, "digest": digest(&value) }).to_string())
    }

    fn by_stage(&self, code: &Timed, args: &[Value], world: &mut World<'_>) -> Result<()> {
        let (seconds, _) = code.measure(args, 1)?;
        let calls = (self.seconds / seconds.max(1e-9)).clamp(CALLS[0], CALLS[1]);
        let (seconds, stages) = code.measure(args, calls as usize)?;
        world.say(&json!({ "min": seconds, "stages": stages }).to_string())
    }

    fn time(&self, native: &Native, args: &[Value]) -> Result<(f64, f64, Value)> {
        let once = native.time(args, 1)?;
        let calls = (self.seconds / once.min_seconds.max(1e-9)).clamp(CALLS[0], CALLS[1]);
        let timed = native.time(args, calls as usize)?;
        Ok((timed.min_seconds, timed.median_seconds, timed.value))
    }
}
