//! What a let binds and its body does not depend on, over the reals: such a value has no adjoint and no tangent.
//!
//! Softmax and the logarithm of a sum of exponentials take the greatest element away and bring it back, so that no
//! exponential overflows. Their value is the same whatever is taken away, so the derivative by that is 0, which no
//! rounded computation of it is: it costs a pass over all elements, and a search for the one that is greatest.
//!
//! Of every term it is found how it changes (`change.rs`) where the variable is `m + t` in place of `m`; where that is a
//! tensor, as the table of the greatest elements of rows, where any one element is. It must not know how derivatives are
//! made.

use super::change::{Change, either, multiple, negative, product, quotient, reduced, scale, still, sum};
use crate::ir::{Head, Id, Monoid, Op, Terms, TyKind, deep};
use rustc_hash::FxHashMap;

/// Bodies with more nodes are not looked into: each let would look through all that follow it.
const LOOKED: u64 = 5_000;
/// Of a value so many nodes are looked at for what it is the greatest of.
const NEAR: usize = 32;
/// So often the state of a fold is tried again with what a step made of it.
const STEPS: usize = 3;

/// Whether a let binds the greatest or least of some numbers, or a tensor of such, on which its body does not depend
/// over the reals.
pub fn is_invariant(terms: &Terms, id: Id) -> bool {
    let (Head::Let, [value, body]) = (terms.head(id), terms.kids(id)) else { return false };
    let Some(ranks) = extremes(terms, *value).filter(|_| terms.size(*body) <= LOOKED) else { return false };
    let mut changes = Changes { terms, env: vec![], scopes: vec![], known: FxHashMap::default(), next: 0 };
    let own: Vec<Vec<u32>> = ranks.iter().map(|rank| changes.names(*rank)).collect();
    let one = Change::Shift(1.0, own.concat());
    let all = own.into_iter().rev().fold(one, |inner, of| Change::Own(of, inner.into()));
    changes.under(vec![(all, None)], *body).is_still()
}

/// The ranks of the tensors, from the outside in, whose elements are each the greatest or least of some numbers: none
/// where it is one such number. Others may be invariants as well, but are seldom: to look for them would take longer.
pub fn extremes(terms: &Terms, id: Id) -> Option<Vec<usize>> {
    let mut left = NEAR;
    near_extremes(terms, id, &mut left)
}

fn near_extremes(terms: &Terms, id: Id, left: &mut usize) -> Option<Vec<usize>> {
    *left = left.checked_sub(1)?;
    let (head, kids) = (terms.head(id), terms.kids(id));
    let mut any = |of: &[Id]| of.iter().find_map(|k| near_extremes(terms, *k, left));
    match head {
        Head::Build(d) => {
            let inner = any(&kids[d..])?;
            Some([vec![d], inner].concat())
        }
        Head::Let | Head::Assert | Head::If => any(&kids[1..]),
        _ if !is_float(terms, id) => None,
        Head::Reduce(Monoid::Min | Monoid::Max, _) => Some(vec![]),
        // The greatest number and another one: what a fold begins with, or where there may be no element.
        Head::Op(op) if is_extreme(op) => any(kids),
        Head::Fold => matches!(terms.head(kids[2]), Head::Op(op) if is_extreme(op)).then(Vec::new),
        _ => None,
    }
}

fn is_extreme(op: Op) -> bool {
    matches!(op, Op::Min | Op::Max | Op::Minimum | Op::Maximum)
}

fn is_float(terms: &Terms, id: Id) -> bool {
    matches!(terms.ty(id).kind(), TyKind::Scalar(s) if s.is_float())
}

/// Finds how terms change.
struct Changes<'a> {
    terms: &'a Terms,
    /// How the variables in scope change, outermost first: the one in question, and those bound in its scope; and what
    /// those of loops are called.
    env: Vec<(Change, Option<u32>)>,
    /// A number for the scope: another one has other variables.
    scopes: Vec<u32>,
    known: FxHashMap<(Id, u32), Change>,
    next: u32,
}

