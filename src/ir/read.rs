//! Text becomes a flat tree of atoms and lists with spans. It knows brackets and tokens, no forms.
//!
//! Nothing here recurses: a nesting of any depth is a stack of open lists on the heap.

use crate::diag::{Diagnostic, Result, Span};

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub enum Atom {
    /// A name.
    Name(String),
    /// An integer literal.
    Int(i64),
    /// A float literal.
    Float(f64),
    /// A quoted text, escapes resolved.
    Text(String),
}

/// What stands at a place.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// A token.
    Atom(Atom),
    /// `( … )`.
    List(Vec<usize>),
    /// `[ … ]`.
    Bracket(Vec<usize>),
}

/// One node of the tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Sexp {
    /// What it is; children are indices into [`Tree::nodes`].
    pub form: Form,
    /// Where it stands.
    pub span: Span,
}

/// A whole text: nodes, children before parents, and the top-level ones in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tree {
    /// All nodes.
    pub nodes: Vec<Sexp>,
    /// Indices of the top-level forms.
    pub top: Vec<usize>,
}

impl Tree {
    /// A node.
    pub fn at(&self, id: usize) -> &Sexp {
        &self.nodes[id]
    }

    /// The children of a round list.
    pub fn list(&self, id: usize) -> Option<&[usize]> {
        match &self.nodes[id].form {
            Form::List(kids) => Some(kids),
            Form::Atom(_) | Form::Bracket(_) => None,
        }
    }

    /// The text of a name.
    pub fn name(&self, id: usize) -> Option<&str> {
        match &self.nodes[id].form {
            Form::Atom(Atom::Name(n)) => Some(n),
            Form::Atom(Atom::Int(_) | Atom::Float(_) | Atom::Text(_)) | Form::List(_) | Form::Bracket(_) => None,
        }
    }

    /// The children of a list that starts with this name, the name left out.
    pub fn headed(&self, id: usize, head: &str) -> Option<&[usize]> {
        let kids = self.list(id)?;
        (self.name(*kids.first()?)? == head).then(|| &kids[1..])
    }
}

/// Whether an identifier may start with this character.
pub fn starts_name(c: char) -> bool {
    c.is_alphabetic() || "_':!$%&*+.,/<=>?@\\^|-`~".contains(c)
}

fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    tree: Tree,
    /// Open lists: the bracket, where it stands, and the children so far.
    open: Vec<(char, usize, Vec<usize>)>,
}

