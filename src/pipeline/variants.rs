//! A program becomes equivalent ones: extractions of the same rewrites by models that price memory otherwise, and what keeps
//! all bits. Which of them is the fastest is not known before they are scheduled.

use super::optimize;
use super::options::Options;
use crate::ad;
use crate::cost::Model;
use crate::diag::{Result, Source};
use crate::ir::{Program, print};
use crate::rules::Level;
use crate::types;
use rayon::prelude::*;

/// An equivalent program.
pub struct Variant {
    /// How it was made, in a word; more than one where they make the same.
    pub names: Vec<&'static str>,
    /// The program.
    pub program: Program,
}

/// What makes them: by which model, and what is kept at least.
const RECIPES: [(&str, Model, Level); 5] = [
    ("optimized", Model::Analytic, Level::Real),
    ("exact", Model::Analytic, Level::Exact),
    ("stored", Model::Stored, Level::Real),
    ("recomputed", Model::Recomputed, Level::Real),
    ("published", Model::Knossos, Level::Real),
];

/// The programs that are equivalent for one definition, the source first; each text once. With no limit of time they are the
/// same ones every time.
///
/// # Errors
/// Those of optimizing.
pub fn variants(
    program: &Program,
    def: &str,
    (float, sizes): (Level, &[(String, u64)]),
    stop: &(dyn Fn(f64) -> Option<&'static str> + Sync),
) -> Result<Vec<Variant>> {
    let made = |(name, cost, level): &(&'static str, Model, Level)| {
        let (defs, sizes, float) = (vec![def.to_string()], sizes.to_vec(), (*level).min(float));
        let options = Options { defs, cost: *cost, float, sizes, stop, threads: 1, ..Options::standard() };
        let outcome = optimize(program, &options)?;
        // As whoever reads the file will have it.
        let source = Source::new(format!("{name}.ks"), print::program(&outcome.program));
        Ok((*name, ad::complete(&types::program(&source)?)?))
    };
    let made: Vec<Result<(&'static str, Program)>> = RECIPES.par_iter().map(made).collect();
    let mut out = vec![Variant { names: vec!["source"], program: program.clone() }];
    for one in made {
        let (name, program) = one?;
        let text = print::program(&program);
        match out.iter_mut().find(|v| print::program(&v.program) == text) {
            Some(known) => known.names.push(name),
            None => out.push(Variant { names: vec![name], program }),
        }
    }
    Ok(out)
}
