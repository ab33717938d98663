//! Stages that ask whether an element lies at an end of its row, as adjoints of differences do: their rows are cut into ends and
//! a middle that asks nothing, which is then made vectors of. A vector that is chosen before that asks in all lanes.

use super::plan::Schedule;
use crate::ir::{Op, Scalar};
use crate::stage::{Body, DimId, Graph, Node, StageId};
use rustc_hash::FxHashSet;

/// So many elements are an end.
const END: i64 = 2;
/// Shorter rows are hardly more than their ends.
const ROW: i64 = 64;

/// Whether all that a stage asks of the index of its last dimension is whether it is at an end, and it asks that.
pub(super) fn asks(s: &Schedule, stage: StageId) -> bool {
    let (g, known) = (&s.graph, s.graph.stage(stage));
    let Some(d) = known.dims.last().copied() else { return false };
    let Some(n) = g.bodies.as_int(g.dim(d).extent).filter(|n| *n >= ROW) else { return false };
    let mut asked: FxHashSet<Body> = FxHashSet::default();
    for b in g.bodies.reachable(known.bodies()) {
        if let Node::If([c, ..]) = *g.bodies.node(b) {
            let own = g.bodies.reachable([c]).into_iter();
            asked.extend(own.filter(|b| is_comparison(g, *b) && g.bodies.dims(*b).contains(&d)));
        }
    }
    !asked.is_empty() && asked.iter().all(|c| is_at_end(g, *c, d, n))
}

fn is_comparison(g: &Graph, b: Body) -> bool {
    matches!(g.bodies.node(b), Node::Op(Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Eq | Op::Ne, ..))
}

/// Whether a comparison of integers changes its answer at an end of so many indices alone.
fn is_at_end(g: &Graph, c: Body, d: DimId, n: i64) -> bool {
    let Node::Op(_, _, args) = g.bodies.node(c) else { return false };
    if g.bodies.ty(args[0]) != Scalar::I64 {
        return false;
    }
    let form = || g.bodies.linear(args[0])?.plus(&g.bodies.linear(args[1])?, -1);
    let Some(form) = form() else { return false };
    let mut terms = form.terms();
    let (Some((index, by)), None) = (terms.next(), terms.next()) else { return false };
    let place = -form.offset() * by;
    *g.bodies.node(index) == Node::Index(d) && by.abs() == 1 && (place <= END || place >= n - END)
}
