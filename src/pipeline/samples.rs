//! A random pipeline becomes schedules of it to measure: the default one, those that a search likes, edits, and chance.
//!
//! A model that learns from them has to tell good schedules from those that are nearly as good, as well as from bad ones.

use super::tuning::space;
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::schedule::Schedule;
use crate::search::Space;
use crate::stage::{Graph, extract};
use crate::tune::edits::edited;
use crate::tune::explore::{Settings, Way, search};
use crate::tune::random::Pipeline;
use crate::tune::{Model, Tree, example, tree};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;

/// Schedules that a search finds, of which the best and some others are taken; edits of the default one; random decisions.
const FOUND: usize = 24;
const BEST: usize = 3;
const OTHERS: usize = 3;
const EDITED: usize = 5;
const WALKED: usize = 5;
/// Tries for each of them.
const TRIES: usize = 6;
/// What is expected to take so many times as long as the default schedule is not worth the time to measure it.
const SLOW: f64 = 8.0;

/// A pipeline at the sizes where time is measured.
pub struct Case {
    /// The program.
    pub program: Program,
    /// The arguments of its definition.
    pub args: Vec<Value>,
    /// Its sizes.
    pub sizes: Vec<(String, u64)>,
}

impl Case {
    /// The case of a pipeline.
    ///
    /// # Errors
    /// A bug: pipelines are programs.
    pub fn of(pipeline: &Pipeline) -> Result<Case> {
        let program = crate::types::program(&Source::new("main", &pipeline.text))?;
        let sizes = pipeline.large.clone();
        let args = example::arguments(definition(&program)?, &sizes, pipeline.seed)?;
        Ok(Case { program, args, sizes })
    }

    /// Its definition.
    ///
    /// # Errors
    /// A bug: there is one.
    pub fn def(&self) -> Result<&Def> {
        definition(&self.program)
    }

    /// Its schedules, and the default one.
    ///
    /// # Errors
    /// A bug: pipelines are staged.
    pub fn space(&self, machine: &Machine) -> Result<(Tree<'_>, Schedule)> {
        Ok(space(self.def()?, self.graph()?, &self.args, machine))
    }

    /// Its stages.
    ///
    /// # Errors
    /// A bug: pipelines are staged.
    pub fn graph(&self) -> Result<Graph> {
        extract(&self.program, self.def()?).map_err(|u| u.diagnostic(&self.program))
    }
}

fn definition(program: &Program) -> Result<&Def> {
    program.named("main").first().copied().ok_or_else(|| Diagnostic::bug("a pipeline has no definition"))
}

/// Schedules of a space by their steps, the default one first. The same seed gives the same ones.
pub fn schedules(tree: &Tree<'_>, standard: &Schedule, seed: u64) -> Vec<String> {
    let model = Model::default();
    let mut rng = StdRng::seed_from_u64(seed ^ 0x7363_6865_6475_6c65);
    let first = tree::steps(standard);
    let limit = tree.work(standard).map_or(f64::INFINITY, |w| SLOW * model.seconds(&w.0));
    let mut taken = Taken { tree, model: &model, limit, known: BTreeSet::new(), all: vec![] };
    taken.known.insert(first.clone());
    taken.all.push(first);
    let settings = Settings { way: Way::Beam, beam: 3, evaluations: 250, seed, keep: FOUND };
    let (mut found, _) = search(tree, &model, &settings, &|| false);
    let mut rest = found.split_off(found.len().min(BEST));
    rest.shuffle(&mut rng);
    found.extend(rest.into_iter().take(OTHERS));
    for j in &found {
        taken.add(&j.schedule);
    }
    let parents: Vec<Schedule> =
        std::iter::once(standard.clone()).chain(found.into_iter().map(|j| j.schedule)).collect();
    let many = |count: usize, taken: &mut Taken<'_, '_>, one: &mut dyn FnMut() -> Option<Schedule>| {
        let mut left = count;
        for _ in 0..count * TRIES {
            if left > 0 && one().is_some_and(|s| taken.add(&s)) {
                left -= 1;
            }
        }
    };
    many(EDITED, &mut taken, &mut || {
        let parent = if rng.random_bool(0.6) { parents.first() } else { parents.choose(&mut rng) };
        (0..rng.random_range(1..=3)).try_fold(parent?.clone(), |s, _| edited(tree, &s, &mut rng))
    });
    many(WALKED, &mut taken, &mut || Some(walked(tree, &mut rng)));
    taken.all
}

/// The schedules that are taken so far.
struct Taken<'a, 't> {
    tree: &'a Tree<'t>,
    model: &'a Model,
    limit: f64,
    known: BTreeSet<String>,
    all: Vec<String>,
}

impl Taken<'_, '_> {
    /// Whether a schedule is new, and worth to be measured.
    fn add(&mut self, s: &Schedule) -> bool {
        let steps = tree::steps(s);
        if !self.known.insert(steps.clone()) {
            return false;
        }
        let worth = self.tree.work(s).is_some_and(|w| self.model.seconds(&w.0) <= self.limit);
        if worth {
            self.all.push(steps);
        }
        worth
    }
}

/// Random decisions, to the end or not: what is not decided is done plainly.
fn walked(tree: &Tree<'_>, rng: &mut StdRng) -> Schedule {
    let mut state = tree.root();
    for _ in 0..rng.random_range(1..=tree.depth().max(1)) {
        let moves = tree.moves(&state);
        let Some(by) = moves.choose(rng) else { break };
        state = tree.apply(&state, by);
    }
    tree.complete(&state)
}
