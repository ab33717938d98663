//! A float of a parameter becomes the tangent that is 1 there and 0 elsewhere.

use crate::ir::{Head, Id, Lit, Terms, Ty, TyKind};

/// A step from a value into it.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// To the element of a tensor of this rank whose indices are these variables, the level of the first.
    At(usize, usize),
    /// To all elements of a tensor of this rank at once.
    All(usize),
    /// To part k of a tuple.
    Part(usize),
}

/// A value whose tangent is made: its type, and the tensor whose sizes it has from this axis on.
#[derive(Clone, Copy)]
pub struct Of {
    /// The value, where it is needed: for tensors in tuples.
    pub value: Id,
    /// The type of the value.
    pub ty: Ty,
    /// The outermost tensor that it is in, without a tuple between.
    pub tensor: Id,
    /// The first axis of the value in that tensor.
    pub axis: usize,
}

impl Of {
    /// A whole value.
    pub fn whole(terms: &Terms, value: Id) -> Of {
        Of { value, ty: terms.ty(value), tensor: value, axis: 0 }
    }

    /// The sizes of the first axes.
    pub fn sizes(&self, terms: &mut Terms, rank: usize) -> Vec<Id> {
        (0..rank).map(|k| terms.put(Head::Size(self.axis + k), [self.tensor])).collect()
    }

    /// The element at indices.
    pub fn element(&self, terms: &mut Terms, at: &[Id]) -> Of {
        let value = terms.put(Head::Index(at.len()), at.iter().copied().chain([self.value]));
        let ty = terms.ty(value);
        match ty.as_tensor() {
            Some(_) => Of { value, ty, axis: self.axis + at.len(), ..*self },
            None => Of::whole(terms, value),
        }
    }

    /// A part of a tuple.
    pub fn part(&self, terms: &mut Terms, k: usize, n: usize) -> Of {
        let value = terms.put(Head::Get(k as u32, n as u32), [self.value]);
        Of::whole(terms, value)
    }

    /// The same under so many more binders.
    pub fn under(&self, terms: &mut Terms, by: usize) -> Of {
        Of { value: terms.shift(self.value, by), tensor: terms.shift(self.tensor, by), ..*self }
    }
}

/// The tangent of a value that is 1 where the steps lead and 0 elsewhere, in a scope of so many variables.
pub fn seed(terms: &mut Terms, of: Of, steps: &[Step], depth: usize) -> Id {
    match (steps, of.ty.kind()) {
        ([], TyKind::Scalar(s)) => terms.lit(Lit::of(*s, 1.0)),
        ([Step::At(level, rank), rest @ ..], _) => {
            let at: Vec<Id> = (0..*rank).map(|k| terms.var((depth - 1 - level - k) as u32, Ty::int())).collect();
            let element = of.element(terms, &at);
            let one = seed(terms, element, rest, depth);
            let sizes = of.sizes(terms, *rank);
            terms.put(Head::DeltaVec(*rank), sizes.into_iter().chain(at).chain([one]))
        }
        ([Step::All(rank), rest @ ..], _) => {
            let first = vec![terms.int(0); *rank];
            let element = of.element(terms, &first);
            let one = seed(terms, element, rest, depth);
            let sizes = of.sizes(terms, *rank);
            terms.put(Head::ConstVec(*rank), sizes.into_iter().chain([one]))
        }
        ([Step::Part(k), rest @ ..], TyKind::Tuple(parts)) => {
            let n = parts.len();
            let parts: Vec<Id> = (0..n)
                .map(|j| {
                    let part = of.part(terms, j, n);
                    if j == *k { seed(terms, part, rest, depth) } else { zero(terms, part) }
                })
                .collect();
            terms.put(Head::Tuple, parts)
        }
        _ => zero(terms, of),
    }
}

/// The tangent of a value that is 0 everywhere.
fn zero(terms: &mut Terms, of: Of) -> Id {
    match of.ty.kind() {
        TyKind::Scalar(s) if s.is_float() => terms.lit(Lit::of(*s, 0.0)),
        TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => terms.put(Head::Tuple, []),
        TyKind::Tuple(parts) => {
            let n = parts.len();
            let parts: Vec<Id> = (0..n)
                .map(|k| {
                    let part = of.part(terms, k, n);
                    zero(terms, part)
                })
                .collect();
            terms.put(Head::Tuple, parts)
        }
        TyKind::Tensor(rank, _) => {
            let sizes = of.sizes(terms, *rank);
            let inside = of.under(terms, *rank);
            let at: Vec<Id> = (0..*rank).map(|k| terms.var((rank - 1 - k) as u32, Ty::int())).collect();
            let element = inside.element(terms, &at);
            let zero = zero(terms, element);
            terms.put(Head::Build(*rank), sizes.into_iter().chain([zero]))
        }
    }
}
