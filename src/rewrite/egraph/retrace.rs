//! An extraction becomes concrete terms, so that what was extracted stands in the trace.

use super::Graph;
use super::extract::extracted_kids;
use super::language::{ENode, Label};
use super::plan::{Around, Plan};
use super::trace::{Tid, Trace};
use crate::ir::{Head, deep};
use egg::Id;
use rustc_hash::FxHashMap;

/// The concrete term of a class under a plan. Nothing where the plan has a gap or a cycle.
pub fn retraced(g: &Graph, plan: &Plan<'_>, trace: &mut Trace, root: Id) -> Option<Tid> {
    Walk { g, plan, trace, defining: vec![], memo: FxHashMap::default() }.term(root)
}

struct Walk<'a> {
    g: &'a Graph,
    plan: &'a Plan<'a>,
    trace: &'a mut Trace,
    defining: Vec<Id>,
    memo: FxHashMap<(Id, Around), Option<Tid>>,
}

impl Walk<'_> {
    fn term(&mut self, id: Id) -> Option<Tid> {
        let id = self.g.find(id);
        let key = (id, self.plan.around(id, &self.defining));
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        self.memo.insert(key.clone(), None);
        let defines = self.plan.keeps(id) && !self.defining.contains(&id);
        if defines {
            self.defining.push(id);
        }
        let node = self.plan.choice(&self.defining).get(&id).cloned();
        let out = node.and_then(|n| deep(|| self.node(&n)));
        if defines {
            self.defining.pop();
        }
        self.memo.insert(key, out);
        out
    }

    fn node(&mut self, node: &ENode) -> Option<Tid> {
        if let Label::Head(Head::Var(..)) = node.label {
            let extent = self.g[node.kids[0]].data.origin;
            return Some(self.trace.put(node.label, [extent]));
        }
        let kids = extracted_kids(node).iter().map(|k| self.term(*k)).collect::<Option<Vec<Tid>>>()?;
        Some(self.trace.put(node.label, kids))
    }
}
