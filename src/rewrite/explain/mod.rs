//! The journal of a search becomes a derivation: equations, a proof, and steps that the checker of
//! derivations has taken. What regions become is proved as lemmas, and bodies by those.
//!
//! Invariant: what leaves here was replayed from the input by that checker, texts included.

pub mod chain;
pub mod closure;
pub mod lemma;
mod lets;
pub mod linear;
pub mod moves;
pub mod running;
pub mod shorten;
pub mod shortest;
mod sums;
mod task;
pub mod terms;

use crate::derive::Step;
use crate::derive::check::Checker;
use crate::derive::pace::Pace;
use crate::ir::{Id, Terms};
use crate::rewrite::egraph::journal::{Candidate, Journal};
use crate::rewrite::egraph::trace::{Equation, Tid, Trace};
use closure::Closure;
pub use linear::LATE;
use linear::{Failed, Linear};
use rustc_hash::FxHashSet;
pub use task::{CHECKED_SHARE, From, Task};
use task::{NEXT_SHARE, PROOF_SHARE, RESULT_SHARES};
use terms::Concrete;

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
}

/// A result for which no derivation was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Unproved {
    /// What it costs.
    pub cost: f64,
    /// Why there is none.
    pub why: String,
}

/// Equations that the checker refuses are left out, so often at most, and so often in succession where no step is
/// taken between: what follows is refused for the same reason, most likely.
const MAX_TRIES: usize = 30;
const MAX_STUCK: usize = 10;
/// In all tries for one definition so many steps are taken at most.
const MAX_TAKEN: usize = 3000;
/// So many of the best results are tried, and then the first, which is the input.
const MAX_RESULTS: usize = 2;

/// The best result of a search that can be derived, and those before it that cannot. `cost` is that of a term over
/// the parameters.
pub fn derived(
    task: &Task<'_>,
    journal: &mut Journal,
    cost: &mut dyn FnMut(&Terms, Id) -> f64,
) -> (Option<Derived>, Vec<Unproved>) {
    let mut unproved = vec![];
    let (start, goals) = match linked(task, journal) {
        Ok(linked) => linked,
        Err(why) => {
            unproved.extend(journal.bests.last().map(|best| Unproved { cost: best.cost, why }));
            return (None, unproved);
        }
    };
    let (mut taken, mut best): (usize, Option<Reached<'_>>) = (0, None);
    let results: Vec<(&Candidate, Tid)> = journal.bests.iter().zip(goals).rev().collect();
    let (mut at, last) = (0, results.len().saturating_sub(1));
    for k in 0..=MAX_RESULTS {
        let Some((candidate, goal)) = results.get(at).copied() else { break };
        // With fewer lets a result is dearer than it was found, and perhaps than the ones behind it.
        if best.as_ref().is_some_and(|b| b.candidate.cost <= candidate.cost) {
            break;
        }
        let share = RESULT_SHARES.get(k).copied().unwrap_or(PROOF_SHARE + NEXT_SHARE);
        let stop = || (task.stop)(share);
        let late = match reached(task, &mut journal.trace, (start, goal), candidate, (&mut taken, cost), &stop) {
            Ok(mut reached) => {
                unproved.extend(reached.unproved.take());
                if best.as_ref().is_none_or(|b| reached.candidate.cost < b.candidate.cost) {
                    best = Some(reached);
                }
                false
            }
            Err(why) => {
                let late = why.contains(LATE);
                unproved.push(Unproved { cost: candidate.cost, why });
                late
            }
        };
        // The way to an earlier result is shorter, and the shortest is to the input.
        at = match at < last && k + 1 == MAX_RESULTS {
            true => last,
            false => at + if late { (last - at).div_ceil(2).max(1) } else { 1 },
        };
    }
    let Some(Reached { way, candidate, .. }) = best else { return (None, unproved) };
    let cost = candidate.cost;
    match finished(task, way.steps, &way.programs, candidate) {
        Ok(out) => (Some(out), unproved),
        Err(why) => {
            unproved.push(Unproved { cost, why });
            (None, unproved)
        }
    }
}

/// Links the terms of all e-graphs of a search: the concrete term that the checker starts from, and that of each
/// result.
///
/// # Errors
/// The definition cannot be unfolded, or the time is up.
fn linked(task: &Task<'_>, journal: &mut Journal) -> Result<(Tid, Vec<Tid>), String> {
    let Journal { trace, starts, bests } = journal;
    let n = task.def.params.len();
    let stop = || (task.stop)(PROOF_SHARE);
    let pace = Pace::new(&stop);
    let (mut seen, mut read, mut concrete) = (FxHashSet::default(), FxHashSet::default(), Concrete::new(n, &pace));
    let mut link = |trace: &mut Trace, terms: &Terms, id: Id| -> Result<Tid, String> {
        let id = concrete.of(trace, terms, id).ok_or(LATE)?;
        terms::axioms(trace, task.def, id, &mut seen, &pace);
        sums::related(trace, id, &mut read);
        Ok(id)
    };
    let (mut first, _) = task.there()?;
    let start = crate::derive::flat::to_body(&mut first.terms, first.now, n, 0);
    let start = link(trace, &first.terms, start)?;
    for (terms, id) in starts {
        link(trace, terms, *id)?;
    }
    // A way starts again from its best so far, so all results are links of the chain.
    let goals = bests.iter().map(|best| link(trace, &best.flat.0, best.flat.1)).collect::<Result<_, _>>()?;
    terms::everywhere(trace, task.def, &pace);
    if pace.late() { Err(LATE.into()) } else { Ok((start, goals)) }
}

/// What the steps of all tries are counted in, and what a result costs.
type Spent<'s> = (&'s mut usize, &'s mut dyn FnMut(&Terms, Id) -> f64);

/// A result to which the checker came.
struct Reached<'a> {
    way: Way<'a>,
    /// The result, with the lets that may stand there.
    candidate: Candidate,
    /// The same with lets of which that could not be proved.
    unproved: Option<Unproved>,
}

