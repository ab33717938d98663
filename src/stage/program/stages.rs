//! A stage becomes a value: a tensor over its dimensions, a reduction or fold in each element, a scatter.
//!
//! Where the extent of a dimension depends on others (triangles), the tensor is as wide as the widest row, and zero where the
//! stage has no element: nobody reads that.

use super::maker::{Made, Maker};
use super::scope::Bound;
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Ty};
use crate::stage::{Body, Definition, DimId, Node, Stage, StageId};

impl Maker {
    /// The value of a stage over those of its dimensions that are not fixed.
    pub(super) fn value(&mut self, s: StageId, fixed: &[DimId]) -> Made<Id> {
        let stage = self.g.stage(s).clone();
        let looped = stage.looped();
        let loops: Vec<DimId> = stage.dims[..looped].iter().copied().filter(|d| !fixed.contains(d)).collect();
        self.over(&loops, &mut |m| {
            let taken = m.taken(&stage, &loops);
            m.where_taken(taken, &mut |m| m.element(s, &stage), &mut |m| m.nothing(&stage))
        })
    }

    /// What stands where a stage has no element.
    fn nothing(&mut self, stage: &Stage) -> Made<Id> {
        let zero = self.zeros(&stage.tys)?;
        match stage.def {
            Definition::Scatter { into, .. } => {
                let sizes = self.extents(&stage.dims[stage.looped()..])?;
                self.put(Head::ConstVec(into), sizes.into_iter().chain([zero]).collect())
            }
            _ => Ok(zero),
        }
    }

    /// The condition under which a stage has an element: in its rows, and in its arm.
    fn taken(&mut self, stage: &Stage, loops: &[DimId]) -> Option<Body> {
        let mut all: Vec<Body> = vec![];
        for (k, d) in loops.iter().enumerate() {
            let n = self.g.dim(*d).extent;
            if self.g.bodies.dims(n).iter().any(|e| loops[..k].contains(e)) {
                let i = self.g.bodies.index(*d);
                all.push(self.g.bodies.op(Op::Lt, Scalar::Bool, &[i, n]));
            }
        }
        all.extend(stage.when);
        let no = self.g.bodies.bool(false);
        all.into_iter().rev().reduce(|inner, c| self.g.bodies.cond(c, inner, no))
    }

    pub(super) fn where_taken(
        &mut self,
        c: Option<Body>,
        value: &mut dyn FnMut(&mut Self) -> Made<Id>,
        other: &mut dyn FnMut(&mut Self) -> Made<Id>,
    ) -> Made<Id> {
        let Some(c) = c else { return value(self) };
        let parts = vec![self.number(c)?, value(self)?, other(self)?];
        self.put(Head::If, parts)
    }

    fn element(&mut self, s: StageId, stage: &Stage) -> Made<Id> {
        let (before, at_each) = self.g.checks(s);
        match &stage.def {
            Definition::Pure(each) => self.after(&before, &mut |m| m.components(each)),
            Definition::Reduce { over, init, next, .. } => self.after(&before, &mut |m| {
                if let Some((monoid, term)) = m.monoid(stage, &at_each)
                    && m.is_box(over)
                {
                    let made = m.looped(over, &mut |m| m.after(&at_each, &mut |m| m.number(term)))?;
                    return m.named(Head::Reduce(monoid, over.len()), made, over);
                }
                let first = m.components(init)?;
                m.folded(over, first, &mut |m| m.after(&at_each, &mut |m| m.components(next)))
            }),
            Definition::Scatter { over, only, at, value, .. } => {
                let into = &stage.dims[stage.looped()..];
                self.after(&before, &mut |m| {
                    m.scattered(over, into, &at_each, *only, (at.as_slice(), value.as_slice()))
                })
            }
            Definition::Recur { .. } => Err("a state outside of its recurrence".into()),
        }
    }

    // Loops.

    /// A tensor over dimensions; without any, the element.
    pub(super) fn over(&mut self, dims: &[DimId], elem: &mut dyn FnMut(&mut Self) -> Made<Id>) -> Made<Id> {
        if dims.is_empty() {
            return elem(self);
        }
        let made = self.looped(dims, elem)?;
        self.named(Head::Build(dims.len()), made, dims)
    }

