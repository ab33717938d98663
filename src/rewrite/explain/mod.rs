//! The journal of a search becomes a derivation: equations, a proof, and steps that the checker of
//! derivations has taken.
//!
//! Invariant: what leaves here was replayed from the input by that checker, texts included.

pub mod closure;
pub mod linear;
pub mod moves;
pub mod running;
pub mod shorten;
pub mod terms;

use crate::cost::Model;
use crate::derive::Step;
use crate::derive::check::{Checker, Rules};
use crate::ir::{Def, Fun, Id, Program, Terms};
use crate::rewrite::egraph::journal::{Candidate, Journal};
use crate::rewrite::egraph::trace::{Equation, Tid, Trace};
use crate::rules::Level;
use closure::Closure;
use linear::{Failed, Linear};
use rustc_hash::FxHashSet;

/// What is derived from what, and how that is checked.
pub struct Task<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its definition.
    pub def: &'a Def,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The rules.
    pub rules: &'a Rules<'a>,
    /// What they have to keep.
    pub level: Level,
    /// What decides which parts are worth a name.
    pub model: Model,
}

impl<'a> Task<'a> {
    /// A checker that has taken no step yet.
    fn checker(&self) -> Result<Checker<'a>, String> {
        Checker::new(self.program, self.def, self.kept, self.rules, self.level)
    }
}

/// A result with the steps that lead to it.
pub struct Derived {
    /// The result.
    pub candidate: Candidate,
    /// The steps.
    pub steps: Vec<Step>,
    /// The arena of the programs.
    pub terms: Terms,
    /// The flat program at the start and after each step.
    pub programs: Vec<Id>,
    /// The text of the part that each step changes, before and after, where it is short.
    pub changes: Vec<(String, String)>,
    /// Why better results were given up.
    pub given_up: Vec<String>,
}

/// Equations that the checker refuses are left out, so often at most.
const MAX_TRIES: usize = 20;
/// In all tries for one definition so many steps are taken at most.
const MAX_TAKEN: usize = 3000;
/// So many of the best results are tried, and then the first, which is the input.
const MAX_RESULTS: usize = 3;

/// The best result of a search that can be derived.
pub fn derived(task: &Task<'_>, journal: &mut Journal) -> Option<Derived> {
    let n = task.def.params.len();
    let mut seen = FxHashSet::default();
    let first = task.checker().ok()?;
    let mut terms = first.terms.clone();
    let start = crate::derive::flat::to_body(&mut terms, first.now, n, 0);
    let start = terms::concrete(&mut journal.trace, &terms, start, n);
    terms::axioms(&mut journal.trace, task.def, start, &mut seen);
    for (terms, id) in &journal.starts {
        let id = terms::concrete(&mut journal.trace, terms, *id, n);
        terms::axioms(&mut journal.trace, task.def, id, &mut seen);
    }
    let all: Vec<Tid> = (0..journal.trace.len() as Tid).collect();
    for id in all {
        terms::literals_and_copies(&mut journal.trace, task.def, id);
    }
    let (mut given_up, mut taken) = (vec![], 0);
    let results: Vec<&Candidate> = journal.bests.iter().rev().collect();
    let first = results.len().saturating_sub(1).max(MAX_RESULTS.min(results.len()));
    for candidate in results.iter().take(MAX_RESULTS).chain(&results[first..]).copied() {
        let goal = terms::concrete(&mut journal.trace, &candidate.flat.0, candidate.flat.1, n);
        terms::axioms(&mut journal.trace, task.def, goal, &mut seen);
        match steps_to(task, &mut journal.trace, (start, goal), candidate, &mut taken) {
            Ok(derived) => return Some(Derived { given_up, ..derived }),
            Err(why) => given_up.push(why),
        }
    }
    None
}

fn steps_to(
    task: &Task<'_>,
    trace: &mut Trace,
    (start, goal): (Tid, Tid),
    candidate: &Candidate,
    taken: &mut usize,
) -> Result<Derived, String> {
    let equations: Vec<Equation> = trace.equations.clone();
    // An equation whose use is refused goes last, where another way may come before it; refused
    // again it is left out.
    let mut order: Vec<usize> = (0..equations.len()).collect();
    let mut late: FxHashSet<usize> = FxHashSet::default();
    let mut last = String::new();
    for _ in 0..MAX_TRIES {
        let closure = Closure::new(trace, &equations, &order);
        if closure.find(start) != closure.find(goal) {
            return Err(format!("no proof is left: {last}"));
        }
        let mut checker = task.checker()?;
        let input = checker.now;
        let mut linear = Linear::new(trace, &equations, &closure, &mut checker);
        let done = linear.run(start, goal);
        let steps = std::mem::take(&mut linear.steps);
        let programs: Vec<Id> = std::iter::once(input).chain(std::mem::take(&mut linear.programs)).collect();
        *taken += steps.len();
        match done {
            Ok(()) => {
                let mut candidate = candidate.clone();
                if checker.shared(&candidate.shared.0, candidate.shared.1).is_err() {
                    // What the search thought certain may be less so for the checker.
                    candidate.shared = running::proved(&mut checker, task.def, task.model);
                }
                return finished(task, steps, &programs, candidate);
            }
            Err(Failed::Hopeless(why)) => return Err(why),
            Err(Failed::Equation(_, why)) if *taken > MAX_TAKEN => {
                return Err(format!("too many steps were tried: {why}"));
            }
            Err(Failed::Equation(k, why)) => {
                order.retain(|other| *other != k);
                if late.insert(k) {
                    order.push(k);
                }
                last = why;
            }
        }
    }
    Err(format!("too many equations were refused: {last}"))
}

/// Leaves out steps that undo each other, and takes the others again from the beginning, as a replay
/// does. `programs` stand before the first step and after each.
fn finished(task: &Task<'_>, steps: Vec<Step>, programs: &[Id], candidate: Candidate) -> Result<Derived, String> {
    let mut good = |steps: &[Step]| again(task, steps, &candidate).is_ok();
    let steps = shorten::shorten(steps, programs, &mut good);
    let (terms, programs, changes) = again(task, &steps, &candidate)?;
    Ok(Derived { candidate, steps, terms, programs, changes, given_up: vec![] })
}

/// The programs in their arena, and the texts of what each step changes.
type Again = (Terms, Vec<Id>, Vec<(String, String)>);

fn again(task: &Task<'_>, steps: &[Step], candidate: &Candidate) -> Result<Again, String> {
    let mut checker = task.checker()?;
    let mut programs = vec![checker.now];
    let mut changes = vec![];
    for step in steps {
        let before = checker.shown(&step.at[0]);
        checker.step(step)?;
        let text = |t: Option<String>| t.unwrap_or_else(|| "…".into());
        changes.push((text(before), text(checker.shown(&step.at[0]))));
        programs.push(checker.now);
    }
    checker.shared(&candidate.shared.0, candidate.shared.1)?;
    Ok((checker.terms, programs, changes))
}
