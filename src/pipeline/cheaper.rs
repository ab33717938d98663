//! Definitions get cheaper bodies: a let-free one gets its lets, and is taken where it costs less than the one that stands.
//!
//! It must not know how bodies come about.

use super::recursive;
use crate::cost::{Costing, Model, Sweep};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::egraph::elaborate::{Elaborated, elaborate_both};
use crate::rewrite::explain::running;
use crate::rewrite::inline::flatten;
use crate::rewrite::tabulate::Known;
use crate::types::{sizes, verify};
use rustc_hash::FxHashSet;

/// Larger definitions with calls stay: that lets may leave loops is proved part by part.
const MAX_NODES: usize = 5_000;

/// Makes a cheaper body of that of a definition, in an arena of its own; nothing where there is none.
type Cheaper<'a> = dyn Fn(&Def, Id) -> Option<(Terms, Id)> + 'a;

/// The program with other bodies for some of its definitions that neither call themselves nor print: those that are made of
/// theirs.
///
/// # Errors
/// A bug: what came out does not check.
pub(super) fn with_bodies(program: &Program, of: &dyn Fn(&Def) -> bool, made: &Cheaper<'_>) -> Result<Program> {
    let (mut out, recursive, printing) = (program.clone(), recursive(program), program.printing());
    let all = program.defs.values().filter(|d| of(d) && !recursive.contains(&d.fun) && !printing.contains(&d.fun));
    for def in all {
        let Some((terms, id)) = def.term().and_then(|body| made(def, body)) else { continue };
        let id = out.terms.import(&terms, id);
        if sizes::agree(&out.defs, def, &out.terms, id) {
            out.defs.insert(def.fun, Def { body: Body::Term(id), ..def.clone() });
        }
    }
    match verify::verify(&out) {
        Ok(()) => Ok(out),
        Err(d) => Err(Diagnostic::bug("what has cheaper bodies does not check").note(d.render())),
    }
}

/// The program with cheaper bodies for its definitions, each made of its own one without lets. Calls stay, so that derivatives that
/// are written by hand are used.
///
/// # Errors
/// A bug: what came out does not check.
pub(super) fn with_calls(program: &Program, made: &dyn Fn(&Def, Known) -> Option<Known>) -> Result<Program> {
    let kept: FxHashSet<Fun> = program.defs.keys().copied().collect();
    with_bodies(program, &|_| true, &|def, body| {
        let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let flat = flatten(program, &kept, (&program.terms, body), &tys, MAX_NODES)?;
        let mut known = Known { terms: flat.terms, id: flat.id, total: Default::default() };
        known.total = running::total(&mut known.terms, known.id, def);
        elaborated(program, def, made(def, known)?)
    })
}

/// The body with lets, in its arena, where it is cheaper than that of the definition.
pub(super) fn elaborated(program: &Program, def: &Def, known: Known) -> Option<(Terms, Id)> {
    let Known { mut terms, id, total } = known;
    // What is shared leaves the arm of the first that uses it.
    let Elaborated { within, outside, .. } =
        elaborate_both(&mut terms, id, &def.params, &total, (Model::Analytic, usize::MAX))?;
    let id = outside.unwrap_or(within);
    let (mut costing, mut sweep) =
        (Costing::new(program, Model::Analytic, &[]), Sweep::new(program, def, Model::Analytic, &[]).ok()?);
    let before = costing.def(def).ok()?;
    let cost = costing.term(id, def, &terms);
    (sweep.price(id, &terms, cost, before) < before - 1e-9).then_some((terms, id))
}
