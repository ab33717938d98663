//! What networks learn from, and how.

use super::network::Setting;
use crate::cost::Model;
use crate::ir::{Def, Program};
use crate::rewrite::agent::Bind;
use crate::rewrite::inline::recursive;
use crate::rules::Level;
use crate::search::Algorithm;

/// A definition to learn from.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// Its program.
    pub program: &'a Program,
    /// The definition.
    pub def: &'a Def,
}

/// The definitions of a program that a search can begin with: those with a body, which do not call themselves.
pub fn searchable(program: &Program) -> impl Iterator<Item = &Def> {
    let recursive = recursive(program);
    program.defs.values().filter(move |def| def.term().is_some() && !recursive.contains(&def.fun))
}

/// How to train.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// The search that makes experience.
    pub engine: Algorithm,
    /// States that a search evaluates at most.
    pub budget: usize,
    /// States that random walks from known ones evaluate at most, after each search.
    pub walks: usize,
    /// States that the first search of a program evaluates at most by moves of bindings alone, before any other;
    /// none where this is 0, or bindings are placed. To name what stands twice takes five moves and more, of which
    /// each makes the term dearer: a walk at random hardly ever makes them, and what never was met is not learned.
    pub binding: usize,
    /// Moves that a search makes at most.
    pub depth: usize,
    /// Moves that the network tells apart: those of its setting.
    pub steps: usize,
    /// What becomes of bindings.
    pub bind: Bind,
    /// What rules keep.
    pub level: Level,
    /// The cost model.
    pub model: Model,
    /// Where chance begins.
    pub seed: u64,
    /// Programs that an epoch searches at most.
    pub programs: usize,
    /// States that an epoch learns from at most.
    pub states: usize,
    /// How often an epoch goes through them.
    pub passes: usize,
    /// States in a batch.
    pub batch: usize,
    /// Whether as many states are learned from at each distance from the best one of their program; else all states
    /// are alike, and those on the way to the best one, which are few, are hardly ever seen.
    pub even: bool,
    /// Whether what is learned is the fall of what a state costs over the best one of its program, rather than that
    /// of its cost: then it is great wherever the best state is in reach, though it be little cheaper. Costs near 10
    /// that fall by 1 are else lost in the errors of costs that fall to 0.
    pub above: bool,
}

impl Settings {
    /// The choices made where none are asked for. Batches are those of the paper (Table 2).
    pub fn standard() -> Settings {
        Settings {
            engine: Algorithm::Astar,
            budget: 1000,
            walks: 200,
            binding: 0,
            depth: 30,
            steps: Setting::small().steps,
            bind: Bind::Placed,
            level: Level::Real,
            model: Model::Knossos,
            seed: 0,
            programs: 40,
            states: 1500,
            passes: 2,
            batch: 16,
            even: false,
            above: false,
        }
    }
}
