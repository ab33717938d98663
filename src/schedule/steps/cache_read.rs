//! `cache-read`: what a stage reads of a source is copied to memory of its own first, at one of its loops. The copy is
//! a stage like any other, so that it can be ordered, vectorized and laid out for its reader.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::stage::{Source, StageId};

pub(super) fn cache_read(
    s: &mut Schedule,
    [stage, source]: [&str; 2],
    at: &str,
    name: &str,
    axes: &[usize],
) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    s.plan(id).find(at)?;
    if s.graph.find(name).is_some() {
        return refuse(format!("there is a stage `{name}` already"));
    }
    let reads = s.graph.reads(s.graph.stage(id).bodies());
    let Some(from) = reads.into_iter().find(|f| s.graph.source_name(*f) == source) else {
        return refuse(format!("`{stage}` does not read `{source}`"));
    };
    if let Source::Stage(p, _) = from
        && s.graph.stage(p).tys.len() > 1
    {
        return refuse(format!("`{source}` has several components"));
    }
    if let Source::Stage(p, _) = from
        && s.graph.stage(p).when.is_some()
    {
        return refuse(format!("`{source}` has elements only where a condition holds"));
    }
    if let Source::Stage(p, _) = from
        && (s.steps_of(p).is_some() || s.graph.stage(p).recurrence().is_some())
    {
        return refuse(format!("`{source}` is computed step by step"));
    }
    let axes = order_of(s, from, axes)?;
    let copy: StageId = s.copy(from, id, name, &axes);
    super::site::at(s, name, stage, at)?;
    debug_assert!(s.graph.find(name) == Some(copy), "the copy has its name");
    Ok(())
}

/// The axes of a copy: each of the source's once.
fn order_of(s: &Schedule, from: Source, axes: &[usize]) -> Result<Vec<usize>, Refusal> {
    let extents = s.graph.extents(from);
    let rank = extents.len();
    let own: Vec<usize> = (0..rank).collect();
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if axes.is_empty() {
        return Ok(own);
    }
    if sorted != own {
        return refuse(format!("what is read has {rank} axes, counted from 0, and each is named once"));
    }
    if extents.iter().any(|n| !s.graph.bodies.dims(*n).is_empty()) {
        return refuse("its rows have lengths of their own, and are copied as they are");
    }
    Ok(axes.to_vec())
}
