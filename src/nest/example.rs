//! Examples: sizes, numbers and iterations in which forms have values. One in which something does not hold refutes it,
//! and one in which an access goes wrong shows that it does.
//!
//! It must not know of statements.

use super::form::{Atom, COUNT, Form, Forms, Memo};

/// Which iteration of a loop an example is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Iteration {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The last one where other loops decide how many there are, else the first.
    Mixed,
}

/// An example.
pub(super) struct Example {
    /// What sizes are; in turn one of two.
    sizes: [i64; 2],
    /// By which bit of its number an atom has the second size.
    bit: u32,
    /// Whether sizes differ besides.
    differ: bool,
    pub(super) iteration: Iteration,
}

const fn example(sizes: [i64; 2], bit: u32, differ: bool, iteration: Iteration) -> Example {
    Example { sizes, bit, differ, iteration }
}

use Iteration::{First, Last, Mixed};

/// All examples.
pub(super) const EXAMPLES: [Example; COUNT] = [
    example([1000, 1000], 0, false, First),
    example([1000, 1000], 0, false, Last),
    example([1000, 1000], 0, false, Mixed),
    example([1000, 1000], 0, true, Last),
    example([3, 3], 0, false, Last),
    example([3, 1000], 0, false, Last),
    example([1000, 3], 0, false, Last),
    example([3, 1000], 1, false, Last),
    example([1000, 3], 1, false, Last),
    example([20, 1], 0, false, Last),
    example([1, 20], 0, false, Last),
    example([3, 3], 0, false, First),
];

impl Forms {
    /// Whether a form is below 0 in an example in which all facts hold.
    pub(super) fn is_refuted(&mut self, f: &Form, facts: &[Form]) -> bool {
        (0..EXAMPLES.len()).any(|k| self.in_example(k, |s, m| s.value(k, f, m).is_some_and(|v| v < 0), facts))
    }

    /// Whether a form is at least 0 in an example in which all facts hold.
    pub(super) fn is_witnessed(&mut self, f: &Form, facts: &[Form]) -> bool {
        (0..EXAMPLES.len()).any(|k| self.in_example(k, |s, m| s.value(k, f, m).is_some_and(|v| v >= 0), facts))
    }

    fn in_example(&mut self, k: usize, test: impl Fn(&Forms, &mut Memo) -> bool, facts: &[Form]) -> bool {
        let mut memo = std::mem::take(&mut self.examples[k]);
        let out = test(self, &mut memo) && self.hold(k, facts, &mut memo);
        self.examples[k] = memo;
        out
    }

    /// Whether facts hold in an example.
    pub(super) fn hold(&self, k: usize, facts: &[Form], memo: &mut Memo) -> bool {
        facts.iter().rev().all(|g| self.value(k, g, memo).is_some_and(|v| v >= 0))
    }

    /// What a form is in an example.
    pub(super) fn value(&self, k: usize, f: &Form, memo: &mut Memo) -> Option<i64> {
        let mut sum = f.offset();
        for (p, c) in f.terms() {
            let mut product = c;
            for a in self.factors(p) {
                product = product.checked_mul(self.atom_value(k, *a, memo)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    fn atom_value(&self, k: usize, a: u32, memo: &mut Memo) -> Option<i64> {
        let at = a as usize;
        if memo.len() <= at {
            memo.resize(at + 1, None);
        }
        if let Some(known) = memo[at] {
            return known;
        }
        let of = &EXAMPLES[k];
        let mut both = |x: &Form, y: &Form| self.value(k, x, memo).zip(self.value(k, y, memo));
        let value = match self.atom(a) {
            Atom::Any | Atom::Natural => Some(self.pinned(a).unwrap_or_else(|| {
                let size = of.sizes[(a >> of.bit & 1) as usize];
                if of.differ { size + 7 * i64::from(a) } else { size }
            })),
            Atom::Range(lo, hi) => {
                let last = match of.iteration {
                    Iteration::First => false,
                    Iteration::Last => true,
                    Iteration::Mixed => self.depends(hi),
                };
                self.value(k, if last { hi } else { lo }, memo)
            }
            Atom::Min(x, y) => both(x, y).map(|(x, y)| x.min(y)),
            Atom::Max(x, y) => both(x, y).map(|(x, y)| x.max(y)),
            Atom::Div(x, y) => both(x, y).and_then(|(x, y)| x.checked_div(y)),
            Atom::Cond(known, x, y) => {
                let holds = self.hold(k, &known[0], memo);
                self.value(k, if holds { x } else { y }, memo)
            }
        };
        memo[at] = Some(value);
        value
    }

    /// Whether a loop or a lane decides a form.
    fn depends(&self, f: &Form) -> bool {
        let mut all = std::collections::BTreeSet::new();
        self.reach(f, &mut all);
        all.into_iter().any(|a| matches!(self.atom(a), Atom::Range(..)))
    }
}
