//! A definition becomes a schedule that was searched: by model alone, or by what was measured.
//!
//! Whoever calls says how a schedule is measured; nothing here starts a process or reads a clock.

use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::Def;
use crate::machine::Machine;
use crate::schedule::{self, Schedule, Step};
use crate::search::{Space as _, Tally};
use crate::stage::Graph;
use crate::tune::edits::offspring;
use crate::tune::explore::{Searched, Settings, Way, searched};
use crate::tune::record::{Known, Outcome};
use crate::tune::tree::Share;
use crate::tune::work::Work;
use crate::tune::{Model, Tree, example, tree};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing: the model alone decides.
    OneShot,
    /// The best schedules of one search.
    TopK,
    /// Rounds: what was measured corrects the model, and is where the next search begins.
    Autotune,
}

/// What is asked for.
pub struct Options<'a> {
    /// How much is measured.
    pub mode: Mode,
    /// The model.
    pub model: Model,
    /// The search by model.
    pub search: Settings,
    /// Schedules measured at most, those that were measured before included.
    pub measurements: usize,
    /// Whether the work has to end.
    pub stop: &'a dyn Fn() -> bool,
    /// What was measured before.
    pub known: Known,
}

/// Measures schedules, given as their steps; an outcome for each, in order.
pub type Measure<'a> = dyn FnMut(&[String]) -> Result<Vec<Outcome>> + 'a;

/// A schedule that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its steps, one a line.
    pub steps: String,
    /// Seconds that the model expected.
    pub expected: f64,
    /// Its work, which is counted whatever the model.
    pub work: Option<Work>,
    /// What the model expects this of.
    pub terms: Vec<f64>,
    /// What was measured, where it was.
    pub outcome: Option<Outcome>,
}

/// What a search found.
pub struct Tuned {
    /// The schedule.
    pub schedule: Schedule,
    /// Seconds that the model expects, as corrected at the end.
    pub expected: f64,
    /// What was measured of it.
    pub outcome: Option<Outcome>,
    /// The default schedule, as it was tried.
    pub default: Tried,
    /// All schedules that were tried, in order.
    pub tried: Vec<Tried>,
    /// What the search by model did.
    pub tally: Tally,
    /// The least cost in that search after so many schedules, each time that it fell.
    pub curve: Vec<(usize, f64)>,
    /// What else there is to say of it, in lines.
    pub notes: Vec<String>,
    /// The stages with what each takes, and what the model expects of each, where it says that of single ones; under no name
    /// what belongs to none.
    pub stages: Vec<(Share, Option<f64>)>,
    /// The model as corrected at the end.
    pub model: Model,
}

/// Without measurements the default schedule stays, unless the model expects so many times its speed: what the model does
/// not see, such as which values have registers and how many pages are open at once, is worth about that, and a search finds
/// the schedules that it overrates most.
const SURE: f64 = 3.0;
/// Schedules measured in one round.
const ROUND: usize = 8;
/// Schedules made from measured ones in one round, of which the model picks.
const OFFSPRING: usize = 160;
/// The best measured schedules, from which others are made.
const PARENTS: usize = 6;

/// A candidate.
struct Candidate {
    schedule: Schedule,
    tried: Tried,
}

/// The schedules of a definition at arguments, and the default one among them.
pub fn space<'a>(def: &'a Def, graph: Graph, args: &[Value], machine: &Machine) -> (Tree<'a>, Schedule) {
    let incoming = example::incoming(def, args);
    let standard = schedule::default_for(graph.clone(), &incoming, machine);
    let empty = rewritten(graph, &standard.steps, &incoming);
    (Tree::new(def, empty, incoming, *machine), standard)
}

/// The schedule that a search begins with for stated sizes where nothing changes bits.
pub fn plainly(graph: Graph, incoming: &[f64]) -> Schedule {
    rewritten(graph, &[], incoming)
}

/// The schedule that has those of some steps alone that change bits, for stated sizes.
fn rewritten(graph: Graph, steps: &[Step], incoming: &[f64]) -> Schedule {
    let (contractions, orders): (Vec<&Step>, Vec<&Step>) =
        steps.iter().filter(|s| s.is_rewrite()).partition(|s| matches!(s, Step::Contract { .. }));
    // Legal for the schedule that begins with them, too.
    let mut empty = Schedule::new(graph);
    contractions.into_iter().for_each(|step| drop(step.apply(&mut empty)));
    let mut empty = empty.only_for(incoming);
    orders.into_iter().for_each(|step| drop(step.apply(&mut empty)));
    empty
}

