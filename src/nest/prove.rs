//! Proofs that a form is at least 0, from what is known at a place: the latest atom gives way to its bounds or to its
//! cases, and what is known is subtracted where it takes a negative product away.
//!
//! The search is bounded by a count of steps: what it does not prove is not known. It must not know of statements.

use super::form::{Atom, Form, Forms};
use crate::affine::Linear;

/// So many facts are used one after another, by so small a part of all steps.
const DEPTHS: [(u32, u32); 3] = [(1, 6), (2, 3), (4, 2)];

/// A proof in search.
pub(super) struct Proof<'a> {
    pub(super) forms: &'a mut Forms,
    /// Steps that are left.
    pub(super) fuel: u32,
}

impl Proof<'_> {
    /// Whether a form is at least 0 where all facts are.
    pub(super) fn holds(&mut self, f: &Form, facts: &[Form]) -> bool {
        let all = self.fuel;
        // First short proofs: a long search for one is in vain where it starts with the wrong fact.
        DEPTHS.iter().any(|(left, share)| {
            self.fuel = all / share;
            self.search(f, facts, *left)
        })
    }

    fn search(&mut self, f: &Form, facts: &[Form], left: u32) -> bool {
        if self.forms.is_natural(f) {
            return true;
        }
        if self.fuel == 0 {
            return false;
        }
        self.fuel -= 1;
        self.by_atom(f, facts, left) == Some(true) || left > 0 && self.by_facts(f, facts, left - 1)
    }

    /// The latest atom gives way to the end of its range, or to each of its cases.
    fn by_atom(&mut self, f: &Form, facts: &[Form], left: u32) -> Option<bool> {
        let a = self.forms.latest(f)?;
        let atom = self.forms.atom(a).clone();
        if matches!(atom, Atom::Any | Atom::Natural) {
            return None;
        }
        let (by, rest) = self.forms.split(f, a)?;
        let up = match by.as_constant() {
            Some(c) => c > 0,
            None if self.forms.is_natural(&by) => true,
            None if self.forms.is_natural(&by.times(-1)?) => false,
            None if self.search(&by, facts, 1) => true,
            None if self.search(&by.times(-1)?, facts, 1) => false,
            None => return None,
        };
        let with = |p: &mut Self, value: &Form| {
            let value = p.forms.times(&by, value)?;
            Some(p.search(&value.plus(&rest, 1)?, facts, left))
        };
        match atom {
            Atom::Any | Atom::Natural => None,
            Atom::Range(lo, hi) => with(self, if up { &lo } else { &hi }),
            Atom::Min(x, y) if up => Some(with(self, &x)? && with(self, &y)?),
            Atom::Max(x, y) if !up => Some(with(self, &x)? && with(self, &y)?),
            Atom::Min(x, y) | Atom::Max(x, y) => {
                // First the one that fewer loops decide.
                let (x, y) = if self.forms.latest(&y) < self.forms.latest(&x) { (y, x) } else { (x, y) };
                Some(with(self, &x) == Some(true) || with(self, &y)?)
            }
            Atom::Cond(known, x, y) => {
                let arm = |p: &mut Self, value: &Form, known: &[Form]| {
                    let value = p.forms.times(&by, value)?.plus(&rest, 1)?;
                    Some(p.search(&value, &[facts, known].concat(), left))
                };
                Some(arm(self, &x, &known[0])? && arm(self, &y, &known[1])?)
            }
            Atom::Div(n, k) => {
                // k q is at most n and at least n - k + 1; the form times k has the sign of the form.
                let end = if up { n.plus(&k, -1)?.plus(&Linear::constant(1), 1)? } else { n };
                let rest = self.forms.times(&rest, &k)?;
                let end = self.forms.times(&by, &end)?;
                Some(self.search(&end.plus(&rest, 1)?, facts, left))
            }
        }
    }

    /// A fact times an integer that is at least 0 takes away what keeps a form from being at least 0.
    fn by_facts(&mut self, f: &Form, facts: &[Form], left: u32) -> bool {
        let part = |(p, c): (u32, i64)| (Some(p), c);
        let constant = |f: &Form| Some((None, f.offset())).filter(|(_, c)| *c < 0);
        let forms = &self.forms;
        let bad: Vec<(Option<u32>, i64)> =
            f.terms().filter(|(p, c)| *c < 0 || !forms.is_natural_product(*p)).map(part).chain(constant(f)).collect();
        for (product, c) in bad {
            // What is known last is nearest to what is asked.
            for fact in facts.iter().rev() {
                let parts: Vec<(Option<u32>, i64)> = fact.terms().map(part).chain(constant(fact)).collect();
                for (part, g) in parts.into_iter().filter(|(_, g)| (*g < 0) == (c < 0)) {
                    let next = self.without(f, (product, c), fact, (part, g));
                    if next.is_some_and(|next| self.search(&next, facts, left)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// `|g| f - |c| q fact`, where the product is q times the part of the fact.
    fn without(
        &mut self,
        f: &Form,
        (product, c): (Option<u32>, i64),
        fact: &Form,
        (part, g): (Option<u32>, i64),
    ) -> Option<Form> {
        if !self.forms.is_factor(part, product) {
            return None;
        }
        if product.is_none() {
            // As often as the number needs it: the fact takes something else away in turn.
            let times = c.checked_div(g)?.checked_add(i64::from(c % g != 0))?;
            return f.plus(fact, times.checked_neg()?);
        }
        let fact = match (product, part) {
            (None, _) => return None,
            (Some(p), _) => {
                let q = self.forms.quotient(p, part)?;
                if !self.forms.is_natural_product(q) {
                    return None;
                }
                let q = self.forms.of_product(q, 1)?;
                self.forms.times(fact, &q)?
            }
        };
        f.times(g.checked_abs()?)?.plus(&fact, c.checked_abs()?.checked_neg()?)
    }
}
