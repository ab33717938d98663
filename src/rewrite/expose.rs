//! What stands where a tensor or tuple that a term makes is read: the element or part itself.
//!
//! Where the place is out of range, reading fails and the element may not: a failure may go. It must not know why one looks.

use crate::ir::{Head, Id, Terms, deep};

/// The element of a tensor, or part of a tuple, that a term reads and another one makes; nothing where it reads no such.
pub fn exposed(terms: &mut Terms, id: Id) -> Option<Id> {
    let kids = terms.kids(id).to_vec();
    let (of, places) = match terms.head(id) {
        Head::Index(_) | Head::Get(..) => kids.split_last()?,
        _ => return None,
    };
    let of = deep(|| exposed(terms, *of)).unwrap_or(*of);
    let made = terms.kids(of).to_vec();
    let out = match (terms.head(id), terms.head(of)) {
        (Head::Index(d), Head::Build(n)) if d == n => terms.substitute(*made.last()?, places),
        (Head::Get(k, _), Head::Tuple) => *made.get(k as usize)?,
        _ => return None,
    };
    Some(deep(|| exposed(terms, out)).unwrap_or(out))
}

/// How many elements a vector has, where what makes it says so, or it is a variable or in one.
pub fn length(terms: &mut Terms, id: Id) -> Option<Id> {
    let (mut of, mut depth) = (id, 0);
    while terms.head(of) == Head::Index(1) {
        (of, depth) = (terms.kids(of)[1], depth + 1);
    }
    if let Head::Var(..) = terms.head(of) {
        return Some(terms.put(Head::Size(depth), [of]));
    }
    if terms.head(id) == Head::Build(1) {
        return Some(terms.kids(id)[0]);
    }
    let there = exposed(terms, id)?;
    deep(|| length(terms, there))
}
