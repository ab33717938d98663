//! Loops of a contribution change their places, or are taken away where their variable has a value. It must not know why.

use super::contribution::{Contribution, Item, Step, mentioned, put_for, simple};
use super::emit::Emit;
use crate::ir::{Id, Op};

/// What is asked of the variable that an index is solved for: that it is not below 0, and that it is below the extent of its
/// loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub low: bool,
    pub high: bool,
}

/// Index `k` of the first step.
pub(super) fn index_of(p: &Contribution, k: usize) -> Id {
    match p.steps.first() {
        Some(Step::At(index)) => index[k],
        _ => p.value,
    }
}

/// A term under binders that it does not depend on, outside of the innermost `n`.
pub fn put_out(e: &mut Emit<'_>, id: Id, n: usize) -> Id {
    e.terms.map_free(id, n, &mut |t, i, ty, under| t.var((i as usize + under) as u32, ty))
}

/// The contribution with loop `q` behind loop `to`; nothing between depends on it.
pub fn moved(e: &mut Emit<'_>, p: Contribution, q: usize, to: usize) -> Contribution {
    if q == to {
        return p;
    }
    let zero = e.int(0);
    let items = p.items.clone();
    let mut out = p.map(&mut |id, c| match c {
        c if c <= q => id,
        c if c <= to => put_for(e.terms, id, c, q, zero, 0),
        c => e.terms.map_free(id, 0, &mut |t, i, ty, under| {
            let i = i as usize;
            let new = match c.checked_sub(1 + i) {
                Some(k) if k == q => to,
                Some(k) if k > q && k <= to => k - 1,
                Some(k) => k,
                None => return t.var((i + under) as u32, ty),
            };
            t.var((c - 1 - new + under) as u32, ty)
        }),
    });
    // The items in their new order: those of loop q come right behind loop `to`.
    let is_loop = |i: &Item| matches!(i, Item::Loop(_));
    let place = |n: usize| items.iter().enumerate().filter(|(_, i)| is_loop(i)).map(|(k, _)| k).nth(n).unwrap_or(0);
    let (from, behind) = (place(q), place(to));
    let Item::Loop(extent) = out.items.remove(from) else { return out };
    let extent = e.terms.shift(extent, to - q);
    out.items.insert(behind, Item::Loop(extent));
    out
}

/// Whether loop `q` may stand behind loop `to`: nothing up to there depends on it.
pub fn free_to_move(e: &Emit<'_>, p: &Contribution, q: usize, to: usize) -> bool {
    let mut seen = 0;
    p.items.iter().all(|item| {
        let (Item::Loop(id) | Item::Guard(id)) = *item;
        let free = !(seen > q && seen <= to && mentioned(e.terms, id, seen).contains(&q));
        seen += usize::from(matches!(item, Item::Loop(_)));
        free
    })
}

/// The contribution without loop `q`, whose variable has a value; that stands under the loops before it. What is asked of it stands
/// outside of all loops that it does not depend on: they run where it holds.
pub(super) fn taken_away(e: &mut Emit<'_>, p: Contribution, q: usize, value: Id, asked: Asked) -> Contribution {
    let terms = &mut *e.terms;
    let mut out = p.map(&mut |id, c| if c <= q { id } else { put_for(terms, id, c, q, value, q) });
    let Some(place) = behind_loops(&out.items, q + 1) else { return out };
    let Item::Loop(extent) = out.items.remove(place - 1) else { return out };
    // The lower bound comes first, and leaves all loops that the upper one leaves.
    if asked.high {
        let below = e.op(Op::Lt, [value, extent]);
        guarded(e, &mut out.items, (place - 1, q), below);
    }
    if asked.low {
        let zero = e.int(0);
        let above = e.op(Op::Gte, [value, zero]);
        guarded(e, &mut out.items, (place - 1, q), above);
    }
    out
}

/// The place right behind the first `n` loops.
fn behind_loops(items: &[Item], n: usize) -> Option<usize> {
    let loops = items.iter().enumerate().filter(|(_, i)| matches!(i, Item::Loop(_)));
    if n == 0 { Some(0) } else { loops.map(|(k, _)| k + 1).nth(n - 1) }
}

/// Puts a guard at a place behind as many loops, or further out where it depends on none of the innermost of them.
fn guarded(e: &mut Emit<'_>, items: &mut Vec<Item>, (place, loops): (usize, usize), c: Id) {
    // What might fail stays behind the guards around it.
    let apart = e.terms.kids(c).iter().all(|k| simple(e.terms, *k));
    let needed = mentioned(e.terms, c, loops).last().map_or(0, |k| k + 1);
    match behind_loops(items, needed).filter(|_| apart && needed < loops) {
        Some(outer) => {
            let c = put_out(e, c, loops - needed);
            items.insert(outer, Item::Guard(c));
        }
        None => items.insert(place, Item::Guard(c)),
    }
}
