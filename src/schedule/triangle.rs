//! Reductions of different lengths side by side, as over a triangle: rows of a tile inside of a loop that is as long as the row
//! says. All rows have what the shortest has; what a row has beyond that it takes by itself, in its order.
//!
//! It says which loops these are, and where they may stand; `lower/triangle.rs` makes them.

use super::access::coefficient;
use super::plan::{Kind, Plan, Refusal, Schedule, refuse};
use crate::stage::Graph;

/// A loop over what is reduced, and the loops inside of it whose indices say how long it is.
#[derive(Clone, Debug)]
pub(super) struct Triangle {
    /// The loop over what is reduced, the outermost of these.
    pub(super) over: String,
    /// The loops over rows, each with whether later rows have more.
    pub(super) rows: Vec<(String, bool)>,
}

/// The triangle that the loops of a reduction make, where they make one.
///
/// # Errors
/// Why the loops cannot run so.
pub(super) fn of(graph: &Graph, plan: &Plan) -> Result<Option<Triangle>, Refusal> {
    let mut found = None;
    for (over, d) in &plan.dims[plan.dims.len() - plan.over..] {
        let extent = graph.dim(*d).extent;
        let decides = graph.bodies.dims(extent);
        if decides.is_empty() {
            continue;
        }
        let Some(first) = plan.loops.iter().position(|l| plan.part_of(&l.name, over)) else { continue };
        let mut rows = vec![];
        for l in &plan.loops[first..] {
            let Some((_, e)) = plan.root(&l.name).map(|k| &plan.dims[k]).filter(|(_, e)| decides.contains(e)) else {
                continue;
            };
            let steps = coefficient(graph, extent, *e);
            let apart = plan.reduces(&l.name) || matches!(l.kind, Kind::Vector | Kind::Parallel);
            let Some(steps) = steps.filter(|_| !apart) else {
                return refuse(format!("`{}` says how long `{over}` is, and stays around it", l.name));
            };
            rows.push((l.name.clone(), steps > 0));
        }
        if rows.is_empty() {
            continue;
        }
        let outermost = plan.loops.iter().find(|l| plan.reduces(&l.name)).is_some_and(|l| l.name == *over);
        if !outermost || found.is_some() || plan.parts() < plan.loops.len() {
            let row = &rows[0].0;
            return refuse(format!(
                "`{row}` says how long `{over}` is, and stays around it, which is split or in other loops over what is reduced"
            ));
        }
        found = Some(Triangle { over: over.clone(), rows });
    }
    Ok(found)
}

impl Schedule {
    /// Checks loops over triangles: nothing is computed in them, since they come to the same place more than once.
    pub(super) fn triangles_are_plain(&self) -> Result<(), Refusal> {
        for s in self.graph.ids() {
            let Some(triangle) = of(&self.graph, self.plan(s))? else { continue };
            let first = self.plan(s).find(&triangle.over)?;
            if let Some(p) = self.graph.ids().find(|p| *p != s && self.covers(*p, s, first)) {
                let (name, host) = (&self.graph.stage(p).name, &self.graph.stage(s).name);
                let over = &triangle.over;
                return refuse(format!(
                    "`{name}` is computed in `{over}` of `{host}` or inside, where rows of different lengths are summed"
                ));
            }
        }
        Ok(())
    }
}
