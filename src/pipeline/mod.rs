//! A program becomes a cheaper one: the passes in order, with the verifier after them.
//!
//! Invariant: no definition comes out costlier than it went in, as recomputed from the printed text.

mod assemble;
mod callers;
pub mod lab;
pub mod native;
mod only;
pub mod replay;
mod search;
pub mod tuning;

pub use search::{EXACT, SMALL};

use crate::cost::Model;
use crate::derive::Derivation;
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::ir::{Def, Id, Program, Terms};
use crate::rewrite::agent::{self, Bind};
use crate::rewrite::egraph::optimize::SEARCH_SHARE;
use crate::rewrite::egraph::pattern::{Compiled, compile};
use crate::rewrite::explain::Unproved;
use crate::rewrite::inline::recursive;
use crate::rules::assume::Assume;
use crate::rules::{Level, Library};
use assemble::{Searched, assemble};
use only::Chosen;
use rayon::prelude::*;
use search::{Search, Tried};
use std::sync::Arc;

/// How to optimize.
pub struct Options<'a> {
    /// Names of the definitions to optimize; all where there are none.
    pub defs: Vec<String>,
    /// The cost model.
    pub cost: Model,
    /// What rules must keep.
    pub float: Level,
    /// What the rules that are read here may take for granted.
    pub assume: Vec<Assume>,
    /// Estimated sizes by name.
    pub sizes: Vec<(String, u64)>,
    /// Rule files beside the shipped ones.
    pub rules: Vec<Arc<Source>>,
    /// How rewrites are searched.
    pub engine: Engine,
    /// E-nodes at most.
    pub max_nodes: usize,
    /// States that a search of terms evaluates at most.
    pub budget: usize,
    /// Rewrites from the input that a search of terms makes at most.
    pub depth: usize,
    /// What a search of terms does with bindings.
    pub bind: Bind,
    /// Whether a search of terms makes its first half of rewrites by rules of phase 1 alone.
    pub phased: bool,
    /// The rules and moves that are used, by name, or by the name of their file or group; all where none
    /// is named.
    pub only: Vec<String>,
    /// Where chance begins.
    pub seed: u64,
    /// The network that says what a search may expect of terms.
    pub value: Option<&'a agent::value::Network>,
    /// Whether to derive every result, step by step.
    pub derive: bool,
    /// Whether extraction goes on until it is proved that no choice is cheaper, where that is in reach.
    pub exact: bool,
    /// Threads at most; as many as the machine has where it is 0. The result does not depend on it.
    pub threads: usize,
    /// What is spent, if a share of what may be spent is: then the best so far is the result.
    pub stop: &'a (dyn Fn(f64) -> Option<&'static str> + Sync),
    /// Told how far the work is.
    pub progress: &'a (dyn Fn(Told<'_>) + Sync),
    /// Seconds since some time, for the report; nothing else depends on it.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// What is told of the work while it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// So many definitions are to be optimized.
    All(usize),
    /// The search for one begins.
    Begins(&'a str),
    /// The search for one has ended.
    Ends(&'a str),
}

/// How rewrites are searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// Equality saturation.
    Egraph,
    /// A search of terms, one rewrite after another.
    Agent(agent::Engine),
    /// Equality saturation; then A* goes on from its result and from the input.
    Auto,
}

impl Engine {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Egraph => "egraph",
            Engine::Agent(engine) => engine.name(),
            Engine::Auto => "auto",
        }
    }
}

/// The node limit where none is asked for.
pub const MAX_NODES: usize = 10_000;
/// The number of evaluations where none is asked for.
pub const BUDGET: usize = 5_000;
/// The number of rewrites in a row where none is asked for.
pub const DEPTH: usize = 60;

impl Options<'_> {
    /// The choices made where none are asked for.
    pub fn standard() -> Options<'static> {
        Options {
            defs: vec![],
            cost: Model::Analytic,
            float: Level::Real,
            assume: vec![],
            sizes: vec![],
            rules: vec![],
            engine: Engine::Egraph,
            max_nodes: MAX_NODES,
            budget: BUDGET,
            depth: DEPTH,
            bind: Bind::Placed,
            phased: false,
            only: vec![],
            seed: 0,
            value: None,
            derive: false,
            exact: false,
            threads: 0,
            stop: &|_| None,
            progress: &|_| {},
            clock: &|| 0.0,
        }
    }
}

