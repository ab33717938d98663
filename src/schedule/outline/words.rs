//! The definition of a stage becomes one short line, and a few long ones for those who ask.

use super::Maker;
use crate::stage::{Body, Definition, DimId, StageId};

/// The longest text of the elements in one line.
const SHORT: usize = 160;
/// The longest line of a definition.
const LONG: usize = 400;
/// So many components of a stage are shown.
const COMPONENTS: usize = 8;

impl Maker<'_> {
    /// The elements in one line.
    pub(super) fn elements(&self, of: StageId) -> String {
        let list = |each: &[Body]| self.list(of, each, SHORT, ", ");
        let line = match &self.s.graph.stage(of).def {
            Definition::Pure(each) if each.is_empty() => String::new(),
            Definition::Pure(each) => format!("= {}", list(each)),
            Definition::Recur { next, .. } if next.is_empty() => String::new(),
            Definition::Reduce { init, next, .. } => format!("from {} then {}", list(init), list(next)),
            Definition::Recur { init, next, .. } => format!("from {} then {}", list(init), list(next)),
            Definition::Scatter { at, value, .. } => format!("at {} add {}", list(at), list(value)),
        };
        match line.chars().count() > SHORT {
            true => line.chars().take(SHORT - 1).chain(['…']).collect(),
            false => line,
        }
    }

    /// The definition, a line each.
    pub(super) fn definition(&self, of: StageId) -> Vec<String> {
        let (g, stage) = (&self.s.graph, self.s.graph.stage(of));
        let names = &self.s.plan(of).dims[..];
        let dims = |dims: &[DimId]| {
            let name = |d: &DimId| names.iter().find(|(_, of)| of == d).map_or(&g.dim(*d).name, |(name, _)| name);
            let each = dims.iter().map(|d| format!("{} < {}", name(d), g.brief(g.dim(*d).extent, LONG, names)));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut out = vec![format!("{}[{}]", stage.name, dims(&stage.dims))];
        out.extend(stage.when.map(|c| format!("when {}", g.brief(c, LONG, names))));
        match stage.checks.len() {
            0 => {}
            1 => out.push("1 check".into()),
            n => out.push(format!("{n} checks")),
        }
        let lines = |name: &str, each: &[Body]| format!("{name} {}", self.list(of, each, LONG, "\n  "));
        match &stage.def {
            Definition::Pure(each) => out.push(lines("=", each)),
            Definition::Reduce { over, init, next, .. } => {
                out.extend([lines("from", init), format!("over {}", dims(over)), lines("=", next)]);
            }
            Definition::Recur { init, next, .. } => out.extend([lines("from", init), lines("then", next)]),
            Definition::Scatter { over, only, at, value, .. } => {
                out.push(format!("over {}", dims(over)));
                out.extend(only.map(|c| format!("only {}", g.brief(c, LONG, names))));
                out.extend([lines("at", at), lines("add", value)]);
            }
        }
        out
    }

    fn list(&self, of: StageId, each: &[Body], most: usize, between: &str) -> String {
        let shown = each.iter().take(COMPONENTS).map(|b| self.s.graph.brief(*b, most, &self.s.plan(of).dims));
        let more = (each.len() > COMPONENTS).then(|| "…".to_string());
        shown.chain(more).collect::<Vec<_>>().join(between)
    }
}
