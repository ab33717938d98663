//! Definitions get tables of floats that inner loops compute again in every round of an outer one, before they are differentiated:
//! `exp` of each row's number, say, or its distance from a mean, in a sum over rows and columns. A product of two `exp` is one
//! of a sum to a search that does not see the loops, and that is computed for each row and column; and what a table's element
//! adds to the adjoints of its own parts is added once for it, and not in every round.
//!
//! A definition changes only where that costs less. No bit changes, and calls stay, so that derivatives that are written by hand
//! are used. It must not know what is differentiated.

use super::cheaper::with_calls;
use crate::diag::Result;
use crate::ir::{Def, Program};
use crate::rewrite::tabulate::{self, Known, Target};

/// So many tables a definition gets at most.
const MAX_TABLES: usize = 16;

/// The program with such tables in its definitions.
///
/// # Errors
/// A bug: what came out does not check.
pub fn tabulated(program: &Program) -> Result<Program> {
    with_calls(program, &with_tables)
}

/// A term with tables; nothing where it needs none.
fn with_tables(_: &Def, mut known: Known) -> Option<Known> {
    let mut made: Vec<Target> = vec![];
    while made.len() < MAX_TABLES {
        let mut all = tabulate::candidates(&mut known).into_iter();
        // What stands in a table is in no other.
        let Some(target) = all.find(|t| !made.contains(t) && t.is_repeated(&known.terms)) else { break };
        known = tabulate::tabulated(&known, &target);
        made.push(target);
    }
    (!made.is_empty()).then_some(known)
}
