//! Definitions that are one function once lets and calls are in their places are searched once: a wrapper takes
//! over what was found for what it calls.

use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::inline::{Site, flatten};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a search knows of a parameter: its type, the names of its sizes, and its own where an estimate has it.
type Parameter<'a> = (Ty, &'a [String], Option<&'a str>);

/// What a search knows of a definition: its parameters, its let-free body, and what is certain to be evaluated in
/// it, all in one arena.
type Known<'a> = (Vec<Parameter<'a>>, Id, Vec<Site>);

/// For each definition the number of the first that is the same function: its own where it is that one, or where
/// it makes more than `most` nodes.
pub fn firsts(
    program: &Program,
    kept: &FxHashSet<Fun>,
    defs: &[&Def],
    sizes: &[(String, u64)],
    most: usize,
) -> Vec<usize> {
    let mut arena = Terms::default();
    let mut seen: FxHashMap<Known<'_>, usize> = FxHashMap::default();
    let mut out = vec![];
    for (k, def) in defs.iter().enumerate() {
        let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let flat = def.term().and_then(|body| flatten(program, kept, (&program.terms, body), &tys, most));
        let first = flat.map_or(k, |flat| {
            let (body, strict) = flat.key(&mut arena);
            *seen.entry((parameters(def, sizes), body, strict)).or_insert(k)
        });
        out.push(first);
    }
    out
}

fn parameters<'a>(def: &'a Def, sizes: &[(String, u64)]) -> Vec<Parameter<'a>> {
    let told = |name: &str| sizes.iter().any(|(n, _)| n == name);
    def.params.iter().map(|p| (p.ty, p.sizes.as_slice(), Some(p.name.as_str()).filter(|n| told(n)))).collect()
}
