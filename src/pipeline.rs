//! A program becomes a cheaper one: the passes in order, with the verifier after them.
//!
//! Invariant: no definition comes out costlier than it went in, as recomputed from the printed text.

use crate::cost::{Costing, Model};
use crate::derive::check::Rules;
use crate::derive::{Derivation, Step};
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty, print};
use crate::rewrite::agent::{self, Agent, Bind};
use crate::rewrite::egraph::exact::Effort;
use crate::rewrite::egraph::optimize::{Found, SEARCH_SHARE, Settings, optimize as saturate};
use crate::rewrite::egraph::pattern::{Compiled, compile};
use crate::rewrite::egraph::saturate::{Limits, Report};
use crate::rewrite::explain::{self, Task};
use crate::rewrite::inline::{flatten, recursive};
use crate::rules::{Level, Library, Rule};
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
    /// Told what is being done.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Seconds since some time, for the report; nothing else depends on it.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
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
    /// Nodes of the e-graph at the start and after each round, for each time the search started.
    pub growth: Vec<Vec<usize>>,
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
    /// A derivation for each row, where that was asked for.
    pub derivations: Vec<Derived>,
}

/// A derivation with the programs on its way.
pub struct Derived {
    /// The derivation.
    pub derivation: Derivation,
    /// The program with lets at the start and after each step, each in its arena.
    pub programs: Vec<(Terms, Id)>,
    /// The text of the part that each step changes, before and after, where it is short.
    pub changes: Vec<(String, String)>,
    /// Why better results were not kept: nothing was, that could not be derived.
    pub given_up: Vec<String>,
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
    found: Option<Search>,
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
) -> Option<Search> {
    let input = || Some((&program.terms, def.term()?));
    let walk = Walk { program, def, kept: recursive, rules, options };
    match options.engine {
        Engine::Egraph => saturated(program, def, recursive, rules, options),
        Engine::Agent(engine) => walk.search(input()?, &[], engine, options.budget),
        Engine::Auto => {
            let first = saturated(program, def, recursive, rules, options);
            let half = (options.budget / 2).max(1);
            let on = first.as_ref().and_then(|s| {
                let before = s.derived.as_ref().map_or(&[][..], |d| &d.derivation.steps);
                walk.search((&s.found.terms, s.found.id), before, agent::Engine::Astar, half)
            });
            let anew = walk.search(input()?, &[], agent::Engine::Astar, half);
            let all = [first, on, anew].into_iter().flatten();
            // The first of equal ones.
            all.reduce(|best, other| if other.found.cost < best.found.cost - 1e-9 { other } else { best })
        }
    }
}

/// Equality saturation of one definition.
fn saturated(
    program: &Program,
    def: &Def,
    recursive: &FxHashSet<Fun>,
    rules: &[Compiled<'_>],
    options: &Options<'_>,
) -> Option<Search> {
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
        journal: options.derive,
        effort,
        stop: &stop,
    };
    let found = saturate(def, start, &mut costing, &settings)?;
    match options.derive {
        true => derive(program, def, recursive, rules, found, options),
        false => Some(Search { found, derived: None }),
    }
}

