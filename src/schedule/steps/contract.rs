//! `contract`: products that are added become `fma`, one rounding in place of two.
//!
//! Floats round otherwise then: this is a rewrite of the graph that stands before all else, and is refused where bits have to
//! stay.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::schedule::step::Step;

pub(super) fn contract(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    if s.steps.iter().any(|step| !matches!(step, Step::Contract { .. })) {
        return refuse("it changes the program, and stands before all else");
    }
    if !s.graph.real {
        return refuse(format!("what `{stage}` adds would round once, not twice: `--float real` allows that"));
    }
    if !s.contract(id) {
        return refuse(format!("no product of floats is added in `{stage}`, but for what decides something"));
    }
    Ok(())
}
