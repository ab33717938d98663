//! Definitions get running sums for sums over what comes before or after each element, before they are differentiated:
//! the derivative of a sum over the rest of a list, for each of its elements, takes quadratic work as the sum does,
//! and that of running sums takes linear work.
//!
//! A definition changes only where it has such sums and costs less with running ones. Calls stay, so that derivatives
//! that are written by hand are used. It must not know what is differentiated.

use super::Options;
use super::cheaper::{elaborated, with_bodies};
use crate::diag::Result;
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::accumulate::accumulated as with_sums;
use crate::rewrite::explain::running;
use crate::rewrite::inline::flatten;
use crate::rewrite::separate::separated;
use crate::rewrite::tabulate::Known;
use rustc_hash::FxHashSet;

/// Larger definitions stay: that lets may leave loops is proved part by part.
const MAX_NODES: usize = 5_000;
/// So often sums take other forms and running sums are looked for: some stand in others.
const MAX_ROUNDS: usize = 4;

/// The program with running sums in its definitions. Values are those over the reals: what is added in another order
/// rounds otherwise.
///
/// # Errors
/// A bug: what came out does not check.
pub fn accumulated(program: &Program) -> Result<Program> {
    let kept: FxHashSet<Fun> = program.defs.keys().copied().collect();
    with_bodies(program, &|_| true, &|def, body| cheaper(program, def, body, &kept))
}

/// A cheaper body with running sums, in an arena of its own.
fn cheaper(program: &Program, def: &Def, body: Id, kept: &FxHashSet<Fun>) -> Option<(Terms, Id)> {
    let level = Options::standard().float;
    let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = flatten(program, kept, (&program.terms, body), &tys, MAX_NODES)?;
    let mut known = Known { terms: flat.terms, id: flat.id, total: Default::default() };
    known.total = running::total(&mut known.terms, known.id, def);
    let mut found = false;
    for _ in 0..MAX_ROUNDS {
        let id = separated(&mut known);
        let changed = id != known.id;
        if changed {
            known.id = id;
            known.total = running::total(&mut known.terms, id, def);
        }
        match with_sums(&known, def, level) {
            Some(after) => (known, found) = (after, true),
            None if changed => {}
            None => break,
        }
    }
    if !found {
        return None;
    }
    elaborated(program, def, known)
}
