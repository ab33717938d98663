//! Definitions that are one function once lets and calls are in their places are searched once, and those that only
//! hand their parameters on are not searched: a wrapper takes over what was found for what it calls.

use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty};
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

/// What is called has so many nodes at least where its wrappers are not searched: beside it a call costs nothing.
const LARGE: usize = 300;

/// The large definition that a wrapper calls once, where all else it does is to take tuples apart and to put them
/// together: there is nothing to find in it that is not found there.
pub fn wraps(program: &Program, def: &Def) -> Option<Fun> {
    let terms = &program.terms;
    // How often each term calls; a term that stands twice calls twice.
    let (mut calls, mut called) = (FxHashMap::<Id, u32>::default(), None);
    let body = def.term()?;
    for id in terms.reachable(body) {
        let own = match terms.head(id) {
            Head::Var(..) | Head::Get(..) | Head::Tuple | Head::Let => 0,
            Head::Call(fun) if fun != def.fun => {
                called = Some(fun);
                1
            }
            _ => return None,
        };
        let below = terms.kids(id).iter().fold(own, |sum: u32, kid| sum.saturating_add(calls[kid]));
        calls.insert(id, below);
    }
    let large = |fun: &Fun| {
        let body = program.defs.get(fun).and_then(Def::term);
        body.is_some_and(|body| terms.reachable(body).len() >= LARGE)
    };
    called.filter(large).filter(|_| calls[&body] == 1)
}
