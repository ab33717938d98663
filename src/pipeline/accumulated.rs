//! Definitions get running sums for sums over what comes before or after each element, before they are differentiated:
//! the derivative of a sum over the rest of a list, for each of its elements, takes quadratic work as the sum does,
//! and that of running sums takes linear work.
//!
//! A definition changes only where it has such sums and costs less with running ones. Calls stay, so that derivatives
//! that are written by hand are used. It must not know what is differentiated.

use super::Options;
use super::cheaper::with_calls;
use crate::diag::Result;
use crate::ir::{Def, Program};
use crate::rewrite::accumulate::accumulated as with_sums;
use crate::rewrite::explain::running;
use crate::rewrite::separate::separated;
use crate::rewrite::tabulate::Known;

/// So often sums take other forms and running sums are looked for: some stand in others.
const MAX_ROUNDS: usize = 4;

/// The program with running sums in its definitions. Values are those over the reals: what is added in another order
/// rounds otherwise.
///
/// # Errors
/// A bug: what came out does not check.
pub fn accumulated(program: &Program) -> Result<Program> {
    with_calls(program, &with_running_sums)
}

/// A term with running sums; nothing where it has no sums for them.
fn with_running_sums(def: &Def, mut known: Known) -> Option<Known> {
    let level = Options::standard().float;
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
    found.then_some(known)
}