    /// The sizes of loops, and what is made in them.
    fn looped(&mut self, dims: &[DimId], elem: &mut dyn FnMut(&mut Self) -> Made<Id>) -> Made<Vec<Id>> {
        let mut parts = self.extents(dims)?;
        dims.iter().for_each(|d| self.scope.push(Bound::Dim(*d), Ty::int()));
        parts.push(elem(self)?);
        self.scope.pop(dims.len());
        Ok(parts)
    }

    /// A node of parts, and the names of its variables.
    fn named(&mut self, head: Head, parts: Vec<Id>, dims: &[DimId]) -> Made<Id> {
        let out = self.put(head, parts)?;
        let names = dims.iter().map(|d| self.g.dim(*d).name.clone()).collect();
        self.terms.name(out, names, true);
        Ok(out)
    }

    /// The extents of dimensions; of one that depends on others before it the greatest.
    pub(super) fn extents(&mut self, dims: &[DimId]) -> Made<Vec<Id>> {
        let mut out: Vec<Id> = vec![];
        for (k, d) in dims.iter().enumerate() {
            let n = self.g.dim(*d).extent;
            let outer: Vec<DimId> = dims[..k].to_vec();
            if !self.g.bodies.dims(n).iter().any(|e| outer.contains(e)) {
                out.push(self.number(n)?);
                continue;
            }
            outer.iter().for_each(|d| self.scope.push(Bound::Dim(*d), Ty::int()));
            let inner = self.number(n)?;
            self.scope.pop(k);
            let parts = out.iter().copied().chain([inner]).collect();
            let most = self.named(Head::Reduce(Monoid::Max, k), parts, &outer)?;
            let zero = self.terms.int(0);
            out.push(self.put(Head::Op(Op::Max), vec![zero, most])?);
        }
        Ok(out)
    }

    /// Whether no extent of some dimensions depends on another one of them.
    fn is_box(&self, dims: &[DimId]) -> bool {
        dims.iter().all(|d| !self.g.bodies.dims(self.g.dim(*d).extent).iter().any(|e| dims.contains(e)))
    }

    // Reductions.

    /// What a reduction combines from its identity on, and its term; nothing where it is a fold of another kind.
    fn monoid(&self, stage: &Stage, at_each: &[Body]) -> Option<(Monoid, Body)> {
        let Definition::Reduce { init, next, .. } = &stage.def else { return None };
        let ([first], [next], [ty]) = (init.as_slice(), next.as_slice(), stage.tys.as_slice()) else { return None };
        let Node::Op(op, _, args) = self.g.bodies.node(*next) else { return None };
        let [acc, term] = args.as_slice() else { return None };
        let reads = |b: &Body| {
            self.g.bodies.reachable([*b]).into_iter().any(|b| matches!(self.g.bodies.node(b), Node::Acc(..)))
        };
        if !matches!(self.g.bodies.node(*acc), Node::Acc(0, _)) || reads(term) || at_each.iter().any(reads) {
            return None;
        }
        let m = Monoid::ALL.into_iter().find(|m| m.combines(*ty) == *op)?;
        (m.identity(*ty) == self.g.bodies.as_lit(*first)).then_some((m, *term))
    }

    /// A fold over the points of loops, in lexicographic order.
    fn folded(&mut self, over: &[DimId], first: Id, next: &mut dyn FnMut(&mut Self) -> Made<Id>) -> Made<Id> {
        let Some((d, inner)) = over.split_first() else { return next(self) };
        let n = self.g.dim(*d).extent;
        let n = self.number(n)?;
        let i = self.terms.var(0, Ty::int());
        let counted = self.put(Head::Build(1), vec![n, i])?;
        let ty = self.terms.ty(first);
        self.scope.push(Bound::State, ty);
        self.scope.push(Bound::Dim(*d), Ty::int());
        let body = match inner.is_empty() {
            true => next(self),
            false => {
                let state = self.variable(Bound::State)?;
                self.folded(inner, state, next)
            }
        }?;
        self.scope.pop(2);
        let out = self.put(Head::Fold, vec![first, counted, body])?;
        let names = ["acc".to_string(), self.g.dim(*d).name.clone()].to_vec();
        self.terms.name(out, names, true);
        Ok(out)
    }

