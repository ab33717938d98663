//! Checks a typed program again: run after every pass, so that a wrong pass is caught at once.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Program, Terms, Ty, deep};
use rustc_hash::FxHashSet;

/// Checks every definition: variables bound, at their binders' types, and calls that have a target.
///
/// # Errors
/// A bug of the pass that made the program, with the name of the definition.
pub fn verify(program: &Program) -> Result<()> {
    for def in program.defs.values() {
        let Some(body) = def.term() else { continue };
        let mut scope: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let found = program.terms.ty(body);
        if found != def.fun.sig().ret {
            return Err(Diagnostic::bug(format!("the body of `{}` has become {found}", def.name())));
        }
        let mut seen = FxHashSet::default();
        closed(&program.terms, body, &mut scope, &mut seen)
            .map_err(|what| Diagnostic::bug(format!("in `{}`: {what}", def.name())))?;
        for id in program.terms.reachable(body) {
            if let Head::Call(f) = program.terms.head(id)
                && !program.defs.contains_key(&f)
            {
                return Err(Diagnostic::bug(format!("`{}` calls `{}`, which is gone", def.name(), f.sig().name)));
            }
        }
    }
    Ok(())
}

/// Checks one term whose free variables have the types of `scope`, outermost first.
///
/// # Errors
/// What is wrong, in words.
pub fn closed(
    terms: &Terms,
    id: Id,
    scope: &mut Vec<Ty>,
    seen: &mut FxHashSet<(Id, Vec<Ty>)>,
) -> std::result::Result<(), String> {
    if terms.free(id).is_closed() && !seen.insert((id, vec![])) {
        return Ok(());
    }
    if let Head::Var(i, ty) = terms.head(id) {
        return match scope.len().checked_sub(1 + i as usize).map(|level| scope[level]) {
            Some(bound) if bound == ty => Ok(()),
            Some(bound) => Err(format!("variable {i} of type {ty} is bound at type {bound}")),
            None => Err(format!("variable {i} is unbound")),
        };
    }
    let kids = terms.kids(id);
    let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
    for (k, kid) in kids.iter().enumerate() {
        let depth = scope.len();
        if terms.head(id).binds(k, kids.len()) > 0 {
            scope.extend(terms.head(id).bound_tys(&tys));
        }
        let inner = (*kid, scope.clone());
        if terms.free(*kid).is_closed() || depth > 64 || seen.insert(inner) {
            deep(|| closed(terms, *kid, scope, seen))?;
        }
        scope.truncate(depth);
    }
    Ok(())
}
