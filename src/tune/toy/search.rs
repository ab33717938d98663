//! The space of schedule trees: from the default schedule ten transformers at most, searched as published by a beam of 300.
//!
//! Any search of the library can search it. The beam runs over all trees; then the cheapest that our steps can say is taken,
//! and of those that are cheaper the reasons are kept.

use super::cost::Costs;
use super::counts::Counts;
use super::functions::Functions;
use super::steps;
use super::transform::{Transformer, transformers};
use super::tree;
use crate::schedule::Schedule;
use crate::search::{Cost, Limits, Mb2fbs, Space, Tally, mb2fbs};
use crate::tune::model::Model;
use crate::tune::tree::{Judge as Modelled, Judged, Tree};
use rayon::prelude::*;
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The published width of the beam, and how many transformers are taken at most.
pub const BEAM: usize = 300;
/// See [`BEAM`].
pub const DEPTH: usize = 10;
/// Trees that are evaluated at most.
pub const EVALUATIONS: usize = 1_000_000;
/// The cheapest trees that are kept, of which the first that can be said is taken.
const KEPT: usize = 300;

/// The space of trees.
pub struct Toy {
    /// The functions.
    pub functions: Functions,
    start: Schedule,
    depth: usize,
}

/// A tree, and how many transformers led to it.
#[derive(Clone, Debug)]
pub struct State {
    /// The tree.
    pub tree: Arc<tree::Tree>,
    depth: usize,
}

impl Toy {
    /// The trees of a definition at stated sizes, of so many transformers.
    pub fn new(space: &Tree<'_>, depth: usize) -> Toy {
        Toy { functions: Functions::of(space.start(), space.special()), start: space.start().clone(), depth }
    }

    /// What a tree takes.
    pub fn counts(&self, tree: &tree::Tree) -> Counts {
        Costs::new(&self.functions).of(tree)
    }

    /// The tree as our steps.
    ///
    /// # Errors
    /// Why they cannot say it.
    pub fn schedule(&self, tree: &tree::Tree) -> Result<Schedule, String> {
        steps::schedule(&self.functions, tree, &self.start)
    }
}

impl Space for Toy {
    type State = State;
    type Move = Transformer;

    fn root(&self) -> State {
        State { tree: Arc::new(tree::Tree::standard(&self.functions)), depth: 0 }
    }

    fn moves(&self, state: &State) -> Vec<Transformer> {
        if self.terminal(state) { vec![] } else { transformers(&self.functions, &state.tree) }
    }

    fn apply(&self, state: &State, by: &Transformer) -> State {
        let tree = by.apply(&self.functions, &state.tree).map_or_else(|| state.tree.clone(), Arc::new);
        State { tree, depth: state.depth + 1 }
    }

    fn terminal(&self, state: &State) -> bool {
        state.depth >= self.depth
    }

    fn depth(&self, state: &State) -> usize {
        state.depth
    }

    fn key(&self, state: &State, level: usize) -> u64 {
        let mut hash = FxHasher::default();
        for plan in &state.tree.plans {
            match (plan, level) {
                // Coarsest is what is inlined, then where the rest is computed.
                (tree::Plan::Inline, _) => 0u8.hash(&mut hash),
                (tree::Plan::Own { .. }, 0) => 1u8.hash(&mut hash),
                (tree::Plan::Own { compute, storage, .. }, 1) => (compute, storage).hash(&mut hash),
                (plan @ tree::Plan::Own { .. }, _) => plan.hash(&mut hash),
            }
        }
        hash.finish()
    }

    /// Every tree is a whole schedule.
    fn solution(&self, _: &State) -> bool {
        true
    }
}

/// Trees by their published cost. One that was met before costs more than all, so that a beam keeps others.
#[derive(Default)]
pub struct Judge {
    seen: FxHashSet<Arc<tree::Tree>>,
    best: BTreeMap<(u64, usize), Arc<tree::Tree>>,
    count: usize,
}

impl Judge {
    /// The cheapest trees with their costs, cheapest first; of equal ones that which was met first.
    pub fn best(self) -> Vec<(f64, Arc<tree::Tree>)> {
        self.best.into_iter().map(|((cost, _), tree)| (f64::from_bits(cost), tree)).collect()
    }
}

impl Cost<Toy> for Judge {
    fn costs(&mut self, toy: &Toy, states: &[State]) -> Vec<f64> {
        let new: Vec<bool> = states.iter().map(|s| self.seen.insert(s.tree.clone())).collect();
        let one = |(s, new): (&State, &bool)| if *new { toy.counts(&s.tree).cost() } else { f64::INFINITY };
        let costs: Vec<f64> = states.par_iter().zip(&new).map(one).collect();
        for (s, cost) in states.iter().zip(&costs).filter(|(_, c)| c.is_finite()) {
            self.count += 1;
            // Costs are not negative: their bits have their order.
            self.best.insert((cost.to_bits(), self.count), s.tree.clone());
            if self.best.len() > KEPT {
                self.best.pop_last();
            }
        }
        costs
    }
}

/// What the published system finds.
pub struct Found {
    /// The cheapest trees that our steps can say, with their published costs.
    pub all: Vec<(f64, Judged)>,
    /// What the default tree costs.
    pub standard: f64,
    /// Trees that were cheaper than the first of those that are found, and the reasons why our steps cannot say them.
    pub refused: BTreeMap<String, usize>,
    /// What was done.
    pub tally: Tally,
    /// The least cost after so many trees, each time that it fell.
    pub curve: Vec<(usize, f64)>,
}

/// Searches the trees of a definition with a beam of so many, and judges what is found by a model of ours, too.
pub fn search(
    space: &Tree<'_>,
    model: &Model,
    (beam, evaluations, keep): (usize, usize, usize),
    stop: &dyn Fn() -> bool,
) -> Found {
    let toy = Toy::new(space, DEPTH);
    let mut judge = Judge::default();
    let found = mb2fbs(&toy, &mut judge, &Limits { evaluations, stop }, &Mb2fbs::beam(beam.max(1)));
    let standard = toy.counts(&toy.root().tree).cost();
    let modelled = Modelled::new(model, keep);
    let mut out = Found { all: vec![], standard, refused: BTreeMap::new(), tally: found.tally, curve: found.curve };
    for (cost, tree) in judge.best() {
        if out.all.len() >= keep {
            break;
        }
        let made = toy
            .schedule(&tree)
            .and_then(|s| modelled.judged(space, s).ok_or_else(|| "it cannot be lowered for these sizes".to_string()));
        match made {
            Ok(judged) => out.all.push((cost, judged)),
            Err(why) if out.all.is_empty() => *out.refused.entry(why).or_insert(0) += 1,
            Err(_) => {}
        }
    }
    out
}
