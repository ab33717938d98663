//! Linear forms with integer coefficients: sums of multiples of atoms, and a constant.
//!
//! Arithmetic is checked: a form whose coefficients would leave 64 bits is none, so that what is concluded from a form
//! holds of the integers.

use std::collections::BTreeMap;

/// A sum of multiples of atoms and a constant. No coefficient is 0, so that equal forms are equal values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Linear<A: Ord> {
    terms: BTreeMap<A, i64>,
    constant: i64,
}

impl<A: Ord + Copy> Linear<A> {
    /// A number.
    pub fn constant(v: i64) -> Linear<A> {
        Linear { terms: BTreeMap::new(), constant: v }
    }

    /// An atom.
    pub fn atom(a: A) -> Linear<A> {
        Linear { terms: BTreeMap::from([(a, 1)]), constant: 0 }
    }

    /// The form as a number, where it has no atoms.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The constant part.
    pub fn offset(&self) -> i64 {
        self.constant
    }

    /// The atoms with their coefficients, in order.
    pub fn terms(&self) -> impl Iterator<Item = (A, i64)> + '_ {
        self.terms.iter().map(|(a, c)| (*a, *c))
    }

    /// The coefficient of an atom.
    pub fn coefficient(&self, a: A) -> i64 {
        self.terms.get(&a).copied().unwrap_or(0)
    }

    /// The sum with a multiple of another form; nothing where a number leaves 64 bits.
    pub fn plus(&self, other: &Linear<A>, times: i64) -> Option<Linear<A>> {
        let mut out = self.clone();
        out.constant = out.constant.checked_add(other.constant.checked_mul(times)?)?;
        for (a, c) in other.terms() {
            let sum = out.coefficient(a).checked_add(c.checked_mul(times)?)?;
            if sum == 0 {
                out.terms.remove(&a);
            } else {
                out.terms.insert(a, sum);
            }
        }
        Some(out)
    }

    /// A multiple of the form; nothing where a number leaves 64 bits.
    pub fn times(&self, by: i64) -> Option<Linear<A>> {
        Linear::constant(0).plus(self, by)
    }

    /// The form without an atom, and the atom's coefficient.
    pub fn without(&self, a: A) -> (Linear<A>, i64) {
        let mut rest = self.clone();
        let c = rest.terms.remove(&a).unwrap_or(0);
        (rest, c)
    }

    /// The form with another one for an atom; nothing where a number leaves 64 bits.
    pub fn replace(&self, a: A, by: &Linear<A>) -> Option<Linear<A>> {
        let (rest, c) = self.without(a);
        if c == 0 { Some(rest) } else { rest.plus(by, c) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]
mod tests {
    use super::Linear;

    fn form(terms: &[(u32, i64)], constant: i64) -> Linear<u32> {
        terms.iter().fold(Linear::constant(constant), |f, (a, c)| f.plus(&Linear::atom(*a), *c).unwrap())
    }

    /// Protects: equal forms are equal values, whatever was added and taken away.
    #[test]
    fn terms_that_cancel_are_gone() {
        let f = form(&[(1, 2), (2, 3)], 5);
        assert_eq!(f.plus(&f, -1).unwrap(), Linear::constant(0));
        assert_eq!(f.replace(2, &form(&[(1, -1)], 1)).unwrap(), form(&[(1, -1)], 8));
    }

    /// Protects: what leaves 64 bits is no form.
    #[test]
    fn large_numbers_are_refused() {
        let f = form(&[(1, i64::MAX)], 0);
        assert!(f.plus(&f, 1).is_none());
        assert!(Linear::<u32>::constant(i64::MIN).times(-1).is_none());
    }
}
