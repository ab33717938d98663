//! Stages and loops become rectangles in each other.
//!
//! A loop in which other stages are computed has its words above what it holds. Loops that hold nothing but the elements of
//! their own stage stand side by side with them, each around those to its right, so that a plain stage is one row.

use crate::ir::deep;
use crate::report::svg::{Shape, Text};
use crate::report::text::{bytes, fit, width};
use crate::schedule::outline::{Body, Input, Loop, Memory, Stage};
use crate::schedule::plan::Kind;

/// Sizes of fonts: names of stages, names of loops, and all else.
const NAME: f64 = 13.0;
const LOOP: f64 = 12.0;
const SMALL: f64 = 10.5;
/// How high the lines of these are.
const HEAD: f64 = 24.0;
const LABEL: f64 = 20.0;
const LINE: f64 = 15.0;
/// Beside words, around what stands in a stage or loop, and around what stands beside the words of a loop.
const PAD: f64 = 8.0;
const INSET: f64 = 6.0;
const TIGHT: f64 = 3.0;
/// Loops stand side by side where all of them are no wider.
const WIDE: f64 = 760.0;
/// The words of elements get at least so many columns, where they have them, and more where there is room.
const WORDS: usize = 58;
/// The widest name, dimensions and box of a stage, in columns.
const NAMES: usize = 36;
const DIMS: usize = 36;
const BOX: usize = 72;

/// What was placed.
#[derive(Default)]
pub struct Placed {
    /// The outermost rectangles.
    pub shapes: Vec<Shape>,
    /// What may be read: its number, name, and where lines begin.
    pub stored: Vec<(usize, String, (f64, f64))>,
    /// What reads: its name, where lines end, and the numbers that it reads.
    pub readers: Vec<(String, (f64, f64), Vec<usize>)>,
}

/// Left, top and width of the place for something.
type Place = (f64, f64, f64);

/// The width that the widest part asks for.
pub fn widest(of: &crate::schedule::Outline) -> f64 {
    let inputs = of.inputs.iter().map(|i| head_width(&i.name, &[], false, &i.memory));
    of.stages.iter().map(stage_width).chain(inputs).fold(0.0, f64::max)
}

fn stage_width(s: &Stage) -> f64 {
    deep(|| {
        let head = head_width(&s.name, &s.dims, s.result, &s.memory);
        head.max(inside_width(s, s.outer.as_deref()) + 2.0 * INSET)
    })
}

fn inside_width(s: &Stage, l: Option<&Loop>) -> f64 {
    let Some(l) = l else { return body_width(&s.body, s.tile.as_ref()) };
    if let Some(all) = side_by_side(s, l) {
        return all;
    }
    let hosted = l.hosted.iter().map(stage_width).fold(0.0, f64::max);
    let held = hosted.max(inside_width(s, l.inner.as_deref())) + PAD + INSET;
    held.max(width(&words(l), LOOP) + width(&notes(l), SMALL) + 3.0 * PAD)
}

/// The width of loops side by side, where they hold no stages and have room for that.
fn side_by_side(s: &Stage, l: &Loop) -> Option<f64> {
    let mut all = body_width(&s.body, s.tile.as_ref());
    let mut next = Some(l);
    while let Some(l) = next {
        if !l.hosted.is_empty() {
            return None;
        }
        all += label_width(l) + TIGHT;
        next = l.inner.as_deref();
    }
    (all <= WIDE).then_some(all)
}

fn head_width(name: &str, dims: &[String], result: bool, memory: &Memory) -> f64 {
    let (name, dims, memory) = (clip(name, NAMES), clip(&indices(dims), DIMS), clip(&box_words(memory), BOX));
    let result = if result { width(RESULT, SMALL) + 2.0 * PAD } else { 0.0 };
    width(&name, NAME) + width(&dims, LOOP) + result + width(&memory, SMALL) + 6.0 * PAD
}

fn label_width(l: &Loop) -> f64 {
    let notes = l.notes.iter().map(|n| width(n, SMALL)).fold(0.0, f64::max);
    (width(&words(l), LOOP).max(notes) + 2.0 * PAD).ceil()
}

fn body_width(b: &Body, tile: Option<&Memory>) -> f64 {
    let lines = lines(b, tile).into_iter().map(|(_, l)| width(&clip(&l, WORDS), SMALL));
    lines.fold(0.0, f64::max) + 2.0 * PAD
}

