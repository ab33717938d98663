//! Through which terms derivatives flow, and by which parameters a function that calls itself needs
//! its derivative.
//!
//! What has no floats carries none: a size, or a number made of an integer.

use super::invariant::is_invariant;
use crate::ir::{Fun, Head, Id, Terms, Ty, TyKind, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// Sets of variables are exact for indices below this.
const EXACT: usize = 63;

/// Whether derivatives flow through terms, by those of their variables that carry one.
#[derive(Default)]
pub struct Known {
    /// The variables are the set of the near ones, and a number for those further out.
    flows: FxHashMap<(Id, u64, u32), bool>,
    /// Numbers for which of some variables carry derivatives, by that of all but the last, and the last.
    prefixes: FxHashMap<(u32, bool), u32>,
    /// Whether the body of a let depends on what it binds, over the reals.
    matters: FxHashMap<Id, bool>,
}

impl Known {
    /// The number of one more variable; that of none is 0.
    pub fn longer(&mut self, before: u32, carries: bool) -> u32 {
        let next = self.prefixes.len() as u32 + 1;
        *self.prefixes.entry((before, carries)).or_insert(next)
    }

    /// Whether the body of a let depends on what it binds, over the reals.
    pub fn matters(&mut self, terms: &Terms, id: Id) -> bool {
        *self.matters.entry(id).or_insert_with(|| !is_invariant(terms, id))
    }
}

/// What is known of the variables outside of a term, and of its parts.
pub struct Flow<'a> {
    terms: &'a Terms,
    /// Whether a derivative flows through a free variable.
    outer: &'a dyn Fn(usize) -> bool,
    /// The numbers of the variables outside, and of those that are bound.
    prefixes: &'a [u32],
    bound: Vec<u32>,
    /// A walk asks of every part of a term again: what is the same question has one answer for all time.
    known: Known,
}

impl<'a> Flow<'a> {
    /// Nothing is known yet of a closed term.
    pub fn new(terms: &'a Terms) -> Flow<'a> {
        Flow::knowing(terms, &|_| false, &[], Known::default())
    }

    /// Goes on from what was known, under variables with these numbers.
    pub fn knowing(terms: &'a Terms, outer: &'a dyn Fn(usize) -> bool, prefixes: &'a [u32], known: Known) -> Flow<'a> {
        Flow { terms, outer, prefixes, bound: vec![], known }
    }

    /// What is known now.
    pub fn known(self) -> Known {
        self.known
    }

    /// Whether a derivative flows through a term under more variables.
    pub fn under(&mut self, vars: &[bool], id: Id) -> bool {
        self.with(vars, &mut vec![], |me, bound| me.flows(id, bound))
    }

    /// Whether the variable of an index carries a derivative. Far out the set of variables of a term has some
    /// that are none.
    fn carries(&self, index: usize, bound: &[bool]) -> bool {
        match bound.len().checked_sub(1 + index) {
            Some(at) => bound[at],
            None => index < bound.len() + self.prefixes.len() && (self.outer)(index - bound.len()),
        }
    }

    /// The variables in a term that carry derivatives, as a set and the number of those further out.
    fn carried(&self, id: Id, bound: &[bool]) -> (u64, u32) {
        let mut left = self.terms.free(id);
        let (mut near, mut far) = (0, 0);
        while let Some(index) = left.innermost().filter(|i| *i < EXACT) {
            left.0 &= left.0 - 1;
            near |= u64::from(self.carries(index, bound)) << index;
        }
        let outer = self.prefixes.len();
        if let Some(level) = (outer + bound.len()).checked_sub(EXACT + 1)
            && left.above(EXACT)
        {
            far = if level < outer { self.prefixes[level] } else { self.bound[level - outer] };
        }
        (near, far)
    }

    /// Whether a derivative flows through a term under variables of which that is known.
    fn flows(&mut self, id: Id, bound: &mut Vec<bool>) -> bool {
        if !has_floats(self.terms.ty(id)) || self.terms.free(id).is_closed() {
            return false;
        }
        let (terms, head) = (self.terms, self.terms.head(id));
        let kids = terms.kids(id);
        if let Head::Var(i, _) = head {
            return self.carries(i as usize, bound);
        }
        let (near, far) = self.carried(id, bound);
        if (near, far) == (0, 0) {
            return false;
        }
        if let Some(known) = self.known.flows.get(&(id, near, far)) {
            return *known;
        }
        let last = kids.len().saturating_sub(1);
        let found = match self.binds(id, bound) {
            None => kids.iter().any(|k| deep(|| self.flows(*k, bound))),
            Some(vars) => {
                // A state that starts with a derivative keeps it. The value of a let matters where its body uses it.
                let outer = matches!(head, Head::Fold | Head::Scan) && vars.contains(&true);
                outer || self.with(&vars, bound, |me, bound| deep(|| me.flows(kids[last], bound)))
            }
        };
        self.known.flows.insert((id, near, far), found);
        found
    }

    /// Whether derivatives flow through the variables that a node binds; nothing where it binds none.
    fn binds(&mut self, id: Id, bound: &mut Vec<bool>) -> Option<Vec<bool>> {
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
                vec![outer && (head != Head::Let || self.known.matters(terms, id)); binds]
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
        for carries in vars {
            let before = self.bound.last().or(self.prefixes.last()).copied().unwrap_or_default();
            let number = self.known.longer(before, *carries);
            self.bound.push(number);
            bound.push(*carries);
        }
        let out = inside(self, bound);
        bound.truncate(bound.len() - vars.len());
        self.bound.truncate(bound.len());
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
        let vars = self.binds(id, bound);
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
        let mut flow = Flow::new(terms);
        flow.with(&all, &mut vec![], |me, bound| {
            me.arguments((body, fun), bound, &mut found, &mut FxHashSet::default());
        });
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
