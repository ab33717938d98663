//! Errors become text for people: spans, diagnostics, and the only place that renders them.
//!
//! It must not know what a program is: a span is two byte offsets into a named text.

use codespan_reporting::diagnostic::{Diagnostic as Report, Label};
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term;
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
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

impl Diagnostic {
    fn new(kind: Kind, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic { kind, message: message.into(), places: vec![], source: None, notes: vec![] })
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
        if self.source.is_none() {
            self.source = Some(source.clone());
        }
        self
    }

    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::User => 1,
            Kind::Limit => 2,
            Kind::Bug => 70,
        }
    }

    /// The message with its excerpt, as a person reads it.
    pub fn render(&self) -> String {
        let report = match self.kind {
            Kind::User => Report::error(),
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
        let mut out = String::new();
        match term::emit_to_string(&mut out, &term::Config::default(), &file, &report) {
            Ok(()) => out.trim_end().to_string(),
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

/// The names nearest to `name`, for hints; nothing where all are far.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let far = name.chars().count() / 3 + 1;
    let mut found: Vec<(usize, &str)> =
        known.into_iter().map(|k| (distance(name, k, far), k)).filter(|(d, _)| *d <= far).collect();
    found.sort();
    found.dedup();
    let names: Vec<String> = found.iter().take(3).map(|(_, n)| format!("`{n}`")).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
}

/// Edit distance, given up beyond `far`.
fn distance(a: &str, b: &str, far: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > far {
        return far + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let next = (corner + usize::from(ca != cb)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
