//! `reorder`: loops change places. Those over what is reduced keep the order among them in which the source adds.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::stage::Node;

pub(super) fn reorder(s: &mut Schedule, stage: &str, order: &[String]) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
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
    let place = |name: &str| loops.iter().position(|l| l.name == name);
    // The parts of a dimension, and the dimensions that are reduced, stay in lexicographic order.
    let reduced = |loops: &[crate::schedule::plan::Loop]| -> Vec<String> {
        loops.iter().filter(|l| plan.reduces(&l.name)).map(|l| l.name.clone()).collect()
    };
    if reduced(&loops) != reduced(&plan.loops) {
        return refuse("loops over what is reduced keep their order: another one rounds otherwise, and is a rewrite");
    }
    for split in &plan.splits {
        if let (Some(o), Some(i)) = (first(plan, &loops, &split.outer), first(plan, &loops, &split.inner))
            && i < o
        {
            return refuse(format!("`{}` says how long `{}` is, and stays around it", split.outer, split.inner));
        }
    }
    for (name, d) in &plan.dims {
        let extent = s.graph.dim(*d).extent;
        for b in s.graph.bodies.reachable([extent]) {
            if let Node::Index(outer) = s.graph.bodies.node(b)
                && let Some((around, _)) = plan.dims.iter().find(|(_, d)| d == outer)
                && let (Some(o), Some(i)) = (first(plan, &loops, around), first(plan, &loops, name))
                && i < o
            {
                return refuse(format!("`{around}` says how long `{name}` is, and stays around it"));
            }
        }
    }
    if let Some(lost) = moved_out(s, id, &place) {
        return refuse(lost);
    }
    s.plan_mut(id).loops = loops;
    Ok(())
}

/// The place of the outermost loop that is a loop or a part of it.
fn first(plan: &crate::schedule::plan::Plan, loops: &[crate::schedule::plan::Loop], name: &str) -> Option<usize> {
    if let Some(at) = loops.iter().position(|l| l.name == name) {
        return Some(at);
    }
    let split = plan.splits.iter().rev().find(|s| s.of == name)?;
    let (a, b) = (first(plan, loops, &split.outer), first(plan, loops, &split.inner));
    a.into_iter().chain(b).min()
}

/// A stage that is computed in a loop stays there: its reader needs it inside.
fn moved_out(s: &Schedule, id: crate::stage::StageId, place: &dyn Fn(&str) -> Option<usize>) -> Option<String> {
    s.plans.iter().find_map(|p| match &p.site {
        crate::schedule::plan::Site::At(reader, name) if *reader == id && place(name).is_none() => {
            Some(format!("`{name}` is gone, and a stage is computed in it"))
        }
        _ => None,
    })
}
