//! What was found and measured becomes a table for each program.

use super::cases::Case;
use super::find::Finding;
use super::records::{Found, Records, Timed, Way};
use crate::cli::measuring::time;
use serde_json::{Value as Json, json};

/// All programs with what is known of them.
pub struct Page<'a, 'w> {
    /// The programs.
    pub cases: &'a [(&'a Case, Finding<'a, 'w>)],
    /// What is known.
    pub records: &'a Records,
    /// Schedules that an autotuned search measured.
    pub measurements: usize,
}

impl Page<'_, '_> {
    /// The page as Markdown.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![];
        for (case, finding) in self.cases {
            let sizes: Vec<String> = case.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
            out.push(format!("### `{}` of `{}`, {}", case.def, case.program.0, sizes.join(" ")));
            out.push(String::new());
            let timed = self.records.timed(&finding.key);
            let timed = timed.as_ref();
            if let Some(t) = timed {
                out.push(format!("The machine needs {} at least.", time(t.least)));
                out.push(String::new());
            }
            out.push(
                "| way | model expects | expanded | judged | search | measured | to default | of roofline |".into(),
            );
            out.push("|---|---:|---:|---:|---:|---:|---:|---:|".into());
            let found: Vec<(Way, &Found)> =
                Way::ALL.into_iter().filter_map(|way| Some((way, self.records.found(&finding.key, way)?))).collect();
            out.extend(
                found.iter().filter(|(_, f)| f.steps.is_some() || f.way == Way::Toy).map(|(_, f)| self.row(f, timed)),
            );
            out.push(String::new());
            out.extend(found.iter().flat_map(|(way, f)| notes(*way, f, self.measurements)));
        }
        out.extend(self.means());
        out
    }

    fn row(&self, f: &Found, timed: Option<&Timed>) -> String {
        let measured = timed.and_then(|t| t.of.get(&f.way));
        let seconds = measured.and_then(|m| m.clone().ok());
        let standard = timed.and_then(|t| t.of.get(&Way::Default)?.clone().ok());
        let cell = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let counted = |n: usize| if n == 0 { "–".to_string() } else { n.to_string() };
        let took = match measured {
            Some(Err(why)) => why.clone(),
            _ => cell(seconds.map(time)),
        };
        format!(
            "| {} | {} | {} | {} | {} | {took} | {} | {} |",
            f.way.name(self.measurements),
            cell(f.expected.map(time)),
            counted(f.expanded),
            counted(f.judged),
            if f.way == Way::Hand { "–".into() } else { time(f.seconds) },
            cell(seconds.zip(standard).map(|(own, of)| format!("{:.2}", own / of))),
            cell(seconds.zip(timed).map(|(own, t)| format!("{:.0}%", 100.0 * t.least / own))),
        )
    }

    /// Geometric means over programs of which a way has a time.
    fn means(&self) -> Vec<String> {
        let mut out = vec!["### All programs".to_string(), String::new()];
        out.push("Geometric means over the programs that a way has a schedule for: measured time to that of the default schedule, and the model's cost to that of beam 32.".into());
        out.push(String::new());
        out.push("| way | programs | measured, to default | model, to beam 32 | expanded, to beam 32 |".into());
        out.push("|---|---:|---:|---:|---:|".into());
        for way in Way::ALL {
            let (mut measured, mut expected, mut expanded) = (vec![], vec![], vec![]);
            for (_, finding) in self.cases {
                let timed = self.records.timed(&finding.key);
                let of = |way: Way| timed.as_ref()?.of.get(&way)?.clone().ok();
                measured.extend(of(way).zip(of(Way::Default)).map(|(a, b)| a / b));
                let found = |way: Way| self.records.found(&finding.key, way);
                expected.extend(
                    found(way)
                        .and_then(|f| f.expected)
                        .zip(found(Way::Beam32).and_then(|f| f.expected))
                        .map(|(a, b)| a / b),
                );
                let count = |f: &Found| (f.expanded > 0).then_some(f.expanded as f64);
                expanded.extend(found(way).and_then(count).zip(found(Way::Beam32).and_then(count)).map(|(a, b)| a / b));
            }
            if !measured.is_empty() {
                out.push(format!(
                    "| {} | {} | {} | {} | {} |",
                    way.name(self.measurements),
                    measured.len(),
                    mean(&measured),
                    mean(&expected),
                    mean(&expanded)
                ));
            }
        }
        out
    }

    /// The same as objects.
    pub fn objects(&self) -> Vec<Json> {
        let mut out = vec![];
        for (case, finding) in self.cases {
            let timed = self.records.timed(&finding.key);
            for f in Way::ALL.into_iter().filter_map(|way| self.records.found(&finding.key, way)) {
                let measured = timed.as_ref().and_then(|t| t.of.get(&f.way)?.clone().ok());
                out.push(json!({
                    "program": case.program.0, "def": case.def, "way": f.way, "expected": f.expected,
                    "published": f.published, "expanded": f.expanded, "judged": f.judged, "search_seconds": f.seconds,
                    "measured": measured, "least": timed.as_ref().map(|t| t.least),
                    "steps": f.steps.as_ref().map(|s| s.lines().collect::<Vec<_>>()),
                }));
            }
        }
        out
    }
}

/// What else there is to say of a way, in lines.
fn notes(way: Way, f: &Found, measurements: usize) -> Vec<String> {
    let mut out = vec![];
    let name = way.name(measurements);
    if let Some((cost, standard)) = f.published {
        out.push(format!("- {name}: published cost {cost:.4e}, with all inlined {standard:.4e}"));
    }
    if way == Way::Toy && f.steps.is_none() {
        out.push(format!("- {name}: no tree that was met can be said in our steps"));
    }
    out.extend(f.notes.iter().map(|n| format!("- {name}: {n}")));
    out.extend((!out.is_empty()).then(String::new));
    out
}

fn mean(of: &[f64]) -> String {
    match of {
        [] => "–".into(),
        _ => format!("{:.3}", (of.iter().map(|v| v.ln()).sum::<f64>() / of.len() as f64).exp()),
    }
}
