//! `reassociate`: the terms of a reduction are combined in another order, of lanes or of blocks.
//!
//! Sums of floats then round otherwise: this is a rewrite of the graph that stands before all steps, and is refused where bits
//! have to stay. What is exact in any order may be reassociated always.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::schedule::step::Step;
use crate::stage::Order;

pub(super) fn reassociate(s: &mut Schedule, stage: &str, order: Order) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    if !s.steps.iter().all(Step::is_rewrite) {
        return refuse("it changes the program, and stands before all steps");
    }
    if !s.graph.real && s.graph.order_shows(id) == Some(true) {
        return refuse(format!(
            "the terms of `{stage}` are floats, whose sum rounds otherwise: `--float real` allows that"
        ));
    }
    s.reassociate(id, order).or_else(refuse)
}
