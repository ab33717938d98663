//! Text becomes a flat tree of atoms and lists with spans. It knows brackets and tokens, no forms.
//!
//! Nothing here recurses: a nesting of any depth is a stack of open lists on the heap. An error does
//! not end the reading: what holds one is broken, and the text goes on behind it. Where brackets do
//! not balance, the text is read once more by its [`Layout`], which says where they were meant.

use super::layout::{Layout, Open};
use super::lit::Lit;
use crate::diag::{Diagnostic, Result, Span};

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub enum Atom {
    /// A name.
    Name(String),
    /// A number.
    Number(Lit),
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
    /// Those of them that hold an error of the text.
    pub broken: Vec<usize>,
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
            Form::Atom(Atom::Number(_) | Atom::Text(_)) | Form::List(_) | Form::Bracket(_) => None,
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
    open: Vec<Open>,
    errors: Vec<Diagnostic>,
    /// Whether the brackets do not balance.
    unbalanced: bool,
    /// Whether a text or comment goes on to the end.
    endless: bool,
    /// The layout of the text, where brackets are placed by it.
    layout: Option<Layout>,
}

/// Reads a whole text.
///
/// # Errors
/// Unbalanced brackets, open comments and texts, characters and numbers that cannot be read.
pub fn read(text: &str) -> Result<Tree> {
    let (tree, errors) = recover(text);
    match Diagnostic::all(errors) {
        None => Ok(tree),
        Some(d) => Err(d),
    }
}

