//! `cache-read`: what a stage reads of a source is copied to memory of its own first, at one of its loops. The copy is
//! a stage like any other, so that it can be ordered, vectorized and laid out for its reader.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::stage::{Source, StageId};

pub(super) fn cache_read(s: &mut Schedule, stage: &str, source: &str, at: &str, name: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    s.plan(id).find(at)?;
    if s.graph.find(name).is_some() {
        return refuse(format!("there is a stage `{name}` already"));
    }
    let reads = s.graph.reads(s.graph.stage(id).bodies());
    let named = |from: &Source| match from {
        Source::Input(k) => s.graph.inputs[*k as usize].name == source,
        Source::Stage(p, _) => s.graph.stage(*p).name == source,
    };
    let Some(from) = reads.into_iter().find(|f| named(f)) else {
        return refuse(format!("`{stage}` does not read `{source}`"));
    };
    if let Source::Stage(p, _) = from
        && s.graph.stage(p).tys.len() > 1
    {
        return refuse(format!("`{source}` has several components"));
    }
    let copy: StageId = s.copy(from, id, name);
    super::site::at(s, name, stage, at)?;
    debug_assert!(s.graph.find(name) == Some(copy), "the copy has its name");
    Ok(())
}
