//! `fuse-stages`: a stage is computed in a loop of one that need not read it, over the same part of their first dimensions, so
//! that both find what they read in registers or the nearest cache. Its memory is that of all elements. What holds then is
//! checked as for all sites (`legal.rs`).

use super::site::no_inline;
use crate::schedule::plan::{Refusal, Schedule, Site, refuse};

pub(super) fn fuse_stages(s: &mut Schedule, stage: &str, host: &str, name: &str) -> Result<(), Refusal> {
    let (id, to) = (s.stage(stage)?, s.stage(host)?);
    s.plan(to).find(name)?;
    no_inline(s, id)?;
    if id == to {
        return refuse(format!("`{stage}` is the stage with the loop"));
    }
    s.plan_mut(id).move_to(Site::At(to, name.to_string()), true);
    Ok(())
}
