//! How a definition is to run: its graph, and the schedule that words ask for.

use super::optimize::Float;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::schedule::{self, text};
use crate::stage::{Graph, extract};
use std::path::Path;

/// This machine, with so many threads where they are said.
pub fn machine_of(threads: Option<u32>) -> Machine {
    let host = Machine::host();
    Machine { threads: threads.map_or(host.threads, |n| n as usize), ..host }
}

/// The graph of a definition, and what a schedule of it has to keep.
pub fn staged(program: &Program, def: &Def, float: Float) -> Result<Graph> {
    let mut graph = extract(program, def).map_err(|u| u.diagnostic(program).within(&program.source))?;
    graph.real = float == Float::Real;
    Ok(graph)
}

/// What changes bits in a schedule: its steps that contract and reassociate.
pub fn rewrites(made: &schedule::Schedule) -> Vec<String> {
    made.steps.iter().filter(|s| s.is_rewrite()).map(ToString::to_string).collect()
}

/// How a definition is to run.
pub struct How<'a> {
    /// A file of a schedule, `default`, or `none` for the program as it stands.
    pub schedule: Option<&'a str>,
    /// What its graph keeps.
    pub float: Float,
    /// The whole numbers that come in, where it is for these alone.
    pub sizes: Option<&'a [f64]>,
    /// What the default schedule is made for.
    pub machine: Machine,
}

impl<'a> How<'a> {
    /// For all sizes, on this machine.
    pub fn general(schedule: Option<&'a str>, float: Float) -> How<'a> {
        How { schedule, float, sizes: None, machine: Machine::host() }
    }

    /// The default schedule.
    fn default(&self, program: &Program, def: &Def) -> Result<schedule::Schedule> {
        let graph = staged(program, def, self.float)?;
        Ok(match self.sizes {
            Some(sizes) => schedule::default_for(graph, sizes, &self.machine),
            None => schedule::default(graph, &self.machine),
        })
    }

    /// Its graph without a step.
    pub fn empty(&self, program: &Program, def: &Def) -> Result<schedule::Schedule> {
        Ok(self.sized(schedule::Schedule::new(staged(program, def, self.float)?)))
    }

    /// A schedule, for these sizes alone where it is for some.
    fn sized(&self, made: schedule::Schedule) -> schedule::Schedule {
        match self.sizes {
            Some(sizes) => made.specialized(sizes),
            None => made,
        }
    }
}

/// The schedule that is wanted; nothing for the program as it stands.
pub fn named(program: &Program, def: &Def, how: &How<'_>) -> Result<Option<schedule::Schedule>> {
    match how.schedule {
        None | Some("none") => Ok(None),
        Some("") => Err(Diagnostic::user("`--schedule` names no file")),
        Some("default") => how.default(program, def).map(Some),
        Some(path) => {
            let (graph, text) = (staged(program, def, how.float)?, data::source(Path::new(path))?);
            // Steps that were made for stated sizes may be legal for these alone, others for all sizes alone: there
            // are stages of indices that are known numbers here.
            let only = how.sizes.map(|sizes| text::apply_for(graph.clone(), sizes, &text));
            let general = || text::apply(schedule::Schedule::new(graph), &text).map(|made| Some(how.sized(made)));
            match only {
                Some(Ok(made)) => Ok(Some(made)),
                // Where neither is legal, what was asked for is told.
                Some(Err(why)) => general().map_err(|_| why),
                None => general(),
            }
        }
    }
}

/// The default schedule where nobody says which: nothing where the definition cannot be scheduled, or has no loop to schedule.
pub fn unasked(program: &Program, def: &Def, how: &How<'_>) -> Option<schedule::Schedule> {
    how.default(program, def).ok().filter(|made| made.graph.has_loops())
}
