//! Searches of spaces by what is expected alone.

use super::model::Model;
use super::toy;
use super::tree::{Judge, Judged, Tree};
use crate::search::{Found, Limits, Mb2fbs, Mcts, Priority, Tally, greedy, mb2fbs, mcts, random};

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
    /// States that a beam keeps.
    pub beam: usize,
    /// States that are judged at most.
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
    let mut judge = Judge::new(model, keep);
    let tally = mb2fbs(tree, &mut judge, &Limits { evaluations, stop }, settings).tally;
    (judge.best(), tally)
}

/// The best schedules that a search finds, best first.
pub fn search(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> (Vec<Judged>, Tally) {
    let Searched { found, tally, .. } = searched(tree, model, settings, stop);
    (found, tally)
}

/// The same, as said, in the space of decisions.
fn decided(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> Searched {
    let limits = Limits { evaluations: settings.evaluations, stop };
    let mut judge = Judge::new(model, settings.keep);
    let (depth, seed, width) = (tree.depth(), settings.seed, settings.beam.max(1));
    let Found { tally, curve, .. } = match settings.way {
        Way::Greedy => greedy(tree, &mut judge, &limits),
        Way::Beam | Way::Toy => mb2fbs(tree, &mut judge, &limits, &Mb2fbs::beam(width)),
        Way::Mb2fbs => {
            let onward = (width / 16).clamp(1, 4);
            let published = Mb2fbs::uncontrolled(width.saturating_sub(onward).max(1), onward);
            let settings = Mb2fbs { priority: Priority::Due { depth }, passes: 2, ..published };
            mb2fbs(tree, &mut judge, &limits, &settings)
        }
        Way::Mcts => mcts(tree, &mut judge, &limits, &Mcts::published(depth, seed)),
        Way::Random => random(tree, &mut judge, &limits, depth, seed),
    };
    Searched { found: judge.best(), tally, curve, notes: vec![] }
}
