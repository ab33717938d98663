//! What colours and signs mean, and the paper under all of it.

use crate::report::svg::{Drawing, Shape, Text};
use crate::report::text::width;

/// How high the legend is.
pub const HEIGHT: f64 = 40.0;

/// No drawing is narrower: the legend has its place.
pub const LEAST: f64 = 620.0;

const FONT: f64 = 10.5;
const ROW: f64 = 20.0;

/// Amounts of memory: the class, the most that it holds, and what the legend calls it.
const AMOUNTS: [(&str, u64, &str); 4] = [
    ("memory small", 32 << 10, "to 32 KiB"),
    ("memory medium", 1 << 20, "to 1 MiB"),
    ("memory large", 32 << 20, "to 32 MiB"),
    ("memory huge", u64::MAX, "more"),
];

/// The class of an amount of memory.
pub fn amount(bytes: u64) -> &'static str {
    AMOUNTS.iter().find(|(_, most, _)| bytes <= *most).map_or("memory huge", |(class, ..)| class)
}

/// The background.
pub fn paper(size: (f64, f64)) -> Shape {
    Shape { size, class: "paper".into(), ..Shape::default() }
}

/// Draws it in two rows.
pub fn draw(out: &mut Drawing, (x, y): (f64, f64), waits: bool) {
    let loops = [
        ("serial", "serial"),
        ("parallel", "parallel"),
        ("vector", "vector"),
        ("unrolled", "unrolled"),
        ("serial ordered", "in order: reduced, steps"),
    ];
    let mut at = begin(out, (x, y), "loops");
    for (class, words) in loops {
        at = entry(out, (at, y), (class, 18.0), words);
    }
    debug_assert!(at - x < LEAST, "the legend is as narrow as the narrowest drawing");
    let y = y + ROW;
    let mut at = begin(out, (x, y), "memory");
    for (class, _, words) in AMOUNTS {
        at = entry(out, (at, y), (class, 8.0), words);
    }
    at = said(out, (at + 10.0, y), "lines");
    out.dot("", "fill=\"#5b6778\"", (at + 4.0, y + 7.0), 3.2);
    let mut at = said(out, (at + 12.0, y), "is read");
    if waits {
        out.dot("before", "stroke=\"#5b6778\"", (at + 4.0, y + 7.0), 3.2);
        at = said(out, (at + 12.0, y), "in the next step");
    }
    debug_assert!(at - x < LEAST, "the legend is as narrow as the narrowest drawing");
}

fn begin(out: &mut Drawing, at: (f64, f64), words: &str) -> f64 {
    said(out, at, words).max(at.0 + width("memory", FONT) + 12.0)
}

fn entry(out: &mut Drawing, (x, y): (f64, f64), (class, w): (&str, f64), words: &str) -> f64 {
    let h = if w > 10.0 { 12.0 } else { w };
    let shape = Shape { at: (x, y + 7.0 - h / 2.0), size: (w, h), class: class.into(), ..Shape::default() };
    out.shape(&shape);
    said(out, (x + w + 5.0, y), words)
}

/// Words; gives where the next ones may begin.
fn said(out: &mut Drawing, (x, y): (f64, f64), words: &str) -> f64 {
    out.text(&Text::new((x, y + 11.0), FONT, "quiet", words));
    x + width(words, FONT) + 14.0
}