/// Reads a whole text.
///
/// # Errors
/// Unbalanced brackets, open comments and texts, characters and numbers that cannot be read.
pub fn read(text: &str) -> Result<Tree> {
    if text.len() > u32::MAX as usize {
        return Err(Diagnostic::limit("the text is larger than 4 GiB"));
    }
    let mut reader = Reader { text, at: 0, tree: Tree::default(), open: vec![] };
    while reader.step()? {}
    if let Some((_, at, _)) = reader.open.last() {
        let here = span(*at, at + 1);
        return Err(Diagnostic::user("unbalanced text: this bracket is never closed").at(here, "opened here"));
    }
    Ok(reader.tree)
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn put(&mut self, form: Form, start: usize) {
        let id = self.tree.nodes.len();
        self.tree.nodes.push(Sexp { form, span: span(start, self.at) });
        match self.open.last_mut() {
            Some((_, _, kids)) => kids.push(id),
            None => self.tree.top.push(id),
        }
    }

    /// Reads one token or bracket; false at the end of the text.
    fn step(&mut self) -> Result<bool> {
        let Some(c) = self.peek() else {
            return Ok(false);
        };
        let start = self.at;
        self.at += c.len_utf8();
        match c {
            c if c.is_whitespace() => {}
            ';' => self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at),
            '#' if self.peek() == Some('|') => self.block_comment(start)?,
            '(' | '[' => self.open.push((c, start, vec![])),
            ')' | ']' => self.close(c, start)?,
            '"' => {
                let text = self.quoted(start)?;
                self.put(Form::Atom(Atom::Text(text)), start);
            }
            c if starts_name(c) || c.is_ascii_digit() => {
                let atom = self.word(start)?;
                self.put(Form::Atom(atom), start);
            }
            c => {
                let message = format!("unexpected character {c:?}");
                return Err(Diagnostic::user(message).at(span(start, self.at), "no name and no number starts with it"));
            }
        }
        Ok(true)
    }

    fn block_comment(&mut self, start: usize) -> Result<()> {
        let bytes = self.text.as_bytes();
        let mut depth = 1;
        self.at += 1;
        while depth > 0 {
            match (bytes.get(self.at), bytes.get(self.at + 1)) {
                (Some(b'#'), Some(b'|')) => (depth, self.at) = (depth + 1, self.at + 2),
                (Some(b'|'), Some(b'#')) => (depth, self.at) = (depth - 1, self.at + 2),
                (Some(_), _) => self.at += 1,
                (None, _) => {
                    let here = span(start, start + 2);
                    return Err(Diagnostic::user("this comment is never closed").at(here, "expected `|#` later"));
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, c: char, start: usize) -> Result<()> {
        let Some((opened, at, kids)) = self.open.pop() else {
            let here = span(start, start + 1);
            return Err(Diagnostic::user(format!("unbalanced text: this `{c}` closes nothing")).at(here, "here"));
        };
        let form = match (opened, c) {
            ('(', ')') => Form::List(kids),
            ('[', ']') => Form::Bracket(kids),
            _ => {
                let message = format!("unbalanced text: `{opened}` is closed by `{c}`");
                return Err(Diagnostic::user(message)
                    .at(span(start, start + 1), "closed here")
                    .at(span(at, at + 1), "opened here"));
            }
        };
        self.put(form, at);
        Ok(())
    }

    fn quoted(&mut self, start: usize) -> Result<String> {
        let open = || Diagnostic::user("this text is never closed").at(span(start, start + 1), "expected `\"` later");
        let mut out = String::new();
        loop {
            let c = self.peek().ok_or_else(open)?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => {
                    let from = self.at - 1;
                    match self.escape().ok_or_else(open)? {
                        Ok(c) => out.extend(c),
                        Err(()) => {
                            let here = span(from, self.at);
                            let known = r#"known are \n \t \r \a \b \f \v \\ \" \' \&, \65 and \u{41}"#;
                            return Err(Diagnostic::user("unknown escape in a text").at(here, "here").note(known));
                        }
                    }
                }
                c => out.push(c),
            }
        }
    }

    /// A Haskell-style escape after its backslash; `Ok(None)` is the empty `\&`.
    fn escape(&mut self) -> Option<std::result::Result<Option<char>, ()>> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        let known = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0'..='9' => {
                let from = self.at - 1;
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.at += 1;
                }
                let code = self.text[from..self.at].parse::<u32>().ok().and_then(char::from_u32);
                return Some(code.map(Some).ok_or(()));
            }
            'u' if self.peek() == Some('{') => {
                let from = self.at + 1;
                let len = self.text[from..].find('}')?;
                self.at = from + len + 1;
                let code = u32::from_str_radix(&self.text[from..from + len], 16).ok().and_then(char::from_u32);
                return Some(code.map(Some).ok_or(()));
            }
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '"' | '\'' => c,
            '&' => return Some(Ok(None)),
            _ => return Some(Err(())),
        };
        Some(Ok(Some(known)))
    }

    fn word(&mut self, start: usize) -> Result<Atom> {
        while self.peek().is_some_and(continues_name) {
            self.at += self.peek().map_or(0, char::len_utf8);
        }
        let word = &self.text[start..self.at];
        let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Atom::Name(word.to_string()));
        }
        let bad = |what: &str| Diagnostic::user(format!("{what} `{word}`")).at(span(start, self.at), "here");
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            return word.parse().map(Atom::Int).map_err(|_| bad("this number is too large for Integer:"));
        }
        if !is_float(digits) {
            let note = "a Float has digits on both sides of its point, or an exponent: `1.0`, `2.5e-3`";
            return Err(bad("this is no number and no name:").note(note));
        }
        match word.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(Atom::Float(v)),
            Ok(_) | Err(_) => Err(bad("this number is too large for Float:")),
        }
    }
}

/// `12.5`, `1e5`, `4.4e-2`, the sign left out.
fn is_float(word: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['-', '+']).unwrap_or(e))),
        None => (word, None),
    };
    let mantissa_good = match mantissa.split_once('.') {
        Some((a, b)) => digits(a) && digits(b),
        None => digits(mantissa) && exponent.is_some(),
    };
    mantissa_good && exponent.is_none_or(digits)
}
