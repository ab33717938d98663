//! Contributions of an adjoint become one tensor.
//!
//! Where the index of a contribution can be solved for loops of the contribution, the tensor is built by element,
//! and the loops that remain are sums of numbers: what was read of `v` at `(index i v)`, in a loop
//! over `i` and another over `j`, comes back as `build (size v) (lam i. sumbuild m (lam j. …))`. Where
//! it cannot, as at `(index (index i p) v)`, one scatter adds all values at their indices.

use super::contribution::{Contribution, Item, Step};
use super::emit::{Emit, Val};
use super::like::Like;
use super::loops::put_out;
use super::scatter;
use super::solve::{Plan, solve};
use super::walk::Walk;
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Scalar, Ty, TyKind};
use crate::types::shape::lowered;

/// A sum of more nodes is made once, and not again in each arm.
const FEW_NODES: usize = 32;

impl Walk<'_, '_> {
    /// The sum of contributions as a term of the tangent type of `ty`, where the work stands.
    ///
    /// # Errors
    /// Bugs only.
    pub fn force(&mut self, ty: Ty, like: &Like, contributions: Vec<Contribution>) -> Result<Id> {
        let contributions: Vec<Contribution> = contributions.into_iter().map(|p| p.now(&mut self.e)).collect();
        if contributions.iter().all(|p| p.items.is_empty() && p.steps.is_empty()) && !contributions.is_empty() {
            let mut sum = contributions[0].value;
            for p in &contributions[1..] {
                sum = self.e.add(sum, p.value);
            }
            return Ok(sum);
        }
        match ty.kind() {
            TyKind::Scalar(s) if s.is_float() => {
                let mut sum = self.e.float(*s, 0.0);
                // Of what is carried on, some elements change: they get what is theirs last, and the others stay as they are.
                let own = |p: &Contribution| self.carried.as_ref().is_some_and(|at| is_of_some(&self.e, p, at));
                let (last, first): (Vec<Contribution>, Vec<Contribution>) = contributions.into_iter().partition(own);
                for p in first {
                    let term = summed(&mut self.e, p);
                    sum = self.e.add(sum, term);
                }
                for p in last {
                    if nodes(&self.e, sum) > FEW_NODES {
                        sum = self.e.bind(sum).id;
                    }
                    let p = p.now(&mut self.e);
                    sum = added_there(&mut self.e, sum, p);
                }
                Ok(sum)
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Ok(self.e.put(Head::Tuple, [])),
            TyKind::Tuple(parts) => {
                let mut out = vec![];
                for (k, part) in parts.iter().enumerate() {
                    let of = contributions.iter().filter_map(|p| part_of(&mut self.e, p, k, parts.len())).collect();
                    let like = like.part(&mut self.e, k, parts.len());
                    let made = self.force(*part, &like, of)?;
                    out.push(self.e.val(made));
                }
                // A part may have opened lets, which those before it do not know of.
                let out: Vec<Id> = out.into_iter().map(|v| self.e.now(v)).collect();
                Ok(self.e.put(Head::Tuple, out))
            }
            TyKind::Tensor(rank, elem) => self.tensor(*rank, *elem, like, contributions),
        }
    }

    fn tensor(&mut self, rank: usize, elem: Ty, like: &Like, contributions: Vec<Contribution>) -> Result<Id> {
        let whole = self.e.now(like.val);
        let sizes = like.sizes_now(&mut self.e);
        if contributions.is_empty() {
            return Ok(self.zero(whole, &sizes));
        }
        let outer = self.axes(whole, rank, &sizes);
        if let [p] = contributions.as_slice()
            && p.items.is_empty()
            && let Some(Step::At(at)) = p.steps.first()
            && !elem.has_tensor()
        {
            // One element changes, as in `(index 3 v)`.
            let rest = Contribution { steps: p.steps[1..].to_vec(), ..p.clone() };
            let zeros = vec![self.e.int(0); rank];
            let element = self.e.put(Head::Index(rank), zeros.into_iter().chain([whole]));
            let like = Like { val: self.e.val(element), sizes: vec![] };
            let value = self.force(elem, &like, vec![rest])?;
            return Ok(self.e.put(Head::DeltaVec(rank), outer.into_iter().chain(at.clone()).chain([value])));
        }
        let outer: Vec<Val> = outer.into_iter().map(|s| self.e.val(s)).collect();
        let mut solved = vec![];
        for p in self.added_at_places(contributions, &outer) {
            let p = p.now(&mut self.e);
            let sizes: Vec<Id> = outer.iter().map(|s| self.e.now(*s)).collect();
            match solve(&mut self.e, &p, &sizes) {
                Some(plan) if plan.is_fixed() && p.loops() > 0 => {
                    solved.push((self.summed_first(rank, elem, like, p)?, plan));
                }
                Some(plan) => solved.push((p, plan)),
                None => match scatter::Target::new(&mut self.e, rank, elem, like) {
                    Some(target) => solved.push((self.scattered(&target, p)?, Plan::default())),
                    None => solved.push((p, Plan::search())),
                },
            }
        }
        if let [(p, _)] = solved.as_slice()
            && p.items.is_empty()
            && p.steps.is_empty()
            && p.depth == self.e.depth()
        {
            return Ok(p.value);
        }
        self.built(rank, elem, like, &outer, solved)
    }

    /// Contributions of which no two are added at the same indices by scatters: their values are added before. A corner of a
    /// triangle that is read twice is one place.
    fn added_at_places(&mut self, contributions: Vec<Contribution>, outer: &[Val]) -> Vec<Contribution> {
        let mut out: Vec<Contribution> = vec![];
        for p in contributions {
            let same = |q: &Contribution| (q.depth, &q.items, &q.steps) == (p.depth, &p.items, &p.steps);
            let scalar = self.e.ty(p.value).as_scalar().is_some();
            if let Some(k) = out.iter().position(same).filter(|_| scalar && p.loops() > 0) {
                let sizes: Vec<Id> = outer.iter().map(|s| self.e.now(*s)).collect();
                if solve(&mut self.e, &p, &sizes).is_none() {
                    out[k].value = self.e.add(out[k].value, p.value);
                    continue;
                }
            }
            out.push(p);
        }
        out
    }

    /// A contribution that changes one element by what loops add up, with the sum before the loop over all elements, which does not
    /// make it again where it comes to that element. An element that is a tensor would be made to be read once: it is worth
    /// that where the loops end by the index, as those over pairs do, so that the contribution cannot leave the loop over it. Such
    /// an element whose sizes are not known stays as it is.
    fn summed_first(&mut self, rank: usize, elem: Ty, like: &Like, p: Contribution) -> Result<Contribution> {
        let Some((Step::At(index), rest)) = p.steps.split_first() else { return Ok(p) };
        let loops = p.loops();
        let index: Vec<Id> = index.iter().map(|i| put_out(&mut self.e, *i, loops)).collect();
        let inner = like.sizes.get(rank..).unwrap_or_default();
        let is_float = |ty: Ty| ty.as_scalar().is_some_and(Scalar::is_float);
        let known = elem.as_tensor().is_some_and(|(r, leaf)| r == inner.len() && is_float(leaf));
        let worth = is_float(elem) || known && self.ends_by(&p, &index);
        if !worth {
            return Ok(p);
        }
        let items = p.items.iter().take_while(|i| matches!(i, Item::Guard(_))).cloned().collect();
        let one = Contribution { items, steps: vec![Step::At(index.clone())], ..p };
        let whole = self.e.now(like.val);
        let element = self.e.put(Head::Index(rank), index.into_iter().chain([whole]));
        let like = Like { val: self.e.val(element), sizes: inner.to_vec() };
        let sum = self.force(elem, &like, vec![Contribution { steps: rest.to_vec(), ..p }])?;
        let sum = self.e.bind(sum);
        let value = self.e.now(sum);
        Ok(Contribution { value, ..one.now(&mut self.e) })
    }

    /// Whether how often a loop of a contribution runs depends on a variable of the indices, which stand outside of all its loops.
    fn ends_by(&self, p: &Contribution, index: &[Id]) -> bool {
        let terms = &self.e.terms;
        let extents = p.items.iter().filter_map(|i| if let Item::Loop(n) = i { Some(*n) } else { None });
        let own = |v: &usize| index.iter().any(|i| terms.free(*i).has(*v));
        let own: Vec<usize> = (0..p.depth).filter(own).collect();
        extents.enumerate().any(|(k, n)| own.iter().any(|v| terms.free(n).has(v + k)))
    }

    /// The tensor by element.
    fn built(
        &mut self,
        rank: usize,
        elem: Ty,
        like: &Like,
        outer: &[Val],
        contributions: Vec<(Contribution, Plan)>,
    ) -> Result<Id> {
        let outer: Vec<Id> = outer.iter().map(|s| self.e.now(*s)).collect();
        let depth = self.e.depth();
        let at: Vec<Val> = (0..rank).map(|_| self.e.enter(Ty::int())).collect();
        let at: Vec<Id> = at.into_iter().map(|v| self.e.now(v)).collect();
        let inside = self.e.depth();
        let mut elements = vec![];
        for (p, plan) in contributions {
            let p = p.now(&mut self.e);
            elements.push(plan.element(&mut self.e, p, &at));
        }
        let whole = self.e.now(like.val);
        let element = self.e.put(Head::Index(rank), at.iter().copied().chain([whole]));
        let inner = like.sizes.get(rank..).unwrap_or_default().to_vec();
        let element = Like { val: self.e.val(element), sizes: inner };
        let carried = self.carried.clone();
        if let Some(at) = &mut self.carried {
            let outermost = if at.start < at.end { at.start } else { depth };
            *at = outermost..inside;
        }
        let body = self.force(elem, &element, elements);
        self.carried = carried;
        let body = body?;
        let body = self.e.close(inside, body);
        self.e.leave(depth);
        let kids: Vec<Id> = outer.iter().copied().chain([body]).collect();
        Ok(self.e.put(Head::Build(rank), kids))
    }
}

/// Whether a contribution is a number for some elements of those that levels are the indices of: a guard compares an index.
fn is_of_some(e: &Emit<'_>, p: &Contribution, at: &std::ops::Range<usize>) -> bool {
    let names = |c: Id| {
        let free = e.terms.free(c);
        let compares = matches!(e.terms.head(c), Head::Op(Op::Eq | Op::Ne | Op::Lt | Op::Lte | Op::Gt | Op::Gte));
        compares && at.clone().any(|l| p.depth > l && free.has(p.depth - 1 - l))
    };
    let guards = p.items.iter().map(|i| if let Item::Guard(c) = i { Some(*c) } else { None });
    let guards: Option<Vec<Id>> = guards.collect();
    p.steps.is_empty() && guards.is_some_and(|all| all.into_iter().any(names))
}

/// A sum with a contribution added where its guards hold, and as it is elsewhere.
fn added_there(e: &mut Emit<'_>, sum: Id, p: Contribution) -> Id {
    let mut out = e.add(sum, p.value);
    for item in p.items.into_iter().rev() {
        if let Item::Guard(c) = item {
            out = e.put(Head::If, [c, out, sum]);
        }
    }
    out
}

/// How many nodes a term has; many where it has loops.
fn nodes(e: &Emit<'_>, id: Id) -> usize {
    let own = match e.terms.head(id) {
        Head::Var(..) | Head::Const(_) | Head::Get(..) | Head::If | Head::Index(_) | Head::Op(_) => 1,
        _ => FEW_NODES + 1,
    };
    e.terms.kids(id).iter().fold(own, |n, k| if n > FEW_NODES { n } else { n + nodes(e, *k) })
}

/// The sum of a contribution of numbers, over its loops.
fn summed(e: &mut Emit<'_>, p: Contribution) -> Id {
    let mut term = p.value;
    let ty = e.ty(term);
    let mut items = p.items;
    while let Some(item) = items.pop() {
        term = match item {
            Item::Loop(extent) => e.sum(extent, term),
            Item::Guard(c) => match (e.terms.as_lit(c), items.last()) {
                (Some(Lit::Bool(true)), _) => term,
                (_, Some(Item::Loop(extent))) if let Some(bound) = below_index(e, c) => {
                    let extent = *extent;
                    items.pop();
                    summed_above(e, extent, bound, term)
                }
                _ => {
                    let zero = e.float(ty.as_scalar().unwrap_or(Scalar::F64), 0.0);
                    e.put(Head::If, [c, term, zero])
                }
            },
        };
    }
    term
}

/// What the innermost index has to be greater than for a condition to hold, outside of its loop.
fn below_index(e: &mut Emit<'_>, c: Id) -> Option<Id> {
    let kids = e.terms.kids(c).to_vec();
    let index = matches!(e.terms.head(c), Head::Op(Op::Lt)) && matches!(e.terms.head(kids[1]), Head::Var(0, _));
    if !index || e.ty(kids[0]) != Ty::int() {
        return None;
    }
    lowered(e.terms, kids[0], 1)
}

/// The sum over the indices greater than a bound: the loop starts there, so it does no round for nothing.
fn summed_above(e: &mut Emit<'_>, extent: Id, bound: Id, term: Id) -> Id {
    // The bound may be any integer: what lies outside of the loop is moved to its ends.
    let (one, none) = (e.int(1), e.int(-1));
    let last = e.sub(extent, one);
    let bound = e.op(Op::Max, [bound, none]);
    let bound = e.op(Op::Min, [bound, last]);
    let start = e.add(bound, one);
    let count = e.sub(extent, start);
    let inside = e.terms.shift(start, 1);
    let term = e.terms.map_free(term, 0, &mut |t, i, ty, under| {
        let var = t.var(i + under as u32, ty);
        match i {
            0 => {
                let start = t.shift(inside, under);
                t.op(Op::Add, [var, start])
            }
            _ => var,
        }
    });
    e.sum(count, term)
}

/// What a contribution of a tuple is for one part.
pub fn part_of(e: &mut Emit<'_>, p: &Contribution, k: usize, n: usize) -> Option<Contribution> {
    match p.steps.first() {
        Some(Step::Part(i, _)) => {
            (*i as usize == k).then(|| Contribution { steps: p.steps[1..].to_vec(), ..p.clone() })
        }
        _ => Some(Contribution { value: e.get(k as u32, n as u32, p.value), ..p.clone() }),
    }
}
