//! `serial`, `parallel`, `vectorize`, `unroll`: how the iterations of a loop run. All but `serial` and `unroll` need
//! iterations that are independent: those over the elements of a stage, not those over what it reduces.

use super::scatter::no_scatter;
use crate::schedule::plan::{Kind, Plan, Refusal, Schedule, refuse};
use crate::stage::Graph;

/// A loop with more iterations is not unrolled.
pub(in crate::schedule) const MAX_UNROLLED: i64 = 64;
/// A vector has at most so many lanes.
const MAX_LANES: i64 = 64;

pub(super) fn run(s: &mut Schedule, stage: &str, of: &str, kind: Kind) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    let plan = s.plan(id);
    let at = plan.find(of)?;
    if matches!(kind, Kind::Parallel | Kind::Vector) && plan.reduces(of) {
        return refuse(format!("`{of}` runs over what is reduced, so each iteration needs the one before"));
    }
    if matches!(kind, Kind::Unrolled | Kind::Vector) {
        no_scatter(s, id)?;
    }
    let most = most(&s.graph, plan, of);
    match (kind, most) {
        (Kind::Vector, Some(n)) if (2..=MAX_LANES).contains(&n) && n.count_ones() == 1 => {}
        (Kind::Vector, _) => {
            return refuse(format!(
                "`{of}` is no vector: split it into parts of a power of two, from 2 to {MAX_LANES}, and vectorize those"
            ));
        }
        (Kind::Unrolled, Some(n)) if n <= MAX_UNROLLED => {}
        (Kind::Unrolled, _) => {
            return refuse(format!(
                "`{of}` may have more than {MAX_UNROLLED} iterations: split it, and unroll the parts"
            ));
        }
        (Kind::Serial | Kind::Parallel, _) => {}
    }
    if kind == Kind::Vector && at + 1 != plan.loops.len() {
        return refuse(format!("`{of}` is not the innermost loop, and only that one is a vector"));
    }
    s.plan_mut(id).loops[at].kind = kind;
    Ok(())
}

/// How many iterations a loop has at most, where that is known.
pub(in crate::schedule) fn most(graph: &Graph, plan: &Plan, of: &str) -> Option<i64> {
    if let Some(split) = plan.splits.iter().find(|s| s.inner == of) {
        return Some(split.factor);
    }
    if let Some(split) = plan.splits.iter().find(|s| s.outer == of) {
        return most(graph, plan, &split.of).map(|n| (n + split.factor - 1) / split.factor);
    }
    let (_, d) = plan.dims.iter().find(|(n, _)| n == of)?;
    graph.bodies.as_int(graph.dim(*d).extent)
}
