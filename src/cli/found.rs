//! A schedule that was found becomes what its page is told.

use super::World;
use super::bench;
use super::measuring::{measured, time};
use crate::diag::Result;
use crate::pipeline::timed::StageTime;
use crate::pipeline::tuning::{Tried, Tuned};
use crate::report::{self, Scheduled};
use crate::run::roofline::{Ceiling, Kind};
use crate::schedule::Outline;
use crate::tune::record::Outcome;
use crate::tune::tree::{Share, steps};
use crate::tune::work::PARTS;

/// What a page is about.
pub struct Page<'a> {
    /// What was found.
    pub tuned: &'a Tuned,
    /// The name of the definition.
    pub name: &'a str,
    /// What is said first.
    pub about: Vec<String>,
    /// The steps as a file.
    pub text: &'a str,
    /// Sizes and scalars.
    pub incoming: &'a [f64],
    /// Seconds of a call with timers, and those of its stages; or why there are none.
    pub timed: std::result::Result<(f64, Vec<StageTime>), String>,
}

/// What this machine does at most: bytes between its memory and processors, and operations of 64 bits, a second; nothing where
/// it cannot be measured.
pub fn ceilings(world: &World<'_>) -> Option<[f64; 2]> {
    let all: Vec<Ceiling> = bench::ceilings(world).ok()?;
    let most = |of: &dyn Fn(&&Ceiling) -> bool| all.iter().filter(of).map(|c| c.all * 1e9).reduce(f64::max);
    let bytes = most(&|c| c.kind != Kind::Fma && c.of == 4)?;
    // A fused multiplication and addition counts as two.
    Some([bytes, most(&|c| c.kind == Kind::Fma && c.of == 64)? / 2.0])
}

/// The page of a schedule that was found for stated sizes, with what is said of it first.
///
/// # Errors
/// A bug: it cannot be drawn.
pub fn page(of: Page<'_>, ceilings: &Option<[f64; 2]>) -> Result<String> {
    let t = of.tuned;
    let special = t.schedule.specialized(of.incoming);
    let best = t.outcome.as_ref().map_or(f64::INFINITY, Outcome::seconds);
    let chosen = steps(&t.schedule);
    let tried = t.tried.iter().enumerate().map(|(k, one)| report::Tried {
        steps: one.steps.clone(),
        expected: one.expected,
        measured: one.outcome.as_ref().map(Outcome::seconds).filter(|s| s.is_finite()),
        fate: fate(one, k == 0, (one.steps == chosen, best)),
    });
    let timed = of.timed.as_ref().map_or(&[][..], |(_, stages)| stages);
    let stage = |(share, expected): &(Share, Option<f64>)| report::Row {
        name: share.name.clone(),
        expected: *expected,
        counts: share.work.0.to_vec(),
        measured: timed.iter().find(|s| s.stage == share.name).map(|s| (s.seconds, s.times)),
        operations: share.operations,
        bytes: share.bytes,
    };
    report::schedule(&Scheduled {
        name: of.name.to_string(),
        about: of.about,
        text: (of.text.to_string(), special.to_string()),
        picture: report::picture(&Outline::of(&special, Some(of.incoming))?),
        parts: PARTS.iter().map(ToString::to_string).collect(),
        stages: t.stages.iter().map(stage).collect(),
        timed: of.timed.map(|(seconds, _)| seconds),
        ceilings: *ceilings,
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