fn reached<'a>(
    task: &Task<'a>,
    trace: &mut Trace,
    (start, goal): (Tid, Tid),
    candidate: &Candidate,
    (taken, cost): Spent<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Reached<'a>, String> {
    let pace = Pace::new(stop);
    let mut equations: Vec<Equation> = trace.equations.clone();
    // An equation whose use is refused goes last, where another way may come before it; refused
    // again it is left out. What was taken before it holds, so the proof goes on from there.
    let mut order: Vec<usize> = (0..equations.len()).collect();
    let mut late: FxHashSet<usize> = FxHashSet::default();
    let mut last = String::new();
    let (mut way, mut stuck) = (Way::new(task, start)?, 0);
    for _ in 0..MAX_TRIES {
        let closure = Closure::new(trace, &equations, (&order, &late), [way.at, goal], &pace).ok_or(LATE)?;
        if closure.find(way.at) != closure.find(goal) {
            return Err(format!("no proof is left: {last}"));
        }
        let before = way.steps.len();
        let done = way.on(trace, (&equations, &closure), goal, stop);
        *taken += way.steps.len() - before;
        stuck = if way.steps.len() > before { 0 } else { stuck + 1 };
        match done {
            Ok(()) => {
                let way = way.shorter(task, trace, (&equations, &closure), (start, goal), stop);
                return Ok(way.with_lets(task, candidate, cost));
            }
            Err((Failed::Hopeless(why), _)) => return Err(why),
            Err((Failed::Equation(_, why), _)) if *taken > MAX_TAKEN => {
                return Err(format!("too many steps were tried: {why}"));
            }
            Err((Failed::Equation(_, why), _)) if stuck >= MAX_STUCK => {
                return Err(format!("too many equations were refused: {why}"));
            }
            Err((Failed::Equation(k, why), used)) => {
                order.retain(|other| *other != k);
                if late.insert(k) {
                    order.push(k);
                }
                order.splice(0..0, equations.len()..equations.len() + used.len());
                equations.extend(used);
                last = why;
            }
        }
    }
    Err(format!("too many equations were refused: {last}"))
}

