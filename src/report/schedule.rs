//! A schedule that was found becomes one HTML page that loads nothing: its loops and picture, how long each stage takes beside
//! what the machine could do, what the model counts of it, how the search went, and which schedules lost, and why.

use super::frame::framed;
use super::plot::{Series, lines};
use super::text::{count, escape};
use crate::diag::Result;
use std::fmt::Write;

/// What the page is told.
#[derive(Clone, Debug)]
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
    /// The stages.
    pub stages: Vec<Row>,
    /// The seconds of a call with timers; or why nothing was timed.
    pub timed: std::result::Result<f64, String>,
    /// Bytes from memory and operations of 64 bits a second that the machine is capable of, where that is known.
    pub ceilings: Option<[f64; 2]>,
    /// The least cost after so many schedules that were judged, each time that it fell.
    pub curve: Vec<(usize, f64)>,
    /// How many schedules were judged.
    pub judged: usize,
    /// All schedules that were tried, in order.
    pub tried: Vec<Tried>,
}

/// A stage.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its name; nothing for what belongs to none.
    pub name: String,
    /// The seconds that the model expects of it, where it says that of single ones.
    pub expected: Option<f64>,
    /// What it counts.
    pub counts: Vec<f64>,
    /// Seconds of all threads that were measured, and how often its loops begin.
    pub measured: Option<(f64, f64)>,
    /// Operations, of which two of 32 bits count as one of 64.
    pub operations: f64,
    /// Bytes that move between the last cache and memory.
    pub bytes: f64,
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
    out += &timed(of);
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

/// How long each stage takes, beside what the machine could do.
fn timed(of: &Scheduled) -> String {
    let mut out = String::from("<h2>Time by stage</h2>\n");
    let all: f64 = of.stages.iter().filter_map(|s| s.measured).map(|(seconds, _)| seconds).sum();
    let _ = match &of.timed {
        Err(why) => writeln!(out, "<p>Nothing was timed: {}</p>", escape(why)),
        Ok(seconds) => writeln!(
            out,
            "<p>Measured by timers around the loops of each stage, which count for the innermost one: {} of all threads together, waiting included, in a call of {}. What is computed where it is read is part of what reads it. Timers that begin often cost time themselves.</p>",
            milliseconds(all),
            milliseconds(*seconds)
        ),
    };
    if let Some([bytes, operations]) = of.ceilings {
        let _ = writeln!(
            out,
            "<p>The machine moves {:.1} GB a second between memory and processors, and does {:.1} billion operations of 64 bits; <i>at least</i> is the time of the longer of both, on all threads at once.</p>",
            bytes / 1e9,
            operations / 1e9
        );
    }
    out += "<table>\n<tr><th>stage</th><th class=\"n\">measured</th><th>share</th><th class=\"n\">begins</th><th class=\"n\">operations</th><th class=\"n\">bytes from memory</th><th class=\"n\">operations a byte</th><th class=\"n\">at least</th><th>bound by</th></tr>\n";
    for s in of.stages.iter().filter(|s| s.operations + s.bytes > 0.0 || s.measured.is_some_and(|(_, n)| n > 0.0)) {
        let share = s.measured.map_or(0.0, |(seconds, _)| 100.0 * seconds / all.max(f64::MIN_POSITIVE));
        let least = of.ceilings.map(|[b, o]| (s.bytes / b, s.operations / o));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"bar\"><i style=\"width:{share:.1}%\"></i></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(if s.name.is_empty() { "none" } else { &s.name }),
            s.measured.map_or("–".to_string(), |(seconds, _)| milliseconds(seconds)),
            s.measured.map_or("–".to_string(), |(_, times)| count(times)),
            count(s.operations),
            count(s.bytes),
            if s.bytes > 0.0 { format!("{:.2}", s.operations / s.bytes) } else { "–".into() },
            least.map_or("–".to_string(), |(a, b)| milliseconds(a.max(b))),
            least.map_or("–", |(a, b)| if a > b { "memory" } else { "operations" })
        );
    }
    out + "</table>\n"
}

fn stages(of: &Scheduled) -> String {
    let heads: String = of.parts.iter().map(|p| format!("<th class=\"n\">{}</th>", escape(p))).collect();
    let mut out = format!(
        "<h2>What the model counts</h2>\n<table>\n<tr><th>stage</th><th class=\"n\">expected</th>{heads}<th>share</th></tr>\n"
    );
    let all: f64 = of.stages.iter().filter_map(|s| s.expected).sum();
    for Row { name, expected: seconds, counts, .. } in &of.stages {
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
