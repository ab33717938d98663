//! A program becomes a cheaper one: the passes in order, with the verifier after them.
//!
//! Invariant: no definition comes out costlier than it went in, as recomputed from the printed text, at the sizes
//! that were told and at others.

pub mod accumulated;
pub mod around;
mod assemble;
pub mod bounded;
mod callers;
mod cheaper;
pub mod close;
pub mod digest;
mod equal;
pub mod factored;
pub mod grades;
mod inlined;
pub mod joint;
pub mod lab;
pub mod lessons;
pub mod native;
pub mod needs;
mod only;
mod options;
mod outcome;
pub mod replay;
pub mod samples;
mod search;
pub mod simplify;
pub mod stages;
pub mod tabulated;
pub mod timed;
pub mod trial;
pub mod tuning;
pub mod variants;

pub use options::{BUDGET, DEPTH, Engine, MAX_NODES, Options, REGIONS, Told};
pub use outcome::{Derived, Outcome, Row};
pub use search::{EXACT, SMALL};

use crate::cost;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Fun, Program, Scalar};
use crate::rewrite::egraph::optimize::SEARCH_SHARE;
use crate::rewrite::egraph::pattern::{Compiled, compile};
use crate::rewrite::inline::recursive;
use crate::rules::narrow::is_narrow;
use crate::rules::{Level, Library};
use assemble::{Searched, assemble};
use only::{Chosen, chosen};
use rayon::prelude::*;
use search::{Search, Tried};

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
    fit(program, &mut rules);
    optimize_with(program, &rules, options)
}

/// Leaves out rules that fit nowhere in a program: those of 32-bit floats, where there are none.
fn fit(program: &Program, rules: &mut Vec<Compiled<'_>>) {
    if !program.terms.has_scalar(Scalar::F32) {
        rules.retain(|r| !is_narrow(r.rule));
    }
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
    let options = &Options { sizes: cost::with_reads(program, &options.sizes), ..options.clone() };
    let chosen = chosen(program, &options.defs)?;
    let recursive = recursive(program);
    let began = (options.clock)();
    (options.progress)(Told::All(chosen.len()));
    let search = |def| {
        (options.progress)(Told::Begins(Def::name(def)));
        let from = (options.clock)();
        let search = Search { program, def, kept: &recursive, rules: compiled, options, began: search::began(options) };
        let stopped = (options.stop)(SEARCH_SHARE);
        let searched = |fun: Fun| chosen.iter().any(|d| d.fun == fun) && !recursive.contains(&fun);
        let found = match stopped {
            _ if equal::wraps(program, def).is_some_and(searched) => Tried::default(),
            Some(_) => Tried::skipped("nothing was left to spend"),
            None => search.best(),
        };
        let stopped = stopped.or(found.stopped);
        (options.progress)(Told::Ends(Def::name(def)));
        Searched { found, def, seconds: (options.clock)() - from, stopped }
    };
    // A derivation begins with the calls of its own definition, so each is searched for itself where they are asked
    // for.
    let firsts = match options.derive {
        true => (0..chosen.len()).collect(),
        false => equal::firsts(program, &recursive, &chosen, &options.sizes, options.max_nodes),
    };
    let one = |k: usize| (firsts[k] == k).then(|| search(chosen[k]));
    let all = 0..chosen.len();
    let found: Vec<Option<Searched<'_>>> = match options.threads {
        0 => all.into_par_iter().map(one).collect(),
        1 => all.map(one).collect(),
        n => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
            let pool = pool.map_err(|e| Diagnostic::limit(format!("the threads cannot be started: {e}")))?;
            pool.install(|| all.into_par_iter().map(one).collect())
        }
    };
    let mut results: Vec<Searched<'_>> = vec![];
    for (k, found) in found.into_iter().enumerate() {
        let def = chosen[k];
        let again = || {
            (options.progress)(Told::Begins(def.name()));
            (options.progress)(Told::Ends(def.name()));
            results[firsts[k]].again(def)
        };
        results.push(found.unwrap_or_else(again));
    }
    let mut outcome = assemble(program, results, options)?;
    callers::explain(program, &outcome.program, &mut outcome.rows, options)?;
    Ok(Outcome { seconds: (options.clock)() - began, ..outcome })
}
