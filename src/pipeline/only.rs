//! The definitions, rules and moves that were asked for by name.

use super::options::Options;
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Def, Program};
use crate::rewrite::agent;
use crate::rules::{Library, Rule};
use crate::types;

/// Whether a rule or move is among those that were named.
pub fn names(only: &[String], name: &str, group: &str) -> bool {
    only.is_empty() || only.iter().any(|n| n == name || n == group)
}

/// The rules that were asked for.
pub struct Chosen<'a>(&'a [String]);

impl<'a> Chosen<'a> {
    /// # Errors
    /// A name that neither a rule nor a move nor a group of them has; rules of which none keeps what is asked.
    pub fn new(library: &Library, options: &'a Options<'_>) -> Result<Chosen<'a>> {
        let chosen = Chosen(&options.only);
        let moves = agent::bindings::NAMES.iter().copied().chain([agent::bindings::GROUP]);
        let rules = || library.rules.iter();
        for name in &options.only {
            if !rules().any(|r| r.name == *name || group(r) == name) && !moves.clone().any(|m| m == name) {
                let all = rules().flat_map(|r| [r.name.as_str(), group(r)]).chain(moves);
                let d = Diagnostic::user(format!("there is no rule and no group of rules `{name}`"));
                return Err(d.hint(nearest(name, all)).note("`daedal rules list` shows all; a file is a group"));
            }
        }
        let any = rules().any(|r| r.level <= options.float && chosen.rule(r));
        if !any && !options.only.iter().any(|name| moves.clone().any(|m| m == name)) && !options.only.is_empty() {
            let message =
                format!("none of these rules keeps what `{}` asks for: {}", options.float, options.only.join(", "));
            return Err(Diagnostic::user(message).note("choose other rules, or `--float real`"));
        }
        Ok(chosen)
    }

    /// Whether a rule is among them.
    pub fn rule(&self, rule: &Rule) -> bool {
        names(self.0, &rule.name, group(rule))
    }
}

/// The name of the file that a rule stands in, without its folder and ending.
fn group(rule: &Rule) -> &str {
    let name = rule.source.name.rsplit(['/', '\\']).next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// The definitions that were asked for by name; all that have a body where none is named.
///
/// # Errors
/// A name that no definition has.
pub fn chosen<'a>(program: &'a Program, names: &[String]) -> Result<Vec<&'a Def>> {
    let mut meant: Vec<&Def> = vec![];
    for name in names {
        let each = types::meant(program, name);
        if each.is_empty() {
            let hint = nearest(name, program.defs.values().map(Def::name));
            return Err(Diagnostic::user(format!("there is no definition `{name}`")).hint(hint));
        }
        meant.extend(each);
    }
    let wanted = |d: &&Def| d.term().is_some() && (names.is_empty() || meant.iter().any(|m| m.fun == d.fun));
    Ok(program.defs.values().filter(wanted).collect())
}
