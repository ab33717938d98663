//! Tables of what folds within a step make, of which each step has another number: they are padded to the greatest number there
//! is, so that those of all steps are one table. What stands beyond is never read. It must not know what the tables are for.

use super::adjoint::Reverse;
use super::emit::Val;
use super::scope::Place;
use crate::ir::{Head, Id, Op, Ty};

/// The numbers of the steps of a scope: those of a variable go from 0 to another number, which is a term of the scope around.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The level of the variable.
    pub level: usize,
    /// The greatest of the numbers.
    pub most: Id,
}

impl Reverse<'_, '_> {
    /// The numbers of so many steps, by a variable of a level, from the scope of `outer` variables, where `n` stands.
    pub(super) fn span(&mut self, level: usize, n: Id) -> Span {
        let one = self.w.e.int(1);
        Span { level, most: self.w.e.sub(n, one) }
    }

    /// A vector that differs in size from step to step, and has `n` elements in this one, padded to the greatest number of them:
    /// that number, in the scope of `outer` variables, and the vector where the work stands. The sizes of an element are
    /// terms of the scope around.
    pub(super) fn padded(&mut self, outer: usize, span: Span, (of, n): (Val, Id), sizes: &[Id]) -> Option<(Id, Val)> {
        let (rank, each) = self.w.e.ty(of.id).as_tensor()?;
        let depth = self.w.e.depth();
        let most = (rank == 1).then(|| self.bound_outside(outer, n, Place::at(depth), (span, true)))??;
        let by = depth - outer;
        let mut inner: Vec<Id> = sizes.iter().map(|s| self.w.e.terms.shift(*s, by + 1)).collect();
        let nothing = self.w.stand_in_of(each, &mut inner.drain(..))?;
        let k = self.w.e.terms.var(0, Ty::int());
        let (n, of) = (self.w.e.terms.shift(n, 1), self.w.e.now(of));
        let of = self.w.e.terms.shift(of, 1);
        let there = self.w.e.op(Op::Lt, [k, n]);
        let element = self.w.e.put(Head::Index(1), [k, of]);
        let element = self.w.e.put(Head::If, [there, element, nothing]);
        let extent = self.w.e.terms.shift(most, by);
        let made = self.w.e.put(Head::Build(1), [extent, element]);
        Some((most, self.w.e.bind(made)))
    }

    /// The greatest or the least value that an integer has in any step, as a term in the scope of `outer` variables.
    fn bound_outside(&mut self, outer: usize, id: Id, at: Place, (span, up): (Span, bool)) -> Option<Id> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let mut part = |k: usize, up: bool| self.bound_outside(outer, kids[k], at, (span, up));
        match head {
            Head::Var(..) => match at.level(self.w.e.terms, id) {
                Some(level) if level == span.level => Some(if up { span.most } else { self.w.e.int(0) }),
                Some(level) if level >= outer => {
                    let value = self.w.e.let_value(level)?;
                    self.bound_outside(outer, value, Place::at(level), (span, up))
                }
                _ => self.fixed_outside(outer, id, at),
            },
            Head::Op(Op::Add) => {
                let (x, y) = (part(0, up)?, part(1, up)?);
                Some(self.added(x, y))
            }
            Head::Op(Op::Sub) => {
                let (x, y) = (part(0, up)?, part(1, !up)?);
                Some(self.w.e.sub(x, y))
            }
            Head::Op(op @ (Op::Min | Op::Max)) => {
                let (x, y) = (part(0, up)?, part(1, up)?);
                Some(self.w.e.op(op, [x, y]))
            }
            _ => self.fixed_outside(outer, id, at),
        }
    }

    /// A sum, where one of the two may take away what the other one adds.
    fn added(&mut self, x: Id, y: Id) -> Id {
        for (x, y) in [(x, y), (y, x)] {
            if let (Head::Op(Op::Sub), [z, less]) = (self.w.e.terms.head(x), self.w.e.terms.kids(x))
                && *less == y
            {
                return *z;
            }
        }
        self.w.e.add(x, y)
    }
}
