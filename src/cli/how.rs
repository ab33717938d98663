//! How a definition is to run: its graph, and the schedule that words ask for.

use super::optimize::Float;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Op, Program};
use crate::machine::{self, Machine};
use crate::schedule::{self, Step, text};
use crate::stage::{Graph, extract};
use std::path::Path;

/// This machine, with so many threads where they are said.
pub fn machine_of(threads: Option<u32>) -> Machine {
    let host = Machine::host();
    Machine { threads: threads.map_or(host.threads, |n| n as usize), ..host }
}

/// The graph of a definition; where only values over the reals have to stay, products that are added are contracted.
pub fn staged(program: &Program, def: &Def, float: Float) -> Result<Graph> {
    let mut graph = extract(program, def).map_err(|u| u.diagnostic(program).within(&program.source))?;
    graph.real = float == Float::Real;
    Ok(if graph.real && machine::contracts() { graph.contracted() } else { graph })
}

/// What changes bits in a schedule: the stages whose products are contracted, and its steps that reassociate.
pub fn rewrites(program: &Program, def: &Def, made: &schedule::Schedule) -> Result<Vec<String>> {
    let before = staged(program, def, Float::Exact)?;
    let count = |g: &Graph, s: &str| g.find(s).map_or(0, |s| g.bodies.count(g.stage(s).bodies(), Op::Fma));
    let stages = before.stages.iter().map(|s| s.name.as_str());
    let after = if made.graph.real && machine::contracts() { before.clone().contracted() } else { before.clone() };
    let contracted = stages.filter(|s| count(&after, s) > count(&before, s)).map(|s| format!("contract {s}"));
    let order = made.steps.iter().filter(|s| matches!(s, Step::Reassociate { .. })).map(ToString::to_string);
    Ok(contracted.chain(order).collect())
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
        let mut graph = staged(program, def, self.float)?;
        if let Some(sizes) = self.sizes {
            graph = graph.only_for(sizes);
        }
        Ok(schedule::default(graph, &self.machine))
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
            let only = how.sizes.map(|sizes| text::apply(schedule::Schedule::new(graph.only_for(sizes)), &text));
            match only {
                Some(Ok(made)) => Ok(Some(made)),
                _ => text::apply(schedule::Schedule::new(graph), &text).map(|made| Some(how.sized(made))),
            }
        }
    }
}

/// The default schedule where nobody says which: nothing where the definition cannot be scheduled, or has no loop to schedule.
pub fn unasked(program: &Program, def: &Def, how: &How<'_>) -> Option<schedule::Schedule> {
    how.default(program, def).ok().filter(|made| !made.steps.is_empty())
}
