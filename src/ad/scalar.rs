//! Partial derivatives of scalar operations, from the texts of the operation table.
//!
//! A text speaks of `a`, `b`, `c` (or `c`, `a`, `b` for `select`) and of the result `r`, all `Float`; for
//! `Float32` the same term is made at that type. It must not know of any other construct.

use super::emit::Emit;
use crate::diag::{Diagnostic, Result, Source};
use crate::ir::op::Sig;
use crate::ir::{Head, Id, Lit, Op, Scalar, Terms, Ty};
use crate::types;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Partial derivatives that have been read, over the arguments and the result as variables.
#[derive(Default)]
pub struct Partials {
    known: FxHashMap<(Op, usize), (Terms, Id)>,
}

/// A text of the table as a term over its names.
fn read(text: &str, names: &[(&str, Ty)]) -> Result<(Terms, Id)> {
    let params: Vec<String> = names.iter().map(|(n, t)| format!("({n} : {t})")).collect();
    let text = format!("(def d Float ({}) {text})", params.join(" "));
    let program = types::program(&Source::new("the table of operations", text))?;
    let body = program.defs.values().next().and_then(|d| d.term());
    let body = body.ok_or_else(|| Diagnostic::bug("a derivative of the table has no body"))?;
    Ok((program.terms, body))
}

/// The names and types that the texts of an operation know.
fn names(op: Op) -> Vec<(&'static str, Ty)> {
    let f = Ty::float();
    match op.row().sig {
        Sig::Choice => vec![("c", Ty::bool()), ("a", f), ("b", f), ("r", f)],
        Sig::FloatInt => vec![("a", f), ("b", Ty::int()), ("r", f)],
        Sig::ThreeFloats => vec![("a", f), ("b", f), ("c", f), ("r", f)],
        Sig::Number | Sig::FloatFn => vec![("a", f), ("r", f)],
        _ => vec![("a", f), ("b", f), ("r", f)],
    }
}

impl Partials {
    /// The partial derivative by argument `k`, where the operation has one: a term over the atoms
    /// `args` and the result `r`, of the float type `s`.
    ///
    /// # Errors
    /// A bug where the text of the table is wrong.
    pub fn of(&mut self, e: &mut Emit<'_>, op: Op, k: usize, args: &[Id], r: Id, s: Scalar) -> Result<Option<Id>> {
        let names = names(op);
        // The table counts float arguments only.
        let place = names[..k].iter().filter(|(_, t)| *t == Ty::float()).count();
        let Some(text) = op.row().derivative.and_then(|d| d.get(place)) else { return Ok(None) };
        let (terms, body) = match self.known.entry((op, k)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(read(text, &names)?),
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
