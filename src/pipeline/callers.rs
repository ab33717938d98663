//! What calls a definition whose best result has no derivation is dearer for it: it gets the reason too.
//!
//! What it would cost is known without that result: a term costs more by a multiple of what a call in it does.

use super::{Options, Row, chosen};
use crate::cost::Costing;
use crate::diag::Result;
use crate::ir::{Body, Def, Head, Id, Program};
use crate::rewrite::explain::Unproved;

/// Gives each row of a caller that is dearer than it would be the reason. `before` is the program that was optimized,
/// `after` what it became.
pub fn explain(before: &Program, after: &Program, rows: &mut [Row], options: &Options<'_>) -> Result<()> {
    let defs = chosen(before, &options.defs)?;
    for called in 0..rows.len() {
        let Some(Unproved { cost, why }) = rows[called].unproved.clone() else { continue };
        let gain = rows[called].cost_after - cost;
        let name = rows[called].name.clone();
        let Some(doubled) = doubled(after, defs[called]) else { continue };
        for caller in called + 1..rows.len() {
            let Some(body) = defs[caller].term().filter(|_| rows[caller].unproved.is_none()) else { continue };
            let of = |program: &Program, def: &Def| -> Result<(f64, f64)> {
                let mut costing = Costing::new(program, options.cost, &options.sizes);
                let own = program.defs.get(&def.fun).map_or(Ok(0.0), |d| costing.def(d))?;
                Ok((own, costing.term(body, defs[caller], &before.terms)))
            };
            let ((one, with), (two, more)) = (of(after, defs[called])?, of(&doubled, defs[called])?);
            let times = (more - with) / (two - one);
            let would = with - times * gain;
            if times > 0.0 && would < rows[caller].cost_after - 1e-6 {
                rows[caller].unproved = Some(Unproved { cost: would, why: format!("it calls `{name}`: {why}") });
            }
        }
    }
    Ok(())
}

/// A program in which the body of one definition is evaluated twice.
fn doubled(program: &Program, def: &Def) -> Option<Program> {
    let mut out = program.clone();
    let body: Id = program.defs.get(&def.fun)?.term()?;
    let again = out.terms.shift(body, 1);
    let twice = out.terms.put(Head::Let, [body, again]);
    out.defs.get_mut(&def.fun)?.body = Body::Term(twice);
    Some(out)
}
