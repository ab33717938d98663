//! The journal of a search becomes a derivation: equations, a proof, and steps that the checker of
//! derivations has taken.
//!
//! Invariant: what leaves here was replayed from the input by that checker, texts included.

pub mod closure;
pub mod linear;
pub mod running;
pub mod terms;

use crate::derive::Step;
use crate::derive::check::{Checker, Rules};
use crate::ir::{Def, Fun, Id, Program, Terms};
use crate::rewrite::egraph::optimize::{Candidate, Journal};
use crate::rewrite::egraph::trace::{Equation, Tid};
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
    /// Why better results were given up.
    pub given_up: Vec<String>,
}

/// Equations that the checker refuses are left out, so often at most.
const MAX_TRIES: usize = 60;

/// The best result of a search that can be derived.
pub fn derived(task: &Task<'_>, journal: &mut Journal) -> Option<Derived> {
    let n = task.def.params.len();
    let mut seen = FxHashSet::default();
    let first = Checker::new(task.program, task.def, task.kept, task.rules, task.level).ok()?;
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
    let mut given_up = vec![];
    for candidate in journal.bests.iter().rev() {
        let goal = terms::concrete(&mut journal.trace, &candidate.flat.0, candidate.flat.1, n);
        terms::axioms(&mut journal.trace, task.def, goal, &mut seen);
        match steps_to(task, journal.trace.clone(), start, goal, candidate) {
            Ok((steps, programs, terms)) => {
                return Some(Derived { candidate: candidate.clone(), steps, terms, programs, given_up });
            }
            Err(why) => given_up.push(why),
        }
    }
    None
}

type Steps = (Vec<Step>, Vec<Id>, Terms);

fn steps_to(
    task: &Task<'_>,
    mut trace: crate::rewrite::egraph::trace::Trace,
    start: Tid,
    goal: Tid,
    candidate: &Candidate,
) -> Result<Steps, String> {
    let equations: Vec<Equation> = std::mem::take(&mut trace.equations);
    let mut without: FxHashSet<usize> = FxHashSet::default();
    let mut last = String::new();
    for _ in 0..MAX_TRIES {
        let closure = Closure::new(&trace, &equations, &|k| without.contains(&k));
        if closure.find(start) != closure.find(goal) {
            return Err(format!("no proof is left: {last}"));
        }
        let mut checker = Checker::new(task.program, task.def, task.kept, task.rules, task.level)?;
        let from = checker.now;
        let mut trace = trace.clone();
        let mut linear = Linear::new(&mut trace, &equations, &closure, &mut checker);
        let done = linear.run(start, goal);
        let steps = std::mem::take(&mut linear.steps);
        match done {
            Ok(()) => {
                checker.shared(&candidate.shared.0, candidate.shared.1)?;
                return again(task, steps, from, candidate);
            }
            Err(Failed::Hopeless(why)) => return Err(why),
            Err(Failed::Equation(k, why)) => {
                without.insert(k);
                last = why;
            }
        }
    }
    Err(format!("too many equations were refused: {last}"))
}

/// Takes the steps again from the beginning, as a replay does.
fn again(task: &Task<'_>, steps: Vec<Step>, _: Id, candidate: &Candidate) -> Result<Steps, String> {
    let mut checker = Checker::new(task.program, task.def, task.kept, task.rules, task.level)?;
    let mut programs = vec![checker.now];
    for step in &steps {
        checker.step(step)?;
        programs.push(checker.now);
    }
    checker.shared(&candidate.shared.0, candidate.shared.1)?;
    Ok((steps, programs, checker.terms))
}
