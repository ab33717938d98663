//! The outline of a schedule becomes a drawing: loops as rectangles in each other, from top to bottom in the order in which
//! they run, and beside them lines from what is stored to what reads it.
//!
//! `nest.rs` places rectangles, `wires.rs` the lines, `legend.rs` says what colours mean. All knows words and numbers alone.

mod legend;
mod nest;
mod wires;

use super::svg::{Drawing, Text};
use super::text::{fit, width};
use crate::schedule::Outline;
use legend::LEAST;
use nest::Placed;
use wires::Wires;

/// Around everything.
const MARGIN: f64 = 20.0;
/// Between stages that are computed whole.
const GAP: f64 = 10.0;
/// The size of the font of the title, and of what stands below it.
const TITLE: f64 = 18.0;
const BELOW: f64 = 11.0;

/// The drawing of a schedule as the text of an SVG.
pub fn picture(of: &Outline) -> String {
    let inside = nest::widest(of).max(LEAST).ceil();
    let head = head(of, inside);
    let mut placed = Placed::default();
    let mut y = head.bottom;
    for input in &of.inputs {
        y += nest::input(input, (MARGIN, y, inside), &mut placed) + GAP / 2.0;
    }
    y += if of.inputs.is_empty() { 0.0 } else { GAP };
    for stage in &of.stages {
        let shape = nest::stage(stage, (MARGIN, y, inside), &mut placed);
        y += shape.size.1 + GAP;
        placed.shapes.push(shape);
    }
    let unread = unread(of, (MARGIN, y + BELOW), inside);
    y += if unread.is_some() { BELOW + GAP } else { 0.0 };
    let wires = Wires::of(&placed, MARGIN + inside);
    let size = (MARGIN + inside + wires.width().max(0.0) + MARGIN, y - GAP + MARGIN);
    let mut out = Drawing::new(size, &format!("the schedule of {}", of.name), include_str!("style.css"));
    out.shape(&legend::paper(size));
    head.texts.iter().for_each(|t| out.text(t));
    legend::draw(&mut out, (MARGIN, head.legend), wires.waits());
    placed.shapes.iter().for_each(|s| out.shape(s));
    wires.draw(&mut out);
    unread.iter().for_each(|t| out.text(t));
    out.done()
}

/// The lines above the stages.
struct Head {
    texts: Vec<Text>,
    /// Where the legend begins, and where all of it ends.
    legend: f64,
    bottom: f64,
}

fn head(of: &Outline, inside: f64) -> Head {
    let mut y = MARGIN + TITLE;
    let title = Text::new((MARGIN, y), TITLE, "name", fit(&of.name, TITLE, inside));
    let mut texts = vec![title];
    for line in sizes(of, inside) {
        y += BELOW + 6.0;
        texts.push(Text::new((MARGIN, y), BELOW, "quiet", line));
    }
    let legend = y + 12.0;
    Head { texts, legend, bottom: legend + legend::HEIGHT + 14.0 }
}

/// What is left of stages that nothing reads.
fn unread(of: &Outline, at: (f64, f64), inside: f64) -> Option<Text> {
    let words = format!("inlined, and read by nothing: {}", of.unread.join(", "));
    (!of.unread.is_empty()).then(|| Text::new(at, BELOW, "quiet", fit(&words, BELOW, inside)))
}

/// The sizes that a schedule is for, in lines that fit.
fn sizes(of: &Outline, inside: f64) -> Vec<String> {
    if of.sizes.is_empty() {
        return vec!["for all sizes".into()];
    }
    let mut out: Vec<String> = vec![];
    for (k, (name, n)) in of.sizes.iter().enumerate() {
        let more = format!("{name} = {n}{}", if k + 1 < of.sizes.len() { "," } else { "" });
        match out.last_mut() {
            Some(line) if width(line, BELOW) + width(&more, BELOW) + BELOW <= inside => *line += &format!(" {more}"),
            _ => out.push(if k == 0 { format!("for {more}") } else { more }),
        }
    }
    out.iter().map(|line| fit(line, BELOW, inside)).collect()
}
