//! What searches found becomes a program again: better bodies replace the old ones, and the text is read
//! back and checked.

use super::search::{Better, Tried};
use super::{Derived, Options, Outcome, Row, chosen};
use crate::cost::Costing;
use crate::derive::Derivation;
use crate::diag::{Diagnostic, Result, Source};
use crate::ir::{Body, Def, Fun, Program, print};
use crate::rewrite::egraph::optimize::Found;
use crate::types;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What the search made of a definition.
pub struct Searched<'a> {
    /// The better body, if there is one, and what has no derivation.
    pub found: Tried,
    /// The definition.
    pub def: &'a Def,
    /// How long it took.
    pub seconds: f64,
    /// What was spent before the search was done.
    pub stopped: Option<&'static str>,
}

/// Puts the better bodies into the program, checks it, and reads it again from its text. Names of the
/// source stay where values do.
pub fn assemble(program: &Program, results: Vec<Searched<'_>>, options: &Options<'_>) -> Result<Outcome> {
    let mut old = Costing::new(program, options.cost, &options.sizes);
    // Definitions come after what they call, so a call may be better than what was found without it.
    let mut work = program.clone();
    let mut rows = vec![];
    let mut better: FxHashMap<Fun, Found> = FxHashMap::default();
    let mut derived: FxHashMap<Fun, Derived> = FxHashMap::default();
    for Searched { found: Tried { better: search, mut unproved, .. }, def, seconds, stopped } in results {
        let cost_before = old.def(def)?;
        let cost_kept = Costing::new(&work, options.cost, &options.sizes).def(def)?;
        let mut fired: BTreeMap<String, usize> = BTreeMap::new();
        let (mut steps, mut growth) = (0, vec![]);
        for (name, n) in search.iter().flat_map(|s| &s.found.reports).flat_map(|r| &r.fired) {
            *fired.entry(name.clone()).or_default() += n;
        }
        let looked = search.iter().flat_map(|s| &s.found.reports).map(|r| r.looked).sum();
        let proved = search.as_ref().is_some_and(|s| s.found.proved);
        // Where a body needs equal sizes without a sign of it in its text, a reader would refuse that.
        let readable = |s: &Better| types::sizes::agree(&work.defs, def, &s.found.terms, s.found.id);
        let cheaper = search.filter(|s| s.found.cost < cost_kept - 1e-9 && readable(s));
        if let Some(Better { found, derived: how }) = cheaper {
            derived.extend(how.map(|d| (def.fun, d)));
            steps = fired.values().sum();
            growth = found.reports.iter().map(|r| r.growth.clone()).filter(|g| !g.is_empty()).collect();
            let body = work.terms.import(&found.terms, found.id);
            if let Some(d) = work.defs.get_mut(&def.fun) {
                d.body = Body::Term(body);
            }
            better.insert(def.fun, found);
        }
        let fired = fired.into_iter().collect();
        let (name, cost_after) = (def.name().to_string(), cost_before);
        let engine = options.engine.name();
        unproved.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let unproved = unproved.into_iter().next();
        rows.push(Row {
            name,
            cost_before,
            cost_after,
            engine,
            steps,
            seconds,
            fired,
            looked,
            growth,
            proved,
            stopped,
            unproved,
        });
    }
    let text: Vec<String> = program
        .defs
        .values()
        .map(|d| match better.get(&d.fun) {
            Some(f) => print::def(&f.terms, &Def { body: Body::Term(f.id), ..d.clone() }) + "\n",
            None => print::def(&program.terms, d) + "\n",
        })
        .collect();
    let source = Source::new(format!("{} (optimized)", program.source.name), text.join("\n"));
    let program = types::program(&source)
        .map_err(|d| Diagnostic::bug("the optimized program does not read back").note(d.render()))?;
    types::verify::verify(&program)?;
    let mut new = Costing::new(&program, options.cost, &options.sizes);
    for (row, def) in rows.iter_mut().zip(chosen(&program, &options.defs)?) {
        row.cost_after = new.def(def)?;
        row.unproved = row.unproved.take().filter(|u| u.cost < row.cost_after - 1e-6);
        if row.cost_after > row.cost_before + 1e-6 {
            let message = format!("`{}` came out costlier: {} after {}", row.name, row.cost_after, row.cost_before);
            return Err(Diagnostic::bug(message));
        }
    }
    let mut derivations = vec![];
    for (row, def) in rows.iter().zip(chosen(&program, &options.defs)?).filter(|_| options.derive) {
        let mut how = derived.remove(&def.fun).unwrap_or_else(|| unchanged(&program, def, row));
        how.derivation.result = print::def(&program.terms, def);
        (how.derivation.cost_before, how.derivation.cost_after) = (row.cost_before, row.cost_after);
        if how.derivation.steps.is_empty() {
            how.derivation.start = row.cost_before;
        }
        derivations.push(how);
    }
    Ok(Outcome { program, rows, derivations, seconds: 0.0 })
}

/// The derivation of what stays as it is.
fn unchanged(program: &Program, def: &Def, row: &Row) -> Derived {
    let derivation = Derivation {
        name: def.name().to_string(),
        params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
        steps: vec![],
        start: row.cost_before,
        result: String::new(),
        cost_before: row.cost_before,
        cost_after: row.cost_after,
    };
    let programs = def.term().map(|body| (program.terms.clone(), body)).into_iter().collect();
    Derived { derivation, programs, changes: vec![] }
}
