//! The loops of a contribution follow from the index of an element: `(index (add i k) v)` in loops over i
//! and k reaches element a where i is a - k, so the loop over i is taken away.
//!
//! An index `c m + j` in a loop over j below m reaches element a where c is a / m and j the remainder.
//!
//! Where an index cannot be solved, it can still be compared with that of the element, for every
//! index of the loops. It must not know what the contributions are added up to.

use super::contribution::{Contribution, Item, Step, mentioned, simple};
use super::emit::Emit;
use super::loops::{Asked, free_to_move, index_of, moved, put_out, taken_away};
use super::window::Window;
use crate::ir::{Head, Id, Op, Terms, Ty};
use rustc_hash::FxHashMap;

/// How the loops of a contribution follow from the index of an element.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    each: Vec<Solved>,
    /// Whether indices are compared.
    search: bool,
    /// Whether the index is a number of two digits, each the variable of a loop.
    digits: bool,
}

/// An index `high · base + low`, where the loop over `low` ends at `base`.
struct Digits {
    high: usize,
    low: usize,
    /// Outside of all loops.
    base: Id,
    /// Where the loop over `high` ends, outside of all loops.
    count: Id,
}

#[derive(Clone, Copy, Debug)]
enum Solved {
    /// The index is the variable of loop `of`, or a sum with it where `sum` holds; it is subtracted
    /// where `negative` holds.
    For { of: usize, sum: bool, negative: bool, asked: Asked },
    /// The index goes through windows, which may overlap.
    Strided(Window),
    /// The index does not depend on loops.
    Fixed,
}

impl Plan {
    /// Every index is compared.
    pub fn search() -> Plan {
        Plan { search: true, ..Plan::default() }
    }

    /// Whether one element changes, which no loop says.
    pub fn is_fixed(&self) -> bool {
        !self.search && !self.digits && !self.each.is_empty() && self.each.iter().all(|s| matches!(s, Solved::Fixed))
    }

    /// The contribution of the element at the indices `at`.
    pub fn element(self, e: &mut Emit<'_>, mut p: Contribution, at: &[Id]) -> Contribution {
        let Some(Step::At(index)) = p.steps.first().cloned() else {
            // The whole tensor changes, so each element does.
            let loops = p.loops();
            let inside: Vec<Id> = at.iter().map(|a| e.terms.shift(*a, loops)).collect();
            p.value = e.put(Head::Index(at.len()), inside.into_iter().chain([p.value]));
            return p;
        };
        if self.digits {
            return by_digits(e, p, at[0]);
        }
        let mut compare: Vec<usize> = if self.search { (0..index.len()).collect() } else { vec![] };
        let mut place: Vec<usize> = (0..p.loops()).collect();
        for (k, how) in self.each.iter().enumerate() {
            if let Solved::Strided(w) = *how {
                let w = Window { windows: place[w.windows], places: place[w.places] };
                let (element, overlap) = w.element(e, p, k, at[k]);
                p = element;
                for x in &mut place {
                    let gone = usize::from(*x > w.windows) + usize::from(*x > w.places);
                    *x = (*x + usize::from(overlap)).saturating_sub(gone);
                }
                continue;
            }
            let Solved::For { of, sum, negative, asked } = *how else {
                // Nothing in the index depends on loops, so the test may stand outside of them.
                let loops = p.loops();
                let here = put_out(e, index_of(&p, k), loops);
                let same = e.op(Op::Eq, [at[k], here]);
                let first = p.items.iter().position(|i| matches!(i, Item::Loop(_))).unwrap_or(p.items.len());
                p.items.insert(first, Item::Guard(same));
                continue;
            };
            let q = place[of];
            let rest = sum.then(|| rest_of(e, index_of(&p, k), p.loops(), q));
            let to = rest.and_then(|r| mentioned(e.terms, r, p.loops()).into_iter().max()).unwrap_or(q).max(q);
            if !free_to_move(e, &p, q, to) {
                compare.push(k);
                continue;
            }
            p = moved(e, p, q, to);
            for x in &mut place {
                *x = if *x == q { to } else { *x - usize::from(*x > q && *x <= to) };
            }
            let value = match sum {
                false => e.terms.shift(at[k], to),
                true => {
                    let loops = p.loops();
                    let rest = rest_of(e, index_of(&p, k), loops, to);
                    let rest = put_out(e, rest, loops - to);
                    let here = e.terms.shift(at[k], to);
                    if negative { e.sub(rest, here) } else { e.sub(here, rest) }
                }
            };
            p = taken_away(e, p, to, value, asked);
            if negative {
                p = p.map(&mut |id, _| counted_on(e.terms, id));
            }
            place.iter_mut().for_each(|x| *x -= usize::from(*x > to));
        }
        let loops = p.loops();
        for k in compare {
            let element = e.terms.shift(at[k], loops);
            let same = e.op(Op::Eq, [element, index_of(&p, k)]);
            p.items.push(Item::Guard(same));
        }
        p.steps.remove(0);
        p
    }
}

