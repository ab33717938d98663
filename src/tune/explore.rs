//! Searches of spaces by what is expected alone.

use super::edits::offspring;
use super::estimate::{Estimates, Guess, State};
use super::model::Model;
use super::toy;
use super::tree::{Judge, Judged, Tree};
use crate::search::{Cost, Found, Limits, Mb2fbs, Mcts, Priority, Space, Tally, greedy, mb2fbs, mcts, random};
use rayon::prelude::*;

/// Schedules that are lowered at the end of a search by estimates, where nobody asks for more.
const LOWERED: usize = 24;
/// Stages, in all of them together, that edits of these schedules lower; the edits of one round, and the best schedules that
/// are edited; how much better the best of a round is where another one follows.
const EDITED: usize = 2000;
const ROUND: usize = 32;
const PARENTS: usize = 4;
const BETTER: f64 = 0.995;
/// Estimates that judging what a schedule is lowered to is worth; and how much narrower a beam is that does so.
const DEAR: usize = 10;
const NARROWER: usize = 5;

/// A search of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Always the best next decision.
    Greedy,
    /// Beam search.
    Beam,
    /// Memory-bounded best-first beam search, as published for schedules: 30 forward, 2 onward, more than one pass.
    Mb2fbs,
    /// Monte-Carlo tree search.
    Mcts,
    /// Random decisions.
    Random,
    /// The published toy system: its schedule trees in place of decisions, its cost in place of the model, its beam.
    Toy,
}

/// What a search may do.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which search.
    pub way: Way,
    /// States that a beam keeps; a fifth of that where each has to be lowered.
    pub beam: usize,
    /// States that are estimated at most; a tenth of that where each has to be lowered.
    pub evaluations: usize,
    /// The seed of chance.
    pub seed: u64,
    /// How many schedules are wanted.
    pub keep: usize,
}

/// What a search finds.
pub struct Searched {
    /// The best schedules, best first: by the model, or by the published cost of the toy system.
    pub found: Vec<Judged>,
    /// What was done.
    pub tally: Tally,
    /// The least cost after so many that were judged, each time that it fell.
    pub curve: Vec<(usize, f64)>,
    /// What else there is to say of it, in lines.
    pub notes: Vec<String>,
}

