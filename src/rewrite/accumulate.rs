//! A sum over what comes before an element of a loop, or after it, becomes an element of running sums that are made once.
//!
//! | in a loop over `i` in `0..n` | becomes | with |
//! |---|---|---|
//! | `sumbuild (add i 1) (lam j (f j))` | `index i t` | `t[k] = t[k-1] + f(k)` |
//! | `sumbuild i (lam j (f j))` | `index i t` | `t[0] = 0`, `t[k] = t[k-1] + f(k-1)` |
//! | `sumbuild (sub n i) (lam j (f (add i j)))` | `index (sub (sub n i) 1) t` | `t[k] = t[k-1] + f(n-1-k)` |
//! | `sumbuild (sub n (add i 1)) (lam j (f (add (add i 1) j)))` | the same | `t[0] = 0`, `t[k] = t[k-1] + f(n-k)` |
//!
//! Work that is quadratic becomes linear. The sums `t` are a `scan` over the elements, which are a tensor of their own;
//! they depend on no `i`, so elaboration moves both out of the loop. They are made whole, so all of that has to be
//! proved not to fail. The first two forms keep the bits, since they add in the same order. It must not know whether
//! that is worth it.

use super::explain::running::mark;
use super::inline::bound_extents;
use super::tabulate::Known;
use crate::derive::flat::{Scope, lowered, parameter, replaced_leaves, with_leaves};
use crate::derive::prove::{Asked, Prover};
use crate::ir::{Def, Head, Id, Lit, Monoid, Node, Op, Scalar, Terms, Ty, deep};
use crate::rules::Level;
use rustc_hash::{FxHashMap, FxHashSet};

/// Deeper loops are left alone: which variables a term depends on is exact up to some sixty.
const MAX_DEPTH: usize = 48;

/// The term with running sums for all sums that may be read off some; nothing where there is none.
pub fn accumulated(known: &Known, def: &Def, level: Level) -> Option<Known> {
    let mut out = known.clone();
    let mut walk = Walk::new(&mut out, def, level, true);
    let (id, found) = (walk.replace(known.id, 0), walk.found);
    out.id = id;
    found.then_some(out)
}

/// The term on the way to that, for those who prove it: the same sums, over tensors of what they add up.
pub fn over_tensors(known: &Known, def: &Def, level: Level) -> (Terms, Id) {
    let mut out = known.clone();
    let id = Walk::new(&mut out, def, level, false).replace(known.id, 0);
    (out.terms, id)
}

/// Which elements a sum is over, seen from the variable of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Range {
    /// Those up to it.
    Through,
    /// Those before it.
    Before,
    /// It and those after it.
    From,
    /// Those after it.
    After,
}

/// A sum, as an element of running sums.
struct Sums {
    /// The sum over a tensor of its elements.
    between: Id,
    /// The running sums, where the sum stands.
    table: Id,
    /// Which of them it is.
    at: Id,
}

struct Walk<'a> {
    known: &'a mut Known,
    def: &'a Def,
    level: Level,
    /// Whether running sums are made, or only tensors to be added up.
    whole: bool,
    /// The extents of the variables in scope, each right outside its variable.
    scope: Scope,
    frames: usize,
    memo: FxHashMap<(Id, usize), Id>,
    found: bool,
}

