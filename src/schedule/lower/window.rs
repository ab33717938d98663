//! Stages that are kept over the iterations of a loop: memory is taken outside of it, the first iteration computes the window
//! that it needs, and each later one what no earlier one computed.
//!
//! A window moves on: neither of its ends ever goes back, along one dimension, and no other dimension changes. Where it has a
//! length that holds in all iterations, its memory is a ring of so many. What is not proved is refused.

use super::loops::Run;
use super::{Block, Kept, Lower, Lowered, Storage};
use crate::ir::{Op, Scalar};
use crate::nest::Stmt;
use crate::schedule::plan::{Refusal, Site};
use crate::stage::{Body, DimId, Interval, Node, StageId, Trend, greatest, least, trend};
use rustc_hash::FxHashMap;

/// So many `min` and `max` in each other are taken apart for the length of a window, and so many integers are looked at.
const DEPTH: usize = 6;
const MOST: usize = 400;

/// What a kept stage has in one iteration of the loop that it is computed in.
pub(super) struct Window {
    stage: StageId,
    /// The dimension along which it moves.
    axis: usize,
    /// Its indices.
    each: Vec<Interval>,
    /// The last index along that dimension in the iteration before.
    before: Body,
}

impl Window {
    /// Whether it is that of a stage.
    pub(super) fn is_of(&self, p: StageId) -> bool {
        self.stage == p
    }
}