    /// Zeros, and values that are added at indices.
    fn scattered(
        &mut self,
        over: &[DimId],
        into: &[DimId],
        checks: &[Body],
        only: Option<Body>,
        (at, value): (&[Body], &[Body]),
    ) -> Made<Id> {
        if !self.is_box(over) || !self.is_box(into) {
            return Err("a scatter whose loops depend on each other".into());
        }
        let mut parts = self.extents(into)?;
        let count = self.additions(over, into, only.is_some());
        parts.push(self.number(count)?);
        // One loop has its own index, several are made of that of one over all their points.
        let one = if let [one] = over { Some(*one) } else { None };
        self.scope.push(one.map_or(Bound::Other, Bound::Dim), Ty::int());
        let digits = if one.is_some() { vec![] } else { self.digits(over)? };
        let zero = self.g.bodies.int(0);
        let zeros: Vec<Scalar> = value.iter().map(|b| self.g.bodies.ty(*b)).collect();
        let zeros: Vec<Body> = zeros.into_iter().map(|s| self.g.bodies.lit(Lit::zero(s))).collect();
        let mut body = self.after(checks, &mut |m| {
            let nothing = &mut |m: &mut Self| m.addition(&vec![zero; at.len()], &zeros);
            m.where_taken(only, &mut |m| m.addition(at, value), nothing)
        })?;
        for (digit, d) in digits.into_iter().rev() {
            self.scope.pop(1);
            body = self.put(Head::Let, vec![digit, body])?;
            self.terms.name(body, vec![self.g.dim(d).name.clone()], false);
        }
        self.scope.pop(1);
        parts.push(body);
        self.put(Head::Scatter(into.len()), parts)
    }

    /// How often a scatter adds. What adds nothing is said to be added at the first place: `idle` says whether there is
    /// such, and then that place has to be there.
    fn additions(&mut self, over: &[DimId], into: &[DimId], idle: bool) -> Body {
        let extent = |m: &Self, d: &DimId| m.g.dim(*d).extent;
        let mut count = self.g.bodies.int(1);
        for d in over {
            let n = extent(self, d);
            count = self.g.bodies.ints(Op::Mul, count, n);
        }
        let zero = self.g.bodies.int(0);
        for d in into.iter().filter(|_| idle) {
            let n = extent(self, d);
            let some = self.g.bodies.test(Op::Gt, n, zero);
            count = self.g.bodies.cond(some, count, zero);
        }
        count
    }

    /// Where something is added, and what.
    fn addition(&mut self, at: &[Body], value: &[Body]) -> Made<Id> {
        let (many, all) = (at.len(), [at, value].concat());
        self.sharing(&all, &mut |m, ids| {
            let (at, value) = ids.split_at(many);
            let one = |m: &mut Self, of: &[Id]| if let [one] = of { Ok(*one) } else { m.put(Head::Tuple, of.to_vec()) };
            let pair = vec![one(m, at)?, one(m, value)?];
            m.put(Head::Tuple, pair)
        })
    }

    /// The indices of loops of one loop over all their points: each is bound in turn, and the values are given.
    fn digits(&mut self, over: &[DimId]) -> Made<Vec<(Id, DimId)>> {
        let extents: Vec<Body> = over.iter().map(|d| self.g.dim(*d).extent).collect();
        let mut out = vec![];
        for (k, d) in over.iter().enumerate() {
            let mut digit = self.terms.var(k as u32, Ty::int());
            for n in extents[k + 1..].iter().rev() {
                let n = self.number(*n)?;
                digit = self.put(Head::Op(Op::Div), vec![digit, n])?;
            }
            let n = self.number(extents[k])?;
            let digit = self.put(Head::Op(Op::Mod), vec![digit, n])?;
            out.push((digit, *d));
            self.scope.push(Bound::Dim(*d), Ty::int());
        }
        Ok(out)
    }
}
