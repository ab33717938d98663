//! What a user lets the rules take for granted: conditions become weaker ones.
//!
//! Published algebras drop the conditions of division: `x/x` is 1 without asking. That is no rule here,
//! since at 0 it is wrong; but whoever knows that no divisor is 0 may say so. Then a rule takes the divisors
//! that its left side certainly evaluates for non-zero, and for nothing else: a division that an `if` guards,
//! or that stands in a loop, says nothing of where the guard does not hold or the loop does not run.

use super::{Condition, Library, Meta, Rule};
use crate::ir::{Head, Id, Op};

/// What may be assumed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Assume {
    /// No float is divided by 0.
    Nonzero,
}

impl Assume {
    /// Names and assumptions.
    pub const TABLE: [(&'static str, Assume); 1] = [("nonzero", Assume::Nonzero)];

    /// Its name on the command line and in derivations.
    pub fn name(self) -> &'static str {
        Assume::TABLE.iter().find(|(_, a)| *a == self).map_or("", |(n, _)| n)
    }

    /// The assumption of a name.
    pub fn named(name: &str) -> Option<Assume> {
        Assume::TABLE.iter().find(|(n, _)| *n == name).map(|(_, a)| *a)
    }

    /// What it says of results.
    pub fn says(self) -> &'static str {
        match self {
            Assume::Nonzero => "divisors are taken for non-zero: where one is 0, the result may differ",
        }
    }
}

impl Library {
    /// The rules under assumptions.
    pub fn assuming(&self, assume: &[Assume]) -> Library {
        let weaker = |r: &Rule| if assume.contains(&Assume::Nonzero) { weakened(r) } else { r.clone() };
        Library { rules: self.rules.iter().map(weaker).collect(), files: self.files.clone() }
    }
}

/// A rule that takes its divisors for non-zero.
fn weakened(rule: &Rule) -> Rule {
    let mut strict = Strict { rule, metas: vec![], divisors: vec![] };
    strict.walk(rule.sides.sides.0);
    let mut out = rule.clone();
    for (condition, of) in &mut out.when {
        *condition = match (*condition, of.as_slice()) {
            (Condition::Nonzero, [m]) if strict.divisors.contains(m) => Condition::Divisor,
            (Condition::Defined, [m]) if strict.metas.contains(m) => Condition::Valued,
            (other, _) => other,
        };
    }
    out
}

/// What is evaluated wherever the left side is.
struct Strict<'a> {
    rule: &'a Rule,
    metas: Vec<Meta>,
    divisors: Vec<Meta>,
}

impl Strict<'_> {
    fn meta(&self, id: Id) -> Option<Meta> {
        match self.rule.sides.terms.head(id) {
            Head::Var(i, _) => Some(Meta::Plain(self.rule.sides.params.len() - 1 - i as usize)),
            _ => None,
        }
    }

    fn walk(&mut self, id: Id) {
        let terms = &self.rule.sides.terms;
        self.metas.extend(self.meta(id));
        let (head, kids) = (terms.head(id), terms.kids(id));
        if head == Head::Op(Op::Div) && terms.ty(id).is_linear() {
            self.divides(kids[1]);
        }
        for (k, kid) in kids.iter().enumerate() {
            if head.binds(k, kids.len()) == 0 && (head != Head::If || k == 0) {
                self.walk(*kid);
            }
        }
    }

    /// What is not 0 where a divisor is not.
    fn divides(&mut self, id: Id) {
        let (terms, meta) = (&self.rule.sides.terms, self.meta(id));
        self.divisors.extend(meta);
        let kids = terms.kids(id);
        match terms.head(id) {
            Head::Op(Op::Mul) => kids.iter().for_each(|k| self.divides(*k)),
            Head::Op(Op::Div | Op::Neg | Op::Abs | Op::Sqrt) => self.divides(kids[0]),
            _ => {}
        }
    }
}