/// Reads as much of a text as can be read, and says what is wrong with the rest.
pub fn recover(text: &str) -> (Tree, Vec<Diagnostic>) {
    if text.len() > u32::MAX as usize {
        return (Tree::default(), vec![*Diagnostic::limit("the text is larger than 4 GiB")]);
    }
    let mut reader = Reader::new(text, None);
    reader.all();
    if reader.unbalanced {
        reader = Reader::new(text, Some(Layout::default()));
        reader.all();
    }
    let Reader { mut tree, errors, .. } = reader;
    let broken = |span: Span| {
        let places = errors.iter().filter_map(|d| d.places.first());
        places.into_iter().any(|(p, _)| span.start <= p.start && p.start <= span.end)
    };
    if !errors.is_empty() {
        tree.broken = tree.top.iter().copied().filter(|at| broken(tree.nodes[*at].span)).collect();
    }
    (tree, errors)
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, layout: Option<Layout>) -> Reader<'a> {
        Reader {
            text,
            at: 0,
            tree: Tree::default(),
            open: vec![],
            errors: vec![],
            unbalanced: false,
            endless: false,
            layout,
        }
    }

    fn all(&mut self) {
        while self.step() {}
        // Behind a text or comment without end nothing is known of brackets.
        if !self.open.is_empty() && !self.endless {
            self.unbalanced = true;
            if let Some(layout) = &self.layout {
                self.errors.push(*layout.unclosed(&self.open));
            }
        }
        self.close_all();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn put(&mut self, form: Form, start: usize) {
        let id = self.tree.nodes.len();
        self.tree.nodes.push(Sexp { form, span: Span::new(start, self.at) });
        match self.open.last_mut() {
            Some(open) => open.kids.push(id),
            None => self.tree.top.push(id),
        }
    }

    /// Reads one token or bracket; false at the end of the text.
    fn step(&mut self) -> bool {
        let Some(c) = self.peek() else {
            return false;
        };
        let start = self.at;
        match c {
            c if c.is_whitespace() => {
                self.at += c.len_utf8();
                return true;
            }
            ';' => {
                self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
                return true;
            }
            '#' if self.text[start..].starts_with("#|") => {
                self.at += 1;
                self.block_comment(start);
                return true;
            }
            _ => {}
        }
        if let Some(mut layout) = self.layout.take() {
            if layout.token(self.text, start, &self.open) {
                self.errors.push(*layout.unclosed(&self.open));
                self.layout = Some(layout);
                self.close_all();
            } else {
                self.layout = Some(layout);
            }
        }
        self.at += c.len_utf8();
        match c {
            '(' | '[' => self.open.push(Open { bracket: c, at: start, kids: vec![] }),
            ')' | ']' => self.close(c, start),
            '"' => match self.quoted(start) {
                Ok(text) => self.put(Form::Atom(Atom::Text(text)), start),
                Err(d) => self.skip(*d, start),
            },
            c if starts_name(c) || c.is_ascii_digit() => match self.word(start) {
                Ok(atom) => self.put(Form::Atom(atom), start),
                Err(d) => self.skip(*d, start),
            },
            c => {
                let message = format!("unexpected character {c:?}");
                let d = Diagnostic::user(message).at(Span::new(start, self.at), "no name and no number starts with it");
                self.skip(*d, start);
            }
        }
        if let Some(layout) = &mut self.layout {
            layout.read_until(self.at);
        }
        true
    }

    /// Goes on behind a token that cannot be read; a name without letters stands for it.
    fn skip(&mut self, d: Diagnostic, start: usize) {
        self.errors.push(d);
        self.put(Form::Atom(Atom::Name(String::new())), start);
    }

    /// Closes what is open, where the text or its layout ends it.
    fn close_all(&mut self) {
        let next = self.at;
        if let Some(layout) = &self.layout {
            self.at = layout.end();
        }
        while let Some(open) = self.open.pop() {
            let form = if open.bracket == '(' { Form::List(open.kids) } else { Form::Bracket(open.kids) };
            self.put(form, open.at);
        }
        self.at = next;
    }

    fn block_comment(&mut self, start: usize) {
        let bytes = self.text.as_bytes();
        let mut depth = 1;
        self.at += 1;
        while depth > 0 {
            match (bytes.get(self.at), bytes.get(self.at + 1)) {
                (Some(b'#'), Some(b'|')) => (depth, self.at) = (depth + 1, self.at + 2),
                (Some(b'|'), Some(b'#')) => (depth, self.at) = (depth - 1, self.at + 2),
                (Some(_), _) => self.at += 1,
                (None, _) => {
                    let here = Span::new(start, start + 2);
                    let d = Diagnostic::user("this comment is never closed").at(here, "expected `|#` later");
                    self.errors.push(*d);
                    self.endless = true;
                    return;
                }
            }
        }
    }

    fn close(&mut self, c: char, start: usize) {
        let Some(open) = self.open.pop() else {
            self.unbalanced = true;
            if let Some(layout) = &mut self.layout {
                let forms: Vec<Span> = self.tree.top.iter().map(|at| self.tree.nodes[*at].span).collect();
                if let Some((d, kept)) = layout.stray(self.text, c, start, &forms) {
                    self.errors.push(*d);
                    self.tree.top.truncate(kept);
                }
            }
            return;
        };
        let form = if open.bracket == '(' { Form::List(open.kids) } else { Form::Bracket(open.kids) };
        if (open.bracket == '(') != (c == ')') {
            self.unbalanced = true;
            let message = format!("unbalanced text: `{}` is closed by `{c}`", open.bracket);
            let d = Diagnostic::user(message).at(Span::new(start, start + 1), "closed here");
            self.errors.push(*d.at(Span::new(open.at, open.at + 1), "opened here"));
        }
        self.put(form, open.at);
    }

    fn quoted(&mut self, start: usize) -> Result<String> {
        let open = |me: &mut Self| {
            me.endless = true;
            me.at = me.text.len();
            Diagnostic::user("this text is never closed").at(Span::new(start, start + 1), "expected `\"` later")
        };
        let (mut out, mut wrong) = (String::new(), None);
        loop {
            let Some(c) = self.peek() else { return Err(open(self)) };
            self.at += c.len_utf8();
            match c {
                '"' => return wrong.map_or(Ok(out), Err),
                '\\' => {
                    let from = self.at - 1;
                    let Some(escaped) = self.escape() else { return Err(open(self)) };
                    match escaped {
                        Ok(c) => out.extend(c),
                        Err(()) => {
                            let here = Span::new(from, self.at);
                            let known = r#"known are \n \t \r \a \b \f \v \\ \" \' \&, \65 and \u{41}"#;
                            let d = || Diagnostic::user("unknown escape in a text").at(here, "here").note(known);
                            wrong.get_or_insert_with(d);
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
        Lit::number(word).map(Atom::Number).map_err(|why| {
            let d = Diagnostic::user(format!("{}: `{word}`", why.what)).at(Span::new(start, self.at), "here");
            why.notes.into_iter().fold(d, Diagnostic::note)
        })
    }
}
