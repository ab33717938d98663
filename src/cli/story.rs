//! What an optimization did to each definition becomes what the report tells of it.

use super::explain::{beginning, title};
use crate::ir::{Program, print};
use crate::pipeline::{Derived, Outcome};
use crate::report::Story;
use std::cmp::Reverse;

/// One story for each definition that was asked for.
pub fn stories(program: &Program, outcome: &Outcome) -> Vec<Story> {
    let text = |p: &Program, name: &str, k: usize| {
        let def = p.named(name).get(k).map(|d| print::def(&p.terms, d));
        def.unwrap_or_default()
    };
    let rows = &outcome.rows;
    let story = |(k, row): (usize, &crate::pipeline::Row)| {
        // Overloads of one name come in the order of the file.
        let nth = rows[..k].iter().filter(|r| r.name == row.name).count();
        let mut derived = outcome.derivations.iter().filter(|d| d.derivation.name == row.name);
        let mut fired = row.fired.clone();
        fired.sort_by_key(|(name, n)| (Reverse(*n), name.clone()));
        Story {
            name: row.name.clone(),
            cost: (row.cost_before, row.cost_after),
            text: (text(program, &row.name, nth), text(&outcome.program, &row.name, nth)),
            steps: derived.nth(nth).map(steps).unwrap_or_default(),
            fired,
            growth: row.growth.clone(),
            unproved: super::explain::unproved(row),
        }
    };
    rows.iter().enumerate().map(story).collect()
}

/// The steps with the cost after each.
fn steps(derived: &Derived) -> Vec<(String, f64)> {
    let d = &derived.derivation;
    if d.steps.is_empty() {
        return vec![];
    }
    let first = match d.bodies {
        true => beginning(d),
        false => "unfold: lets and calls are put in their places",
    };
    let last = ("share: what is computed more than once gets a name".to_string(), d.cost_after);
    let each = d.steps.iter().map(|step| (title(d, step), step.cost));
    let last = Some(last).filter(|_| !d.bodies);
    std::iter::once((first.to_string(), d.start)).chain(each).chain(last).collect()
}
