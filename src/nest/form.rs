//! Integers of a nest as forms: sums of multiples of products of atoms, over loop variables, sizes and what was read.
//!
//! A form is exact as long as no index leaves 64 bits, which no buffer reaches. What is no form is an atom of which
//! nothing is known. It must not know of statements.

use crate::affine::Linear;
use indexmap::IndexSet;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// A sum of multiples of products of atoms: a product is an index into [`Forms`].
pub(super) type Form = Linear<u32>;

/// An integer of which a form is made. A later one is made of earlier ones alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Atom {
    /// Any integer.
    Any,
    /// At least 0.
    Natural,
    /// Between two integers, both included: what a loop runs over, a lane, or a narrow type.
    Range(Form, Form),
    /// The smaller of two.
    Min(Form, Form),
    /// The greater of two.
    Max(Form, Form),
    /// The quotient of an integer that is at least 0 by one that is at least 1, rounded down.
    Div(Form, Form),
    /// One of two, by a condition: what is at least 0 where it holds, and where it does not.
    Cond(Box<[Vec<Form>; 2]>, Form, Form),
}

/// How many examples there are.
pub(super) const COUNT: usize = 12;
/// Values of atoms in an example, as far as they were asked for; nothing where the numbers are too large.
pub(super) type Memo = Vec<Option<Option<i64>>>;
/// Forms of more products are none.
const MAX_PRODUCTS: usize = 48;

/// All atoms and products of a function.
#[derive(Default)]
pub(super) struct Forms {
    atoms: Vec<Atom>,
    natural: Vec<bool>,
    made: FxHashMap<Atom, u32>,
    products: IndexSet<SmallVec<[u32; 3]>>,
    /// Atoms that may be any integer in their range: parameters, variables of loops, lanes.
    chosen: FxHashSet<u32>,
    /// Parameters that a condition at the start says the value of.
    pins: FxHashMap<u32, i64>,
    pub(super) examples: [Memo; COUNT],
}

impl Forms {
    /// An atom by its number.
    pub(super) fn atom(&self, a: u32) -> &Atom {
        &self.atoms[a as usize]
    }

    /// The number of the next atom: those from here on are made later.
    pub(super) fn next(&self) -> u32 {
        self.atoms.len() as u32
    }

    /// A new integer that may be any one.
    pub(super) fn choose(&mut self, atom: Atom) -> Form {
        self.chosen.insert(self.next());
        self.fresh(atom)
    }

    /// Whether all that decides a form may be any integer in its range.
    pub(super) fn is_chosen(&self, all: &BTreeSet<u32>) -> bool {
        all.iter()
            .all(|a| self.chosen.contains(a) || !matches!(self.atom(*a), Atom::Any | Atom::Natural | Atom::Range(..)))
    }

    /// Takes in that a parameter has a value.
    pub(super) fn pin(&mut self, a: u32, value: i64) {
        if self.chosen.contains(&a) && self.pins.insert(a, value).is_none() {
            self.examples.iter_mut().for_each(Vec::clear);
        }
    }

    /// The value of a parameter, where a condition says it.
    pub(super) fn pinned(&self, a: u32) -> Option<i64> {
        self.pins.get(&a).copied()
    }

    /// A new integer.
    pub(super) fn fresh(&mut self, atom: Atom) -> Form {
        let natural = match &atom {
            Atom::Any => false,
            Atom::Natural | Atom::Div(..) => true,
            Atom::Range(lo, _) => self.is_natural(lo),
            Atom::Min(a, b) | Atom::Cond(_, a, b) => self.is_natural(a) && self.is_natural(b),
            Atom::Max(a, b) => self.is_natural(a) || self.is_natural(b),
        };
        self.atoms.push(atom);
        self.natural.push(natural);
        let a = self.next() - 1;
        self.own(a)
    }

    /// An integer that earlier ones decide: the same one again where they are the same.
    pub(super) fn made(&mut self, atom: Atom) -> Form {
        match self.made.get(&atom).copied() {
            Some(a) => self.own(a),
            None => {
                self.made.insert(atom.clone(), self.next());
                self.fresh(atom)
            }
        }
    }

