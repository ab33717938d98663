//! Errors become text for people: spans, diagnostics, and the only place that renders them.
//!
//! It must not know what a program is: a span is two byte offsets into a named text.

use codespan_reporting::diagnostic::{Diagnostic as Report, Label};
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term;
use codespan_reporting::term::termcolor::Buffer;
use std::fmt;
use std::sync::Arc;

/// A half-open range of byte offsets in one source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A text and the name by which messages call it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// A path, or a made-up name such as `<argument>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }

    /// `line:column` of a byte offset, both from 1; columns are characters.
    pub fn place(&self, at: u32) -> String {
        let before = self.text.get(..at as usize).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{line}:{column}")
    }
}

/// Whose fault an error is; it decides the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The input is wrong (exit 1).
    User,
    /// The input is fine, but larger or other than what this program handles (exit 2).
    Limit,
    /// This program is wrong (exit 70).
    Bug,
    /// Nobody's: it follows from an error that is reported beside it, and is not shown.
    Consequence,
}

/// One message: what is wrong, where, what was expected, and what may help.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// Whose fault it is.
    pub kind: Kind,
    /// One sentence without a final stop.
    pub message: String,
    /// Marked places with a text each; the first is the main one.
    pub places: Vec<(Span, String)>,
    /// The text that the places are in.
    pub source: Option<Arc<Source>>,
    /// Further lines: `expected …`, `found …`, hints.
    pub notes: Vec<String>,
    /// Errors of the same run that do not depend on this one, in the order of their places.
    pub others: Vec<Diagnostic>,
}

/// So many errors of one run are shown.
const SHOWN: usize = 20;

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

