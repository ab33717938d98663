//! The variables in scope where a body is cut, and what is known of them.

use super::Fact;
use crate::cost::Costing;
use crate::cost::estimate::Est;
use crate::ir::{Def, Head, Id, Terms, Ty};
use crate::rewrite::inline::bound_extents;
use crate::types::shape::shape;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// A term right outside of the variable of this level.
type At = Option<Id>;

/// A variable.
struct Known {
    ty: Ty,
    /// The sizes of its axes, where they are simple.
    sizes: Vec<At>,
    /// What it stays below, of the index of a loop.
    below: At,
    /// Its value, of an integer.
    is: At,
}

/// See the module.
pub struct Scope {
    known: Vec<Known>,
    ests: Vec<Est>,
}

/// Larger terms are not worth knowing.
const SIMPLE: u64 = 24;

impl Scope {
    /// The parameters of a definition.
    pub fn new(def: &Def, costing: &mut Costing<'_>) -> Scope {
        let ests = costing.params(def);
        let mut out = Scope { known: vec![], ests: vec![] };
        let unknown = |ty: Ty| Known { ty, sizes: vec![None; ty.axes()], below: None, is: None };
        for (p, est) in def.params.iter().zip(ests) {
            out.known.push(unknown(p.ty));
            out.ests.push(est);
        }
        out
    }

    /// The number of variables.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The type of a variable.
    pub fn ty(&self, level: usize) -> Ty {
        self.known[level].ty
    }

    /// Takes variables out of scope.
    pub fn truncate(&mut self, len: usize) {
        self.known.truncate(len);
        self.ests.truncate(len);
    }

    /// The guess of a term.
    pub fn guess(&mut self, costing: &mut Costing<'_>, terms: &Terms, id: Id) -> Est {
        costing.guess(terms, id, &mut self.ests)
    }

    /// Brings the variable of a let into scope.
    pub fn bind(&mut self, terms: &mut Terms, costing: &mut Costing<'_>, value: Id) {
        let est = self.guess(costing, terms, value);
        let ty = terms.ty(value);
        let sizes = shape(terms, value).into_iter().map(|s| self.simple(terms, s)).collect();
        let is = if ty == Ty::int() { self.simple(terms, value) } else { None };
        self.known.push(Known { ty, sizes, below: None, is });
        self.ests.push(est);
    }

    /// Brings the variables of a loop into scope.
    pub fn enter(&mut self, terms: &mut Terms, head: Head, kids: &[Id], tys: &[Ty], ests: Vec<Est>) {
        // The state of a fold has the shape that it starts with, and its elements that of the tensor's.
        let shapes = match head {
            Head::Fold => {
                let rank = tys[1].as_tensor().map_or(0, |(r, _)| r);
                let inner = shape(terms, kids[1]).split_off(rank);
                vec![shape(terms, kids[0]), inner]
            }
            Head::Scan => vec![shape(terms, kids[0]), vec![]],
            _ => vec![],
        };
        let outside = self.len();
        let extents = bound_extents(terms, head, kids);
        for (slot, ty) in head.bound_tys(tys).into_iter().enumerate() {
            let below = extents.get(slot).copied().flatten().and_then(|e| self.simple(terms, e));
            let given = shapes.get(slot).cloned().unwrap_or_default();
            let by = self.len() - outside;
            let mut sizes: Vec<At> = given
                .into_iter()
                .map(|s| {
                    let here = terms.shift(s, by);
                    self.simple(terms, here)
                })
                .collect();
            sizes.resize(ty.axes(), None);
            self.known.push(Known { ty, sizes, below, is: None });
            self.ests.push(ests.get(slot).cloned().unwrap_or_else(|| Est::of(ty, &[])));
        }
    }

    /// A term of integers over what is certain of them: values for variables, sizes for sizes. Nothing
    /// where it is not simple.
    fn simple(&self, terms: &mut Terms, id: Id) -> At {
        if terms.size(id) > SIMPLE {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
        match head {
            Head::Const(_) => Some(id),
            Head::Var(i, ty) if ty == Ty::int() => {
                let level = self.len() - 1 - i as usize;
                Some(self.known[level].is.map_or(id, |value| terms.shift(value, self.len() - level)))
            }
            Head::Size(axis) => {
                let Head::Var(i, _) = terms.head(kids[0]) else { return None };
                let level = self.len() - 1 - i as usize;
                let known = self.known[level].sizes.get(axis).copied().flatten();
                Some(known.map_or(id, |size| terms.shift(size, self.len() - level)))
            }
            Head::Op(_) => {
                let kids = kids.into_iter().map(|k| self.simple(terms, k)).collect::<Option<Vec<_>>>()?;
                let out = terms.put(head, kids);
                (terms.size(out) <= SIMPLE).then_some(out)
            }
            _ => None,
        }
    }

    /// The variables that a term reads, and those that say what is known of them.
    pub fn read_by(&self, terms: &mut Terms, id: Id) -> Vec<usize> {
        let mut out = BTreeSet::new();
        let mut todo: Vec<usize> = self.free(terms, id, self.len()).into_iter().collect();
        while let Some(level) = todo.pop() {
            if out.insert(level) {
                for term in self.known[level].all().flatten() {
                    todo.extend(self.free(terms, term, level));
                }
            }
        }
        out.into_iter().collect()
    }

    /// The variables of a term at a depth, by level.
    fn free(&self, terms: &mut Terms, id: Id, depth: usize) -> FxHashSet<usize> {
        let mut out = FxHashSet::default();
        terms.map_free(id, 0, &mut |t, i, ty, under| {
            out.insert(depth - 1 - i as usize);
            t.var(i + under as u32, ty)
        });
        out
    }

    /// A term over all variables as one over those of the levels.
    pub fn over(&self, terms: &mut Terms, id: Id, levels: &[usize]) -> Id {
        self.moved(terms, id, self.len(), levels)
    }

    fn moved(&self, terms: &mut Terms, id: Id, depth: usize, levels: &[usize]) -> Id {
        terms.map_free(id, 0, &mut |t, i, ty, under| {
            let level = depth - 1 - i as usize;
            let at = levels.binary_search(&level).unwrap_or_default();
            t.var((levels.len() - 1 - at + under) as u32, ty)
        })
    }

    /// What is known of the variables of the levels, in terms over them.
    pub fn facts(&self, terms: &mut Terms, levels: &[usize]) -> Vec<Fact> {
        let mut out = vec![];
        for (at, level) in levels.iter().enumerate() {
            let known = &self.known[*level];
            let mut over = |id: Id| self.moved(terms, id, *level, levels);
            for (axis, size) in known.sizes.iter().enumerate() {
                out.extend(size.map(|s| Fact::Size(at, axis, over(s))));
            }
            out.extend(known.below.map(|b| Fact::Below(at, over(b))));
            out.extend(known.is.map(|v| Fact::Is(at, over(v))));
        }
        out
    }

    /// Guesses of the sizes and integers of the variables of the levels, by the names that a piece gives them.
    pub fn guesses(&self, levels: &[usize]) -> Vec<(String, u64)> {
        let mut out = vec![];
        for (at, level) in levels.iter().enumerate() {
            let (est, ty) = (&self.ests[*level], self.ty(*level));
            if ty == Ty::int() {
                out.push((at.to_string(), est.num().max(0.0) as u64));
            }
            out.extend((0..ty.axes()).map(|axis| (format!("{at}.{axis}"), est.axis(axis).max(0.0) as u64)));
        }
        out
    }
}

impl Known {
    fn all(&self) -> impl Iterator<Item = At> + '_ {
        self.sizes.iter().copied().chain([self.below, self.is])
    }
}
