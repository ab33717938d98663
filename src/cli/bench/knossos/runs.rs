//! One search of one definition becomes a line of a file; what stands there is not run again.

use super::course::{Course, Subject, Training};
use super::tasks::{SAME, Task};
use crate::cli::bench::suite::Watching;
use crate::cost::{Costing, Model};
use crate::derive::record::hash;
use crate::diag::{Diagnostic, Result};
use crate::pipeline::{self, Options, prepare};
use crate::rewrite::agent::optimize::{Best, Settings};
use crate::rewrite::agent::value::Network;
use crate::rewrite::agent::{Agent, Bind, bindings};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::inline::recursive;
use crate::rules::{Level, Library};
use crate::run;
use crate::search::Algorithm;
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A way to search.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    /// The engine.
    pub engine: pipeline::Engine,
    /// What becomes of bindings.
    pub bind: Bind,
    /// Whether there are two phases.
    pub phased: bool,
    /// The network that guides it.
    pub guide: Option<Guide>,
}

/// A network that learned from definitions of the programs that it is tested on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guide {
    /// The search that it learned from.
    pub by: Algorithm,
    /// How many networks there are at most, one for each seed.
    pub networks: u64,
}

impl Guide {
    /// What it learned for a definition.
    pub fn course(self, task: &Task<'_>) -> Course {
        Course { subject: Subject::of(task.file), by: self.by }
    }
}

impl Way {
    /// Equality saturation.
    pub fn egraph() -> Way {
        Way { engine: pipeline::Engine::Egraph, bind: Bind::Placed, phased: false, guide: None }
    }

    /// Equality saturation, and A* after it.
    pub fn auto() -> Way {
        Way { engine: pipeline::Engine::Auto, ..Way::egraph() }
    }

    /// Searches of terms by name, with bindings searched or placed.
    pub fn searches(names: &[&str], searched: bool) -> Vec<Way> {
        let all = [
            Algorithm::Astar,
            Algorithm::Mcts,
            Algorithm::Beam,
            Algorithm::Mb2fbs,
            Algorithm::Greedy,
            Algorithm::Random,
        ];
        let bind = if searched { Bind::Searched } else { Bind::Placed };
        let named = names.iter().filter_map(|n| all.into_iter().find(|e| e.name() == *n));
        named.map(|e| Way { engine: pipeline::Engine::Agent(e), bind, ..Way::egraph() }).collect()
    }

    /// A search of terms with lets searched, guided by networks that learned from a search.
    pub fn trained(engine: Algorithm, by: Algorithm, networks: u64) -> Way {
        let (engine, bind) = (pipeline::Engine::Agent(engine), Bind::Searched);
        Way { engine, bind, guide: Some(Guide { by, networks }), ..Way::egraph() }
    }

    /// The head of its column.
    pub fn title(&self) -> String {
        let bind = if self.bind == Bind::Searched { ", lets searched" } else { "" };
        let phased = if self.phased { ", two phases" } else { "" };
        let trained = match self.guide.map(|guide| guide.by) {
            None => String::new(),
            // The paper learns from the search that it tests.
            Some(by) if pipeline::Engine::Agent(by) == self.engine => ", trained".to_string(),
            Some(by) => format!(", trained by `{}`", by.name()),
        };
        format!("`{}`{bind}{phased}{trained}", self.engine.name())
    }

    /// Whether it goes by the chance of the search.
    fn chance(&self) -> bool {
        use pipeline::Engine::Agent;
        matches!(self.engine, Agent(Algorithm::Random) | Agent(Algorithm::Mcts))
    }

    /// How often it runs.
    pub fn seeds(&self, limits: Limits) -> u64 {
        match self.guide {
            Some(guide) => guide.networks.min(limits.2),
            None if self.chance() => limits.2,
            None => 1,
        }
    }
}

/// What a run found.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The cost as written.
    pub before: f64,
    /// The best cost.
    pub cost: f64,
    /// States evaluated.
    pub evaluations: usize,
    /// Seconds it took.
    pub seconds: f64,
    /// Evaluations made and best cost then, each time that it fell.
    pub curve: Vec<(usize, f64)>,
}

/// The runs of a file.
pub struct Runs {
    path: PathBuf,
    done: BTreeMap<String, Run>,
    trainings: BTreeMap<String, Training>,
}

