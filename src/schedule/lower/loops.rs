//! The loops of a stage: parts of split dimensions, of which the last one moves inwards or is shorter, and unrolled ones as
//! text.

use super::{Block, Lower, Lowered, Parts};
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Loop as NestLoop, LoopKind, Stmt};
use crate::schedule::plan::{Kind, Loop, Plan, Split};
use crate::stage::{Body, DimId, StageId, least};
use rustc_hash::FxHashMap;

/// Where a stage is being computed: the box, and the loops that are open.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) stage: StageId,
    pub(super) plan: Plan,
    /// The least index of each dimension.
    pub(super) least: Vec<Body>,
    /// How many indices of each dimension.
    pub(super) extent: Vec<Body>,
    /// The indices of loops that are open, or unrolled.
    pub(super) values: FxHashMap<String, Body>,
    /// Where the present part of a split loop starts, by its outer loop, where its last part moves inwards.
    pub(super) starts: FxHashMap<String, Body>,
    /// How long parts of split loops are.
    pub(super) parts: FxHashMap<String, Body>,
    /// Whether stages are computed in these loops.
    pub(super) hosts: bool,
    /// What decides where elements are computed, where no loop around has asked yet.
    pub(super) when: Option<Body>,
    /// A loop over what is added whose iterations are independent all the same.
    pub(super) apart: Option<String>,
    /// Whether elements go on from what earlier parts of their points have collected, so that none is computed twice; the box
    /// then says which points.
    pub(super) collects: bool,
}

