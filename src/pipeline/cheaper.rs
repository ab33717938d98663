//! A let-free body of a definition gets its lets, and is taken where it costs less than the one that stands.
//!
//! It must not know how the body came about.

use crate::cost::{Costing, Model, Sweep};
use crate::ir::{Def, Id, Program, Terms};
use crate::rewrite::egraph::elaborate::{Elaborated, elaborate_both};
use crate::rewrite::tabulate::Known;

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
