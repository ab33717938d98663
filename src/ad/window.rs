//! Windows that are a stride apart: an index `c h + l`, plus what stands outside of all loops, in loops over `h` and over `l`
//! below `w`, where `c` is a number, as strided convolutions, pooling and frames of a signal have it.
//!
//! It reaches element `a` where `h` is `a / c - s` and `l` is `a mod c + c s`, for each `s` below `w / c`, rounded up: so many
//! windows overlap at an element. One loop over these, or none, takes the place of both; to compare the index in a loop over
//! all windows instead would take as many rounds for each element as there are windows. It must not know what the contributions are
//! added up to.

use super::contribution::{Contribution, Item, mentioned, shift_above};
use super::emit::Emit;
use super::loops::{Asked, index_of, put_out, taken_away};
use crate::ir::{Head, Id, Op, Terms, Ty};

/// The loops of windows and of the places in one, by number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub windows: usize,
    pub places: usize,
}

/// An index as windows: the stride, and what is added, outside of all loops.
struct Strided {
    stride: i64,
    rest: Option<Id>,
}

impl Window {
    /// The window that an index of a contribution goes through.
    pub fn of(e: &mut Emit<'_>, p: &Contribution, index: Id) -> Option<Window> {
        let loops = p.loops();
        let [a, b] = mentioned(e.terms, index, loops)[..] else { return None };
        let (windows, places) = if stride(e.terms, index, loops, a).is_some() { (a, b) } else { (b, a) };
        let found = Window { windows, places };
        let fixed = |q: usize| extent(p, q).is_some_and(|n| mentioned(e.terms, n, q).is_empty());
        (fixed(windows) && fixed(places)).then_some(())?;
        found.strided(e, index, loops).map(|_| found)
    }

    fn strided(self, e: &mut Emit<'_>, index: Id, loops: usize) -> Option<Strided> {
        let stride = stride(e.terms, index, loops, self.windows)?;
        let mut out = Strided { stride, rest: None };
        let mut rests = vec![];
        summands(e.terms, index, false, &mut rests);
        let mut units = 0;
        for (term, negative) in rests {
            match mentioned(e.terms, term, loops)[..] {
                [] => {
                    let term = put_out(e, term, loops);
                    let zero = e.int(0);
                    let before = out.rest.unwrap_or(zero);
                    out.rest = Some(if negative { e.sub(before, term) } else { e.add(before, term) });
                }
                [q] if q == self.windows => {}
                [q] if q == self.places && !negative && matches!(e.terms.head(term), Head::Var(..)) => units += 1,
                _ => return None,
            }
        }
        (units == 1).then_some(out)
    }

    /// The contribution of the elements whose index `k` is `at`, and whether a loop over the windows that overlap stands now before
    /// all others.
    pub fn element(self, e: &mut Emit<'_>, p: Contribution, k: usize, at: Id) -> (Contribution, bool) {
        let loops = p.loops();
        let found = self.strided(e, index_of(&p, k), loops);
        let (Some(Strided { stride, rest }), Some(width)) = (found, extent(&p, self.places)) else { return (p, false) };
        let width = put_out(e, width, self.places);
        // What is read may begin before the windows do: then the quotient is negative.
        let (from, quotient, remainder) = match rest {
            None => (at, Op::Div, Op::Mod),
            Some(rest) => (e.sub(at, rest), Op::FloorDiv, Op::FloorMod),
        };
        let by = e.int(stride);
        let (mut window, mut place) = (e.op(quotient, [from, by]), e.op(remainder, [from, by]));
        let number = e.terms.as_lit(width).and_then(|w| w.as_int());
        let alone = number.is_some_and(|w| w <= stride);
        // Windows of as many places as so many strides have all that the remainder and these come to.
        let asked = number.is_none_or(|w| w % stride != 0);
        let mut out = p;
        if !alone {
            let more = e.int(stride - 1);
            let sum = e.add(width, more);
            let count = e.op(Op::Div, [sum, by]);
            out = with_loop(e, out, count);
            let overlap = e.terms.var(0, Ty::int());
            (window, place) = (e.terms.shift(window, 1), e.terms.shift(place, 1));
            window = e.sub(window, overlap);
            let skipped = e.op(Op::Mul, [by, overlap]);
            place = e.add(place, skipped);
        }
        let new = usize::from(!alone);
        let mut each = [
            (self.windows + new, window, Asked { low: true, high: true }),
            (self.places + new, place, Asked { low: false, high: asked }),
        ];
        each.sort_by_key(|(q, ..)| std::cmp::Reverse(*q));
        for (q, value, asked) in each {
            let value = e.terms.shift(value, q - new);
            out = taken_away(e, out, q, value, asked);
        }
        (out, !alone)
    }
}

/// The contribution with one more loop before all others, behind the guards that stand before these.
fn with_loop(e: &mut Emit<'_>, p: Contribution, extent: Id) -> Contribution {
    let first = p.items.iter().position(|i| matches!(i, Item::Loop(_))).unwrap_or(p.items.len());
    let guards: Vec<Item> = p.items[..first].to_vec();
    let rest = Contribution { items: p.items[first..].to_vec(), ..p };
    let mut out = rest.map(&mut |id, loops| shift_above(e.terms, id, loops, 1));
    let new = guards.into_iter().chain([Item::Loop(extent)]);
    out.items.splice(0..0, new);
    out
}

/// The extent of a loop of a contribution.
fn extent(p: &Contribution, q: usize) -> Option<Id> {
    p.items.iter().filter_map(|i| if let Item::Loop(n) = i { Some(*n) } else { None }).nth(q)
}

/// The summands of an index, and whether each is subtracted.
fn summands(terms: &Terms, id: Id, negative: bool, out: &mut Vec<(Id, bool)>) {
    let kids = terms.kids(id);
    match terms.head(id) {
        Head::Op(op @ (Op::Add | Op::Sub)) if terms.size(id) < 40 => {
            summands(terms, kids[0], negative, out);
            summands(terms, kids[1], negative != (op == Op::Sub), out);
        }
        _ => out.push((id, negative)),
    }
}

/// How far apart an index is in neighbouring rounds of a loop, where that is a number from 2 on, by which the variable of the
/// loop is multiplied.
fn stride(terms: &Terms, index: Id, loops: usize, q: usize) -> Option<i64> {
    let mut each = vec![];
    summands(terms, index, false, &mut each);
    let of_loop: Vec<(Id, bool)> =
        each.into_iter().filter(|(term, _)| mentioned(terms, *term, loops).contains(&q)).collect();
    let [(term, false)] = of_loop[..] else { return None };
    let [a, b] = *terms.kids(term) else { return None };
    let number = |id: Id| terms.as_lit(id).and_then(|n| n.as_int());
    let variable = |id: Id| matches!(terms.head(id), Head::Var(i, _) if i as usize == loops - 1 - q);
    let by = match (number(a), number(b)) {
        (Some(n), _) if variable(b) => n,
        (_, Some(n)) if variable(a) => n,
        _ => return None,
    };
    (terms.head(term) == Head::Op(Op::Mul) && by > 1).then_some(by)
}
