//! `daedal optimize`: a program becomes a faster one, and a table of what each definition costs.

use super::look::{Ink, Look};
use super::{World, explain, input, story};
use crate::cost;
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Program, Ty, print};
use crate::pipeline::{self, Engine, Outcome, Row, Told};
use crate::report;
use crate::rewrite::agent;
use crate::rewrite::agent::value::{Network, weights};
use crate::rules;
use crate::rules::assume::Assume;
use crate::run;
use clap::{Args, ValueEnum, value_parser};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

/// Rewrite a program; prints what each definition costs before and after
#[derive(Args, Debug)]
pub struct Optimize {
    /// The program
    file: PathBuf,
    /// Optimize this definition only; may be given more than once
    #[arg(long = "def", value_name = "DEF")]
    defs: Vec<String>,
    /// How rewrites are searched
    #[arg(long, value_enum, default_value_t = Engine::Egraph)]
    engine: Engine,
    /// What is made small
    #[arg(long, value_enum, default_value_t)]
    cost: Cost,
    /// A file of further rules; may be given more than once
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Keep the bits of floats, or their values but for rounding
    #[arg(long, value_enum, default_value_t = Float::Real)]
    float: Float,
    /// What rules may take for granted: where it does not hold, results may differ
    #[arg(long, value_name = "WHAT", value_enum)]
    assume: Vec<Assumption>,
    /// An estimate of a named size or integer parameter, for cost models, or of `x.1`, the first size of a parameter `x`
    /// that names none; may be given more than once
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    sizes: Vec<(String, u64)>,
    /// The greatest number of nodes that the search may make
    #[arg(long, value_name = "N", default_value_t = pipeline::MAX_NODES)]
    max_nodes: usize,
    /// The greatest number of terms that a search evaluates
    #[arg(long, value_name = "N", default_value_t = pipeline::BUDGET as u64, value_parser = value_parser!(u64).range(1..))]
    budget: u64,
    /// The greatest number of rewrites in a row that a search makes
    #[arg(long, value_name = "N", default_value_t = pipeline::DEPTH as u64, value_parser = value_parser!(u64).range(1..))]
    depth: u64,
    /// What searches of terms do with bindings
    #[arg(long, value_enum, default_value_t = Bindings::Placed)]
    bindings: Bindings,
    /// Searches of terms make the first half of their rewrites by rules of phase 1 alone
    #[arg(long)]
    phased: bool,
    /// Use only this rule, or the rules of this file, such as `arith`; may be given more than once
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,
    /// Where the chance of `random` and `mcts` begins
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The network that says what a search may expect: a file of weights, `shipped`, or `none`
    #[arg(long, value_name = "FILE", default_value = "none")]
    value: PathBuf,
    /// Choose among what was found until it is proved that no choice is cheaper, where that is in reach
    #[arg(long)]
    exact: bool,
    /// Take the best so far after this time
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    max_seconds: Option<f64>,
    /// Take the best so far when the process holds this much memory
    #[arg(long, value_name = "MB")]
    max_memory: Option<u64>,
    /// Work on so many definitions at once; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the optimized program to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page with plots and the programs side by side
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the steps from each definition to its result, for `daedal replay`
    #[arg(long, value_name = "FILE")]
    derivation: Option<PathBuf>,
    /// Show every step from each definition to its result
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Show for each definition which rules fired in its search, and how often
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What becomes of bindings, by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Bindings {
    /// Lets stand where they cost least
    Placed,
    /// Lets and calls are moved by rewrites, one at a time
    Searched,
}

impl Bindings {
    /// What is meant.
    pub fn bind(self) -> agent::Bind {
        match self {
            Bindings::Placed => agent::Bind::Placed,
            Bindings::Searched => agent::Bind::Searched,
        }
    }
}

/// Names of cost models.
#[derive(Clone, Copy, Default, Debug, ValueEnum)]
pub enum Cost {
    /// The published model, for comparisons: fixed costs of operations, sizes guessed
    Knossos,
    /// Time from operations, memory and sizes
    #[default]
    Analytic,
}

impl Cost {
    /// The model of the name.
    pub fn model(self) -> cost::Model {
        match self {
            Cost::Knossos => cost::Model::Knossos,
            Cost::Analytic => cost::Model::Analytic,
        }
    }
}

/// Number levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Float {
    /// The same bits
    Exact,
    /// The same values over the real numbers
    Real,
}

impl Float {
    /// The level of the name.
    pub fn level(self) -> rules::Level {
        match self {
            Float::Exact => rules::Level::Exact,
            Float::Real => rules::Level::Real,
        }
    }
}

/// Assumptions by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Assumption {
    /// No float is divided by 0
    Nonzero,
}

