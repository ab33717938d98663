//! `fuse`: two loops over neighbouring dimensions become one, which runs through what lies next to each other in memory.
//! Where the inner one is short, such as over the channels of a picture, vectors are full.

use super::scatter::no_scatter;
use crate::schedule::plan::{Kind, Loop, Refusal, Schedule, Site, refuse};

pub(super) fn fuse(s: &mut Schedule, stage: &str, outer: &str, inner: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    no_scatter(s, id)?;
    let plan = s.plan(id);
    let at = [plan.find(outer)?, plan.find(inner)?];
    if !plan.layout.is_empty() {
        return refuse(format!("`{stage}` was laid out before, by axes that would be one"));
    }
    let own = plan.dims.len() - plan.over;
    let dim = |name: &str| plan.dims[..own].iter().position(|(n, _)| n == name);
    let (Some(k), Some(next)) = (dim(outer), dim(inner)) else {
        return refuse(format!("`{outer}` and `{inner}` must be dimensions of `{stage}` that were not split"));
    };
    if next != k + 1 || at[1] != at[0] + 1 {
        return refuse(format!("`{inner}` must come right after `{outer}`, as dimension and as loop"));
    }
    if at.iter().any(|i| plan.loops[*i].kind != Kind::Serial) {
        return refuse(format!("`{outer}` or `{inner}` was told how to run before it was fused"));
    }
    let here = [outer, inner].map(|name| Site::At(id, name.to_string()));
    if let Some(p) = s.graph.ids().find(|p| here.contains(&s.plan(*p).site)) {
        return refuse(format!("`{}` is computed in one of them", s.graph.stage(p).name));
    }
    let kept = |p: crate::stage::StageId| {
        let plan = s.plan(p);
        matches!(plan.site, Site::At(to, _) if to == id)
            && plan.store.as_deref().is_some_and(|l| l == outer || l == inner)
    };
    if let Some(p) = s.graph.ids().find(|p| kept(*p)) {
        return refuse(format!("memory of `{}` is taken in one of them", s.graph.stage(p).name));
    }
    if s.plan(id).site == Site::Inline {
        return refuse(format!("`{stage}` is computed where it is read, and has no loops"));
    }
    if s.plans.iter().any(|p| p.strip.as_ref().is_some_and(|strip| s.graph.leader(id) == s.graph.leader(strip.state))) {
        return refuse(format!("`{stage}` is computed in strips, which were cut before"));
    }
    let n = match s.graph.joinable(id, k) {
        Ok(n) => n,
        Err(why) => return refuse(format!("`{outer}` and `{inner}` cannot be one: {why}")),
    };
    let name = s.plan(id).fresh(&format!("{outer}{inner}"));
    s.join(id, k, n, &name);
    let d = s.graph.stage(id).dims[k];
    let plan = s.plan_mut(id);
    plan.dims.splice(k..k + 2, [(name.clone(), d)]);
    plan.loops.splice(at[0]..=at[1], [Loop { name, kind: Kind::Serial }]);
    plan.steps = plan.steps.map(|axis| if axis > k { axis - 1 } else { axis });
    Ok(())
}
