//! Rewrite rules: text files become typed rules. What matches and applies them is in `rewrite`.
//!
//! Invariant: both sides of a rule have one type, the right side uses no metavariable that the
//! left does not bind, and every condition is in the table.

pub mod assume;
pub mod check;
mod read;

use crate::diag::{Diagnostic, Result, Source};
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

/// Rules in order, with unique names.
#[derive(Default)]
pub struct Library {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The files that were added to the shipped ones.
    pub files: Vec<Arc<Source>>,
}

macro_rules! shipped {
    ($($file:literal),*) => {
        [$(($file, include_str!(concat!("../../rules/", $file)))),*]
    };
}

impl Library {
    /// The rules that come with the program.
    ///
    /// # Errors
    /// A shipped file is wrong: a bug that the tests find.
    pub fn shipped() -> Result<Library> {
        let files = shipped!(
            "arith.rules",
            "logic.rules",
            "transcendental.rules",
            "tuple.rules",
            "array.rules",
            "sum.rules",
            "fold.rules",
            "let.rules"
        );
        let mut library = Library::default();
        for (name, text) in files {
            library.extend(&Source::new(format!("rules/{name}"), text))?;
        }
        library.files.clear();
        Ok(library)
    }

    /// Adds the rules of a file.
    ///
    /// # Errors
    /// Everything that is wrong with the text; a name that is taken; no rules at all.
    pub fn extend(&mut self, source: &Arc<Source>) -> Result<()> {
        let rules = read::rules(source)?;
        if rules.is_empty() {
            let d = Diagnostic::user(format!("`{}` has no rules", source.name));
            return Err(d.note("a rule is `(rule \"name\" ((x : Float)) LEFT RIGHT)`"));
        }
        for (rule, span) in rules {
            if let Some(other) = self.rules.iter().find(|r| r.name == rule.name) {
                let message = format!("two rules are called `{}`", rule.name);
                return Err(Diagnostic::user(message)
                    .at(span, "again here")
                    .note(format!("the first is in {}", other.source.name))
                    .within(source));
            }
            self.rules.push(rule);
        }
        self.files.push(Arc::clone(source));
        Ok(())
    }
}
