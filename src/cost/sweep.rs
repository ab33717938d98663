//! What a cheaper term costs under other sizes than those it was searched for.
//!
//! A search minimizes one number, which stands for one setting of sizes. What is cheaper there may cost more with
//! every further element: a result counts as better only where no further setting says that it is worse.

use super::setting::Setting;
use super::{Costing, Model, Scope};
use crate::diag::Result;
use crate::ir::{Def, Id, Program, Terms};

/// Costs that differ by less are equal: sums are taken in other orders.
const ROUNDING: f64 = 1e-9;
/// What is next to nothing may become twice that.
const NOTHING: f64 = 1e-3;

/// The published model knows no sizes, and what it likes may cost a little more. It may not cost a loop more: so
/// many times what it was, at most.
const LOOSE: f64 = 2.0;

/// Compares terms with one definition's body under further settings of sizes.
pub struct Sweep<'a> {
    def: &'a Def,
    /// For each setting the costing, and what the body costs there.
    further: Vec<(Costing<'a>, f64)>,
    /// So many times what the body costs is no more than it costs.
    slack: f64,
}

impl<'a> Sweep<'a> {
    /// Of a definition of a program; `model` and `sizes` are those of the search.
    ///
    /// # Errors
    /// A definition without a body.
    pub fn new(program: &'a Program, def: &'a Def, model: Model, sizes: &'a [(String, u64)]) -> Result<Sweep<'a>> {
        let settings = Setting::FURTHER.into_iter().chain((model == Model::Knossos).then_some(Setting::TOLD));
        let further = settings.map(|setting| {
            let mut costing = Costing::at(program, model.sized(), sizes, setting);
            let cost = costing.def(def)?;
            Ok((costing, cost))
        });
        Ok(Sweep { def, further: further.collect::<Result<_>>()?, slack: slack(model) })
    }

    /// Of a region: a term over the variables of a scope, for which `def` has parameters.
    pub fn within(
        program: &'a Program,
        def: &'a Def,
        (model, sizes): (Model, &'a [(String, u64)]),
        scope: &Scope,
        (terms, id): (&Terms, Id),
    ) -> Sweep<'a> {
        let further = Setting::FURTHER.into_iter().zip(scope.further()).map(|(setting, env)| {
            let costing = Costing::at(program, model.sized(), sizes, setting);
            let mut costing = Costing { scope: Some(env.clone()), ..costing };
            let cost = costing.term(id, def, terms);
            (costing, cost)
        });
        let mut further: Vec<_> = further.collect();
        if model == Model::Knossos {
            let mut costing = Costing::within(program, Model::Analytic, sizes, scope);
            let cost = costing.term(id, def, terms);
            further.push((costing, cost));
        }
        Sweep { def, further, slack: slack(model) }
    }

    /// How many times as much as the body a term costs, in the setting where it compares worst; 1 where it costs
    /// no more in any.
    pub fn worse(&mut self, id: Id, terms: &Terms) -> f64 {
        let def = self.def;
        let each = self.further.iter_mut().map(|(costing, before)| {
            let ratio = (costing.term(id, def, terms) + NOTHING) / (*before + NOTHING);
            if ratio > self.slack { ratio } else { 1.0 }
        });
        each.fold(1.0, f64::max)
    }

    /// What a term counts as that costs this much, where the body costs `before`: its cost if it is no worse in
    /// any setting, and else more than the body, so that no search prefers it.
    pub fn price(&mut self, id: Id, terms: &Terms, cost: f64, before: f64) -> f64 {
        let worse = self.worse(id, terms);
        if worse > 1.0 { cost.max(before) * worse } else { cost }
    }
}

/// So many times what a body costs is no more than it costs.
fn slack(model: Model) -> f64 {
    match model {
        Model::Analytic | Model::Stored | Model::Recomputed => 1.0 + ROUNDING,
        Model::Knossos => LOOSE,
    }
}
