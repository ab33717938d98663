//! The loops of a schedule as a tree of text: stages, where each is computed, and how its loops run.

use super::plan::{Kind, Schedule, Site};
use crate::stage::StageId;
use std::fmt::{self, Write};

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in self.order() {
            if self.plan(s).site == Site::Root {
                self.stage_text(f, s, 0)?;
            }
        }
        let mut inlined = self.graph.order().into_iter().filter(|s| self.plan(*s).site == Site::Inline);
        inlined.try_for_each(|s| writeln!(f, "{} where it is read", self.graph.stage(s).name))
    }
}

impl Schedule {
    fn stage_text(&self, f: &mut fmt::Formatter<'_>, s: StageId, depth: usize) -> fmt::Result {
        let (plan, stage) = (self.plan(s), self.graph.stage(s));
        let pad = |depth: usize| "  ".repeat(depth);
        let dims: Vec<String> = plan.dims[..plan.dims.len() - plan.over].iter().map(|(n, _)| n.clone()).collect();
        let kept = if plan.store.is_some() { ", what is new" } else { "" };
        writeln!(f, "{}{}[{}]{kept}", pad(depth), stage.name, dims.join(", "))?;
        let mut inner = depth + 1;
        for l in &plan.loops {
            let mut line = format!("for {}", l.name);
            if let Some(d) = plan.dims.iter().find(|(n, _)| *n == l.name).map(|(_, d)| *d) {
                let _ = write!(line, " < {}", self.graph.show(self.graph.dim(d).extent));
            } else if let Some(split) = plan.splits.iter().find(|p| p.inner == l.name) {
                let _ = write!(line, " < {}", split.factor);
            }
            if let Some(strip) = plan.strip.as_ref().filter(|p| p.name == l.name) {
                let _ = write!(line, ", strips of {} of {}", strip.factor, self.graph.stage(strip.state).name);
            }
            line.push_str(match l.kind {
                Kind::Serial => "",
                Kind::Parallel => ", parallel",
                Kind::Vector => ", vector",
                Kind::Unrolled => ", unrolled",
            });
            if plan.reduces(&l.name) {
                line.push_str(", reduced");
            }
            writeln!(f, "{}{line}", pad(inner))?;
            inner += 1;
            for p in self.order() {
                let here = matches!(self.plan(p).site, Site::At(to, _) if to == s);
                if here && self.plan(p).store.as_ref() == Some(&l.name) {
                    writeln!(f, "{}memory of {}", pad(inner), self.graph.stage(p).name)?;
                }
            }
            for p in self.order() {
                if self.plan(p).site == Site::At(s, l.name.clone()) {
                    self.stage_text(f, p, inner)?;
                }
            }
        }
        Ok(())
    }
}
