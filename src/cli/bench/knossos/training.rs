//! Networks that experiments train: each becomes a file of weights beside the runs, and a line among them. A
//! training that was interrupted goes on where it was.

use super::course::{Course, RATE, SETTLED, Training};
use super::runs::Runs;
use super::tasks::{SAME, Task};
use crate::cli::bench::suite::Watching;
use crate::data::{self, Output};
use crate::diag::Result;
use crate::ir::Program;
use crate::pipeline::prepare;
use crate::rewrite::agent::value::settings;
use crate::rewrite::agent::value::train::{self, EpochReport, Trainer};
use crate::rewrite::agent::value::{Network, Setting, weights};
use crate::rules::{Level, Library};
use crate::run;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Whether this build can train.
pub const POSSIBLE: bool = cfg!(feature = "torch");

/// The network of a course and a seed: read where it was trained before, trained where that is possible, and
/// nothing where it is not.
///
/// # Errors
/// Files of the folder cannot be read or written, or hold something else.
pub fn network(
    course: Course,
    seed: u64,
    programs: &[(&'static str, Program)],
    runs: &Mutex<&mut Runs>,
    watching: &Watching<'_>,
) -> Result<Option<Network>> {
    let locked = || runs.lock().unwrap_or_else(PoisonError::into_inner);
    let path = locked().folder().join(course.file(seed));
    if path.exists() {
        return weights::read(&path).map(Some);
    }
    if !POSSIBLE {
        return Ok(None);
    }
    let tasks = course.subject.tasks(programs);
    let Some((network, training)) = trained(course, seed, &tasks, &path, watching)? else { return Ok(None) };
    locked().trained(training)?;
    Ok(Some(network))
}

fn trained(
    course: Course,
    seed: u64,
    tasks: &[Task<'_>],
    path: &Path,
    watching: &Watching<'_>,
) -> Result<Option<(Network, Training)>> {
    let from = run::seconds();
    let library = Library::shipped()?;
    let rules = prepare(&library, Level::Real)?;
    let settings = course.settings(seed);
    let setting = Setting { steps: settings.steps, ..Setting::small() };
    let first = Network::new(setting, seed);
    let fit = train::fit(&first, RATE)?;
    let learned: Vec<settings::Task<'_>> = tasks.iter().map(Task::learned).collect();
    let mut trainer = Trainer::new(&learned, &rules, settings, fit)?;
    let beside = PathBuf::from(format!("{}.training", path.display()));
    if beside.exists() {
        trainer.resume(&beside.display().to_string(), &data::bytes(&beside)?)?;
    }
    let missed = |costs: &[(usize, f64)]| {
        costs.iter().filter(|(k, cost)| tasks[*k].known.is_some_and(|known| *cost > known + SAME)).count()
    };
    let settled = |reports: &[EpochReport]| {
        course.settles()
            && reports.len() >= SETTLED
            && reports[reports.len() - SETTLED..].iter().all(|r| missed(&r.costs) == 0)
    };
    while trainer.reports().len() < course.epochs() && !settled(trainer.reports()) {
        if watching.interrupt.raised() {
            return Ok(None);
        }
        let r = trainer.epoch();
        Output::at(&beside)?.bytes(&trainer.checkpoint()?)?;
        let met = r.costs.len() - missed(&r.costs);
        watching.line.doing(&format!(
            "{} {seed}, epoch {}: {met} of {} met, loss {:.5}, {:.0} s, unseen {:.5}",
            course.name(),
            r.epoch,
            r.costs.len(),
            r.loss,
            run::seconds() - from,
            r.unseen
        ));
    }
    Output::at(path)?.bytes(&weights::bytes(trainer.network())?)?;
    // The weights are complete; where this file stays it is written over, or goes on from its end.
    let _ = std::fs::remove_file(&beside);
    let reports = trainer.reports();
    let best: Vec<(usize, f64)> = reports.last().map_or(vec![], |r| r.best.iter().copied().enumerate().collect());
    let training = Training {
        training: course.key(seed),
        epochs: reports.len(),
        evaluations: reports.iter().map(|r| r.evaluations).sum(),
        met: best.len() - missed(&best),
        of: tasks.len(),
        seconds: ((run::seconds() - from) * 10.0).round() / 10.0,
    };
    Ok(Some((trainer.network().clone(), training)))
}