/// The best result of equality saturation that can be derived.
fn derive(
    program: &Program,
    def: &Def,
    kept: &FxHashSet<Fun>,
    rules: &[Compiled<'_>],
    mut found: Found,
    options: &Options<'_>,
) -> Option<Search> {
    let by_name = by_name(rules);
    let task = Task { program, def, kept, rules: &by_name, level: options.float, model: options.cost };
    let out = explain::derived(&task, found.journal.as_mut()?)?;
    Some(told(program, def, found, out, options))
}

fn by_name<'a>(rules: &'a [Compiled<'a>]) -> Rules<'a> {
    rules.iter().map(|r| (r.rule.name.as_str(), r.rule)).collect()
}

/// A derived result, with what the programs on the way cost.
fn told(program: &Program, def: &Def, mut found: Found, mut out: explain::Derived, options: &Options<'_>) -> Search {
    let mut costing = Costing::new(program, options.cost, &options.sizes);
    (found.terms, found.id) = out.candidate.shared.clone();
    found.cost = costing.term(found.id, def, &found.terms);
    let programs: Vec<(Terms, Id)> =
        out.programs.iter().map(|p| explain::running::shared(&out.terms, *p, def, options.cost)).collect();
    let costs: Vec<f64> = programs.iter().map(|(terms, id)| costing.term(*id, def, terms)).collect();
    out.steps.iter_mut().zip(&costs[1..]).for_each(|(step, cost)| step.cost = *cost);
    let derivation = Derivation {
        name: def.name().to_string(),
        params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
        steps: out.steps,
        start: costs[0],
        result: String::new(),
        cost_before: 0.0,
        cost_after: 0.0,
    };
    let derived = Derived { derivation, programs, changes: out.changes, given_up: out.given_up };
    Search { found, derived: Some(derived) }
}

/// A search's result, and how it is derived.
struct Search {
    found: Found,
    derived: Option<Derived>,
}

/// A search of the terms of one definition.
struct Walk<'a> {
    program: &'a Program,
    def: &'a Def,
    kept: &'a FxHashSet<Fun>,
    rules: &'a [Compiled<'a>],
    options: &'a Options<'a>,
}

/// A search that is to be derived starts again without the step that was refused, so often at most.
const MAX_REFUSED: usize = 6;

impl Walk<'_> {
    /// Searches from a term to which the steps `before` lead.
    fn search(&self, from: (&Terms, Id), before: &[Step], engine: agent::Engine, budget: usize) -> Option<Search> {
        let Walk { program, def, kept, rules, options } = self;
        let Options { float: level, cost: model, depth, seed, bind, phased, value, .. } = **options;
        let bindings = std::array::from_fn(|k| names(&options.only, agent::bindings::NAMES[k], agent::bindings::GROUP));
        let stop = || (options.stop)(SEARCH_SHARE).is_some();
        let settings = agent::optimize::Settings {
            engine,
            rules,
            bind,
            bindings,
            phased,
            level,
            model,
            budget,
            depth,
            seed,
            value,
            stop: &stop,
        };
        let mut costing = Costing::new(program, model, &options.sizes);
        let agent = Agent::new(program, kept, def, from, &settings)?;
        let mut best = agent.search(&mut costing, &settings)?;
        if !options.derive {
            return Some(Search { found: found(best), derived: None });
        }
        let by_name = by_name(rules);
        let task = Task { program, def, kept, rules: &by_name, level, model };
        let (mut count, mut given_up) = (best.steps.len(), vec![]);
        for tries in 0.. {
            match explain::moves::derived(&task, before, &best, count) {
                Ok(mut out) => {
                    out.given_up = given_up;
                    return Some(told(program, def, found(best), out, options));
                }
                Err(refused) => {
                    given_up.push(refused.why);
                    let step = refused.step?;
                    if tries < MAX_REFUSED {
                        agent.refuse(&best.steps[step]);
                        best = agent.search(&mut costing, &settings)?;
                        count = best.steps.len();
                    } else {
                        // At last the cheapest term before the step that is refused.
                        let to = (0..step).min_by(|a, b| best.steps[*a].cost.total_cmp(&best.steps[*b].cost))?;
                        count = to + 1;
                    }
                }
            }
        }
        None
    }
}

/// What a search of terms found.
fn found(best: agent::optimize::Best) -> Found {
    let mut report = Report::default();
    for step in best.steps {
        *report.fired.entry(step.name).or_default() += 1;
    }
    Found { terms: best.terms, id: best.id, cost: best.cost, reports: vec![report], journal: None, proved: false }
}

/// Whether a rule or move is among those that were named.
fn names(only: &[String], name: &str, group: &str) -> bool {
    only.is_empty() || only.iter().any(|n| n == name || n == group)
}

/// The rules that were asked for.
struct Chosen<'a>(&'a [String]);

