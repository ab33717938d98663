//! What can be proved of a flat term at its place: sizes, that an index is in range, that it cannot fail.
//!
//! A small abstract interpretation of its own: whatever is not proved is false. It must not know what a search believes.

use super::canonical::Canonical;
use super::flat::{Scope, Site, as_parameter, bound, first_of_name, lowered, site};
use super::found::Found;
use super::guard::{Guard, Guards, State, guard};
use super::hypotheses::{Hypotheses, Levels};
use super::pace::Pace;
use crate::ir::op::Domain;
use crate::ir::{Def, Head, Id, Lit, Monoid, Op, Terms, Ty, deep};
use crate::types::shape::{part, shape, sizes_of_parts};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::rc::Rc;

/// The extents of what is certain to be made, each with those of the loops around it.
pub(super) type Extents = Rc<Vec<(Id, Vec<Id>)>>;

/// Sizes of tensors, each with the extent of a loop that is certain to read the element of each of its rounds, and those
/// of the loops around that.
pub(super) type Reads = Rc<Vec<(Id, Id, Vec<Id>)>>;

/// What is asked of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// That it cannot fail where the program does not.
    Total,
    /// That it also has a value over the reals, wherever the program has one.
    Kept,
    /// That it has a value over the reals, whatever the program has: where the term goes away, the
    /// program must not gain a value by that.
    Defined,
    /// The same where no divisor is 0.
    Valued,
}

/// What a proof may rest on.
pub struct Prover<'a> {
    /// The arena.
    pub terms: &'a mut Terms,
    /// The definition, for the names of sizes.
    pub def: &'a Def,
    /// Parts that have a value wherever the input has one.
    pub known: &'a FxHashSet<Site>,
    /// Parts that have a value here, with the scope they stand in and the conditions around them.
    pub local: &'a Local,
    /// What is to be proved.
    pub asked: Asked,
    /// What is taken for granted of parameters that are no inputs.
    pub(super) granted: Option<&'a Hypotheses>,
    /// What is evaluated anyway around the place, by the number of loops around that.
    pub(super) facts: &'a Levels,
    /// The conditions around what is looked at, and how many of them are around the place itself.
    pub(super) guards: Guards,
    pub(super) outer: usize,
    /// Whether bounds rest on what conditions and loops around say.
    pub(super) listens: bool,
    /// The states of the folds around what is looked at, within what is to be proved.
    pub(super) states: Vec<State>,
    /// The extents of what is certain to be made.
    pub(super) extents: Option<Extents>,
    /// What loops are certain to read.
    pub(super) reads: Option<Reads>,
    /// The spellings of what is evaluated anyway, where all that is known of that is spelled so.
    pub(super) alike: Option<&'a RefCell<Canonical>>,
    /// When to give up.
    pub(super) pace: Option<&'a Pace<'a>>,
    /// How many more parts may be looked at.
    left: usize,
    /// What was found out already, under these conditions.
    pub(super) found: Found,
    /// What was found out under fewer of them.
    fewer: Vec<Found>,
    /// Whether bounds are those over the reals.
    pub(super) reals: bool,
}

/// Parts that have a value, with the scope they stand in and the conditions around them.
pub type Local = FxHashSet<(Id, Scope, Guards)>;

/// So many parts are looked at for one proof at most, each in each of the loops around it that matter: to prove less is
/// no harm.
const MAX_LOOKED: usize = 1_000_000;

/// So many conditions within what is to be proved are looked at: all ways through more would be too many.
pub const MAX_INNER: usize = 3;