/// The best schedules that a search finds, best first, with what there is to say of it.
pub fn searched(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> Searched {
    if settings.way != Way::Toy {
        return decided(tree, model, settings, stop);
    }
    let limits = (settings.beam, settings.evaluations, settings.keep);
    let toy::Found { all, standard, refused, tally, curve } = toy::search(tree, model, limits, stop);
    let cost = all.first().map(|(cost, _)| *cost);
    let mut notes = vec![match cost {
        Some(cost) => format!("published cost {cost:.4e}; {standard:.4e} with all inlined"),
        None => {
            format!("no tree that was met can be said in our steps; published cost {standard:.4e} with all inlined")
        }
    }];
    let trees = |n: usize| if n == 1 { "1 cheaper tree is".to_string() } else { format!("{n} cheaper trees are") };
    notes.extend(refused.into_iter().map(|(why, n)| format!("{} refused: {why}", trees(n))));
    Searched { found: all.into_iter().map(|(_, judged)| judged).collect(), tally, curve, notes }
}

/// The best schedules that a setting of memory-bounded best-first beam search finds, best first, of so many that are judged
/// and so many that are kept.
pub fn by(
    tree: &Tree<'_>,
    model: &Model,
    settings: &Mb2fbs,
    (evaluations, keep): (usize, usize),
    stop: &dyn Fn() -> bool,
) -> (Vec<Judged>, Tally) {
    let Searched { found, tally, .. } = found(tree, model, (evaluations, keep), stop, &Among::Setting(*settings));
    (found, tally)
}

/// The best schedules that a search finds, best first.
pub fn search(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> (Vec<Judged>, Tally) {
    let Searched { found, tally, .. } = searched(tree, model, settings, stop);
    (found, tally)
}

/// The same, as said, in the space of decisions.
fn decided(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> Searched {
    found(tree, model, (settings.evaluations, settings.keep), stop, &Among::Said(*settings))
}

/// What a search of decisions goes by.
enum Among {
    /// The words of a user.
    Said(Settings),
    /// A setting of one search.
    Setting(Mb2fbs),
}

/// The best schedules that a search of decisions finds. What can be estimated is, and the best are then lowered and judged by
/// that; of other programs each schedule is lowered, and so many fewer are judged.
fn found(
    tree: &Tree<'_>,
    model: &Model,
    (evaluations, keep): (usize, usize),
    stop: &dyn Fn() -> bool,
    among: &Among,
) -> Searched {
    let estimates = if model.reads_features() { None } else { Estimates::of(tree) };
    if let Some(space) = estimates {
        // To lower a large program takes long.
        let few = (EDITED / tree.stages().len().max(1)).clamp(2, LOWERED);
        let mut judge = Guess::new(model, keep.max(few));
        let limits = Limits { evaluations, stop };
        let (tally, curve) = run(&space, &mut judge, &limits, among, (tree.depth(), 1));
        let found = edited(tree, model, lowered(tree, model, &space, judge, keep), keep, stop);
        return Searched { found, tally, curve, notes: vec![] };
    }
    let limits = Limits { evaluations: evaluations.div_ceil(DEAR), stop };
    let mut judge = Judge::new(model, keep);
    let (tally, curve) = run(tree, &mut judge, &limits, among, (tree.depth(), NARROWER));
    Searched { found: judge.best(), tally, curve, notes: vec![] }
}

/// The schedules that are estimated to be best, judged by what they are lowered to.
fn lowered(tree: &Tree<'_>, model: &Model, space: &Estimates<'_>, of: Guess<'_>, keep: usize) -> Vec<Judged> {
    let states = of.best();
    let one = |s: &State| Judge::new(model, 1).judged(tree, space.schedule(s));
    let each: Vec<Option<Judged>> = states.par_iter().map(one).collect();
    let mut kept = Judge::new(model, keep);
    each.into_iter().flatten().for_each(|j| kept.keep(j));
    kept.best()
}

/// The best of schedules and of edits of the best of them, in rounds, as long as these become better: estimates do not see all
/// that decides what a schedule is lowered to.
fn edited(tree: &Tree<'_>, model: &Model, mut found: Vec<Judged>, keep: usize, stop: &dyn Fn() -> bool) -> Vec<Judged> {
    let rounds = EDITED / (ROUND * tree.stages().len().max(1));
    for round in 0..rounds as u64 {
        let Some(before) = found.first().map(|j| j.expected).filter(|_| !stop()) else { break };
        let parents: Vec<_> = found.iter().take(PARENTS).map(|j| j.schedule.clone()).collect();
        let mut kept = Judge::new(model, keep);
        found.into_iter().chain(offspring(tree, model, &parents, ROUND, round)).for_each(|j| kept.keep(j));
        found = kept.best();
        if found.first().is_none_or(|j| j.expected > BETTER * before) {
            break;
        }
    }
    found
}

fn run<S: Space, C: Cost<S>>(
    space: &S,
    judge: &mut C,
    limits: &Limits<'_>,
    among: &Among,
    (depth, narrower): (usize, usize),
) -> (Tally, Vec<(usize, f64)>) {
    let settings = match among {
        Among::Said(settings) => settings,
        Among::Setting(by) => {
            let Found { tally, curve, .. } = mb2fbs(space, judge, limits, by);
            return (tally, curve);
        }
    };
    let (seed, width) = (settings.seed, settings.beam.div_ceil(narrower).max(1));
    let Found { tally, curve, .. } = match settings.way {
        Way::Greedy => greedy(space, judge, limits),
        Way::Beam | Way::Toy => mb2fbs(space, judge, limits, &Mb2fbs::beam(width)),
        Way::Mb2fbs => {
            let onward = (width / 16).clamp(1, 4);
            let published = Mb2fbs::uncontrolled(width.saturating_sub(onward).max(1), onward);
            let settings = Mb2fbs { priority: Priority::Due { depth }, passes: 2, ..published };
            mb2fbs(space, judge, limits, &settings)
        }
        Way::Mcts => mcts(space, judge, limits, &Mcts::published(depth, seed)),
        Way::Random => random(space, judge, limits, depth, seed),
    };
    (tally, curve)
}
