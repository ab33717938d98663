//! Products of elements that one sum alone adds up stand in the sum: it is a contraction then, to whoever asks what it is.
//!
//! Only those to which the source gives no name, each of which the sum reads once: nothing is computed more often. No bit
//! changes.

use super::body::{Body, Node, Source, StageId};
use super::graph::{Definition, Graph};
use crate::ir::Op;
use rustc_hash::FxHashSet;

/// Products of more nodes have stages of their own.
const NODES: usize = 16;

impl Graph {
    /// Puts products of elements in the sums that read them; of the stages without a name.
    pub(super) fn products_in_sums(&mut self, unnamed: &FxHashSet<StageId>) {
        for s in self.order() {
            if let Some(p) = self.added(s).filter(|p| unnamed.contains(p) && self.is_product_for(*p, s)) {
                self.inline(p);
            }
        }
    }

    /// The stage whose elements a sum adds up, each of them once.
    fn added(&self, s: StageId) -> Option<StageId> {
        let Definition::Reduce { over, next, .. } = &self.stage(s).def else { return None };
        let [next] = next.as_slice() else { return None };
        let Node::Op(Op::Add, _, args) = self.bodies.node(*next) else { return None };
        let [acc, addend] = args.as_slice() else { return None };
        let Node::Load(Source::Stage(p, 0), _, at) = self.bodies.node(*addend) else { return None };
        let own = |b: &Body| match self.bodies.node(*b) {
            Node::Index(d) if self.stage(s).dims.contains(d) || over.contains(d) => Some(*d),
            _ => None,
        };
        let each: Option<FxHashSet<_>> = at.iter().map(own).collect();
        let all = self.stage(s).dims.len() + over.len();
        (matches!(self.bodies.node(*acc), Node::Acc(0, _))
            && each.is_some_and(|e| e.len() == at.len() && e.len() == all))
        .then_some(*p)
    }

    /// Whether a stage is a product that nothing but a sum reads.
    fn is_product_for(&self, p: StageId, s: StageId) -> bool {
        let Definition::Pure(each) = &self.stage(p).def else { return false };
        let [body] = each.as_slice() else { return false };
        let all = self.bodies.reachable([*body]);
        let loads = all.iter().filter(|b| matches!(self.bodies.node(**b), Node::Load(..))).count();
        matches!(self.bodies.node(*body), Node::Op(Op::Mul, ..))
            && loads > 1
            && all.len() <= NODES
            && self.is_pure(p)
            && self.serves(p, s)
    }
}
