//! `(rule "name" PARAMS LHS RHS :level L :when (C x) :phase N)` becomes a [`Rule`].

use super::measure::{Grows, simplifies};
use super::{Condition, Level, Meta, Rule};
use crate::diag::{Diagnostic, Result, Source, Span, nearest};
use crate::ir::read::{Atom, Form, Tree, read};
use crate::ir::{Head, Id, Lit, Scalar};
use crate::types::{RuleSides, rule};
use std::sync::Arc;

/// Reads all rules of a text, with the place of each one's name. Other declarations are passed over,
/// so that a program may carry rules.
pub fn rules(source: &Arc<Source>) -> Result<Vec<(Rule, Span)>> {
    let tree = read(&source.text).map_err(|d| d.within(source))?;
    let (mut out, mut errors) = (vec![], vec![]);
    for at in &tree.top {
        match tree.headed(*at, "rule") {
            Some(parts) => match one(&tree, source, *at, parts) {
                Ok(rule) => out.push((rule, tree.at(parts[0]).span)),
                Err(d) => errors.push(*d),
            },
            None if ["def", "edef", "gdef"].iter().any(|d| tree.headed(*at, d).is_some()) => {}
            None => {
                let label = "such as `(rule \"name\" ((a : Float)) LHS RHS)`";
                errors.push(*Diagnostic::user("expected a rule").at(tree.at(*at).span, label));
            }
        }
    }
    match Diagnostic::all(errors) {
        None => Ok(out),
        Some(d) => Err(d.within(source)),
    }
}

fn error(tree: &Tree, at: usize, message: &str, label: &str) -> Box<Diagnostic> {
    Diagnostic::user(message).at(tree.at(at).span, label)
}

fn one(tree: &Tree, source: &Arc<Source>, at: usize, parts: &[usize]) -> Result<Rule> {
    let [name, params, lhs, rhs, attributes @ ..] = parts else {
        return Err(error(tree, at, "expected `(rule \"name\" PARAMS LHS RHS)`", "parts are missing"));
    };
    let Form::Atom(Atom::Text(title)) = &tree.at(*name).form else {
        return Err(error(tree, *name, "expected the name of the rule", "a text in quotes"));
    };
    let sides = rule(tree, source, *params, (*lhs, *rhs))?;
    let span = tree.at(at).span;
    let text = source.text[span.start as usize..span.end as usize].to_string();
    let (level, phase, simplify, when) = (Level::Real, 1, false, vec![]);
    let mut rule = Rule { name: title.clone(), level, phase, simplify, when, sides, text, source: source.clone() };
    attributes_of(tree, attributes, &mut rule)?;
    check_variables(tree, *rhs, &rule)?;
    if rule.simplify
        && let Err(Grows { right, what, hint }) = simplifies(&rule)
    {
        let message = format!("the rule `{title}` does not make every term smaller");
        return Err(error(tree, if right { *rhs } else { *lhs }, &message, &what).hint(Some(hint.into())));
    }
    Ok(rule)
}

fn attributes_of(tree: &Tree, attributes: &[usize], rule: &mut Rule) -> Result<()> {
    let mut rest = attributes;
    while let [key, after @ ..] = rest {
        if tree.name(*key) == Some(":simplify") {
            rule.simplify = true;
            rest = after;
            continue;
        }
        let [value, after @ ..] = after else {
            let hint = "attributes come in pairs, but for `:simplify`; a second condition has a `:when` of its own";
            return Err(error(tree, *key, "an attribute without a value", hint));
        };
        rest = after;
        match tree.name(*key) {
            Some(":level") => match tree.name(*value).and_then(Level::named) {
                Some(level) => rule.level = level,
                None => return Err(error(tree, *value, "unknown level", "expected `exact` or `real`")),
            },
            Some(":phase") => match tree.at(*value).form {
                Form::Atom(Atom::Number(Lit::Int(Scalar::I64, n @ 1..=9))) => rule.phase = n as u32,
                _ => return Err(error(tree, *value, "expected a phase", "a number from 1 to 9")),
            },
            Some(":when") => {
                let condition = condition(tree, *value, rule)?;
                rule.when.push(condition);
            }
            _ => {
                let label = "expected `:level`, `:when`, `:phase` or `:simplify`";
                return Err(error(tree, *key, "unknown attribute", label));
            }
        }
    }
    Ok(())
}

fn condition(tree: &Tree, at: usize, rule: &Rule) -> Result<(Condition, Vec<Meta>)> {
    let kids = tree.list(at).unwrap_or_default();
    let Some(name) = kids.first().and_then(|k| tree.name(*k)) else {
        return Err(error(tree, at, "expected a condition", "such as `(nonzero x)`"));
    };
    let Some((_, condition, arity)) = Condition::TABLE.into_iter().find(|(n, _, _)| *n == name) else {
        let hint = nearest(name, Condition::TABLE.map(|(n, _, _)| n));
        return Err(error(tree, kids[0], &format!("unknown condition `{name}`"), "here").hint(hint));
    };
    if kids.len() != arity + 1 {
        let label = format!("expected {arity} arguments, found {}", kids.len() - 1);
        return Err(error(tree, at, &format!("wrong number of arguments of `{name}`"), &label));
    }
    let meta = |k: &usize| {
        let name = tree.name(*k).unwrap_or_default();
        let plain = rule.sides.params.iter().position(|p| p.name == name).map(Meta::Plain);
        let applied = || rule.sides.funs.iter().position(|f| f.sig().name == name).map(Meta::Applied);
        plain.or_else(applied).ok_or_else(|| error(tree, *k, "a condition speaks of metavariables", "this is none"))
    };
    Ok((condition, kids[1..].iter().map(meta).collect::<Result<_>>()?))
}

/// Every metavariable of the right side and of the conditions must stand on the left.
fn check_variables(tree: &Tree, rhs: usize, rule: &Rule) -> Result<()> {
    let (left, right) = (metas(&rule.sides, rule.sides.sides.0), metas(&rule.sides, rule.sides.sides.1));
    let conditions = rule.when.iter().flat_map(|(_, metas)| metas).copied();
    for meta in right.into_iter().chain(conditions) {
        if !left.contains(&meta) {
            let name = match meta {
                Meta::Plain(k) => &rule.sides.params[k].name,
                Meta::Applied(k) => &rule.sides.funs[k].sig().name,
            };
            let message = format!("the metavariable `{name}` is unbound: it does not stand on the left side");
            return Err(error(tree, rhs, &message, "used here or in a condition"));
        }
    }
    Ok(())
}

/// The metavariables of a side.
fn metas(sides: &RuleSides, root: Id) -> Vec<Meta> {
    let mut out = vec![];
    let mut todo = vec![(root, 0usize)];
    while let Some((id, depth)) = todo.pop() {
        let (head, kids) = (sides.terms.head(id), sides.terms.kids(id));
        match head {
            Head::Var(i, _) if i as usize >= depth => {
                out.push(Meta::Plain(sides.params.len() - 1 - (i as usize - depth)));
            }
            Head::Call(f) => out.extend(sides.funs.iter().position(|g| *g == f).map(Meta::Applied)),
            _ => {}
        }
        todo.extend(kids.iter().enumerate().map(|(k, kid)| (*kid, depth + head.binds(k, kids.len()))));
    }
    out
}
