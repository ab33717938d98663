//! Slices, stacks and rows: parts of tensors, and tensors of tensors as one, become builds.

use super::Elab;
use super::scope::Val;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Op, Ty};

impl Elab<'_> {
    /// An argument that is a tensor, with its rank and elements.
    fn tensor_of(&mut self, at: usize, expected: &str) -> Result<(Id, usize, Ty)> {
        let id = self.expr(at)?;
        match self.terms.ty(id).as_tensor() {
            Some((rank, elem)) => Ok((id, rank, elem)),
            None => {
                let label = format!("expected {expected}, found {}", self.terms.ty(id));
                Err(self.error(at, "type mismatch", &label))
            }
        }
    }

    fn integer(&mut self, at: usize, what: &str) -> Result<Id> {
        let id = self.expr(at)?;
        if self.terms.ty(id) != Ty::int() {
            let label = format!("expected Integer, found {}", self.terms.ty(id));
            let hint = self.conversion_hint(id, at, "Integer");
            return Err(self.error(at, what, &label).hint(hint));
        }
        Ok(id)
    }

    /// `(slice from n v)`: `n` elements from an index on, along the first axis.
    pub(super) fn form_slice(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let from = self.integer(args[0], "a slice begins at an index")?;
        let from = self.bind(from);
        let count = self.integer(args[1], "a slice has so many elements")?;
        let count = self.val(count);
        let (of, ..) = self.tensor_of(args[2], "a tensor, as in `(slice from n v)`")?;
        let (count, of) = self.one_then_other(count, of);
        let tys = [from, count, of].map(|v| self.terms.ty(v.id));
        self.spell("slice", &[1], &tys, |e, parts| e.slice(at, parts))?;
        let id = self.slice(at, &[from, count, of])?;
        Ok(self.close(mark, id))
    }

    fn slice(&mut self, at: usize, parts: &[Val]) -> Result<Id> {
        let [from, count, of] = *parts else { return Err(Diagnostic::consequence()) };
        let rank = self.terms.ty(of.id).as_tensor().map_or(1, |(rank, _)| rank);
        let mut kids = self.sizes(of, rank);
        kids[0] = self.now(count);
        let depth = self.depth();
        self.scope.extend(vec![Ty::int(); rank]);
        let first = [self.now(from), self.level(depth)];
        let mut element = vec![self.op(Op::Add, &first)];
        element.extend((1..rank).map(|k| self.level(depth + k)).collect::<Vec<_>>());
        element.push(self.now(of));
        let element = self.node(at, Head::Index(rank), &element, &[])?;
        self.scope.truncate(depth);
        kids.push(element);
        self.node(at, Head::Build(rank), &kids, &[])
    }

    /// `(stack v)`: a vector of tensors of one shape as one tensor, of one axis more than they have.
    pub(super) fn form_stack(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (of, rank, elem) = self.tensor_of(args[0], "a vector of vectors")?;
        let Some((inner, _)) = elem.as_tensor().filter(|_| rank == 1) else {
            let ty = self.terms.ty(of);
            let label = format!("expected a vector of vectors or tensors, found {ty}");
            let hint = match rank {
                1 => "`(Vec_init v w)` is a vector of two vectors, `(build n f)` one of many",
                _ => "it is one tensor already; `unstack` gives the vector of its rows",
            };
            return Err(self.error(args[0], "type mismatch", &label).hint(Some(hint.into())));
        };
        let of = self.bind(of);
        let ty = self.terms.ty(of.id);
        self.spell("stack", &[], &[ty], |e, args| e.stack(at, args[0], inner))?;
        let id = self.stack(at, of, inner)?;
        Ok(self.close(mark, id))
    }

    fn stack(&mut self, at: usize, of: Val, inner: usize) -> Result<Id> {
        let whole = self.now(of);
        let mut kids: Vec<Id> = (0..=inner).map(|k| self.axis(whole, k)).collect();
        let element = self.under(&vec![Ty::int(); inner + 1], |e, levels| {
            let row = e.element(&levels[..1], of);
            let row = e.val(row);
            e.element(&levels[1..], row)
        });
        kids.push(element);
        self.node(at, Head::Build(inner + 1), &kids, &[])
    }

    /// `(unstack t)`: the vector of the parts of a tensor along its first axis.
    pub(super) fn form_unstack(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (of, rank, elem) = self.tensor_of(args[0], "a tensor of two or more axes")?;
        if rank == 1 {
            let label = format!("expected a tensor of two or more axes, found {}", self.terms.ty(of));
            let hint =
                elem.as_tensor().map(|_| "it is a vector of tensors already; `stack` makes one tensor of it".into());
            return Err(self.error(args[0], "type mismatch", &label).hint(hint));
        }
        let of = self.bind(of);
        let id = self.spell_as("unstack", &[of], |e, args| e.unstack(at, args[0], rank))?;
        Ok(self.close(mark, id))
    }

    fn unstack(&mut self, at: usize, of: Val, rank: usize) -> Result<Id> {
        let mark = self.opened();
        let rows = self.sizes(of, 1)[0];
        let rows = self.val(rows);
        // The sizes of rows are evaluated once.
        let whole = self.now(of);
        let inner: Vec<Id> = (1..rank).map(|k| self.axis(whole, k)).collect();
        let inner: Vec<Val> = inner.into_iter().map(|size| self.val(size)).collect();
        let inner: Vec<Val> = inner
            .into_iter()
            .map(|size| {
                let size = self.now(size);
                self.bind(size)
            })
            .collect();
        let rows = self.now(rows);
        let depth = self.depth();
        self.scope.push(Ty::int());
        let mut row = self.all_now(&inner);
        let element = self.under(&vec![Ty::int(); rank - 1], |e, levels| {
            let all: Vec<usize> = [depth].iter().chain(levels).copied().collect();
            e.element(&all, of)
        });
        row.push(element);
        let row = self.node(at, Head::Build(rank - 1), &row, &[])?;
        self.scope.truncate(depth);
        let id = self.node(at, Head::Build(1), &[rows, row], &[])?;
        Ok(self.close(mark, id))
    }
}
