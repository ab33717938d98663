//! Where brackets were meant, by the indentation of a text whose brackets do not balance.
//!
//! A line inside a list is indented further than the line on which the list begins, and a
//! declaration begins at the column of the one before it. It knows no more of programs than the
//! words that begin a declaration.

use crate::diag::{Diagnostic, Span};

/// Words behind the bracket of a declaration.
const DECLARATIONS: [&str; 4] = ["def", "edef", "gdef", "rule"];

/// An open list.
pub struct Open {
    /// Its bracket.
    pub bracket: char,
    /// Where that stands.
    pub at: usize,
    /// What it holds so far, whatever the reader calls it.
    pub kids: Vec<usize>,
}

/// What is known of the text so far.
#[derive(Default)]
pub struct Layout {
    /// The end of the last token.
    end: usize,
    /// The first list that goes on although the indentation ends it: its bracket, and where it was
    /// meant to be closed.
    suspect: Option<(usize, usize)>,
    /// How many top-level forms there were at the last bracket that closes nothing.
    stray: Option<usize>,
}

fn column(text: &str, at: usize) -> usize {
    at - text[..at].rfind('\n').map_or(0, |k| k + 1)
}

/// The column of the first token of the line on which this stands.
fn indent(text: &str, at: usize) -> usize {
    let line = &text[at - column(text, at)..];
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn declares(text: &str) -> bool {
    let word = text.strip_prefix('(').unwrap_or_default();
    let word = word.split(|c: char| c.is_whitespace() || c == '(').next();
    word.is_some_and(|w| DECLARATIONS.contains(&w))
}

impl Layout {
    /// The end of the last token.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Says that all up to here has been read.
    pub fn read_until(&mut self, at: usize) {
        self.end = at;
    }

    /// Looks at the token at `start`; true where all that is open ends before it.
    pub fn token(&mut self, text: &str, start: usize, open: &[Open]) -> bool {
        let (Some(first), Some(last)) = (open.first(), open.last()) else {
            self.suspect = None;
            return false;
        };
        let new_line = text[self.end..start].contains('\n');
        if !new_line || text[start..].starts_with([')', ']']) {
            return false;
        }
        let here = column(text, start);
        if here <= column(text, first.at) && declares(&text[start..]) {
            return true;
        }
        if self.suspect.is_none() {
            let outer = open.iter().find(|o| indent(text, o.at) >= here).filter(|_| indent(text, last.at) >= here);
            let found = bindings(text, open).filter(|o| column(text, o.at) >= here).or(outer);
            self.suspect = found.map(|o| (o.at, self.end));
        }
        false
    }

    /// The message of lists without end.
    pub fn unclosed(&self, open: &[Open]) -> Box<Diagnostic> {
        let close = |o: &Open| if o.bracket == '(' { ')' } else { ']' };
        let (bracket, end, missing) = match (self.suspect, open.last()) {
            (Some((bracket, end)), _) => {
                let it = open.iter().find(|o| o.at == bracket).map_or(')', close);
                (bracket, end, it.to_string())
            }
            (None, last) => (last.map_or(0, |o| o.at), self.end, open.iter().rev().map(close).collect()),
        };
        Diagnostic::user("unbalanced text: a bracket is never closed")
            .at(Span::new(end, end), format!("expected `{missing}` here, by the indentation"))
            .at(Span::new(bracket, bracket + 1), "opened here")
    }

    /// The message of a bracket that closes nothing, and how many of the forms before it stay forms.
    /// Where the text behind the last declaration is indented, that was closed too early, and what
    /// stands behind it is no form of its own.
    pub fn stray(&mut self, text: &str, c: char, start: usize, forms: &[Span]) -> Option<(Box<Diagnostic>, usize)> {
        if self.stray == Some(forms.len()) {
            return None;
        }
        let here = Span::new(start, start + 1);
        let declaration = forms.iter().rposition(|f| column(text, f.start as usize) == 0);
        let (d, kept) = match declaration.filter(|k| k + 1 < forms.len()) {
            Some(k) => {
                let (first, end) = (forms[k].start as usize, forms[k].end as usize);
                let d = Diagnostic::user(format!("unbalanced text: `{c}` closes a form too early"))
                    .at(Span::new(end - 1, end), "what follows is indented as a part of the form")
                    .at(Span::new(first, first + 1), "it begins here")
                    .at(here, "so this closes nothing");
                (d, k + 1)
            }
            None => {
                let message = format!("unbalanced text: this `{c}` closes nothing");
                (Diagnostic::user(message).at(here, "here"), forms.len())
            }
        };
        self.stray = Some(kept);
        Some((d, kept))
    }
}

/// The bracket around the bindings of the innermost open `let`, where that is what is being read:
/// no other list is followed by something that is indented less than its own bracket.
fn bindings<'a>(text: &str, open: &'a [Open]) -> Option<&'a Open> {
    let k = open.len().saturating_sub(3);
    open[k..].windows(2).rev().find(|w| text[w[0].at..w[1].at].trim_end() == "(let").map(|w| &w[1])
}