/// The schedules of a definition at arguments that begin with some steps, and the one of them in which all else is done
/// plainly.
///
/// # Errors
/// A step that is refused.
pub fn space_from<'a>(
    def: &'a Def,
    graph: Graph,
    args: &[Value],
    machine: &Machine,
    kept: &[Step],
) -> Result<(Tree<'a>, Schedule)> {
    let incoming = example::incoming(def, args);
    let empty = rewritten(graph, kept, &incoming);
    let mut begun = empty.clone();
    for step in kept.iter().filter(|s| !s.is_rewrite()) {
        step.apply(&mut begun).map_err(|why| {
            Diagnostic::user(format!("the step `{step}` is refused where sizes are known: {why}"))
                .note("hint: other sizes are said with `--size`, or by arguments")
        })?;
    }
    let tree = Tree::completing(def, empty, begun, (incoming, *machine));
    let plain = tree.complete(&tree.root());
    Ok((tree, plain))
}

/// Schedules of more steps are not taken apart: each part has to be lowered.
const PARTS: usize = 400;

/// What a model expects of a schedule of a space after each of its steps, and before all of them, beside the list of steps;
/// where that cannot be said, nothing.
pub fn grown(tree: &Tree<'_>, model: &Model, schedule: &Schedule) -> Vec<Option<f64>> {
    let mut s = tree.empty().clone();
    let own = schedule.steps.iter().skip(s.steps.len());
    if schedule.steps.len() > PARTS || !schedule.steps.starts_with(&s.steps) {
        return vec![];
    }
    let mut all = vec![s.clone()];
    for step in own {
        if step.apply(&mut s).is_err() {
            return vec![];
        }
        all.push(s.clone());
    }
    all.par_iter().map(|s| Some(model.seconds(&tree.counted(model, s)?.1))).collect()
}

/// Searches a schedule for a definition at arguments.
///
/// # Errors
/// Those of measuring; single schedules that fail are outcomes.
pub fn tune(
    def: &Def,
    graph: Graph,
    args: &[Value],
    machine: &Machine,
    options: &Options<'_>,
    measure: &mut Measure<'_>,
) -> Result<Tuned> {
    search_in(space(def, graph, args, machine), SURE, options, measure)
}

/// Searches what steps leave open, which stay as they are. What stands for the default schedule is the one in which all else
/// is done plainly.
///
/// # Errors
/// A step that is refused; those of measuring.
pub fn complete(
    def: &Def,
    (graph, kept): (Graph, &[Step]),
    args: &[Value],
    machine: &Machine,
    options: &Options<'_>,
    measure: &mut Measure<'_>,
) -> Result<Tuned> {
    search_in(space_from(def, graph, args, machine, kept)?, 1.0, options, measure)
}

fn search_in(
    (tree, standard): (Tree<'_>, Schedule),
    sure: f64,
    options: &Options<'_>,
    measure: &mut Measure<'_>,
) -> Result<Tuned> {
    let model = options.model.clone();
    let mut run = Run { tree, options, model, all: vec![], known: BTreeSet::new(), chosen: None, sure };
    let counted = run.tree.counted(&run.model, &standard);
    run.add(standard, counted);
    let Searched { found, tally, curve, notes } = searched(&run.tree, &run.model, &options.search, options.stop);
    if options.search.way == Way::Toy {
        run.chosen = found.first().map(|j| tree::steps(&j.schedule));
    }
    found.into_iter().for_each(|j| run.add(j.schedule, Some((j.work, j.terms))));
    match options.mode {
        Mode::OneShot => {}
        Mode::TopK => run.measure_best(options.measurements, false, measure)?,
        Mode::Autotune => run.rounds(measure)?,
    }
    run.end(tally, (curve, notes))
}

struct Run<'a> {
    tree: Tree<'a>,
    options: &'a Options<'a>,
    model: Model,
    all: Vec<Candidate>,
    /// The steps of all of them.
    known: BTreeSet<String>,
    /// The steps that a cost other than the model's has chosen, where nothing is measured.
    chosen: Option<String>,
    /// How many times its speed the model has to expect where the first one is not to stay.
    sure: f64,
}

