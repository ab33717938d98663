//! Recurrences whose states are independent of each other along a dimension: strips of it take all steps, each by itself.
//!
//! The next state at an index may read the state before at the same index alone. It knows nothing of loops; a graph whose
//! inlined stages are gone says what is read.

use super::plan::{Refusal, refuse};
use crate::stage::{Definition, DimId, Graph, Node, Source, StageId};
use rustc_hash::FxHashMap;

/// Which dimension of each tensor of a state goes with a dimension of one of them.
///
/// # Errors
/// The state that reads others.
pub(super) fn along(graph: &Graph, state: StageId, axis: usize) -> Result<FxHashMap<StageId, usize>, Refusal> {
    let Some(of) = graph.stage(state).recurrence() else { return refuse("it is no state of a recurrence") };
    let all: Vec<StageId> = graph.ids().filter(|s| graph.stage(*s).recurrence() == Some(of)).collect();
    let states: Vec<StageId> = all.iter().copied().filter(|s| *s != of.0).collect();
    if !graph.stage(of.0).tys.is_empty() {
        return refuse("its state has numbers, which all elements share");
    }
    let own = |s: StageId, k: usize| -> DimId { graph.stage(s).dims[k] };
    let reads = |s: StageId| {
        let Definition::Recur { next, .. } = &graph.stage(s).def else { return vec![] };
        let all = graph.bodies.reachable(next.iter().copied()).into_iter();
        let loads = all.filter_map(|b| match graph.bodies.node(b) {
            Node::Load(Source::Stage(p, _), _, at) => Some((*p, at.to_vec())),
            _ => None,
        });
        loads.filter(|(p, _)| states.contains(p)).collect::<Vec<_>>()
    };
    let mut known = FxHashMap::from_iter([(state, axis)]);
    loop {
        let before = known.len();
        for s in &states {
            for (p, at) in reads(*s) {
                let is = |k: usize, d: DimId| *graph.bodies.node(at[k]) == Node::Index(d);
                let found = match (known.get(s).copied(), known.get(&p).copied()) {
                    (Some(k), None) => (0..at.len()).find(|j| is(*j, own(*s, k))).map(|j| (p, j)),
                    (None, Some(j)) => (0..graph.stage(*s).dims.len()).find(|k| is(j, own(*s, *k))).map(|k| (*s, k)),
                    _ => None,
                };
                known.extend(found);
            }
        }
        if known.len() == before {
            break;
        }
    }
    let extent = |s: StageId, k: usize| graph.dim(own(s, k)).extent;
    for s in &states {
        let name = &graph.stage(*s).name;
        let Some(k) = known.get(s).copied().filter(|k| extent(*s, *k) == extent(state, axis)) else {
            return refuse(format!("`{name}`, which is computed in the same steps, has no such dimension"));
        };
        if graph.stage(*s).steps().is_none_or(|d| graph.stage(*s).dims[..k].iter().all(|outer| *outer != d)) {
            return refuse(format!("that dimension of `{name}` is that of the steps, or around them"));
        }
        let same = |(p, at): &(StageId, Vec<_>)| {
            known.get(p).is_some_and(|j| *graph.bodies.node(at[*j]) == Node::Index(own(*s, k)))
        };
        if !reads(*s).iter().all(same) {
            return refuse(format!("the next `{name}` reads the state before at other indices than its own"));
        }
        if !graph.bodies.dims(extent(*s, k)).is_empty() {
            return refuse(format!("`{name}` has rows of different lengths"));
        }
    }
    Ok(known)
}
