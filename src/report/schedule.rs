//! A schedule that was found becomes one HTML page that loads nothing: its loops and picture, what the model counts of each
//! stage, how the search went, and which schedules lost, and why.

use super::frame::framed;
use super::plot::{Series, lines};
use super::text::{count, escape};
use crate::diag::Result;
use std::fmt::Write;

/// What the page is told.
#[derive(Clone, Debug, Default)]
pub struct Scheduled {
    /// The name of the definition.
    pub name: String,
    /// What is said first, in lines.
    pub about: Vec<String>,
    /// The steps as a file, and the loops that they make.
    pub text: (String, String),
    /// A drawing of them.
    pub picture: String,
    /// What the columns of the next table are.
    pub parts: Vec<String>,
    /// Stages with the seconds that the model expects of them, where it says that of single ones, and what it counts.
    pub stages: Vec<(String, Option<f64>, Vec<f64>)>,
    /// The least cost after so many schedules that were judged, each time that it fell.
    pub curve: Vec<(usize, f64)>,
    /// How many schedules were judged.
    pub judged: usize,
    /// All schedules that were tried, in order.
    pub tried: Vec<Tried>,
}

/// A schedule that was tried.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Its steps.
    pub steps: String,
    /// Seconds that the model expected.
    pub expected: f64,
    /// Seconds that were measured.
    pub measured: Option<f64>,
    /// What became of it.
    pub fate: String,
}

/// Points of the curve of a search.
const POINTS: usize = 100;

/// The page.
///
/// # Errors
/// A bug, where a plot cannot be drawn.
pub fn schedule(of: &Scheduled) -> Result<String> {
    let mut out = String::new();
    for line in &of.about {
        let _ = writeln!(out, "<p>{}</p>", escape(line));
    }
    let _ = writeln!(
        out,
        "<div class=\"sides\">\n<div><h3>steps</h3><pre>{}</pre></div>\n<div><h3>loops</h3><pre>{}</pre></div>\n</div>",
        escape(of.text.0.trim_end()),
        escape(of.text.1.trim_end())
    );
    // A drawing has a style of its own, and stands in a document of its own.
    let _ = writeln!(
        out,
        "<h2>Loops and memory</h2>\n<p><object type=\"image/svg+xml\" data=\"data:image/svg+xml;charset=utf-8,{}\"></object></p>",
        quoted(&of.picture)
    );
    out += &stages(of);
    out += &plots(of)?;
    out += &tried(of);
    Ok(framed(&format!("{}: a schedule", of.name), &out))
}

/// A text in an address: what is no letter or digit becomes the numbers of its bytes.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' | b';' | b'=' | b' ' | b',' => {
                out.push(char::from(b));
            }
            _ => drop(write!(out, "%{b:02X}")),
        }
    }
    out
}

fn stages(of: &Scheduled) -> String {
    let heads: String = of.parts.iter().map(|p| format!("<th class=\"n\">{}</th>", escape(p))).collect();
    let mut out = format!(
        "<h2>What the model counts</h2>\n<table>\n<tr><th>stage</th><th class=\"n\">expected</th>{heads}<th>share</th></tr>\n"
    );
    let all: f64 = of.stages.iter().filter_map(|(_, seconds, _)| *seconds).sum();
    for (name, seconds, counts) in &of.stages {
        let cells: String = counts.iter().map(|n| format!("<td class=\"n\">{}</td>", count(*n))).collect();
        let share = seconds.map_or(0.0, |s| 100.0 * s / all.max(f64::MIN_POSITIVE));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td>{cells}<td class=\"bar\"><i style=\"width:{share:.1}%\"></i></td></tr>",
            escape(name),
            seconds.map_or("–".to_string(), milliseconds)
        );
    }
    out + "</table>\n"
}

fn plots(of: &Scheduled) -> Result<String> {
    let mut out = String::new();
    if of.judged > 1 && !of.curve.is_empty() {
        let last = of.judged;
        let at = |k: usize| {
            let judged = 1 + k * (last - 1) / (POINTS - 1);
            of.curve.iter().take_while(|(n, _)| *n <= judged).last().map_or(f64::NAN, |(_, cost)| *cost)
        };
        let series = Series { name: String::new(), values: (0..POINTS).map(at).collect() };
        let across = format!("schedules judged, of {last} in hundredths");
        let _ = writeln!(out, "<div><h3>least cost in the search</h3>{}</div>", lines(&[series], &across, "cost")?);
    }
    let mut best = f64::INFINITY;
    let measured: Vec<f64> = of
        .tried
        .iter()
        .filter_map(|t| t.measured)
        .map(|s| {
            best = best.min(1e3 * s);
            best
        })
        .collect();
    if measured.len() > 1 {
        let series = Series { name: String::new(), values: measured };
        let _ =
            writeln!(out, "<div><h3>best time measured</h3>{}</div>", lines(&[series], "measurement", "milliseconds")?);
    }
    Ok(if out.is_empty() { out } else { format!("<h2>The search</h2>\n<div class=\"plots\">\n{out}</div>\n") })
}

fn tried(of: &Scheduled) -> String {
    let mut out = String::from(
        "<h2>Schedules that were tried</h2>\n<table>\n<tr><th>steps</th><th class=\"n\">expected</th><th class=\"n\">measured</th><th>what became of it</th></tr>\n",
    );
    for t in &of.tried {
        let lines = t.steps.lines().count();
        let _ = writeln!(
            out,
            "<tr><td><details><summary>{lines} steps</summary><pre>{}</pre></details></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(t.steps.trim_end()),
            milliseconds(t.expected),
            t.measured.map_or("–".to_string(), milliseconds),
            escape(&t.fate)
        );
    }
    out + "</table>\n"
}

fn milliseconds(seconds: f64) -> String {
    if seconds.is_finite() { format!("{:.3} ms", 1e3 * seconds) } else { "–".into() }
}
