//! Where a stage is read: elements that no reader takes need not be computed.
//!
//! A triangle of sums is a square that is read on one side of its diagonal. It must not know of loops.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::Graph;
use crate::ir::{Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

/// An arm of a condition: where it is, and whether it is the first.
type Arm = (Body, bool);

impl Graph {
    /// An integer over the dimensions of a stage that is greater than 0 where its elements are read: elsewhere they may be
    /// anything. Nothing where all are read, or no comparison of indices says which.
    pub fn wanted(&mut self, s: StageId) -> Option<Body> {
        if self.is_output(s) || !self.stage(s).checks.is_empty() || !matches!(self.stage(s).tys.as_slice(), [_]) {
            return None;
        }
        let mut found: Option<Body> = None;
        for reader in self.consumers(s) {
            let (condition, arms) = self.asking(s, reader)?;
            if found.is_some_and(|known| known != condition) || self.reads_outside(s, reader, &arms) {
                return None;
            }
            found = Some(condition);
        }
        let Node::Op(op, _, args) = self.bodies.node(found?).clone() else { return None };
        let (less, more, next) = match op {
            Op::Lt => (args[0], args[1], 0),
            Op::Lte => (args[0], args[1], 1),
            Op::Gt => (args[1], args[0], 0),
            Op::Gte => (args[1], args[0], 1),
            _ => return None,
        };
        let next = self.bodies.int(next);
        let more = self.bodies.ints(Op::Add, more, next);
        let over = self.bodies.ints(Op::Sub, more, less);
        (self.bodies.is_small(over) && !self.bodies.is_data(over)).then_some(over)
    }

    /// The one condition, over the stage's own dimensions, in arms of which a reader reads it; and these arms.
    fn asking(&mut self, s: StageId, reader: StageId) -> Option<(Body, Vec<Arm>)> {
        let mut known: Option<Body> = None;
        let mut arms = vec![];
        for b in self.bodies.reachable(self.stage(reader).bodies()) {
            let Node::If([c, x, y]) = *self.bodies.node(b) else { continue };
            for (arm, first) in [(x, true), (y, false)] {
                for at in self.loads(s, arm) {
                    let own = self.in_own_dims(s, c, &at);
                    let Some(own) = own.map(|c| if first { c } else { self.bodies.op(Op::Not, Scalar::Bool, &[c]) })
                    else {
                        continue;
                    };
                    if known.is_none_or(|k| k == own) {
                        known = Some(own);
                        arms.push((b, first));
                    }
                }
            }
        }
        Some((known?, arms))
    }

    /// The indices at which a stage is read somewhere below a body.
    fn loads(&self, s: StageId, b: Body) -> Vec<Vec<Body>> {
        let all = self.bodies.reachable([b]).into_iter();
        let at = all.filter_map(|b| match self.bodies.node(b) {
            Node::Load(Source::Stage(p, _), _, at) if *p == s => Some(at.to_vec()),
            _ => None,
        });
        at.collect()
    }

    /// What a reader asks of its own indices, as a question of those of the stage that it reads at them.
    fn in_own_dims(&mut self, s: StageId, c: Body, at: &[Body]) -> Option<Body> {
        let dims = self.stage(s).dims.clone();
        let mut of: FxHashMap<DimId, Body> = FxHashMap::default();
        for (own, i) in dims.iter().zip(at) {
            if let Node::Index(d) = *self.bodies.node(*i) {
                let index = self.bodies.index(*own);
                of.entry(d).or_insert(index);
            }
        }
        let plain = !self.bodies.is_data(c) && self.bodies.dims(c).iter().all(|d| of.contains_key(d));
        plain.then(|| self.bodies.substitute(c, &of))
    }

    /// Whether a stage is read anywhere but in some arms.
    fn reads_outside(&self, s: StageId, reader: StageId, arms: &[Arm]) -> bool {
        let mut seen: FxHashSet<Body> = FxHashSet::default();
        let mut todo: Vec<Body> = self.stage(reader).bodies();
        while let Some(b) = todo.pop() {
            if !seen.insert(b) {
                continue;
            }
            if matches!(self.bodies.node(b), Node::Load(Source::Stage(p, _), ..) if *p == s) {
                return true;
            }
            let skipped = |k: usize| k > 0 && arms.contains(&(b, k == 1));
            let asks = matches!(self.bodies.node(b), Node::If(_));
            let kids = self.bodies.node(b).kids().iter().enumerate();
            todo.extend(kids.filter(|(k, _)| !asks || !skipped(*k)).map(|(_, kid)| *kid));
        }
        false
    }
}