impl<'a> Walk<'a> {
    fn new(known: &'a mut Known, def: &'a Def, level: Level, whole: bool) -> Walk<'a> {
        let (scope, frames, memo, found) = Default::default();
        Walk { known, def, level, whole, scope, frames, memo, found }
    }

    fn replace(&mut self, id: Id, frame: usize) -> Id {
        let frame = if self.known.terms.free(id).below(self.scope.len()) { frame } else { 0 };
        if let Some(done) = self.memo.get(&(id, frame)) {
            return *done;
        }
        let out = self.sum(id).unwrap_or_else(|| self.parts(id, frame));
        self.memo.insert((id, frame), out);
        out
    }

    fn parts(&mut self, id: Id, frame: usize) -> Id {
        let Node { head, kids } = self.known.terms.node(id).clone();
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let (depth, mut inner) = (self.scope.len(), frame);
            if head.binds(k, kids.len()) > 0 {
                self.scope.extend(bound_extents(&mut self.known.terms, head, &kids));
                self.frames += 1;
                inner = self.frames;
            }
            new.push(deep(|| self.replace(*kid, inner)));
            self.scope.truncate(depth);
        }
        let out = self.known.terms.put(head, new);
        if out != id {
            self.known.terms.called_as(out, id);
            self.like(id, out);
        }
        out
    }

    /// A term cannot fail where an equal one cannot.
    fn like(&mut self, id: Id, out: Id) {
        if let Some(total) = self.known.total.get(&id).copied() {
            *self.known.total.entry(out).or_insert(total) &= total;
        }
    }

    /// What takes the place of a sum.
    fn sum(&mut self, id: Id) -> Option<Id> {
        let is_sum = self.known.terms.head(id) == Head::Reduce(Monoid::Add, 1) && self.scope.len() <= MAX_DEPTH;
        // The rules that prove it are of doubles, as all that have literals are.
        let double = self.known.terms.ty(id).as_scalar() == Some(Scalar::F64);
        if !is_sum || !double {
            return None;
        }
        let of = self.known.terms.kids(id).to_vec();
        for v in (0..self.scope.len()).filter(|v| self.known.terms.free(of[0]).has(*v)).collect::<Vec<_>>() {
            let Some(Sums { between, table, at }) = self.sums((of[0], of[1]), v) else { continue };
            if !self.is_certain(table, v) {
                continue;
            }
            self.found = true;
            if !self.whole {
                return Some(between);
            }
            let out = self.known.terms.put(Head::Index(1), [at, table]);
            // What reads within running sums that cannot fail does not fail.
            for sure in self.known.terms.reachable(at).into_iter().chain([out, table]) {
                self.known.total.entry(sure).or_insert(true);
            }
            return Some(out);
        }
        None
    }

    /// The running sums for a sum of so many elements, seen from variable `v`.
    fn sums(&mut self, (extent, element): (Id, Id), v: usize) -> Option<Sums> {
        let range_of = self.scope[self.scope.len() - 1 - v]?;
        let terms = &mut self.known.terms;
        let n = terms.shift(range_of, v + 1);
        let i = terms.var(v as u32, Ty::int());
        let range = range(terms, extent, i, n)
            .filter(|r| matches!(r, Range::Through | Range::Before) || self.level == Level::Real)?;
        let (under, j) = (terms.shift(i, 1), terms.var(0, Ty::int()));
        let next = next(terms, under);
        let (place, element) = match range {
            Range::Through | Range::Before => (j, element),
            Range::From => of_sum(terms, element, &[[under, j], [j, under]])?,
            Range::After => of_sum(terms, element, &[[next, j]])?,
        };
        if terms.free(element).has(v + 1) {
            return None;
        }
        let all = vector(terms, element, n);
        let inner = terms.shift(all, 1);
        let read = terms.put(Head::Index(1), [place, inner]);
        let between = terms.put(Head::Reduce(Monoid::Add, 1), [extent, read]);
        let table = scanned(terms, range, all, n)?;
        let table = self.of_inner(table, v)?;
        let terms = &mut self.known.terms;
        let at = match range {
            Range::Through | Range::Before => i,
            Range::From | Range::After => {
                let (one, rest) = (terms.int(1), terms.op(Op::Sub, [n, i]));
                terms.op(Op::Sub, [rest, one])
            }
        };
        Some(Sums { between, table, at })
    }

    /// Running sums where they do not depend on the loops inside that of variable `v`: those for one round of these are
    /// an element of those for all.
    fn of_inner(&mut self, table: Id, v: usize) -> Option<Id> {
        let (terms, depth) = (&mut self.known.terms, self.scope.len());
        let inner: Vec<usize> = (0..v).rev().filter(|w| terms.free(table).has(*w)).collect();
        if inner.is_empty() {
            return Some(table);
        }
        let (d, mut kids, mut place) = (inner.len(), vec![], vec![]);
        for w in &inner {
            let extent = terms.shift(self.scope[depth - 1 - w]?, w + 1);
            if (0..=v).any(|w| terms.free(extent).has(w)) {
                return None;
            }
            kids.push(extent);
            place.push(terms.var(*w as u32, Ty::int()));
        }
        let body = terms.map_free(table, 0, &mut |t, i, ty, under| {
            let new = inner.iter().position(|w| *w == i as usize).map_or(i as usize + d, |p| d - 1 - p);
            t.var((new + under) as u32, ty)
        });
        kids.push(body);
        place.push(terms.put(Head::Build(d), kids));
        Some(terms.put(Head::Index(d), place))
    }

    /// Whether running sums cannot fail outside the loop of variable `v`; their parts are noted.
    fn is_certain(&mut self, table: Id, v: usize) -> bool {
        let (params, depth) = (self.def.params.len(), self.scope.len() - 1 - v);
        let Known { terms, total, .. } = &mut *self.known;
        let table = match (terms.head(table), terms.kids(table)) {
            (Head::Index(_), [.., all]) => *all,
            _ => table,
        };
        let Some(outside) = lowered(terms, table, v + 1) else { return false };
        let mut scope: Scope = vec![];
        for (level, extent) in self.scope[..depth].iter().enumerate() {
            scope.push(extent.map(|e| with_leaves(terms, e, level, params)));
        }
        let flat = with_leaves(terms, outside, depth, params);
        let (known, local) = Default::default();
        let mut prover = Prover::new(terms, self.def, (&known, &local), Asked::Total, vec![]);
        if !prover.safe(flat, &scope) {
            return false;
        }
        mark(&mut prover, (flat, table), &scope, total, &mut FxHashSet::default());
        true
    }
}

