//! Stages of which most elements are never read: a stack of pictures, say, of which each pixel wants two, and data decide which.
//! Elements are computed where they are read, so that the others are not.
//!
//! It counts reads by sizes, and must not know what kernels there are.

use super::attempt::{name, take};
use super::cheap::nodes;
use super::plan::{Schedule, Site};
use super::readings::{places, reads};
use super::step::Step;
use crate::stage::{Definition, StageId};

/// There are so many elements for each that is read: those that are computed where they are read are not in vectors, or their
/// operands are read from many places.
const UNREAD: i64 = 4;
/// Nodes that take the place of all loads of a stage, at most: each of what is read next in its turn has more places.
const MOST: i64 = 256;

/// Computes elements where they are read, where there are many more of them: readers first, which then read less themselves.
pub(super) fn inline_unread(s: &mut Schedule) {
    for stage in s.graph.order().into_iter().rev() {
        if !is_mostly_unread(s, stage) {
            continue;
        }
        let before = s.before();
        // What is computed in its loops has no place there any more.
        let inside: Vec<StageId> =
            s.graph.ids().filter(|p| matches!(s.plan(*p).site, Site::At(host, _) if host == stage)).collect();
        let moved = inside.into_iter().all(|p| {
            let step = Step::ComputeRoot { stage: name(s, p) };
            take(s, step)
        });
        let step = Step::Inline { stage: name(s, stage) };
        if !moved || !take(s, step) {
            s.back(before);
        }
    }
}

/// Whether a stage has many more elements than are read of it.
fn is_mostly_unread(s: &Schedule, stage: StageId) -> bool {
    let known = s.graph.stage(stage);
    let plain = matches!(known.def, Definition::Pure(_))
        && s.plan(stage).site != Site::Inline
        && s.steps_of(stage).is_none()
        && !s.is_output(stage);
    let (true, Some(all)) = (plain, s.graph.points(&known.dims)) else { return false };
    let readers = s.consumers(stage);
    let text = readers.iter().map(|r| places(&s.graph, *r, stage)).sum::<i64>() * nodes(s, stage).0 as i64;
    let reads: Option<i64> = readers.iter().map(|r| reads(&s.graph, *r, stage)).sum();
    text <= MOST && reads.is_some_and(|n| n.checked_mul(UNREAD).is_some_and(|n| 0 < n && n <= all))
}
