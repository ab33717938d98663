//! `daedal optimize --explain`: derivations become text for a person.

use crate::derive::bodies::LETS;
use crate::derive::lemma::Statement;
use crate::derive::{Derivation, Place, Step};
use crate::ir::{Body, Def, Id, Terms, print};
use crate::pipeline::{Derived, Row};
use crate::rewrite::explain::Unproved;

/// Programs of more lines are not shown after each step, only the part that changed.
const SHORT: usize = 14;

/// The lines about one definition: each step with its rule, the running cost, the part that changed
/// before and after, and the program that follows where that is short. A colour marks what is gone
/// and what is new.
pub fn lines(derived: &Derived, def: &Def, colour: bool) -> Vec<String> {
    let d = &derived.derivation;
    let mut out =
        vec![format!("{}: {} steps, cost {:.1} to {:.1}", d.name, d.steps.len(), d.cost_before, d.cost_after)];
    d.lemmas.iter().for_each(|statement| lemma(&mut out, statement, colour));
    let shown = |out: &mut Vec<String>, k: usize| {
        derived.programs.get(k).into_iter().flatten().for_each(|p| program(out, def, p));
    };
    if !d.steps.is_empty() {
        out.push(format!("   0  {:>12}  {}", said(d.start), beginning(d)));
        shown(&mut out, 0);
    }
    for (k, step) in d.steps.iter().enumerate() {
        out.push(format!("{:>4}  {:>12}  {}", k + 1, said(step.cost), title(d, step)));
        if let Some((before, after)) = derived.changes.get(k) {
            marked(&mut out, "-", before, colour.then_some("31"));
            marked(&mut out, "+", after, colour.then_some("32"));
        }
        shown(&mut out, k + 1);
    }
    if !d.steps.is_empty() && !d.bodies {
        out.push(format!(
            "      {:>12.1}  share: what is computed more than once, or the same in each round, gets a name",
            d.cost_after
        ));
    }
    out.extend(d.result.lines().map(|l| format!("        {l}")));
    out.push(String::new());
    out
}

/// The cost of a program on the way.
fn said(cost: f64) -> String {
    if cost.is_nan() { "…".to_string() } else { format!("{cost:.1}") }
}

/// What was found for a definition and is not used, because it has no derivation: both costs, and why.
pub fn unproved(row: &Row) -> Option<String> {
    let Unproved { cost, why } = row.unproved.as_ref()?;
    let why = why.lines().next().unwrap_or_default();
    Some(format!("{}: {cost:.1} was found, {:.1} has a derivation: {why}", row.name, row.cost_after))
}

/// What the steps begin with, in words.
pub fn beginning(d: &Derivation) -> &'static str {
    match d.bodies {
        true => "the body as it is, with its lets",
        false => "unfold: what lets name is put in their places, and calls are done",
    }
}

/// A lemma: what is taken for granted, both sides where they are short, and its steps.
fn lemma(out: &mut Vec<String>, lemma: &Statement, colour: bool) {
    let Statement { name, params, given, below, defined, steps, start, cost, .. } = lemma;
    let params: Vec<String> = params.iter().map(|(name, ty)| format!("({name} : {ty})")).collect();
    let equal = given.iter().map(|(a, b)| format!("{a} is {b}"));
    let inside = below.iter().map(|(a, b)| format!("{a} is an index below {b}"));
    let real = defined.iter().map(|name| format!("{name} is real"));
    let needs: Vec<String> = equal.chain(inside).chain(real).collect();
    let needs = if needs.is_empty() { String::new() } else { format!(", where {}", needs.join(" and ")) };
    let start = said(*start);
    out.push(format!("  {name}: {} steps, cost {start} to {cost:.1}, for {}{needs}", steps.len(), params.join(" ")));
    let short = |text: &str| if text.lines().count() > SHORT { "…".to_string() } else { text.to_string() };
    marked(out, "-", &short(&lemma.left), colour.then_some("31"));
    marked(out, "+", &short(&lemma.right), colour.then_some("32"));
    for (k, step) in steps.iter().enumerate() {
        out.push(format!("{:>8}  {:>12}  {}", k + 1, said(step.cost), taken(step)));
    }
}

/// A step of a derivation in words.
pub fn title(d: &Derivation, step: &Step) -> String {
    match (d.bodies, &step.to) {
        (true, _) if step.by == LETS => "lets: they stand elsewhere".to_string(),
        (true, Some(variables)) => format!("{}, of {variables}", step.by),
        _ => taken(step),
    }
}

/// A step between flat terms in words.
fn taken(step: &Step) -> String {
    let direction = if step.to.is_some() { ", from right to left" } else { "" };
    let places = match (step.place, step.at.len()) {
        (Place::Everywhere, _) => ", wherever it stands".to_string(),
        (Place::Within(_), _) => ", wherever it stands in parts of one kind".to_string(),
        (Place::Here, 1) => String::new(),
        (Place::Here, n) => format!(", at {n} places"),
    };
    format!("{}{direction}{places}", step.by)
}

fn marked(out: &mut Vec<String>, mark: &str, text: &str, colour: Option<&str>) {
    out.extend(text.lines().map(|line| match colour {
        Some(colour) => format!("      \x1b[{colour}m{mark} {line}\x1b[0m"),
        None => format!("      {mark} {line}"),
    }));
}

fn program(out: &mut Vec<String>, def: &Def, (terms, body): &(Terms, Id)) {
    let text = print::def(terms, &Def { body: Body::Term(*body), ..def.clone() });
    if text.lines().count() <= SHORT {
        out.extend(text.lines().map(|l| format!("        {l}")));
    }
}
