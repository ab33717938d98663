//! Suite `roofline`: what this machine does at most, in a process of its own.

use super::suite::Table;
use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use crate::run::roofline::{Ceiling, Kind, measure};
use crate::run::{Toolchain, child};
use serde_json::{Value as Json, json};

/// Seconds after which it is given up.
const LIMIT: f64 = 120.0;

/// Measures here, where this is the process that is to do so, or else in another one.
pub fn table(here: bool, world: &World<'_>) -> Result<Table> {
    let rows = match world.program.as_deref().filter(|_| !here) {
        Some(daedal) => {
            let words = ["bench", "roofline", "--json", "--here"].map(Into::into);
            let stop = || world.interrupt.raised();
            let limits = child::Limits { seconds: LIMIT, bytes: u64::MAX, stop: &stop };
            let said = child::output(daedal, &words, &limits)?;
            let bad = |why: String| Diagnostic::user("this machine cannot be measured").note(why);
            let text = said.map_err(bad)?;
            let object: Json = serde_json::from_str(text.trim()).map_err(|e| bad(e.to_string()))?;
            serde_json::from_value(object["rows"].clone()).map_err(|e| bad(e.to_string()))?
        }
        None => {
            let tools = Toolchain::discover(world.cxx.clone(), world.cache.clone());
            measure(&tools, &Machine::host())?
        }
    };
    Ok(Table { lines: lines(&rows), rows: rows.iter().map(|c| json!(c)).collect() })
}

/// What the machine does at most, in a process of its own.
///
/// # Errors
/// As [`table`].
pub fn ceilings(world: &World<'_>) -> Result<Vec<Ceiling>> {
    let bad = |e: serde_json::Error| Diagnostic::bug(format!("what the machine does at most cannot be read: {e}"));
    table(false, world)?.rows.into_iter().map(|row| serde_json::from_value(row).map_err(bad)).collect()
}

/// Bytes for people.
fn bytes(n: u64) -> String {
    if n >= 1 << 20 { format!("{} MiB", n >> 20) } else { format!("{} KiB", n >> 10) }
}

fn lines(rows: &[Ceiling]) -> Vec<String> {
    let threads = rows.first().map_or(1, |c| c.threads);
    let mut out = vec![
        format!("| what | from | unit | one thread | all threads ({threads}) |"),
        "|---|---|---|---:|---:|".to_string(),
    ];
    out.extend(rows.iter().map(|c| {
        let (name, unit) = match c.kind {
            Kind::Fma => ("`fma`", "Gflop/s"),
            Kind::Copy => ("copy", "GB/s"),
            Kind::Triad => ("triad", "GB/s"),
        };
        let from = match (c.kind, c.of) {
            (Kind::Fma, bits) => format!("registers, {bits} bits"),
            (_, level @ 1..=3) => format!("L{level}, {}", bytes(c.bytes)),
            _ => format!("memory, {}", bytes(c.bytes)),
        };
        format!("| {name} | {from} | {unit} | {:.1} | {:.1} |", c.one, c.all)
    }));
    out
}
