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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Lit, Op, Ty};

    /// Protects: variables far out are told from each other, under binders and beside nearer ones.
    #[test]
    fn far_variables_are_told_apart() {
        let mut terms = Terms::default();
        let int = Ty::int();
        let far: Vec<Id> = [3, 70, 90].iter().map(|i| terms.var(*i, int)).collect();
        let sum = terms.put(Head::Op(Op::Add), [far[1], far[2]]);
        let one = terms.put(Head::Const(Lit::int(1)), []);
        let body = terms.put(Head::Op(Op::Mul), [sum, far[0]]);
        let bound = terms.put(Head::Let, [one, body]);
        let free = |id: Id| (0..100).filter(|i| terms.variables(id).has(*i)).collect::<Vec<_>>();
        assert_eq!((free(body), free(bound)), (vec![3, 70, 90], vec![2, 69, 89]));
        assert_eq!((free(far[0]), free(one)), (vec![3], vec![]));
        let below = |id: Id, n: usize| terms.variables(id).below(n);
        assert!(below(body, 4) && !below(body, 3) && !below(sum, 70) && below(sum, 71));
    }
}