/// Networks by what they learned from, and the seed.
pub type Networks = BTreeMap<(Course, u64), Network>;

/// Budget, depth and seeds.
pub type Limits = (usize, usize, u64);

impl Runs {
    /// Reads a file of runs, if there is one. A last line that was cut off is run again.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no run.
    pub fn open(path: &Path) -> Result<Runs> {
        let (mut done, mut trainings) = (BTreeMap::new(), BTreeMap::new());
        if path.exists() {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Diagnostic::user(format!("`{}` cannot be read: {e}", path.display())))?;
            let lines: Vec<&str> = text.lines().collect();
            // A last line that does not end is none, whatever it says: `appending` takes it away.
            let whole = lines.len() - usize::from(!text.is_empty() && !text.ends_with('\n'));
            for (k, line) in lines.iter().take(whole).enumerate() {
                if let Ok(training) = serde_json::from_str::<Training>(line) {
                    trainings.insert(training.training.clone(), training);
                    continue;
                }
                match parsed(line) {
                    Some((key, run)) => drop(done.insert(key, run)),
                    None => {
                        let message = format!("{}:{}: expected a run of this bench", path.display(), k + 1);
                        return Err(Diagnostic::user(message).note("remove the file to begin anew"));
                    }
                }
            }
        }
        Ok(Runs { path: path.to_path_buf(), done, trainings })
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// A training that is finished.
    pub fn training(&self, key: &str) -> Option<&Training> {
        self.trainings.get(key)
    }

    /// Adds a training.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn trained(&mut self, training: Training) -> Result<()> {
        let line = format!("{}\n", json!(training));
        let file = self.appending()?;
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).map_err(|e| self.unwritable(&e))?;
        self.trainings.insert(training.training.clone(), training);
        Ok(())
    }

    /// Makes all runs that are missing. `networks` are those that guide, by what they learned from and the seed; a run
    /// whose network is not there is not made.
    ///
    /// # Errors
    /// A run fails, or the file cannot be written.
    pub fn complete(
        &mut self,
        tasks: &[Task<'_>],
        ways: &[Way],
        limits: Limits,
        networks: &Networks,
        watching: &Watching<'_>,
    ) -> Result<()> {
        let library = Library::shipped()?;
        let rules = prepare(&library, Level::Real)?;
        let mut missing = vec![];
        for task in tasks {
            for way in ways {
                missing.extend((0..way.seeds(limits)).map(|seed| (task, way, seed)));
            }
        }
        missing.retain(|(task, way, seed)| !self.done.contains_key(&key(task, way, limits, *seed)));
        let guided =
            |task: &Task<'_>, way: &Way, seed| way.guide.map(|guide| networks.get(&(guide.course(task), seed)));
        missing.retain(|(task, way, seed)| guided(task, way, *seed).is_none_or(|network| network.is_some()));
        if missing.is_empty() {
            return Ok(());
        }
        let file = self.appending()?;
        let Watching { line: progress, interrupt } = watching;
        progress.all(missing.len());
        let one = |task: &Task<'_>, way: &Way, seed: u64| {
            progress.doing(&format!("{} by {}", task.def.name(), way.title()));
            let network = guided(task, way, seed).flatten();
            let run = made(task, way, network, &rules, (limits, seed), &|| interrupt.raised())?;
            // A run that was cut short is none.
            if interrupt.raised() {
                return Ok(None);
            }
            let key = key(task, way, limits, seed);
            let line = format!("{}\n", object(&key, &run));
            let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
            written.map_err(|e| self.unwritable(&e))?;
            progress.done();
            Ok(Some((key, run)))
        };
        let made: Vec<Result<Option<(String, Run)>>> = missing
            .par_iter()
            .map(|(task, way, seed)| if interrupt.raised() { Ok(None) } else { one(task, way, *seed) })
            .collect();
        for run in made {
            self.done.extend(run?);
        }
        Ok(())
    }

    /// The file, open for further lines, its last one complete.
    fn appending(&self) -> Result<Mutex<File>> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.path).map_err(|e| self.unwritable(&e))?;
        let text = std::fs::read(&self.path).unwrap_or_default();
        if text.last().is_some_and(|b| *b != b'\n') {
            let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |k| k + 1);
            file.set_len(whole as u64).and_then(|()| file.flush()).map_err(|e| self.unwritable(&e))?;
        }
        Ok(Mutex::new(file))
    }

    fn unwritable(&self, e: &std::io::Error) -> Box<Diagnostic> {
        Diagnostic::user(format!("`{}` cannot be written: {e}", self.path.display()))
    }

    /// The runs of a task by a way, one a seed.
    pub fn of(&self, task: &Task<'_>, way: &Way, limits: Limits) -> Vec<&Run> {
        (0..way.seeds(limits)).filter_map(|seed| self.one(task, way, limits, seed)).collect()
    }

    /// The run of a task by a way with a seed.
    pub fn one(&self, task: &Task<'_>, way: &Way, limits: Limits, seed: u64) -> Option<&Run> {
        self.done.get(&key(task, way, limits, seed))
    }
}