impl<'a> Prover<'a> {
    /// For a place with conditions around it.
    pub fn new(
        terms: &'a mut Terms,
        def: &'a Def,
        (known, local): (&'a FxHashSet<Site>, &'a Local),
        asked: Asked,
        guards: Guards,
    ) -> Prover<'a> {
        let (states, extents, reads, found) = Default::default();
        let (outer, listens, granted, facts) = (guards.len(), true, None, &[][..]);
        let (alike, pace, left, fewer, reals) = (None, None, MAX_LOOKED, vec![], false);
        Prover {
            terms,
            def,
            known,
            local,
            asked,
            granted,
            facts,
            outer,
            guards,
            listens,
            states,
            extents,
            reads,
            alike,
            pace,
            left,
            found,
            fewer,
            reals,
        }
    }

    /// The same until it is too late: then nothing more is proved.
    pub(super) fn until(mut self, pace: Option<&'a Pace<'a>>) -> Prover<'a> {
        self.pace = pace;
        self
    }

    /// The same with what was found out before: of the same arena, where as much is known as here.
    pub fn knowing(mut self, found: Found) -> Prover<'a> {
        self.found = found;
        self
    }

    /// What was found out.
    pub fn found(self) -> Found {
        self.found
    }

    /// Whether one more part may be looked at.
    pub(super) fn goes_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0 && !self.pace.is_some_and(Pace::late)
    }

    /// Whether evaluation of the term cannot fail where the input has a value.
    pub fn safe(&mut self, id: Id, scope: &Scope) -> bool {
        if matches!(self.terms.head(id), Head::Const(_)) || self.is_size_of_variable(id) {
            return true;
        }
        let key = (id, scope.clone());
        if let Some(known) = self.found.safe.get(&key) {
            return *known;
        }
        if self.fewer.iter().any(|found| found.safe.get(&key) == Some(&true)) {
            return true;
        }
        if !self.goes_on() {
            return false;
        }
        if self.safe_outside(id, scope) {
            self.found.safe.insert(key, true);
            return true;
        }
        let given =
            self.is_local(id, scope) || self.is_known(id, scope) || self.is_first(id, scope) || self.is_fact(id, scope);
        let out = given && !matches!(self.asked, Asked::Defined | Asked::Valued)
            || deep(|| self.parts_safe(id, scope, given));
        self.found.safe.insert(key, out);
        out
    }

    /// Whether a number is the size of a variable, which it has whatever its elements are.
    fn is_size_of_variable(&self, id: Id) -> bool {
        let of = |of: Id| matches!(self.terms.head(of), Head::Var(..)) || as_parameter(self.terms.head(of)).is_some();
        matches!((self.terms.head(id), self.terms.kids(id)), (Head::Size(_), [one]) if of(*one))
    }

    /// Whether a part has a value wherever the input has one.
    fn is_known(&mut self, id: Id, scope: &Scope) -> bool {
        let Some(site) = site(self.terms, id, scope) else { return false };
        match self.alike {
            None => self.known.contains(&site),
            Some(alike) => self.known.contains(&alike.borrow_mut().site(self.terms, &site)),
        }
    }

    /// Whether a part is safe outside of the innermost loops, where it does not depend on them: it is the same part in
    /// whichever of them it stands, so that is looked at once. What those loops say may be needed all the same.
    fn safe_outside(&mut self, id: Id, scope: &Scope) -> bool {
        let free = self.terms.free(id);
        let outside = scope.len() - (0..scope.len()).take_while(|i| !free.has(*i)).count();
        // What is said in these loops must not be taken for what holds in others at the same depth.
        let met = self.guards.iter().all(|g| g.depth <= outside)
            && self.states.iter().all(|s| s.depth < outside)
            && self.facts.iter().all(|(depth, _)| *depth <= outside);
        if outside == scope.len() || !met {
            return false;
        }
        let Some(lowered) = lowered(self.terms, id, scope.len() - outside) else { return false };
        deep(|| self.safe(lowered, &scope[..outside].to_vec()))
    }

    /// Looks at child `k` of a node under the conditions there.
    pub(super) fn inside<R>(
        &mut self,
        (head, kids): (Head, &[Id]),
        k: usize,
        scope: &Scope,
        look: impl FnOnce(&mut Self, &Scope) -> R,
    ) -> R {
        let inner = self.enter(head, kids, k, scope);
        let more = guard(head, kids, k, scope.len()).filter(|_| self.guards.len() < self.outer + MAX_INNER);
        let state = self.state((head, kids), k, scope);
        if more.is_none() && state.is_none() {
            return look(self, &inner);
        }
        self.given(more, state, |p| look(p, &inner))
    }

    /// Looks at something under one more condition, or in a fold.
    pub(super) fn given<R>(
        &mut self,
        more: Option<Guard>,
        state: Option<State>,
        look: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let around = (self.guards.len(), self.states.len());
        self.guards.extend(more);
        self.states.extend(state);
        let inner = self.found.enter(more, state);
        self.fewer.push(std::mem::replace(&mut self.found, inner));
        let out = look(self);
        let inner = std::mem::replace(&mut self.found, self.fewer.pop().unwrap_or_default());
        self.found.leave(more, state, inner);
        self.guards.truncate(around.0);
        self.states.truncate(around.1);
        out
    }

    /// An innermost part of which that is not proved, and the number of loops around it.
    pub fn unsafe_part(&mut self, id: Id, scope: &Scope) -> (Id, usize) {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        for (k, kid) in kids.iter().enumerate() {
            let found = self.inside((head, &kids), k, scope, |p, inner| {
                (!p.safe(*kid, inner)).then(|| deep(|| p.unsafe_part(*kid, inner)))
            });
            if let Some(found) = found {
                return found;
            }
        }
        (id, scope.len())
    }

    /// The same from the node and its children; `given` says that the node itself did not fail.
    fn parts_safe(&mut self, id: Id, scope: &Scope, given: bool) -> bool {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let total = given || self.node_total(head, &kids, scope);
        if !total || self.asked != Asked::Total && !self.node_defined(head, &kids, scope) {
            return false;
        }
        // Of a choice that is made already only one arm is evaluated.
        let chosen = match (head, kids.first().and_then(|c| self.terms.as_lit(*c))) {
            (Head::If, Some(Lit::Bool(c))) => Some(if c { 1 } else { 2 }),
            _ => None,
        };
        kids.iter()
            .enumerate()
            .filter(|(k, _)| *k == 0 || chosen.is_none_or(|c| c == *k))
            .all(|(k, kid)| self.inside((head, &kids), k, scope, |p, inner| p.safe(*kid, inner)))
    }

    /// The scope of child `k`.
    pub(super) fn enter(&mut self, head: Head, kids: &[Id], k: usize, scope: &Scope) -> Scope {
        let mut inner = scope.clone();
        if head.binds(k, kids.len()) > 0 {
            inner.extend(bound(self.terms, head, kids));
        }
        inner
    }

    /// Whether a number is at least 1: also what a loop around the place ranges over, since that runs.
    pub fn at_least_one(&mut self, n: Id, scope: &Scope) -> bool {
        if self.range(n, scope).lo >= 1.0 {
            return true;
        }
        let n = self.size(n, &vec![]);
        scope.iter().rev().enumerate().any(|(i, extent)| {
            extent.is_some_and(|extent| {
                let extent = self.terms.shift(extent, i + 1);
                self.size(extent, &vec![]) == n
            })
        })
    }

    /// A size in one spelling: sizes that share a name are one, and so are those that are known. Inside a tensor
    /// without elements every size is 0.
    pub(super) fn size(&mut self, id: Id, scope: &Scope) -> Id {
        if let Some((_, to)) = self.granted.and_then(|h| h.given.iter().find(|(from, _)| *from == id)) {
            return deep(|| self.size(*to, scope));
        }
        let Head::Size(axis) = self.terms.head(id) else { return id };
        let of = self.terms.kids(id)[0];
        if let Some(k) = as_parameter(self.terms.head(of)) {
            let Some((first, axis)) = first_of_name(self.def, k, axis) else { return id };
            let head = super::flat::parameter(first, self.def.params[first].ty);
            let leaf = self.terms.put(head, []);
            return self.terms.put(Head::Size(axis), [leaf]);
        }
        let Some((rank, _)) = self.terms.ty(of).as_tensor() else { return id };
        let mut sizes = self.sizes_of_state(of, scope).unwrap_or_else(|| shape(self.terms, of));
        if let Head::Get(i, _) = self.terms.head(of)
            && sizes[axis] == id
        {
            let tuple = self.terms.kids(of)[0];
            sizes = part(self.terms, tuple, &[i]).filter(|s| s.len() == sizes.len()).unwrap_or(sizes);
        }
        let known = sizes[axis];
        let outside = axis < rank || known != id && sizes[..axis].iter().all(|n| self.at_least_one(*n, scope));
        if outside && known != id { deep(|| self.size(known, scope)) } else { id }
    }

    /// Whether two sizes are equal.
    pub fn same_size(&mut self, a: Id, b: Id, scope: &Scope) -> bool {
        a == b || self.size(a, scope) == self.size(b, scope)
    }

    /// Whether two tensors have equal sizes on all axes.
    pub fn same_shape(&mut self, a: Id, b: Id, scope: &Scope) -> bool {
        let (x, y) = (shape(self.terms, a), shape(self.terms, b));
        !x.is_empty() && x.len() == y.len() && x.iter().zip(&y).all(|(p, q)| self.same_size(*p, *q, scope))
    }

    /// Whether an index lies in `0..n`.
    pub fn in_range(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        if self.runs_below(index, n, scope) || self.mirrored(index, n, scope) {
            return true;
        }
        let (i, size) = (self.range(index, scope), self.range(n, scope));
        i.lo >= 0.0 && i.hi < size.lo
            || self.affine_in_range(index, n, scope)
            || self.quotient_in_range(index, n, scope)
            || self.read_already(index, n, scope)
            || self.cases_in_range(index, n, scope)
            || self.read_in_loop(index, n, scope)
    }

    /// Whether an index is `n - 1 - i`, where `i` is that of a loop of at most `n` rounds: it goes by the same
    /// elements, last one first.
    pub(super) fn mirrored(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let difference = |p: &Self, id: Id| match (p.terms.head(id), p.terms.kids(id)) {
            (Head::Op(Op::Sub), [a, b]) if p.terms.ty(id) == Ty::int() => Some((*a, *b)),
            _ => None,
        };
        let Some((last, i)) = difference(self, index) else { return false };
        let Some((top, one)) = difference(self, last) else { return false };
        self.terms.as_lit(one) == Some(Lit::int(1)) && self.same_size(top, n, scope) && self.runs_below(i, n, scope)
    }

    /// Whether an index is that of a loop of at most `n` rounds.
    pub(super) fn runs_below(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let mut below = index;
        // An index is below its extent; that may be another index, or the one after it.
        while let Head::Var(i, _) = self.terms.head(below) {
            let Some(extent) = scope.iter().rev().nth(i as usize).copied().flatten() else { break };
            let extent = self.terms.shift(extent, i as usize + 1);
            if self.same_size(extent, n, scope) {
                return true;
            }
            let kids = self.terms.kids(extent).to_vec();
            below = match self.terms.head(extent) {
                Head::Op(Op::Add) if self.terms.as_lit(kids[1]) == Some(Lit::int(1)) => kids[0],
                Head::Op(Op::Add) if self.terms.as_lit(kids[0]) == Some(Lit::int(1)) => kids[1],
                _ => extent,
            };
        }
        false
    }

    /// Whether all elements of a loop have one shape.
    fn rectangular(&mut self, element: Id, binds: usize) -> bool {
        let ty = self.terms.ty(element);
        if !ty.has_tensor() {
            return true;
        }
        let sizes = sizes_of_parts(self.terms, element);
        sizes.is_some_and(|sizes| {
            !sizes.is_empty() && sizes.into_iter().all(|s| lowered(self.terms, s, binds).is_some())
        })
    }

    /// Whether the node itself cannot fail where its children have values.
    fn node_total(&mut self, head: Head, kids: &[Id], scope: &Scope) -> bool {
        let tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
        match head {
            Head::Const(_) | Head::Var(..) | Head::Let | Head::If | Head::Tuple | Head::Get(..) => true,
            Head::Cast(_) | Head::Size(_) => true,
            Head::Op(op) => {
                let tensors: Vec<Id> = kids.iter().copied().filter(|k| self.terms.ty(*k).has_tensor()).collect();
                match tensors.as_slice() {
                    [] => kids.len() < 2 || !op.is_partial(tys[0]) || self.range(kids[1], scope).nonzero,
                    [_] => true,
                    [a, b, ..] => self.same_shape(*a, *b, scope),
                }
            }
            Head::Assert => self.holds(kids[0], scope),
            Head::Build(d) | Head::Reduce(_, d) => self.natural(&kids[..d], scope) && self.rectangular(kids[d], d),
            Head::ConstVec(d) | Head::DeltaVec(d) => self.natural(&kids[..d], scope),
            Head::Arg(_) => self.range(kids[0], scope).lo >= 1.0,
            Head::Sum => !tys[0].as_tensor().is_some_and(|(_, e)| e.has_tensor()) || tys[0].axes() > 0,
            Head::Index(d) => {
                let sizes = shape(self.terms, kids[d]);
                (0..d).all(|k| self.in_range(kids[k], sizes[k], scope))
            }
            Head::Fold | Head::Scan => {
                let count = head == Head::Fold || self.natural(&kids[1..2], scope);
                count && (!tys[0].has_tensor() || self.keeps_shape(kids[0], kids[2], scope))
            }
            Head::VecInit => !tys[0].has_tensor() || kids[1..].iter().all(|k| self.same_shape(kids[0], *k, scope)),
            Head::Call(_) => as_parameter(head).is_some(),
            Head::Scatter(d) => self.scatters_inside(head, kids, d, scope),
            Head::Print => false,
        }
    }

    /// Whether all entries of a sparse tensor are numbers at places that it has.
    fn scatters_inside(&mut self, head: Head, kids: &[Id], d: usize, scope: &Scope) -> bool {
        let sizes: Vec<Id> = kids[..d].iter().map(|n| self.terms.shift(*n, 1)).collect();
        self.natural(&kids[..=d], scope) && {
            let inner = self.enter(head, kids, d + 1, scope);
            self.entry_inside(kids[d + 1], &sizes, &inner)
        }
    }

    /// Whether an entry is a number at a place within the sizes, whatever is chosen.
    fn entry_inside(&mut self, entry: Id, sizes: &[Id], scope: &Scope) -> bool {
        let (head, kids) = (self.terms.head(entry), self.terms.kids(entry).to_vec());
        match (head, kids.as_slice()) {
            (Head::If, _) => (1..3).all(|k| {
                self.inside((head, &kids), k, scope, |p, inner| deep(|| p.entry_inside(kids[k], sizes, inner)))
            }),
            (Head::Tuple, [at, value]) => {
                let places = match (sizes.len(), self.terms.head(*at)) {
                    (1, _) => vec![*at],
                    (_, Head::Tuple) => self.terms.kids(*at).to_vec(),
                    _ => return false,
                };
                !self.terms.ty(*value).has_tensor()
                    && places.iter().zip(sizes).all(|(at, n)| self.in_range(*at, *n, scope))
            }
            _ => false,
        }
    }

    /// Whether a state keeps its shape in a step that binds two variables.
    pub(super) fn keeps_shape(&mut self, init: Id, step: Id, scope: &Scope) -> bool {
        let (x, y) = (shape(self.terms, init), shape(self.terms, step));
        !x.is_empty()
            && x.len() == y.len()
            && x.iter().zip(&y).all(|(p, q)| lowered(self.terms, *q, 2).is_some_and(|q| self.same_size(*p, q, scope)))
    }

    /// Whether the node has a value over the reals where its children have.
    fn node_defined(&mut self, head: Head, kids: &[Id], scope: &Scope) -> bool {
        let valued = self.asked == Asked::Valued;
        let mut r = |k: usize| self.real_range(kids[k], scope);
        match head {
            // The state of a fold starts from what may be infinite, and so may the elements be.
            Head::Var(i, ty) => ty.as_scalar().is_some_and(|s| !s.is_float() || self.is_scanned(i, scope)),
            Head::Op(op) => match op.row().domain {
                Domain::All => true,
                Domain::Divisor => op == Op::Div && valued || r(1).nonzero,
                Domain::Positive => r(0).lo > 0.0 || (r(0).lo >= 0.0 && r(0).nonzero),
                Domain::Natural => r(0).lo >= 0.0,
                Domain::Unit => r(0).lo >= -1.0 && r(0).hi <= 1.0,
                Domain::Power => r(0).lo > 0.0 || r(1).lo >= 0.0 && op == Op::Pow,
                Domain::Unknown => false,
            },
            // The greatest of nothing is infinite.
            Head::Reduce(m, d) => {
                m == Monoid::Add || m == Monoid::Mul || kids[..d].iter().all(|n| self.at_least_one(*n, scope))
            }
            Head::Call(_) => as_parameter(head).is_some_and(|k| self.granted.is_none_or(|h| h.defined.contains(&k))),
            _ => true,
        }
    }
}
