//! `layout`: the axes of a stage lie in memory in another order, so that what its loops and those of its readers run through
//! last lies next to each other.

use super::scatter::no_scatter;
use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::stage::Definition;

pub(super) fn layout(s: &mut Schedule, stage: &str, order: &[String]) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    no_scatter(s, id)?;
    if s.is_output(id) {
        return refuse(format!("`{stage}` is handed out, in the order of the program"));
    }
    if matches!(s.graph.stage(id).def, Definition::Recur { .. }) {
        return refuse(format!("`{stage}` is a state, which lies step by step"));
    }
    let plan = s.plan(id);
    let own: Vec<&String> = plan.dims[..plan.dims.len() - plan.over].iter().map(|(n, _)| n).collect();
    let axes: Vec<usize> = order.iter().filter_map(|n| own.iter().position(|o| *o == n)).collect();
    let each = (0..own.len()).all(|k| axes.contains(&k));
    if axes.len() != order.len() || axes.len() != own.len() || !each {
        let known = own.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        return refuse(format!("`{stage}` has the axes {known}: each must be named once"));
    }
    let plain = axes.iter().enumerate().all(|(k, a)| k == *a);
    s.plan_mut(id).layout = if plain { vec![] } else { axes };
    Ok(())
}