/// What happened to one definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Cost of the input.
    pub cost_before: f64,
    /// Cost of the output.
    pub cost_after: f64,
    /// What did it.
    pub engine: &'static str,
    /// How many rule applications changed something on the way to a better result; 0 where there is none.
    pub steps: usize,
    /// How long it took.
    pub seconds: f64,
    /// Rules that fired in the search and how often, whatever came of it.
    pub fired: Vec<(String, usize)>,
    /// How many classes and matches the search looked at, which is what it takes time for.
    pub looked: usize,
    /// Nodes of the e-graph at the start and after each round, for each time the search started.
    pub growth: Vec<Vec<usize>>,
    /// Whether no choice of one member a class of the last e-graph is cheaper.
    pub proved: bool,
    /// What was spent before the search was done: `time`, `memory`, or the user's patience.
    pub stopped: Option<&'static str>,
    /// The cheapest result that was found and is not used, because no derivation of it was found.
    pub unproved: Option<Unproved>,
}

/// An optimized program.
pub struct Outcome {
    /// The program: every definition of the input, in order.
    pub program: Program,
    /// A row for each definition that was to be optimized.
    pub rows: Vec<Row>,
    /// A derivation for each row, where that was asked for.
    pub derivations: Vec<Derived>,
    /// How long all of it took by the clock: definitions are worked on side by side.
    pub seconds: f64,
}

/// A derivation with the programs on its way.
pub struct Derived {
    /// The derivation.
    pub derivation: Derivation,
    /// The program with lets at the start and after each step, each in its arena.
    pub programs: Vec<(Terms, Id)>,
    /// The text of the part that each step changes, before and after, where it is short.
    pub changes: Vec<(String, String)>,
}

/// Optimizes a program.
///
/// # Errors
/// Unknown names of definitions; wrong rule files; a bug if the result does not check.
pub fn optimize(program: &Program, options: &Options<'_>) -> Result<Outcome> {
    let mut library = Library::shipped()?;
    for source in &options.rules {
        library.extend(source)?;
    }
    let library = library.assuming(&options.assume);
    let only = Chosen::new(&library, options)?;
    let mut rules = prepare(&library, options.float)?;
    rules.retain(|r| only.rule(r.rule));
    optimize_with(program, &rules, options)
}

/// The rules of a library that keep what a level asks for, ready to be searched for.
///
/// # Errors
/// A rule that cannot be searched for.
pub fn prepare(library: &Library, float: Level) -> Result<Vec<Compiled<'_>>> {
    let mut compiled = vec![];
    for rule in library.rules.iter().filter(|r| r.level <= float) {
        compiled.extend(compile(rule)?);
    }
    Ok(compiled)
}

/// Optimizes a program with rules that were prepared before.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_with(program: &Program, compiled: &[Compiled<'_>], options: &Options<'_>) -> Result<Outcome> {
    let chosen = chosen(program, &options.defs)?;
    let recursive = recursive(program);
    let began = (options.clock)();
    (options.progress)(Told::All(chosen.len()));
    let search = |def| {
        (options.progress)(Told::Begins(Def::name(def)));
        let from = (options.clock)();
        let search = Search { program, def, kept: &recursive, rules: compiled, options, began: search::began(options) };
        let stopped = (options.stop)(SEARCH_SHARE);
        let found = match recursive.contains(&def.fun) || stopped.is_some() {
            true => Tried::default(),
            false => search.best(),
        };
        let stopped = stopped.or(found.stopped);
        (options.progress)(Told::Ends(Def::name(def)));
        Searched { found, def, seconds: (options.clock)() - from, stopped }
    };
    let results = match options.threads {
        0 => chosen.into_par_iter().map(search).collect(),
        1 => chosen.into_iter().map(search).collect(),
        n => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
            let pool = pool.map_err(|e| Diagnostic::limit(format!("the threads cannot be started: {e}")))?;
            pool.install(|| chosen.into_par_iter().map(search).collect())
        }
    };
    let mut outcome = assemble(program, results, options)?;
    callers::explain(program, &outcome.program, &mut outcome.rows, options)?;
    Ok(Outcome { seconds: (options.clock)() - began, ..outcome })
}

fn chosen<'a>(program: &'a Program, names: &[String]) -> Result<Vec<&'a Def>> {
    for name in names {
        if program.named(name).is_empty() {
            let hint = nearest(name, program.defs.values().map(Def::name));
            return Err(Diagnostic::user(format!("there is no definition `{name}`")).hint(hint));
        }
    }
    let wanted = |d: &&Def| d.term().is_some() && (names.is_empty() || names.iter().any(|n| n == d.name()));
    Ok(program.defs.values().filter(wanted).collect())
}
