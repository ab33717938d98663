//! Searches of the space by model alone.

use super::model::Model;
use super::tree::{Judge, Judged, Tree};
use crate::search::{Limits, Mb2fbs, Mcts, Priority, Tally, greedy, mb2fbs, mcts, random};

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

/// The best schedules that a search finds, best first.
pub fn search(tree: &Tree<'_>, model: &Model, settings: &Settings, stop: &dyn Fn() -> bool) -> (Vec<Judged>, Tally) {
    let limits = Limits { evaluations: settings.evaluations, stop };
    let mut judge = Judge::new(model, settings.keep);
    let (depth, seed, width) = (tree.depth(), settings.seed, settings.beam.max(1));
    let tally = match settings.way {
        Way::Greedy => greedy(tree, &mut judge, &limits).tally,
        Way::Beam => mb2fbs(tree, &mut judge, &limits, &Mb2fbs::beam(width)).tally,
        Way::Mb2fbs => {
            let onward = (width / 16).clamp(1, 4);
            let published = Mb2fbs::uncontrolled(width.saturating_sub(onward).max(1), onward);
            let settings = Mb2fbs { priority: Priority::Due { depth }, passes: 2, ..published };
            mb2fbs(tree, &mut judge, &limits, &settings).tally
        }
        Way::Mcts => mcts(tree, &mut judge, &limits, &Mcts::published(depth, seed)).tally,
        Way::Random => random(tree, &mut judge, &limits, depth, seed).tally,
    };
    (judge.best(), tally)
}
