//! Checks a typed program again: run after every pass, so that a wrong pass is caught at once.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Program, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// Checks every definition: variables bound, at their binders' types, and calls that have a target.
///
/// # Errors
/// A bug of the pass that made the program, with the name of the definition.
pub fn verify(program: &Program) -> Result<()> {
    for def in program.defs.values() {
        let Some(body) = def.term() else { continue };
        let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let found = program.terms.ty(body);
        if found != def.fun.sig().ret {
            return Err(Diagnostic::bug(format!("the body of `{}` has become {found}", def.name())));
        }
        closed(&program.terms, body, &params)
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

/// Checks one term whose free variables have the types of `params`, outermost first.
///
/// # Errors
/// What is wrong, in words.
pub fn closed(terms: &Terms, id: Id, params: &[Ty]) -> std::result::Result<(), String> {
    let (names, seen) = Default::default();
    let mut check = Check { terms, tys: vec![], scopes: vec![ROOT], names, seen };
    check.enter(params.iter().copied());
    check.term(id)
}

/// A scope as a number: equal lists of types have equal numbers, whoever brought them in.
type Scope = u32;

/// The scope of nothing.
const ROOT: Scope = 0;

struct Check<'a> {
    terms: &'a Terms,
    /// The types in scope, outermost first.
    tys: Vec<Ty>,
    /// The scope after none, one, two … of them.
    scopes: Vec<Scope>,
    /// The scope that a type makes of another one: a list of types costs one entry, not a copy.
    names: FxHashMap<(Scope, Ty), Scope>,
    /// What has been checked, and where.
    seen: FxHashSet<(Id, Scope)>,
}

impl Check<'_> {
    fn scope(&self) -> Scope {
        self.scopes.last().copied().unwrap_or(ROOT)
    }

    fn enter(&mut self, tys: impl IntoIterator<Item = Ty>) {
        for ty in tys {
            let next = self.names.len() as Scope + 1;
            let inner = *self.names.entry((self.scope(), ty)).or_insert(next);
            self.tys.push(ty);
            self.scopes.push(inner);
        }
    }

    fn term(&mut self, id: Id) -> std::result::Result<(), String> {
        if let Head::Var(i, ty) = self.terms.head(id) {
            return match self.tys.len().checked_sub(1 + i as usize).map(|level| self.tys[level]) {
                Some(bound) if bound == ty => Ok(()),
                Some(bound) => Err(format!("variable {i} of type {ty} is bound at type {bound}")),
                None => Err(format!("variable {i} is unbound")),
            };
        }
        // What has no free variables is right in every scope or in none.
        let scope = if self.terms.free(id).is_closed() { ROOT } else { self.scope() };
        if !self.seen.insert((id, scope)) {
            return Ok(());
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        for (k, kid) in kids.iter().enumerate() {
            let depth = self.tys.len();
            if head.binds(k, kids.len()) > 0 {
                let tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
                self.enter(head.bound_tys(&tys));
            }
            deep(|| self.term(*kid))?;
            self.tys.truncate(depth);
            self.scopes.truncate(depth + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Op;

    /// A chain of lets, each of which binds the one before it plus the outermost; `last` ends it.
    fn chain(terms: &mut Terms, n: u32, last: Id) -> Id {
        let mut body = last;
        for k in (0..n).rev() {
            let (near, far) = (terms.var(0, Ty::int()), terms.var(k, Ty::int()));
            let value = terms.op(Op::Add, [near, far]);
            body = terms.put(Head::Let, [value, body]);
        }
        body
    }

    /// Protects: chains of lets are checked in linear time and memory (quadratic takes minutes here).
    #[test]
    fn long_chains_are_checked_in_linear_time() {
        const LENGTH: u32 = 100_000;
        let mut terms = Terms::default();
        let last = terms.var(LENGTH, Ty::int());
        let body = chain(&mut terms, LENGTH, last);
        let start = std::time::Instant::now();
        closed(&terms, body, &[Ty::int()]).unwrap();
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    /// Protects: a variable at a wrong type or without a binder is found behind any number of binders.
    #[test]
    fn faults_far_out_are_found() {
        for n in [3, 62, 63, 64, 65, 200] {
            let mut terms = Terms::default();
            let right = terms.var(n, Ty::int());
            let wrong = terms.var(n, Ty::float());
            let unbound = terms.var(n + 1, Ty::int());
            for (last, good) in [(right, true), (wrong, false), (unbound, false)] {
                let body = chain(&mut terms, n, last);
                assert_eq!(closed(&terms, body, &[Ty::int()]).is_ok(), good, "{n} binders");
            }
        }
    }

    /// Protects: a term that is right in one scope is looked at again in another scope.
    #[test]
    fn shared_terms_are_checked_in_every_scope() {
        let mut terms = Terms::default();
        let x = terms.var(0, Ty::int());
        let sum = terms.op(Op::Add, [x, x]);
        let good = terms.put(Head::Let, [sum, sum]);
        closed(&terms, good, &[Ty::int()]).unwrap();
        let float = terms.lit(crate::ir::Lit::float(1.0));
        let inner = terms.put(Head::Let, [float, sum]);
        let bad = terms.put(Head::Tuple, [sum, inner]);
        assert!(closed(&terms, bad, &[Ty::int()]).is_err());
    }
}
