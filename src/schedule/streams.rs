//! Stages of a strip that read one row of memory after another, and nothing else from afar: several rows are read side by
//! side. Processors ask for lines ahead page by page, so that each row is a stream of its own, and one stream is waited for.
//!
//! It must not know what kernels there are.

use super::access::{CHANNELS, coefficient};
use super::plan::{Schedule, Site};
use crate::stage::{Body, Definition, Node, Source, StageId};

/// Rows that are read side by side.
const ROWS: i64 = 4;
/// Sources of fewer elements are in a cache.
const FAR: i64 = 1 << 20;
/// Shorter rows share pages, in bytes.
const PAGE: i64 = 4096;

/// How many rows of a stage are computed at once, where it reads a single one for each.
pub(super) fn rows(s: &Schedule, stage: StageId) -> Option<i64> {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let (last, row) = match known.dims.as_slice() {
        [.., row, last] if matches!(known.def, Definition::Pure(_)) => (*last, *row),
        _ => return None,
    };
    let mut streams: Vec<(Source, Vec<Body>)> = vec![];
    for b in g.bodies.reachable(known.bodies()) {
        let Node::Load(from, ty, at) = g.bodies.node(b) else { continue };
        if !is_far(s, *from) {
            continue;
        }
        let moves = |i: &Body| g.bodies.dims(*i).contains(&last);
        let (outer, x) = at.split_at(at.iter().position(moves)?);
        let (x, channels) = x.split_first()?;
        let inner = g.extents(*from).split_off(outer.len() + 1).into_iter().map(|n| g.bodies.as_int(n));
        let step = coefficient(g, *x, last)? * inner.product::<Option<i64>>()?;
        let bytes = g.bodies.as_int(g.dim(last).extent)? * step * i64::from(ty.bytes());
        let next = outer.last().is_some_and(|i| coefficient(g, *i, row) == Some(1));
        if bytes < PAGE || !(1..=CHANNELS).contains(&step) || !next || channels.iter().any(moves) {
            return None;
        }
        streams.push((*from, outer.to_vec()));
    }
    streams.sort();
    streams.dedup();
    (streams.len() == 1).then_some(ROWS)
}

/// Whether a source is in no cache.
pub(super) fn is_far(s: &Schedule, from: Source) -> bool {
    let whole = match from {
        Source::Input(_) => true,
        Source::Stage(p, _) => s.plan(p).site == Site::Root,
    };
    let extents = s.graph.extents(from);
    let elements = extents.iter().map(|n| s.graph.bodies.as_int(*n)).product::<Option<i64>>();
    whole && elements.is_some_and(|n| n >= FAR)
}
