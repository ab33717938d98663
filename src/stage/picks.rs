//! Loops of which a condition picks one index, `i = e`, go: nothing is computed or added at the others.
//!
//! A sum or scatter that adds only where the index of one of its loops is `e` adds there alone. A sum that adds only at the
//! element whose index is `e` is a scatter. A stage that is computed only where one of its indices is `e` has no such dimension.
//! Adjacency by lists of edges, adjoints of what steps change, and counts of classes are written so, or differentiated to it.
//! No bit changes: what is left is added in the order that it had, and to add 0 changes no sum that began with 0.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Stage};
use crate::ir::{Lit, Op};
use rustc_hash::FxHashMap;

/// A sum of so few elements asks each of them: they are lanes, and additions at one place wait for each other.
const FEW: i64 = 16;

/// The one index of a dimension at which a condition may hold.
struct Pick {
    d: DimId,
    at: Body,
    /// Whether that index is in range, and the condition holds there.
    when: Body,
}

/// What a sum that begins with 0 adds where a condition holds, and 0 elsewhere.
struct Addends {
    condition: Body,
    each: Vec<Body>,
    /// The stage that has them as elements, where that is not the sum itself, and what is checked there.
    from: Option<StageId>,
    checks: Vec<Body>,
}

impl Graph {
    /// Takes loops away of which one index is picked.
    pub(super) fn picks(&mut self) {
        for s in self.ids() {
            while self.computed_at_one(s) || self.scatters_at_one(s) || self.sums_at_one(s) {}
        }
    }

    /// Makes scatters of sums that add to one of many elements at a time.
    pub(super) fn sums_to_scatters(&mut self) {
        for s in self.ids() {
            self.scattered_sum(s);
        }
    }

