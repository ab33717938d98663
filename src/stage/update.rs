//! What a step of a recurrence changes of a table that is a state of it, where it changes elements at indices that the step
//! decides and keeps all others: one element, a row, or a few of these.
//!
//! The next state is read as a decision tree over the indices of an element. An arm that gives the element of the state before
//! keeps it; every other arm must be asked for by an index, `i = e` with an `e` that is the same for all elements. The
//! condition of the arm is evaluated as lazily as in the tree, or has a value anyway. It must not know where tables lie.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph};
use crate::ir::{Op, Scalar};
use rustc_hash::FxHashMap;

/// A tree of more arms changes too much to be looked at one by one.
const MAX_ARMS: usize = 8;

/// Elements of a state that a step changes, all by bodies over the dimensions up to that of the steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Update {
    /// Whether the step changes them; then the indices are in range.
    pub when: Body,
    /// The index of each dimension of an element; nothing where all indices of it are meant.
    pub at: Vec<Option<Body>>,
    /// Which of these elements, over the dimensions that have no index; all where nothing is said.
    pub only: Option<Body>,
    /// The next values of components, by their numbers, over these dimensions.
    pub values: Vec<(u32, Body)>,
}

/// A value of a decision tree, and the conditions that lead there.
pub(super) struct Arm {
    path: Vec<(Body, bool)>,
    pub value: Body,
}

/// An arm at the indices that its conditions name.
pub(super) struct Place {
    /// Where the tree leads there, whatever the other indices are; then the indices are in range.
    pub when: Body,
    /// The index of each dimension, where the conditions name one.
    pub at: Vec<Option<Body>>,
    /// What else must hold, over the other dimensions.
    pub only: Option<Body>,
    /// What stands for the dimensions that have an index.
    pub of: FxHashMap<DimId, Body>,
}

/// Dimensions whose elements a tree is about, and those that are fixed around it.
pub(super) struct Over<'a> {
    /// Those of an element.
    pub own: &'a [DimId],
    /// Those around, and what stands for them where bodies are evaluated.
    pub around: &'a [DimId],
    pub here: &'a FxHashMap<DimId, Body>,
}

impl Graph {
    /// What a step changes of a state that is a table; nothing where it may change any number of elements.
    pub fn updates(&mut self, s: StageId) -> Option<Vec<Update>> {
        let Definition::Recur { next, .. } = self.stage(s).def.clone() else { return None };
        self.updates_by(s, &next, false)
    }

    /// The same, and any part of the elements where the next value of each reads no other element of the state. Where all
    /// change, nothing is gained by doing so in place.
    pub fn updates_of_each(&mut self, s: StageId) -> Option<Vec<Update>> {
        let Definition::Recur { next, .. } = self.stage(s).def.clone() else { return None };
        self.updates_by(s, &next, true)
    }

    /// The same where the next state is that of some bodies; `each` says whether any part of the elements may change.
    pub(super) fn updates_by(&mut self, s: StageId, next: &[Body], each: bool) -> Option<Vec<Update>> {
        let stage = self.stage(s).clone();
        let Definition::Recur { axis, each: step, .. } = stage.def else { return None };
        let (outer, own) = stage.dims.split_at(axis + 1);
        if own.is_empty() {
            return None;
        }
        let (index, one) = (self.bodies.index(step), self.bodies.int(1));
        let here = FxHashMap::from_iter([(outer[axis], self.bodies.ints(Op::Add, index, one))]);
        let around: Vec<DimId> = outer[..axis].iter().copied().chain([step]).collect();
        let over = Over { own, around: &around, here: &here };
        let mut out: Vec<Update> = vec![];
        for (k, b) in next.iter().enumerate() {
            let state = Source::Stage(s, k as u32);
            for arm in self.arms(*b, &|n| matches!(n, Node::Load(from, ..) if *from == state))? {
                let place = self.place(&arm, &over)?;
                let value = self.bodies.substitute(arm.value, &place.of);
                if value == self.kept(s, k, &place.at) {
                    continue;
                }
                if place.at.iter().all(Option::is_none) {
                    let only = place.only.filter(|_| each)?;
                    if !self.reads_own(s, own, vec![only, value]) {
                        return None;
                    }
                }
                let Place { when, at, only, .. } = place;
                match out.iter_mut().find(|u| (u.when, &u.at, u.only) == (when, &at, only)) {
                    Some(u) => u.values.push((k as u32, value)),
                    None => out.push(Update { when, at, only, values: vec![(k as u32, value)] }),
                }
            }
        }
        Some(out)
    }

