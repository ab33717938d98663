//! Schedules that were found become times, measured in turns: what a machine does beside hits all of them.

use super::find::Finding;
use super::records::{Records, Timed, Way};
use crate::cli::bench::suite::Watching;
use crate::diag::Result;
use crate::pipeline::lab::Lab;
use crate::run::roofline::{Ceiling, Kind};
use crate::schedule::Schedule;
use crate::stage::{Graph, Output, Source};
use crate::tune::Tree;
use crate::tune::record::Outcome;
use crate::tune::toy::Functions;
use std::collections::BTreeMap;

/// How often each schedule has its turn.
const TURNS: usize = 3;

/// Measures what all ways found, and writes it down, unless the work has to end.
///
/// # Errors
/// Those of measuring and writing.
pub fn all(finding: &Finding<'_, '_>, records: &mut Records, watching: &Watching<'_>) -> Result<()> {
    let stop = || watching.interrupt.raised();
    let found = |way: Way| Some((way, records.found(&finding.key, way)?.steps.clone()?));
    let ways: Vec<(Way, String)> = Way::ALL.into_iter().filter_map(found).collect();
    // Ways that found the same have the same time.
    let mut each: Vec<String> = ways.iter().map(|(_, steps)| steps.clone()).collect();
    each.sort_unstable();
    each.dedup();
    let mut told = |_: Option<&Outcome>| {};
    let mut lab = Lab::new(finding.setup(&stop)?, None, &mut told)?;
    let mut best: BTreeMap<String, std::result::Result<f64, String>> = BTreeMap::new();
    for _ in 0..TURNS {
        let outcomes = lab.measure(&each)?;
        if outcomes.len() < each.len() {
            return Ok(());
        }
        for (steps, outcome) in each.iter().zip(outcomes) {
            let own = best.entry(steps.clone()).or_insert(Ok(f64::INFINITY));
            *own = match (own.clone(), outcome) {
                (Ok(known), Outcome::Seconds { min, .. }) => Ok(known.min(min)),
                (Err(why), _) | (_, Outcome::Failed(why)) => Err(why),
            };
        }
    }
    let of = ways.iter().filter_map(|(way, steps)| Some((*way, best.get(steps)?.clone()))).collect();
    let (space, _) = finding.space()?;
    let least = least(&space, records.ceilings());
    records.add_timed(Timed { key: finding.key.clone(), of, least })
}

/// Seconds that the machine needs at least: to move all that comes in and goes out once, and for the operations of all stages,
/// each computed once, in full vectors.
fn least(space: &Tree<'_>, ceilings: &[Ceiling]) -> f64 {
    let most = |kind: Kind, of: u64| {
        ceilings.iter().find(|c| c.kind == kind && c.of == of).map_or(f64::INFINITY, |c| c.all * 1e9)
    };
    let moved = moved(space.special()) / most(Kind::Triad, 4).max(most(Kind::Copy, 4));
    // A fused multiplication and addition counts as two.
    let vectors = most(Kind::Fma, 64) / 2.0;
    moved.max(operations(space.start(), space.special()) / vectors)
}

/// Bytes of all inputs and results.
fn moved(g: &Graph) -> f64 {
    let extents = |from: Source| -> f64 {
        g.extents(from).iter().map(|n| g.bodies.as_int(*n).map_or(1.0, |n| n as f64)).product()
    };
    let inputs = (0..g.inputs.len() as u32).map(Source::Input);
    let outputs = g.outputs.iter().filter_map(|o| match o {
        Output::Data(from) => Some(*from),
        Output::Scalar(_) | Output::Size(_) => None,
    });
    let bytes = |from: Source| match from {
        Source::Input(k) => f64::from(g.inputs[k as usize].ty.bytes()),
        Source::Stage(s, k) => f64::from(g.stage(s).tys[k as usize].bytes()),
    };
    inputs.chain(outputs).map(|from| bytes(from) * extents(from)).sum()
}

/// Operations of all stages, as many as fill 64 bits counting as one.
fn operations(s: &Schedule, special: &Graph) -> f64 {
    let functions = Functions::of(s, special);
    let one = |f: &crate::tune::toy::Function| {
        let points: f64 = f.extents.iter().map(|n| *n as f64).product();
        let elements: f64 = f.extents[..f.own].iter().map(|n| *n as f64).product();
        let width = f.bytes / f.components.max(1.0) / 8.0;
        (points * f.each.operations() + elements * f.first.operations()) * width
    };
    functions.all.iter().map(one).sum()
}