impl Assumption {
    fn assume(self) -> Assume {
        match self {
            Assumption::Nonzero => Assume::Nonzero,
        }
    }
}

/// A name and an estimate.
///
/// # Errors
/// It is not written so.
pub fn size(word: &str) -> std::result::Result<(String, u64), String> {
    let bad = "expected a name and a number, such as `n=1000`";
    let (name, n) = word.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(bad)?;
    Ok((name.to_string(), n.parse().map_err(|_| bad)?))
}

pub fn positive(word: &str) -> std::result::Result<f64, String> {
    let seconds = word.parse::<f64>().ok().filter(|s| s.is_finite() && *s > 0.0);
    seconds.ok_or_else(|| "expected a number above 0".to_string())
}

impl Optimize {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program(&self.file)?;
        for name in &self.defs {
            input::definition(&program, name)?;
        }
        known_sizes(&program, &self.sizes)?;
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let page = self.report.as_deref().map(Output::at).transpose()?;
        let steps = self.derivation.as_deref().map(Output::at).transpose()?;
        let line = world.progress(self.json);
        let progress = |told: Told<'_>| tell(&line, told);
        let watch = run::Watch::new(world.interrupt, self.max_seconds, self.max_memory);
        let network = self.network()?;
        let options = pipeline::Options {
            defs: self.defs.clone(),
            cost: self.cost.model(),
            float: self.float.level(),
            assume: self.assumed(),
            sizes: self.sizes.clone(),
            rules: self.rules.iter().map(|f| data::source(f)).collect::<Result<_>>()?,
            engine: self.engine,
            max_nodes: self.max_nodes,
            regions: pipeline::REGIONS,
            budget: self.budget as usize,
            depth: self.depth as usize,
            bind: self.bindings.bind(),
            phased: self.phased,
            only: self.only.clone(),
            seed: self.seed,
            value: network.as_ref(),
            derive: self.derives(),
            exact: self.exact,
            threads: self.threads.unwrap_or(0).into(),
            stop: &|share| watch.spent(share),
            progress: &progress,
            clock: &run::seconds,
        };
        let outcome = world.interrupt.during(|| pipeline::optimize(&program, &options));
        line.clear();
        let outcome = outcome?;
        stopped(&outcome.rows);
        for a in self.assumed() {
            // A note that cannot be shown is not worth an error.
            let _ = writeln!(io::stderr(), "note: {}", a.says());
        }
        if let Some(place) = place {
            place.bytes(print::program(&outcome.program).as_bytes())?;
        }
        if let Some(page) = page {
            page.bytes(self.page(&program, &outcome)?.as_bytes())?;
        }
        if let Some(place) = steps {
            place.bytes(self.record(&program, &outcome, &options)?.as_bytes())?;
        }
        match self.json {
            true => world.say(&self.object(&outcome).to_string()),
            false => {
                for d in outcome.derivations.iter().filter(|_| self.explain) {
                    let name = &d.derivation.name;
                    let Some(def) = program.defs.values().find(|def| def.name() == name) else { continue };
                    explain::lines(d, def, world.look.colour).iter().try_for_each(|line| world.say(line))?;
                }
                let fired = if self.verbose { fired(&outcome.rows) } else { vec![] };
                let unproved: Vec<String> = outcome.rows.iter().filter_map(explain::unproved).collect();
                table(&outcome.rows, outcome.seconds, world.look)
                    .iter()
                    .chain(&unproved)
                    .chain(&fired)
                    .try_for_each(|line| world.say(line))
            }
        }
    }

    /// What the search is guided by.
    fn network(&self) -> Result<Option<Network>> {
        match self.value.to_str() {
            Some("none") => Ok(None),
            Some("shipped") => Network::shipped().map(Some),
            _ => weights::read(&self.value).map(Some),
        }
    }

    /// What is assumed, each once.
    fn assumed(&self) -> Vec<Assume> {
        let all: BTreeSet<Assume> = self.assume.iter().map(|a| a.assume()).collect();
        all.into_iter().collect()
    }

    /// Whether results are derived step by step.
    fn derives(&self) -> bool {
        self.explain || self.derivation.is_some() || self.report.is_some()
    }

    fn page(&self, program: &Program, outcome: &Outcome) -> Result<String> {
        let model = self.cost.model().name().to_string();
        let assumed = self.assumed().into_iter().map(|a| format!(" ({})", a.says()));
        let level = std::iter::once(self.float.level().to_string()).chain(assumed).collect();
        let about = report::About { file: program.source.name.clone(), model, level };
        report::page(&about, &story::stories(program, outcome))
    }

    /// The text of the derivations.
    fn record(&self, program: &Program, outcome: &Outcome, options: &pipeline::Options<'_>) -> Result<String> {
        let mut library = rules::Library::shipped()?;
        for source in &options.rules {
            library.extend(source)?;
        }
        Ok(pipeline::replay::record(program, outcome, &library, options))
    }

    fn object(&self, outcome: &Outcome) -> Json {
        let row = |r: &Row| {
            json!({
                "name": r.name,
                "cost_before": r.cost_before,
                "cost_after": r.cost_after,
                "engine": r.engine,
                "steps": r.steps,
                "fired": r.fired.iter().cloned().collect::<BTreeMap<String, usize>>(),
                "seconds": r.seconds,
                "proved": r.proved,
                "stopped": r.stopped,
                "unproved": r.unproved.as_ref().map(|u| json!({ "cost": u.cost, "why": u.why })),
                "skipped": r.skipped,
            })
        };
        json!({ "defs": outcome.rows.iter().map(row).collect::<Vec<Json>>(), "cost_model": self.cost.model().name(),
            "assume": self.assumed().into_iter().map(Assume::name).collect::<Vec<_>>(), "seconds": outcome.seconds })
    }
}

