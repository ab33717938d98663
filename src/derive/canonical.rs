//! Terms become canonical, one spelling of all that are computed alike: with operands in another order, sums and products of
//! integers in another form, comparisons the other way round.
//!
//! *Values.* Integers are a ring, whatever overflows; operations that commute do so to the bit. *Failures.* Terms that
//! have one spelling evaluate the same parts, but for parts that cannot fail: so where one of them has a value, each has
//! it. What cancels and might fail stays, multiplied by 0. It must not know what is proved with that.

use super::flat::{Scope, Site, as_parameter};
use super::guard::{Guard, Guards};
use crate::ir::{Head, Id, Lit, Op, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Sums have so many summands at most, and those so many factors; what would have more is a part like any other.
const MAX_SUMMANDS: usize = 48;
const MAX_FACTORS: usize = 8;

/// A sum of products of parts, each so many times; parts of products are in order.
type Sum = BTreeMap<Vec<Id>, i64>;

/// A part, the scope that it stands in, and the conditions around it.
type Placed = (Id, Scope, Guards);

/// The spellings of the terms of one arena.
#[derive(Clone, Default)]
pub struct Canonical {
    spelled: FxHashMap<Id, Id>,
    sums: FxHashMap<Id, Rc<Sum>>,
}

impl Canonical {
    /// The spelling of a term.
    pub fn of(&mut self, terms: &mut Terms, id: Id) -> Id {
        if let Some(known) = self.spelled.get(&id) {
            return *known;
        }
        let out = if is_sum(terms, id) {
            let sum = self.sum(terms, id);
            written(terms, &sum)
        } else {
            self.node(terms, id)
        };
        self.spelled.insert(id, out);
        out
    }

    /// The spelling of a node with its parts as they are spelled.
    fn node(&mut self, terms: &mut Terms, id: Id) -> Id {
        let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
        if kids.is_empty() {
            return id;
        }
        let mut new: Vec<Id> = kids.iter().map(|k| deep(|| self.of(terms, *k))).collect();
        let Head::Op(op) = head else { return terms.put(head, new) };
        let op = match op {
            Op::Gt | Op::Gte => {
                new.reverse();
                if op == Op::Gt { Op::Lt } else { Op::Lte }
            }
            op => op,
        };
        if commutes(op, terms.ty(new[0])) {
            new.sort_unstable();
        }
        terms.put(Head::Op(op), new)
    }

    /// An integer as a sum of products.
    fn sum(&mut self, terms: &mut Terms, id: Id) -> Rc<Sum> {
        if let Some(known) = self.sums.get(&id) {
            return Rc::clone(known);
        }
        let out = Rc::new(match deep(|| self.made(terms, id)) {
            Some(sum) if sum.len() <= MAX_SUMMANDS => sum,
            _ => {
                let part = self.node(terms, id);
                Sum::from([(vec![part], 1)])
            }
        });
        self.sums.insert(id, Rc::clone(&out));
        out
    }

    /// The same; none where it is too long.
    fn made(&mut self, terms: &mut Terms, id: Id) -> Option<Sum> {
        if let Some(value) = terms.as_lit(id).and_then(Lit::as_int) {
            return Some(Sum::from([(vec![], value)]));
        }
        if !is_sum(terms, id) {
            let part = self.of(terms, id);
            return Some(Sum::from([(vec![part], 1)]));
        }
        let kids = terms.kids(id).to_vec();
        let parts: Vec<Rc<Sum>> = kids.iter().map(|k| self.sum(terms, *k)).collect();
        let mut out = Sum::new();
        match (terms.head(id), parts.as_slice()) {
            (Head::Op(Op::Mul), [a, b]) if a.len() * b.len() <= MAX_SUMMANDS => {
                for (x, times_x) in a.iter() {
                    for (y, times_y) in b.iter() {
                        let mut product = [x.as_slice(), y.as_slice()].concat();
                        product.sort_unstable();
                        (product.len() <= MAX_FACTORS).then_some(())?;
                        add(&mut out, product, times_x.wrapping_mul(*times_y));
                    }
                }
            }
            (Head::Op(Op::Add), parts) => {
                let each = parts.iter().flat_map(|part| part.iter());
                each.for_each(|(product, times)| add(&mut out, product.clone(), *times));
            }
            (Head::Op(Op::Sub), [a, b]) => {
                a.iter().for_each(|(product, times)| add(&mut out, product.clone(), *times));
                b.iter().for_each(|(product, times)| add(&mut out, product.clone(), times.wrapping_neg()));
            }
            (Head::Op(Op::Neg), [a]) => {
                a.iter().for_each(|(product, times)| add(&mut out, product.clone(), times.wrapping_neg()));
            }
            _ => return None,
        }
        out.retain(|product, times| *times != 0 || !product.iter().all(|part| never_fails(terms, *part)));
        Some(out)
    }

    /// The spellings of parts in their loops.
    pub(super) fn sites(&mut self, terms: &mut Terms, sites: &FxHashSet<Site>) -> FxHashSet<Site> {
        sites.iter().map(|site| self.site(terms, site)).collect()
    }

    /// The spelling of a part in its loops.
    pub(super) fn site(&mut self, terms: &mut Terms, (id, ranges): &Site) -> Site {
        let ranges = ranges.iter().map(|extent| self.of(terms, *extent)).collect();
        (self.of(terms, *id), ranges)
    }

    /// The spellings of parts that have a value somewhere.
    pub(super) fn locals(&mut self, terms: &mut Terms, local: &FxHashSet<Placed>) -> FxHashSet<Placed> {
        let each = local
            .iter()
            .map(|(id, scope, guards)| (self.of(terms, *id), self.scope(terms, scope), self.guards(terms, guards)));
        each.collect()
    }

    pub(super) fn scope(&mut self, terms: &mut Terms, scope: &Scope) -> Scope {
        scope.iter().map(|extent| extent.map(|extent| self.of(terms, extent))).collect()
    }

    pub(super) fn guards(&mut self, terms: &mut Terms, guards: &[Guard]) -> Guards {
        guards.iter().map(|guard| Guard { cond: self.of(terms, guard.cond), ..*guard }).collect()
    }
}

/// Whether a number is an integer that is made of others as those of a ring are.
fn is_sum(terms: &Terms, id: Id) -> bool {
    matches!(terms.head(id), Head::Op(Op::Add | Op::Sub | Op::Mul | Op::Neg)) && terms.ty(id) == Ty::int()
}

fn add(sum: &mut Sum, product: Vec<Id>, times: i64) {
    let known = sum.entry(product).or_default();
    *known = known.wrapping_add(times);
}

/// A sum as a term.
fn written(terms: &mut Terms, sum: &Sum) -> Id {
    let mut all: Option<Id> = None;
    for (product, times) in sum {
        let number = if *times != 1 || product.is_empty() { Some(terms.int(*times)) } else { None };
        let mut out: Option<Id> = None;
        for part in number.into_iter().chain(product.iter().copied()) {
            out = Some(out.map_or(part, |before| terms.op(Op::Mul, [before, part])));
        }
        all = all.zip(out).map(|(before, out)| terms.op(Op::Add, [before, out])).or(all).or(out);
    }
    all.unwrap_or_else(|| terms.int(0))
}

/// Whether operands of a type may stand in any order.
fn commutes(op: Op, ty: Ty) -> bool {
    match op {
        Op::Add | Op::Mul | Op::Minimum | Op::Maximum | Op::And | Op::Or | Op::Eq | Op::Ne => true,
        // Of floats it is the second one where one is no number.
        Op::Min | Op::Max => ty == Ty::int(),
        _ => false,
    }
}

/// Whether a part has a value whatever is around it.
fn never_fails(terms: &Terms, id: Id) -> bool {
    match (terms.head(id), terms.kids(id)) {
        (Head::Var(..) | Head::Const(_), _) => true,
        (Head::Size(_), [of]) => never_fails(terms, *of),
        (head, _) => as_parameter(head).is_some(),
    }
}
