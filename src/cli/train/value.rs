//! `daedal train value`: searches of programs become the weights of a value network.

use crate::cli::optimize::Bindings;
use crate::cli::{World, input};
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result};
use crate::ir::Program;
use crate::pipeline;
use crate::report::{self, Series};
use crate::rewrite::agent::value::settings::{Settings, Task, searchable};
use crate::rewrite::agent::value::train::{self, EpochReport, Trainer};
use crate::rewrite::agent::value::{Network, Setting, weights};
use crate::rules::{Level, Library};
use crate::run;
use crate::search::Algorithm;
use clap::{Args, ValueEnum, value_parser};
use std::path::{Path, PathBuf};

/// Train a value network on searches of programs; prints a line for each epoch
#[derive(Args, Debug)]
pub struct Value {
    /// The programs to learn from
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Learn from this definition only; may be given more than once
    #[arg(long = "def", value_name = "DEF")]
    defs: Vec<String>,
    /// Programs that are searched after every epoch, and not learned from; may be given more than once
    #[arg(long, value_name = "FILE")]
    held_out: Vec<PathBuf>,
    /// Epochs in all
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    epochs: u32,
    /// The greatest number of terms that one search evaluates
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u32).range(1..))]
    budget: u32,
    /// The greatest number of rewrites in a row that a search makes
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u32).range(1..))]
    depth: u32,
    /// Numbers that describe a node; the published network has 200
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=1024))]
    width: u32,
    /// How far one step of learning goes [default: 0.064 / width]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// Where chance begins
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The search that is learned from
    #[arg(long, value_enum, default_value_t)]
    engine: Searcher,
    /// What the search does with bindings
    #[arg(long, value_enum, default_value_t = Bindings::Placed)]
    bindings: Bindings,
    /// What is learned
    #[arg(long, value_enum, default_value_t)]
    targets: Targets,
    /// Where the weights are written after every epoch
    #[arg(short, long, value_name = "W.safetensors")]
    output: PathBuf,
    /// Go on from the training that wrote the weights, as if it had not ended
    #[arg(long)]
    resume: bool,
    /// Draw costs and losses of the epochs
    #[arg(long, value_name = "C.svg")]
    curves: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum Searcher {
    /// A*
    #[default]
    Astar,
    /// Monte Carlo tree search
    Mcts,
}

#[derive(Clone, Copy, Default, PartialEq, Debug, ValueEnum)]
enum Targets {
    /// The best cost that searches met within so many rewrites
    #[default]
    Search,
    /// The same; and for the most rewrites the best cost that equality saturation knows
    Egraph,
}

fn rate(word: &str) -> std::result::Result<f64, String> {
    let rate = word.parse::<f64>().ok().filter(|r| *r > 0.0 && *r < 1.0);
    rate.ok_or_else(|| "expected a number between 0 and 1".to_string())
}

impl Value {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let place = Output::at(&self.output)?;
        let beside = beside(&self.output);
        let record = Output::at(&beside)?;
        let drawing = self.curves.as_deref().map(Output::at).transpose()?;
        let programs = read(&self.files)?;
        let others = read(&self.held_out)?;
        let tasks = self.tasks(&programs)?;
        let held_out: Vec<Task<'_>> = others.iter().flat_map(all).collect();
        let library = Library::shipped()?;
        let rules = pipeline::prepare(&library, Level::Real)?;
        let settings = self.settings();
        let setting = Setting { width: self.width as usize, propagations: 10, steps: settings.steps };
        let network = Network::new(setting, self.seed);
        let fit = train::fit(&network, self.rate.unwrap_or_else(|| train::rate(setting.width)))?;
        let mut trainer = Trainer::new(&tasks, &rules, settings, fit)?;
        trainer.set_held_out(&held_out);
        if self.targets == Targets::Egraph {
            trainer.set_floors(floors(&tasks)?);
        }
        if self.resume {
            trainer.resume(&beside.display().to_string(), &data::bytes(&beside)?)?;
        }
        let before: f64 = trainer.searched(&held_out, None).iter().sum();
        world.say(&header(tasks.len(), held_out.len()))?;
        for done in trainer.reports() {
            world.say(&line(done, None))?;
        }
        let progress = world.progress(false);
        progress.all(self.epochs as usize);
        progress.done_many(trainer.reports().len());
        world.interrupt.wait(true);
        while trainer.reports().len() < self.epochs as usize && !world.interrupt.raised() {
            let from = run::seconds();
            progress.doing(&format!("epoch {}", trainer.reports().len() + 1));
            let report = trainer.epoch();
            place.bytes(&weights::bytes(trainer.network())?)?;
            record.bytes(&trainer.checkpoint()?)?;
            if let Some(drawing) = &drawing {
                drawing.bytes(curves(trainer.reports(), before)?.as_bytes())?;
            }
            progress.done();
            progress.beside(|| world.say(&line(&report, Some(run::seconds() - from))))?;
        }
        drop(progress);
        world.interrupt.wait(false);
        if !held_out.is_empty() {
            world.say(&format!("held out, without a network: {before:.1}"))?;
        }
        let done = trainer.reports().len();
        if done < self.epochs as usize {
            let d = Diagnostic::limit(format!("interrupted after {done} of {} epochs", self.epochs));
            return Err(d.note("the weights of the last one are written; `--resume` goes on from there"));
        }
        Ok(())
    }

    fn settings(&self) -> Settings {
        let engine = match self.engine {
            Searcher::Astar => Algorithm::Astar,
            Searcher::Mcts => Algorithm::Mcts,
        };
        let (budget, depth) = (self.budget as usize, self.depth as usize);
        Settings {
            engine,
            bind: self.bindings.bind(),
            budget,
            depth,
            steps: depth.min(Setting::small().steps),
            seed: self.seed,
            ..Settings::standard()
        }
    }

    fn tasks<'a>(&self, programs: &'a [Program]) -> Result<Vec<Task<'a>>> {
        let wanted = |task: &Task<'_>| self.defs.is_empty() || self.defs.iter().any(|d| d == task.def.name());
        let tasks: Vec<Task<'a>> = programs.iter().flat_map(all).filter(wanted).collect();
        match self.defs.iter().find(|d| !tasks.iter().any(|t| t.def.name() == d.as_str())) {
            None => Ok(tasks),
            // One program can say which name was meant; of several none can.
            Some(name) => match programs {
                [program] => input::definition(program, name).map(|_| tasks),
                _ => Err(Diagnostic::user(format!("none of the programs defines `{name}` in a way to learn from"))),
            },
        }
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Program>> {
    files.iter().map(|file| input::program(file)).collect()
}

