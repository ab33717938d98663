//! A program at sizes and a way become a schedule, and what finding it took.

use super::cases::Case;
use super::records::{Found, Records, Way};
use crate::cli::bench::suite::Watching;
use crate::cli::case::Case as Words;
use crate::cli::judging::{BEAM, EVALUATIONS};
use crate::cli::measuring::Measuring;
use crate::cli::{World, input};
use crate::data;
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::pipeline::lab::{self, Book, Lab, Setup};
use crate::pipeline::tuning::{self, Mode, Options};
use crate::run;
use crate::schedule::{Schedule, text};
use crate::search::{Mb2fbs, Priority, Tally};
use crate::stage::{Graph, extract};
use crate::tune::explore::{self, Settings};
use crate::tune::tree::steps;
use crate::tune::{Model, Tree, example, record, toy};
use std::path::PathBuf;

/// The same by the published configurations, which are compared by what they expand.
const PUBLISHED: usize = 40_000;
/// How many are measured of those that the model likes best.
const TOP: usize = 16;

/// A program that is there to be scheduled.
pub struct Finding<'a, 'w> {
    case: &'a Case,
    world: &'a World<'w>,
    measurements: usize,
    program: Program,
    /// Its arguments.
    pub args: Vec<Value>,
    /// What it is made for.
    pub machine: Machine,
    /// What stands for all of that in records.
    pub key: String,
    words: Words,
    /// The folder of the program's file.
    _folder: tempfile::TempDir,
}

/// What a search found: steps, what the model expects, what was done.
struct Made {
    schedule: Option<Schedule>,
    published: Option<(f64, f64)>,
    tally: Tally,
    notes: Vec<String>,
}

impl Made {
    fn of(schedule: Option<Schedule>, tally: Tally) -> Made {
        Made { schedule, published: None, tally, notes: vec![] }
    }
}

impl<'a, 'w> Finding<'a, 'w> {
    /// A program of the suite.
    ///
    /// # Errors
    /// A bug, where a shipped program is wrong; there is no temporary folder.
    pub fn new(case: &'a Case, measurements: usize, world: &'a World<'w>) -> Result<Finding<'a, 'w>> {
        let folder = tempfile::tempdir().map_err(|e| Diagnostic::user(format!("no temporary folder: {e}")))?;
        let file: PathBuf = folder.path().join("program.ks");
        std::fs::write(&file, case.program.1)
            .map_err(|e| Diagnostic::user(format!("cannot write {}: {e}", file.display())))?;
        let sizes = case.sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
        let words = Words { file: file.clone(), def: case.def.to_string(), args: vec![], sizes, seed: 0 };
        let program = input::program_for(&file, case.def)?;
        let (args, machine) = (words.arguments(&program, input::definition(&program, case.def)?)?, Machine::host());
        let known = format!("{:?}{machine:?}{measurements}", case.sizes);
        let key = lab::key(&[case.program.1, case.def, case.hand.unwrap_or_default(), &known]);
        Ok(Finding { case, world, measurements, program, args, machine, key, words, _folder: folder })
    }

    fn def(&self) -> Result<&Def> {
        input::definition(&self.program, self.case.def)
    }

    fn graph(&self) -> Result<Graph> {
        extract(&self.program, self.def()?).map_err(|u| u.diagnostic(&self.program))
    }

    /// The decisions about its stages, and its default schedule.
    ///
    /// # Errors
    /// A bug, where a shipped program is wrong.
    pub fn space(&self) -> Result<(Tree<'_>, Schedule)> {
        Ok(tuning::space(self.def()?, self.graph()?, &self.args, &self.machine))
    }

