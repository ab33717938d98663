//! Indices become linear forms, so that conditions and loops around a place prove them in range.
//!
//! What might overflow is an atom. It must not know what a search believes.

use super::flat::Scope;
use super::form::Form;
use super::guard::{Fact, Guards, facts};
use super::prove::Prover;
use crate::ir::{Head, Id, Op, Terms, Ty, deep};
use crate::types::shape::shape;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Facts are subtracted from what is to be proved so often at most.
const MAX_FACTS: usize = 4;
/// Bounds of forms with more atoms, or with larger numbers, are not exact as floats, and so none.
const MAX_ATOMS: usize = 7;
const MAX_BOUND: f64 = (1u64 << 50) as f64;

/// The forms that were tried, and with how many facts at most.
type Tried = FxHashMap<Form, usize>;

impl Prover<'_> {
    /// Whether linear facts prove an index to lie in `0..n`.
    pub(super) fn affine_in_range(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        if self.terms.ty(index) != Ty::int() {
            return false;
        }
        let mut facts = self.linear_facts(scope).to_vec();
        for number in [index, n] {
            let form = self.form(number, scope).unwrap_or_default();
            form.atoms.keys().for_each(|atom| self.own_facts(*atom, scope, &mut facts));
        }
        self.not_negative(index, &facts, scope) && self.below(index, n, &facts, scope)
    }

    /// Whether a number is at least 0: the greatest of several if any of them is, the least if all are.
    fn not_negative(&mut self, id: Id, facts: &[Form], scope: &Scope) -> bool {
        let kids = self.terms.kids(id).to_vec();
        match self.terms.head(id) {
            Head::Op(Op::Max) if kids.iter().any(|k| deep(|| self.not_negative(*k, facts, scope))) => true,
            Head::Op(Op::Min) if kids.iter().all(|k| deep(|| self.not_negative(*k, facts, scope))) => true,
            _ => self.form(id, scope).is_some_and(|form| self.by_facts(&form, facts, scope)),
        }
    }

    /// Whether a number is below another one: the least of several if any of them is, the greatest if all are.
    fn below(&mut self, id: Id, n: Id, facts: &[Form], scope: &Scope) -> bool {
        let kids = self.terms.kids(id).to_vec();
        match self.terms.head(id) {
            Head::Op(Op::Min) if kids.iter().any(|k| deep(|| self.below(*k, n, facts, scope))) => true,
            Head::Op(Op::Max) if kids.iter().all(|k| deep(|| self.below(*k, n, facts, scope))) => true,
            _ => {
                let (Some(i), Some(n)) = (self.form(id, scope), self.form(n, scope)) else { return false };
                n.minus_one().minus(&i).is_some_and(|last| self.by_facts(&last, facts, scope))
            }
        }
    }

    /// Whether a form is at least 0, also by what its atoms say of themselves.
    fn by_facts(&mut self, form: &Form, facts: &[Form], scope: &Scope) -> bool {
        let mut facts = facts.to_vec();
        form.atoms.keys().for_each(|atom| self.own_facts(*atom, scope, &mut facts));
        self.never_negative(form, &facts, scope, MAX_FACTS, &mut Tried::default())
    }

    /// Whether two numbers are equal: sizes, or sums and differences of the same.
    pub fn same_number(&mut self, a: Id, b: Id, scope: &Scope) -> bool {
        let (Some(p), Some(q)) = (self.form(a, scope), self.form(b, scope)) else { return false };
        self.same_size(a, b, scope) || p == q
    }

    /// Whether a sum or difference is another number, or more by a constant.
    pub(super) fn no_less(&mut self, n: Id, than: Id) -> bool {
        let scope = vec![];
        matches!(self.terms.head(n), Head::Op(Op::Add | Op::Sub))
            && self
                .form(n, &scope)
                .zip(self.form(than, &scope))
                .and_then(|(n, than)| n.minus(&than))
                .is_some_and(|more| more.atoms.is_empty() && more.constant >= 0)
    }

    /// Whether an index is that of a row, in a loop over all elements of `n` rows of equal length.
    pub(super) fn quotient_in_range(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let (head, kids) = (self.terms.head(index), self.terms.kids(index).to_vec());
        let (Head::Op(Op::Div | Op::FloorDiv), [i, length]) = (head, kids.as_slice()) else { return false };
        if self.terms.ty(index) != Ty::int() || self.range(*i, scope).lo < 0.0 || self.range(*length, scope).lo < 1.0 {
            return false;
        }
        [[n, *length], [*length, n]].into_iter().any(|factors| {
            let all = self.terms.put(Head::Op(Op::Mul), factors);
            self.affine_in_range(*i, all, scope)
        })
    }

    /// Whether an element that is certain to be read has this index, or a greater one, in something of this size.
    pub(super) fn read_already(&mut self, index: Id, n: Id, scope: &Scope) -> bool {
        let value = |t: &Terms, id: Id| t.as_lit(id).and_then(|l| l.as_int());
        let reaches = |t: &Terms, other: Id| {
            other == index || value(t, index).zip(value(t, other)).is_some_and(|(i, o)| 0 <= i && i <= o)
        };
        let here = |(_, at, guards): &&(Id, Scope, Guards)| {
            at == scope && guards.len() >= self.outer && self.guards.starts_with(guards)
        };
        let always = self.known.iter().filter(|(_, ranges)| ranges.is_empty()).map(|(term, _)| *term);
        let mut read: Vec<(Id, usize)> = vec![];
        for term in always.chain(self.local.iter().filter(here).map(|(term, ..)| *term)) {
            if let Head::Index(d) = self.terms.head(term) {
                let kids = self.terms.kids(term);
                read.extend((0..d).filter(|k| reaches(self.terms, kids[*k])).map(|k| (kids[d], k)));
            }
        }
        read.sort_unstable();
        read.into_iter().any(|(tensor, k)| {
            let size = shape(self.terms, tensor)[k];
            self.same_size(size, n, scope)
        })
    }

    /// That the loops around a place run: so their extents are not 0, and no factor of one is.
    pub(super) fn loops_run(&mut self, scope: &Scope, out: &mut Vec<Fact>) {
        for (i, extent) in scope.iter().rev().enumerate() {
            let Some(extent) = extent.map(|e| self.terms.shift(e, i + 1)) else { continue };
            let mut factors = vec![self.where_run(extent, out)];
            let zero = self.terms.int(0);
            while let Some(factor) = factors.pop() {
                match self.terms.head(factor) {
                    Head::Op(Op::Mul) => factors.extend(self.terms.kids(factor)),
                    _ => out.push(Fact::Differ(factor, zero)),
                }
            }
        }
    }

    /// Whether factors are sizes of different axes of one tensor, which are no more than its elements.
    pub(super) fn counts_elements(&self, factors: &[Id]) -> bool {
        let axis = |id: &Id| match self.terms.head(*id) {
            Head::Size(axis) => Some((axis, self.terms.kids(*id)[0])),
            _ => None,
        };
        let [Some((a, one)), Some((b, other))] = [factors.first().and_then(axis), factors.get(1).and_then(axis)] else {
            return false;
        };
        one == other && a != b && factors.len() == 2
    }

    /// The extent of a loop where it runs, and the conditions that hold there.
    fn where_run(&mut self, extent: Id, out: &mut Vec<Fact>) -> Id {
        let kids = self.terms.kids(extent).to_vec();
        match (self.terms.head(extent), kids.as_slice()) {
            (Head::If, [condition, then, none])
                if self.terms.as_lit(*none).and_then(|l| l.as_int()).is_some_and(|n| n <= 0) =>
            {
                facts(self.terms, *condition, true, out);
                self.where_run(*then, out)
            }
            _ => extent,
        }
    }

    /// A number as a form. Sums of what has bounds do not overflow; others are atoms.
    fn form(&mut self, id: Id, scope: &Scope) -> Option<Form> {
        let id = self.view(id, scope);
        if let Some(value) = self.terms.as_lit(id).and_then(|l| l.as_int()) {
            return Some(Form::constant(value as i128));
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let Head::Op(op @ (Op::Add | Op::Sub | Op::Mul | Op::Neg)) = head else {
            return Some(Form::atom(self.size(id, scope)));
        };
        // What conditions say of a sum does not keep it from overflowing.
        let bounds = self.untold(id, scope);
        if self.terms.ty(id) != Ty::int() || bounds.lo.is_infinite() || bounds.hi.is_infinite() {
            return Some(Form::atom(id));
        }
        let mut parts = vec![];
        for kid in &kids {
            parts.push(deep(|| self.form(*kid, scope))?);
        }
        match (op, parts.as_slice()) {
            (Op::Add, [a, b]) => a.plus(b, 1),
            (Op::Sub, [a, b]) => a.minus(b),
            (Op::Neg, [a]) => Form::default().minus(a),
            (Op::Mul, [a, b]) if a.atoms.is_empty() => Form::default().plus(b, a.constant),
            (Op::Mul, [a, b]) if b.atoms.is_empty() => Form::default().plus(a, b.constant),
            _ => Some(Form::atom(id)),
        }
    }

    /// Forms that are at least 0 here: by the loops around the place, and by the conditions.
    fn linear_facts(&mut self, scope: &Scope) -> Rc<Vec<Form>> {
        if let Some(known) = self.found.linear.get(scope) {
            return Rc::clone(known);
        }
        let out = Rc::new(self.facts_around(scope));
        self.found.linear.insert(scope.clone(), Rc::clone(&out));
        out
    }

    fn facts_around(&mut self, scope: &Scope) -> Vec<Form> {
        let mut out = vec![];
        for (i, extent) in scope.iter().rev().enumerate() {
            let Some(extent) = *extent else { continue };
            let (extent, var) = (self.terms.shift(extent, i + 1), self.terms.var(i as u32, Ty::int()));
            let extent = self.where_run(extent, &mut vec![]);
            out.extend(self.multiple(extent, scope));
            let Some(extent) = self.form(extent, scope) else { continue };
            out.extend(extent.minus_one().minus(&Form::atom(var)));
            out.push(Form::atom(var));
        }
        let mut unequal = vec![];
        for fact in self.told(scope).iter() {
            let (Fact::Less(a, _, b) | Fact::Differ(a, b)) = *fact;
            let Some((a, b)) = self.form(a, scope).zip(self.form(b, scope)) else { continue };
            match (*fact, b.minus(&a)) {
                (Fact::Less(_, by, _), Some(difference)) => {
                    out.push(Form { constant: difference.constant - i128::from(by), ..difference });
                }
                (Fact::Differ(..), Some(difference)) => unequal.push(difference),
                (_, None) => {}
            }
        }
        // What differs, and is known not to be less, is greater.
        for difference in unequal {
            let Some(negated) = Form::default().minus(&difference) else { continue };
            for form in [difference, negated] {
                if self.never_negative(&form, &out, scope, MAX_FACTS - 1, &mut Tried::default()) {
                    out.push(form.minus_one());
                }
            }
        }
        out
    }

    /// That a quotient which is positive, as the extent of a loop that runs, is no more than its part.
    fn multiple(&mut self, extent: Id, scope: &Scope) -> Option<Form> {
        let (Head::Op(Op::Div | Op::FloorDiv), [whole, by]) = (self.terms.head(extent), self.terms.kids(extent)) else {
            return None;
        };
        let (whole, by) = (*whole, self.terms.as_lit(*by)?.as_int().filter(|by| *by > 0)?);
        self.form(whole, scope)?.plus(&Form::atom(extent), -i128::from(by))
    }

    /// What an atom says of itself: where an extreme value stands, and what is the least or greatest of several.
    fn own_facts(&mut self, atom: Id, scope: &Scope, out: &mut Vec<Form>) {
        let (head, kids) = (self.terms.head(atom), self.terms.kids(atom).to_vec());
        let mut least = |k: usize| self.range(kids[k], scope).lo;
        // The atom is at most each of the others, or below it, or at least each of them.
        let (others, sign, gap) = match head {
            Head::Arg(_) => (&kids[..1], -1, 1),
            Head::Op(Op::Mod | Op::FloorMod) if least(0) >= 0.0 && least(1) >= 1.0 => (&kids[1..], -1, 1),
            Head::Op(Op::Min) => (&kids[..], -1, 0),
            Head::Op(Op::Max) => (&kids[..], 1, 0),
            _ => return,
        };
        for other in others {
            let Some(other) = self.form(*other, scope) else { continue };
            let difference = Form::constant(-gap).plus(&Form::atom(atom), sign).and_then(|d| d.plus(&other, -sign));
            out.extend(difference);
        }
    }

    /// Whether a form is at least 0: by bounds of its atoms, or as a sum of facts and what is at least 0 by bounds.
    fn never_negative(&mut self, form: &Form, facts: &[Form], scope: &Scope, more: usize, tried: &mut Tried) -> bool {
        if self.least(form, scope) >= 0.0 {
            return true;
        }
        // The same facts lead to the same rest, whichever comes first.
        if more == 0 || tried.get(form).is_some_and(|with| *with >= more) {
            return false;
        }
        tried.insert(form.clone(), more);
        let helps = |fact: &Form| fact.atoms.iter().any(|(atom, c)| form.atoms.get(atom).is_some_and(|f| f * c > 0));
        facts
            .iter()
            .filter(|f| helps(f))
            .any(|fact| form.minus(fact).is_some_and(|rest| self.never_negative(&rest, facts, scope, more - 1, tried)))
    }

    /// The least value by the bounds of the atoms.
    fn least(&mut self, form: &Form, scope: &Scope) -> f64 {
        if form.atoms.len() > MAX_ATOMS {
            return f64::NEG_INFINITY;
        }
        let mut sum = form.constant as f64;
        for (atom, c) in &form.atoms {
            let bounds = self.range(*atom, scope);
            let least = *c as f64 * if *c > 0 { bounds.lo } else { bounds.hi };
            sum += if least.abs() < MAX_BOUND { least } else { f64::NEG_INFINITY };
        }
        sum
    }
}