/// The digits of the index of a contribution, where it has two.
fn digits(e: &mut Emit<'_>, p: &Contribution) -> Option<Digits> {
    let Some(Step::At(index)) = p.steps.first() else { return None };
    let [index] = index.as_slice() else { return None };
    let loops = p.loops();
    let extents: Vec<Id> = p.items.iter().filter_map(|i| if let Item::Loop(n) = i { Some(*n) } else { None }).collect();
    let variable = |e: &Emit<'_>, id: Id| match e.terms.head(id) {
        Head::Var(i, _) => loops.checked_sub(1 + i as usize),
        _ => None,
    };
    let pairs = |e: &Emit<'_>, id: Id, op: Op| match (e.terms.head(id), e.terms.kids(id)) {
        (Head::Op(o), [a, b]) if o == op => vec![(*a, *b), (*b, *a)],
        _ => vec![],
    };
    for (product, digit) in pairs(e, *index, Op::Add) {
        let Some(low) = variable(e, digit) else { continue };
        for (digit, base) in pairs(e, product, Op::Mul) {
            let Some(high) = variable(e, digit).filter(|h| *h != low) else { continue };
            let outside = [(base, loops), (extents[low], low), (extents[high], high)];
            if outside.iter().any(|(id, under)| !mentioned(e.terms, *id, *under).is_empty()) {
                continue;
            }
            let [base, end, count] = outside.map(|(id, under)| put_out(e, id, under));
            if base == end {
                return Some(Digits { high, low, base, count });
            }
        }
    }
    None
}

/// The contribution of the element `at`, whose digits are the variables of two loops.
fn by_digits(e: &mut Emit<'_>, p: Contribution, at: Id) -> Contribution {
    let Some(Digits { high, low, base, count }) = digits(e, &p) else { return p };
    let (quotient, rest) = (e.op(Op::Div, [at, base]), e.op(Op::Mod, [at, base]));
    let mut digits = [(high, quotient), (low, rest)];
    digits.sort_by_key(|d| std::cmp::Reverse(d.0));
    let mut p = p;
    for (q, value) in digits {
        let value = e.terms.shift(value, q);
        p = taken_away(e, p, q, value, Asked { low: false, high: true });
    }
    let zero = e.int(0);
    // Where the base is 0 there is no element.
    let guards = [e.op(Op::Gt, [base, zero]), e.op(Op::Lt, [quotient, count])];
    p.items.splice(0..0, guards.map(Item::Guard));
    p.steps.remove(0);
    p
}

/// A term in which what is counted from the other end twice is what it was.
fn counted_on(terms: &mut Terms, id: Id) -> Id {
    let twice = |terms: &Terms, at: Id| {
        let (Head::Op(Op::Sub), [a, b]) = (terms.head(at), terms.kids(at)) else { return None };
        let (Head::Op(Op::Sub), [c, x]) = (terms.head(*b), terms.kids(*b)) else { return None };
        (a == c && terms.ty(at) == Ty::int()).then_some(*x)
    };
    let mut of: FxHashMap<Id, Id> = FxHashMap::default();
    for at in terms.reachable(id) {
        let mut new = at;
        for (k, kid) in terms.kids(at).to_vec().into_iter().enumerate() {
            let kid = of.get(&kid).copied().unwrap_or(kid);
            if terms.kids(new)[k] != kid {
                new = terms.with_kid(new, k, kid);
            }
        }
        terms.keep_hints(at, new);
        let new = twice(terms, new).unwrap_or(new);
        if new != at {
            of.insert(at, new);
        }
    }
    of.get(&id).copied().unwrap_or(id)
}

/// An index without its summand for loop `q`.
fn rest_of(e: &mut Emit<'_>, index: Id, loops: usize, q: usize) -> Id {
    // The index is linear in the variable, so the rest is its value where that is 0.
    let zero = e.int(0);
    let var = loops - 1 - q;
    let out = e.terms.map_free(index, 0, &mut |t, i, ty, under| match i as usize == var {
        true => zero,
        false => t.var((i as usize + under) as u32, ty),
    });
    folded(e, out)
}

/// Sums and differences with 0 are what is left.
fn folded(e: &mut Emit<'_>, id: Id) -> Id {
    let kids = e.terms.kids(id).to_vec();
    match e.terms.head(id) {
        Head::Op(op @ (Op::Add | Op::Sub)) => {
            let (a, b) = (folded(e, kids[0]), folded(e, kids[1]));
            if op == Op::Add { e.add(a, b) } else { e.sub(a, b) }
        }
        _ => id,
    }
}

