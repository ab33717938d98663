//! The levels of `daedal emit` below the language: a definition becomes loops or C++ text.

use super::how::{How, named, staged};
use crate::codegen::Unit;
use crate::cost::Model;
use crate::data;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::nest::Nest;
use crate::pipeline::{self, native};
use crate::schedule::Schedule;
use crate::stage::Graph;
use std::path::PathBuf;
use std::sync::Arc;

/// The stages of a definition, as what changes bits leaves them.
pub fn stages(program: &Program, def: &Def, how: &How<'_>) -> Result<String> {
    Ok(rewritten_graph(program, def, how)?.to_string())
}

/// A definition as what changes bits leaves it: its products contracted and its sums taken in the order that the schedule
/// says. The interpreter runs what is made; no other step of a schedule changes a bit of that.
pub fn rewritten(program: &Program, def: &Def, how: &How<'_>) -> Result<Program> {
    let graph = rewritten_graph(program, def, how)?;
    graph.program(def).map_err(|why| Diagnostic::limit(format!("`{}` is no text: {why}", def.name())))
}

fn rewritten_graph(program: &Program, def: &Def, how: &How<'_>) -> Result<Arc<Graph>> {
    let made = named(program, def, how)?;
    let mut plain = Schedule::new(staged(program, def, how.float)?);
    for step in made.iter().flat_map(|made| &made.steps).filter(|s| s.is_rewrite()) {
        let refused = |why| Diagnostic::limit(format!("`{step}` is for stated sizes only: {why}"));
        step.apply(&mut plain).map_err(|why| refused(why.0))?;
    }
    Ok(plain.graph)
}

/// The loop nest of a definition.
pub fn nest(program: &Program, def: &Def, how: &How<'_>) -> Result<Nest> {
    match named(program, def, how)? {
        Some(schedule) => native::scheduled_nest(def, &schedule, &Machine::host()),
        None => native::nest(program, def, &Machine::host()),
    }
}

/// The C++ text of a definition.
pub fn cpp(program: &Program, def: &Def, how: &How<'_>) -> Result<String> {
    Ok(Unit::new(&[&nest(program, def, how)?]).text)
}

/// The program after optimization, with the choices that `optimize` makes by itself but for these.
pub fn optimized(program: &Program, cost: Model, rules: &[PathBuf]) -> Result<Program> {
    let rules = rules.iter().map(|f| data::source(f)).collect::<Result<_>>()?;
    let options = pipeline::Options { cost, rules, ..pipeline::Options::standard() };
    Ok(pipeline::optimize(program, &options)?.program)
}

/// Refuses a level that has a text for one definition only.
pub fn one_only(target: &str) -> Box<Diagnostic> {
    Diagnostic::user(format!("`--target {target}` shows one definition")).note("name it after the file")
}
