//! What a region became is proved as a lemma, under as few hypotheses as its steps need.

use super::running::shared;
use super::task::{From, Task};
use super::{Derived, derived};
use crate::cost::{Costing, Model};
use crate::derive::check::{Checker, Rules};
use crate::derive::flat::to_body;
use crate::derive::lemma::{Lemma, Lemmas, Statement};
use crate::derive::unfold::unfold;
use crate::ir::{Def, Fun, Head, Id, Param, Program, Terms, Ty, print};
use crate::rewrite::egraph::context::Context;
use crate::rewrite::egraph::elaborate::elaborate;
use crate::rewrite::egraph::journal::{Candidate, Journal};
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

/// Proves what a search made of a region. Where that is a tuple each of its parts has a lemma of its own: it stands
/// alone in a program without lets.
///
/// # Errors
/// Why a part has no proof.
pub fn proved(world: &World<'_>, name: &str, region: &Region<'_>, journal: &Journal) -> Result<Vec<Proved>, String> {
    let best = journal.bests.last().ok_or("nothing was found")?;
    let mut terms = Terms::default();
    let before = unfold(world.program, world.kept, region.body, region.params, &mut terms);
    let before = before.ok_or("without lets and calls it is too large")?.id;
    let before = to_body(&mut terms, before, region.params.len(), 0);
    let after = terms.import(&best.flat.0, best.flat.1);
    let parts = |id: Id| match terms.head(id) {
        Head::Tuple => terms.kids(id).to_vec(),
        _ => vec![id],
    };
    let (lefts, rights) = (parts(before), parts(after));
    if lefts.len() != rights.len() {
        return Err("its parts are no tuple".into());
    }
    let mut out = vec![];
    for (k, (left, right)) in lefts.into_iter().zip(rights).enumerate() {
        if left != right {
            let name = if k == 0 { name.to_string() } else { format!("{name}.{k}") };
            out.push(one(world, name, region, (&terms, left, right), journal)?);
        }
    }
    Ok(out)
}

fn one(
    world: &World<'_>,
    name: String,
    region: &Region<'_>,
    (terms, left, right): (&Terms, Id, Id),
    journal: &Journal,
) -> Result<Proved, String> {
    let mut statement = stated(name, region, terms, left);
    let World { program, kept, rules, level, model, stop, .. } = *world;
    let (own, def) = statement.program(program, kept)?;
    let (from, lemmas) = (From::default(), Lemmas::default());
    let stop = |share: f64| stop(share);
    let assumed = Some(&statement);
    let task = Task { program: &own, def: &def, kept, rules, level, model, stop: &stop, from, assumed, lemmas, axioms: true };
    let flat = (terms.clone(), right);
    let bests = vec![Candidate { flat: flat.clone(), shared: flat, cost: 0.0 }];
    let mut journal = Journal { trace: journal.trace.clone(), starts: journal.starts.clone(), bests };
    let (found, unproved) = derived(&task, &mut journal, &mut |_, _| 0.0);
    let why = || unproved.into_iter().next().map_or_else(|| "it has no proof".to_string(), |u| u.why);
    let Derived { steps, .. } = found.ok_or_else(why)?;
    statement.steps = steps;
    let goal = (terms, right);
    weakened(world, (&own, &def), &mut statement, goal);
    let (checker, programs) = replayed(world, (&own, &def), &statement)?;
    let lemma = Arc::new(checker.lemma(programs[0]));
    let mut costing = Costing::new(&own, model, world.sizes);
    let mut costs = programs.iter().map(|id| {
        let (terms, id) = shared(&checker.terms, *id, &def, model);
        costing.term(id, &def, &terms)
    });
    statement.start = costs.next().unwrap_or_default();
    statement.steps.iter_mut().zip(costs).for_each(|(step, cost)| step.cost = cost);
    Ok(Proved { statement, lemma })
}

/// The text of a lemma with all that is known.
fn stated(name: String, region: &Region<'_>, terms: &Terms, left: Id) -> Statement {
    let mut own = terms.clone();
    let names: Vec<String> = (0..region.params.len()).map(|k| format!("v{k}")).collect();
    let params = region.params.iter().map(|ty| Param { name: String::new(), ty: *ty, sizes: vec![] });
    // Only what the text means matters, not when a part of it would be evaluated.
    let total = own.reachable(left).into_iter().map(|id| (id, true)).collect();
    let body = elaborate(&mut own, left, &params.collect::<Vec<_>>(), &total, Model::Knossos);
    let (ty, left) = (own.ty(left).to_string(), print::term(&own, body, &names));
    let (mut given, mut below): (Vec<(String, String)>, Vec<(String, String)>) = Default::default();
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
    let undefined = |k: &usize| region.context.known[*k].undefined;
    let defined = (0..names.len()).filter(|k| !undefined(k)).map(|k| names[k].clone()).collect();
    let params = names.iter().cloned().zip(region.params.iter().map(ToString::to_string)).collect();
    Statement { name, params, ty, left, given, below, total: names, defined, steps: vec![], start: 0.0 }
}

/// Leaves out hypotheses that the steps do not need, one after the other.
fn weakened(world: &World<'_>, own: (&Program, &Def), statement: &mut Statement, goal: (&Terms, Id)) {
    let hold = |less: &Statement| {
        let Ok((mut checker, _)) = replayed(world, own, less) else { return false };
        checker.shared(goal.0, goal.1).is_ok()
    };
    // First all of a kind, then each.
    let none = |s: &Statement| Statement { total: vec![], ..s.clone() };
    let kinds: [&dyn Fn(&Statement) -> Statement; 4] = [
        &|s| Statement { defined: vec![], ..s.clone() },
        &none,
        &|s| Statement { given: vec![], ..s.clone() },
        &|s| Statement { below: vec![], ..s.clone() },
    ];
    for kind in kinds {
        let less = kind(statement);
        if less != *statement && hold(&less) {
            *statement = less;
        }
    }
    for list in [2, 1, 0, 3] {
        let mut k = 0;
        loop {
            let mut less = statement.clone();
            let left = match list {
                0 => taken(&mut less.given, k),
                1 => taken(&mut less.total, k),
                2 => taken(&mut less.defined, k),
                _ => taken(&mut less.below, k),
            };
            if !left || (world.stop)(0.8) {
                break;
            }
            if hold(&less) {
                *statement = less;
            } else {
                k += 1;
            }
        }
    }
}

/// Takes an entry out of a list; whether there was one.
fn taken<T>(list: &mut Vec<T>, k: usize) -> bool {
    k < list.len() && {
        list.remove(k);
        true
    }
}

/// A checker that has taken the steps of a lemma, and the terms on its way.
fn replayed<'a>(
    world: &World<'a>,
    (own, def): (&'a Program, &'a Def),
    statement: &Statement,
) -> Result<(Checker<'a>, Vec<Id>), String> {
    let mut checker = Checker::new(own, def, world.kept, world.rules, world.level)?;
    checker.assume(statement)?;
    let mut programs = vec![checker.now];
    for step in &statement.steps {
        checker.step(step)?;
        programs.push(checker.now);
    }
    Ok((checker, programs))
}