    /// How it is measured.
    ///
    /// # Errors
    /// This program does not know where it is.
    pub fn setup<'s>(&self, stop: &'s (dyn Fn() -> bool + Sync)) -> Result<Setup<'s>> {
        Measuring::default().setup((self.world, self.words.words(), false), stop)
    }

    /// Finds a schedule and writes it down, unless the work has to end.
    ///
    /// # Errors
    /// Those of measuring and writing.
    pub fn find(&self, way: Way, records: &mut Records, watching: &Watching<'_>) -> Result<()> {
        let stop = || watching.interrupt.raised();
        let (space, standard) = self.space()?;
        let from = run::seconds();
        let made = match way {
            Way::Default => Made::of(Some(standard), Tally::default()),
            Way::Hand => Made::of(self.by_hand()?, Tally::default()),
            Way::OneShot | Way::Top | Way::Autotuned => self.tuned(way, records, &stop)?,
            Way::Beam32 => by(&space, &Mb2fbs::beam(32), &stop),
            Way::Beam64 => by(&space, &Mb2fbs::beam(64), &stop),
            Way::Uncontrolled => by(&space, &due(&space, Mb2fbs::uncontrolled(30, 2)), &stop),
            Way::Controlled => by(&space, &due(&space, Mb2fbs::controlled(28, 4, space.depth())), &stop),
            Way::Toy => toys(&space, &stop),
        };
        let seconds = run::seconds() - from;
        if stop() {
            return Ok(());
        }
        let model = Model::default();
        let expected = made.schedule.as_ref().and_then(|s| Some(model.seconds(&space.work(s)?.0)));
        records.add_found(Found {
            key: self.key.clone(),
            way,
            steps: made.schedule.as_ref().map(steps),
            expected,
            published: made.published,
            expanded: made.tally.expansions,
            judged: made.tally.evaluations,
            seconds,
            notes: made.notes,
        })
    }

    /// The schedule that stands beside the program.
    fn by_hand(&self) -> Result<Option<Schedule>> {
        let Some(hand) = self.case.hand else { return Ok(None) };
        let source = Source::new("schedule by hand", hand);
        let incoming = example::incoming(self.def()?, &self.args);
        text::apply_for(self.graph()?, &incoming, &source).map(Some)
    }

    /// A search as `daedal schedule --mode` does it.
    fn tuned(&self, way: Way, records: &mut Records, stop: &(dyn Fn() -> bool + Sync)) -> Result<Made> {
        let (mode, measurements) = match way {
            Way::Top => (Mode::TopK, TOP),
            Way::Autotuned => (Mode::Autotune, self.measurements),
            _ => (Mode::OneShot, 0),
        };
        let search = Settings {
            way: explore::Way::Beam,
            beam: BEAM,
            evaluations: EVALUATIONS,
            seed: 0,
            keep: measurements.max(8),
        };
        // What was measured for another way, or before an end, is not measured again.
        let text = if records.path().exists() { data::bytes(records.path())? } else { vec![] };
        let known = record::read(&String::from_utf8_lossy(&text), &self.key);
        let options = Options { mode, model: Model::default(), search, measurements, stop: &stop, known };
        let path = records.path().to_path_buf();
        let book = Book { path: &path, case: &self.key, cut: records.cut() };
        let mut told = |_: Option<&record::Outcome>| {};
        let mut lab = Lab::new(self.setup(stop)?, Some(book), &mut told)?;
        let mut measure = |steps: &[String]| lab.measure(steps);
        let tuned = tuning::tune(self.def()?, self.graph()?, &self.args, &self.machine, &options, &mut measure)?;
        Ok(Made { notes: tuned.notes, ..Made::of(Some(tuned.schedule), tuned.tally) })
    }
}

/// States of different depth as the published study compares them; its five passes.
fn due(space: &Tree<'_>, settings: Mb2fbs) -> Mb2fbs {
    Mb2fbs { priority: Priority::Due { depth: space.depth() }, passes: 5, ..settings }
}

fn by(space: &Tree<'_>, settings: &Mb2fbs, stop: &dyn Fn() -> bool) -> Made {
    let (found, tally) = explore::by(space, &Model::default(), settings, (PUBLISHED, 1), stop);
    Made::of(found.into_iter().next().map(|j| j.schedule), tally)
}

fn toys(space: &Tree<'_>, stop: &dyn Fn() -> bool) -> Made {
    let found = toy::search(space, &Model::default(), (toy::BEAM, toy::EVALUATIONS, 1), stop);
    let why = |(why, n): (String, usize)| format!("{n} cheaper trees cannot be said: {why}");
    let notes = found.refused.into_iter().map(why).collect();
    let first = found.all.into_iter().next();
    let published = first.as_ref().map(|(cost, _)| (*cost, found.standard));
    Made { published, notes, ..Made::of(first.map(|(_, j)| j.schedule), found.tally) }
}
