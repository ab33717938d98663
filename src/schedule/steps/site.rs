//! `compute-root`, `compute-at`, `inline`: where a stage is computed.

use crate::schedule::plan::{Refusal, Schedule, Site, refuse};
use crate::stage::{Definition, StageId};

pub(super) fn root(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    no_inline(s, id)?;
    s.plan_mut(id).move_to(Site::Root, false);
    Ok(())
}

pub(super) fn at(s: &mut Schedule, stage: &str, reader: &str, name: &str) -> Result<(), Refusal> {
    let (id, to) = (s.stage(stage)?, s.stage(reader)?);
    s.plan(to).find(name)?;
    no_inline(s, id)?;
    if s.is_output(id) {
        return refuse(format!("`{stage}` is part of the result, or a size, and computed whole"));
    }
    s.plan_mut(id).move_to(Site::At(to, name.to_string()), false);
    Ok(())
}

pub(super) fn inline(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    if s.is_output(id) {
        return refuse(format!("`{stage}` is part of the result, or a size, and computed whole"));
    }
    match &s.graph.stage(id).def {
        Definition::Pure(_) if s.graph.stage(id).checks.is_empty() => {}
        Definition::Pure(_) => return refuse(format!("`{stage}` may fail, and is computed whole")),
        Definition::Scatter { .. } => return refuse(format!("`{stage}` is a scatter: it is computed, and then read")),
        Definition::Recur { .. } => {
            return refuse(format!("`{stage}` is a state of a recurrence: each needs the one before"));
        }
        Definition::Reduce { .. } => return refuse(format!("`{stage}` is a reduction: it is computed, and then read")),
    }
    if s.plan(id).site != Site::Inline {
        s.inline(id);
    }
    Ok(())
}

/// Refuses what is computed where it is read, and has no place any more.
pub(super) fn no_inline(s: &Schedule, id: StageId) -> Result<(), Refusal> {
    match s.plan(id).site {
        Site::Inline => refuse(format!("`{}` is computed where it is read", s.graph.stage(id).name)),
        _ => Ok(()),
    }
}
