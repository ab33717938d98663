//! Sums over nothing whose elements have the sizes of rows of a variable.
//!
//! What stands for those sizes in the text that is made are the sizes that rows would have, if there were any. Where the
//! variable is empty, so is the sum. It must not know what a derivative is.

use super::emit::{Emit, Val};
use super::normal::zeros;
use crate::ir::{Head, Id, Monoid, Op, Terms};
use crate::types::rows::as_made;
use crate::types::shape::empty_sum;

/// The sizes that a sum of the source has over nothing, where they are those of rows of a variable.
pub fn rows_of_none(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    if !matches!(terms.head(id), Head::Reduce(Monoid::Add, _)) {
        return None;
    }
    let sizes = empty_sum(terms, id)?;
    let exact: Vec<Id> = sizes.iter().map(|s| as_made(terms, *s)).collect();
    (exact != sizes).then_some(exact)
}

/// The sum that was made of it, or zeros of these sizes where it is over nothing and would have others.
pub fn unless_none(e: &mut Emit<'_>, extents: &[Val], sum: Id, sizes: &[Val]) -> Id {
    let of_rows = |t: &Terms, s: &Id| match t.head(*s) {
        Head::Size(k) => t.ty(t.kids(*s)[0]).as_tensor().is_some_and(|(rank, _)| k >= rank),
        _ => false,
    };
    if empty_sum(e.terms, sum).is_some_and(|all| all.iter().all(|s| of_rows(e.terms, s))) {
        return sum;
    }
    let sizes: Vec<Id> = sizes.iter().map(|s| e.now(*s)).collect();
    let ty = e.ty(sum);
    let zero = zeros(e.terms, ty, &sizes);
    let none = e.int(0);
    extents.iter().fold(sum, |out, n| {
        let n = e.now(*n);
        let some = e.op(Op::Gt, [n, none]);
        e.put(Head::If, [some, out, zero])
    })
}
