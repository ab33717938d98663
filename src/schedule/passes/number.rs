//! Statements as texts over the numbers of values, for [`super::share`]: equal texts do the same.

use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Buf, Expr, Stmt, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// A piece of the text of a statement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Token {
    Word(&'static str),
    Lit(Lit),
    Op(Op, Scalar),
    Cast(Scalar),
    /// A value from before the statement.
    Value(u32),
    /// A variable that the statement declares, or that changes, by its order.
    Var(u32),
    /// A buffer, by its order.
    Buf(u32),
    /// The content of a buffer before the statement.
    Content(u32),
    /// A form of vectors, and how many lanes they have.
    Lanes(&'static str, u32),
}

/// A place that a statement changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    Var(Var),
    Buf(Buf),
}

/// The numbers of all values and contents.
#[derive(Default)]
pub(super) struct Numbers {
    next: u32,
    /// The values of variables.
    pub(super) vars: FxHashMap<Var, u32>,
    /// The contents of buffers.
    pub(super) bufs: FxHashMap<Buf, u32>,
    /// Variables that change.
    pub(super) mutable: FxHashSet<Var>,
    /// The same text has the same number, also where nothing in scope has it.
    numbers: FxHashMap<Vec<Token>, u32>,
}

impl Numbers {
    /// A number that nothing has.
    pub(super) fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// The number of a text: the same for the same text.
    pub(super) fn number(&mut self, key: Vec<Token>) -> u32 {
        if let Some(n) = self.numbers.get(&key) {
            return *n;
        }
        let n = self.fresh();
        self.numbers.insert(key, n);
        n
    }

    /// An empty text.
    pub(super) fn text(&mut self) -> Text<'_> {
        Text {
            numbers: self,
            tokens: vec![],
            vars: FxHashMap::default(),
            bufs: FxHashMap::default(),
            own: FxHashSet::default(),
            changed: vec![],
            odd: false,
        }
    }
}

/// The text of a statement over the numbers of values from before it.
pub(super) struct Text<'a> {
    numbers: &'a mut Numbers,
    pub(super) tokens: Vec<Token>,
    vars: FxHashMap<Var, u32>,
    bufs: FxHashMap<Buf, u32>,
    /// What the statement declares itself.
    own: FxHashSet<Place>,
    /// What the statement changes of what was there before, in order.
    pub(super) changed: Vec<Place>,
    /// Whether it has parts that are never the same.
    pub(super) odd: bool,
}

