//! Stages that compute the same backwards are one: derivatives look for the last of the least elements from the end, where
//! their primal goes through all from the start.
//!
//! Whether they are the same is asked of what they read in the end: stages of plain elements that one of them has in between do
//! not count. No bit changes; readers of the one read the other at the index counted from the other end.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Stage};
use super::same::Same;
use crate::ir::Op;
use rustc_hash::FxHashMap;

/// Bodies of more nodes are not looked into.
const NODES: usize = 32;

impl Graph {
    /// Lets readers of a stage read another one that has the same elements in another direction; whether there is one.
    pub(super) fn unify(&mut self) -> bool {
        if !self.reads_backwards() {
            return false;
        }
        let mut plain = self.clone();
        for s in plain.order() {
            if plain.is_plain(s) {
                plain.inline(s);
            }
        }
        let mut same = Same::default();
        let asked: Vec<StageId> = self.ids().filter(|s| self.is_pure(*s) && !self.consumers(*s).is_empty()).collect();
        for s in &asked {
            let stage = Stage { name: String::new(), ..plain.stage(*s).clone() };
            let key = same.key(&mut plain, &stage, &[]);
            if same.find(&key).is_none() {
                same.insert(key, *s);
            }
        }
        let mut any = false;
        for s in asked {
            if self.is_output(s) {
                continue;
            }
            let backwards: Vec<usize> =
                (0..self.stage(s).dims.len()).filter(|k| plain.runs_backwards(s, self.stage(s).dims[*k])).collect();
            for k in backwards {
                let turned = plain.turned(s, k);
                let key = same.key(&mut plain, &turned, &[]);
                if let Some(other) = same.find(&key).filter(|other| *other != s) {
                    self.read_backwards(s, k, other);
                    any = true;
                    break;
                }
            }
        }
        any
    }

    /// Whether anything is read from the end: what is put together of what is not is not either.
    fn reads_backwards(&self) -> bool {
        let back = |i: &Body| self.bodies.linear(*i).is_some_and(|form| form.terms().any(|(_, c)| c == -1));
        let loads = |b: Body| matches!(self.bodies.node(b), Node::Load(_, _, at) if at.iter().any(back));
        self.bodies.reachable(self.stages.iter().flat_map(Stage::bodies)).into_iter().any(loads)
    }

    /// Whether a stage has elements everywhere, by itself, and in no steps.
    pub(super) fn is_pure(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        let kind = matches!(stage.def, Definition::Pure(_) | Definition::Reduce { .. });
        let steps = || self.ids().filter_map(|p| self.stage(p).recurrence()).any(|of| stage.is_in(of));
        kind && !stage.dims.is_empty() && stage.when.is_none() && stage.checks.is_empty() && !steps()
    }

    /// Whether the elements of a stage may stand in its readers, to compare these.
    fn is_plain(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        let Definition::Pure(each) = &stage.def else { return false };
        self.is_pure(s) && self.bodies.reachable(each.iter().copied()).len() <= NODES
    }

    /// Whether a stage reads along a dimension from the end, and only so.
    fn runs_backwards(&self, s: StageId, d: DimId) -> bool {
        let stage = self.stage(s);
        let (mut back, mut forth) = (false, false);
        for b in self.bodies.reachable(stage.bodies()) {
            let Node::Load(_, _, at) = self.bodies.node(b) else { continue };
            for form in at.iter().map(|i| self.bodies.linear(*i)) {
                let Some(form) = form else { return false };
                let own = form.terms().find(|(a, _)| *self.bodies.node(*a) == Node::Index(d)).map(|(_, c)| c);
                back |= own == Some(-1);
                forth |= own.is_some_and(|c| c != -1);
            }
        }
        back && !forth
    }

    /// An index counted from the other end.
    fn counted_back(&mut self, d: DimId, index: Body) -> Body {
        let one = self.bodies.int(1);
        let last = self.bodies.ints(Op::Sub, self.dim(d).extent, one);
        self.bodies.ints(Op::Sub, last, index)
    }

    /// A stage without a name whose k-th dimension runs the other way.
    fn turned(&mut self, s: StageId, k: usize) -> Stage {
        let mut stage = Stage { name: String::new(), ..self.stage(s).clone() };
        let index = self.bodies.index(stage.dims[k]);
        let turned = self.counted_back(stage.dims[k], index);
        let of = FxHashMap::from_iter([(stage.dims[k], turned)]);
        for b in stage.bodies_mut() {
            *b = self.bodies.substitute(*b, &of);
        }
        stage
    }

    /// Lets all that reads a stage read another one, at the k-th index from the other end.
    fn read_backwards(&mut self, s: StageId, k: usize, other: StageId) {
        let d = self.stage(s).dims[k];
        for reader in self.consumers(s) {
            self.redirect(reader, &mut |g, from, ty, at| match from {
                Source::Stage(p, part) if p == s => {
                    let mut at = at.to_vec();
                    at[k] = g.counted_back(d, at[k]);
                    Some(g.bodies.load(Source::Stage(other, part), ty, at))
                }
                _ => None,
            });
        }
    }
}
