//! Stages and who reads whom become a drawing: the way forth and the way back in colours of their own, and what is kept
//! between them.

use super::svg::{Drawing, Shape, Text};
use super::text::{bytes, fit};

/// A stage that is drawn.
#[derive(Clone, Debug, Default)]
pub struct Box {
    /// Its name.
    pub name: String,
    /// Its sizes, as text.
    pub sizes: String,
    /// Its bytes.
    pub bytes: u64,
    /// The stages that it reads, by their places: those before it, but in recurrences.
    pub reads: Vec<usize>,
    /// Whether it is on the way back.
    pub back: bool,
}

/// So many stages are drawn at most: those of the most bytes.
pub const DRAWN: usize = 120;
/// Width and height of a stage, and the gaps between them.
const SIZE: (f64, f64) = (150.0, 40.0);
const GAP: (f64, f64) = (70.0, 14.0);
const EDGE: f64 = 12.0;

const STYLE: &str = ".way text { font-family: ui-monospace, monospace; fill: #1d2330; }
.way rect { stroke-width: 1.4; } .way .soft { fill: #667085; }
.forth rect { fill: #e6eef9; stroke: #265ca8; } .back rect { fill: #fbeade; stroke: #c45821; }
.read { fill: none; stroke-width: 1; opacity: .55; } .held { fill: none; stroke-width: 2; stroke-dasharray: 5 3; }
";

/// The drawing: each stage stands right of all that it reads.
pub fn flow(title: &str, stages: &[Box]) -> String {
    let shown = shown(stages);
    let mut levels = vec![0_usize; stages.len()];
    for k in 0..stages.len() {
        levels[k] = stages[k].reads.iter().filter(|r| **r < k).map(|r| levels[*r] + 1).max().unwrap_or(0);
    }
    // Columns that nothing is drawn in have no room.
    let mut columns: Vec<usize> = shown.iter().map(|k| levels[*k]).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut filled = vec![0_usize; columns.len()];
    let mut places = vec![None; stages.len()];
    for k in &shown {
        let column = columns.binary_search(&levels[*k]).unwrap_or(0);
        let x = EDGE + column as f64 * (SIZE.0 + GAP.0);
        places[*k] = Some((x, EDGE + filled[column] as f64 * (SIZE.1 + GAP.1)));
        filled[column] += 1;
    }
    let most = filled.iter().copied().max().unwrap_or(0).max(1) as f64;
    let wide = columns.len().max(1) as f64;
    let size = (2.0 * EDGE + wide * (SIZE.0 + GAP.0) - GAP.0, 2.0 * EDGE + most * (SIZE.1 + GAP.1) - GAP.1);
    let mut out = Drawing::new(size, title, STYLE);
    out.begin("way", "");
    for (k, of) in stages.iter().enumerate() {
        for r in of.reads.iter().filter(|r| **r != k) {
            let (Some(to), Some(from)) = (places[k], places[*r]) else { continue };
            let (class, colour) = match (stages[*r].back, of.back) {
                (false, true) => ("held", "#80468c"),
                (_, true) => ("read", "#c45821"),
                _ => ("read", "#265ca8"),
            };
            out.line(class, colour, &[(from.0 + SIZE.0, from.1 + SIZE.1 / 2.0), (to.0, to.1 + SIZE.1 / 2.0)]);
        }
    }
    for (k, of) in stages.iter().enumerate() {
        if let Some(at) = places[k] {
            out.shape(&shape(of, at));
        }
    }
    out.end();
    out.done()
}

/// The stages that are drawn, in order.
fn shown(stages: &[Box]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..stages.len()).collect();
    all.sort_by_key(|k| (std::cmp::Reverse(stages[*k].bytes), *k));
    all.truncate(DRAWN);
    all.sort_unstable();
    all
}

fn shape(of: &Box, at: (f64, f64)) -> Shape {
    let line =
        |y: f64, class, words: &str| Text::new((at.0 + 8.0, at.1 + y), 11.0, class, fit(words, 11.0, SIZE.0 - 16.0));
    let way = if of.back { "back" } else { "forth" };
    Shape {
        at,
        size: SIZE,
        class: way.into(),
        title: format!("{} {}: {}, on the way {way}", of.name, of.sizes, bytes(of.bytes)),
        texts: vec![line(17.0, "name", &of.name), line(32.0, "soft", &format!("{} {}", of.sizes, bytes(of.bytes)))],
        inner: vec![],
    }
}
