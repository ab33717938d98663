//! Whether two iterations of a loop use one place of a buffer, one of them to write: proved, excluded, or neither.
//!
//! Two indices are written over the variables of two iterations. They differ where what is left of the difference is
//! nearer to 0 than a stride, so that all that is multiplied by the stride must be equal by itself, and one of these
//! parts grows from iteration to iteration. It must not know how the nest was made.

use super::example::{EXAMPLES, Iteration};
use super::form::{Atom, Form, Forms, Memo};
use super::value::{UNKNOWN, Values};
use super::{Buf, Loop, LoopKind};
use crate::affine::Linear;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Steps of a proof.
const FUEL: u32 = 80;
/// More pairs of accesses are not looked at.
const MAX_PAIRS: usize = 64;
/// Iterations that are so far apart are looked at where one reads what the other writes.
const MAX_APART: i64 = 4;

/// A condition on the way to an access that no fact says: the integers that it compares.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) about: BTreeSet<u32>,
}

/// An access in a loop whose iterations are to be independent.
pub(super) struct Access {
    pub(super) place: usize,
    pub(super) buf: Buf,
    pub(super) at: Form,
    pub(super) write: bool,
    pub(super) facts: Vec<Form>,
    pub(super) guards: Vec<Guard>,
    pub(super) loops: Vec<u32>,
}

/// A loop whose iterations are to be independent.
pub(super) struct Race<'v, 'a> {
    pub(super) values: &'v mut Values<'a>,
    atom: u32,
    /// First and last value of the variable.
    range: (Form, Form),
    overlap: bool,
}

impl<'v, 'a> Race<'v, 'a> {
    pub(super) fn new(values: &'v mut Values<'a>, l: &Loop, atom: u32) -> Race<'v, 'a> {
        let range = match values.forms.atom(atom) {
            Atom::Range(lo, hi) => (lo.clone(), hi.clone()),
            _ => (Linear::constant(0), Linear::constant(0)),
        };
        Race { values, atom, range, overlap: l.kind == LoopKind::Parallel { overlap: true } }
    }

    fn pairs<'x>(all: &'x [&'x Access]) -> impl Iterator<Item = (&'x Access, &'x Access)> {
        let each = all.iter().enumerate().filter(|(_, a)| a.write);
        each.flat_map(move |(k, w)| {
            all.iter().enumerate().filter(move |(j, a)| !a.write || *j >= k).map(move |(_, a)| (*w, *a))
        })
    }

    /// Whether two iterations use one place in an example.
    pub(super) fn is_proved(&mut self, all: &[&Access]) -> bool {
        let pairs: Vec<_> = Self::pairs(all).take(MAX_PAIRS).collect();
        pairs.into_iter().any(|(w, a)| self.meet(w, a) || w.at != a.at && self.meet(a, w))
    }

    /// Whether one access uses a place that another one uses in a later iteration, in an example.
    fn meet(&mut self, one: &Access, two: &Access) -> bool {
        let happens = (0..EXAMPLES.len()).any(|k| (1..=MAX_APART).any(|by| self.meet_in(k, one, two, by).is_some()));
        happens && [one, two].iter().all(|x| is_clear(&mut self.values.forms, &[&one.at, &two.at], &x.loops, &x.guards))
    }

    fn meet_in(&self, k: usize, one: &Access, two: &Access, by: i64) -> Option<()> {
        let forms = &self.values.forms;
        let mut memo = Memo::new();
        let (lo, hi) = (forms.value(k, &self.range.0, &mut memo)?, forms.value(k, &self.range.1, &mut memo)?);
        // The last two may overlap where that is allowed.
        let hi = if self.overlap { hi - 1 } else { hi };
        let (first, second) = if EXAMPLES[k].iteration == Iteration::Last { (hi - by, hi) } else { (lo, lo + by) };
        if first < lo || second > hi {
            return None;
        }
        let at = |i: i64, x: &Access| {
            let mut memo = Memo::new();
            memo.resize(self.atom as usize + 1, None);
            memo[self.atom as usize] = Some(Some(i));
            forms.value(k, &x.at, &mut memo).filter(|_| forms.hold(k, &x.facts, &mut memo))
        };
        (at(first, one)? == at(second, two)?).then_some(())
    }

    /// Whether no two iterations use one place.
    pub(super) fn is_excluded(&mut self, all: &[&Access]) -> bool {
        let mut n = 0;
        Self::pairs(all).all(|(w, a)| {
            n += 1;
            n <= MAX_PAIRS && self.apart(w, a) == Some(true)
        })
    }

    /// Whether two accesses of different iterations use different places.
    fn apart(&mut self, w: &Access, a: &Access) -> Option<bool> {
        let mark = self.values.forms.mark();
        let out = self.apart_within(w, a);
        self.values.forms.back(mark);
        out
    }

