//! The box of a stage that its readers need in one iteration of a loop.
//!
//! Bounds of each index that a reader loads at, over the loops that are not open yet; then the box around all of them,
//! cut to the stage's own dimensions where it is not proved to lie in them.

use super::loops::Run;
use super::{Lower, Lowered};
use crate::ir::Op;
use crate::schedule::plan::{Refusal, Site};
use crate::stage::{Body, DimId, Interval, Node, StageId, at_most, greatest, least};
use rustc_hash::FxHashMap;

impl Lower<'_> {
    /// The box of a stage that is computed in a loop of the one that runs: the least index and the number of indices of
    /// each dimension; and, where it collects, of the points of this iteration.
    pub(super) fn region(&mut self, p: StageId, run: &Run) -> Lowered<(Vec<Body>, Vec<Body>)> {
        let mut each = self.needed(p, run)?;
        if self.s.collects(p) {
            each.extend(self.part(run)?);
        }
        let one = self.g.bodies.int(1);
        let sizes = each.iter().map(|i| {
            let d = self.g.bodies.ints(Op::Sub, i.hi, i.lo);
            self.g.bodies.ints(Op::Add, d, one)
        });
        let sizes = sizes.collect();
        Ok((each.iter().map(|i| i.lo).collect(), sizes))
    }

    /// The sizes of the least box around all elements of a stage.
    pub(super) fn sizes(&mut self, p: StageId) -> Lowered<Vec<Body>> {
        let (from, dims) = (self.ranges.len(), self.g.stage(p).dims.clone());
        let mut out = vec![];
        for d in dims {
            let n = self.g.dim(d).extent;
            out.push(self.longest(n, from)?);
            self.ranges.push(&mut self.g.bodies, d, n);
        }
        self.ranges.truncate(from);
        Ok(out)
    }

    /// The greatest that an integer over the dimensions of a stage is in the iteration that is open; nothing where it may be
    /// anything.
    pub(super) fn most_here(&mut self, b: Body, run: &Run) -> Lowered<Option<Body>> {
        let from = self.ranges.len();
        let of = self.reader_indices(run.stage, run)?;
        let b = self.g.bodies.substitute(b, &of);
        let known = self.ranges.bounds_from(&mut self.g.bodies, b, from);
        self.ranges.truncate(from);
        Ok(known.map(|k| k.hi))
    }

    /// The greatest that an extent is over the indices from the k-th range inwards.
    fn longest(&mut self, n: Body, from: usize) -> Lowered<Body> {
        if self.g.bodies.dims(n).is_empty() {
            return Ok(n);
        }
        match self.ranges.bounds_from(&mut self.g.bodies, n, from) {
            Some(known) => Ok(known.hi),
            None => Err(Refusal("an extent has no bound".into())),
        }
    }

    /// The indices of each dimension of a stage that are needed in the iteration of a loop; found once, since many stages of
    /// the same loop may ask.
    pub(super) fn needed(&mut self, p: StageId, run: &Run) -> Lowered<Vec<Interval>> {
        if let Some(known) = self.boxes.get(&p) {
            return Ok(known.clone());
        }
        let found = self.found(p, run)?;
        self.boxes.insert(p, found.clone());
        Ok(found)
    }

    fn found(&mut self, p: StageId, run: &Run) -> Lowered<Vec<Interval>> {
        let each = self.read(p, run)?;
        let (from, dims) = (self.ranges.len(), self.g.stage(p).dims.clone());
        let (mut out, mut of) = (vec![], FxHashMap::default());
        let (looped, steps, all) = (self.g.stage(p).looped(), self.g.stage(p).steps(), self.all_of_steps(p));
        let present = self.present(p, run);
        for (k, (d, known)) in dims.into_iter().zip(each).enumerate() {
            // What nothing reads is computed for the step that is taken.
            let known = known.or(present.filter(|(each, _)| *each == d).map(|(_, at)| Interval { lo: at, hi: at }));
            // Data decide where values are added, so it is whole; and so are steps, and what may fail in them.
            let known = known.filter(|_| k < looped && steps != Some(d) && !all.contains(&d));
            // The dimensions before it decide how long it is: each at its only index in the box, or at any of them.
            let n = self.g.bodies.substitute(self.g.dim(d).extent, &of);
            let n = self.longest(n, from)?;
            let known = self.cut(known, n);
            let index = if known.lo == known.hi { known.lo } else { self.any_of(d, known) };
            of.insert(d, index);
            out.push(known);
        }
        self.ranges.truncate(from);
        Ok(out)
    }

    /// The step that is being taken where a stage is computed in the loop over them: its dimension and index.
    fn present(&mut self, p: StageId, run: &Run) -> Option<(DimId, Body)> {
        let (leader, each) = self.g.leads(run.stage)?;
        let axis = run.plan.steps.filter(|_| self.s.steps_of(p).is_some_and(|of| of.leader == leader))?;
        let (after, one) = (self.dim_value(run, axis)?, self.g.bodies.int(1));
        Some((each, self.ints(Op::Sub, after, one)))
    }

    /// The dimensions of what is computed for a step that are its own, where all of a step is computed since it may fail.
    fn all_of_steps(&self, p: StageId) -> Vec<DimId> {
        let (Site::At(host, _), Some(of)) = (&self.s.plan(p).site, self.s.steps_of(p)) else { return vec![] };
        let known = self.g.stage(of.leader);
        if *host != of.leader || !self.s.may_fail(of.leader) {
            return vec![];
        }
        let each = known.recurrence().map(|(_, each)| each);
        let own = self.g.stage(p).dims.iter().copied();
        own.filter(|d| Some(*d) != each && !known.dims.contains(d)).collect()
    }

    /// The stages that read a stage, each with it; of a recurrence, those that read its states after it.
    fn readings(&self, p: StageId) -> Vec<(StageId, StageId)> {
        let Some(of) = self.g.stage(p).recurrence() else {
            return self.g.consumers(p).into_iter().map(|r| (p, r)).collect();
        };
        let states = self.g.ids().filter(|s| self.g.stage(*s).recurrence() == Some(of));
        let pairs = states.flat_map(|s| self.g.consumers(s).into_iter().map(move |r| (s, r)));
        pairs.filter(|(_, r)| !self.g.stage(*r).is_in(of)).collect()
    }

    /// The part of the points of the stage that runs, a host, that its open loops are at.
    fn part(&mut self, run: &Run) -> Lowered<Option<Interval>> {
        let (from, of) = (self.ranges.len(), self.reader_indices(run.stage, run)?);
        let points = self.s.host_points(run.stage).and_then(|d| of.get(&d)).copied();
        let part = points.and_then(|i| self.ranges.bounds_from(&mut self.g.bodies, i, from));
        self.ranges.truncate(from);
        Ok(part)
    }

    /// The indices at which a stage is read, of each dimension; nothing where they may be any.
    fn read(&mut self, p: StageId, run: &Run) -> Lowered<Vec<Option<Interval>>> {
        let mut out: Vec<Option<Option<Interval>>> = vec![None; self.g.stage(p).dims.len()];
        if self.s.plan(p).beside {
            // The part that the host's loop runs through, of all rows; all elements of what collects.
            out.fill(Some(None));
            if !self.s.collects(p) {
                out[0] = Some(self.part(run)?);
            }
        }
        for (p, reader) in self.readings(p) {
            let outside = reader != run.stage && self.s.inside(reader, run.stage).is_none();
            if self.s.plan(p).beside && outside {
                // It reads what is there when the loop has ended.
                continue;
            }
            let (from, of) = (self.ranges.len(), self.reader_indices(reader, run)?);
            let loads = self.g.loads_of(p, reader);
            for at in &loads {
                for (k, i) in at.iter().enumerate().take(out.len()) {
                    let i = self.g.bodies.substitute(*i, &of);
                    let known = self.ranges.bounds_from(&mut self.g.bodies, i, from);
                    out[k] = Some(match (out[k], known) {
                        (None, known) => known,
                        (Some(Some(o)), Some(known)) => Some(Interval {
                            lo: least(&mut self.g.bodies, o.lo, known.lo),
                            hi: greatest(&mut self.g.bodies, o.hi, known.hi),
                        }),
                        (Some(_), _) => None,
                    });
                }
            }
            self.ranges.truncate(from);
        }
        Ok(out.into_iter().map(Option::flatten).collect())
    }

    fn whole(&mut self, n: Body) -> Interval {
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        Interval { lo: zero, hi: self.ints(Op::Sub, n, one) }
    }

    /// Bounds within those of a dimension.
    fn cut(&mut self, known: Option<Interval>, n: Body) -> Interval {
        let whole = self.whole(n);
        let Some(mut known) = known else { return whole };
        if !self.never_more(whole.lo, known.lo) {
            known.lo = greatest(&mut self.g.bodies, known.lo, whole.lo);
        }
        if !self.never_more(known.hi, whole.hi) {
            known.hi = least(&mut self.g.bodies, known.hi, whole.hi);
        }
        known
    }

    /// Whether one integer is at most another in all iterations of the loops around.
    pub(super) fn never_more(&mut self, a: Body, b: Body) -> bool {
        if at_most(&self.g.bodies, a, b) {
            return true;
        }
        let (zero, d) = (self.g.bodies.int(0), self.ints(Op::Sub, a, b));
        // How long a strip is depends on where it is, and that is lost once the outer loop may be anywhere.
        (0..=self.ranges.len()).rev().any(|from| {
            let known = self.ranges.bounds_from(&mut self.g.bodies, d, from);
            known.is_some_and(|d| at_most(&self.g.bodies, d.hi, zero))
        })
    }

    /// What stands for the dimensions of a reader: the loops of the one that runs, or, of one that is computed in it,
    /// any index of its box. Ranges of what is not fixed are added.
    pub(super) fn reader_indices(&mut self, reader: StageId, run: &Run) -> Lowered<FxHashMap<DimId, Body>> {
        if reader == run.stage {
            let mut run = run.clone();
            for (name, _) in run.plan.dims.clone() {
                self.close_off(&mut run, &name);
            }
            return Ok(self.dim_values(&run));
        }
        let leader = self.g.leader(reader);
        if leader != reader {
            let mut of = self.reader_indices(leader, run)?;
            for d in self.g.stage(reader).dims.clone() {
                if !of.contains_key(&d) {
                    let n = self.g.dim(d).extent;
                    let n = self.g.bodies.substitute(n, &of);
                    of.insert(d, self.any_below(d, n));
                }
            }
            return Ok(of);
        }
        if self.s.inside(reader, run.stage).is_none() {
            return Err(Refusal(format!("`{}` reads outside of the loop", self.g.stage(reader).name)));
        }
        let each = self.needed(reader, run)?;
        let mut of = FxHashMap::default();
        for (d, range) in self.g.stage(reader).dims.clone().into_iter().zip(each) {
            of.insert(d, self.any_of(d, range));
        }
        let mut part = if self.s.collects(reader) { self.part(run)? } else { None };
        for d in self.g.stage(reader).over().to_vec() {
            let n = self.g.dim(d).extent;
            let n = self.g.bodies.substitute(n, &of);
            let any = match part.take() {
                Some(part) => self.any_of(d, part),
                None => self.any_below(d, n),
            };
            of.insert(d, any);
        }
        Ok(of)
    }

    /// Any index of a dimension in a range, which is added.
    fn any_of(&mut self, d: DimId, range: Interval) -> Body {
        let any = self.g.add_dim(self.g.dim(d).name.clone(), range.hi);
        self.ranges.push_interval(any, range);
        self.g.bodies.index(any)
    }

    /// Any index of a dimension of so many.
    fn any_below(&mut self, d: DimId, n: Body) -> Body {
        let any = self.g.add_dim(self.g.dim(d).name.clone(), n);
        self.ranges.push(&mut self.g.bodies, any, n);
        self.g.bodies.index(any)
    }

    /// Gives every loop of a dimension that is not open any index: the dimension as a whole where none of its parts is
    /// open.
    fn close_off(&mut self, run: &mut Run, name: &str) {
        if run.values.contains_key(name) {
            return;
        }
        let split = run.plan.splits.iter().find(|s| s.of == name).cloned();
        if let Some(split) = split.filter(|s| self.is_open(run, &s.outer) || self.is_open(run, &s.inner)) {
            self.close_off(run, &split.outer);
            self.close_off(run, &split.inner);
            return;
        }
        let n = self.extent(run, name);
        let any = self.g.add_dim(name, n);
        self.ranges.push(&mut self.g.bodies, any, n);
        let index = self.g.bodies.index(any);
        run.values.insert(name.to_string(), index);
    }

    fn is_open(&self, run: &Run, name: &str) -> bool {
        let split = run.plan.splits.iter().find(|s| s.of == name);
        run.values.contains_key(name)
            || split.is_some_and(|s| self.is_open(run, &s.outer) || self.is_open(run, &s.inner))
    }

    /// A number that is at least an extent, as simple as can be: room for the box.
    pub(super) fn room(&mut self, n: Body) -> Body {
        let Some(mut form) = self.g.bodies.linear(n) else { return n };
        for (a, c) in self.g.bodies.linear(n).into_iter().flat_map(|f| f.terms().collect::<Vec<_>>()) {
            if let Node::Op(Op::Min, _, args) = self.g.bodies.node(a)
                && c > 0
                && let Some(number) = args.iter().find(|b| self.g.bodies.as_int(**b).is_some())
                && let Some(simpler) = self.g.bodies.linear(*number).and_then(|f| form.replace(a, &f))
            {
                form = simpler;
            }
        }
        self.g.bodies.of_linear(&form)
    }
}
