//! `split`: a loop becomes two, parts and the iterations of a part. The last part may be shorter.

use super::scatter::no_scatter;
use crate::schedule::plan::{Kind, Loop, Refusal, Schedule, Site, Split, refuse};
use std::sync::Arc;

pub(super) fn split(s: &mut Schedule, stage: &str, of: &str, factor: i64) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    no_scatter(s, id)?;
    let plan = s.plan_mut(id);
    let at = plan.find(of)?;
    if plan.steps.is_some() && plan.root(of) == plan.steps {
        return refuse(format!("`{of}` runs over the steps of a recurrence, one after another"));
    }
    if plan.root(of).is_none() {
        return refuse(format!("`{of}` runs over strips, whose length says how many there are"));
    }
    if factor < 1 {
        return refuse(format!("`{of}` cannot be split into parts of {factor} iterations: at least 1 is needed"));
    }
    if plan.loops[at].kind != Kind::Serial {
        return refuse(format!("`{of}` was told how to run before it was split"));
    }
    let (outer, inner) = (plan.fresh(&format!("{of}o")), plan.fresh(&format!("{of}i")));
    let make = |name: &str| Loop { name: name.to_string(), kind: Kind::Serial };
    plan.loops.splice(at..=at, [make(&outer), make(&inner)]);
    plan.splits.push(Split { of: of.to_string(), outer: outer.clone(), inner, factor });
    // What was computed in the loop is computed in its inner part: there it is needed for one iteration, as before.
    let inner = s.plan(id).splits.last().map(|s| s.inner.clone()).unwrap_or_default();
    let here = Site::At(id, of.to_string());
    for p in s.plans.iter_mut().filter(|p| p.site == here) {
        Arc::make_mut(p).site = Site::At(id, inner.clone());
    }
    for p in s.plans.iter_mut() {
        let in_it = matches!(p.site, Site::At(to, _) if to == id) && p.store.as_deref() == Some(of);
        if in_it {
            Arc::make_mut(p).store = Some(inner.clone());
        }
    }
    Ok(())
}