impl Run<'_> {
    /// Adds a candidate, if it is new.
    fn add(&mut self, schedule: Schedule, counted: Option<(Work, Vec<f64>)>) {
        let steps = tree::steps(&schedule);
        if !self.known.insert(steps.clone()) {
            return;
        }
        let expected = counted.as_ref().map_or(f64::INFINITY, |(_, terms)| self.model.seconds(terms));
        let (work, terms) = counted.map_or((None, vec![]), |(work, terms)| (Some(work), terms));
        self.all.push(Candidate { schedule, tried: Tried { steps, expected, work, terms, outcome: None } });
    }

    fn measured(&self) -> usize {
        self.all.iter().filter(|c| c.tried.outcome.is_some()).count()
    }

    /// Measures what the model expects to be best, the default schedule first, until so many were measured in all.
    fn measure_best(&mut self, most: usize, explore: bool, measure: &mut Measure<'_>) -> Result<()> {
        while self.measured() < most && !(self.options.stop)() {
            let mut open: Vec<usize> = (0..self.all.len()).filter(|k| self.all[*k].tried.outcome.is_none()).collect();
            // The default schedule is what others are compared with.
            open.sort_by(|a, b| {
                let expected = |k: &usize| if *k == 0 { 0.0 } else { self.all[*k].tried.expected };
                expected(a).total_cmp(&expected(b))
            });
            let count = ROUND.min(most - self.measured());
            let rest = open.split_off(count.min(open.len()));
            // One that the model thinks less of, so that it learns where it is wrong.
            if let (true, Some(doubtful)) = (explore && open.len() == count && count > 1, rest.get(rest.len() / 3)) {
                open[count - 1] = *doubtful;
            }
            if open.is_empty() {
                return Ok(());
            }
            self.measure_all(&open, measure)?;
        }
        Ok(())
    }

    /// Measures candidates. What was measured before has its outcome from there, and only now: so a run that goes on from
    /// records takes the same way as one that was never interrupted.
    fn measure_all(&mut self, open: &[usize], measure: &mut Measure<'_>) -> Result<()> {
        let mut new = vec![];
        for k in open.iter().copied() {
            let tried = &mut self.all[k].tried;
            tried.outcome = self.options.known.outcomes.get(&tried.steps).cloned();
            new.extend(tried.outcome.is_none().then_some(k));
        }
        if new.is_empty() {
            return Ok(());
        }
        let steps: Vec<String> = new.iter().map(|k| self.all[*k].tried.steps.clone()).collect();
        for (k, outcome) in new.into_iter().zip(measure(&steps)?) {
            self.all[k].tried.outcome = Some(outcome);
        }
        Ok(())
    }

    /// Measures, corrects the model, makes new schedules of the best ones, and again.
    fn rounds(&mut self, measure: &mut Measure<'_>) -> Result<()> {
        let most = self.options.measurements;
        let mut round = 0;
        while self.measured() < most && !(self.options.stop)() {
            let (before, known) = (self.measured(), self.all.len());
            self.measure_best((before + ROUND).min(most), before > 0, measure)?;
            self.learn();
            if self.measured() >= most || (self.options.stop)() {
                return Ok(());
            }
            round += 1;
            let seed = self.options.search.seed.wrapping_add(round);
            let made = offspring(&self.tree, &self.model, &self.parents(), OFFSPRING, seed);
            made.into_iter().for_each(|j| self.add(j.schedule, Some((j.work, j.terms))));
            if self.measured() == before && self.all.len() == known {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Fits the model to what was measured, and judges all candidates again.
    fn learn(&mut self) {
        let sample = |c: &Candidate| match (&c.tried.work, &c.tried.outcome) {
            (Some(_), Some(Outcome::Seconds { min, .. })) => Some((c.tried.terms.clone(), *min)),
            _ => None,
        };
        let samples: Vec<(Vec<f64>, f64)> = self.all.iter().filter_map(sample).collect();
        self.model = self.options.model.fitted(&samples);
        for c in &mut self.all {
            c.tried.expected = c.tried.work.map_or(f64::INFINITY, |_| self.model.seconds(&c.tried.terms));
        }
    }

    fn parents(&self) -> Vec<Schedule> {
        let mut best: Vec<&Candidate> = self.all.iter().collect();
        // What was measured comes first, then what is expected to be good.
        best.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)).then(a.tried.expected.total_cmp(&b.tried.expected)));
        best.into_iter().take(PARENTS).map(|c| c.schedule.clone()).collect()
    }

    /// The best: of what was measured, where anything was.
    fn end(mut self, tally: Tally, (curve, notes): (Vec<(usize, f64)>, Vec<String>)) -> Result<Tuned> {
        let any = self.all.iter().any(|c| seconds(c).is_finite());
        let order = |a: &Candidate, b: &Candidate| match any {
            true => seconds(a).total_cmp(&seconds(b)),
            false => a.tried.expected.total_cmp(&b.tried.expected),
        };
        let best = (0..self.all.len()).min_by(|a, b| order(&self.all[*a], &self.all[*b]));
        let mut best = best.ok_or_else(|| Diagnostic::bug("not even the default schedule was tried"))?;
        if !any && self.all[0].tried.expected < self.sure * self.all[best].tried.expected {
            best = 0;
        }
        if let (false, Some(steps)) = (any, &self.chosen) {
            best = self.all.iter().position(|c| c.tried.steps == *steps).unwrap_or(best);
        }
        let tried: Vec<Tried> = self.all.iter().map(|c| c.tried.clone()).collect();
        let default = tried[0].clone();
        let Candidate { schedule, tried: Tried { expected, outcome, .. }, .. } = self.all.swap_remove(best);
        let seconds = |w: &Work| (!self.model.reads_features()).then(|| self.model.seconds(&w.0));
        let stages = self.tree.by_stage(&schedule).unwrap_or_default();
        let expects = |s: Share| {
            let seconds = seconds(&s.work);
            (s, seconds)
        };
        let stages = stages.into_iter().map(expects).collect();
        let model = self.model.clone();
        Ok(Tuned { model, schedule, expected, outcome, default, tried, tally, curve, notes, stages })
    }
}

/// What was measured; infinitely many seconds where nothing was.
fn seconds(c: &Candidate) -> f64 {
    c.tried.outcome.as_ref().map_or(f64::INFINITY, Outcome::seconds)
}
