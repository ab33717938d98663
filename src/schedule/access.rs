//! How loads step with a dimension: not at all, by one element, or so once their operand is packed.

use super::plan::Schedule;
use crate::ir::Op;
use crate::nest::stretch::SHARED;
use crate::stage::{Body, Definition, DimId, Graph, Node, Source, Stage, StageId};

/// Channels of pixels, which compilers take apart in vectors.
pub(super) const CHANNELS: i64 = 4;

/// Whether all loads either do not depend on a dimension, or step by one element with it, as they are or packed.
pub(super) fn strides(graph: &Graph, stage: &Stage, d: DimId) -> bool {
    all_loads(graph, stage, |at| is_near(graph, stage, at, d))
}

/// Whether lanes of a dimension are worth it: all loads are as [`strides`] has it, or, of elements that nothing is reduced for,
/// at places that data say, which lanes gather; and where there are such, something is computed of floats, in lanes.
pub(super) fn has_lanes(graph: &Graph, stage: &Stage, d: DimId) -> bool {
    let computes = || {
        let all = graph.bodies.reachable(stage.bodies());
        all.iter().any(|b| matches!(graph.bodies.node(*b), Node::Op(_, ty, _) if ty.is_float()))
    };
    let gathered = || all_loads(graph, stage, |at| is_near(graph, stage, at, d) || gathers(graph, at, d));
    strides(graph, stage, d) || matches!(stage.def, Definition::Pure(_)) && gathered() && computes()
}

/// Whether data say where elements are that lanes of a dimension read.
pub(super) fn gathers(graph: &Graph, at: &[Body], d: DimId) -> bool {
    at.iter().any(|i| graph.bodies.is_data(*i) && graph.bodies.dims(*i).contains(&d))
}

/// Whether something holds of the indices of all that a stage reads.
pub(super) fn all_loads(graph: &Graph, stage: &Stage, mut holds: impl FnMut(&[Body]) -> bool) -> bool {
    let all = graph.bodies.reachable(stage.bodies());
    all.iter().all(|b| match graph.bodies.node(*b) {
        Node::Load(_, _, at) => holds(at),
        _ => true,
    })
}

/// Whether a load does not depend on a dimension, or steps by one element with it, as it is or packed.
fn is_near(graph: &Graph, stage: &Stage, at: &[Body], d: DimId) -> bool {
    let axes = packs(graph, stage, at, d).unwrap_or_default();
    let at: Vec<Body> = if axes.is_empty() { at.to_vec() } else { axes.iter().map(|k| at[*k]).collect() };
    let depends = |i: &Body| graph.bodies.dims(*i).contains(&d);
    let Some((last, outer)) = at.split_last() else { return true };
    !outer.iter().any(depends) && (!depends(last) || unit(graph, *last, d) || stretches(graph, *last, d))
}

/// Whether an index steps by one every few indices of a dimension, by a number that lanes are woven for.
pub(super) fn stretches(graph: &Graph, index: Body, d: DimId) -> bool {
    let bodies = &graph.bodies;
    let Some(form) = bodies.linear(index) else { return false };
    let mut moving = form.terms().filter(|(a, _)| bodies.dims(*a).contains(&d));
    let (Some((atom, 1)), None) = (moving.next(), moving.next()) else { return false };
    match bodies.node(atom) {
        Node::Op(Op::Div, _, args) => {
            bodies.as_int(args[1]).is_some_and(|by| SHARED.contains(&by)) && unit(graph, args[0], d)
        }
        _ => false,
    }
}

/// Whether an index steps by one with a dimension.
pub(super) fn unit(graph: &Graph, index: Body, d: DimId) -> bool {
    coefficient(graph, index, d) == Some(1)
}

/// By how much an index steps with a dimension, where that is one number.
pub(super) fn coefficient(graph: &Graph, index: Body, d: DimId) -> Option<i64> {
    let is_own = |a: Body| matches!(graph.bodies.node(a), Node::Index(e) if *e == d);
    let form = graph.bodies.linear(index)?;
    let own = form.terms().find(|(a, _)| is_own(*a)).map(|(_, c)| c);
    own.filter(|_| form.terms().all(|(a, _)| is_own(a) || !graph.bodies.dims(a).contains(&d)))
}

/// What is read at the last dimension and at what is reduced, and so again for every row; and the order of axes in which
/// the last dimension is the last, where it is not so already.
pub(super) fn packable(s: &Schedule, stage: StageId, last: DimId) -> Vec<(String, Vec<usize>)> {
    let known = s.graph.stage(stage);
    let mut out: Vec<(Source, Vec<usize>)> = vec![];
    let all = s.graph.bodies.reachable(known.bodies());
    for b in all {
        if let Node::Load(from, _, at) = s.graph.bodies.node(b)
            && let Some(axes) = packs(&s.graph, known, at, last)
        {
            out.push((*from, axes));
        }
    }
    out.sort();
    out.dedup();
    let once = |from: &Source| out.iter().filter(|(f, _)| f == from).count() == 1;
    let named = |(from, axes): &(Source, Vec<usize>)| (s.graph.source_name(*from).to_string(), axes.clone());
    out.iter().filter(|(from, _)| once(from)).map(named).collect()
}

/// Whether a load is worth packing: it is the same for all rows; and the order of its axes, empty where it is as it is.
fn packs(graph: &Graph, stage: &Stage, at: &[Body], last: DimId) -> Option<Vec<usize>> {
    let rows: Vec<DimId> = stage.dims.iter().copied().filter(|d| *d != last).collect();
    let of: Vec<Vec<DimId>> = at.iter().map(|i| graph.bodies.dims(*i)).collect();
    let (over, row) = (stage.over(), rows.last()?);
    let again = of.iter().flatten().any(|d| over.contains(d)) && !of.iter().flatten().any(|d| d == row);
    let mut named = of.iter().enumerate().filter(|(_, dims)| dims.contains(&last)).map(|(k, _)| k);
    let (Some(axis), None) = (named.next(), named.next()) else { return None };
    if !again {
        return None;
    }
    let mut order: Vec<usize> = (0..at.len()).filter(|k| *k != axis).collect();
    order.push(axis);
    Some(if axis + 1 == at.len() { vec![] } else { order })
}

/// How far apart in memory the elements are that a stage reads at neighbouring indices of a dimension, where loops over it
/// become vectors: next to each other but where indices are clamped, or one of a few channels.
pub(super) fn apart_along(s: &Schedule, of: StageId, d: DimId) -> Option<i64> {
    let (g, stage) = (&s.graph, s.graph.stage(of));
    let mut each = g.bodies.reachable(stage.bodies()).into_iter().map(|b| {
        let Node::Load(from, _, at) = g.bodies.node(b) else { return Some(1) };
        let moves: Vec<usize> = (0..at.len()).filter(|k| g.bodies.dims(at[*k]).contains(&d)).collect();
        match moves.as_slice() {
            [] => Some(1),
            [k] => {
                let free = g.bodies.unclamped(at[*k])?;
                let step = if stretches(g, free, d) { 1 } else { coefficient(g, free, d)? };
                let inner = g.extents(*from).split_off(k + 1).into_iter().map(|n| g.bodies.as_int(n));
                inner.product::<Option<i64>>().and_then(|n| n.checked_mul(step)).filter(|n| (1..=CHANNELS).contains(n))
            }
            _ => None,
        }
    });
    each.try_fold(1, |most, step| Some(most.max(step?)))
}

/// As [`apart_along`] of the last dimension.
pub(super) fn apart(s: &Schedule, of: StageId) -> Option<i64> {
    apart_along(s, of, *s.graph.stage(of).dims.last()?)
}
