//! A program becomes a cheaper one: the passes in order, with the verifier after them.
//!
//! Invariant: no definition comes out costlier than it went in, as recomputed from the printed text.

use crate::cost::{Costing, Model};
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty, print};
use crate::rewrite::egraph::exact::Effort;
use crate::rewrite::egraph::optimize::{Found, SEARCH_SHARE, Settings, optimize as saturate};
use crate::rewrite::egraph::pattern::{Compiled, compile};
use crate::rewrite::egraph::saturate::Limits;
use crate::rewrite::inline::{flatten, recursive};
use crate::rules::{Level, Library};
use crate::types;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How to optimize.
pub struct Options<'a> {
    /// Names of the definitions to optimize; all where there are none.
    pub defs: Vec<String>,
    /// The cost model.
    pub cost: Model,
    /// What rules must keep.
    pub float: Level,
    /// Estimated sizes by name.
    pub sizes: Vec<(String, u64)>,
    /// Rule files beside the shipped ones.
    pub rules: Vec<Arc<Source>>,
    /// E-nodes at most.
    pub max_nodes: usize,
    /// Whether extraction goes on until it is proved that no choice is cheaper, where that is in reach.
    pub exact: bool,
    /// Threads at most; as many as the machine has where it is 0. The result does not depend on it.
    pub threads: usize,
    /// What is spent, if a share of what may be spent is: then the best so far is the result.
    pub stop: &'a (dyn Fn(f64) -> Option<&'static str> + Sync),
    /// Told what is being done.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Seconds since some time, for the report; nothing else depends on it.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// The node limit where none is asked for.
pub const MAX_NODES: usize = 10_000;

impl Options<'_> {
    /// The choices made where none are asked for.
    pub fn standard() -> Options<'static> {
        Options {
            defs: vec![],
            cost: Model::Analytic,
            float: Level::Real,
            sizes: vec![],
            rules: vec![],
            max_nodes: MAX_NODES,
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
    /// How many rule applications changed something.
    pub steps: usize,
    /// How long it took.
    pub seconds: f64,
    /// Rules that fired and how often.
    pub fired: Vec<(String, usize)>,
    /// Whether no choice of one member a class of the last e-graph is cheaper.
    pub proved: bool,
    /// What was spent before the search was done: `time`, `memory`, or the user's patience.
    pub stopped: Option<&'static str>,
}

/// An optimized program.
pub struct Outcome {
    /// The program: every definition of the input, in order.
    pub program: Program,
    /// A row for each definition that was to be optimized.
    pub rows: Vec<Row>,
}

/// Terms with more nodes than this share of the node limit are left as they are.
const START_SHARE: usize = 4;

/// The exact search where nobody asks for it: for small e-graphs it is quicker than trials.
pub const SMALL: Effort = Effort { places: 60, branches: 30 };
/// The exact search where it is asked for.
pub const EXACT: Effort = Effort { places: 600, branches: 3000 };

