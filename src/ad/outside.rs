//! Sizes of what a scope makes, as terms of the scope around: where there are such, a table of it over the indices of the
//! scope is not ragged, and something of the same sizes can stand for it outside. It must not know what tables are for.

use super::adjoint::{Reverse, contains_tuple_of_tensors};
use super::scope::Place;
use crate::ir::{Head, Id, TyKind};
use crate::types::shape::{lowered, shape};

impl Reverse<'_, '_> {
    /// A size in the scope of `outer` variables, where it depends on nothing inside.
    pub(super) fn fixed_outside(&mut self, outer: usize, id: Id, at: Place) -> Option<Id> {
        let inside = |level: Option<usize>| level.filter(|l| *l >= outer);
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        match head {
            Head::Var(..) => {
                if let Some(level) = inside(at.level(self.w.e.terms, id)) {
                    let value = self.w.e.let_value(level)?;
                    return self.fixed_outside(outer, value, Place::at(level));
                }
            }
            Head::Size(k) => match self.w.e.terms.head(kids[0]) {
                Head::Var(..) => {
                    if let Some(level) = inside(at.level(self.w.e.terms, kids[0])) {
                        let value = self.w.e.let_value(level)?;
                        let size = shape(self.w.e.terms, value).get(k).copied()?;
                        return self.fixed_outside(outer, size, Place::at(level));
                    }
                }
                // It would be made for its size alone, so that has to follow from what it is a part of.
                _ if self.w.e.terms.variables(kids[0]).below(at.depth + at.under - outer) => {
                    return self.sizes_by_kids(outer, kids[0], at)?.get(k).copied();
                }
                _ => {}
            },
            Head::Op(_) => {
                let kids: Option<Vec<Id>> = kids.into_iter().map(|k| self.fixed_outside(outer, k, at)).collect();
                return Some(self.w.e.put(head, kids?));
            }
            _ => {}
        }
        lowered(self.w.e.terms, id, at.depth + at.under - outer)
    }

    /// The sizes of all tensors in a value, in order, in the scope of `outer` variables; nothing where one depends on what is
    /// inside, or is not known.
    pub(super) fn sizes_outside(&mut self, outer: usize, id: Id, at: Place) -> Option<Vec<Id>> {
        let ty = self.w.e.ty(id);
        if !ty.has_tensor() {
            return Some(vec![]);
        }
        if let Some(known) = self.tables.get(&id).cloned() {
            return known.into_iter().map(|s| self.fixed_outside(outer, s, at)).collect();
        }
        if ty.as_tensor().is_some_and(|(_, e)| !contains_tuple_of_tensors(e)) {
            let sizes = shape(self.w.e.terms, id);
            return sizes.into_iter().map(|s| self.fixed_outside(outer, s, at)).collect();
        }
        self.sizes_by_kids(outer, id, at)
    }

    fn sizes_by_kids(&mut self, outer: usize, id: Id, at: Place) -> Option<Vec<Id>> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let within = |n| Place { under: at.under + n, ..at };
        match head {
            Head::Var(..) => {
                let level = at.level(self.w.e.terms, id)?;
                let (value, around) = (self.w.e.let_value(level)?, outer.min(level));
                let sizes = self.sizes_outside(around, value, Place::at(level))?;
                Some(sizes.into_iter().map(|s| self.w.e.terms.shift(s, outer - around)).collect())
            }
            Head::Tuple => {
                let parts: Option<Vec<Vec<Id>>> = kids.iter().map(|k| self.sizes_outside(outer, *k, at)).collect();
                parts.map(|p| p.concat())
            }
            Head::Get(k, _) => {
                let all = self.sizes_outside(outer, kids[0], at)?;
                let TyKind::Tuple(parts) = self.w.e.ty(kids[0]).kind() else { return None };
                let before: usize = parts[..k as usize].iter().map(|p| p.all_axes()).sum();
                all.get(before..before + parts[k as usize].all_axes()).map(<[Id]>::to_vec)
            }
            Head::Index(d) => self.sizes_outside(outer, kids[d], at).map(|all| all[d..].to_vec()),
            Head::If => {
                let sizes = self.sizes_outside(outer, kids[1], at)?;
                (self.sizes_outside(outer, kids[2], at)? == sizes).then_some(sizes)
            }
            Head::Let => self.sizes_outside(outer, kids[1], within(1)),
            Head::Build(d) | Head::ConstVec(d) => {
                let bound = if head == Head::Build(d) { d } else { 0 };
                let sizes: Option<Vec<Id>> = kids[..d].iter().map(|n| self.fixed_outside(outer, *n, at)).collect();
                Some([sizes?, self.sizes_outside(outer, kids[d], within(bound))?].concat())
            }
            Head::Scan => {
                let n = self.fixed_outside(outer, kids[1], at)?;
                Some([vec![n], self.sizes_outside(outer, kids[0], at)?].concat())
            }
            _ => None,
        }
    }
}