    fn apart_within(&mut self, w: &Access, a: &Access) -> Option<bool> {
        let (mut by, mut reached) = (FxHashMap::default(), BTreeSet::from([self.atom]));
        a.facts.iter().chain([&a.at]).for_each(|f| self.values.forms.reach(f, &mut reached));
        let lanes = self.values.lane_atoms();
        for b in reached.into_iter().filter(|b| *b >= self.atom || lanes.contains(b)) {
            let new = match self.values.forms.atom(b).clone() {
                Atom::Range(lo, hi) => {
                    let (lo, hi) =
                        (self.values.forms.substitute(&lo, &mut by)?, self.values.forms.substitute(&hi, &mut by)?);
                    self.values.forms.fresh(Atom::Range(lo, hi))
                }
                atom @ (Atom::Any | Atom::Natural) => self.values.forms.fresh(atom),
                Atom::Min(..) | Atom::Max(..) | Atom::Div(..) | Atom::Cond(..) => continue,
            };
            by.insert(b, new);
        }
        let there = self.values.forms.substitute(&a.at, &mut by)?;
        let d = w.at.plus(&there, -1)?;
        let here = self.values.forms.own(self.atom);
        let other = by.get(&self.atom)?.clone();
        let mut facts = w.facts.clone();
        for f in &a.facts {
            facts.push(self.values.forms.substitute(f, &mut by)?);
        }
        let outer = std::mem::replace(&mut self.values.facts, facts);
        let known = self.values.facts.len();
        let mut out = true;
        for (one, two) in [(&here, &other), (&other, &here)] {
            // The one comes first.
            self.values.facts.extend(two.plus(one, -1).and_then(|f| f.plus(&Linear::constant(1), -1)));
            if self.overlap {
                // And is not the last but one.
                self.values.facts.extend(self.range.1.plus(one, -1).and_then(|f| f.plus(&Linear::constant(2), -1)));
            }
            out = out && self.differs(&d, 4);
            self.values.facts.truncate(known);
        }
        self.values.facts = outer;
        Some(out)
    }

    /// Whether a difference is never 0.
    fn differs(&mut self, d: &Form, depth: u32) -> bool {
        let one = Linear::constant(1);
        for f in [d.plus(&one, -1), d.times(-1).and_then(|f| f.plus(&one, -1))].into_iter().flatten() {
            if self.values.holds(&f, FUEL) {
                return true;
            }
        }
        depth > 0 && self.by_stride(d, depth - 1)
    }

    /// Takes a difference apart: multiples of a stride, and what is nearer to 0 than that.
    fn by_stride(&mut self, d: &Form, depth: u32) -> bool {
        let mut strides: Vec<Form> = vec![];
        let parts = self.parts(d);
        for (_, by) in &parts {
            let by = if self.values.forms.is_natural(by) { by.clone() } else { by.times(-1).unwrap_or(by.clone()) };
            if by.as_constant() != Some(1) && !strides.contains(&by) {
                strides.push(by);
            }
        }
        for stride in strides {
            let Some((digits, rest)) = self.divided(&parts, d, &stride) else { continue };
            let Some(last) = stride.plus(&Linear::constant(1), -1) else { continue };
            let near = |s: &mut Self, times: i64| last.plus(&rest, times).is_some_and(|f| s.values.holds(&f, FUEL));
            if near(self, 1) && near(self, -1) && (self.differs(&digits, depth) || self.differs(&rest, depth)) {
                return true;
            }
        }
        false
    }

    /// The atoms of a form that belong to iterations, with their coefficients.
    fn parts(&mut self, d: &Form) -> Vec<(u32, Form)> {
        let lanes = self.values.lane_atoms();
        let own = |b: &u32| *b >= self.atom || lanes.contains(b);
        let mut atoms: Vec<u32> =
            d.terms().flat_map(|(p, _)| self.values.forms.factors(p).to_vec()).filter(own).collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms.into_iter().filter_map(|b| Some((b, self.values.forms.split(d, b)?.0))).collect()
    }

    /// What is multiplied by a stride, and the rest.
    fn divided(&mut self, parts: &[(u32, Form)], d: &Form, stride: &Form) -> Option<(Form, Form)> {
        let (mut digits, mut rest) = (Linear::constant(0), d.clone());
        for (b, by) in parts {
            let Some(k) = multiple(by, stride) else { continue };
            let atom = self.values.forms.own(*b);
            digits = digits.plus(&atom, k)?;
            rest = rest.plus(&self.values.forms.times(&atom, by)?, -1)?;
        }
        // Nothing was taken, or nothing left: that is no smaller question.
        (digits != Linear::constant(0) && digits != *d).then_some((digits, rest))
    }
}

/// How many times a form is another, where it is a number of times.
fn multiple(of: &Form, by: &Form) -> Option<i64> {
    let k = match (of.terms().next(), by.terms().next()) {
        (Some((_, a)), Some((_, b))) => a.checked_div(b)?,
        (None, None) => of.offset().checked_div(by.offset())?,
        _ => return None,
    };
    (k != 0 && by.times(k)? == *of).then_some(k)
}

/// Whether examples say all that decides forms in loops: atoms that may be anything, and no condition beyond facts.
pub(super) fn is_clear(forms: &mut Forms, all: &[&Form], loops: &[u32], guards: &[Guard]) -> bool {
    let mut reached = BTreeSet::new();
    all.iter().for_each(|f| forms.reach(f, &mut reached));
    for l in loops {
        let own = forms.own(*l);
        forms.reach(&own, &mut reached);
    }
    forms.is_chosen(&reached)
        && guards.iter().all(|g| {
            let unknown = g.about.contains(&UNKNOWN) && !reached.is_empty();
            !unknown && g.about.is_disjoint(&reached)
        })
}
