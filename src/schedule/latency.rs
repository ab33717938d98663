//! The longest dependence chain of library functions in an element: how many of their latencies add up. A processor whose window
//! holds one such chain has nothing else to do meanwhile. It must not know of loops.

use super::plan::{Schedule, Site};
use crate::ir::op::Class;
use crate::stage::{Body, Node, Source, StageId};
use rustc_hash::FxHashMap;

/// The longest chain of library functions of floats in an element of a stage, those of stages counted that are computed where it
/// reads them.
pub(super) fn calls(s: &Schedule, stage: StageId) -> usize {
    Calls { s, of: FxHashMap::default() }.stage(stage)
}

struct Calls<'a> {
    s: &'a Schedule,
    /// Of each stage that was looked at.
    of: FxHashMap<StageId, usize>,
}

impl Calls<'_> {
    fn stage(&mut self, stage: StageId) -> usize {
        if let Some(known) = self.of.get(&stage) {
            return *known;
        }
        self.of.insert(stage, 0);
        let bodies = self.s.graph.stage(stage).bodies();
        let (mut each, mut most): (FxHashMap<Body, usize>, _) = (FxHashMap::default(), 0);
        for b in self.s.graph.bodies.reachable(bodies) {
            let node = self.s.graph.bodies.node(b);
            let before = node.kids().iter().filter_map(|k| each.get(k)).max().copied().unwrap_or(0);
            let own = match node {
                Node::Op(op, ty, _) => usize::from(ty.is_float() && op.row().class == Class::Transcendental),
                Node::Load(Source::Stage(p, _), ..) if self.s.plan(*p).site == Site::Inline => self.stage(*p),
                _ => 0,
            };
            most = most.max(before + own);
            each.insert(b, before + own);
        }
        self.of.insert(stage, most);
        most
    }
}