/// `i + 1`.
fn next(terms: &mut Terms, i: Id) -> Id {
    let one = terms.int(1);
    terms.op(Op::Add, [i, one])
}

/// Which elements so many are, from the first on or to the last, in a loop over `i` below `n`.
fn range(terms: &mut Terms, extent: Id, i: Id, n: Id) -> Option<Range> {
    let next = next(terms, i);
    match (terms.head(extent), terms.kids(extent)) {
        _ if extent == i => Some(Range::Before),
        _ if extent == next => Some(Range::Through),
        (Head::Op(Op::Sub), [all, rest]) if *all == n && *rest == i => Some(Range::From),
        (Head::Op(Op::Sub), [all, rest]) if *all == n && *rest == next => Some(Range::After),
        _ => None,
    }
}

/// The first of these sums, of the innermost variable and others, by which alone an element depends on the innermost
/// variable, and the element with one variable for it.
fn of_sum(terms: &mut Terms, element: Id, each: &[[Id; 2]]) -> Option<(Id, Id)> {
    // No parameter has this number.
    let leaf = terms.put(parameter(usize::MAX, Ty::int()), []);
    each.iter().find_map(|pair| {
        let sum = terms.op(Op::Add, *pair);
        let marked = replaced(terms, element, sum, leaf, &mut FxHashMap::default());
        if marked == element || terms.free(marked).has(0) {
            return None;
        }
        let mut variable = |t: &mut Terms, id: Id, under: usize| (id == leaf).then(|| t.var(under as u32, Ty::int()));
        Some((sum, replaced_leaves(terms, marked, &mut variable)))
    })
}

/// A term with a part exchanged, wherever it stands, perhaps under binders, for one without variables.
fn replaced(terms: &mut Terms, id: Id, part: Id, by: Id, memo: &mut FxHashMap<(Id, Id), Id>) -> Id {
    if id == part {
        return by;
    }
    if let Some(done) = memo.get(&(id, part)) {
        return *done;
    }
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    let mut new = vec![];
    for (k, kid) in kids.iter().enumerate() {
        let part = terms.shift(part, head.binds(k, kids.len()));
        new.push(deep(|| replaced(terms, *kid, part, by, memo)));
    }
    let out = terms.put(head, new);
    memo.insert((id, part), out);
    out
}

/// The vector of an element for each value of its innermost variable, which may be there already.
fn vector(terms: &mut Terms, element: Id, n: Id) -> Id {
    let first = terms.var(0, Ty::int());
    if let (Head::Index(1), [at, of]) = (terms.head(element), terms.kids(element))
        && (*at, terms.free(*of).has(0)) == (first, false)
    {
        let of = *of;
        return lowered(terms, of, 1).unwrap_or(of);
    }
    terms.put(Head::Build(1), [n, element])
}

/// The running sums of a vector.
fn scanned(terms: &mut Terms, range: Range, all: Id, n: Id) -> Option<Id> {
    let scalar = terms.ty(all).as_tensor()?.1.as_scalar()?;
    let ty = Ty::scalar(scalar);
    let (s, k, one, zero) = (terms.var(1, ty), terms.var(0, Ty::int()), terms.int(1), terms.int(0));
    let (all, size) = (terms.shift(all, 2), terms.shift(n, 2));
    let at = match range {
        Range::Through => k,
        Range::Before => terms.op(Op::Sub, [k, one]),
        Range::From => {
            let last = terms.op(Op::Sub, [size, one]);
            terms.op(Op::Sub, [last, k])
        }
        Range::After => terms.op(Op::Sub, [size, k]),
    };
    let read = terms.put(Head::Index(1), [at, all]);
    let sum = terms.op(Op::Add, [s, read]);
    let nothing = terms.lit(Lit::of(scalar, 0.0));
    let step = match range {
        Range::Through | Range::From => sum,
        Range::Before | Range::After => {
            let later = terms.op(Op::Gt, [k, zero]);
            terms.put(Head::If, [later, sum, nothing])
        }
    };
    Some(terms.put(Head::Scan, [nothing, n, step]))
}
