//! Schedules as text: one step a line, words between spaces, comments from `;` to the end of the line.
//!
//! ```text
//! split product j 64            ; jo, ji
//! reorder product jo i k ji
//! vectorize product ji
//! cache-read product b at jo as panel
//! ```
//!
//! What a step is called and which words it has is said once, in [`Step::read`] and its printing; both are tested to be
//! inverse.

use super::plan::{Kind, Schedule};
use super::step::Step;
use crate::diag::{Diagnostic, Result, Source, Span, nearest};
use crate::stage::{Graph, Order};
use std::fmt;
use std::sync::Arc;

/// The steps by name, with their words.
const STEPS: &[(&str, &str)] = &[
    ("compute-root", "STAGE"),
    ("compute-at", "STAGE READER LOOP"),
    ("store-at", "STAGE READER LOOP"),
    ("inline", "STAGE"),
    ("split", "STAGE LOOP FACTOR"),
    ("strip", "STATE LOOP FACTOR"),
    ("fuse", "STAGE LOOP LOOP"),
    ("fuse-stages", "STAGE HOST LOOP"),
    ("if-convert", "STAGE"),
    ("contract", "STAGE"),
    ("reassociate", "STAGE strided LANES` or `reassociate STAGE blocks ITERATIONS"),
    ("reorder", "STAGE LOOP LOOP…"),
    ("layout", "STAGE AXIS AXIS…"),
    ("serial", "STAGE LOOP"),
    ("parallel", "STAGE LOOP"),
    ("vectorize", "STAGE LOOP"),
    ("unroll", "STAGE LOOP"),
    ("cache-read", "STAGE SOURCE at LOOP as NAME"),
    ("cache-read", "STAGE SOURCE at LOOP as NAME by AXIS AXIS…"),
];

impl Step {
    /// The step of a line of words.
    ///
    /// # Errors
    /// The words that the step should have.
    pub fn read(words: &[&str]) -> std::result::Result<Step, String> {
        let Some((name, rest)) = words.split_first() else { return Err("a step".into()) };
        let word = |k: usize| rest.get(k).map_or_else(String::new, ToString::to_string);
        let kind = |kind| Step::Run { stage: word(0), of: word(1), kind };
        let step = match (*name, rest) {
            ("compute-root", [_]) => Step::ComputeRoot { stage: word(0) },
            ("compute-at", [_, _, _]) => Step::ComputeAt { stage: word(0), reader: word(1), at: word(2) },
            ("store-at", [_, _, _]) => Step::StoreAt { stage: word(0), reader: word(1), at: word(2) },
            ("inline", [_]) => Step::Inline { stage: word(0) },
            ("split", [_, _, factor]) => match factor.parse() {
                Ok(factor) => Step::Split { stage: word(0), of: word(1), factor },
                Err(_) => return Err(format!("a number of iterations in place of `{factor}`")),
            },
            ("strip", [_, _, factor]) => match factor.parse() {
                Ok(factor) => Step::Strip { stage: word(0), of: word(1), factor },
                Err(_) => return Err(format!("a number of indices in place of `{factor}`")),
            },
            ("fuse", [_, _, _]) => Step::Fuse { stage: word(0), outer: word(1), inner: word(2) },
            ("fuse-stages", [_, _, _]) => Step::FuseStages { stage: word(0), host: word(1), at: word(2) },
            ("if-convert", [_]) => Step::IfConvert { stage: word(0) },
            ("contract", [_]) => Step::Contract { stage: word(0) },
            ("reassociate", [_, how @ ("strided" | "blocks"), n]) => {
                let n = n.parse().map_err(|_| format!("a number in place of `{n}`"))?;
                let order = if *how == "strided" { Order::Strided(n) } else { Order::Blocks(n) };
                Step::Reassociate { stage: word(0), order }
            }
            ("reorder", [_, _, _, ..]) => {
                Step::Reorder { stage: word(0), order: rest[1..].iter().map(ToString::to_string).collect() }
            }
            ("layout", [_, _, _, ..]) => {
                Step::Layout { stage: word(0), order: rest[1..].iter().map(ToString::to_string).collect() }
            }
            ("serial", [_, _]) => kind(Kind::Serial),
            ("parallel", [_, _]) => kind(Kind::Parallel),
            ("vectorize", [_, _]) => kind(Kind::Vector),
            ("unroll", [_, _]) => kind(Kind::Unrolled),
            ("cache-read", [_, _, "at", _, "as", _, by @ ..]) if matches!(by, [] | ["by", _, ..]) => {
                let axes =
                    by.iter().skip(1).map(|a| a.parse().map_err(|_| format!("the number of an axis, not `{a}`")));
                let axes = axes.collect::<std::result::Result<_, _>>()?;
                Step::CacheRead { stage: word(0), source: word(1), at: word(3), name: word(5), axes }
            }
            _ => {
                return Err(match STEPS.iter().rfind(|(n, _)| n == name) {
                    Some((n, words)) => format!("`{n} {words}`"),
                    None => {
                        let mut known: Vec<&str> = STEPS.iter().map(|(n, _)| *n).collect();
                        known.dedup();
                        let known = known.into_iter();
                        let meant = nearest(name, known.clone()).map(|hint| format!("; {hint}"));
                        let known: Vec<String> = known.map(|n| format!("`{n}`")).collect();
                        format!("a step, one of {}{}", known.join(", "), meant.unwrap_or_default())
                    }
                });
            }
        };
        Ok(step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::ComputeRoot { stage } => write!(f, "compute-root {stage}"),
            Step::ComputeAt { stage, reader, at } => write!(f, "compute-at {stage} {reader} {at}"),
            Step::StoreAt { stage, reader, at } => write!(f, "store-at {stage} {reader} {at}"),
            Step::Inline { stage } => write!(f, "inline {stage}"),
            Step::Split { stage, of, factor } => write!(f, "split {stage} {of} {factor}"),
            Step::Strip { stage, of, factor } => write!(f, "strip {stage} {of} {factor}"),
            Step::Fuse { stage, outer, inner } => write!(f, "fuse {stage} {outer} {inner}"),
            Step::FuseStages { stage, host, at } => write!(f, "fuse-stages {stage} {host} {at}"),
            Step::IfConvert { stage } => write!(f, "if-convert {stage}"),
            Step::Contract { stage } => write!(f, "contract {stage}"),
            Step::Reassociate { stage, order } => write!(f, "reassociate {stage} {order}"),
            Step::Reorder { stage, order } => write!(f, "reorder {stage} {}", order.join(" ")),
            Step::Layout { stage, order } => write!(f, "layout {stage} {}", order.join(" ")),
            Step::Run { stage, of, kind } => {
                let name = match kind {
                    Kind::Serial => "serial",
                    Kind::Parallel => "parallel",
                    Kind::Vector => "vectorize",
                    Kind::Unrolled => "unroll",
                };
                write!(f, "{name} {stage} {of}")
            }
            Step::CacheRead { stage, source, at, name, axes } => {
                write!(f, "cache-read {stage} {source} at {at} as {name}")?;
                f.write_str(if axes.is_empty() { "" } else { " by" })?;
                axes.iter().try_for_each(|a| write!(f, " {a}"))
            }
        }
    }
}