/// A tensor that comes in; gives its height.
pub fn input(i: &Input, (x, y, w): Place, out: &mut Placed) -> f64 {
    let texts = head((x, y, w), (&i.name, &[], false), &i.memory);
    let title = format!("{}, which comes in: {}", i.name, box_words(&i.memory));
    out.stored.push((i.id, i.name.clone(), (x + w, y + HEAD / 2.0)));
    out.shapes.push(Shape {
        at: (x, y),
        size: (w, HEAD),
        class: "input".into(),
        title,
        texts,
        inner: chip((x, y, w), &i.memory),
    });
    HEAD
}

/// A stage and all in it.
pub fn stage(s: &Stage, (x, y, w): Place, out: &mut Placed) -> Shape {
    deep(|| {
        out.stored.push((s.id, s.name.clone(), (x + w, y + HEAD / 2.0)));
        let texts = head((x, y, w), (&s.name, &s.dims, s.result), &s.memory);
        let mut inner = chip((x, y, w), &s.memory);
        let held = inside(s, s.outer.as_deref(), (x + INSET, y + HEAD, w - 2.0 * INSET), out);
        let h = HEAD + held.as_ref().map_or(0.0, |s| s.size.1 + INSET);
        inner.extend(held);
        let title = [s.definition.join("\n"), s.memory.each.join("\n")].join("\n");
        Shape { at: (x, y), size: (w, h), class: "stage".into(), title, texts, inner }
    })
}

/// What stands in a stage or loop; nothing where there is nothing to do.
fn inside(s: &Stage, l: Option<&Loop>, place: Place, out: &mut Placed) -> Option<Shape> {
    let Some(l) = l else { return body(s, place, out) };
    Some(if side_by_side(s, l).is_some() { beside(s, l, place, out) } else { around(s, l, place, out) })
}

/// A loop with its words above what it holds.
fn around(s: &Stage, l: &Loop, (x, y, w): Place, out: &mut Placed) -> Shape {
    let (mut inner, mut below) = (vec![], y + LABEL);
    let (left, room) = (x + PAD, w - PAD - INSET);
    for hosted in &l.hosted {
        inner.push(stage(hosted, (left, below, room), out));
        below += inner.last().map_or(0.0, |s| s.size.1) + INSET;
    }
    let held = inside(s, l.inner.as_deref(), (left, below, room), out);
    below += held.as_ref().map_or(0.0, |s| s.size.1 + INSET);
    inner.extend(held);
    let label = Text::new((x + PAD, y + 14.0), LOOP, "loop", words(l));
    let after = x + 2.0 * PAD + width(&label.words, LOOP);
    let texts = vec![label, Text::new((after, y + 14.0), SMALL, "quiet", notes(l))];
    Shape { at: (x, y), size: (w, below - y), class: class(l), title: told(s, l), texts, inner }
}

/// A loop with its words beside what it holds.
fn beside(s: &Stage, l: &Loop, (x, y, w): Place, out: &mut Placed) -> Shape {
    let label = label_width(l);
    let mut held = inside(s, l.inner.as_deref(), (x + label, y + TIGHT, w - label - TIGHT), out);
    let own = LINE * (1 + l.notes.len()) as f64;
    let h = held.as_ref().map_or(0.0, |s| s.size.1 + 2.0 * TIGHT).max(own + 2.0 * TIGHT);
    held.iter_mut().filter(|s| h > s.size.1 + 2.0 * TIGHT).for_each(|s| grow(s, h - 2.0 * TIGHT, out));
    let first = y + (h - own) / 2.0 + 11.0;
    let mut texts = vec![Text::new((x + PAD, first), LOOP, "loop", words(l))];
    for (k, note) in l.notes.iter().enumerate() {
        texts.push(Text::new((x + PAD, first + LINE * (k + 1) as f64), SMALL, "quiet", note));
    }
    Shape { at: (x, y), size: (w, h), class: class(l), title: told(s, l), texts, inner: held.into_iter().collect() }
}

/// Makes a row higher: its words stay in the middle, and so does the end of its lines.
fn grow(s: &mut Shape, h: f64, out: &mut Placed) {
    let by = (h - s.size.1) / 2.0;
    s.size.1 = h;
    s.texts.iter_mut().for_each(|t| t.at.1 += by);
    match s.inner.as_mut_slice() {
        [] => out.readers.iter_mut().last().into_iter().for_each(|(_, at, _)| at.1 += by),
        inner => inner.iter_mut().for_each(|s| {
            let h = s.size.1 + 2.0 * by;
            grow(s, h, out);
        }),
    }
}

