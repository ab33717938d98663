//! Partial derivatives of scalar operations, from the texts of the operation table.
//!
//! A text speaks of arguments and of the result `r`, all `Float`; for `Float32` the same term is made at that type.
//! It must not know of any other construct.

use super::emit::Emit;
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Scalar, Terms, Ty};
use crate::types::texts;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Partial derivatives that have been read, over the arguments and the result as variables.
#[derive(Default)]
pub struct Partials {
    known: FxHashMap<(Op, usize), (Terms, Id)>,
}

/// The names and types that the texts of an operation know: its arguments and its result.
fn names(op: Op) -> Vec<(&'static str, Ty)> {
    let mut all = texts::arguments(op);
    all.push(("r", Ty::float()));
    all
}

impl Partials {
    /// The partial derivative by argument `k`, where the operation has one: a term over the atoms
    /// `args` and the result `r`, of the float type `s`.
    ///
    /// # Errors
    /// A bug where the text of the table is wrong.
    pub fn of(&mut self, e: &mut Emit<'_>, op: Op, k: usize, args: &[Id], r: Id, s: Scalar) -> Result<Option<Id>> {
        let names = names(op);
        if op == Op::Div && k == 1 && e.is(args[0], 1.0) {
            // Of a reciprocal this is the square, which takes no division.
            let square = e.mul(r, r);
            return Ok(Some(e.put(Head::Op(Op::Neg), [square])));
        }
        // The table counts float arguments only.
        let place = names[..k].iter().filter(|(_, t)| *t == Ty::float()).count();
        let Some(text) = op.row().derivative.and_then(|d| d.get(place)) else { return Ok(None) };
        let (terms, body) = match self.known.entry((op, k)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(texts::read(text, &names, Ty::float())?),
        };
        let mut made: FxHashMap<Id, Id> = FxHashMap::default();
        for id in terms.reachable(*body) {
            let kids: Vec<Id> = terms.kids(id).iter().map(|k| made[k]).collect();
            let new = match terms.head(id) {
                Head::Var(i, _) => {
                    let at = names.len() - 1 - i as usize;
                    if at == args.len() { r } else { args[at] }
                }
                Head::Const(l @ Lit::F64(_)) => e.float(s, l.as_f64().unwrap_or_default()),
                Head::Op(Op::ToFloat) if s != Scalar::F64 => e.put(Head::Cast(s), kids),
                Head::Op(Op::Mul) => e.mul(kids[0], kids[1]),
                head => e.put(head, kids),
            };
            made.insert(id, new);
        }
        Ok(Some(made[body]))
    }
}
