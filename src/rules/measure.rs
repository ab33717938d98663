//! A rule with the mark `:simplify` makes every term smaller; others are refused.
//!
//! The measure of a term is the number of its nodes, written out as a tree. A metavariable stands for the same term
//! wherever it stands, of one node at least. So where none stands on the right more often than on the left, every
//! instance loses at least as many nodes as the left side has more of than the right one, a metavariable counted as one:
//! this is a fact of the rule, and no instance has to be looked at. It must not know who takes such rules.

use super::{Meta, Rule};
use crate::ir::{Head, Id};
use std::collections::BTreeMap;

/// Why a rule does not simplify: which side is wrong, what is, and what would help.
pub struct Grows {
    /// Whether the right side is what is wrong; else the left one, or a condition.
    pub right: bool,
    /// What is wrong.
    pub what: String,
    /// What would help.
    pub hint: &'static str,
}

/// What a side is made of.
#[derive(Default)]
struct Side {
    /// Metavariables not counted.
    nodes: usize,
    metas: BTreeMap<Meta, usize>,
    binds: bool,
}

/// Whether a rule makes every term smaller.
///
/// # Errors
/// Why it may not.
pub fn simplifies(rule: &Rule) -> Result<(), Grows> {
    let refused = |right, what: String, hint| Err(Grows { right, what, hint });
    let (left, right) = (side(rule, rule.sides.sides.0), side(rule, rule.sides.sides.1));
    if left.binds || right.binds {
        let hint = "what looks under binders is searched for: leave the mark out";
        return refused(!left.binds, "a rule that simplifies binds no variables".into(), hint);
    }
    if !rule.when.is_empty() {
        let hint = "what has to be proved is searched for: leave the mark out";
        return refused(false, "a rule that simplifies has no conditions".into(), hint);
    }
    for (meta, n) in &right.metas {
        let before = left.metas.get(meta).copied().unwrap_or(0);
        if *n > before {
            let name = rule.meta_name(*meta);
            let what = format!("`{name}` stands on the right {n} times, and on the left {before}");
            return refused(true, what, "where it stands for a large term, the right side is the larger one");
        }
    }
    let [before, after] = [&left, &right].map(|side| side.nodes + side.metas.values().sum::<usize>());
    if after >= before {
        let what = format!("the right side has {after} nodes, and the left one {before}");
        return refused(true, what, "a metavariable counts as one node: it stands for as many on both sides");
    }
    Ok(())
}

/// The nodes of a side, by what they are.
fn side(rule: &Rule, root: Id) -> Side {
    let (sides, mut out) = (&rule.sides, Side::default());
    let mut todo = vec![(root, 0usize)];
    while let Some((id, depth)) = todo.pop() {
        let (head, kids) = (sides.terms.head(id), sides.terms.kids(id));
        let meta = match head {
            Head::Var(i, _) => (i as usize).checked_sub(depth).map(|i| Meta::Plain(sides.params.len() - 1 - i)),
            Head::Call(f) => sides.funs.iter().position(|g| *g == f).map(Meta::Applied),
            _ => None,
        };
        match meta {
            Some(meta) => *out.metas.entry(meta).or_default() += 1,
            None => out.nodes += 1,
        }
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, kids.len());
            out.binds |= binds > 0;
            todo.push((*kid, depth + binds));
        }
    }
    out
}
