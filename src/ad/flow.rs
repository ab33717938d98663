//! Through which terms derivatives flow, and by which parameters a function that calls itself needs
//! its derivative.
//!
//! What has no floats carries none: a size, or a number made of an integer.

use crate::ir::{Fun, Head, Id, Terms, Ty, TyKind, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether derivatives flow through a term, by the set of its variables that carry one.
pub type Known = FxHashMap<(Id, u64), bool>;

/// Sets of variables are exact for indices below this.
const EXACT: usize = 63;

/// What is known of the variables outside of a term, and of its parts.
pub struct Flow<'a> {
    terms: &'a Terms,
    /// Whether a derivative flows through a free variable.
    outer: &'a dyn Fn(usize) -> bool,
    memo: FxHashMap<(Id, Vec<bool>), bool>,
    /// A walk asks of every part of a term again: what is the same question has one answer for all time.
    known: Known,
}

impl<'a> Flow<'a> {
    /// Nothing is known yet.
    pub fn new(terms: &'a Terms, outer: &'a dyn Fn(usize) -> bool) -> Flow<'a> {
        Flow::knowing(terms, outer, Known::default())
    }

    /// Goes on from what was known.
    pub fn knowing(terms: &'a Terms, outer: &'a dyn Fn(usize) -> bool, known: Known) -> Flow<'a> {
        Flow { terms, outer, memo: FxHashMap::default(), known }
    }

    /// What is known now.
    pub fn known(self) -> Known {
        self.known
    }

    /// Whether the variable of an index carries a derivative.
    fn carries(&self, index: usize, bound: &[bool]) -> bool {
        match bound.len().checked_sub(1 + index) {
            Some(at) => bound[at],
            None => (self.outer)(index - bound.len()),
        }
    }

    /// The variables in a term that carry derivatives, as a set. Nothing where there are variables too far
    /// out to be told apart.
    fn carried(&self, id: Id, bound: &[bool]) -> Option<u64> {
        let mut left = self.terms.free(id);
        if left.above(EXACT) {
            return None;
        }
        let mut out = 0;
        while let Some(index) = left.innermost() {
            left.0 &= left.0 - 1;
            out |= u64::from(self.carries(index, bound)) << index;
        }
        Some(out)
    }

    /// Whether a derivative flows through a term under variables of which that is known.
    pub fn flows(&mut self, id: Id, bound: &mut Vec<bool>) -> bool {
        if !has_floats(self.terms.ty(id)) || self.terms.free(id).is_closed() {
            return false;
        }
        let (terms, head) = (self.terms, self.terms.head(id));
        let kids = terms.kids(id);
        if let Head::Var(i, _) = head {
            return self.carries(i as usize, bound);
        }
        let key = self.carried(id, bound).map(|set| (id, set));
        let known = match key {
            Some((_, 0)) => Some(false),
            Some(key) => self.known.get(&key).copied(),
            None => self.memo.get(&(id, bound.clone())).copied(),
        };
        if let Some(known) = known {
            return known;
        }
        let last = kids.len().saturating_sub(1);
        let found = match self.under(id, bound) {
            None => kids.iter().any(|k| deep(|| self.flows(*k, bound))),
            Some(vars) => {
                // A state that starts with a derivative keeps it. The value of a let matters where its body uses it.
                let outer = matches!(head, Head::Fold | Head::Scan) && vars.contains(&true);
                outer || self.with(&vars, bound, |me, bound| deep(|| me.flows(kids[last], bound)))
            }
        };
        match key {
            Some(key) => drop(self.known.insert(key, found)),
            None => drop(self.memo.insert((id, bound.clone()), found)),
        }
        found
    }

    /// Whether derivatives flow through the variables that a node binds; nothing where it binds none.
    fn under(&mut self, id: Id, bound: &mut Vec<bool>) -> Option<Vec<bool>> {
        let (terms, head) = (self.terms, self.terms.head(id));
        let kids = terms.kids(id);
        let last = kids.len().saturating_sub(1);
        let binds = head.binds(last, kids.len());
        if binds == 0 {
            return None;
        }
        Some(match head {
            // A state that starts without a derivative may get one on the way.
            Head::Let | Head::Fold | Head::Scan => {
                let outer = kids[..last].iter().any(|k| deep(|| self.flows(*k, bound)));
                vec![outer; binds]
            }
            _ => vec![false; binds],
        })
    }

    fn with<R>(
        &mut self,
        vars: &[bool],
        bound: &mut Vec<bool>,
        inside: impl FnOnce(&mut Self, &mut Vec<bool>) -> R,
    ) -> R {
        bound.extend_from_slice(vars);
        let out = inside(self, bound);
        bound.truncate(bound.len() - vars.len());
        out
    }

    /// Adds the arguments of calls of `fun` through which derivatives flow.
    fn arguments(
        &mut self,
        (id, fun): (Id, Fun),
        bound: &mut Vec<bool>,
        found: &mut [bool],
        seen: &mut FxHashSet<(Id, Vec<bool>)>,
    ) {
        if !seen.insert((id, bound.clone())) {
            return;
        }
        let (terms, head) = (self.terms, self.terms.head(id));
        let kids = terms.kids(id);
        if head == Head::Call(fun) {
            for (by, kid) in found.iter_mut().zip(kids) {
                *by |= self.flows(*kid, bound);
            }
        }
        let last = kids.len().saturating_sub(1);
        let vars = self.under(id, bound);
        for (k, kid) in kids.iter().enumerate() {
            match &vars {
                Some(vars) if k == last => {
                    self.with(vars, bound, |me, bound| deep(|| me.arguments((*kid, fun), bound, found, seen)));
                }
                _ => deep(|| self.arguments((*kid, fun), bound, found, seen)),
            }
        }
    }
}

/// The parameters by which a function's derivative is needed, where that by `wrt` is: its calls of itself
/// are by no others. So derivatives of one function that call each other are one.
pub fn closed(terms: &Terms, fun: Fun, body: Id, wrt: &[bool]) -> Vec<bool> {
    let mut all = wrt.to_vec();
    loop {
        let mut found = all.clone();
        let none = |_: usize| false;
        Flow::new(terms, &none).arguments((body, fun), &mut all.clone(), &mut found, &mut FxHashSet::default());
        if found == all {
            return all;
        }
        all = found;
    }
}

/// Whether values of a type can change by degrees.
pub fn has_floats(ty: Ty) -> bool {
    match ty.kind() {
        TyKind::Scalar(s) => s.is_float(),
        TyKind::Tuple(parts) => parts.iter().any(|p| has_floats(*p)),
        TyKind::Tensor(_, e) => has_floats(*e),
        TyKind::String | TyKind::Var(..) => false,
    }
}
