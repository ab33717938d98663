//! A size becomes one that is right also where it is that of the rows of a variable that has none.
//!
//! What makes a tensor tells the sizes of its rows, and those stand for it where it is bound. Where it is empty, the rows
//! that a sum goes over were never made, and their size is 0. It must not know how sizes are found.

use crate::ir::{Head, Id, Op, Terms, Ty, deep};
use rustc_hash::FxHashMap;

/// A size in which that of the rows of a variable is 0 where the variable has none, whatever stands for the size.
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
    let zero = terms.int(0);
    (0..outer_axes(terms.ty(variable), axis)).rev().fold(size, |size, k| {
        let n = terms.put(Head::Size(k), [variable]);
        let some = terms.op(Op::Gt, [n, zero]);
        terms.put(Head::If, [some, size, zero])
    })
}

/// How many axes stand outside of the tensor that an axis belongs to.
fn outer_axes(ty: Ty, axis: usize) -> usize {
    let (mut ty, mut outer) = (ty, 0);
    while let Some((rank, inner)) = ty.as_tensor()
        && axis >= outer + rank
    {
        (ty, outer) = (inner, outer + rank);
    }
    outer
}