    /// Whether bodies over the dimensions of an element of a state read no other element of that.
    fn reads_own(&self, s: StageId, own: &[DimId], bodies: Vec<Body>) -> bool {
        self.bodies.reachable(bodies).into_iter().all(|b| match self.bodies.node(b) {
            Node::Load(Source::Stage(p, _), _, at) if *p == s => {
                let of_own = |(i, d): (&Body, &DimId)| *self.bodies.node(*i) == Node::Index(*d);
                at[at.len() - own.len()..].iter().zip(own).all(of_own)
            }
            _ => true,
        })
    }

    /// The element of a state before a step that is at a place.
    fn kept(&mut self, s: StageId, k: usize, place: &[Option<Body>]) -> Body {
        let stage = self.stage(s).clone();
        let own = stage.dims.len() - place.len();
        let mut index: Vec<Body> = stage.dims.iter().map(|d| self.bodies.index(*d)).collect();
        let one = self.bodies.int(1);
        index[own - 1] = self.bodies.ints(Op::Sub, index[own - 1], one);
        for (i, at) in index[own..].iter_mut().zip(place) {
            *i = at.unwrap_or(*i);
        }
        self.bodies.load(Source::Stage(s, k as u32), stage.tys[k], index)
    }

    /// The arms of a decision tree: conditions are looked into where one of their arms keeps what is there. Nothing where they are
    /// many.
    pub(super) fn arms(&self, root: Body, keeps: &dyn Fn(&Node) -> bool) -> Option<Vec<Arm>> {
        let mut out = vec![];
        let mut todo = vec![Arm { path: vec![], value: root }];
        while let Some(Arm { path, value }) = todo.pop() {
            match *self.bodies.node(value) {
                Node::If([c, x, y]) if self.has_arm(value, keeps) => {
                    for (value, holds) in [(y, false), (x, true)] {
                        todo.push(Arm { path: path.iter().copied().chain([(c, holds)]).collect(), value });
                    }
                }
                _ => out.push(Arm { path, value }),
            }
            if out.len() + todo.len() > MAX_ARMS {
                return None;
            }
        }
        Some(out)
    }

    /// Whether an arm of a tree is of a kind.
    pub(super) fn has_arm(&self, root: Body, is: &dyn Fn(&Node) -> bool) -> bool {
        let mut todo = vec![root];
        while let Some(b) = todo.pop() {
            match self.bodies.node(b) {
                Node::If([_, x, y]) => todo.extend([*x, *y]),
                n if is(n) => return true,
                _ => {}
            }
        }
        false
    }

    /// The indices that the conditions of an arm name, and what else they ask for. Nothing where something would be evaluated
    /// earlier than in the tree that may have no value there.
    pub(super) fn place(&mut self, arm: &Arm, over: &Over<'_>) -> Option<Place> {
        let mut at: Vec<Option<Body>> = vec![None; over.own.len()];
        let (mut asked, mut later) = (vec![], vec![]);
        for (c, holds) in self.taken_apart(&arm.path) {
            let fixes = self.fixes(c, holds, over.own);
            let c = self.holding(c, holds);
            match fixes.filter(|(k, _)| at[*k].is_none()) {
                Some((k, e)) => {
                    let (zero, n) = (self.bodies.int(0), self.dim(over.own[k]).extent);
                    let ends = [self.bodies.test(Op::Gte, e, zero), self.bodies.test(Op::Lt, e, n)];
                    if !later.is_empty() && !self.has_value_at(e, over) {
                        return None;
                    }
                    asked.extend(ends);
                    at[k] = Some(e);
                }
                None if self.is_over(c, over.own) => later.push(c),
                None if later.is_empty() || self.has_value_at(c, over) => asked.push(c),
                None => return None,
            }
        }
        let named = over.own.iter().zip(&at).filter_map(|(d, e)| Some((*d, (*e)?)));
        let of: FxHashMap<DimId, Body> = named.collect();
        let mut only = vec![];
        for c in later {
            let c = self.bodies.substitute(c, &of);
            if only.is_empty() && !self.is_over(c, over.own) { asked.push(c) } else { only.push(c) }
        }
        let when = self.one_by_one(&asked);
        let only = (!only.is_empty()).then(|| self.one_by_one(&only));
        Some(Place { when, at, only, of })
    }

