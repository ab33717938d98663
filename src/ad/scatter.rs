//! Contributions whose index cannot be solved become scatters: one pass over all their loops adds each value
//! at its index.
//!
//! A scatter has one loop, so several become one over all combinations of their indices; extents
//! that depend on outer loops are replaced by their greatest value, and what lies beyond them adds
//! nothing. It must not know where the contributions come from.

use super::contribution::{Contribution, Item, Step, mentioned, simple};
use super::emit::{Emit, Val};
use super::like::Like;
use super::loops::{free_to_move, moved, put_out};
use super::walk::Walk;
use crate::diag::Result;
use crate::ir::{Head, Id, Monoid, Op, Terms, Ty, TyKind};

/// Tensors of sums have no more axes than this.
const MAX_RANK: usize = 3;

/// The tensor that contributions are added up to.
pub struct Target {
    /// Rank of the outer tensor.
    pub rank: usize,
    /// Its elements.
    pub elem: Ty,
    /// A value of its type and shape.
    pub whole: Val,
    /// The sizes of all axes through nested tensors.
    pub sizes: Vec<Val>,
    /// The element of the innermost tensor.
    leaf: Ty,
}

impl Target {
    /// A target, where the elements of its innermost tensor can be scattered: they hold no tensors.
    pub fn new(e: &mut Emit<'_>, rank: usize, elem: Ty, like: &Like) -> Option<Target> {
        let (mut axes, mut leaf) = (rank, elem);
        while let Some((r, inner)) = leaf.as_tensor() {
            axes += r;
            leaf = inner;
        }
        if leaf.has_tensor() {
            return None;
        }
        let whole = e.now(like.val);
        let known = like.sizes_now(e);
        let sizes = (0..axes).map(|k| known.get(k).copied().unwrap_or_else(|| e.put(Head::Size(k), [whole])));
        let sizes: Vec<Id> = sizes.collect();
        Some(Target { rank, elem, whole: e.val(whole), sizes: sizes.into_iter().map(|s| e.val(s)).collect(), leaf })
    }
}

impl Walk<'_, '_> {
    /// The tensor of one contribution, as a contribution without loops.
    ///
    /// # Errors
    /// Bugs only.
    pub fn scattered(&mut self, target: &Target, contribution: Contribution) -> Result<Contribution> {
        let p = self.down_to_leaves(target, contribution);
        let (p, rounds) = summed_inside(&mut self.e, p);
        let bounds = bounds(&mut self.e, &p.items);
        let p = p.now(&mut self.e);
        let here: Vec<Id> = bounds.iter().map(|b| self.e.now(*b)).collect();
        let (p, always) = self.summed_before(p, &here);
        let bounds: Vec<Id> = bounds.into_iter().map(|b| self.e.now(b)).collect();
        let total = bounds.iter().copied().reduce(|a, b| self.e.op(Op::Mul, [a, b]));
        let total = total.unwrap_or_else(|| self.e.int(1));
        let axes = target.sizes.len();
        let mut index = vec![];
        let mut rest = p.steps.clone();
        while index.len() < axes && !rest.is_empty() {
            if let Step::At(more) = rest.remove(0) {
                index.extend(more);
            }
        }
        let whole = self.e.now(target.whole);
        let value = match rest.is_empty() {
            true => p.value,
            false => {
                // A part of a tuple of numbers changes: the other parts are zeros, whatever the values are.
                let like = self.element_like(target, whole);
                let contribution = Contribution { depth: self.e.depth(), items: vec![], steps: rest, value: p.value };
                self.force(target.leaf, &like, vec![contribution])?
            }
        };
        let sizes: Vec<Id> = target.sizes.iter().map(|s| self.e.now(*s)).collect();
        let masked = p.items.iter().any(|i| matches!(i, Item::Guard(_))) || !exact(&self.e, &p.items);
        let mut needed: Vec<Id> = rounds.into_iter().map(|n| self.e.now(n)).collect();
        if masked {
            needed.extend(&sizes);
        }
        let count = unless_empty(&mut self.e, &needed, total);
        let body = self.pair(target, &p, (&index, value, always), &bounds);
        let kids: Vec<Id> = sizes.iter().copied().chain([count, body]).collect();
        let made = self.e.put(Head::Scatter(axes), kids);
        let made = self.e.bind(made);
        let value = self.nested(target, made);
        Ok(Contribution { depth: self.e.depth(), items: vec![], steps: vec![], value })
    }

