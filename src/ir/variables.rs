//! The free variables of a term, exactly: [`Free`] is a set of bits, and does not tell apart those that are far out.

use super::{Free, Head, Id, Terms};
use rustc_hash::FxHashSet;

/// The free variables of a term, by index.
pub struct Variables {
    near: Free,
    /// All of them, where some are far out.
    all: Option<FxHashSet<usize>>,
}

impl Variables {
    /// Whether a variable is free.
    pub fn has(&self, index: usize) -> bool {
        self.all.as_ref().map_or_else(|| self.near.has(index), |all| all.contains(&index))
    }

    /// Whether any of the innermost `n` variables is free.
    pub fn below(&self, n: usize) -> bool {
        self.all.as_ref().map_or_else(|| self.near.below(n), |all| all.iter().any(|i| *i < n))
    }
}

impl Terms {
    /// The free variables of a term; in time linear in it where some are far out.
    pub fn variables(&self, id: Id) -> Variables {
        let near = self.free(id);
        Variables { near, all: near.above(63).then(|| self.all_free(id)) }
    }

    fn all_free(&self, id: Id) -> FxHashSet<usize> {
        let (mut out, mut seen, mut open) = (FxHashSet::default(), FxHashSet::default(), vec![(id, 0)]);
        while let Some((id, under)) = open.pop() {
            if !self.free(id).above(under) || !seen.insert((id, under)) {
                continue;
            }
            if let Head::Var(i, _) = self.head(id) {
                out.extend((i as usize).checked_sub(under));
            }
            let (head, kids) = (self.head(id), self.kids(id));
            open.extend(kids.iter().enumerate().map(|(k, kid)| (*kid, under + head.binds(k, kids.len()))));
        }
        out
    }
}
