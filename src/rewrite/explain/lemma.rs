//! What a region became is proved as a lemma, under as few hypotheses as its steps need.

use super::running::Running;
use super::task::{CHECKED_SHARE, From, Task};
use super::{Derived, Unproved, derived};
use crate::cost::{Costing, Model};
use crate::derive::UNSAID;
use crate::derive::check::Rules;
use crate::derive::lemma::{Lemma, Proof, Statement};
use crate::derive::pace::Pace;
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty, print};
use crate::rewrite::egraph::context::Context;
use crate::rewrite::egraph::journal::Journal;
use crate::rules::Level;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A lemma with its proof as text.
pub struct Proved {
    /// The text.
    pub statement: Statement,
    /// What it says.
    pub lemma: Arc<Lemma>,
}

/// What proofs are made in.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The program.
    pub program: &'a Program,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The rules.
    pub rules: &'a Rules<'a>,
    /// What they have to keep.
    pub level: Level,
    /// What costs the terms on the way.
    pub model: Model,
    /// The sizes that were told.
    pub sizes: &'a [(String, u64)],
    /// Whether a share of what may be spent is spent.
    pub stop: &'a (dyn Fn(f64) -> bool + Sync),
}

/// A region: what its parameters are, and what is known of them.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    /// The types of the parameters.
    pub params: &'a [Ty],
    /// What is known.
    pub context: &'a Context,
    /// With lets, over the parameters.
    pub body: (&'a Terms, Id),
}

/// Proves the best of what a search made of a region that can be proved, and says what cannot. `cost` is that of a term
/// over the parameters.
pub fn proved(
    world: &World<'_>,
    name: &str,
    region: &Region<'_>,
    journal: &mut Journal,
    cost: &mut dyn FnMut(&Terms, Id) -> f64,
) -> (Option<Proved>, Vec<Unproved>) {
    let before = cost(region.body.0, region.body.1);
    let mut statement = stated(name, region);
    let own = match statement.program(world.program) {
        Ok(own) => own,
        Err(why) => return (None, vec![Unproved { cost: 0.0, why }]),
    };
    let World { kept, rules, level, model, stop, .. } = *world;
    let stop = |share: f64| stop(share);
    let (from, assumed) = (From::default(), Some(&statement));
    let late = || stop(CHECKED_SHARE);
    let pace = &Pace::new(&late);
    let task = Task { program: &own.0, def: &own.1, kept, rules, level, model, stop: &stop, pace, from, assumed };
    let (found, mut unproved) = derived(&task, journal, cost);
    let Some(Derived { steps, candidate, .. }) = found.filter(|found| found.candidate.cost < before - 1e-9) else {
        return (None, unproved);
    };
    let (terms, id) = &candidate.shared;
    statement.steps = steps;
    statement.right = print::term(terms, *id, &names(region));
    match weakened(world, (&own.0, &own.1), &mut statement) {
        Ok(lemma) => (Some(Proved { statement, lemma }), unproved),
        Err(why) => {
            unproved.push(Unproved { cost: candidate.cost, why });
            (None, unproved)
        }
    }
}

/// The lemma of a region as one of an equal region, whose lets stand elsewhere; nothing where its steps are refused
/// there.
pub fn like(world: &World<'_>, name: String, region: &Region<'_>, proved: &Proved) -> Option<Proved> {
    let (terms, id) = region.body;
    let left = print::term(terms, id, &names(region));
    let mut statement = Statement { name, left, ..proved.statement.clone() };
    let (own, def) = statement.program(world.program).ok()?;
    let lemma = costed(world, (&own, &def), &mut statement).ok()?;
    Some(Proved { statement, lemma })
}

/// The names of the parameters.
fn names(region: &Region<'_>) -> Vec<String> {
    (0..region.params.len()).map(|k| format!("v{k}")).collect()
}

/// The text of a lemma with all that is known.
fn stated(name: &str, region: &Region<'_>) -> Statement {
    let (names, (terms, id)) = (names(region), region.body);
    let (mut given, mut below) = (vec![], vec![]);
    let mut known = region.context.terms.clone();
    for (k, of) in region.context.known.iter().enumerate() {
        let var = known.var((names.len() - 1 - k) as u32, region.params[k]);
        let mut equal = |terms: &Terms, a: Id, b: Id| {
            if a != b {
                given.push((print::term(terms, a, &names), print::term(terms, b, &names)));
            }
        };
        for (axis, dim) in of.dims.iter().enumerate().take(of.rank) {
            let Some(dim) = *dim else { continue };
            let size = known.put(Head::Size(axis), [var]);
            equal(&known, size, dim);
        }
        if let Some(value) = of.value {
            equal(&known, var, value);
        }
        if let Some(n) = of.below {
            below.push((names[k].clone(), print::term(&known, n, &names)));
        }
    }
    let defined = |k: &usize| !region.context.known[*k].undefined;
    let defined = (0..names.len()).filter(defined).map(|k| names[k].clone()).collect();
    let params = names.iter().cloned().zip(region.params.iter().map(ToString::to_string)).collect();
    let (ty, left) = (terms.ty(id).to_string(), print::term(terms, id, &names));
    let (name, steps, start, right, cost) = (name.to_string(), vec![], 0.0, String::new(), 0.0);
    Statement { name, params, ty, left, given, below, defined, steps, start, right, cost }
}

/// Leaves out kinds of hypotheses that the steps do not need, one after the other, and adds all costs; the lemma.
fn weakened(world: &World<'_>, own: (&Program, &Def), statement: &mut Statement) -> Result<Arc<Lemma>, String> {
    let World { kept, rules, level, .. } = *world;
    let kinds: [&dyn Fn(&Statement) -> Statement; 4] = [
        &|s| Statement { given: vec![], below: vec![], defined: vec![], ..s.clone() },
        &|s| Statement { defined: vec![], ..s.clone() },
        &|s| Statement { given: vec![], ..s.clone() },
        &|s| Statement { below: vec![], ..s.clone() },
    ];
    for kind in kinds {
        let less = kind(statement);
        if less != *statement && less.proof(own, kept, (rules, level)).is_ok() {
            *statement = less;
        }
    }
    costed(world, own, statement)
}

/// Adds the costs of a lemma that is proved; the lemma.
fn costed(world: &World<'_>, own: (&Program, &Def), statement: &mut Statement) -> Result<Arc<Lemma>, String> {
    let World { kept, rules, level, model, sizes, .. } = *world;
    let proof = statement.proof(own, kept, (rules, level)).map_err(|(_, why)| why)?;
    let Proof { lemma, terms, programs, right } = proof;
    let mut costing = Costing::new(own.0, model, sizes);
    statement.cost = costing.term(right.1, own.1, &right.0);
    let mut running = Running::new(own.1, model);
    let mut costs = programs.iter().map(|id| {
        let program = running.shared(&terms, *id);
        program.map_or(UNSAID, |(terms, id)| costing.term(id, own.1, &terms))
    });
    statement.start = costs.next().unwrap_or(UNSAID);
    statement.steps.iter_mut().zip(costs).for_each(|(step, cost)| step.cost = cost);
    Ok(lemma)
}
