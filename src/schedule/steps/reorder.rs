//! `reorder`: loops change places. Those over what is reduced keep the order among them in which the source adds. What may
//! stand in a loop over the steps of a recurrence is said by `legal.rs`, after every step.

use super::scatter::no_scatter;
use crate::schedule::plan::{Kind, Loop, Plan, Refusal, Schedule, refuse};
use crate::stage::Node;

pub(super) fn reorder(s: &mut Schedule, stage: &str, order: &[String]) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    no_scatter(s, id)?;
    let plan = s.plan(id);
    let places = order.iter().map(|n| plan.find(n)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = order.iter().enumerate().find(|(k, n)| order[..*k].contains(n)) {
        return refuse(format!("`{}` is named twice", twice.1));
    }
    let mut sorted = places.clone();
    sorted.sort_unstable();
    let mut loops = plan.loops.clone();
    for (to, from) in sorted.iter().zip(&places) {
        loops[*to] = plan.loops[*from].clone();
    }
    if let Some(vector) = loops.iter().rev().skip(1).find(|l| l.kind == Kind::Vector) {
        return refuse(format!("`{}` is a vector, and stays the innermost loop", vector.name));
    }
    // The parts of a dimension, and the dimensions that are reduced, stay in lexicographic order.
    let reduced = |loops: &[Loop]| -> Vec<String> {
        loops.iter().filter(|l| plan.reduces(&l.name)).map(|l| l.name.clone()).collect()
    };
    if reduced(&loops) != reduced(&plan.loops) {
        return refuse("loops over what is reduced keep their order: another one rounds otherwise, and is a rewrite");
    }
    for split in &plan.splits {
        // Which part an iteration is in is known only when all loops over the parts are open.
        if let (Some((_, o)), Some((i, _))) =
            (places_of(plan, &loops, &split.outer), places_of(plan, &loops, &split.inner))
            && i < o
        {
            return refuse(format!("`{}` says how long `{}` is, and stays around it", split.outer, split.inner));
        }
    }
    // Rows of a reduction may stand inside of what they are as long as; `triangle.rs` says where.
    for (name, d) in plan.dims.iter().filter(|(name, _)| !plan.reduces(name)) {
        let extent = s.graph.dim(*d).extent;
        for b in s.graph.bodies.reachable([extent]) {
            if let Node::Index(outer) = s.graph.bodies.node(b)
                && let Some((around, _)) = plan.dims.iter().find(|(_, d)| d == outer)
                && let (Some((_, o)), Some((i, _))) = (places_of(plan, &loops, around), places_of(plan, &loops, name))
                && i < o
            {
                return refuse(format!("`{around}` says how long `{name}` is, and stays around it"));
            }
        }
    }
    s.plan_mut(id).loops = loops;
    Ok(())
}

/// The places of the outermost and the innermost loop that is a loop or a part of it.
fn places_of(plan: &Plan, loops: &[Loop], name: &str) -> Option<(usize, usize)> {
    if let Some(at) = loops.iter().position(|l| l.name == name) {
        return Some((at, at));
    }
    let split = plan.splits.iter().rev().find(|s| s.of == name)?;
    let (a, b) = (places_of(plan, loops, &split.outer)?, places_of(plan, loops, &split.inner)?);
    Some((a.0.min(b.0), a.1.max(b.1)))
}