/// What tells runs apart: the program's text is part of it, so that runs of another one do not count.
fn key(task: &Task<'_>, way: &Way, (budget, depth, _): Limits, seed: u64) -> String {
    let text = &hash(&task.program.source.text)[..8];
    let (name, def) = (task.file, task.def.name());
    let learned = way.guide.map_or(String::new(), |guide| format!(" after {}", guide.course(task).identity()));
    format!("{name} {text} {def} {}{learned} {budget} {depth} {seed}", way.title())
}

fn made(
    task: &Task<'_>,
    way: &Way,
    network: Option<&Network>,
    rules: &[Compiled<'_>],
    ((budget, depth, _), seed): (Limits, u64),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Run> {
    let from = run::seconds();
    let mut costing = Costing::new(task.program, Model::Knossos, &[]);
    let before = costing.def(task.def)?;
    let (cost, evaluations, curve) = match way.engine {
        pipeline::Engine::Agent(engine) => {
            let settings = Settings {
                engine,
                rules,
                bind: way.bind,
                bindings: bindings::ALL,
                phased: way.phased,
                level: Level::Real,
                model: Model::Knossos,
                budget,
                depth,
                seed,
                value: network,
                stop,
            };
            let kept = recursive(task.program);
            let start = task.def.term().map(|body| (&task.program.terms, body));
            let agent = start.and_then(|start| Agent::new(task.program, &kept, task.def, start, &settings));
            // With a network, which takes long, a search that meets what it looks for in a tenth of the evaluations
            // is over: more of them would begin with the same ones.
            let short = Settings { budget: (budget / 10).max(1), ..settings };
            let met = |best: &Best| task.known.is_some_and(|known| best.cost <= known + SAME);
            let first = network.and(agent.as_ref()).and_then(|agent| agent.search(&mut costing, &short)).filter(met);
            let best = first.or_else(|| agent.and_then(|agent| agent.search(&mut costing, &settings)));
            best.map_or((before, 0, vec![]), |best| (best.cost, best.tally.evaluations, best.curve))
        }
        engine => {
            let defs = vec![task.def.name().to_string()];
            let (cost, spent) = (Model::Knossos, |_| stop().then_some("interrupt"));
            let options =
                Options { defs, cost, engine, budget, depth, threads: 1, stop: &spent, ..Options::standard() };
            let outcome = pipeline::optimize_with(task.program, rules, &options)?;
            (outcome.rows.iter().map(|r| r.cost_after).sum(), 0, vec![])
        }
    };
    Ok(Run { before, cost: cost.min(before), evaluations, seconds: run::seconds() - from, curve })
}

fn object(key: &str, run: &Run) -> Json {
    json!({
        "run": key,
        "before": run.before,
        "cost": run.cost,
        "evaluations": run.evaluations,
        "seconds": (run.seconds * 1000.0).round() / 1000.0,
        "curve": run.curve,
    })
}

fn parsed(line: &str) -> Option<(String, Run)> {
    let object: Json = serde_json::from_str(line).ok()?;
    let point = |p: &Json| Some((p.get(0)?.as_u64()? as usize, p.get(1)?.as_f64()?));
    let run = Run {
        before: object.get("before")?.as_f64()?,
        cost: object.get("cost")?.as_f64()?,
        evaluations: object.get("evaluations")?.as_u64()? as usize,
        seconds: object.get("seconds")?.as_f64()?,
        curve: object.get("curve")?.as_array()?.iter().map(point).collect::<Option<_>>()?,
    };
    Some((object.get("run")?.as_str()?.to_string(), run))
}