impl Lower<'_> {
    /// Takes memory for the stages that are kept while an iteration of a loop of the one that runs goes on.
    pub(super) fn keep_stages(&mut self, run: &Run, name: &str) -> Lowered<()> {
        for k in 0..self.order.len() {
            let (p, plan) = (self.order[k], self.s.plan(self.order[k]));
            if let Site::At(host, at) = &plan.site
                && *host == run.stage
                && plan.store.as_deref() == Some(name)
                && self.kept != Kept::Not
            {
                self.keep_stage(p, run, name, at)?;
            }
        }
        Ok(())
    }

    fn keep_stage(&mut self, p: StageId, run: &Run, name: &str, at: &str) -> Lowered<()> {
        let (from, extent) = self.region(p, run)?;
        let (depth, boxes) = (self.ranges.len(), std::mem::take(&mut self.boxes));
        let mut inner = run.clone();
        let open: Vec<DimId> = self.between(run, name, at).iter().map(|l| self.any_iteration(&mut inner, l)).collect();
        let found = self.needed(p, &inner);
        let found = found.and_then(|each| {
            let moving = open.last().copied().unwrap_or(DimId(0));
            let axis = self.moves(p, &inner, at, &each, moving)?;
            let n = self.length(each[axis]);
            let longest = self.ceiling(n, &open);
            // Else it is the whole of something, and no ring.
            let plain = !self.g.bodies.dims(n).iter().any(|d| open.contains(d));
            Ok((axis, longest.filter(|n| plain || self.g.bodies.as_int(*n).is_some())))
        });
        self.boxes = boxes;
        self.ranges.truncate(depth);
        let (axis, longest) = found?;
        let longest = longest.filter(|_| self.kept == Kept::Rings);
        let mut room: Vec<Body> = extent.iter().map(|n| self.room(*n)).collect();
        if let Some(n) = longest {
            room[axis] = n;
        }
        self.reserve(p, from, room, longest.map(|_| axis));
        Ok(())
    }

    /// The loops inside of one, up to another one.
    fn between(&self, run: &Run, name: &str, at: &str) -> Vec<String> {
        let names = run.plan.loops.iter().map(|l| l.name.clone());
        let mut inside: Vec<String> = names.skip_while(|l| l != name).skip(1).collect();
        let end = inside.iter().position(|l| l == at).map_or(0, |k| k + 1);
        inside.truncate(end);
        inside
    }

    /// Whether iterations of a loop of a stage find what earlier ones computed of another stage.
    pub(super) fn carries(&self, host: StageId, name: &str) -> bool {
        let (plan, g) = (self.s.plan(host), &self.s.graph);
        let place = |name: &str| plan.loops.iter().position(|l| l.name == name);
        self.kept != Kept::Not
            && g.ids().any(|p| match (&self.s.plan(p).site, &self.s.plan(p).store) {
                (Site::At(to, at), Some(store)) if *to == host => {
                    place(store) < place(name) && place(name) <= place(at)
                }
                _ => false,
            })
    }

    /// Opens a loop at any of its iterations.
    fn any_iteration(&mut self, run: &mut Run, name: &str) -> DimId {
        let n = self.extent(run, name);
        let d = self.g.add_dim(name, n);
        self.ranges.push(&mut self.g.bodies, d, n);
        let index = self.g.bodies.index(d);
        let open = run.values.insert(name.to_string(), index).is_some();
        let Some(split) = run.plan.splits.iter().find(|s| s.outer == name).cloned() else { return d };
        let of = self.extent(run, &split.of);
        let factor = self.g.bodies.int(split.factor);
        let moved = if open { run.starts.contains_key(name) } else { self.moves_inwards(run, name, &split, of) };
        if !open && (moved || self.divides(split.factor, of)) {
            run.parts.insert(split.inner.clone(), factor);
        }
        if moved {
            let (start, last) = (self.ints(Op::Mul, index, factor), self.ints(Op::Sub, of, factor));
            let start = least(&mut self.g.bodies, start, last);
            // Where parts move there is a whole one.
            self.g.bodies.assume_size(start);
            run.starts.insert(name.to_string(), start);
        }
        d
    }

    /// The boxes of all that is computed in a loop of the one that runs, and the windows of what is kept there: all of them
    /// for any iteration first, so that what reads a window and what it reads agree on it.
    pub(super) fn windows(&mut self, run: &Run, name: &str) -> Lowered<Vec<Window>> {
        let here = |l: &Self, p: StageId| l.s.plan(p).site == Site::At(run.stage, name.to_string());
        let all: Vec<StageId> = self.order.iter().copied().filter(|p| here(self, *p)).collect();
        let kept = |l: &Self, p: StageId| l.kept != Kept::Not && l.s.plan(p).store.is_some();
        let Some(now) = run.values.get(name).copied().filter(|_| all.iter().any(|p| kept(self, *p))) else {
            return Ok(vec![]);
        };
        let (depth, boxes) = (self.ranges.len(), std::mem::take(&mut self.boxes));
        let mut any = run.clone();
        let d = self.any_iteration(&mut any, name);
        let found: Lowered<Vec<_>> = all.into_iter().map(|p| Ok((p, self.needed(p, &any)?))).collect();
        self.boxes = boxes;
        let mut out = vec![];
        for (p, each) in found? {
            let mut each = each;
            if kept(self, p) {
                each = self.within_memory(p, each);
                let axis = self.moves(p, &any, name, &each, d)?;
                self.fits(p, axis, each[axis], d)?;
                let one = self.g.bodies.int(1);
                let earlier = self.ints(Op::Sub, now, one);
                let before = self.g.bodies.substitute(each[axis].hi, &FxHashMap::from_iter([(d, earlier)]));
                out.push(Window { stage: p, axis, each: vec![], before });
            }
            let of = FxHashMap::from_iter([(d, now)]);
            let present = each
                .iter()
                .map(|i| Interval { lo: self.g.bodies.substitute(i.lo, &of), hi: self.g.bodies.substitute(i.hi, &of) });
            let present: Vec<Interval> = present.collect();
            if let Some(w) = out.last_mut().filter(|w| w.stage == p) {
                w.each.clone_from(&present);
            }
            self.boxes.insert(p, present);
        }
        self.ranges.truncate(depth);
        Ok(out)
    }

    /// Computes what is new of a window: all of it in the first iteration of its loop.
    pub(super) fn slide(&mut self, w: &Window, run: &Run, name: &str) -> Lowered<()> {
        let now = run.values[name];
        let zero = self.g.bodies.int(0);
        let first = self.g.bodies.as_int(now).map(|n| n == 0);
        let mut arms = vec![];
        for whole in [true, false] {
            if first == Some(!whole) {
                continue;
            }
            let mut each = w.each.clone();
            if !whole {
                let one = self.g.bodies.int(1);
                let next = self.ints(Op::Add, w.before, one);
                let lo = each[w.axis].lo;
                each[w.axis].lo = if self.never_more(lo, next) { next } else { greatest(&mut self.g.bodies, lo, next) };
            }
            let extent = each.iter().map(|i| self.length(*i)).collect();
            self.blocks.push(Block::default());
            let made = self.compute(w.stage, each.iter().map(|i| i.lo).collect(), extent, true);
            let block = self.blocks.pop().unwrap_or_default();
            made?;
            arms.push(block.stmts);
        }
        let mut arms = arms.into_iter();
        match (arms.next(), arms.next()) {
            (Some(whole), Some(new)) => {
                let c = self.g.bodies.op(Op::Lte, Scalar::Bool, &[now, zero]);
                let c = self.element(&[c])[0].clone();
                self.push(Stmt::If(c, whole, new));
            }
            (only, _) => only.into_iter().flatten().for_each(|s| self.push(s)),
        }
        Ok(())
    }

    /// Cut to the box that memory was taken for, where it is not proved to lie in it.
    fn within_memory(&mut self, p: StageId, mut each: Vec<Interval>) -> Vec<Interval> {
        let Some(Storage::Bufs(of)) = self.stored.get(&p).cloned() else { return each };
        let one = self.g.bodies.int(1);
        for (k, i) in each.iter_mut().enumerate() {
            if !self.never_more(of.least[k], i.lo) {
                i.lo = greatest(&mut self.g.bodies, i.lo, of.least[k]);
            }
            if of.ring != Some(k) {
                let end = self.ints(Op::Add, of.least[k], of.room[k]);
                let last = self.ints(Op::Sub, end, one);
                if !self.never_more(i.hi, last) {
                    i.hi = least(&mut self.g.bodies, i.hi, last);
                }
            }
        }
        each
    }

    /// The dimension along which a window moves on with a loop.
    fn moves(&self, p: StageId, run: &Run, name: &str, each: &[Interval], d: DimId) -> Lowered<usize> {
        let (stage, host) = (&self.g.stage(p).name, &self.g.stage(run.stage).name);
        let refuse = |why: String| Err(Refusal(why));
        let names = |b: Body| self.g.bodies.dims(b).contains(&d);
        let mut moving = (0..each.len()).filter(|k| names(each[*k].lo) || names(each[*k].hi));
        let (axis, more) = (moving.next(), moving.next());
        let Some(axis) = axis else {
            return refuse(format!(
                "all iterations of `{name}` of `{host}` need the same of `{stage}`: it can be computed outside of that loop"
            ));
        };
        if more.is_some() {
            return refuse(format!("with `{name}` of `{host}` more than one dimension of `{stage}` changes"));
        }
        let on = |b: Body| matches!(trend(&self.g.bodies, b, d), Some(Trend::Up | Trend::Same));
        if !on(each[axis].lo) || !on(each[axis].hi) {
            return refuse(format!(
                "what `{name}` of `{host}` needs of `{stage}` is not known to move on: it may need again what has made room"
            ));
        }
        Ok(axis)
    }

    /// Checks that the ring that was taken is as long as a window.
    fn fits(&mut self, p: StageId, axis: usize, of: Interval, d: DimId) -> Lowered<()> {
        let Some(Storage::Bufs(kept)) = self.stored.get(&p).cloned() else {
            return Err(Refusal(format!("`{}` has no memory", self.g.stage(p).name)));
        };
        let n = self.length(of);
        let longest = self.ceiling(n, &[d]);
        let fits = kept.ring != Some(axis)
            || self.never_more(n, kept.room[axis])
            || longest.is_some_and(|n| self.never_more(n, kept.room[axis]));
        if kept.ring.is_none_or(|k| k == axis) && fits {
            return Ok(());
        }
        Err(Refusal(format!("how much of `{}` is needed at once is not known", self.g.stage(p).name)))
    }

    fn length(&mut self, i: Interval) -> Body {
        let (d, one) = (self.ints(Op::Sub, i.hi, i.lo), self.g.bodies.int(1));
        self.ints(Op::Add, d, one)
    }

    /// A number that is at least an integer and does not depend on some indices: the least literal that is found.
    fn ceiling(&mut self, n: Body, free_of: &[DimId]) -> Option<Body> {
        let mut left = MOST;
        self.ceiling_within(n, free_of, DEPTH, &mut left)
    }

    fn ceiling_within(&mut self, n: Body, free_of: &[DimId], depth: usize, left: &mut usize) -> Option<Body> {
        *left = left.checked_sub(1)?;
        if !self.g.bodies.is_small(n) {
            return None;
        }
        let depends = |l: &Self, b: Body| l.g.bodies.dims(b).iter().any(|d| free_of.contains(d));
        if !depends(self, n) {
            return Some(self.room(n));
        }
        let (form, below) = (self.g.bodies.linear(n)?, depth.checked_sub(1)?);
        let mut found = self.ceilings_of_pairs(n, free_of, below, left);
        let bounds = self.ranges.bounds(&mut self.g.bodies, n);
        found.extend(bounds.map(|i| i.hi).filter(|hi| self.g.bodies.as_int(*hi).is_some()));
        for (atom, c) in form.terms() {
            let Node::Op(op @ (Op::Min | Op::Max), _, args) = self.g.bodies.node(atom).clone() else { continue };
            if !depends(self, atom) {
                continue;
            }
            let mut arms = vec![];
            for arm in args {
                let with = self.g.bodies.linear(arm).and_then(|f| form.replace(atom, &f));
                let with = with.map(|f| self.g.bodies.of_linear(&f));
                arms.push(with.and_then(|n| self.ceiling_within(n, free_of, below, left)));
            }
            // Either arm bounds `min` from above; `max` needs both.
            if (c > 0) == (op == Op::Min) {
                found.extend(arms.into_iter().flatten());
            } else if let [Some(a), Some(b)] = arms.as_slice() {
                found.push(greatest(&mut self.g.bodies, *a, *b));
            }
        }
        let number = found.iter().copied().filter(|n| self.g.bodies.as_int(*n).is_some());
        number.min_by_key(|n| self.g.bodies.as_int(*n)).or(found.first().copied())
    }

    /// The same by what is subtracted from its like: `max(a, x) - max(a, y)` is at most `x - y`, or 0 where that is less, and so
    /// for `min`; `x / k - y / k` is at most `(x - y + k - 1) / k`, for an `x` and a `y` of which none is negative.
    fn ceilings_of_pairs(&mut self, n: Body, free_of: &[DimId], depth: usize, left: &mut usize) -> Vec<Body> {
        let Some(form) = self.g.bodies.linear(n) else { return vec![] };
        let (each, mut out): (Vec<(Body, i64)>, _) = (form.terms().collect(), vec![]);
        for (x, y) in each.iter().flat_map(|x| each.iter().map(move |y| (x, y))) {
            let Some((a, b, by)) = self.alike(x.0, y.0).filter(|_| (x.1, y.1) == (1, -1)) else { continue };
            let d = self.ints(Op::Sub, a, b);
            let Some(d) = self.ceiling_within(d, free_of, depth, left) else { continue };
            let zero = self.g.bodies.int(0);
            let most = match (by, self.g.bodies.as_int(d)) {
                (1, _) => greatest(&mut self.g.bodies, d, zero),
                (by, Some(n)) if n >= 0 => self.g.bodies.int((n + by - 1) / by),
                _ => continue,
            };
            let rest = form.without(x.0).0.without(y.0).0;
            let Some(sum) = self.g.bodies.linear(most).and_then(|most| rest.plus(&most, 1)) else { continue };
            let sum = self.g.bodies.of_linear(&sum);
            out.extend(self.ceiling_within(sum, free_of, depth, left));
        }
        out
    }

    /// What two integers are made of in the same way: the least or greatest of each and of one that both have, or quotients by
    /// the same number, which is given.
    fn alike(&self, x: Body, y: Body) -> Option<(Body, Body, i64)> {
        let bodies = &self.g.bodies;
        let (Node::Op(op, _, a), Node::Op(other, _, b)) = (bodies.node(x), bodies.node(y)) else { return None };
        if op != other || a.len() != 2 {
            return None;
        }
        match op {
            Op::Min | Op::Max => {
                let shared = (0..4).find(|k| a[k / 2] == b[k % 2])?;
                Some((a[1 - shared / 2], b[1 - shared % 2], 1))
            }
            Op::Div | Op::FloorDiv if a[1] == b[1] => {
                let from_zero = bodies.is_nonnegative(a[0]) && bodies.is_nonnegative(b[0]);
                bodies.as_int(a[1]).filter(|k| *k > 0 && from_zero).map(|k| (a[0], b[0], k))
            }
            _ => None,
        }
    }
}
