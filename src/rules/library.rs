//! The rules that are shipped, and those of further files.

use super::narrow::narrowed;
use super::read;
use super::rule::Rule;
use crate::diag::{Diagnostic, Result, Source};
use std::sync::Arc;

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
        library.narrow()?;
        Ok(library)
    }

    /// Adds the rules of `Float` for `Float32`.
    fn narrow(&mut self) -> Result<()> {
        let mut found = vec![];
        for rule in &self.rules {
            if let Some(text) = narrowed(rule) {
                let read = read::rules(&Source::new(rule.source.name.clone(), text))?;
                found.extend(read.into_iter().map(|(rule, _)| rule));
            }
        }
        self.rules.extend(found);
        Ok(())
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