    /// The contribution with its value read of a tensor of sums, where the value is a sum whose index comes
    /// first in all tensors that it reads: then one pass over these adds up all values side by side.
    /// Whether that was done: then the value is there, and 0, where the conditions do not hold.
    fn summed_before(&mut self, p: Contribution, bounds: &[Id]) -> (Contribution, bool) {
        let (loops, e) = (bounds.len(), &mut self.e);
        let kids = e.terms.kids(p.value).to_vec();
        let fits = e.terms.head(p.value) == Head::Reduce(Monoid::Add, 1)
            && (1..=MAX_RANK).contains(&loops)
            && e.ty(p.value).as_scalar().is_some()
            && mentioned(e.terms, kids[0], loops).is_empty()
            && first_everywhere(e.terms, kids[1], loops);
        if !fits {
            return (p, false);
        }
        let extent = put_out(e, kids[0], loops);
        // The index of the sum goes from inside of the loops to the outside.
        let mut element = e.terms.map_free(kids[1], 0, &mut |t, i, ty, under| match i as usize {
            0 => t.var((loops + under) as u32, ty),
            i if i <= loops => t.var((i - 1 + under) as u32, ty),
            i => t.var((i + under) as u32, ty),
        });
        let none = zero(e, e.ty(element));
        for c in conditions(e, &p.items, loops) {
            element = e.put(Head::If, [c, element, none]);
        }
        let inside: Vec<Id> = bounds.iter().map(|b| e.terms.shift(*b, 1)).collect();
        let values = e.put(Head::Build(loops), inside.into_iter().chain([element]));
        let sums = e.put(Head::Reduce(Monoid::Add, 1), [extent, values]);
        let sums = e.bind(sums);
        let mut p = p.now(e);
        let of = e.now(sums);
        let mut kids: Vec<Id> = (0..loops).rev().map(|k| e.terms.var(k as u32, Ty::int())).collect();
        kids.push(e.terms.shift(of, loops));
        p.value = e.put(Head::Index(loops), kids);
        (p, true)
    }

    fn element_like(&mut self, target: &Target, whole: Id) -> Like {
        let mut of = whole;
        while let Some((rank, _)) = self.e.ty(of).as_tensor() {
            let zeros: Vec<Id> = (0..rank).map(|_| self.e.int(0)).collect();
            of = self.e.put(Head::Index(rank), zeros.into_iter().chain([of]));
        }
        debug_assert_eq!(self.e.ty(of), target.leaf);
        Like { val: self.e.val(of), sizes: vec![] }
    }

    /// Where a tensor changes as a whole, loops over its elements.
    fn down_to_leaves(&mut self, target: &Target, mut p: Contribution) -> Contribution {
        let mut axis = 0;
        let mut ty = Ty::tensor(target.rank, target.elem);
        for k in 0.. {
            let Some((rank, inner)) = ty.as_tensor() else { break };
            if k >= p.steps.len() {
                let mut at = vec![];
                for n in 0..rank {
                    let loops = p.loops();
                    let size = self.e.now(target.sizes[axis + n]);
                    let size = self.e.terms.shift(size, loops);
                    let old = std::mem::take(&mut p.items);
                    p = p.map(&mut |id, _| self.e.terms.shift(id, 1));
                    p.items = old;
                    p.items.push(Item::Loop(size));
                    at = at.into_iter().map(|i| self.e.terms.shift(i, 1)).collect();
                    at.push(self.e.terms.var(0, Ty::int()));
                }
                p.value = self.e.put(Head::Index(rank), at.iter().copied().chain([p.value]));
                p.steps.push(Step::At(at));
            }
            axis += rank;
            ty = inner;
        }
        p
    }