/// The steps of a text, with their places.
///
/// # Errors
/// The first line that is no step, with what was expected.
pub fn read(source: &Source) -> Result<Vec<(Step, Span)>> {
    let (mut out, mut at) = (vec![], 0);
    for line in source.text.split_inclusive('\n') {
        let code = line.split(';').next().unwrap_or_default().trim_end();
        let start = at + (code.len() - code.trim_start().len());
        let span = Span::new(start, at + code.len());
        at += line.len();
        let words: Vec<&str> = code.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        match Step::read(&words) {
            Ok(step) => out.push((step, span)),
            Err(expected) => {
                return Err(Diagnostic::user(format!("expected {expected}")).at(span, "here"));
            }
        }
    }
    Ok(out)
}

/// A schedule after the steps of a text.
///
/// # Errors
/// A line that is no step, or the first step that is refused, with its place and the reason.
pub fn apply(schedule: Schedule, source: &Arc<Source>) -> Result<Schedule> {
    let steps = read(source).map_err(|d| d.within(source))?;
    taken(schedule, &steps, source)
}

/// The schedule of a text for stated sizes alone. What it contracts it contracts for all sizes, before numbers are known that
/// would be computed at once: so the bits are those of the same text for all sizes.
///
/// # Errors
/// As [`apply`].
pub fn apply_for(graph: Graph, incoming: &[f64], source: &Arc<Source>) -> Result<Schedule> {
    let steps = read(source).map_err(|d| d.within(source))?;
    let first = steps.iter().take_while(|(step, _)| matches!(step, Step::Contract { .. })).count();
    let contracted = taken(Schedule::new(graph), &steps[..first], source)?;
    taken(contracted.only_for(incoming), &steps[first..], source)
}

fn taken(mut schedule: Schedule, steps: &[(Step, Span)], source: &Arc<Source>) -> Result<Schedule> {
    for (step, span) in steps {
        step.apply(&mut schedule)
            .map_err(|why| Diagnostic::user(format!("this step is refused: {why}")).at(*span, "here").within(source))?;
    }
    Ok(schedule)
}