/// Refuses an estimate of something that no definition names: it would change nothing.
///
/// # Errors
/// There is one.
pub fn known_sizes(program: &Program, sizes: &[(String, u64)]) -> Result<()> {
    let params = || program.defs.values().flat_map(|d| &d.params);
    let integers = params().filter(|p| p.ty == Ty::int()).map(|p| p.name.as_str());
    let axes = cost::size_names(program);
    let known: Vec<&str> = axes.iter().map(String::as_str).chain(integers).collect();
    match sizes.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let d = Diagnostic::user(format!("no definition of `{}` names a size `{name}`", program.source.name));
            let d = d.hint(nearest(name, known));
            let named = "a size has a name where a parameter gives it one, as `n` in `(x : (Vec Float) n)`";
            Err(d.note(format!("{named}; that of `(y : (Vec Float))` is `y.1`")))
        }
    }
}

/// Says on the standard error which searches were cut short.
pub fn stopped(rows: &[Row]) {
    for reason in ["time", "memory", "interrupt"] {
        let names: Vec<&str> = rows.iter().filter(|r| r.stopped == Some(reason)).map(|r| r.name.as_str()).collect();
        if !names.is_empty() {
            // A note that cannot be shown is not worth an error.
            let _ = writeln!(io::stderr(), "note: stopped by {reason}, the best so far is kept: {}", names.join(", "));
        }
    }
}

/// Shows how far the search for better definitions is.
pub fn tell(line: &run::Progress, told: Told<'_>) {
    match told {
        Told::All(n) => line.all(n),
        Told::Begins(name) => line.doing(name),
        Told::Ends(_) => line.done(),
    }
}

fn table(rows: &[Row], seconds: f64, look: Look) -> Vec<String> {
    let total = |f: fn(&Row) -> f64| rows.iter().map(f).sum::<f64>();
    let width = rows.iter().map(|r| r.name.chars().count()).chain([5]).max().unwrap_or_default();
    let line = |name: &str, before: f64, after: f64, seconds: f64, skipped: Option<&String>| {
        let ratio = if after > 0.0 { format!("{:.3}", before / after) } else { "-".into() };
        let ratio = format!("{ratio:>8}");
        let ratio = if after < before - 1e-6 { look.ink(Ink::Good, &ratio) } else { ratio };
        let why = skipped.map_or_else(String::new, |why| format!("  skipped: {why}"));
        format!("{name:width$}  {before:>14.1}  {after:>14.1}  {ratio}  {seconds:>8.2}{why}")
    };
    let head = format!("{:width$}  {:>14}  {:>14}  {:>8}  {:>8}", "def", "before", "after", "ratio", "seconds");
    let mut out = vec![look.ink(Ink::Head, &head)];
    out.extend(rows.iter().map(|r| line(&r.name, r.cost_before, r.cost_after, r.seconds, r.skipped.as_ref())));
    out.push(line("total", total(|r| r.cost_before), total(|r| r.cost_after), seconds, None));
    out
}

/// A paragraph for each definition whose search found something.
fn fired(rows: &[Row]) -> Vec<String> {
    let mut out = vec![];
    for row in rows.iter().filter(|r| !r.fired.is_empty()) {
        out.extend([String::new(), format!("{}: rules that fired", row.name)]);
        let mut rules: Vec<&(String, usize)> = row.fired.iter().collect();
        rules.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), name));
        out.extend(rules.iter().map(|(name, n)| format!("{n:>7}  {name}")));
    }
    out
}