    /// Index and value for one number of the loop, as the body of the scatter. A value that is `always`
    /// there is read whatever the conditions, so that no arm hides what it is read of.
    fn pair(
        &mut self,
        target: &Target,
        p: &Contribution,
        (index, value, always): (&[Id], Id, bool),
        bounds: &[Id],
    ) -> Id {
        let outer = self.e.depth();
        let flat = self.e.enter(Ty::int());
        let inside = self.e.depth();
        let at = decoded(&mut self.e, flat, bounds);
        let mut conditions = vec![];
        let mut seen = 0;
        for item in &p.items {
            match item {
                Item::Loop(n) => {
                    if !is_bound(&self.e, *n, seen) {
                        let n = placed(&mut self.e, *n, &at[..seen], outer);
                        let i = self.e.now(at[seen]);
                        conditions.push(self.e.op(Op::Lt, [i, n]));
                    }
                    seen += 1;
                }
                Item::Guard(c) => conditions.push(placed(&mut self.e, *c, &at[..seen], outer)),
            }
        }
        let index: Vec<Id> = index.iter().map(|i| placed(&mut self.e, *i, &at, outer)).collect();
        let value = placed(&mut self.e, value, &at, outer);
        let pack = |e: &mut Emit<'_>, index: Vec<Id>| match index.as_slice() {
            [one] => *one,
            _ => e.put(Head::Tuple, index),
        };
        let zeros: Vec<Id> = index.iter().map(|_| self.e.int(0)).collect();
        let index = pack(&mut self.e, index);
        let nowhere = pack(&mut self.e, zeros);
        let (mut body, mut nothing) = (index, nowhere);
        if !always {
            let zero = zero(&mut self.e, target.leaf);
            body = self.e.put(Head::Tuple, [index, value]);
            nothing = self.e.put(Head::Tuple, [nowhere, zero]);
        }
        for c in conditions.into_iter().rev() {
            body = self.e.put(Head::If, [c, body, nothing]);
        }
        if always {
            body = self.e.put(Head::Tuple, [body, value]);
        }
        let body = self.e.close(inside, body);
        self.e.leave(outer);
        body
    }

    /// The flat tensor as a tensor of tensors, where the target is one.
    fn nested(&mut self, target: &Target, flat: Val) -> Id {
        if target.rank == target.sizes.len() {
            return self.e.now(flat);
        }
        let mut at: Vec<Val> = vec![];
        self.level(target, Ty::tensor(target.rank, target.elem), flat, &mut at)
    }

    fn level(&mut self, target: &Target, ty: Ty, flat: Val, at: &mut Vec<Val>) -> Id {
        let Some((rank, elem)) = ty.as_tensor() else {
            let index: Vec<Id> = at.iter().map(|v| self.e.now(*v)).collect();
            let of = self.e.now(flat);
            return self.e.put(Head::Index(index.len()), index.into_iter().chain([of]));
        };
        let axis = at.len();
        let sizes: Vec<Id> = target.sizes[axis..axis + rank].iter().map(|s| self.e.now(*s)).collect();
        let depth = self.e.depth();
        for _ in 0..rank {
            let var = self.e.enter(Ty::int());
            at.push(var);
        }
        let body = self.level(target, elem, flat, at);
        at.truncate(axis);
        self.e.leave(depth);
        self.e.put(Head::Build(rank), sizes.into_iter().chain([body]))
    }
}