/// What runs in a loop.
pub(super) type Each<'a, 's> = dyn FnMut(&mut Lower<'s>, &mut Run) -> Lowered<()> + 'a;

impl<'s> Lower<'s> {
    /// The index of a loop that is open; of one that was split, from its parts.
    pub(super) fn value(&mut self, run: &Run, name: &str) -> Option<Body> {
        if let Some(b) = run.values.get(name) {
            return Some(*b);
        }
        let split = run.plan.splits.iter().find(|s| s.of == name)?;
        let inner = self.value(run, &split.inner)?;
        if let Some(start) = run.starts.get(&split.outer) {
            return Some(self.ints(Op::Add, *start, inner));
        }
        let outer = self.value(run, &split.outer)?;
        let factor = self.g.bodies.int(split.factor);
        let start = self.ints(Op::Mul, outer, factor);
        Some(self.ints(Op::Add, start, inner))
    }

    /// The index of a dimension of the stage, where all its loops are open.
    pub(super) fn dim_value(&mut self, run: &Run, k: usize) -> Option<Body> {
        let name = run.plan.dims[k].0.clone();
        let value = self.value(run, &name)?;
        match run.least.get(k) {
            Some(l) => Some(self.ints(Op::Add, *l, value)),
            None => Some(value),
        }
    }

    /// What stands for the dimensions of the stage in its bodies.
    pub(super) fn dim_values(&mut self, run: &Run) -> FxHashMap<DimId, Body> {
        let dims = run.plan.dims.clone();
        let each = dims.iter().enumerate().filter_map(|(k, (_, d))| Some((*d, self.dim_value(run, k)?)));
        each.collect()
    }

    /// How many iterations a loop has: of a dimension, or of a part of one.
    pub(super) fn extent(&mut self, run: &Run, name: &str) -> Body {
        if let Some(n) = run.parts.get(name) {
            return *n;
        }
        if let Some(k) = run.plan.dims.iter().position(|(n, _)| n == name) {
            return self.dim_extent(run, k);
        }
        if let Some(strip) = run.plan.strip.clone().filter(|s| s.name == name) {
            let n = self.g.dim(self.g.stage(strip.state).dims[strip.axis]).extent;
            let (factor, more) = (self.g.bodies.int(strip.factor), self.g.bodies.int(strip.factor - 1));
            let up = self.ints(Op::Add, n, more);
            return self.ints(Op::Div, up, factor);
        }
        if let Some(split) = run.plan.splits.iter().find(|s| s.outer == name).cloned() {
            let n = self.extent(run, &split.of);
            let (factor, more) = (self.g.bodies.int(split.factor), self.g.bodies.int(split.factor - 1));
            let up = self.ints(Op::Add, n, more);
            return self.ints(Op::Div, up, factor);
        }
        let Some(split) = run.plan.splits.iter().find(|s| s.inner == name).cloned() else {
            return self.g.bodies.int(1);
        };
        let n = self.extent(run, &split.of);
        let factor = self.g.bodies.int(split.factor);
        let whole = self.g.bodies.as_int(n).is_some_and(|n| n % split.factor == 0);
        match self.value(run, &split.outer).filter(|_| !whole) {
            // The outer loop was split itself, so that the last part has no text of its own.
            Some(outer) => {
                let done = self.ints(Op::Mul, outer, factor);
                let left = self.ints(Op::Sub, n, done);
                least(&mut self.g.bodies, factor, left)
            }
            None => factor,
        }
    }

    /// How many indices a dimension has: in the box, and, where other dimensions decide it, at their indices.
    fn dim_extent(&mut self, run: &Run, k: usize) -> Body {
        let n = self.g.dim(run.plan.dims[k].1).extent;
        let Some(inside) = run.extent.get(k).copied() else {
            let of = self.dim_values(run);
            return self.g.bodies.substitute(n, &of);
        };
        let own = self.g.stage(run.stage).dims.clone();
        if !self.g.bodies.dims(n).iter().any(|d| own.contains(d)) {
            return inside;
        }
        let of = self.dim_values(run);
        let end = self.g.bodies.substitute(n, &of);
        let left = self.ints(Op::Sub, end, run.least[k]);
        if self.never_more(left, inside) { left } else { least(&mut self.g.bodies, inside, left) }
    }

    /// How many iterations a loop has at most, whatever the loops around it.
    pub(super) fn most(&mut self, run: &Run, name: &str) -> Body {
        match run.plan.dims.iter().position(|(n, _)| n == name) {
            Some(k) if k < run.extent.len() => run.extent[k],
            _ => self.extent(run, name),
        }
    }

    /// Runs a body in loops, outermost first, where its elements are computed: that is asked as soon as it is decided.
    pub(super) fn nested(&mut self, run: &mut Run, loops: &[Loop], body: &mut Each<'_, 's>) -> Lowered<()> {
        let Some(when) = run.when else { return self.all_nested(run, loops, body) };
        let of = self.dim_values(run);
        let own = run.plan.dims.iter().map(|(_, d)| *d);
        if self.g.bodies.dims(when).iter().any(|d| own.clone().any(|o| o == *d) && !of.contains_key(d)) {
            return self.all_nested(run, loops, body);
        }
        let when_here = self.g.bodies.substitute(when, &of);
        let c = self.element(&[when_here])[0].clone();
        run.when = None;
        self.blocks.push(Block::default());
        let made = self.all_nested(run, loops, body);
        let block = self.blocks.pop().unwrap_or_default();
        run.when = Some(when);
        made?;
        self.push(Stmt::If(c, block.stmts, vec![]));
        Ok(())
    }

    fn all_nested(&mut self, run: &mut Run, loops: &[Loop], body: &mut Each<'_, 's>) -> Lowered<()> {
        let Some((first, rest)) = loops.split_first() else { return body(self, run) };
        let mut inner = |l: &mut Self, run: &mut Run| {
            if run.hosts {
                l.hosted(run, &first.name)?;
            }
            l.nested(run, rest, body)
        };
        let Some(split) = run.plan.splits.iter().find(|s| s.outer == first.name).cloned() else {
            let n = self.extent(run, &first.name);
            let independent = !run.plan.reduces(&first.name) || run.apart.as_ref() == Some(&first.name);
            return self.one_loop(run, first, n, independent, &mut inner);
        };
        let n = self.extent(run, &split.of);
        let strips = first.kind == Kind::Parallel && run.plan.is_strip(&split);
        let again = self.runs_again(run, first, &split);
        let inwards = again && !strips && self.g.bodies.as_int(n).is_none_or(|n| n >= split.factor);
        self.see_trips(run.stage, &first.name, n, Some(Parts { by: split.factor, inwards }));
        if strips {
            let n = self.extent(run, &first.name);
            return self.one_loop(run, first, n, true, &mut inner);
        }
        let done = if again && !self.divides(split.factor, n) {
            self.moved_inwards(run, first, &split, n, &mut inner)
        } else {
            self.with_a_rest(run, first, &split, n, &mut inner)
        };
        run.parts.remove(&split.inner);
        done
    }

    /// Whether iterations of the last part may run twice: not where each adds to what is there, nor where states share memory.
    fn runs_again(&self, run: &Run, l: &Loop, split: &Split) -> bool {
        let shares = || self.g.leads(run.stage).is_some() && self.g.ids().any(|p| self.is_state(p, run.stage));
        let adds = run.collects || run.plan.reduces(&split.of);
        matches!(l.kind, Kind::Serial | Kind::Parallel) && !adds && !shares()
    }

    /// Whether the last part of a loop of so many iterations starts so early that it is whole.
    pub(super) fn moves_inwards(&self, run: &Run, name: &str, split: &Split, n: Body) -> bool {
        let Some(l) = run.plan.loops.iter().find(|l| l.name == name) else { return false };
        self.runs_again(run, l, split) && !self.divides(split.factor, n)
    }

    pub(super) fn divides(&self, factor: i64, n: Body) -> bool {
        self.g.bodies.as_int(n).is_some_and(|n| n % factor == 0)
    }

    /// Whole parts, and a shorter one for what is left.
    fn with_a_rest(&mut self, run: &mut Run, l: &Loop, split: &Split, n: Body, body: &mut Each<'_, 's>) -> Lowered<()> {
        let factor = self.g.bodies.int(split.factor);
        let whole = self.ints(Op::Div, n, factor);
        run.parts.insert(split.inner.clone(), factor);
        if !self.is_zero(whole) {
            let independent = !run.plan.reduces(&l.name);
            self.one_loop(run, l, whole, independent, body)?;
        }
        let done = self.ints(Op::Mul, whole, factor);
        let left = self.ints(Op::Sub, n, done);
        if self.is_zero(left) || split.factor == 1 {
            return Ok(());
        }
        self.shorter(run, split, whole, left, body)
    }

    /// One part that has fewer iterations, where it has any.
    fn shorter(&mut self, run: &mut Run, split: &Split, at: Body, left: Body, body: &mut Each<'_, 's>) -> Lowered<()> {
        run.parts.insert(split.inner.clone(), left);
        run.values.insert(split.outer.clone(), at);
        self.blocks.push(Block::default());
        let made = body(self, run);
        let block = self.blocks.pop().unwrap_or_default();
        run.values.remove(&split.outer);
        made?;
        if self.g.bodies.as_int(left).is_some_and(|n| n > 0) {
            block.stmts.into_iter().for_each(|s| self.push(s));
            return Ok(());
        }
        let zero = self.g.bodies.int(0);
        let some = self.test(Op::Gt, left, zero);
        self.push(Stmt::If(some, block.stmts, vec![]));
        Ok(())
    }

    /// Whole parts, of which the last one starts so early that it ends where the loop does: a few elements are computed
    /// twice, to the same bits, and none in loops of fewer iterations, which would be slow. Where there is no whole part,
    /// a shorter one. (Halide calls this shifting inwards.)
    fn moved_inwards(
        &mut self,
        run: &mut Run,
        l: &Loop,
        split: &Split,
        n: Body,
        body: &mut Each<'_, 's>,
    ) -> Lowered<()> {
        let factor = self.g.bodies.int(split.factor);
        let known = self.g.bodies.as_int(n);
        let (last, up) = (self.ints(Op::Sub, n, factor), self.g.bodies.int(split.factor - 1));
        let parts = self.ints(Op::Add, n, up);
        let parts = self.ints(Op::Div, parts, factor);
        let zero = self.g.bodies.int(0);
        if known.is_some_and(|n| n < split.factor) {
            return if self.is_zero(n) { Ok(()) } else { self.shorter(run, split, zero, n, body) };
        }
        self.blocks.push(Block::default());
        run.parts.insert(split.inner.clone(), factor);
        // The last two may compute the same elements, so they are not independent.
        self.one_loop(run, l, parts, false, &mut |l, run| {
            let at = run.values.get(&split.outer).copied().unwrap_or(factor);
            let start = l.ints(Op::Mul, at, factor);
            let start = least(&mut l.g.bodies, start, last);
            // There is a whole part here, so it starts at 0 or after.
            l.g.bodies.assume_size(start);
            run.starts.insert(split.outer.clone(), start);
            let made = body(l, run);
            run.starts.remove(&split.outer);
            made
        })?;
        let whole = self.blocks.pop().unwrap_or_default();
        if known.is_some() {
            whole.stmts.into_iter().for_each(|s| self.push(s));
            return Ok(());
        }
        self.blocks.push(Block::default());
        // Who shows a schedule shows its whole parts.
        let seen = self.seen.take();
        // It is shorter than a part, which has to be seen where memory for a part is taken before.
        let left = if self.carries(run.stage, &l.name) { least(&mut self.g.bodies, n, factor) } else { n };
        self.shorter(run, split, zero, left, body)?;
        self.seen = seen;
        let few = self.blocks.pop().unwrap_or_default();
        let many = self.test(Op::Gte, n, factor);
        self.push(Stmt::If(many, whole.stmts, few.stmts));
        Ok(())
    }

    /// A comparison.
    pub(super) fn test(&mut self, op: Op, a: Body, b: Body) -> Expr {
        let c = self.g.bodies.op(op, Scalar::Bool, &[a, b]);
        self.element(&[c])[0].clone()
    }

    /// Fewer iterations than a vector has lanes, as vectors of fewer lanes, each half as long as the one before at most.
    fn shorter_vectors(
        &mut self,
        run: &mut Run,
        l: &Loop,
        n: i64,
        independent: bool,
        body: &mut Each<'_, 's>,
    ) -> Lowered<()> {
        let mut done = 0;
        while done < n {
            let lanes = 1 << (n - done).ilog2();
            let (start, count) = (self.g.bodies.int(done), self.g.bodies.int(lanes));
            if lanes == 1 {
                run.values.insert(l.name.clone(), start);
                body(self, run)?;
                run.values.remove(&l.name);
            } else {
                let kind = LoopKind::Vector(u32::try_from(lanes).unwrap_or(2));
                self.iterations(run, l, (start, count), (kind, independent), body)?;
            }
            done += lanes;
        }
        Ok(())
    }

    fn one_loop(
        &mut self,
        run: &mut Run,
        l: &Loop,
        n: Body,
        independent: bool,
        body: &mut Each<'_, 's>,
    ) -> Lowered<()> {
        if !run.plan.splits.iter().any(|s| s.outer == l.name) {
            self.see_trips(run.stage, &l.name, n, None);
        }
        let known = self.g.bodies.as_int(n);
        if known.is_some_and(|n| n <= 0) {
            return Ok(());
        }
        // What a step computes is read by the next, and what is collected by the next part: short rows are vectors to their end.
        let again = run.collects || self.s.steps_of(run.stage).is_some();
        let fewer = |n: &i64| again && l.kind == Kind::Vector && *n > 1 && *n < i64::from(run.lanes(&l.name));
        if let Some(few) = known.filter(fewer) {
            return self.shorter_vectors(run, l, few, independent, body);
        }
        let most = crate::schedule::steps::MAX_UNROLLED;
        if known == Some(1) || l.kind == Kind::Unrolled && known.is_some_and(|n| n <= most) {
            for k in 0..known.unwrap_or(0) {
                let k = self.g.bodies.int(k);
                run.values.insert(l.name.clone(), k);
                body(self, run)?;
            }
            run.values.remove(&l.name);
            return Ok(());
        }
        let kind = match l.kind {
            Kind::Parallel => LoopKind::Parallel { overlap: !independent },
            Kind::Vector => LoopKind::Vector(run.lanes(&l.name)),
            Kind::Serial | Kind::Unrolled => LoopKind::Serial,
        };
        let zero = self.g.bodies.int(0);
        self.iterations(run, l, (zero, n), (kind, independent), body)
    }

    /// A loop over so many indices from a first one on.
    pub(super) fn iterations(
        &mut self,
        run: &mut Run,
        l: &Loop,
        (start, n): (Body, Body),
        (kind, independent): (LoopKind, bool),
        body: &mut Each<'_, 's>,
    ) -> Lowered<()> {
        let to = self.element(&[n])[0].clone();
        let var = self.f.fresh(l.name.clone(), Scalar::I64);
        let d = self.g.add_dim(l.name.clone(), n);
        self.index.insert(d, Expr::Var(var));
        let index = self.g.bodies.index(d);
        let depth = self.ranges.len();
        self.ranges.push(&mut self.g.bodies, d, n);
        let at = self.ints(Op::Add, start, index);
        run.values.insert(l.name.clone(), at);
        self.blocks.push(Block::default());
        body(self, run)?;
        let block = self.blocks.pop().unwrap_or_default();
        run.values.remove(&l.name);
        self.ranges.truncate(depth);
        let independent = independent && !self.carries(run.stage, &l.name);
        let made = NestLoop { takes: block.takes, independent, kind, ..NestLoop::new(var, to, block.stmts) };
        self.push(Stmt::For(Box::new(made)));
        Ok(())
    }
}

impl Run {
    /// A box of a stage, of which no loop is open; none hosts others.
    pub(super) fn new(stage: StageId, plan: Plan, least: Vec<Body>, extent: Vec<Body>) -> Run {
        let (values, starts, parts) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let (hosts, when, apart, collects) = (false, None, None, false);
        Run { stage, plan, least, extent, values, starts, parts, hosts, when, apart, collects }
    }

    /// The lanes of a vector loop: as many as a whole part has iterations.
    fn lanes(&self, name: &str) -> u32 {
        let part = self.plan.splits.iter().find(|s| s.inner == name).map(|s| s.factor);
        part.and_then(|n| u32::try_from(n).ok()).unwrap_or(2).max(2)
    }
}
