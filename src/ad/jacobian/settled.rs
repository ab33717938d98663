//! A term loses the lets that hide which elements of a parameter it reads: those of integers, and those of tensors of
//! which it reads few elements, where it can be said which.
//!
//! The elements are made where they are read. That is each of them once, since the term is a loop's body: a table would
//! have been made for all rounds of it.

use super::reads::{Read, read, replaced};
use crate::ir::{Head, Id, Node, Terms, deep};
use crate::types::shape::lowered;
use rustc_hash::FxHashMap;

/// Of a table of which more elements are read, the elements are not made where they are read.
const FEW: usize = 2;

/// The term without such lets.
pub fn settled(terms: &mut Terms, id: Id) -> Id {
    node(terms, id, &mut FxHashMap::default())
}

fn node(terms: &mut Terms, id: Id, memo: &mut FxHashMap<Id, Id>) -> Id {
    if let Some(done) = memo.get(&id) {
        return *done;
    }
    let Node { head, kids } = terms.node(id).clone();
    let kids: Vec<Id> = kids.iter().map(|k| deep(|| node(terms, *k, memo))).collect();
    let out = match head {
        Head::Let => without(terms, kids[0], kids[1]),
        _ => terms.put(head, kids),
    };
    terms.keep_hints(id, out);
    memo.insert(id, out);
    out
}

/// A let that is not there, where that is better.
fn without(terms: &mut Terms, value: Id, body: Id) -> Id {
    if terms.ty(value).as_scalar().is_some_and(|s| !s.is_float()) {
        return terms.substitute(body, &[value]);
    }
    match (terms.head(value), read(terms, body, 0)) {
        (Head::Build(d), Read::Elements(places)) if places.len() <= FEW => {
            let element = terms.kids(value)[d];
            let made = replaced(terms, body, 0, &mut |t, at, under| {
                // The element in the scope of the place: beyond its own indices stands the let's scope.
                let inner =
                    t.map_free(element, d, &mut |t, i, ty, depth| t.var(i + (d + 1 + under + depth) as u32, ty));
                let at: Vec<Id> = at.iter().map(|i| t.shift(*i, under)).collect();
                t.substitute(inner, &at)
            });
            // Where its sizes are asked for, the table stays.
            lowered(terms, made, 1).unwrap_or_else(|| terms.put(Head::Let, [value, body]))
        }
        _ => terms.put(Head::Let, [value, body]),
    }
}
