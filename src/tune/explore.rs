//! Searches of the space: by model alone, and from schedules that were measured.

use super::model::Model;
use super::tree::{Choice, Judge, Judged, Place, Tree};
use crate::schedule::plan::Schedule;
use crate::schedule::tiling::blocks;
use crate::search::{Limits, Mb2fbs, Mcts, Priority, Tally, greedy, mb2fbs, mcts, random};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

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

/// Schedules that differ from others in one decision or a few, judged, best first.
pub fn mutations(tree: &Tree<'_>, model: &Model, parents: &[Vec<Choice>], count: usize, seed: u64) -> Vec<Judged> {
    let whole: Vec<Vec<Choice>> = parents.iter().map(|p| padded(tree, p)).collect();
    let judge = Judge::new(model, count);
    let one = |k: usize| {
        let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9).wrapping_add(k as u64));
        let mut choices = whole.get(rng.random_range(0..whole.len().max(1)))?.clone();
        for _ in 0..rng.random_range(1..=2) {
            choices = mutated(tree, &choices, &mut rng);
        }
        judge.judged(tree, &tree.build(&choices))
    };
    let each: Vec<Option<Judged>> = (0..count).into_par_iter().map(one).collect();
    let mut kept = Judge::new(model, count);
    each.into_iter().flatten().for_each(|j| kept.keep(j));
    kept.best()
}

/// Choices for all stages: what is not decided is what stands there without a decision.
fn padded(tree: &Tree<'_>, choices: &[Choice]) -> Vec<Choice> {
    let mut out = choices.to_vec();
    while let Some(stage) = tree.stages().get(out.len()) {
        let s = tree.schedule(&out);
        out.push(tree.plain(&s, *stage));
    }
    out
}

/// The choices with another decision for one stage.
fn mutated(tree: &Tree<'_>, choices: &[Choice], rng: &mut StdRng) -> Vec<Choice> {
    let at = rng.random_range(0..choices.len().max(1));
    let mut out = choices.to_vec();
    let (Some(stage), Some(choice)) = (tree.stages().get(at).copied(), out.get_mut(at)) else { return out };
    let mut s: Schedule = tree.schedule(&choices[..at]);
    let places = tree.places(&s, stage);
    if rng.random_bool(0.4) && places.len() > 1 {
        choice.place = places[rng.random_range(0..places.len())];
    }
    if choice.place != Place::Inline && rng.random_bool(0.75) {
        tree.place(&mut s, stage, choice.place);
        let tiles = tree.tilings(&s, stage);
        if rng.random_bool(0.5) {
            let block = choice.tiling.block;
            choice.tiling = tiles[rng.random_range(0..tiles.len())];
            choice.tiling.block = block;
        }
        let blocks = blocks(&s, stage, &choice.tiling);
        if rng.random_bool(0.6) {
            choice.tiling = blocks[rng.random_range(0..blocks.len())];
        }
    }
    out
}
