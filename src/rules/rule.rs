//! A rule: two typed sides, what it keeps, and what it needs.

use crate::diag::Source;
use crate::ir::Ty;
use crate::types::RuleSides;
use std::fmt;
use std::sync::Arc;

/// What a rule keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The same bits, and no new failure.
    Exact,
    /// Equal over the real numbers, and no new failure.
    Real,
}

impl Level {
    /// The level of a name.
    pub fn named(name: &str) -> Option<Level> {
        [Level::Exact, Level::Real].into_iter().find(|l| l.to_string() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Exact => "exact",
            Level::Real => "real",
        })
    }
}

/// A fact that a rule needs. Where it is not known to hold, it does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The number is not 0.
    Nonzero,
    /// The number is greater than 0.
    Positive,
    /// The number is at least 0.
    Nonnegative,
    /// The first is at least 0 and less than the second.
    InRange,
    /// Evaluation cannot fail.
    Total,
    /// Evaluation cannot fail, and every operation in it has a value over the real numbers.
    Defined,
    /// The tensors have equal sizes.
    SameSize,
    /// The number is a divisor, and not known to be 0: where that is assumed, it is taken for non-zero.
    Divisor,
    /// As defined, where no divisor is 0.
    Valued,
}

impl Condition {
    /// Name, condition, and number of arguments. Conditions that only assumptions make are no words of rules.
    pub const TABLE: [(&'static str, Condition, usize); 7] = [
        ("nonzero", Condition::Nonzero, 1),
        ("positive", Condition::Positive, 1),
        ("nonnegative", Condition::Nonnegative, 1),
        ("in-range", Condition::InRange, 2),
        ("total", Condition::Total, 1),
        ("defined", Condition::Defined, 1),
        ("same-size", Condition::SameSize, 2),
    ];

    /// Its name; of one that an assumption made, that of the condition that it was.
    pub fn name(self) -> &'static str {
        let written = match self {
            Condition::Divisor => Condition::Nonzero,
            Condition::Valued => Condition::Defined,
            other => other,
        };
        Condition::TABLE.iter().find(|(_, c, _)| *c == written).map_or("", |(n, _, _)| n)
    }
}

/// A metavariable of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Meta {
    /// The k-th one that stands for a term outside all binders of the rule.
    Plain(usize),
    /// The k-th one that is applied to bound variables.
    Applied(usize),
}

/// A typed rule.
#[derive(Clone)]
pub struct Rule {
    /// Unique, in kebab case.
    pub name: String,
    /// What it keeps.
    pub level: Level,
    /// Rules of a later phase run only when the earlier ones have settled.
    pub phase: u32,
    /// Whether it makes every term smaller, so that it is taken wherever it fits, without a search.
    pub simplify: bool,
    /// Conditions on metavariables, all of which must hold.
    pub when: Vec<(Condition, Vec<Meta>)>,
    /// The two sides.
    pub sides: RuleSides,
    /// The rule as written.
    pub text: String,
    /// The file it stands in.
    pub source: Arc<Source>,
}

impl Rule {
    /// The name of a metavariable.
    pub fn meta_name(&self, meta: Meta) -> &str {
        match meta {
            Meta::Plain(k) => &self.sides.params[k].name,
            Meta::Applied(k) => &self.sides.funs[k].sig().name,
        }
    }

    /// The type of a metavariable: for an applied one that of its result.
    pub fn meta_ty(&self, meta: Meta) -> Ty {
        match meta {
            Meta::Plain(k) => self.sides.params[k].ty,
            Meta::Applied(k) => self.sides.funs[k].sig().ret,
        }
    }
}