impl Changes<'_> {
    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Names for the indices of a tensor.
    fn names(&mut self, rank: usize) -> Vec<u32> {
        (0..rank).map(|_| self.fresh()).collect()
    }

    fn of(&mut self, id: Id) -> Change {
        // Variables further out than the one in question do not change.
        if !self.terms.free(id).below(self.env.len()) {
            return self.constant(id);
        }
        let key = (id, self.scopes.last().copied().unwrap_or_default());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = deep(|| self.node(id));
        self.known.insert(key, found.clone());
        found
    }

    fn constant(&self, id: Id) -> Change {
        match self.terms.as_lit(id).and_then(|l| l.as_f64()) {
            Some(0.0) => Change::Zero,
            _ => still(),
        }
    }

    fn node(&mut self, id: Id) -> Change {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        let last = kids.len().saturating_sub(1);
        match head {
            Head::Var(i, _) => match self.env.len().checked_sub(1 + i as usize) {
                Some(at) => self.env[at].0.clone(),
                None => still(),
            },
            Head::Const(_) => self.constant(id),
            Head::Let => {
                let value = self.of(kids[0]);
                self.under(vec![(value, None)], kids[1])
            }
            Head::If => {
                let arms = either(self.of(kids[1]), self.of(kids[2]));
                self.where_still(&kids[..1], arms)
            }
            Head::Assert => self.last_where_still(kids),
            Head::Tuple => Change::Parts(kids.iter().map(|k| self.of(*k)).collect()),
            Head::Get(i, _) => self.of(kids[0]).part(i as usize),
            Head::Op(op) => self.operation(op, kids),
            Head::Cast(to) if to.is_float() && is_float(self.terms, kids[0]) => self.of(kids[0]),
            Head::Build(d) => {
                let own = self.names(d);
                let element = self.looped(&own, kids[last]);
                self.where_still(&kids[..last], element.gathered(own))
            }
            Head::Reduce(monoid, d) => {
                let own = self.names(d);
                let element = self.looped(&own, kids[last]).without(&own);
                self.where_still(&kids[..last], reduced(monoid, element))
            }
            Head::Arg(_) => {
                let own = [self.fresh()];
                let element = self.looped(&own, kids[last]).without(&own);
                let which = if element.is_uniform() { still() } else { Change::Other };
                self.where_still(&kids[..last], which)
            }
            Head::Index(d) => self.element(&kids[..d], kids[d]),
            Head::Size(_) => match self.of(kids[0]) {
                Change::Other => Change::Other,
                _ => still(),
            },
            Head::Fold => {
                let element = self.of(kids[1]).of_any();
                self.states(kids[0], element, kids[2])
            }
            Head::Scan => {
                let states = self.states(kids[0], still(), kids[2]).gathered(self.names(1));
                self.where_still(&kids[1..2], states)
            }
            Head::Sum => reduced(Monoid::Add, self.of(kids[0]).of_any()),
            Head::ConstVec(d) => self.last_where_still(kids).gathered(self.names(d)),
            Head::DeltaVec(d) => either(self.last_where_still(kids), Change::Zero).gathered(self.names(d)),
            Head::VecInit => {
                let element = kids.iter().map(|k| self.of(*k)).reduce(either).unwrap_or_else(still);
                element.gathered(self.names(1))
            }
            Head::Cast(_) | Head::Call(_) => self.where_still(kids, still()),
            Head::Scatter(_) => {
                let own = [self.fresh()];
                let element = self.looped(&own, kids[last]);
                self.where_still(&kids[..last], if element.is_still() { still() } else { Change::Other })
            }
            Head::Print => Change::Other,
        }
    }

    /// An element of a tensor: where its elements change each in its own way, the indices have to be variables of loops.
    fn element(&mut self, at: &[Id], tensor: Id) -> Change {
        let all = self.of(tensor);
        let names: Option<Vec<u32>> = at.iter().map(|i| self.name(*i)).collect();
        self.where_still(at, all.at(names.as_deref()))
    }

    /// What a variable is called that is an index.
    fn name(&self, id: Id) -> Option<u32> {
        let Head::Var(i, _) = self.terms.head(id) else { return None };
        match self.env.len().checked_sub(1 + i as usize) {
            Some(at) => self.env[at].1,
            // One from further out.
            None => Some(u32::MAX - (i - self.env.len() as u32)),
        }
    }

    fn operation(&mut self, op: Op, kids: &[Id]) -> Change {
        let of: Vec<Change> = kids.iter().map(|k| self.of(*k)).collect();
        let literal = |k: usize| self.terms.as_lit(kids[k]).and_then(|l| l.as_f64());
        match (op, &of[..]) {
            (Op::Add, [a, b]) => sum(a.clone(), b.clone()),
            (Op::Sub, [a, b]) => sum(a.clone(), negative(b.clone())),
            (Op::Neg, [a]) => negative(a.clone()),
            (Op::Mul, [Change::Shift(rate, at), _]) if literal(1).is_some() => multiple(*rate, at, literal(1)),
            (Op::Mul, [_, Change::Shift(rate, at)]) if literal(0).is_some() => multiple(*rate, at, literal(0)),
            (Op::Mul, [a, b]) => product(a.clone(), b.clone()),
            (Op::Div, [a, b]) => quotient(a.clone(), b.clone()),
            (Op::Fma, [a, b, c]) => sum(product(a.clone(), b.clone()), c.clone()),
            (Op::Exp, [Change::Shift(rate, at)]) => scale(*rate, at.clone()),
            (Op::Log, [Change::Scale(rate, at)]) => Change::Shift(*rate, at.clone()),
            (Op::Sqrt, [Change::Scale(rate, at)]) => Change::Scale(rate / 2.0, at.clone()),
            (Op::Abs, [c @ Change::Scale(..)]) => c.clone(),
            (op, [a, b]) if is_extreme(op) => either(a.clone(), b.clone()),
            (Op::Lt | Op::Gt | Op::Lte | Op::Gte | Op::Eq | Op::Ne | Op::Precedes, [a, b]) if a.compares(b) => still(),
            (Op::Select, [c, a, b]) if c.is_still() => either(a.clone(), b.clone()),
            (_, of) if of.iter().all(Change::is_still) => still(),
            _ => Change::Other,
        }
    }

    /// What changes so, where other terms do not change.
    fn where_still(&mut self, others: &[Id], change: Change) -> Change {
        if others.iter().all(|k| self.of(*k).is_still()) { change } else { Change::Other }
    }

    fn last_where_still(&mut self, kids: &[Id]) -> Change {
        let (last, others) = (kids[kids.len() - 1], &kids[..kids.len() - 1]);
        let change = self.of(last);
        self.where_still(others, change)
    }

    /// How the states of a fold or scan change: as one of them makes the next one, if all do alike.
    fn states(&mut self, init: Id, element: Change, step: Id) -> Change {
        let mut state = self.of(init);
        for _ in 0..STEPS {
            let vars = vec![(state.clone(), None), (element.clone(), None)];
            let next = either(state.clone(), self.under(vars, step));
            if next == state {
                return state;
            }
            state = next;
        }
        Change::Other
    }

    fn looped(&mut self, own: &[u32], body: Id) -> Change {
        self.under(own.iter().map(|name| (still(), Some(*name))).collect(), body)
    }

    fn under(&mut self, vars: Vec<(Change, Option<u32>)>, id: Id) -> Change {
        let scope = self.fresh();
        self.scopes.push(scope);
        let outer = self.env.len();
        self.env.extend(vars);
        let found = self.of(id);
        self.env.truncate(outer);
        self.scopes.pop();
        found
    }
}
