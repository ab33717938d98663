//! `daedal trial`: schedules of one program are compiled together and measured in turns, in a process that a training starts.

use super::World;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::pipeline::lab::append;
use crate::pipeline::trial::{Line, Task};
use crate::run::Toolchain;
use clap::Args;
use std::path::PathBuf;

/// Measure the schedules of a task
#[derive(Args, Debug)]
pub struct Trial {
    /// The task
    task: PathBuf,
    /// Where what comes of it is written, a line each, before what may end the process
    said: PathBuf,
    /// Only compile
    #[arg(long)]
    compile: bool,
}

impl Trial {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let text = data::bytes(&self.task)?;
        let task: Task = serde_json::from_slice(&text).map_err(|e| Diagnostic::user(format!("no task: {e}")))?;
        let tools = Toolchain::discover(world.cxx.clone(), world.cache.clone());
        task.run(&tools, self.compile, &mut |line: &Line| {
            let line = serde_json::to_string(line).map_err(|e| Diagnostic::bug(format!("a line: {e}")))?;
            append(&self.said, &mut false, &line)
        })
    }
}
