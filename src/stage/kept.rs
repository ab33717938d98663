//! What stages read after a recurrence of the states before its steps, one element of each, becomes a number that the steps keep.
//!
//! Then only the last state is read as a table, and one of which a step changes few elements needs no memory for all steps:
//! going backwards over a fold asks for what its steps read, not for all that they left alone. It must not know of memory.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Recurrence};
use super::update::Over;
use crate::affine::Linear;
use crate::ir::{Lit, Op};
use rustc_hash::FxHashMap;

/// More numbers are not kept of a state.
const MAX_NUMBERS: usize = 8;

/// A read of a state before a step, after the recurrence.
struct Read {
    load: Body,
    /// What the step reads there, over its own dimensions.
    value: Body,
    /// The indices of the state after that step.
    at: Vec<Body>,
}

impl Graph {
    /// Keeps such numbers; whether there is one.
    pub(super) fn reads_to_numbers(&mut self) -> bool {
        self.each_stage(Graph::keeps_reads_of)
    }

    fn keeps_reads_of(&mut self, s: StageId) -> bool {
        let Some(of) = self.stage(s).recurrence().filter(|(leader, _)| *leader != s) else { return false };
        if self.is_output(s) || self.stage(of.0).when.is_some() || self.updates(s).is_none() {
            return false;
        }
        let after = self.follows(of);
        let readers: Vec<StageId> = self.consumers(s).into_iter().filter(|r| !self.stage(*r).is_in(of)).collect();
        let mut found = vec![];
        for r in &readers {
            match self.reads_of(s, *r, of, &after) {
                Some(reads) => found.push(reads),
                None => return false,
            }
        }
        let mut values: Vec<Body> = found.iter().flatten().map(|read| read.value).collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() || values.len() > MAX_NUMBERS {
            return false;
        }
        let first = self.numbers(of.0, &values);
        for (r, reads) in readers.into_iter().zip(found) {
            let mut to: FxHashMap<Body, Body> = FxHashMap::default();
            for read in reads {
                let k = first + values.iter().position(|v| *v == read.value).unwrap_or_default() as u32;
                let ty = self.bodies.ty(read.load);
                to.insert(read.load, self.bodies.load(Source::Stage(of.0, k), ty, read.at));
            }
            let mut stage = self.stage(r).clone();
            let mut memo = FxHashMap::default();
            for b in stage.bodies_mut() {
                *b = self.bodies.map(*b, &mut memo, &mut |_, b| to.get(&b).copied());
            }
            self.stages[r.0 as usize] = stage;
        }
        true
    }

    /// Makes numbers of a state of what steps read; the first of them.
    fn numbers(&mut self, leader: StageId, values: &[Body]) -> u32 {
        let mut stage = self.stage(leader).clone();
        let first = stage.tys.len() as u32;
        if let Definition::Recur { init, next, .. } = &mut stage.def {
            for v in values {
                let ty = self.bodies.ty(*v);
                stage.tys.push(ty);
                init.push(self.bodies.lit(Lit::zero(ty)));
                next.push(*v);
            }
        }
        self.stages[leader.0 as usize] = stage;
        first
    }

    /// What a stage reads of the states before steps; nothing where it reads more than an element of each.
    fn reads_of(&mut self, s: StageId, reader: StageId, of: Recurrence, after: &[bool]) -> Option<Vec<Read>> {
        let Definition::Recur { axis, .. } = self.stage(s).def else { return None };
        let n = self.dim(of.1).extent;
        let mut out = vec![];
        for load in self.bodies.reachable(self.stage(reader).bodies()) {
            let Node::Load(Source::Stage(p, k), _, at) = self.bodies.node(load).clone() else { continue };
            if p == s && at[axis] != n {
                out.push(self.read_of(load, (s, k, &at), reader, of, after)?);
            }
        }
        Some(out)
    }

