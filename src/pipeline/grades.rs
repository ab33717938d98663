//! Records of random pipelines become what a model of costs learns from, and grades of what it learned.
//!
//! Pipelines of every fifth seed are held out: nothing learns from them, and models are compared on them. Of the others one in
//! six says when it is enough.

use super::lessons::Lesson;
use super::samples::Case;
use crate::diag::Result;
use crate::machine::Machine;
use crate::schedule::text;
use crate::tune::Model;
use crate::tune::features::Features;
use crate::tune::mlp::Network;
use crate::tune::mlp::network::Input;
use crate::tune::mlp::train::{Epoch, Example, Settings, train};
use crate::tune::mlp::weights::Learned;
use crate::tune::random::{Pipeline, VERSION};
use crate::tune::ranking::{Ranking, ranking};
use crate::tune::record::Outcome;
use crate::tune::work::Work;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Every so manyth seed is held out.
const HELD_OUT: u64 = 5;
/// Every so manyth of the others says when it is enough.
const CHECKED: usize = 6;
/// Pipelines of fewer measured schedules teach nothing.
const FEWEST: usize = 6;

/// A measured schedule with what is counted of it.
pub struct Graded {
    features: Vec<Features>,
    work: Work,
    seconds: f64,
}

/// Pipelines with what was measured of them, by seed.
pub type Grades = BTreeMap<u64, Vec<Graded>>;

/// What is counted of all schedules that were measured.
///
/// # Errors
/// A bug: pipelines are programs.
pub fn graded(lessons: &[Lesson], machine: &Machine) -> Result<Grades> {
    let mut by: BTreeMap<u64, Vec<&Lesson>> = BTreeMap::new();
    for l in lessons {
        by.entry(l.seed).or_default().push(l);
    }
    let one = |(seed, all): (u64, Vec<&Lesson>)| -> Result<(u64, Vec<Graded>)> {
        let case = Case::of(&Pipeline::new(seed))?;
        let (tree, _) = case.space(machine)?;
        let graph = case.graph()?;
        let graded = all.into_iter().filter_map(|l| {
            let Outcome::Seconds { min, .. } = l.outcome else { return None };
            let source = crate::diag::Source::new("steps", &l.steps);
            let made = text::apply_for(graph.clone(), tree.incoming(), &source).ok()?;
            let (features, work) = tree.features(&made)?;
            Some(Graded { features, work, seconds: min })
        });
        Ok((seed, graded.collect()))
    };
    let all: Vec<_> = by.into_iter().collect();
    let all: Result<Grades> = all.into_par_iter().map(one).collect::<Vec<_>>().into_iter().collect();
    all.map(|all| all.into_iter().filter(|(_, g)| g.len() >= FEWEST).collect())
}

/// A network that learned from pipelines, and from which. Tells of each epoch, and ends where that says so.
pub fn learned(
    all: &Grades,
    settings: &Settings,
    machine: &Machine,
    told: &mut dyn FnMut(usize, &Epoch) -> bool,
) -> (Network, Learned) {
    let example = |g: &Graded| Example { stages: g.features.iter().map(Input::of).collect(), seconds: g.seconds };
    let (mut learned, mut checked) = (vec![], vec![]);
    let mut seeds = vec![];
    for (k, (seed, graded)) in all.iter().filter(|(seed, _)| !is_held_out(**seed)).enumerate() {
        seeds.push(*seed);
        let examples: Vec<Example> = graded.iter().map(example).collect();
        if k % CHECKED == CHECKED - 1 { checked.push(examples) } else { learned.push(examples) }
    }
    let mut start = linear(all).untrained(settings.seed);
    let inputs: Vec<&Input> = learned.iter().flatten().flat_map(|e| &e.stages).collect();
    start.scale(&inputs);
    let about = Learned {
        pipelines: VERSION,
        held_out: all.keys().copied().filter(|s| is_held_out(*s)).collect(),
        schedules: seeds.iter().filter_map(|s| all.get(s)).map(Vec::len).sum(),
        seeds,
        machine: format!("{machine:?}"),
    };
    (train(start, &learned, &checked, settings, told), about)
}

/// Whether nothing learns from a pipeline.
pub fn is_held_out(seed: u64) -> bool {
    seed.is_multiple_of(HELD_OUT)
}

/// The grade of a model on the pipelines that are held out.
pub fn grade(all: &Grades, model: &Model) -> Ranking {
    let groups: Vec<(Vec<f64>, Vec<f64>)> = all
        .iter()
        .filter(|(seed, _)| is_held_out(**seed))
        .map(|(_, g)| {
            let expected = g.iter().map(|g| model.seconds(&model.terms(&g.work, &g.features))).collect();
            (expected, g.iter().map(|g| g.seconds).collect())
        })
        .collect();
    ranking(&groups)
}

/// The linear model, fitted to the pipelines that are learned from: what one weight a part comes to.
pub fn linear(all: &Grades) -> Model {
    let samples = all.iter().filter(|(seed, _)| !is_held_out(**seed)).flat_map(|(_, g)| g);
    let samples: Vec<(Vec<f64>, f64)> = samples.map(|g| (g.work.0.to_vec(), g.seconds)).collect();
    Model::default().fitted(&samples)
}