impl Diagnostic {
    fn new(kind: Kind, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            kind,
            message: message.into(),
            places: vec![],
            source: None,
            notes: vec![],
            others: vec![],
        })
    }

    /// An error of the input.
    pub fn user(message: impl Into<String>) -> Box<Diagnostic> {
        Self::new(Kind::User, message)
    }

    /// Something that is refused although the input is right.
    pub fn limit(message: impl Into<String>) -> Box<Diagnostic> {
        Self::new(Kind::Limit, message)
    }

    /// An error of this program.
    pub fn bug(message: impl Into<String>) -> Box<Diagnostic> {
        Self::new(Kind::Bug, message)
    }

    /// What cannot be judged because of an error that is reported already.
    pub fn consequence() -> Box<Diagnostic> {
        Self::new(Kind::Consequence, "this follows from another error")
    }

    /// All errors of a run as one, each once and in the order of their places; none where there are none.
    pub fn all(errors: Vec<Diagnostic>) -> Option<Box<Diagnostic>> {
        let mut each: Vec<Diagnostic> = vec![];
        for mut d in errors {
            let others = std::mem::take(&mut d.others);
            each.extend([d].into_iter().chain(others));
        }
        let only_consequences = !each.is_empty() && each.iter().all(|d| d.kind == Kind::Consequence);
        if only_consequences {
            return Some(Diagnostic::bug("an error was not reported"));
        }
        each.retain(|d| d.kind != Kind::Consequence);
        each.sort_by(|a, b| {
            let key = |d: &Diagnostic| d.places.first().map(|p| p.0);
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        each.dedup();
        let mut each = each.into_iter();
        let mut first = Box::new(each.next()?);
        first.others = each.collect();
        Some(first)
    }

    /// Marks a place; the first call marks the main one.
    pub fn at(mut self: Box<Self>, span: Span, label: impl Into<String>) -> Box<Self> {
        self.places.push((span, label.into()));
        self
    }

    /// Adds a line below the excerpt.
    pub fn note(mut self: Box<Self>, note: impl Into<String>) -> Box<Self> {
        self.notes.push(note.into());
        self
    }

    /// Adds a hint line where there is one.
    pub fn hint(self: Box<Self>, hint: Option<String>) -> Box<Self> {
        match hint {
            Some(h) => self.note(format!("hint: {h}")),
            None => self,
        }
    }

    /// Says which text the places are in, unless that is known.
    pub fn within(mut self: Box<Self>, source: &Arc<Source>) -> Box<Self> {
        self.source.get_or_insert_with(|| source.clone());
        for other in &mut self.others {
            other.source.get_or_insert_with(|| source.clone());
        }
        self
    }

    /// The exit code of a command that ends with these errors: that of the worst.
    pub fn exit_code(&self) -> u8 {
        let own = match self.kind {
            Kind::User | Kind::Consequence => 1,
            Kind::Limit => 2,
            Kind::Bug => 70,
        };
        self.others.iter().map(Diagnostic::exit_code).fold(own, u8::max)
    }

    /// The messages with their excerpts, as a person reads them.
    pub fn render(&self) -> String {
        self.text(false)
    }

    /// The messages with their excerpts, with or without colours.
    pub fn text(&self, colour: bool) -> String {
        let mut out = self.one(colour);
        for other in self.others.iter().take(SHOWN - 1) {
            out += "\n\n";
            out += &other.one(colour);
        }
        if let Some(more) = self.others.len().checked_sub(SHOWN - 1).filter(|n| *n > 0) {
            out += &format!("\n\nand {more} more errors");
        }
        out
    }

    fn one(&self, colour: bool) -> String {
        let report = match self.kind {
            Kind::User | Kind::Consequence => Report::error(),
            Kind::Limit => Report::error().with_code("limit"),
            Kind::Bug => Report::bug(),
        };
        let mut report = report.with_message(&self.message).with_notes(self.notes.clone());
        let empty = Source { name: String::new(), text: String::new() };
        let source = match &self.source {
            Some(source) => {
                for (k, (span, label)) in self.places.iter().enumerate() {
                    let range = span.start as usize..span.end as usize;
                    let mark = if k == 0 { Label::primary((), range) } else { Label::secondary((), range) };
                    report = report.with_label(mark.with_message(label));
                }
                source.as_ref()
            }
            None => &empty,
        };
        let file = SimpleFile::new(&source.name, &source.text);
        let mut out = Buffer::no_color();
        if colour {
            out = Buffer::ansi();
        }
        match term::emit_to_write_style(&mut out, &term::Config::default(), &file, &report) {
            Ok(()) => String::from_utf8_lossy(out.as_slice()).trim_end().to_string(),
            Err(e) => format!("{} (and the excerpt cannot be shown: {e})", self.message),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

impl std::error::Error for Diagnostic {}

/// The names nearest to `name`, for hints; nothing where all are unlike it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let plain =
        |n: &str| -> Vec<char> { n.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect() };
    let sought = plain(name);
    // Words of three letters differ by one letter from many others, so they must have the same.
    let far = match sought.len() {
        0 | 1 => 0,
        2..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    let close = |k: &'a str| {
        let other = plain(k);
        let d = distance(&sought, &other, far);
        let short = sought.len().min(other.len()) < 3;
        let alike = d == 0 || !short && (sought.len() > 3 || same_letters(&sought, &other));
        (d <= far && alike && !other.is_empty() && k != name).then_some((d, k))
    };
    let mut found: Vec<(usize, &str)> = known.into_iter().filter_map(close).collect();
    found.sort();
    found.dedup();
    let best = found.first()?.0;
    let names: Vec<String> = found.iter().filter(|f| f.0 == best).take(3).map(|(_, n)| format!("`{n}`")).collect();
    Some(format!("did you mean {}?", names.join(" or ")))
}

/// Whether two words have the same letters but for one that one of them has more.
fn same_letters(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let mut rest = long.to_vec();
    short.iter().all(|c| rest.iter().position(|r| r == c).map(|k| rest.remove(k)).is_some())
}

/// Edit distance in which two neighbours may change places, given up beyond `far`.
fn distance(a: &[char], b: &[char], far: usize) -> usize {
    if a.len().abs_diff(b.len()) > far {
        return far + 1;
    }
    let mut before: Vec<usize> = vec![];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let mut d = (row[j] + usize::from(ca != cb)).min(next[j] + 1).min(row[j + 1] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                d = d.min(before[j - 1] + 1);
            }
            next.push(d);
        }
        (before, row) = (row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: hints name what was meant, and nothing where no name is like it.
    #[test]
    fn near_names_are_found_and_unlike_ones_are_not() {
        let known = ["add", "sqrt", "shr", "eq", "or", "floor", "map", "max", "sumbuild", "to_float", "constVec"];
        let hint = |name: &str| nearest(name, known);
        for (name, meant) in [("sqr", "sqrt"), ("flor", "floor"), ("sumbiuld", "sumbuild"), ("toFloat", "to_float")] {
            assert_eq!(hint(name), Some(format!("did you mean `{meant}`?")), "{name}");
        }
        assert_eq!(hint("const_vec"), Some("did you mean `constVec`?".into()));
        for unlike in ["+", "e", "ef", "foo", "mad", "house", "x", ""] {
            assert_eq!(hint(unlike), None, "{unlike}");
        }
    }

    /// Protects: errors of one run come once each, in the order of their places; what follows from
    /// another error is left out.
    #[test]
    fn errors_are_shown_once_and_in_order() {
        let at = |message: &str, start: u32| Diagnostic::user(message).at(Span { start, end: start + 1 }, "here");
        let all = [at("b", 2), Diagnostic::consequence(), at("a", 1), at("b", 2)];
        let found = Diagnostic::all(all.into_iter().map(|d| *d).collect()).unwrap();
        assert_eq!((found.message.as_str(), found.others.len()), ("a", 1));
        assert_eq!(found.others[0].message, "b");
        assert_eq!(Diagnostic::all(vec![]), None);
        assert_eq!(Diagnostic::all(vec![*Diagnostic::consequence()]).map(|d| d.kind), Some(Kind::Bug));
    }
}
