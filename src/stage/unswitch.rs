//! Sums of what is 0 in some of their lanes: the condition leaves the sum, and stands where the sum is read.
//!
//! A triangle of sums is written as a square in which each addend asks on which side of the diagonal it is. Where that does not
//! depend on what is summed over, and all addends have values, the sum is as well made without asking: one condition is left
//! for each element, and what is added is a product again. A sum that an arm of such a condition reads is made everywhere, too,
//! where it has a value, and so is one that all but a diagonal asks for. No bit changes: zeros that are added to 0 are 0.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph};
use crate::ir::{Lit, Op, Scalar};
use rustc_hash::FxHashMap;

/// What a sum asks of its addends.
struct Asked {
    /// In terms of the sum's indices.
    condition: Body,
    /// Whether the addend is 0 where the condition holds.
    negated: bool,
    zero: Body,
    /// The stage in which it is asked, the sum or elements that it alone reads; what is asked there, and what the addend is.
    place: StageId,
    chosen: Body,
    addend: Body,
}

impl Graph {
    /// Takes the conditions of sums out of them.
    pub(super) fn unswitch(&mut self) {
        for s in self.order() {
            if self.is_in_triangle(s) {
                self.leave_arm(s);
            }
            if let Some(asked) = self.asked(s) {
                self.asks_outside(s, &asked);
            }
        }
    }

    /// Whether a reduction is computed in an arm that lanes take by the order of their indices, or all but those of a diagonal.
    fn is_in_triangle(&self, s: StageId) -> bool {
        let stage = self.stage(s);
        let reduces = matches!(stage.def, Definition::Reduce { .. });
        let by = stage.when.and_then(|condition| self.parts_lanes(s, condition));
        reduces && by.is_some_and(|op| op == Op::Ne || is_order(op))
    }

    /// The comparison of indices by which a condition tells lanes of a stage apart, elements of its last dimension. Of two indices
    /// either may be the greater one.
    fn parts_lanes(&self, s: StageId, condition: Body) -> Option<Op> {
        let (dims, stage) = (self.bodies.dims(condition), self.stage(s));
        let lanes = dims.len() > 1 && stage.dims.last().is_some_and(|last| dims.contains(last));
        let by = self.comparison(condition)?;
        (lanes && !dims.iter().any(|d| stage.over().contains(d))).then_some(by)
    }

    /// The condition of a sum, where it tells lanes apart: elements of the last dimension.
    fn asked(&mut self, s: StageId) -> Option<Asked> {
        let Definition::Reduce { init, next, .. } = &self.stage(s).def else { return None };
        let ([init], [next]) = (init.as_slice(), next.as_slice()) else { return None };
        let (init, Node::Op(Op::Add, ty, args)) = (*init, self.bodies.node(*next)) else { return None };
        let (ty, [acc, addend]) = (*ty, args.as_slice()) else { return None };
        let zero = Lit::zero(ty);
        let starts = matches!(self.bodies.node(*acc), Node::Acc(0, _)) && self.bodies.as_lit(init) == Some(zero);
        let (place, chosen, of) = self.elements(s, *addend)?;
        let Node::If([condition, x, y]) = *self.bodies.node(chosen) else { return None };
        let [first, second] = [x, y].map(|b| self.bodies.as_lit(b) == Some(zero));
        if !starts || first == second || self.is_output(s) || self.consumers(s).is_empty() {
            return None;
        }
        let condition = self.bodies.substitute(condition, &of);
        // What is 0 nearly everywhere is not to be computed everywhere.
        if !self.parts_lanes(s, condition).is_some_and(is_order) || !self.convertible(place).contains(&chosen) {
            return None;
        }
        let (addend, zero) = if first { (y, x) } else { (x, y) };
        let own = |b: &Body| matches!(self.bodies.node(*b), Node::Acc(..));
        let plain = !self.bodies.reachable([addend]).iter().any(own);
        plain.then_some(Asked { condition, negated: first, zero, place, chosen, addend })
    }

    /// Where an addend of a sum is written, with what the indices there are: in the sum, or as an element that nothing else
    /// reads.
    pub(super) fn elements(&self, s: StageId, addend: Body) -> Option<(StageId, Body, FxHashMap<DimId, Body>)> {
        let Node::Load(Source::Stage(p, 0), _, at) = self.bodies.node(addend) else {
            return Some((s, addend, FxHashMap::default()));
        };
        let stage = self.stage(*p);
        let Definition::Pure(each) = &stage.def else { return None };
        let all = self.bodies.reachable(self.stage(s).bodies()).into_iter();
        let once =
            all.filter(|b| matches!(self.bodies.node(*b), Node::Load(Source::Stage(q, _), ..) if q == p)).count();
        let ([body], true) = (each.as_slice(), once == 1 && self.serves(*p, s)) else { return None };
        Some((*p, *body, stage.dims.iter().copied().zip(at.iter().copied()).collect()))
    }

    /// How a condition compares indices, where it is no more than that.
    fn comparison(&self, condition: Body) -> Option<Op> {
        let Node::Op(op, _, args) = self.bodies.node(condition) else { return None };
        let all = self.bodies.reachable([condition]);
        let plain = |b: &Body| match self.bodies.node(*b) {
            Node::Load(..) | Node::If(_) | Node::Cast(..) => false,
            Node::Op(op, ..) => !op.divides(),
            _ => true,
        };
        let numbers = args.iter().all(|a| self.bodies.ty(*a) == Scalar::I64);
        (numbers && all.iter().all(plain)).then_some(*op)
    }

    fn asks_outside(&mut self, s: StageId, asked: &Asked) {
        // Checks that ask the same stay as they are.
        let mut memo = FxHashMap::from_iter([(asked.chosen, asked.addend)]);
        if let Definition::Pure(each) | Definition::Reduce { next: each, .. } =
            &mut self.stages[asked.place.0 as usize].def
        {
            each.iter_mut().for_each(|b| *b = self.bodies.map(*b, &mut memo, &mut |_, _| None));
        }
        let dims = self.stage(s).dims.clone();
        for reader in self.consumers(s) {
            self.redirect(reader, &mut |g, from, ty, at| match from {
                Source::Stage(p, _) if p == s => {
                    let of: FxHashMap<DimId, Body> = dims.iter().copied().zip(at.iter().copied()).collect();
                    let condition = g.bodies.substitute(asked.condition, &of);
                    let sum = g.bodies.load(from, ty, at.to_vec());
                    let (x, y) = if asked.negated { (asked.zero, sum) } else { (sum, asked.zero) };
                    Some(g.bodies.cond(condition, x, y))
                }
                _ => None,
            });
        }
    }
}

/// Whether a comparison of indices is one by their order, so that neither arm is rare.
fn is_order(op: Op) -> bool {
    matches!(op, Op::Lt | Op::Gt | Op::Lte | Op::Gte)
}