    fn is_over(&self, b: Body, own: &[DimId]) -> bool {
        self.bodies.dims(b).iter().any(|d| own.contains(d))
    }

    /// A condition, or its opposite.
    pub(super) fn holding(&mut self, c: Body, holds: bool) -> Body {
        if holds { c } else { self.bodies.op(Op::Not, Scalar::Bool, &[c]) }
    }

    /// Whether all hold, each asked for where those before it do.
    pub(super) fn one_by_one(&mut self, all: &[Body]) -> Body {
        let (yes, no) = (self.bodies.bool(true), self.bodies.bool(false));
        let mut out = yes;
        for (k, c) in all.iter().enumerate().rev() {
            if !all[..k].contains(c) {
                out = self.bodies.cond(*c, out, no);
            }
        }
        out
    }

    /// The conditions that hold where a condition does, one by one, each asked for where those before it hold.
    pub fn conditions(&mut self, c: Body) -> Vec<Body> {
        let all = self.taken_apart(&[(c, true)]);
        all.into_iter().map(|(c, holds)| self.holding(c, holds)).collect()
    }

    /// The conditions of a path, one by one where they are made of several.
    pub(super) fn taken_apart(&self, path: &[(Body, bool)]) -> Vec<(Body, bool)> {
        let mut out = vec![];
        let mut todo: Vec<(Body, bool)> = path.iter().rev().copied().collect();
        while let Some((c, holds)) = todo.pop() {
            let is = |b: Body, v: bool| self.bodies.as_bool(b) == Some(v);
            match self.bodies.node(c) {
                Node::Op(Op::Not, _, args) => todo.push((args[0], !holds)),
                Node::Op(Op::And, _, args) if holds => todo.extend([(args[1], true), (args[0], true)]),
                Node::Op(Op::Or, _, args) if !holds => todo.extend([(args[1], false), (args[0], false)]),
                Node::If([a, b, other]) if holds && is(*other, false) => todo.extend([(*b, true), (*a, true)]),
                Node::If([a, then, b]) if !holds && is(*then, true) => todo.extend([(*b, false), (*a, false)]),
                _ => out.push((c, holds)),
            }
        }
        out
    }

    /// Which of some dimensions a condition names the index of, and that index.
    pub(super) fn fixes(&mut self, c: Body, holds: bool, own: &[DimId]) -> Option<(usize, Body)> {
        let Node::Op(op, _, sides) = self.bodies.node(c).clone() else { return None };
        if op != if holds { Op::Eq } else { Op::Ne } {
            return None;
        }
        let (x, y) = (self.bodies.linear(sides[0])?, self.bodies.linear(sides[1])?);
        let form = x.plus(&y, -1)?;
        for (k, d) in own.iter().enumerate() {
            let index = self.bodies.index(*d);
            let Some((_, c)) = form.terms().find(|(a, c)| *a == index && c.abs() == 1) else { continue };
            let rest = form.plus(&crate::affine::Linear::atom(index), -c)?.times(-c)?;
            if rest.terms().any(|(a, _)| self.is_over(a, own)) {
                continue;
            }
            let e = self.bodies.of_linear(&rest);
            return Some((k, e));
        }
        None
    }

    /// Whether a body has a value at all points around, whatever was not asked before.
    pub(super) fn has_value_at(&mut self, b: Body, over: &Over<'_>) -> bool {
        let b = self.bodies.substitute(b, over.here);
        let mut ranges = Ranges::default();
        for d in over.around {
            ranges.push(&mut self.bodies, *d, self.dims[d.0 as usize].extent);
        }
        let all = self.bodies.reachable([b]).into_iter().map(|b| self.bodies.node(b).clone());
        all.collect::<Vec<_>>().iter().all(|n| self.is_total(n, &ranges, over.around))
    }
}