    fn read_of(
        &mut self,
        load: Body,
        (s, k, at): (StageId, u32, &[Body]),
        reader: StageId,
        of: Recurrence,
        after: &[bool],
    ) -> Option<Read> {
        let Definition::Recur { axis, .. } = self.stage(s).def else { return None };
        let dims = self.stage(s).dims.clone();
        let (around, own) = (self.stage(reader).all_dims(), &dims[axis + 1..]);
        let (step, one) = (self.bodies.index(dims[axis]), self.bodies.int(1));
        let before = self.bodies.ints(Op::Sub, step, one);
        // The dimensions of the reader by those of the step.
        let mut here: FxHashMap<DimId, Body> = FxHashMap::default();
        for (i, d) in at[..axis].iter().zip(&dims) {
            let Node::Index(x) = self.bodies.node(*i) else { return None };
            here.insert(*x, self.bodies.index(*d));
        }
        let form = self.bodies.linear(at[axis])?;
        let (moves, by) = around.iter().find_map(|d| {
            let index = self.bodies.index(*d);
            let by = form.coefficient(index);
            (by.abs() == 1 && !here.contains_key(d)).then_some((*d, by))
        })?;
        let rest = form.plus(&Linear::atom(self.bodies.index(moves)), -by)?;
        if rest.terms().any(|(a, _)| !self.bodies.is_fixed(a)) {
            return None;
        }
        let solved = self.bodies.linear(before)?.plus(&rest, -1)?.times(by)?;
        here.insert(moves, self.bodies.of_linear(&solved));
        let index: Vec<Body> = at[axis + 1..].iter().map(|i| self.bodies.substitute(*i, &here)).collect();
        let known = |d: &DimId| dims[..=axis].contains(d);
        let early = |from: &Source| !from.stage().is_some_and(|q| after[q.0 as usize]);
        let good = index.iter().all(|i| self.bodies.dims(*i).iter().all(known));
        if !good || !self.reads(index.iter().copied()).iter().all(early) || !self.is_before(at[axis], &around, of) {
            return None;
        }
        // All steps make it, also where nobody reads it.
        let (value, zero) =
            (self.element_before(s, k, (axis, before), &index), self.bodies.lit(Lit::zero(self.bodies.ty(load))));
        let mut out = value;
        let each = self.bodies.index(of.1);
        let then = FxHashMap::from_iter([(dims[axis], self.bodies.ints(Op::Add, each, one))]);
        let points: Vec<DimId> = dims[..axis].iter().copied().chain([of.1]).collect();
        let over = Over { own, around: &points, here: &then };
        for (i, d) in index.iter().zip(own).rev() {
            if !self.has_value_at(*i, &over) {
                return None;
            }
            let (none, n) = (self.bodies.int(0), self.dim(*d).extent);
            let (low, high) = (self.bodies.test(Op::Gte, *i, none), self.bodies.test(Op::Lt, *i, n));
            out = self.bodies.cond(high, out, zero);
            out = self.bodies.cond(low, out, zero);
        }
        let then = self.bodies.ints(Op::Add, at[axis], one);
        Some(Read { load, value: out, at: at[..axis].iter().copied().chain([then]).collect() })
    }

    /// Whether a number of steps is less than all, at all points of some dimensions.
    fn is_before(&mut self, steps: Body, around: &[DimId], of: Recurrence) -> bool {
        let mut ranges = Ranges::default();
        for d in around {
            ranges.push(&mut self.bodies, *d, self.dims[d.0 as usize].extent);
        }
        let n = self.dim(of.1).extent;
        let less = self.bodies.test(Op::Lt, steps, n);
        self.bodies.as_bool(less).unwrap_or_else(|| ranges.hold(&mut self.bodies, less, &[]))
    }

    fn element_before(&mut self, s: StageId, k: u32, (axis, before): (usize, Body), index: &[Body]) -> Body {
        let stage = self.stage(s).clone();
        let outer: Vec<Body> = stage.dims[..axis].iter().map(|d| self.bodies.index(*d)).collect();
        let at = outer.into_iter().chain([before]).chain(index.iter().copied()).collect::<Vec<_>>();
        self.bodies.load(Source::Stage(s, k), stage.tys[k as usize], at)
    }
}