/// The plan of a contribution, where its first step is an index that can be solved. `outer` are the sizes of
/// the tensor.
pub fn solve(e: &mut Emit<'_>, p: &Contribution, outer: &[Id]) -> Option<Plan> {
    let Some(Step::At(index)) = p.steps.first() else { return Some(Plan::default()) };
    if digits(e, p).is_some() {
        return Some(Plan { digits: true, ..Plan::default() });
    }
    by_each(e, p, (index, outer), true).or_else(|| by_each(e, p, (index, outer), false))
}

/// The same, each index for itself; `strided` says whether windows are looked for.
fn by_each(e: &mut Emit<'_>, p: &Contribution, (index, outer): (&[Id], &[Id]), strided: bool) -> Option<Plan> {
    let loops = p.loops();
    let mut each = vec![];
    let mut used: Vec<usize> = vec![];
    for (k, i) in index.iter().enumerate() {
        let of = mentioned(e.terms, *i, loops);
        if of.is_empty() {
            if loops > 0 && !simple(e.terms, *i) {
                return None;
            }
            each.push(Solved::Fixed);
            continue;
        }
        if let Some(w) = Window::of(e, p, *i).filter(|_| strided && !of.iter().any(|q| used.contains(q))) {
            used.extend(of);
            each.push(Solved::Strided(w));
            continue;
        }
        let found = of.into_iter().find_map(|q| solved(e, p, (*i, outer[k]), q, &used))?;
        if let Solved::For { of, .. } = found {
            used.push(of);
        }
        each.push(found);
    }
    Some(Plan { each, ..Plan::default() })
}

fn solved(e: &mut Emit<'_>, p: &Contribution, (index, size): (Id, Id), q: usize, used: &[usize]) -> Option<Solved> {
    let loops = p.loops();
    let negative = linear(e, index, loops, q).filter(|_| !used.contains(&q))?;
    let sum = !matches!(e.terms.head(index), Head::Var(..));
    let extent = p.items.iter().filter_map(|i| if let Item::Loop(n) = i { Some(*n) } else { None }).nth(q);
    let full = extent == Some(e.terms.shift(size, q));
    if !sum {
        return Some(Solved::For { of: q, sum, negative, asked: Asked { low: false, high: !full } });
    }
    if extent.is_some_and(|n| is_mirrored(e, index, loops, (q, n))) {
        return Some(Solved::For { of: q, sum, negative, asked: Asked { low: !full, high: false } });
    }
    let rest = rest_of(e, index, loops, q);
    // Loops that other indices are solved for are gone by then.
    let others = mentioned(e.terms, rest, loops).into_iter().filter(|m| !used.contains(m));
    let last = others.max().unwrap_or(q).max(q);
    let fits = simple(e.terms, rest) && free_to_move(e, p, q, last);
    fits.then_some(Solved::For { of: q, sum, negative, asked: Asked { low: true, high: true } })
}

/// Whether an index is the variable of loop `q` counted from the other end: `n - 1 - i` where it ends at `n`.
fn is_mirrored(e: &mut Emit<'_>, index: Id, loops: usize, (q, extent): (usize, Id)) -> bool {
    let parts = |e: &Emit<'_>, id: Id| match (e.terms.head(id), e.terms.kids(id)) {
        (Head::Op(Op::Sub), [a, b]) => Some((*a, *b)),
        _ => None,
    };
    let Some((last, var)) = parts(e, index) else { return false };
    let Some((n, one)) = parts(e, last) else { return false };
    let outside = mentioned(e.terms, n, loops).is_empty() && mentioned(e.terms, extent, q).is_empty();
    let own = matches!(e.terms.head(var), Head::Var(i, _) if i as usize == loops - 1 - q);
    own && outside && one == e.int(1) && put_out(e, n, loops) == put_out(e, extent, q)
}

/// Whether an index is a sum with the variable of loop `q` once: whether it is subtracted.
fn linear(e: &Emit<'_>, id: Id, loops: usize, q: usize) -> Option<bool> {
    let has = |id: Id| mentioned(e.terms, id, loops).contains(&q);
    let kids = e.terms.kids(id);
    match e.terms.head(id) {
        Head::Var(i, _) => (i as usize == loops - 1 - q).then_some(false),
        Head::Op(op @ (Op::Add | Op::Sub)) => match (has(kids[0]), has(kids[1])) {
            (true, false) => linear(e, kids[0], loops, q),
            (false, true) => linear(e, kids[1], loops, q).map(|n| n != (op == Op::Sub)),
            _ => None,
        },
        _ => None,
    }
}
