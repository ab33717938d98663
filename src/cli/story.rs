//! What an optimization did to each definition becomes what the report tells of it.

use crate::ir::{Program, print};
use crate::pipeline::Outcome;
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
        let mut fired = row.fired.clone();
        fired.sort_by_key(|(name, n)| (Reverse(*n), name.clone()));
        Story {
            name: row.name.clone(),
            cost: (row.cost_before, row.cost_after),
            text: (text(program, &row.name, nth), text(&outcome.program, &row.name, nth)),
            steps: vec![],
            fired,
            growth: row.growth.clone(),
        }
    };
    rows.iter().enumerate().map(story).collect()
}