/// What the innermost loop does.
fn body(s: &Stage, (x, y, w): Place, out: &mut Placed) -> Option<Shape> {
    let lines = lines(&s.body, s.tile.as_ref());
    if lines.is_empty() {
        return None;
    }
    let h = LINE * lines.len() as f64 + 2.0 * TIGHT;
    let each = lines.iter().enumerate().map(|(k, (class, line))| {
        let at = (x + PAD, y + TIGHT + LINE * k as f64 + SMALL);
        Text::new(at, SMALL, class, fit(line, SMALL, w - 2.0 * PAD))
    });
    let reads: Vec<usize> = s.body.reads.iter().map(|(id, _)| *id).collect();
    out.readers.push((s.name.clone(), (x + w, y + h / 2.0), reads));
    let title = [vec![format!("each element of {}", s.name)], lines.iter().map(|(_, l)| l.clone()).collect()].concat();
    let (class, title, texts) = ("body".into(), title.join("\n"), each.collect());
    Some(Shape { at: (x, y), size: (w, h), class, title, texts, inner: vec![] })
}

fn lines(b: &Body, tile: Option<&Memory>) -> Vec<(&'static str, String)> {
    let mut out = vec![];
    if !b.text.is_empty() {
        out.push(("code", b.text.clone()));
    }
    if !b.reads.is_empty() {
        let names: Vec<&str> = b.reads.iter().map(|(_, name)| name.as_str()).collect();
        out.push(("quiet", format!("reads {}", names.join(", "))));
    }
    if !b.inlined.is_empty() {
        out.push(("quiet", format!("inlined: {}", b.inlined.join(", "))));
    }
    out.extend(tile.map(|t| ("quiet", format!("accumulators: {}", box_words(t)))));
    out
}

const RESULT: &str = "result";

/// The words at the top of a stage.
fn head((x, y, w): Place, (name, dims, result): (&str, &[String], bool), memory: &Memory) -> Vec<Text> {
    let (name, dims, memory) = (clip(name, NAMES), clip(&indices(dims), DIMS), clip(&box_words(memory), BOX));
    let base = y + 16.0;
    let mut texts = vec![Text::new((x + PAD, base), NAME, "name", name)];
    let mut at = x + PAD + width(&texts[0].words, NAME);
    if !dims.is_empty() {
        texts.push(Text::new((at, base), LOOP, "quiet", dims.clone()));
        at += width(&dims, LOOP);
    }
    if result {
        texts.push(Text::new((at + PAD, base), SMALL, "result", RESULT));
    }
    if !memory.is_empty() {
        texts.push(Text { right: true, ..Text::new((x + w - PAD, base), SMALL, "box", memory) });
    }
    texts
}

/// A small square that says how much memory a box takes.
fn chip((x, y, w): Place, memory: &Memory) -> Vec<Shape> {
    let words = clip(&box_words(memory), BOX);
    let left = x + w - PAD - width(&words, SMALL) - 12.0;
    let each = memory.bytes.filter(|_| !words.is_empty()).map(|n| Shape {
        at: (left, y + 8.0),
        size: (8.0, 8.0),
        class: super::legend::amount(n).into(),
        ..Shape::default()
    });
    each.into_iter().collect()
}

fn box_words(m: &Memory) -> String {
    match m.bytes {
        Some(n) if !m.text.is_empty() => format!("{} · {}", m.text, bytes(n)),
        _ => m.text.clone(),
    }
}

fn indices(dims: &[String]) -> String {
    if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) }
}

fn words(l: &Loop) -> String {
    if l.count.is_empty() { l.name.clone() } else { format!("{} {}", clip(&l.name, NAMES), l.count) }
}

fn notes(l: &Loop) -> String {
    l.notes.join(" · ")
}

fn class(l: &Loop) -> String {
    let kind = match l.kind {
        Kind::Serial => "serial",
        Kind::Parallel => "parallel",
        Kind::Vector => "vector",
        Kind::Unrolled => "unrolled",
    };
    format!("{kind}{}", if l.ordered { " ordered" } else { "" })
}

fn told(s: &Stage, l: &Loop) -> String {
    let how = if l.notes.is_empty() { "serial".into() } else { notes(l) };
    [vec![format!("loop {} of {}: {how}", l.name, s.name)], l.more.clone()].concat().join("\n")
}

fn clip(text: &str, columns: usize) -> String {
    fit(text, 1.0, width(&"0".repeat(columns), 1.0))
}
