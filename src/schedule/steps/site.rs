//! `compute-root`, `compute-at`, `inline`: where a stage is computed.

use crate::schedule::plan::{Kind, Refusal, Schedule, Site, refuse};
use crate::stage::{Definition, StageId};

pub(super) fn root(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    s.plan_mut(id).site = Site::Root;
    Ok(())
}

pub(super) fn at(s: &mut Schedule, stage: &str, reader: &str, name: &str) -> Result<(), Refusal> {
    let (id, to) = (s.stage(stage)?, s.stage(reader)?);
    let place = s.plan(to).find(name)?;
    if s.graph.is_output(id) {
        return refuse(format!("`{stage}` is part of the result, or a size, and computed whole"));
    }
    if s.plan(to).site == Site::Inline {
        return refuse(format!("`{reader}` is inlined, so it has no loops"));
    }
    if s.plan(to).loops[..=place].iter().any(|l| l.kind == Kind::Vector) {
        return refuse(format!("`{name}` is a vector, and has no place for `{stage}`"));
    }
    let readers = s.readers(id);
    if readers.is_empty() {
        return refuse(format!("nothing reads `{stage}`"));
    }
    if let Some(other) = readers.iter().find(|r| !covers(s, **r, to, place)) {
        return refuse(format!("`{}` reads `{stage}` too, outside of this loop", s.graph.stage(*other).name));
    }
    s.plan_mut(id).site = Site::At(to, name.to_string());
    Ok(())
}

/// Whether a stage runs inside of a loop of another.
fn covers(s: &Schedule, reader: StageId, to: StageId, place: usize) -> bool {
    if reader == to {
        return true;
    }
    let Some(name) = s.inside(reader, to) else { return false };
    s.plan(to).find(name).is_ok_and(|at| at >= place)
}

pub(super) fn inline(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    if s.graph.is_output(id) {
        return refuse(format!("`{stage}` is part of the result, or a size, and computed whole"));
    }
    match &s.graph.stage(id).def {
        Definition::Pure(_) if s.graph.stage(id).checks.is_empty() => {}
        Definition::Pure(_) => return refuse(format!("`{stage}` may fail, and is computed whole")),
        Definition::Reduce { .. } => return refuse(format!("`{stage}` is a reduction: it is computed, and then read")),
    }
    if let Some(k) = s.plans.iter().position(|p| matches!(&p.site, Site::At(r, _) if *r == id)) {
        return refuse(format!("`{}` is computed in a loop of `{stage}`", s.graph.stages[k].name));
    }
    s.plan_mut(id).site = Site::Inline;
    Ok(())
}