/// Whether variable 0 is the first index of each tensor that it is an index of, before those of the
/// `loops` next variables.
fn first_everywhere(terms: &Terms, id: Id, loops: usize) -> bool {
    let (head, kids) = (terms.head(id), terms.kids(id));
    if !terms.free(id).has(0) {
        return true;
    }
    // Other binders would give variables other numbers.
    if (0..kids.len()).any(|k| head.binds(k, kids.len()) > 0) {
        return false;
    }
    if let Head::Index(d) = head {
        let own = kids[..d].iter().position(|i| terms.free(*i).has(0));
        let before = own.map_or(&kids[..0], |at| &kids[..at]);
        let tensor = if own.is_some() { &kids[d..] } else { &kids[..0] };
        if before.iter().chain(tensor).any(|k| terms.free(*k).outside(1).below(loops)) {
            return false;
        }
    }
    kids.iter().all(|k| first_everywhere(terms, *k, loops))
}

/// The conditions of items under all `loops`, with one more variable around these, the innermost first.
fn conditions(e: &mut Emit<'_>, items: &[Item], loops: usize) -> Vec<Id> {
    let (mut out, mut seen) = (vec![], 0);
    for item in items {
        let (Item::Loop(id) | Item::Guard(id)) = *item;
        let here = e.terms.map_free(id, 0, &mut |t, i, ty, under| match (i as usize) < seen {
            true => t.var((i as usize + loops - seen + under) as u32, ty),
            false => t.var((i as usize - seen + loops + 1 + under) as u32, ty),
        });
        match item {
            Item::Guard(_) => out.push(here),
            Item::Loop(_) => {
                if !is_bound(e, id, seen) {
                    let i = e.terms.var((loops - 1 - seen) as u32, Ty::int());
                    out.push(e.op(Op::Lt, [i, here]));
                }
                seen += 1;
            }
        }
    }
    out.reverse();
    out
}

/// The contribution with the loops that only its value depends on as sums in the value: the fewer additions
/// at an index, the better. Where one of them has no round, there need not be an element at the index: either
/// a guard says so, or its extent comes with the contribution, in the scope around it.
fn summed_inside(e: &mut Emit<'_>, mut p: Contribution) -> (Contribution, Vec<Val>) {
    let mut rounds = vec![];
    for q in (0..p.loops()).rev() {
        let last = p.loops() - 1;
        let index: Vec<Id> =
            p.steps.iter().flat_map(|s| if let Step::At(at) = s { at.clone() } else { vec![] }).collect();
        let used = index.iter().any(|i| mentioned(e.terms, *i, last + 1).contains(&q));
        // One loop has to remain: a scatter has one.
        if last == 0 || used || !free_to_move(e, &p, q, last) {
            continue;
        }
        let next = moved(e, p.clone(), q, last);
        let Some(Item::Loop(extent)) = next.items.last().cloned() else { continue };
        p = next;
        p.items.pop();
        p.value = e.sum(extent, p.value);
        for step in &mut p.steps {
            if let Step::At(at) = step {
                at.iter_mut().for_each(|i| *i = put_out(e, *i, 1));
            }
        }
        match mentioned(e.terms, extent, last).last() {
            None => {
                let outside = put_out(e, extent, last);
                rounds.push(e.val(outside));
            }
            Some(of) => {
                let under = put_out(e, extent, last - 1 - of);
                let zero = e.int(0);
                let some = e.op(Op::Gt, [under, zero]);
                let mut loops = p.items.iter().enumerate().filter(|(_, i)| matches!(i, Item::Loop(_)));
                let behind = loops.nth(*of).map_or(p.items.len(), |(k, _)| k + 1);
                p.items.insert(behind, Item::Guard(some));
            }
        }
    }
    (p, rounds)
}

/// The zero of a type of numbers and tuples.
fn zero(e: &mut Emit<'_>, ty: Ty) -> Id {
    match ty.kind() {
        TyKind::Scalar(s) if s.is_float() => e.float(*s, 0.0),
        TyKind::Tuple(parts) => {
            let parts: Vec<Id> = parts.iter().map(|p| zero(e, *p)).collect();
            e.put(Head::Tuple, parts)
        }
        _ => e.put(Head::Tuple, []),
    }
}