    /// Takes a dimension from a stage that is computed at one index of it.
    fn computed_at_one(&mut self, s: StageId) -> bool {
        let stage = self.stage(s).clone();
        let plain = matches!(stage.def, Definition::Pure(_) | Definition::Reduce { .. }) && !self.is_output(s);
        let Some(when) = stage.when.filter(|_| plain) else { return false };
        let steps: Vec<DimId> = self.ids().filter_map(|p| Some(self.stage(p).recurrence()?.1)).collect();
        let free = |d: &DimId| !steps.contains(d) && !self.names_extent(&stage, *d);
        let all: Vec<DimId> = stage.dims.iter().rev().copied().filter(free).collect();
        // The index is found where nothing was asked before.
        let pick = all.into_iter().find_map(|d| self.pick(when, d).filter(|p| self.bodies.is_arithmetic(p.at, false)));
        let Some(pick) = pick else { return false };
        let k = stage.dims.iter().position(|d| *d == pick.d).unwrap_or(0);
        let mut made = self.at_one(&stage, &pick);
        made.when = Some(pick.when).filter(|c| self.bodies.as_bool(*c) != Some(true));
        made.dims.remove(k);
        if let Definition::Reduce { inside, .. } = &mut made.def {
            *inside -= usize::from(k >= stage.dims.len() - *inside);
        }
        self.stages[s.0 as usize] = made;
        for reader in self.consumers(s) {
            self.redirect(reader, &mut |g, from, ty, at| {
                let others = at.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, b)| *b);
                (from.stage() == Some(s)).then(|| g.bodies.load(from, ty, others.collect::<Vec<_>>()))
            });
        }
        true
    }

    /// Takes a loop from a scatter that adds at one index of it.
    fn scatters_at_one(&mut self, s: StageId) -> bool {
        let stage = self.stage(s).clone();
        let Definition::Scatter { over, only: Some(only), .. } = &stage.def else { return false };
        if over.len() < 2 {
            return false;
        }
        let Some((k, pick)) = self.pick_over(&stage, over, *only) else { return false };
        let Some(checks) = self.checks_at_one(&stage.checks, &pick) else { return false };
        let mut made = self.at_one(&stage, &pick);
        made.checks = checks;
        if let Definition::Scatter { over, only, .. } = &mut made.def {
            over.remove(k);
            *only = Some(pick.when).filter(|c| self.bodies.as_bool(*c) != Some(true));
        }
        self.stages[s.0 as usize] = made;
        true
    }

    /// Takes a loop from a sum that adds at one index of it.
    fn sums_at_one(&mut self, s: StageId) -> bool {
        let stage = self.stage(s).clone();
        let Some(addends) = self.addends(s) else { return false };
        let Some((k, pick)) = self.pick_over(&stage, stage.over(), addends.condition) else { return false };
        let Some(checks) = self.checks_at_one(&addends.checks, &pick) else { return false };
        let mut made = self.at_one(&stage, &pick);
        made.checks = checks;
        let Definition::Reduce { over, init, next, .. } = &mut made.def else { return false };
        over.remove(k);
        for (k, b) in (0..).zip(addends.each) {
            let ty = self.bodies.ty(b);
            let zero = self.bodies.lit(Lit::zero(ty));
            let there = self.bodies.substitute(b, &FxHashMap::from_iter([(pick.d, pick.at)]));
            let there = self.bodies.cond(pick.when, there, zero);
            let acc = if over.is_empty() { init[k as usize] } else { self.bodies.acc(k, ty) };
            next[k as usize] = self.bodies.op(Op::Add, ty, &[acc, there]);
        }
        if over.is_empty() {
            made.def = Definition::Pure(std::mem::take(next));
        }
        self.takes_over(s, made, addends.from);
        true
    }

    /// Makes a scatter of a sum that adds to one element at a time, if there are more of them than a few.
    fn scattered_sum(&mut self, s: StageId) -> Option<()> {
        let stage = self.stage(s).clone();
        if stage.when.is_some() || stage.dims.iter().any(|d| self.names_extent(&stage, *d)) {
            return None;
        }
        let mut addends = self.addends(s)?;
        let mut at: Vec<Option<Body>> = vec![None; stage.dims.len()];
        for (k, d) in stage.dims.iter().enumerate() {
            let Some(pick) = self.pick(addends.condition, *d) else { continue };
            let of = FxHashMap::from_iter([(*d, pick.at)]);
            addends.checks = self.checks_at_one(&addends.checks, &pick)?;
            addends.each.iter_mut().for_each(|b| *b = self.bodies.substitute(*b, &of));
            addends.condition = pick.when;
            at[k] = Some(pick.at);
        }
        let first = at.iter().position(Option::is_some)?;
        let own = stage.dims[first..].to_vec();
        if at.iter().flatten().any(|e| self.bodies.dims(*e).iter().any(|d| own.contains(d))) {
            return None;
        }
        let picked: Vec<DimId> = stage.dims.iter().zip(&at).filter_map(|(d, e)| e.map(|_| *d)).collect();
        if self.points(&picked).is_some_and(|n| n <= FEW) {
            return None;
        }
        // Elements of a row that is added are run through last.
        let (mut over, mut of) = (stage.over().to_vec(), FxHashMap::default());
        for d in own.iter().filter(|d| !picked.contains(d)) {
            let new = self.add_dim(self.dim(*d).name.clone(), self.dim(*d).extent);
            over.push(new);
            of.insert(*d, self.bodies.index(new));
        }
        let mut here = |b: Body| self.bodies.substitute(b, &of);
        let at = own.iter().zip(&at[first..]).map(|(d, e)| e.unwrap_or_else(|| of[d])).collect();
        let value = addends.each.into_iter().map(&mut here).collect();
        let checks = addends.checks.into_iter().map(&mut here).collect();
        let only = Some(here(addends.condition)).filter(|c| self.bodies.as_bool(*c) != Some(true));
        let def = Definition::Scatter { over, only, at, value, into: own.len() };
        self.takes_over(s, Stage { def, checks, ..stage }, addends.from);
        Some(())
    }

    /// Puts a stage in the place of one, and of the elements that only it read, whose checks are its own.
    fn takes_over(&mut self, s: StageId, made: Stage, from: Option<StageId>) {
        self.stages[s.0 as usize] = made;
        if let Some(p) = from {
            self.stages[p.0 as usize].checks.clear();
        }
    }

    /// The loop of a stage of which a condition picks one index that stands before it, so that what is left is added in the
    /// order that it had.
    fn pick_over(&mut self, stage: &Stage, over: &[DimId], condition: Body) -> Option<(usize, Pick)> {
        for k in (0..over.len()).rev() {
            let before: Vec<DimId> = stage.dims[..stage.looped()].iter().chain(&over[..k]).copied().collect();
            if self.names_extent(stage, over[k]) {
                continue;
            }
            if let Some(pick) = self.pick(condition, over[k])
                && self.bodies.dims(pick.at).iter().all(|d| before.contains(d))
            {
                return Some((k, pick));
            }
        }
        None
    }

    /// The one index of a dimension at which a condition may hold.
    fn pick(&mut self, condition: Body, d: DimId) -> Option<Pick> {
        let parts = self.taken_apart(&[(condition, true)]);
        let found = parts.iter().enumerate().find_map(|(k, (c, holds))| Some((k, self.fixes(*c, *holds, &[d])?.1)));
        let (k, at) = found?;
        let named = |g: &Graph, c: &(Body, bool)| g.bodies.dims(c.0).contains(&d);
        // What is asked of the index is asked where it is in range: so it has to have a value before that.
        if parts[..k].iter().any(|c| named(self, c)) && !self.bodies.is_arithmetic(at, false) {
            return None;
        }
        let (others, own): (Vec<_>, Vec<_>) = parts[..k].iter().partition(|c| !named(self, c));
        let (zero, extent) = (self.bodies.int(0), self.dim(d).extent);
        let ends = [self.bodies.test(Op::Gte, at, zero), self.bodies.test(Op::Lt, at, extent)];
        let of = FxHashMap::from_iter([(d, at)]);
        let mut asked = vec![];
        for (c, holds) in &others {
            asked.push(self.holding(*c, *holds));
        }
        asked.extend(ends);
        for (c, holds) in own.iter().chain(&parts[k + 1..]) {
            let c = self.bodies.substitute(*c, &of);
            asked.push(self.holding(c, *holds));
        }
        Some(Pick { d, at, when: self.one_by_one(&asked) })
    }

    /// A stage at the index of a dimension, which it still has.
    fn at_one(&mut self, stage: &Stage, pick: &Pick) -> Stage {
        let (mut made, of) = (stage.clone(), FxHashMap::from_iter([(pick.d, pick.at)]));
        made.bodies_mut().for_each(|b| *b = self.bodies.substitute(*b, &of));
        made
    }

    /// Checks at the one index that is picked; nothing where others are checked too.
    fn checks_at_one(&mut self, checks: &[Body], pick: &Pick) -> Option<Vec<Body>> {
        let mut out = vec![];
        for c in checks {
            if !self.bodies.dims(*c).contains(&pick.d) {
                out.push(*c);
                continue;
            }
            let Node::If([asked, check, yes]) = *self.bodies.node(*c) else { return None };
            let own =
                self.pick(asked, pick.d).filter(|own| own.at == pick.at && self.bodies.as_bool(yes) == Some(true))?;
            let check = self.bodies.substitute(check, &FxHashMap::from_iter([(pick.d, pick.at)]));
            out.push(self.bodies.cond(own.when, check, yes));
        }
        Some(out)
    }

    /// Whether another dimension of a stage is as long as the index of one says.
    fn names_extent(&self, stage: &Stage, d: DimId) -> bool {
        stage.all_dims().iter().any(|e| self.bodies.dims(self.dim(*e).extent).contains(&d))
    }

    /// What a sum adds where a condition holds, if all of its components begin with 0, and add 0 elsewhere.
    fn addends(&mut self, s: StageId) -> Option<Addends> {
        let stage = self.stage(s).clone();
        let Definition::Reduce { init, next, .. } = &stage.def else { return None };
        let mut added = vec![];
        for (k, (init, next)) in init.iter().zip(next).enumerate() {
            let Node::Op(Op::Add, ty, args) = self.bodies.node(*next) else { return None };
            let own = matches!(self.bodies.node(args[0]), Node::Acc(n, _) if *n as usize == k);
            (own && self.bodies.as_lit(*init) == Some(Lit::zero(*ty))).then_some(())?;
            added.push(args[1]);
        }
        let (from, of) = self.elsewhere(s, &added).unzip();
        let mut out = Addends { condition: *added.first()?, each: vec![], from, checks: stage.checks.clone() };
        if let (Some(p), Some(of)) = (from, &of) {
            let Definition::Pure(each) = self.stage(p).def.clone() else { return None };
            added = each.iter().map(|b| self.bodies.substitute(*b, of)).collect();
            let checks = self.stage(p).checks.clone();
            out.checks.extend(checks.iter().map(|c| self.bodies.substitute(*c, of)));
        }
        for (k, b) in added.into_iter().enumerate() {
            let Node::If([condition, there, other]) = *self.bodies.node(b) else { return None };
            let zero = Lit::zero(self.bodies.ty(other));
            let same = k == 0 || out.condition == condition;
            (same && self.bodies.as_lit(other) == Some(zero)).then_some(())?;
            (out.condition, out.each) = (condition, [out.each, vec![there]].concat());
        }
        let all = self.bodies.reachable(out.each.iter().copied().chain([out.condition]));
        let plain = |b: &Body| !matches!(self.bodies.node(*b), Node::Acc(..));
        all.iter().all(plain).then_some(out)
    }

    /// The stage whose elements a sum adds, all of them and in their order, and that nothing else reads; what its indices are.
    fn elsewhere(&self, s: StageId, added: &[Body]) -> Option<(StageId, FxHashMap<DimId, Body>)> {
        let Node::Load(Source::Stage(p, _), _, at) = self.bodies.node(*added.first()?) else { return None };
        let (own, at) = (self.stage(*p), at.clone());
        let alone = own.when.is_none() && !self.is_output(*p) && self.consumers(*p) == [s];
        let in_order = added.iter().enumerate().all(|(k, b)| {
            matches!(self.bodies.node(*b), Node::Load(Source::Stage(q, n), _, i) if q == p && *n as usize == k && *i == at)
        });
        let loads = self.bodies.reachable(self.stage(s).bodies()).into_iter();
        let all =
            loads.filter(|b| matches!(self.bodies.node(*b), Node::Load(Source::Stage(q, _), ..) if q == p)).count();
        let whole = own.dims.iter().zip(&at).enumerate().all(|(k, (d, i))| match self.bodies.node(*i) {
            Node::Index(e) => self.dim(*e).extent == self.dim(*d).extent && !at[..k].contains(i),
            _ => false,
        });
        let fits = alone && in_order && whole && all == added.len() && own.tys.len() == added.len();
        fits.then(|| (*p, own.dims.iter().copied().zip(at.iter().copied()).collect()))
    }
}
