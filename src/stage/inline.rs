//! A stage whose elements are computed where they are read: its body takes the place of each load of it.

use super::body::{Body, DimId, Source, StageId};
use super::graph::{Definition, Graph};
use crate::ir::Lit;
use rustc_hash::FxHashMap;

impl Graph {
    /// Puts the bodies of a pure stage in place of all loads of it, which nothing reads any more, and which is zeros from then
    /// on; gives the stages that read it, each with the number of places where it did. No checks come along: they stay with
    /// the stage.
    pub fn inline(&mut self, p: StageId) -> Vec<(StageId, usize)> {
        let known = self.stage(p).clone();
        let Definition::Pure(each) = &known.def else { return vec![] };
        let mut out = vec![];
        for reader in self.consumers(p) {
            let mut places = 0;
            self.redirect(reader, &mut |g, from, _, at| match from {
                Source::Stage(q, k) if q == p => {
                    places += 1;
                    let dims: FxHashMap<DimId, Body> = known.dims.iter().copied().zip(at.iter().copied()).collect();
                    Some(g.bodies.substitute(each[k as usize], &dims))
                }
                _ => None,
            });
            out.push((reader, places));
        }
        let nothing = known.tys.iter().map(|ty| self.bodies.lit(Lit::zero(*ty))).collect();
        self.stages[p.0 as usize].def = Definition::Pure(nothing);
        out
    }
}
