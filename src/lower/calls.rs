//! Who calls whom: which calls are inlined, and how large that is.

use crate::ir::{Def, Fun, Head, Id, Program};
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions that can reach themselves.
pub(super) fn recursive(program: &Program) -> FxHashSet<Fun> {
    let calls = |d: &Def| d.term().map(|body| program.terms.calls(body)).unwrap_or_default();
    let next: FxHashMap<Fun, Vec<Fun>> = program.defs.values().map(|d| (d.fun, calls(d))).collect();
    let reaches_itself = |f: &Fun| {
        let (mut seen, mut todo) = (FxHashSet::default(), next[f].clone());
        while let Some(g) = todo.pop() {
            if g == *f {
                return true;
            }
            if seen.insert(g) {
                todo.extend(next.get(&g).into_iter().flatten());
            }
        }
        false
    };
    next.keys().filter(|f| reaches_itself(f)).copied().collect()
}

/// The nodes of a definition as a tree in which calls stand for their bodies.
pub(super) fn inlined_size(program: &Program, recursive: &FxHashSet<Fun>, def: &Def) -> u64 {
    // A body names functions above it, so the order of the source is an order of dependence.
    let mut known: FxHashMap<Fun, u64> = FxHashMap::default();
    for d in program.defs.values() {
        let Some(body) = d.term() else { continue };
        let mut sizes: FxHashMap<Id, u64> = FxHashMap::default();
        for id in program.terms.reachable(body) {
            let own = match program.terms.head(id) {
                Head::Call(f) if !recursive.contains(&f) => known.get(&f).copied().unwrap_or(1),
                _ => 1,
            };
            let sum = program.terms.kids(id).iter().fold(own, |a, k| a.saturating_add(sizes[k]));
            sizes.insert(id, sum);
        }
        known.insert(d.fun, sizes[&body]);
    }
    known.get(&def.fun).copied().unwrap_or(0)
}