/// Whether the extent of a loop is its bound: it depends on no other loop.
fn is_bound(e: &Emit<'_>, extent: Id, loops: usize) -> bool {
    mentioned(e.terms, extent, loops).is_empty()
}

fn exact(e: &Emit<'_>, items: &[Item]) -> bool {
    let mut seen = 0;
    items.iter().all(|i| match i {
        Item::Loop(n) => {
            seen += 1;
            is_bound(e, *n, seen - 1)
        }
        Item::Guard(_) => true,
    })
}

/// The greatest extent of each loop, found once for all rounds of the scatter.
fn bounds(e: &mut Emit<'_>, items: &[Item]) -> Vec<Val> {
    let mut bounds: Vec<Id> = vec![];
    for (k, item) in items.iter().enumerate() {
        let Item::Loop(extent) = item else { continue };
        let loops = bounds.len();
        let of = mentioned(e.terms, *extent, loops);
        let bound = match (of.as_slice(), e.terms.head(*extent)) {
            ([], _) if simple(e.terms, *extent) || k == 0 => {
                e.terms.map_free(*extent, loops, &mut |t, i, ty, under| t.var((i as usize + under) as u32, ty))
            }
            ([one], Head::Var(..)) => bounds[*one],
            _ => greatest(e, *extent, &items[..k]),
        };
        bounds.push(bound);
    }
    let bounds: Vec<Val> = bounds.into_iter().map(|b| e.val(b)).collect();
    let mut kept = vec![];
    for b in bounds {
        let b = e.now(b);
        kept.push(if simple(e.terms, b) { e.val(b) } else { e.bind(b) });
    }
    kept
}

/// The greatest value of an extent over the loops around it, or 0.
fn greatest(e: &mut Emit<'_>, extent: Id, items: &[Item]) -> Id {
    let zero = e.int(0);
    let mut term = extent;
    for item in items.iter().rev() {
        term = match item {
            Item::Loop(n) => e.put(Head::Reduce(Monoid::Max, 1), [*n, term]),
            Item::Guard(c) => e.put(Head::If, [*c, term, zero]),
        };
    }
    e.op(Op::Max, [term, zero])
}

/// No rounds where a size or extent is not positive.
fn unless_empty(e: &mut Emit<'_>, sizes: &[Id], total: Id) -> Id {
    let zero = e.int(0);
    let mut count = total;
    for s in sizes {
        if e.terms.as_lit(*s).and_then(|l| l.as_int()).is_some_and(|n| n > 0) {
            continue;
        }
        let some = e.op(Op::Gt, [*s, zero]);
        count = e.put(Head::If, [some, count, zero]);
    }
    count
}

/// The indices of the loops from the number of their combination.
fn decoded(e: &mut Emit<'_>, flat: Val, bounds: &[Id]) -> Vec<Val> {
    let mut rest = flat;
    let mut at = vec![];
    let outer = flat.depth - 1;
    for b in bounds.iter().skip(1).rev() {
        let by = e.depth() - outer;
        let b = e.terms.shift(*b, by);
        let here = e.now(rest);
        let i = e.op(Op::Mod, [here, b]);
        let i = e.bind(i);
        at.push(i);
        let (here, b) = (e.now(rest), e.terms.shift(b, e.depth() - outer - by));
        let more = e.op(Op::Div, [here, b]);
        rest = e.bind(more);
    }
    at.push(rest);
    at.reverse();
    at
}

/// A term under loops with values for their indices.
fn placed(e: &mut Emit<'_>, id: Id, at: &[Val], outer: usize) -> Id {
    let c = at.len();
    let by = e.depth() - outer;
    let at: Vec<Id> = at.iter().map(|v| e.now(*v)).collect();
    e.terms.map_free(id, 0, &mut |t, i, ty, under| match c.checked_sub(1 + i as usize) {
        Some(k) => t.shift(at[k], under),
        None => t.var((i as usize - c + by + under) as u32, ty),
    })
}
