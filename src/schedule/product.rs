//! Which stages are products: reductions of many elements that tiles of accumulators suit.

use super::access::strides;
use super::footprint::points as terms;
use super::plan::Schedule;
use super::tiling::FEW;
use super::{along, orders};
use crate::machine::Machine;
use crate::stage::{Node, Stage, StageId};

/// Terms of sums for which operands that others read again are worth packing.
const CONTRACTED: i64 = 8;

/// Whether a stage reduces many elements, which lie in memory next to each other for some dimension, as they are or packed.
pub(super) fn is_product(s: &Schedule, stage: StageId, machine: &Machine) -> bool {
    let known = s.graph.stage(stage);
    let near = || known.dims.last().is_some_and(|d| strides(&s.graph, known, *d));
    let many =
        !known.over().is_empty() && terms(s, stage).is_none_or(|n| n > FEW || n >= CONTRACTED && contracts(s, known));
    many && !orders::is_strided(&s.graph, known) && (near() || along::candidate(s, stage, machine).is_some())
}

/// Whether rows and columns of a reduction read operands of their own, each of which is read again by all of the others.
fn contracts(s: &Schedule, known: &Stage) -> bool {
    let bodies = &s.graph.bodies;
    let [.., row, last] = known.dims.as_slice() else { return false };
    let mut read = [false; 2];
    bodies.reachable(known.bodies()).into_iter().all(|b| {
        let Node::Load(_, _, at) = bodies.node(b) else { return true };
        let of = [row, last].map(|d| at.iter().any(|i| bodies.dims(*i).contains(d)));
        read = [read[0] || of[0], read[1] || of[1]];
        of != [true, true]
    }) && read == [true, true]
}
