//! What a stage reads, and what is computed where it reads it: stages that are inlined read in the name of their readers.

use super::{Body, Maker};
use crate::stage::{Source, StageId};

impl Maker<'_> {
    /// What a stage does at each point.
    pub(super) fn body(&self, of: StageId) -> Body {
        // A state that reads the one before it says so in its text.
        let reads = self.sources(of).into_iter().filter(|from| from.stage() != Some(of));
        let mut reads: Vec<(usize, String)> =
            reads.map(|from| (self.id(from), self.s.graph.source_name(from).to_string())).collect();
        reads.sort();
        reads.dedup();
        let mut inlined: Vec<StageId> = self.s.plan(of).inlined.iter().map(|(p, _)| *p).collect();
        inlined.sort();
        let inlined = inlined.into_iter().map(|p| self.s.graph.stage(p).name.clone()).collect();
        Body { text: self.elements(of), reads, inlined }
    }

    /// What the elements of a stage read, and its extents.
    fn sources(&self, of: StageId) -> Vec<Source> {
        let (g, stage) = (&self.s.graph, self.s.graph.stage(of));
        let extents = stage.dims.iter().chain(stage.over()).map(|d| g.dim(*d).extent);
        g.reads(stage.bodies().into_iter().chain(extents))
    }

    /// The number of what is read: components of a stage are one.
    fn id(&self, from: Source) -> usize {
        match from {
            Source::Stage(p, _) => p.0 as usize,
            Source::Input(k) => self.s.graph.stages.len() + k as usize,
        }
    }
}