    /// How much there is, for [`Forms::back`].
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.atoms.len(), self.products.len())
    }

    /// Forgets what was made since.
    pub(super) fn back(&mut self, (atoms, products): (usize, usize)) {
        self.products.truncate(products);
        if self.atoms.len() > atoms {
            self.atoms.truncate(atoms);
            self.natural.truncate(atoms);
            self.examples.iter_mut().for_each(|e| e.truncate(atoms));
            self.made.retain(|_, a| (*a as usize) < atoms);
            self.chosen.retain(|a| (*a as usize) < atoms);
        }
    }

    /// Adds all atoms that a form is made of.
    pub(super) fn reach(&self, f: &Form, all: &mut BTreeSet<u32>) {
        for a in f.terms().flat_map(|(p, _)| self.factors(p)) {
            if !all.insert(*a) {
                continue;
            }
            match self.atom(*a) {
                Atom::Any | Atom::Natural => {}
                Atom::Range(x, y) | Atom::Min(x, y) | Atom::Max(x, y) | Atom::Div(x, y) => {
                    self.reach(x, all);
                    self.reach(y, all);
                }
                Atom::Cond(facts, x, y) => {
                    facts.iter().flatten().chain([x, y]).for_each(|f| self.reach(f, all));
                }
            }
        }
    }

    fn product_of(&mut self, mut atoms: SmallVec<[u32; 3]>) -> u32 {
        atoms.sort_unstable();
        self.products.insert_full(atoms).0 as u32
    }

    /// The atoms of a product, in order.
    pub(super) fn factors(&self, product: u32) -> &[u32] {
        &self.products[product as usize]
    }

    /// An atom as a form.
    pub(super) fn own(&mut self, a: u32) -> Form {
        Linear::atom(self.product_of(SmallVec::from_slice(&[a])))
    }

    /// The latest atom of a form.
    pub(super) fn latest(&self, f: &Form) -> Option<u32> {
        f.terms().filter_map(|(p, _)| self.factors(p).last().copied()).max()
    }

    /// Whether a form is seen at once to be at least 0.
    pub(super) fn is_natural(&self, f: &Form) -> bool {
        f.offset() >= 0 && f.terms().all(|(p, c)| c > 0 && self.is_natural_product(p))
    }

    /// Whether a product is one of integers that are at least 0.
    pub(super) fn is_natural_product(&self, p: u32) -> bool {
        self.factors(p).iter().all(|a| self.natural[*a as usize])
    }

    /// The product of two forms; nothing where it is too large.
    pub(super) fn times(&mut self, a: &Form, b: &Form) -> Option<Form> {
        if let Some(k) = b.as_constant() {
            return a.times(k);
        }
        let mut out = a.times(b.offset())?;
        for (q, d) in b.terms() {
            out = out.plus(&self.multiple(a, q)?, d)?;
        }
        (out.terms().count() <= MAX_PRODUCTS).then_some(out)
    }

    /// A form times a product.
    pub(super) fn multiple(&mut self, f: &Form, product: u32) -> Option<Form> {
        let mut out = Linear::constant(0).plus(&Linear::atom(product), f.offset())?;
        for (p, c) in f.terms() {
            let all = [self.factors(p), self.factors(product)].concat();
            out = out.plus(&Linear::atom(self.product_of(SmallVec::from_vec(all))), c)?;
        }
        Some(out)
    }

    /// Whether a product, or none, has the factors of another, or of none.
    pub(super) fn is_factor(&self, of: Option<u32>, product: Option<u32>) -> bool {
        let each = |p: Option<u32>| p.map_or(&[][..], |p| self.factors(p));
        let mut rest = each(product).iter();
        each(of).iter().all(|a| rest.any(|b| a == b))
    }

    /// The product that is left of one without the factors of another, which may have none.
    pub(super) fn quotient(&mut self, of: u32, by: Option<u32>) -> Option<u32> {
        let mut left: SmallVec<[u32; 3]> = SmallVec::from_slice(self.factors(of));
        for a in by.map(|b| self.factors(b).to_vec()).unwrap_or_default() {
            let at = left.iter().position(|b| *b == a)?;
            left.remove(at);
        }
        Some(self.product_of(left))
    }

    /// A product as a form: 1 where it has no factors.
    pub(super) fn of_product(&self, p: u32, times: i64) -> Option<Form> {
        match self.factors(p).is_empty() {
            true => Some(Linear::constant(times)),
            false => Linear::atom(p).times(times),
        }
    }

    /// A form as a multiple of an atom, and the rest; nothing where the atom is multiplied by itself.
    pub(super) fn split(&mut self, f: &Form, atom: u32) -> Option<(Form, Form)> {
        let (mut by, mut rest) = (Linear::constant(0), Linear::constant(f.offset()));
        for (p, c) in f.terms().collect::<Vec<_>>() {
            match self.factors(p).iter().filter(|a| **a == atom).count() {
                0 => rest = rest.plus(&Linear::atom(p), c)?,
                1 => {
                    let left: SmallVec<[u32; 3]> = self.factors(p).iter().copied().filter(|a| *a != atom).collect();
                    let left = self.product_of(left);
                    by = by.plus(&self.of_product(left, c)?, 1)?;
                }
                _ => return None,
            }
        }
        Some((by, rest))
    }

    /// A form with others for atoms, inside of what is made of them too; what was made is kept in the map.
    pub(super) fn substitute(&mut self, f: &Form, by: &mut FxHashMap<u32, Form>) -> Option<Form> {
        let mut out = Linear::constant(f.offset());
        for (p, c) in f.terms().collect::<Vec<_>>() {
            let mut product = Linear::constant(c);
            for a in self.factors(p).to_vec() {
                let new = self.substituted(a, by)?;
                product = self.times(&product, &new)?;
            }
            out = out.plus(&product, 1)?;
        }
        Some(out)
    }

    fn substituted(&mut self, a: u32, by: &mut FxHashMap<u32, Form>) -> Option<Form> {
        if let Some(f) = by.get(&a) {
            return Some(f.clone());
        }
        let old = self.atom(a).clone();
        let new = match &old {
            Atom::Any | Atom::Natural | Atom::Range(..) => old.clone(),
            Atom::Min(x, y) => Atom::Min(self.substitute(x, by)?, self.substitute(y, by)?),
            Atom::Max(x, y) => Atom::Max(self.substitute(x, by)?, self.substitute(y, by)?),
            Atom::Div(x, y) => Atom::Div(self.substitute(x, by)?, self.substitute(y, by)?),
            Atom::Cond(facts, x, y) => {
                let mut each = |all: &Vec<Form>| all.iter().map(|f| self.substitute(f, by)).collect::<Option<Vec<_>>>();
                let facts = [each(&facts[0])?, each(&facts[1])?];
                Atom::Cond(Box::new(facts), self.substitute(x, by)?, self.substitute(y, by)?)
            }
        };
        let form = match new == old {
            true => self.own(a),
            false => self.made(new),
        };
        by.insert(a, form.clone());
        Some(form)
    }
}
