//! Bounds of numbers, by what they are made of, and by what the conditions and loops around say.
//!
//! Bounds are over the reals; integers that might overflow have none. It must not know what a search believes.

use super::bounds::{ANY, Bounds, between, hull, operation};
use super::flat::Scope;
use super::guard::{Fact, facts, real_facts};
use super::prove::Prover;
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Ty, deep};
use std::rc::Rc;

/// No tensor has a larger size: memory ends far below.
const SIZE: f64 = (1u64 << 40) as f64;
/// No loop has more rounds: it would not end.
const ROUNDS: f64 = (1u64 << 48) as f64;
/// Integers below this are exact as floats.
const EXACT: f64 = (1u64 << 53) as f64;

impl Prover<'_> {
    /// What the conditions around say of integers, and that the loops around run, seen from a place in them.
    pub(super) fn told(&mut self, scope: &Scope) -> Rc<Vec<Fact>> {
        self.told_of(scope, false)
    }

    fn told_of(&mut self, scope: &Scope, reals: bool) -> Rc<Vec<Fact>> {
        let key = (scope.clone(), reals);
        if let Some(known) = self.found.told.get(&key) {
            return Rc::clone(known);
        }
        let mut out = vec![];
        for g in self.guards.clone() {
            let Some(by) = scope.len().checked_sub(g.depth) else { continue };
            let cond = self.terms.shift(g.cond, by);
            if reals {
                real_facts(self.terms, cond, g.holds, &mut out)
            } else {
                facts(self.terms, cond, g.holds, &mut out)
            }
        }
        if !reals {
            self.loops_run(scope, &mut out);
        }
        let out = Rc::new(out);
        self.found.told.insert(key, Rc::clone(&out));
        out
    }

    /// Bounds with what the conditions around say of the number.
    fn told_range(&mut self, id: Id, scope: &Scope, mut out: Bounds) -> Bounds {
        let integer = self.terms.ty(id) == Ty::int();
        let told = self.told_of(scope, !integer);
        for fact in told.iter() {
            match *fact {
                Fact::Less(a, by, b) => {
                    if self.same_size(b, id, scope) {
                        out.lo = out.lo.max(self.untold(a, scope).lo + by as f64);
                    }
                    if self.same_size(a, id, scope) {
                        out.hi = out.hi.min(self.untold(b, scope).hi - by as f64);
                    }
                }
                Fact::Differ(a, b) => {
                    for (number, other) in [(a, b), (b, a)] {
                        let value = self.terms.as_lit(other).and_then(Lit::to_f64);
                        match value.filter(|_| self.same_size(number, id, scope)) {
                            Some(value) if integer => out = out.without(value),
                            Some(0.0) => out.nonzero = true,
                            _ => {}
                        }
                    }
                }
            }
        }
        // Conditions that cannot all be met are around what is never evaluated.
        if out.lo > out.hi { ANY } else { Bounds { nonzero: out.nonzero || out.lo > 0.0 || out.hi < 0.0, ..out } }
    }

    /// Bounds over the reals: conditions on floats may be relied on, which say nothing where one is no number.
    pub(super) fn real_range(&mut self, id: Id, scope: &Scope) -> Bounds {
        let around = std::mem::replace(&mut self.reals, true);
        let out = self.range(id, scope);
        self.reals = around;
        out
    }

    /// Bounds wherever the number stands.
    pub(super) fn untold(&mut self, id: Id, scope: &Scope) -> Bounds {
        let listens = std::mem::take(&mut self.listens);
        let out = self.range(id, scope);
        self.listens = listens;
        out
    }

    /// Bounds of a number, or of the elements of a tensor.
    pub fn range(&mut self, id: Id, scope: &Scope) -> Bounds {
        let key = (id, scope.clone(), self.reals);
        let known = if self.listens { &self.found.bounds } else { &self.found.anywhere };
        if let Some(known) = known.get(&key) {
            return *known;
        }
        if !self.goes_on() {
            return ANY;
        }
        let (out, scalar) = (deep(|| self.node_range(id, scope)), self.terms.ty(id).as_scalar());
        let (lo, hi) = scalar.map_or((i64::MIN, i64::MAX), |s| s.range());
        let inside = out.lo >= lo as f64 && out.hi <= hi as f64 && out.hi < EXACT && out.lo > -EXACT;
        let out = if scalar.is_none_or(|s| s.is_float()) || inside { out } else { ANY };
        if !self.listens {
            self.found.anywhere.insert(key, out);
            return out;
        }
        // On the way to what a size is known to be, its bounds may be asked for again.
        self.found.bounds.insert(key.clone(), out);
        let hears = scalar.is_some_and(|s| s == Scalar::I64 || self.reals && s.is_float());
        let told = hears && !(self.guards.is_empty() && scope.is_empty());
        let out = if told { self.told_range(id, scope, out) } else { out };
        self.found.bounds.insert(key, out);
        out
    }

    fn node_range(&mut self, id: Id, scope: &Scope) -> Bounds {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let Some(scalar) = self.terms.ty(id).as_scalar() else { return self.elements_range(head, &kids, scope) };
        match head {
            Head::Const(l) => l.to_f64().map_or(ANY, |v| between(v, v)),
            Head::Size(_) | Head::Arg(_) => between(0.0, SIZE),
            Head::Var(i, _) => match scope.iter().rev().nth(i as usize).copied().flatten() {
                // An index exists only where its loop runs, so its extent is at least 1.
                Some(extent) => {
                    let outer = scope[..scope.len() - 1 - i as usize].to_vec();
                    between(0.0, (self.range(extent, &outer).hi - 1.0).clamp(0.0, ROUNDS))
                }
                None => ANY,
            },
            Head::If => hull(self.range(kids[1], scope), self.range(kids[2], scope)),
            Head::Get(..) | Head::Index(_) => {
                let seen = self.view(id, scope);
                match head {
                    Head::Index(d) if seen == id => self.range(kids[d], scope),
                    _ if seen == id => ANY,
                    _ => self.range(seen, scope),
                }
            }
            Head::Assert => self.range(kids[1], scope),
            Head::Op(Op::Mul) if self.counts_elements(&kids) => between(0.0, SIZE),
            Head::Op(op) => {
                let ranges: Vec<Bounds> = kids.iter().map(|k| self.range(*k, scope)).collect();
                operation(op, &ranges, kids.len() > 1 && kids[0] == kids[1], scalar.is_float())
            }
            Head::Reduce(Monoid::Add, d) if scalar.is_float() => self.sum_range(head, &kids, d, scope),
            _ => ANY,
        }
    }

    /// Bounds of the elements of a tensor that is made on the spot.
    fn elements_range(&mut self, head: Head, kids: &[Id], scope: &Scope) -> Bounds {
        match head {
            Head::Build(d) => {
                let inner = self.enter(head, kids, d, scope);
                self.range(kids[d], &inner)
            }
            Head::ConstVec(d) | Head::Index(d) => self.range(kids[d], scope),
            Head::If => hull(self.range(kids[1], scope), self.range(kids[2], scope)),
            Head::Assert => self.range(kids[1], scope),
            _ => ANY,
        }
    }

    /// Bounds of a sum of floats: of such as are not negative, and not 0 where there is one that is not.
    fn sum_range(&mut self, head: Head, kids: &[Id], d: usize, scope: &Scope) -> Bounds {
        let inner = self.enter(head, kids, d, scope);
        let element = self.range(kids[d], &inner);
        if element.lo < 0.0 {
            return ANY;
        }
        let some = element.nonzero && kids[..d].iter().all(|n| self.at_least_one(*n, scope));
        Bounds { nonzero: some, ..between(0.0, f64::INFINITY) }
    }
}
