//! `daedal run`: a definition and arguments become a value, in native code.

use super::eval::Call;
use super::how::{self, How, machine_of};
use super::optimize::Float;
use super::{World, bounded, count, input};
use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::ir::Ty;
use crate::machine::Machine;
use crate::pipeline::native;
use crate::run::{Timing, Toolchain};
use crate::tune::example;
use clap::Args;
use serde_json::{Map, json};

/// Compile a definition through C++ and run it natively
///
/// The environment variable CXX picks the compiler, DAEDAL_CACHE the directory of compiled code, and
/// DAEDAL_CACHE_SIZE how many megabytes are kept there: 1024 where it is not set. What was used least
/// recently goes first, but not what was used in the last minute.
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    call: Call,
    /// Run so many times after a warm-up, and print how long it takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    time: Option<u32>,
    /// Count what the native code would do, by interpreting its loops: operations in all lanes, elements read and written,
    /// bytes. It is not compiled
    #[arg(long, conflicts_with = "time")]
    count: bool,
    /// A schedule (see `daedal schedule`), `default` or `none`: it says how loops run, and changes no bit. Where it is not
    /// said, it is the default one, if the definition can be scheduled
    #[arg(long, value_name = "FILE")]
    schedule: Option<String>,
    /// What a schedule keeps; `real` lets it contract products that are added and reassociate sums
    #[arg(long, value_enum, default_value = "exact")]
    float: Float,
    /// Say which schedule runs, and what it contracts and reassociates
    #[arg(long)]
    verbose: bool,
    /// Compile a schedule once for all sizes, not for those of the arguments, which takes longer and runs slower
    #[arg(long)]
    general: bool,
    /// Parallel loops run on so many threads at most; on all cores where it is not said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

impl Run {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.call.file, &self.call.def)?;
        let def = input::definition(&program, &self.call.def)?;
        let place = self.call.place(def)?;
        let args = input::arguments(def, &self.call.args)?;
        let mut toolchain = Toolchain::discover(world.cxx.clone(), world.cache.clone());
        if let Some(megabytes) = &world.cache_size {
            toolchain.bound = bytes(megabytes)?;
        }
        let incoming = example::incoming(def, &args);
        let sizes = Some(incoming.as_slice()).filter(|_| !self.general);
        let machine = machine_of(self.threads);
        let how = How { schedule: self.schedule.as_deref(), float: self.float, sizes, machine };
        let made = match self.schedule {
            Some(_) => how::named(&program, def, &how)?,
            None => how::unasked(&program, def, &how),
        };
        let told = match &made {
            Some(made) if self.verbose => how::rewrites(made),
            _ => vec![],
        };
        let by = made.as_ref().map(|_| self.schedule.as_deref().unwrap_or("default"));
        let ret = def.fun.sig().ret;
        if self.count {
            let mut printed = String::new();
            let done = native::counted(&program, def, made.as_ref(), (&args, &Machine::host()), &mut printed);
            world.printed(&printed)?;
            let done = done.map_err(|d| bounded::hinted(d, &program, def))?;
            return self.counted(&done, by, told, (place, ret), world);
        }
        let mut native = match made {
            Some(schedule) => native::compile_scheduled(&program, def, &schedule, &toolchain)?,
            None => native::compile(&program, def, &toolchain)?,
        };
        if let Some(n) = self.threads {
            native = native.with_threads(n as usize);
        }
        let mut more = Map::new();
        if self.verbose {
            more.insert("rewrites".into(), json!(told));
            more.insert("schedule".into(), json!(by));
            let lines = format!("schedule: {}\n{}", by.unwrap_or("none"), told.join("\n"));
            if !self.call.json {
                world.say(lines.trim_end())?;
            }
        }
        let Some(repeats) = self.time else {
            let value = native.call(&args);
            world.printed(&native.take_printed())?;
            let value = value.map_err(|d| bounded::hinted(d, &program, def))?;
            return self.call.finish(place, (&value, ret), more, world);
        };
        let timed = native.time(&args, repeats as usize);
        world.printed(&native.take_printed())?;
        let Timing { value, min_seconds, median_seconds, peak_bytes } =
            timed.map_err(|d| bounded::hinted(d, &program, def))?;
        more.insert("min_seconds".into(), json!(min_seconds));
        more.insert("median_seconds".into(), json!(median_seconds));
        more.insert("peak_bytes".into(), json!(peak_bytes));
        more.insert("schedule".into(), json!(by));
        if !self.call.json {
            let line = format!("min {min_seconds:.9} s, median {median_seconds:.9} s, peak {peak_bytes} bytes");
            world.say(&line)?;
        }
        self.call.finish(place, (&value, ret), more, world)
    }
}

impl Run {
    /// Shows what native code would do, and its value.
    fn counted(
        &self,
        done: &native::Counted,
        by: Option<&str>,
        told: Vec<String>,
        (place, ret): (Option<Output>, Ty),
        world: &mut World<'_>,
    ) -> Result<()> {
        let by = by.filter(|_| done.scheduled);
        let mut more = Map::new();
        more.insert("schedule".into(), json!(by));
        if self.verbose {
            more.insert("rewrites".into(), json!(told));
        }
        if !self.call.json {
            world.say(&format!("schedule: {}", by.unwrap_or("none")))?;
            told.iter().try_for_each(|line| world.say(line))?;
        }
        count::tell(&done.tally, self.call.json, &mut more, world)?;
        self.call.finish(place, (&done.value, ret), more, world)
    }
}

/// The bound of the cache that the environment asks for.
fn bytes(megabytes: &str) -> Result<u64> {
    let number = megabytes.trim().parse::<u64>().ok();
    number.and_then(|n| n.checked_mul(1 << 20)).ok_or_else(|| {
        Diagnostic::user(format!("DAEDAL_CACHE_SIZE is `{megabytes}`")).note("expected a number of megabytes")
    })
}