impl Text<'_> {
    fn declare(&mut self, v: Var) {
        let k = self.vars.len() as u32;
        self.vars.insert(v, k);
        self.own.insert(Place::Var(v));
    }

    fn change(&mut self, place: Place) {
        if !self.own.contains(&place) && !self.changed.contains(&place) {
            self.changed.push(place);
        }
    }

    fn var(&mut self, v: Var) {
        if let Some(k) = self.vars.get(&v) {
            self.tokens.push(Token::Var(*k));
            return;
        }
        // Two variables with one value are not the same where the statement changes one of them.
        if self.numbers.mutable.contains(&v) {
            let k = self.vars.len() as u32;
            self.vars.insert(v, k);
            self.tokens.push(Token::Var(k));
        }
        let value = self.numbers.vars.get(&v).copied().unwrap_or(u32::MAX);
        self.odd |= value == u32::MAX;
        self.tokens.push(Token::Value(value));
    }

    fn buf(&mut self, b: Buf) {
        if let Some(k) = self.bufs.get(&b) {
            self.tokens.push(Token::Buf(*k));
            return;
        }
        let k = self.bufs.len() as u32;
        self.bufs.insert(b, k);
        let content = self.numbers.bufs.get(&b).copied().unwrap_or(u32::MAX);
        self.odd |= content == u32::MAX;
        self.tokens.extend([Token::Buf(k), Token::Content(content)]);
    }

    /// The number of an expression over values from before the statement, which no name hides then.
    pub(super) fn value(&mut self, e: &Expr) -> Option<u32> {
        let key = match e {
            Expr::Lit(l) => vec![Token::Lit(*l)],
            Expr::Var(v) if self.vars.contains_key(v) || self.numbers.mutable.contains(v) => return None,
            Expr::Var(v) => return self.numbers.vars.get(v).copied(),
            Expr::Op(op, ty, _) => vec![Token::Op(*op, *ty)],
            Expr::Cast(s, _) => vec![Token::Cast(*s)],
            Expr::Cond(_) => vec![Token::Word("cond")],
            Expr::Ramp(_, n) => vec![Token::Lanes("ramp", *n)],
            Expr::Broadcast(_, n) => vec![Token::Lanes("all", *n)],
            Expr::PrefixMask(_, n) => vec![Token::Lanes("first", *n)],
            Expr::Extract(_) => vec![Token::Word("lane")],
            Expr::All(_) => vec![Token::Word("every")],
            // Reads depend on contents, and what is computed lane by lane has variables of its own.
            _ => return None,
        };
        let kids = e.kids().iter().map(|k| self.value(k).map(Token::Value)).collect::<Option<Vec<_>>>()?;
        Some(self.numbers.number([key, kids].concat()))
    }

    pub(super) fn expr(&mut self, e: &Expr) {
        if let Some(n) = self.value(e) {
            self.tokens.push(Token::Value(n));
            return;
        }
        match e {
            Expr::Lit(l) => self.tokens.push(Token::Lit(*l)),
            Expr::Var(v) => self.var(*v),
            Expr::Load(b, at) => {
                self.tokens.push(Token::Word("load"));
                self.buf(*b);
                self.expr(at);
            }
            Expr::Op(op, ty, args) => {
                self.tokens.push(Token::Op(*op, *ty));
                args.iter().for_each(|a| self.expr(a));
            }
            Expr::Cast(s, e) => {
                self.tokens.push(Token::Cast(*s));
                self.expr(e);
            }
            Expr::Cond(parts) => {
                self.tokens.push(Token::Word("cond"));
                parts.iter().for_each(|a| self.expr(a));
            }
            Expr::MaskedLoad(b, parts) => {
                self.tokens.push(Token::Word("masked"));
                self.buf(*b);
                parts.iter().for_each(|e| self.expr(e));
            }
            Expr::Ramp(_, n) => self.lanes("ramp", *n, e),
            Expr::Broadcast(_, n) => self.lanes("all", *n, e),
            Expr::PrefixMask(_, n) => self.lanes("first", *n, e),
            Expr::Extract(_) => self.lanes("lane", 1, e),
            Expr::All(_) => self.lanes("every", 1, e),
            Expr::PerLane(..) => self.odd = true,
        }
    }

    fn lanes(&mut self, form: &'static str, n: u32, e: &Expr) {
        self.tokens.push(Token::Lanes(form, n));
        e.kids().iter().for_each(|k| self.expr(k));
    }

    fn block(&mut self, stmts: &[Stmt]) {
        self.tokens.push(Token::Word("{"));
        stmts.iter().for_each(|s| self.stmt(s));
        self.tokens.push(Token::Word("}"));
    }

    pub(super) fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                self.tokens.push(Token::Word("let"));
                self.expr(e);
                self.declare(*v);
            }
            Stmt::Set(v, e) => {
                self.tokens.push(Token::Word("set"));
                self.change(Place::Var(*v));
                self.var(*v);
                self.expr(e);
            }
            Stmt::Alloc(b, dims) => {
                self.tokens.push(Token::Word("alloc"));
                let k = self.bufs.len() as u32;
                self.bufs.insert(*b, k);
                self.own.insert(Place::Buf(*b));
                dims.iter().for_each(|e| self.expr(e));
            }
            Stmt::Store(b, at, e) => {
                self.tokens.push(Token::Word("store"));
                self.change(Place::Buf(*b));
                self.buf(*b);
                self.expr(at);
                self.expr(e);
            }
            Stmt::Check(ok, ..) => {
                self.tokens.push(Token::Word("check"));
                self.expr(ok);
            }
            Stmt::For(l) => {
                self.tokens.push(Token::Word("for"));
                self.expr(&l.from);
                self.expr(&l.to);
                self.declare(l.var);
                self.block(&l.body);
            }
            Stmt::If(c, a, b) => {
                self.tokens.push(Token::Word("if"));
                self.expr(c);
                self.block(a);
                self.block(b);
            }
            // Memory is given back at the same places, whatever marks are called.
            Stmt::Mark(_) | Stmt::Reset(_) => self.tokens.push(Token::Word("mark")),
            Stmt::Call(..) | Stmt::Print(..) | Stmt::Leave(..) => self.odd = true,
            Stmt::Point(b, ..) => {
                self.change(Place::Buf(*b));
                self.odd = true;
            }
            Stmt::SetLane(v, ..) => {
                self.change(Place::Var(*v));
                self.odd = true;
            }
            Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => {
                self.change(Place::Buf(*b));
                self.odd = true;
            }
        }
    }
}