/// Steps that were taken.
struct Way<'a> {
    checker: Checker<'a>,
    /// The present program.
    at: Tid,
    steps: Vec<Step>,
    /// The flat programs before the first step and after each.
    programs: Vec<Id>,
}

impl<'a> Way<'a> {
    fn new(task: &Task<'a>, at: Tid) -> Result<Way<'a>, String> {
        let (checker, programs) = task.there()?;
        Ok(Way { checker, at, steps: task.from.before.clone(), programs })
    }

    /// Goes on to a term; where that fails, as far as it goes: why, and what was used until then.
    fn on(
        &mut self,
        trace: &mut Trace,
        (equations, closure): (&[Equation], &Closure),
        to: Tid,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), (Failed, Vec<Equation>)> {
        let mut linear = Linear::new(trace, equations, closure, &mut self.checker, self.at, stop);
        let done = linear.run(to);
        let Linear { steps, programs, used, at, .. } = linear;
        self.at = at;
        self.steps.extend(steps);
        self.programs.extend(programs);
        done.map_err(|why| (why, used))
    }

    /// The same way without detours, where the last proof leads from the start to the end.
    fn shorter(
        self,
        task: &Task<'a>,
        trace: &mut Trace,
        (equations, closure): (&[Equation], &Closure),
        (start, goal): (Tid, Tid),
        stop: &dyn Fn() -> bool,
    ) -> Way<'a> {
        let Ok(mut direct) = Way::new(task, start) else { return self };
        if equations.len() > trace.equations.len()
            && direct.on(trace, (equations, closure), goal, stop).is_ok()
            && direct.steps.len() < self.steps.len()
        {
            return direct;
        }
        self
    }

    /// The result with the lets that the checker takes.
    fn with_lets(
        mut self,
        task: &Task<'a>,
        candidate: &Candidate,
        cost: &mut dyn FnMut(&Terms, Id) -> f64,
    ) -> Reached<'a> {
        let mut candidate = candidate.clone();
        let (shared, refused) = lets::allowed(&mut self.checker, task, &candidate.shared, cost);
        let unproved = refused.map(|why| Unproved { cost: candidate.cost, why });
        if unproved.is_some() {
            candidate.cost = cost(&shared.0, shared.1);
            candidate.shared = shared;
        }
        Reached { way: self, candidate, unproved }
    }
}

/// Leaves out steps that undo each other, and takes the others again from the beginning, as a replay
/// does. `programs` stand before the first step and after each.
fn finished(task: &Task<'_>, steps: Vec<Step>, programs: &[Id], candidate: Candidate) -> Result<Derived, String> {
    // What holds is kept: there may be no time for a shorter one.
    let (mut best, mut steps) = (again(task, &steps, &candidate, true)?, steps);
    let mut good = |steps: &[Step]| !(task.stop)(PROOF_SHARE) && again(task, steps, &candidate, false).is_ok();
    let shorter = shorten::shorten(steps.clone(), programs, &mut good);
    if shorter != steps
        && let Ok(told) = again(task, &shorter, &candidate, true)
    {
        (best, steps) = (told, shorter);
    }
    let (terms, programs, changes) = best;
    Ok(Derived { candidate, steps, terms, programs, changes })
}

/// The programs in their arena, and the texts of what each step changes.
type Again = (Terms, Vec<Id>, Vec<(String, String)>);

/// Takes steps from the beginning; the texts are those of steps that are `told`.
fn again(task: &Task<'_>, steps: &[Step], candidate: &Candidate, told: bool) -> Result<Again, String> {
    let mut checker = task.checker()?;
    let mut programs = vec![checker.now];
    let mut changes = vec![];
    for step in steps {
        let before = if told { checker.shown(&step.at[0]) } else { None };
        checker.step(step)?;
        let text = |t: Option<String>| t.unwrap_or_else(|| "…".into());
        if told {
            changes.push((text(before), text(checker.shown(&step.at[0]))));
        }
        programs.push(checker.now);
    }
    checker.shared(&candidate.shared.0, candidate.shared.1)?;
    Ok((checker.terms, programs, changes))
}
