//! Suite `knossos`: the experiments of the Knossos paper, run again: which searches find what, beside the
//! best that is known.
//!
//! Every finished run is a line of a file, so that a bench that was interrupted goes on where it was.

mod course;
mod experiment;
mod pages;
mod runs;
mod tasks;
mod training;

pub use experiment::Experiment;

use super::suite::{Table, Watching};
use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::ir::Program;
use course::Course;
use rayon::prelude::*;
use runs::{Limits, Networks, Runs, Way};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use tasks::Task;

/// What of it to run, and how.
pub struct Asked {
    /// The experiments; all where there is none.
    pub experiments: Vec<Experiment>,
    /// How often searches that go by chance run.
    pub seeds: u64,
    /// States evaluated at most; nothing for what each experiment has.
    pub budget: Option<usize>,
}

/// Runs what is asked for and not done yet, and writes a page with tables and plots into a folder; the lines of
/// the tables.
///
/// # Errors
/// The folder cannot be written, or its file of runs is none.
pub fn table(asked: &Asked, folder: &Path, watching: &Watching<'_>) -> Result<Table> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Diagnostic::user(format!("the folder `{}` cannot be made: {e}", folder.display())))?;
    let programs = tasks::programs()?;
    let mut runs = Runs::open(&folder.join("knossos.jsonl"))?;
    let all = [Experiment::A, Experiment::B, Experiment::C, Experiment::D, Experiment::E, Experiment::F, Experiment::G];
    let chosen = if asked.experiments.is_empty() { all.to_vec() } else { asked.experiments.clone() };
    let (mut lines, mut rows) = (vec![], vec![]);
    for experiment in chosen {
        let (published, depth) = experiment.limits();
        let budget = asked.budget.unwrap_or(published);
        let tasks: Vec<Task<'_>> = experiment.files().iter().flat_map(|f| tasks::tasks(&programs, f)).collect();
        let mut names = BTreeSet::new();
        // The file of a gradient repeats what it is the gradient of.
        let first = |t: &Task<'_>| experiment.wants(t) && names.insert(t.def.name());
        let tasks: Vec<Task<'_>> = tasks.into_iter().filter(first).collect();
        let limits = (budget, depth, asked.seeds);
        let (networks, ways, left_out) = possible(experiment.ways(), &programs, &tasks, &mut runs, limits, watching)?;
        runs.complete(&tasks, &ways, limits, &networks, watching)?;
        if watching.interrupt.raised() {
            break;
        }
        let page = pages::Page { experiment, tasks: &tasks, ways: &ways, runs: &runs, limits, left_out };
        lines.extend(page.lines());
        rows.extend(page.objects());
        if let Some(svg) = page.plot()? {
            let name = format!("knossos-{}.svg", experiment.letter());
            Output::at(&folder.join(&name))?.bytes(svg.as_bytes())?;
            lines.extend([
                format!("![best cost by evaluations, over the least known, mean of all expressions]({name})"),
                String::new(),
            ]);
        }
    }
    Ok(Table { lines, rows })
}

/// The networks that runs still need; the ways, but for those whose networks this build can neither read nor train;
/// and lines that say which these are.
fn possible(
    ways: Vec<Way>,
    programs: &[(&'static str, Program)],
    tasks: &[Task<'_>],
    runs: &mut Runs,
    limits: Limits,
    watching: &Watching<'_>,
) -> Result<(Networks, Vec<Way>, Vec<String>)> {
    let (mut networks, mut out, mut left_out) = (Networks::new(), vec![], vec![]);
    for way in ways {
        let mut wanted = vec![];
        for (seed, task) in (0..way.seeds(limits)).flat_map(|seed| tasks.iter().map(move |task| (seed, task))) {
            if let Some(guide) = way.guide.filter(|_| runs.one(task, &way, limits, seed).is_none()) {
                wanted.push((guide.course(task), seed));
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|key| !networks.contains_key(key));
        let shared = Mutex::new(&mut *runs);
        let network = |key: &(Course, u64)| (*key, training::network(key.0, key.1, programs, &shared, watching));
        let made: Vec<_> = wanted.par_iter().map(network).collect();
        let mut missing = vec![];
        for ((course, seed), network) in made {
            match network? {
                Some(network) => drop(networks.insert((course, seed), network)),
                None => missing.push(format!("`{}`", course.file(seed))),
            }
        }
        if !missing.is_empty() {
            left_out.push(format!(
                "Of {} some runs are left out: this build cannot train (it is without the feature `torch`), and there \
                 is no {}.",
                way.title(),
                missing.join(", ")
            ));
            left_out.push(String::new());
        }
        let known = |seed| tasks.iter().any(|task| runs.one(task, &way, limits, seed).is_some());
        let possible =
            |seed| tasks.iter().any(|t| way.guide.is_some_and(|g| networks.contains_key(&(g.course(t), seed))));
        if way.guide.is_none() || (0..way.seeds(limits)).any(|seed| known(seed) || possible(seed)) {
            out.push(way);
        }
    }
    Ok((networks, out, left_out))
}
