//! The rules that a command is about: shipped ones, those of files, and which of them were named.

use crate::data;
use crate::diag::{Diagnostic, Result, nearest};
use crate::rewrite::egraph::pattern::compile;
use crate::rules::{Library, Rule};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The shipped rules and those of files; all can be searched for.
pub(super) fn library(files: &[PathBuf]) -> Result<Library> {
    let mut library = Library::shipped()?;
    for file in files {
        library.extend(&data::source(file)?)?;
    }
    // A rule that the engine refuses is told here already.
    library.rules.iter().try_for_each(|r| compile(r).map(drop))?;
    Ok(library)
}

/// Rules, and those among them that are asked about.
pub(super) struct Chosen {
    pub(super) library: Library,
    pub(super) asked: BTreeSet<String>,
}

impl Chosen {
    /// The rules of files, or the shipped ones where there are no files; `all` asks about both. Of these the
    /// ones that are named, if any are.
    ///
    /// # Errors
    /// A file that cannot be read; a name that no rule has.
    pub(super) fn new(files: &[PathBuf], all: bool, names: &[String]) -> Result<Chosen> {
        let shipped = if all || files.is_empty() { 0 } else { Library::shipped()?.rules.len() };
        let library = library(files)?;
        let own: Vec<&str> = library.rules[shipped..].iter().map(|r| r.name.as_str()).collect();
        if let Some(name) = names.iter().find(|n| !own.contains(&n.as_str())) {
            let d = Diagnostic::user(format!("there is no rule `{name}`"));
            return Err(match library.rules.iter().any(|r| r.name == *name) {
                true => d.note("it is one of the shipped rules: `--all` checks them too"),
                false => d.hint(nearest(name, own)),
            });
        }
        if own.is_empty() {
            return Err(Diagnostic::user("there is no rule in these files").note("`--all` checks the shipped ones"));
        }
        let wanted = |name: &&str| names.is_empty() || names.iter().any(|n| n == name);
        let asked = own.into_iter().filter(wanted).map(str::to_string).collect();
        Ok(Chosen { library, asked })
    }

    /// The rules that are asked about, in order.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Rule> {
        self.library.rules.iter().filter(|r| self.asked.contains(&r.name))
    }

    /// The rules that are asked about alone.
    pub(super) fn alone(&self) -> Library {
        Library { rules: self.asked().cloned().collect(), files: self.library.files.clone() }
    }
}
