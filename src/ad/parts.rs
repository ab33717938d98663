//! Pieces that leave a part of a fold become whole elements, so that nothing else of the part is kept.
//!
//! What the steps of a part give to its own elements is one row of a table. What they give to anything
//! else is summed up over the parts; `adjoint.rs` does that with whatever may not be kept.

use super::adjoint::{Frame, Reverse};
use super::emit::Val;
use super::gather::Like;
use super::piece::{Piece, Step};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id};
use crate::types::shape::lower;

impl Reverse<'_, '_> {
    /// Pieces that go to one element, whatever their own loops, become its tensor; the levels of those.
    /// That is all that need be known of a part: without it every part would give a whole tensor.
    pub(super) fn elements(&mut self, frame: &mut Frame) -> Result<Vec<usize>> {
        let (mut levels, depth) = (vec![], self.w.e.depth());
        for (adjoint, list) in frame {
            let (mut others, mut groups) = (vec![], Vec::<(Vec<Id>, Vec<Piece>)>::new());
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
            for (at, pieces) in groups {
                let at: Vec<Val> = at.into_iter().map(|id| Val { id, depth }).collect();
                let value = self.element_of(*adjoint, &at, pieces)?;
                if let Head::Var(i, _) = self.w.e.terms.head(value.id) {
                    levels.push(value.depth - 1 - i as usize);
                }
                let value = self.w.e.now(value);
                let at = at.into_iter().map(|v| self.w.e.now(v)).collect();
                let depth = self.w.e.depth();
                others.push(Piece { depth, items: vec![], steps: vec![Step::At(at)], value });
            }
            *list = others;
        }
        Ok(levels)
    }

    /// The adjoint of an element from pieces of it, bound by a let.
    fn element_of(&mut self, adjoint: usize, at: &[Val], pieces: Vec<Piece>) -> Result<Val> {
        let (ty, like) = self.likes[adjoint].clone();
        let Some((rank, elem)) = ty.as_tensor() else { return Err(Diagnostic::bug("an element of no tensor")) };
        let of = self.w.e.now(like.val);
        let at: Vec<Id> = at.iter().map(|v| self.w.e.now(*v)).collect();
        let element = self.w.e.put(Head::Index(rank), at.into_iter().chain([of]));
        let sizes = like.sizes.get(rank..).unwrap_or_default().to_vec();
        let element = Like { val: self.w.e.val(element), sizes };
        let made = self.w.force(elem, &element, pieces)?;
        Ok(self.w.e.bind(made))
    }
}
