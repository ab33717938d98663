//! Contributions that leave a part of a fold become whole elements, so that nothing else of the part is kept.
//!
//! What the steps of a part give to its own elements is one row of a table. What they give to anything
//! else is summed up over the parts; `adjoint.rs` does that with whatever may not be kept.

use super::adjoint::{Frame, Reverse, contains_tuple_of_tensors};
use super::contribution::{Contribution, Item, Step};
use super::emit::Val;
use super::like::Like;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Op};
use crate::types::shape::lower;

impl Reverse<'_, '_> {
    /// Contributions that go to one element, whatever their own loops, become its tensor; the levels of those.
    /// That is all that need be known of a part: without it every part would give a whole tensor.
    pub(super) fn elements(&mut self, frame: &mut Frame) -> Result<Vec<usize>> {
        let mut levels = vec![];
        for (adjoint, list) in frame {
            let depth = self.w.e.depth();
            let (mut others, mut groups) = (vec![], Vec::<(Vec<Id>, Vec<Contribution>)>::new());
            for p in std::mem::take(list) {
                let mut p = p.now(&mut self.w.e);
                let at = match p.steps.first() {
                    Some(Step::At(at)) => lower(self.w.e.terms, at, p.loops()),
                    _ => None,
                };
                match at {
                    Some(at) => {
                        p.steps.remove(0);
                        match groups.iter_mut().find(|g| g.0 == at) {
                            Some(group) => group.1.push(p),
                            None => groups.push((at, vec![p])),
                        }
                    }
                    None => others.push(p),
                }
            }
            for (at, contributions) in groups {
                // Where no step may reach the element, there need not be one at its index.
                let certain = contributions.iter().any(|p| p.items.is_empty());
                if !certain && !self.element_has_shape(*adjoint) {
                    others.extend(contributions.into_iter().map(|mut p| {
                        let inside = at.iter().map(|i| self.w.e.terms.shift(*i, p.loops())).collect();
                        p.steps.insert(0, Step::At(inside));
                        p
                    }));
                    continue;
                }
                let at: Vec<Val> = at.into_iter().map(|id| Val { id, depth }).collect();
                let value = self.element_of(*adjoint, &at, contributions)?;
                if let Head::Var(i, _) = self.w.e.terms.head(value.id) {
                    levels.push(value.depth - 1 - i as usize);
                }
                let value = self.w.e.now(value);
                let at: Vec<Id> = at.into_iter().map(|v| self.w.e.now(v)).collect();
                let items = if certain { vec![] } else { self.within(*adjoint, &at) };
                let depth = self.w.e.depth();
                others.push(Contribution { depth, items, steps: vec![Step::At(at)], value });
            }
            *list = others;
        }
        Ok(levels)
    }

    /// Whether the shape of an adjoint's elements is known without one of them.
    fn element_has_shape(&self, adjoint: usize) -> bool {
        let (ty, like) = &self.likes[adjoint];
        let elem = ty.as_tensor().map_or(*ty, |(_, elem)| elem);
        !elem.has_tensor() || !contains_tuple_of_tensors(elem) && like.sizes.len() == ty.all_axes()
    }

    /// Guards that hold where there is an element at an index.
    fn within(&mut self, adjoint: usize, at: &[Id]) -> Vec<Item> {
        let like = self.likes[adjoint].1.clone();
        let (whole, sizes) = (self.w.e.now(like.val), like.sizes_now(&mut self.w.e));
        let (sizes, zero) = (self.w.axes(whole, at.len(), &sizes), self.w.e.int(0));
        let each = at.iter().zip(sizes);
        each.flat_map(|(i, n)| [self.w.e.op(Op::Gte, [*i, zero]), self.w.e.op(Op::Lt, [*i, n])].map(Item::Guard))
            .collect()
    }

    /// The adjoint of an element from contributions of it, bound by a let.
    fn element_of(&mut self, adjoint: usize, at: &[Val], contributions: Vec<Contribution>) -> Result<Val> {
        let (ty, like) = self.likes[adjoint].clone();
        let Some((rank, elem)) = ty.as_tensor() else { return Err(Diagnostic::bug("an element of no tensor")) };
        let of = self.w.e.now(like.val);
        let at: Vec<Id> = at.iter().map(|v| self.w.e.now(*v)).collect();
        let element = self.w.e.put(Head::Index(rank), at.into_iter().chain([of]));
        let sizes = like.sizes.get(rank..).unwrap_or_default().to_vec();
        let element = Like { val: self.w.e.val(element), sizes };
        let made = self.w.force(elem, &element, contributions)?;
        Ok(self.w.e.bind(made))
    }
}
