//! A schedule that was found becomes what its page is told.

use super::measuring::{measured, time};
use crate::diag::Result;
use crate::pipeline::tuning::{Tried, Tuned};
use crate::report::{self, Scheduled};
use crate::schedule::Outline;
use crate::tune::record::Outcome;
use crate::tune::work::PARTS;

/// The page of a schedule that was found for stated sizes, with what is said of it first.
///
/// # Errors
/// A bug: it cannot be drawn.
pub fn page(t: &Tuned, (name, about): (&str, Vec<String>), steps: &str, incoming: &[f64]) -> Result<String> {
    let special = t.schedule.specialized(incoming);
    let best = t.outcome.as_ref().map_or(f64::INFINITY, Outcome::seconds);
    let chosen = crate::tune::tree::steps(&t.schedule);
    let tried = t.tried.iter().enumerate().map(|(k, one)| report::Tried {
        steps: one.steps.clone(),
        expected: one.expected,
        measured: one.outcome.as_ref().map(Outcome::seconds).filter(|s| s.is_finite()),
        fate: fate(one, k == 0, (one.steps == chosen, best)),
    });
    report::schedule(&Scheduled {
        name: name.to_string(),
        about,
        text: (steps.to_string(), special.to_string()),
        picture: report::picture(&Outline::of(&special, Some(incoming))?),
        parts: PARTS.iter().map(ToString::to_string).collect(),
        stages: t.stages.iter().map(|(name, seconds, work)| (name.clone(), *seconds, work.0.to_vec())).collect(),
        curve: t.curve.clone(),
        judged: t.tally.evaluations,
        tried: tried.collect(),
    })
}

/// What became of a schedule: why it lost.
fn fate(one: &Tried, first: bool, (chosen, best): (bool, f64)) -> String {
    let what = match (&one.outcome, chosen) {
        (_, true) => "chosen".to_string(),
        (Some(Outcome::Failed(_)), _) => measured(one.outcome.as_ref()),
        (Some(o), _) if best.is_finite() => format!("{:.0}% slower", 100.0 * (o.seconds() / best - 1.0)),
        (Some(_), _) => "measured".to_string(),
        (None, _) if !one.expected.is_finite() => "cannot be lowered for these sizes".to_string(),
        (None, _) if best.is_finite() => format!("not measured: expected {}, and others less", time(one.expected)),
        (None, _) => "more was expected of another".to_string(),
    };
    if first { format!("where all else is compared with; {what}") } else { what }
}