/// Optimizes a program.
///
/// # Errors
/// Unknown names of definitions; wrong rule files; a bug if the result does not check.
pub fn optimize(program: &Program, options: &Options<'_>) -> Result<Outcome> {
    let mut library = Library::shipped()?;
    for source in &options.rules {
        library.extend(source)?;
    }
    optimize_with(program, &prepare(&library, options.float)?, options)
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
    let search = |def| {
        (options.progress)(Def::name(def));
        let from = (options.clock)();
        let found = match recursive.contains(&def.fun) || (options.stop)(SEARCH_SHARE).is_some() {
            true => None,
            false => one(program, def, &recursive, compiled, options),
        };
        let stopped = (options.stop)(1.0).or_else(|| (options.stop)(SEARCH_SHARE));
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
    assemble(program, results, options)
}

/// What the search made of a definition.
struct Searched<'a> {
    found: Option<Found>,
    def: &'a Def,
    seconds: f64,
    stopped: Option<&'static str>,
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

fn one(
    program: &Program,
    def: &Def,
    recursive: &FxHashSet<Fun>,
    rules: &[Compiled<'_>],
    options: &Options<'_>,
) -> Option<Found> {
    let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flatten = |terms: &Terms, id: Id| flatten(program, recursive, terms, id, &params);
    let start = flatten(&program.terms, def.term()?)?;
    if start.terms.reachable(start.id).len() > options.max_nodes / START_SHARE {
        return None;
    }
    let mut costing = Costing::new(program, options.cost, &options.sizes);
    let limits = Limits { nodes: options.max_nodes, rounds: 30, matches: 500 };
    let (model, sizes) = (options.cost, options.sizes.as_slice());
    let level = options.float;
    let effort = if options.exact { EXACT } else { SMALL };
    let stop = |share: f64| (options.stop)(share).is_some();
    let settings = Settings {
        rules,
        level,
        model,
        sizes,
        limits,
        flatten: &flatten,
        restarts: 4,
        trials: 300,
        effort,
        stop: &stop,
    };
    saturate(def, start, &mut costing, &settings)
}

/// Puts the better bodies into the program, checks it, and reads it again from its text. What was
/// asked for has no names from the source, so that programs that differ only in names come out the
/// same.
fn assemble(program: &Program, results: Vec<Searched<'_>>, options: &Options<'_>) -> Result<Outcome> {
    let mut old = Costing::new(program, options.cost, &options.sizes);
    // Definitions come after what they call, so a call may be better than what was found without it.
    let mut work = program.clone();
    let mut rows = vec![];
    let mut better: FxHashMap<Fun, Found> = FxHashMap::default();
    for Searched { found, def, seconds, stopped } in results {
        let cost_before = old.def(def)?;
        let cost_kept = Costing::new(&work, options.cost, &options.sizes).def(def)?;
        let mut fired: BTreeMap<String, usize> = BTreeMap::new();
        let proved = found.as_ref().is_some_and(|f| f.proved);
        if let Some(found) = found.filter(|f| f.cost < cost_kept - 1e-9) {
            for (name, n) in found.reports.iter().flat_map(|r| &r.fired) {
                *fired.entry(name.clone()).or_default() += n;
            }
            let body = work.terms.import(&found.terms, found.id);
            if let Some(d) = work.defs.get_mut(&def.fun) {
                d.body = Body::Term(body);
            }
            better.insert(def.fun, found);
        }
        let steps = fired.values().sum();
        let fired = fired.into_iter().collect();
        let (name, cost_after) = (def.name().to_string(), cost_before);
        rows.push(Row { name, cost_before, cost_after, engine: "egraph", steps, seconds, fired, proved, stopped });
    }
    let wanted: FxHashSet<Fun> = chosen(program, &options.defs)?.iter().map(|d| d.fun).collect();
    work = program.clone();
    work.terms.forget_names();
    let text: Vec<String> = program
        .defs
        .values()
        .map(|d| match better.get(&d.fun) {
            Some(f) => print::def(&f.terms, &Def { body: Body::Term(f.id), ..d.clone() }) + "\n",
            None if wanted.contains(&d.fun) => print::def(&work.terms, d) + "\n",
            None => print::def(&program.terms, d) + "\n",
        })
        .collect();
    let source = Source::new(format!("{} (optimized)", program.source.name), text.join("\n"));
    let program = types::program(&source)
        .map_err(|d| Diagnostic::bug("the optimized program does not read back").note(d.render()))?;
    types::verify::verify(&program)?;
    let mut new = Costing::new(&program, options.cost, &options.sizes);
    for (row, def) in rows.iter_mut().zip(chosen(&program, &options.defs)?) {
        row.cost_after = new.def(def)?;
        if row.cost_after > row.cost_before + 1e-6 {
            let message = format!("`{}` came out costlier: {} after {}", row.name, row.cost_after, row.cost_before);
            return Err(Diagnostic::bug(message));
        }
    }
    Ok(Outcome { program, rows })
}
