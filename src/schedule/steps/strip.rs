//! `strip`: a dimension of a state is cut into strips, each of which takes all steps of its recurrence by itself. The loop over
//! strips stands around the loop over steps; what is in a strip depends on nothing in others (`strips.rs`).

use crate::schedule::plan::{Kind, Loop, Refusal, Schedule, Strip, refuse};

pub(super) fn strip(s: &mut Schedule, stage: &str, of: &str, factor: i64) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    let Some((leader, _)) = s.graph.stage(id).recurrence().filter(|(leader, _)| *leader != id) else {
        return refuse(format!("`{stage}` is no tensor of a state"));
    };
    let plan = s.plan(id);
    plan.find(of)?;
    let Some(axis) = plan.dims.iter().position(|(n, _)| n == of) else {
        return refuse(format!("`{of}` must be a dimension of `{stage}` that was not split"));
    };
    if factor < 1 {
        return refuse(format!("`{of}` cannot be cut into strips of {factor} indices: at least 1 is needed"));
    }
    if s.plan(leader).strip.is_some() {
        return refuse(format!("the steps of `{stage}` are taken in strips already"));
    }
    let host = s.plan_mut(leader);
    let name = host.fresh(&format!("{of}o"));
    let at = host.loops.len().saturating_sub(1);
    host.loops.insert(at, Loop { name: name.clone(), kind: Kind::Serial });
    host.strip = Some(Strip { name, state: id, axis, factor });
    Ok(())
}
