//! Definitions get tables of elementary functions that inner loops compute again in every round of an outer one, before they are
//! differentiated: `exp` of each row's number, say, in a sum over rows and columns. A product of two such is one `exp` of a sum
//! to a search that does not see the loops, and that is computed for each row and column.
//!
//! A definition changes only where that costs less. No bit changes, and calls stay, so that derivatives that are written by hand
//! are used. It must not know what is differentiated.

use super::cheaper::{elaborated, with_bodies};
use crate::diag::Result;
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::explain::running;
use crate::rewrite::inline::flatten;
use crate::rewrite::tabulate::{self, Known, Target};
use rustc_hash::FxHashSet;

/// Larger definitions stay: that lets may leave loops is proved part by part.
const MAX_NODES: usize = 5_000;
/// So many tables a definition gets at most.
const MAX_TABLES: usize = 16;

/// The program with such tables in its definitions.
///
/// # Errors
/// A bug: what came out does not check.
pub fn tabulated(program: &Program) -> Result<Program> {
    let kept: FxHashSet<Fun> = program.defs.keys().copied().collect();
    with_bodies(program, &|_| true, &|def, body| cheaper(program, def, body, &kept))
}

/// A cheaper body with tables, in an arena of its own.
fn cheaper(program: &Program, def: &Def, body: Id, kept: &FxHashSet<Fun>) -> Option<(Terms, Id)> {
    let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = flatten(program, kept, (&program.terms, body), &tys, MAX_NODES)?;
    let mut known = Known { terms: flat.terms, id: flat.id, total: Default::default() };
    known.total = running::total(&mut known.terms, known.id, def);
    let mut made: Vec<Target> = vec![];
    while made.len() < MAX_TABLES {
        let mut all = tabulate::candidates(&mut known).into_iter();
        // What stands in a table is in no other.
        let Some(target) = all.find(|t| !made.contains(t) && t.is_elementary(&known.terms)) else { break };
        known = tabulate::tabulated(&known, &target);
        made.push(target);
    }
    if made.is_empty() { None } else { elaborated(program, def, known) }
}