impl<'a> Chosen<'a> {
    /// # Errors
    /// A name that neither a rule nor a move nor a group of them has; rules of which none keeps what is asked.
    fn new(library: &Library, options: &'a Options<'_>) -> Result<Chosen<'a>> {
        let chosen = Chosen(&options.only);
        let moves = agent::bindings::NAMES.iter().copied().chain([agent::bindings::GROUP]);
        let rules = || library.rules.iter();
        for name in &options.only {
            if !rules().any(|r| r.name == *name || group(r) == name) && !moves.clone().any(|m| m == name) {
                let all = rules().flat_map(|r| [r.name.as_str(), group(r)]).chain(moves);
                let d = Diagnostic::user(format!("there is no rule and no group of rules `{name}`"));
                return Err(d.hint(nearest(name, all)).note("`daedal rules list` shows all; a file is a group"));
            }
        }
        let any = rules().any(|r| r.level <= options.float && chosen.rule(r));
        if !any && !options.only.iter().any(|name| moves.clone().any(|m| m == name)) && !options.only.is_empty() {
            let message =
                format!("none of these rules keeps what `{}` asks for: {}", options.float, options.only.join(", "));
            return Err(Diagnostic::user(message).note("choose other rules, or `--float real`"));
        }
        Ok(chosen)
    }

    fn rule(&self, rule: &Rule) -> bool {
        names(self.0, &rule.name, group(rule))
    }
}

/// The name of the file that a rule stands in, without its folder and ending.
fn group(rule: &Rule) -> &str {
    let name = rule.source.name.rsplit(['/', '\\']).next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
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
    let mut derived: FxHashMap<Fun, Derived> = FxHashMap::default();
    for Searched { found: search, def, seconds, stopped } in results {
        let cost_before = old.def(def)?;
        let cost_kept = Costing::new(&work, options.cost, &options.sizes).def(def)?;
        let mut fired: BTreeMap<String, usize> = BTreeMap::new();
        let (mut steps, mut growth) = (0, vec![]);
        for (name, n) in search.iter().flat_map(|s| &s.found.reports).flat_map(|r| &r.fired) {
            *fired.entry(name.clone()).or_default() += n;
        }
        let proved = search.as_ref().is_some_and(|s| s.found.proved);
        if let Some(Search { found, derived: how }) = search.filter(|s| s.found.cost < cost_kept - 1e-9) {
            derived.extend(how.map(|d| (def.fun, d)));
            steps = fired.values().sum();
            growth = found.reports.iter().map(|r| r.growth.clone()).filter(|g| !g.is_empty()).collect();
            let body = work.terms.import(&found.terms, found.id);
            if let Some(d) = work.defs.get_mut(&def.fun) {
                d.body = Body::Term(body);
            }
            better.insert(def.fun, found);
        }
        let fired = fired.into_iter().collect();
        let (name, cost_after) = (def.name().to_string(), cost_before);
        let engine = options.engine.name();
        rows.push(Row { name, cost_before, cost_after, engine, steps, seconds, fired, growth, proved, stopped });
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
    let mut derivations = vec![];
    for (row, def) in rows.iter().zip(chosen(&program, &options.defs)?).filter(|_| options.derive) {
        let mut how = derived.remove(&def.fun).unwrap_or_else(|| unchanged(&program, def, row));
        how.derivation.result = print::def(&program.terms, def);
        (how.derivation.cost_before, how.derivation.cost_after) = (row.cost_before, row.cost_after);
        derivations.push(how);
    }
    Ok(Outcome { program, rows, derivations })
}

/// The derivation of what stays as it is.
fn unchanged(program: &Program, def: &Def, row: &Row) -> Derived {
    let derivation = Derivation {
        name: def.name().to_string(),
        params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
        steps: vec![],
        start: row.cost_before,
        result: String::new(),
        cost_before: row.cost_before,
        cost_after: row.cost_after,
    };
    let programs = def.term().map(|body| (program.terms.clone(), body)).into_iter().collect();
    Derived { derivation, programs, changes: vec![], given_up: vec![] }
}
