//! Suite `mb2fbs`: random trees searched with mixtures of pushing forward and onward, beside what a
//! replication of the published study measured.

use super::suite::{Table, Watching};
use crate::diag::Result;
use crate::search::synthetic::{PathCost, Tree};
use crate::search::{Limits, Mb2fbs, mb2fbs};
use rayon::prelude::*;
use serde_json::json;

/// Trees that are searched with each setting.
const TREES: u64 = 100;

/// β2 and β1; accuracy and expansions, uncontrolled and controlled, as an independent replication of
/// the study measured them on 100 trees of its own (the study itself used 10).
const KNOWN: [(usize, usize, [f64; 4]); 7] = [
    (0, 256, [0.948, 1109.0, 0.948, 1109.0]),
    (2, 254, [0.952, 1115.9, 0.947, 1106.1]),
    (8, 248, [0.958, 1139.8, 0.947, 1098.2]),
    (16, 240, [0.961, 1174.6, 0.946, 1087.8]),
    (32, 224, [0.964, 1298.6, 0.948, 1072.5]),
    (64, 192, [0.933, 1456.1, 0.631, 1041.2]),
    (128, 128, [0.930, 1621.6, 0.760, 1022.5]),
];

/// Mean and standard error.
#[derive(Clone, Copy)]
struct Mean {
    of: f64,
    error: f64,
}

fn mean(values: &[f64]) -> Mean {
    let n = values.len() as f64;
    let of = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - of) * (v - of)).sum::<f64>() / (n - 1.0);
    Mean { of, error: (square / n).sqrt() }
}

/// Accuracy (best leaf over found leaf, 0 where none was found) and expansions.
fn measured(settings: &Mb2fbs, optima: &[f64]) -> (Mean, Mean) {
    let one = |(seed, optimum): (usize, &f64)| {
        let tree = Tree::published(seed as u64);
        let found = mb2fbs(&tree, &mut PathCost, &Limits::of(usize::MAX), settings);
        (found.best.map_or(0.0, |(_, cost)| optimum / cost), found.tally.expansions as f64)
    };
    let all: Vec<(f64, f64)> = optima.par_iter().enumerate().map(one).collect();
    let (accuracy, expansions): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
    (mean(&accuracy), mean(&expansions))
}

/// The table.
///
/// # Errors
/// None.
pub fn table(watching: &Watching<'_>) -> Result<Table> {
    watching.line.all(KNOWN.len());
    let optima: Vec<f64> = (0..TREES).into_par_iter().map(|seed| Tree::published(seed).optimum()).collect();
    let mut lines = vec![
        "| β2, β1 | accuracy | known | expansions | known | accuracy, controlled | known | expansions, controlled | known |".to_string(),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|".to_string(),
    ];
    let mut rows = vec![];
    for (onward, forward, known) in KNOWN {
        if watching.interrupt.raised() {
            break;
        }
        watching.line.doing(&format!("{onward}, {forward}"));
        let depth = Tree::published(0).depth;
        let free = measured(&Mb2fbs::uncontrolled(forward, onward), &optima);
        let bound = measured(&Mb2fbs::controlled(forward, onward, depth), &optima);
        let cells = [free.0, free.1, bound.0, bound.1];
        let cell = |k: usize| match k % 2 {
            0 => format!("{:.3} ± {:.3} | {:.3}", cells[k].of, cells[k].error, known[k]),
            _ => format!("{:.1} ± {:.1} | {:.1}", cells[k].of, cells[k].error, known[k]),
        };
        let cells_text: Vec<String> = (0..4).map(cell).collect();
        lines.push(format!("| {onward}, {forward} | {} |", cells_text.join(" | ")));
        let object = |m: &Mean| json!({ "mean": m.of, "error": m.error });
        rows.push(json!({
            "onward": onward,
            "forward": forward,
            "measured": cells.iter().map(object).collect::<Vec<_>>(),
            "known": known,
        }));
        watching.line.done();
    }
    Ok(Table { lines, rows })
}
