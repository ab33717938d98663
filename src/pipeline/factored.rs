//! Derivatives whose sums factors leave: what all rounds of a loop multiply by is multiplied by once, after the sum.
//!
//! A definition changes only where that costs less; what it calls is part of it then. It must not know what was
//! differentiated.

use super::cheaper::{elaborated, with_bodies};
use super::recursive;
use crate::derive::flat::{Site, with_leaves};
use crate::diag::Result;
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::explain::running;
use crate::rewrite::factor::{Made, Sums, factored as with_factors_outside};
use crate::rewrite::inline::{Flat, flatten};
use crate::rewrite::tabulate::Known;
use rustc_hash::FxHashSet;

/// Larger definitions stay: that lets may leave loops is proved part by part.
const MAX_NODES: usize = 50_000;
/// So often what may fail is left as it was.
const MAX_ROUNDS: usize = 4;

/// The program where factors have left the sums of some of its definitions. Values are those over the reals: products are
/// rounded after the sum.
///
/// # Errors
/// A bug: what came out does not check.
pub fn factored(program: &Program, of: &dyn Fn(&Def) -> bool) -> Result<Program> {
    let recursive = recursive(program);
    with_bodies(program, of, &|def, body| cheaper(program, def, body, &recursive))
}

/// A cheaper body whose sums factors have left, in an arena of its own.
fn cheaper(program: &Program, def: &Def, body: Id, recursive: &FxHashSet<Fun>) -> Option<(Terms, Id)> {
    let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = flatten(program, recursive, (&program.terms, body), &tys, MAX_NODES)?;
    let mut known = Sums::default();
    for _ in 0..MAX_ROUNDS {
        let mut terms = flat.terms.clone();
        let (id, made) = with_factors_outside(&mut terms, flat.id, &known);
        if made.is_empty() {
            return None;
        }
        let known_values = evaluated(&mut terms, &flat, def.params.len());
        let total = running::total_beside(&mut terms, id, def, &known_values);
        let before = known.stay.len() + known.guarded.len();
        for Made { of, sum, tables } in made {
            let sure =
                |of: &[Id; 2]| of.iter().filter_map(|t| total.get(t)).copied().reduce(|a, b| a && b) == Some(true);
            if !tables.iter().all(sure) {
                known.stay.insert(of);
            } else if total.get(&sum) != Some(&true) {
                known.guarded.insert(of);
            }
        }
        if known.stay.len() + known.guarded.len() == before {
            return elaborated(program, def, Known { terms, id, total });
        }
    }
    None
}

/// What is evaluated wherever the definition has a value, over leaves for parameters.
fn evaluated(terms: &mut Terms, flat: &Flat, params: usize) -> FxHashSet<Site> {
    let mut all: Vec<&Site> = flat.strict.iter().collect();
    all.sort();
    let each = all.into_iter().map(|(term, ranges)| {
        let term = with_leaves(terms, *term, ranges.len(), params);
        (term, ranges.iter().map(|n| with_leaves(terms, *n, 0, params)).collect())
    });
    each.collect()
}
