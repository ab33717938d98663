//! The sizes of a term of the source, right also where the tensor that a sum goes over is empty.
//!
//! [`shape`] says of a sum over the rows of a variable that it has their sizes. Where the variable has no rows, those are
//! 0, whatever the sizes of the rows were to be that nobody made; and what makes the variable tells only the latter. It
//! must not know what a derivative is.

use crate::ir::{Head, Id, Lit, Monoid, Op, Terms, Ty, deep};
use crate::types::shape::shape;
use rustc_hash::FxHashMap;

/// The sizes of a term, nested tensors included, in its own context: the outer ones are right wherever the term has a
/// value, the inner ones but inside of an empty tensor, whatever stands for the sizes of variables.
pub fn sizes(terms: &mut Terms, id: Id) -> Vec<Id> {
    let mut all = shape(terms, id);
    let rank = terms.ty(id).as_tensor().map_or(0, |(rank, _)| rank);
    if is_sum(terms, id) {
        all[..rank].iter_mut().for_each(|s| *s = as_made(terms, *s));
    }
    all
}

/// Whether a tensor is a sum, which may be one over nothing.
fn is_sum(terms: &Terms, id: Id) -> bool {
    let kids = terms.kids(id);
    match terms.head(id) {
        Head::Reduce(Monoid::Add, _) | Head::Sum => true,
        Head::Let | Head::Assert => deep(|| is_sum(terms, kids[1])),
        Head::If => kids[1..].iter().any(|k| deep(|| is_sum(terms, *k))),
        Head::Fold => deep(|| is_sum(terms, kids[0])),
        Head::Op(_) => {
            let tensor = kids.iter().find(|k| terms.ty(**k).axes() > 0);
            tensor.is_some_and(|t| deep(|| is_sum(terms, *t)))
        }
        Head::Get(k, _) if terms.head(kids[0]) == Head::Tuple => {
            deep(|| is_sum(terms, terms.kids(kids[0])[k as usize]))
        }
        _ => false,
    }
}

/// A size in which that of the rows of a variable is 0 where the variable has none.
pub fn as_made(terms: &mut Terms, size: Id) -> Id {
    made(terms, size, &mut FxHashMap::default())
}

fn made(terms: &mut Terms, id: Id, known: &mut FxHashMap<Id, Id>) -> Id {
    if let Some(done) = known.get(&id) {
        return *done;
    }
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    let out = match head {
        Head::Size(k) if matches!(terms.head(kids[0]), Head::Var(..)) => of_rows(terms, k, kids[0]),
        _ => {
            let new: Vec<Id> = kids.iter().map(|kid| deep(|| made(terms, *kid, known))).collect();
            if new == kids { id } else { terms.put(head, new) }
        }
    };
    known.insert(id, out);
    out
}

/// The size of an axis of a variable: that of rows only where there are rows.
fn of_rows(terms: &mut Terms, axis: usize, variable: Id) -> Id {
    let size = terms.put(Head::Size(axis), [variable]);
    let outer = outer_axes(terms.ty(variable), axis);
    let zero = terms.lit(Lit::int(0));
    (0..outer).rev().fold(size, |size, k| {
        let n = terms.put(Head::Size(k), [variable]);
        let some = terms.op(Op::Gt, [n, zero]);
        terms.put(Head::If, [some, size, zero])
    })
}

/// How many axes stand outside of the tensor that an axis belongs to.
fn outer_axes(ty: Ty, axis: usize) -> usize {
    let (mut ty, mut outer) = (ty, 0);
    while let Some((rank, inner)) = ty.as_tensor() {
        if axis < outer + rank {
            break;
        }
        (ty, outer) = (inner, outer + rank);
    }
    outer
}
