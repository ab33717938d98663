//! Records of derivations: what heads one, and a replay with the costs.
//!
//! The checker of `derive` proves the steps and knows no costs. Here every cost that a record states is
//! computed again, from the programs that the steps lead to.

use super::Options;
use crate::cost::{Costing, Model, size_names, with_reads};
use crate::derive::record::{Header, Record, RuleFile, hash, hash_rules};
use crate::derive::replay::{Verdict, replay_while};
use crate::derive::{Derivation, UNSAID, record};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Id, Program};
use crate::rewrite::explain::running::Running;
use crate::rules::Library;

/// The header of the record of an optimization.
pub fn header(program: &Program, library: &Library, options: &Options<'_>) -> Header {
    Header {
        program: hash(&program.source.text),
        level: options.float,
        assume: options.assume.clone(),
        cost_model: options.cost.name().to_string(),
        sizes: with_reads(program, &options.sizes),
        rules: hash_rules(library),
        rule_files: options.rules.iter().map(|f| RuleFile::of(f)).collect(),
    }
}

/// The text of the record of an optimization.
pub fn record(program: &Program, outcome: &super::Outcome, library: &Library, options: &Options<'_>) -> String {
    let all: Vec<Derivation> = outcome.derivations.iter().map(|d| d.derivation.clone()).collect();
    record::write(&header(program, library, options), &all)
}

/// Takes all steps of a record, and computes all costs again. `name` is that of its file. Ends before the first
/// definition that is not wanted any more.
///
/// # Errors
/// The first line that is refused, and why.
pub fn replayed(
    program: &Program,
    record: &Record,
    library: &Library,
    name: &str,
    wanted: impl FnMut(&str) -> bool,
) -> Result<Vec<Verdict>> {
    let Header { cost_model, sizes, .. } = &record.header;
    let Some(model) = Model::named(cost_model) else {
        let known = [Model::Knossos, Model::Analytic].map(Model::name).join(" and ");
        let message = format!("{name}:1: there is no cost model `{cost_model}`");
        return Err(Diagnostic::user(message).note(format!("known are {known}")));
    };
    let params = || program.defs.values().flat_map(|d| &d.params);
    let named = size_names(program);
    let known = |size: &String| params().any(|p| p.name == *size) || named.contains(size);
    if let Some((size, _)) = sizes.iter().find(|(size, _)| !known(size)) {
        return Err(Diagnostic::user(format!("{name}:1: no definition of the program names a size `{size}`")));
    }
    let verdicts = replay_while(program, record, library, name, wanted)?;
    let costs = Costs { program, result: results(program, &verdicts), model, sizes, name };
    for ((derivation, _), verdict) in record.derivations.iter().zip(&verdicts) {
        costs.check(derivation, verdict)?;
    }
    Ok(verdicts)
}

/// The program with all results in their places.
fn results(program: &Program, verdicts: &[Verdict]) -> Program {
    let mut out = program.clone();
    for Verdict { result: (from, def), .. } in verdicts {
        let body = def.term().map(|body| out.terms.import(&from.terms, body));
        if let (Some(body), Some(new)) = (body, out.defs.get_mut(&def.fun)) {
            new.body = Body::Term(body);
        }
    }
    out
}

struct Costs<'a> {
    program: &'a Program,
    result: Program,
    model: Model,
    sizes: &'a [(String, u64)],
    name: &'a str,
}

impl Costs<'_> {
    fn check(&self, d: &Derivation, verdict: &Verdict) -> Result<()> {
        let fun = verdict.result.1.fun;
        let (Some(before), Some(after)) = (self.program.defs.get(&fun), self.result.defs.get(&fun)) else {
            return Err(Diagnostic::bug(format!("`{}` was replayed and is gone", d.name)));
        };
        self.lemmas(d, verdict)?;
        let mut old = Costing::new(self.program, self.model, self.sizes);
        let cost = old.def(before)?;
        self.same(d, verdict.line, "the definition costs", d.cost_before, cost)?;
        let mut running = Running::new(before, self.model);
        // Where no step is taken nothing needs to be unfolded.
        let start = match verdict.programs.first().filter(|_| !d.steps.is_empty() && !d.bodies) {
            Some(id) => self.running((&mut old, &mut running), before, verdict, *id, d.start),
            None => cost,
        };
        self.same(d, verdict.line, "at the start, the program costs", d.start, start)?;
        for (k, (step, id)) in d.steps.iter().zip(verdict.programs.iter().skip(1)).enumerate() {
            let cost = match d.bodies {
                true => old.term(*id, before, &verdict.terms),
                false => self.running((&mut old, &mut running), before, verdict, *id, step.cost),
            };
            self.same(d, verdict.line + 1 + k, "the program after this step costs", step.cost, cost)?;
        }
        let cost = Costing::new(&self.result, self.model, self.sizes).def(after)?;
        self.same(d, verdict.line + 1 + d.steps.len(), "the result costs", d.cost_after, cost)
    }

    fn lemmas(&self, d: &Derivation, verdict: &Verdict) -> Result<()> {
        for (statement, lemma) in d.lemmas.iter().zip(&verdict.lemmas) {
            let mut costing = Costing::new(&lemma.program, self.model, self.sizes);
            let mut running = Running::new(&lemma.def, self.model);
            let what = format!("`{}` costs", statement.name);
            let said = std::iter::once(statement.start).chain(statement.steps.iter().map(|step| step.cost));
            for (k, (said, id)) in said.zip(&lemma.programs).enumerate() {
                let program = (!said.is_nan()).then(|| running.shared(&lemma.terms, *id)).flatten();
                let cost = program.map_or(UNSAID, |(terms, id)| costing.term(id, &lemma.def, &terms));
                self.same(d, lemma.line + k, &what, said, cost)?;
            }
            let cost = costing.term(lemma.right.1, &lemma.def, &lemma.right.0);
            self.same(d, lemma.line + statement.steps.len() + 1, &what, statement.cost, cost)?;
        }
        Ok(())
    }

    /// The cost of a program on the way, where one is said.
    fn running(
        &self,
        (costing, running): (&mut Costing<'_>, &mut Running<'_>),
        def: &Def,
        verdict: &Verdict,
        id: Id,
        said: f64,
    ) -> f64 {
        let program = (!said.is_nan()).then(|| running.shared(&verdict.terms, id)).flatten();
        program.map_or(UNSAID, |(terms, id)| costing.term(id, def, &terms))
    }

    fn same(&self, d: &Derivation, line: usize, what: &str, said: f64, cost: f64) -> Result<()> {
        // What is unsaid is not wrong; sums may be taken in another order.
        match said.is_nan() || (said - cost).abs() <= 1e-9 * cost.abs().max(1.0) {
            true => Ok(()),
            false => {
                let message = format!("{}:{line}: `{}`: {what} {cost}, not {said}", self.name, d.name);
                Err(Diagnostic::user(message).note(format!("under the cost model `{}`", self.model.name())))
            }
        }
    }
}
