//! `store-at`: the memory of a stage is taken in an outer loop of the stage that it is computed in, so that an iteration finds
//! what earlier ones computed, and computes what is new. That this can be is proved where loops are made (`lower/window.rs`).

use crate::schedule::plan::{Refusal, Schedule, Site, refuse};

pub(super) fn store_at(s: &mut Schedule, stage: &str, reader: &str, name: &str) -> Result<(), Refusal> {
    let (id, to) = (s.stage(stage)?, s.stage(reader)?);
    let place = s.plan(to).find(name)?;
    let Site::At(host, at) = s.plan(id).site.clone() else {
        return refuse(format!("`{stage}` is computed in no loop of `{reader}`: `compute-at` says in which"));
    };
    if host != to {
        return refuse(format!("`{stage}` is computed in a loop of `{}`", s.graph.stage(host).name));
    }
    if s.plan(to).find(&at)? <= place {
        return refuse(format!("`{name}` of `{reader}` is not around `{at}`, in which `{stage}` is computed"));
    }
    if s.plan(id).beside {
        return refuse(format!("`{stage}` is computed beside `{reader}`, in memory for all of it"));
    }
    s.plan_mut(id).store = Some(name.to_string());
    Ok(())
}
