//! The accesses of a point, by how their places step with the innermost loop.

use super::stage::{Seen, Stage};
use crate::tune::facts::Touch;

/// How a place steps: not at all, by one element, by a few, by more, or as data decide.
const STEPS: [&str; 5] = ["broadcast", "unit", "strided", "transposed", "gather"];
/// What is accessed.
const OF: [&str; 3] = ["load_input", "load_stage", "store"];

/// The most elements that a stride has.
const FEW: f64 = 4.0;

/// How the place of an access steps with the lanes of its vector, or else with its innermost loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Steps {
    /// One place for all.
    Broadcast,
    /// Places next to each other.
    Unit,
    /// So many elements further, at most four.
    Strided(f64),
    /// More than that, such as a row further.
    Transposed,
    /// Data, a clamp or a division decides.
    Gather,
}

/// How an access steps.
pub fn steps(seen: &Seen<'_>, t: &Touch) -> Steps {
    let path = &seen.paths[t.inside];
    let wide = path.iter().find(|k| seen.facts.loops[**k].lanes > 1.0);
    let Some(inner) = wide.or(path.last()) else { return Steps::Broadcast };
    match &t.access.at {
        _ if t.wild => Steps::Gather,
        None => Steps::Gather,
        Some(form) => match form.coefficient(seen.facts.loops[*inner].var).abs() {
            0.0 => Steps::Broadcast,
            1.0 => Steps::Unit,
            n if n <= FEW => Steps::Strided(n),
            _ => Steps::Transposed,
        },
    }
}

/// Names, as `load_input_unit`: how many of these accesses one point takes.
pub fn names() -> impl Iterator<Item = String> {
    OF.iter().flat_map(|of| STEPS.iter().map(move |s| format!("{of}_{s}")))
}

/// The values, in the order of the names.
pub fn values(seen: &Seen<'_>, stage: &Stage) -> Vec<f64> {
    let mut out = vec![0.0; OF.len() * STEPS.len()];
    let inner = |t: &Touch| seen.facts.takes.iter().any(|take| take.buf == Some(t.access.buf));
    let loads = seen.loads(stage.number).map(|t| (usize::from(inner(t)), t));
    for (of, t) in loads.chain(seen.stores(stage.number).map(|t| (2, t))) {
        let step = match steps(seen, t) {
            Steps::Broadcast => 0,
            Steps::Unit => 1,
            Steps::Strided(_) => 2,
            Steps::Transposed => 3,
            Steps::Gather => 4,
        };
        out[of * STEPS.len() + step] += seen.times[t.inside] / stage.points.max(1.0);
    }
    out
}