/// The definitions of a program that can be searched.
fn all(program: &Program) -> impl Iterator<Item = Task<'_>> {
    searchable(program).map(move |def| Task { program, def })
}

/// The file beside the weights from which a training goes on.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_os_string();
    name.push(".training");
    name.into()
}

/// What equality saturation brings each definition to.
fn floors(tasks: &[Task<'_>]) -> Result<Vec<Option<f64>>> {
    let one = |task: &Task<'_>| {
        let defs = vec![task.def.name().to_string()];
        let cost = crate::cost::Model::Knossos;
        let options = pipeline::Options { defs, cost, ..pipeline::Options::standard() };
        let outcome = pipeline::optimize(task.program, &options)?;
        Ok(outcome.rows.iter().find(|r| r.name == task.def.name()).map(|r| r.cost_after))
    };
    tasks.iter().map(one).collect()
}

fn header(tasks: usize, held_out: usize) -> String {
    let about = format!("learning from {tasks} definition{}", if tasks == 1 { "" } else { "s" });
    let about = if held_out == 0 { about } else { format!("{about}, {held_out} held out") };
    let names = ["epoch", "cost", "best", "evaluated", "states", "loss", "unseen", "held out", "seconds"];
    format!("{about}\n{}", row(&names.map(str::to_string)))
}

fn row(cells: &[String; 9]) -> String {
    let [epoch, cost, best, evaluated, states, loss, unseen, held_out, seconds] = cells;
    format!(
        "{epoch:>5}  {cost:>12}  {best:>12}  {evaluated:>9}  {states:>6}  {loss:>8}  {unseen:>8}  {held_out:>12}  {seconds:>7}"
    )
}

fn line(r: &EpochReport, seconds: Option<f64>) -> String {
    let sum = |costs: &[f64]| format!("{:.1}", costs.iter().sum::<f64>());
    row(&[
        r.epoch.to_string(),
        format!("{:.1}", r.costs.iter().map(|(_, cost)| cost).sum::<f64>()),
        sum(&r.best),
        r.evaluations.to_string(),
        r.states.to_string(),
        format!("{:.5}", r.loss),
        format!("{:.5}", r.unseen),
        if r.held_out.is_empty() { "-".into() } else { sum(&r.held_out) },
        seconds.map_or("-".into(), |s| format!("{s:.1}")),
    ])
}

/// Two plots: sums of costs by epoch, and losses.
fn curves(reports: &[EpochReport], before: f64) -> Result<String> {
    let series = |name: &str, value: &dyn Fn(&EpochReport) -> f64| Series {
        name: name.to_string(),
        values: reports.iter().map(value).collect(),
    };
    let mut costs = vec![
        series("met in the epoch", &|r| r.costs.iter().map(|(_, cost)| cost).sum()),
        series("best so far", &|r| r.best.iter().sum()),
    ];
    if reports.iter().any(|r| !r.held_out.is_empty()) {
        costs.push(series("held out", &|r| r.held_out.iter().sum()));
        costs.push(series("held out, no network", &|_| before));
    }
    let losses = [series("learned", &|r| r.loss), series("unseen", &|r| r.unseen)];
    Ok(report::above(&[report::lines(&costs, "epoch", "sum of costs")?, report::lines(&losses, "epoch", "loss")?]))
}
