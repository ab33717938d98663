//! Stages that compute the same are one, also where they read it by other ways: the one reads a table of what the other computes
//! in its place, or goes from the last element to the first, as derivatives do that look for the last of the least elements.
//!
//! Whether they are the same is asked of what they read in the end: stages of plain elements that one of them has in between do
//! not count. No bit changes; readers of the one read the other, where need be at the index counted from the other end.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Stage};
use super::same::Same;
use crate::ir::Op;
use rustc_hash::FxHashMap;

/// Bodies of more nodes are not looked into.
const NODES: usize = 32;
/// The dimensions of stages of more are not tried in all orders.
const AXES: usize = 4;

/// What has the elements of a stage: another one, whose axes are these of it.
struct Instead {
    first: StageId,
    axes: Vec<usize>,
}

/// All orders of so many, the one that they have first.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let with = |rest: Vec<usize>| (0..n).map(move |k| [&rest[..n - 1 - k], &[n - 1], &rest[n - 1 - k..]].concat());
    orders(n - 1).into_iter().flat_map(with).collect()
}

impl Graph {
    /// Lets readers of a stage read another one that has the same elements, be it in another direction; whether there is one.
    pub(super) fn unify(&mut self) -> bool {
        let (mut plain, mut same) = (self.clone(), Same::default());
        let instead = plain.look_through(&mut same);
        if !instead.is_empty() {
            for s in self.ids() {
                self.redirect(s, &mut |g, from, ty, at| {
                    let Source::Stage(p, part) = from else { return None };
                    let Instead { first, axes } = instead.get(&p)?;
                    Some(g.bodies.load(Source::Stage(*first, part), ty, axes.iter().map(|k| at[*k])))
                });
            }
        }
        let back = self.reads_backwards() && self.unify_backwards(&mut plain, &mut same, &instead);
        back || !instead.is_empty()
    }

    /// Puts what is plain into what reads it, in all stages, and gives those that compute what an earlier one does, with that.
    fn look_through(&mut self, same: &mut Same) -> FxHashMap<StageId, Instead> {
        let (mut instead, mut plain) = (FxHashMap::<StageId, Instead>::default(), FxHashMap::default());
        let mut sums: FxHashMap<Vec<Source>, Vec<StageId>> = FxHashMap::default();
        for s in self.order() {
            self.redirect(s, &mut |g, from, ty, at| {
                let Source::Stage(p, part) = from else { return None };
                let other = instead.get(&p);
                let (first, at) =
                    other.map_or((p, at.to_vec()), |i| (i.first, i.axes.iter().map(|k| at[*k]).collect::<Vec<_>>()));
                let Some((dims, each)): Option<&(Vec<DimId>, Vec<Body>)> = plain.get(&first) else {
                    return other.map(|_| g.bodies.load(Source::Stage(first, part), ty, at));
                };
                let of: FxHashMap<DimId, Body> = dims.iter().copied().zip(at).collect();
                Some(g.bodies.substitute(each[part as usize], &of))
            });
            if let (true, Definition::Pure(each)) = (self.is_plain(s), &self.stage(s).def) {
                plain.insert(s, (self.stage(s).dims.clone(), each.clone()));
            }
            if !self.is_alone(s) {
                continue;
            }
            let stage = Stage { name: String::new(), ..self.stage(s).clone() };
            let key = same.key(self, &stage, &[]);
            if let Some(first) = same.find(&key) {
                if !self.is_output(s) {
                    instead.insert(s, Instead { first, axes: (0..stage.dims.len()).collect() });
                }
                continue;
            }
            if self.may_be_turned(s) {
                let others = sums.entry(self.sources(s)).or_default();
                if let Some(found) = self.in_another_order(&stage, others, same)
                    && !self.is_output(s)
                {
                    instead.insert(s, found);
                    continue;
                }
                others.push(s);
            }
            same.insert(key, s);
        }
        instead
    }

    /// Whether a stage is a reduction whose elements others might have in another order.
    fn may_be_turned(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        matches!(stage.def, Definition::Reduce { inside: 0, .. })
            && self.is_pure(s)
            && (2..=AXES).contains(&stage.dims.len())
    }

    /// What a stage reads, in order.
    fn sources(&self, s: StageId) -> Vec<Source> {
        let mut out = self.reads(self.stage(s).bodies());
        out.sort();
        out
    }

    /// The stage of these whose elements are those of a stage with its dimensions in another order.
    fn in_another_order(&mut self, stage: &Stage, others: &[StageId], same: &mut Same) -> Option<Instead> {
        let others =
            others.iter().copied().filter(|o| self.stage(*o).dims.len() == stage.dims.len()).collect::<Vec<_>>();
        if others.is_empty() {
            return None;
        }
        orders(stage.dims.len()).into_iter().skip(1).find_map(|axes| {
            let turned = Stage { dims: axes.iter().map(|k| stage.dims[*k]).collect(), ..stage.clone() };
            let key = same.key(self, &turned, &[]);
            same.find(&key).filter(|first| others.contains(first)).map(|first| Instead { first, axes })
        })
    }

    /// The same of stages that go the other way, and of which none is left that goes the same way.
    fn unify_backwards(&mut self, plain: &mut Graph, same: &mut Same, gone: &FxHashMap<StageId, Instead>) -> bool {
        let mut any = false;
        for s in self.order() {
            if !self.is_pure(s) || self.is_output(s) || gone.contains_key(&s) || self.consumers(s).is_empty() {
                continue;
            }
            let backwards: Vec<usize> =
                (0..self.stage(s).dims.len()).filter(|k| plain.runs_backwards(s, self.stage(s).dims[*k])).collect();
            for k in backwards {
                let turned = plain.turned(s, k);
                let key = same.key(plain, &turned, &[]);
                let Some(other) = same.find(&key).filter(|other| *other != s) else { continue };
                let before = self.clone();
                self.read_backwards(s, k, other);
                // What is made of a stage cannot stand for it.
                if self.is_ordered() {
                    any = true;
                    break;
                }
                *self = before;
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
        self.is_alone(s) && !stage.dims.is_empty() && stage.checks.is_empty()
    }

    /// Whether a stage is computed by itself, in no arm and in no steps; it may fail.
    pub(super) fn is_alone(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        let kind = matches!(stage.def, Definition::Pure(_) | Definition::Reduce { .. });
        let steps = || self.ids().filter_map(|p| self.stage(p).recurrence()).any(|of| stage.is_in(of));
        kind && stage.when.is_none() && !steps()
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
