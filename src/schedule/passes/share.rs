//! What a function computes twice becomes computed once: value numbering of whole loops.
//!
//! Every variable has the number of its value, every buffer that of its content. A statement whose text is that of an
//! earlier one, over the same numbers, gives the same values again: it goes, and its names become those of the earlier
//! one. Where it could have failed, the earlier one would have failed before.

use super::number::{Numbers, Place, Text, Token};
use crate::nest::{Arg, Buf, Expr, Func, Loop, Slot, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// What an earlier statement made.
#[derive(Clone, Debug, Default)]
struct Made {
    vars: Vec<(Var, u32)>,
    bufs: Vec<(Buf, u32)>,
}

#[derive(Default)]
struct Share {
    n: Numbers,
    made: FxHashMap<Vec<Token>, Made>,
    /// Keys of `made` in the order of their making, for the end of their scope.
    log: Vec<Vec<Token>>,
    /// Buffers that hold memory, in order.
    alive: Vec<Buf>,
    marks: FxHashMap<u32, usize>,
    /// Names that stand for earlier ones.
    same_var: FxHashMap<Var, Var>,
    same_buf: FxHashMap<Buf, Buf>,
    /// Names that stand for others, in the order of their making, for the end of their scope: where a loop was cut, its parts
    /// declare the same names.
    renamed: Vec<Place>,
    /// How many statements change a place, from here on.
    changes: FxHashMap<Place, usize>,
}

/// Functions of more statements are left as they are: texts of loops in loops repeat their statements.
const MAX_STMTS: usize = 20_000;

/// Computes everything once.
pub fn share(func: &mut Func) {
    if walk::count(&func.body) > MAX_STMTS {
        return;
    }
    let mut share = Share::default();
    for s in &func.params {
        share.slot(*s);
    }
    count(&func.body, &mut share.changes);
    share.block(&mut func.body);
    let (vars, bufs) = (share.same_var, share.same_buf);
    let rename = Rename { vars: &vars, bufs: &bufs };
    func.results.iter_mut().for_each(|r| rename.arg(r));
}

/// How often places are changed.
fn count(stmts: &[Stmt], out: &mut FxHashMap<Place, usize>) {
    walk::visit(stmts, &mut |s| match s {
        Stmt::Set(v, _) | Stmt::SetLane(v, ..) => *out.entry(Place::Var(*v)).or_default() += 1,
        Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) | Stmt::Point(b, ..) => {
            *out.entry(Place::Buf(*b)).or_default() += 1;
        }
        _ => {}
    });
}

/// Puts earlier names in the place of later ones.
struct Rename<'a> {
    vars: &'a FxHashMap<Var, Var>,
    bufs: &'a FxHashMap<Buf, Buf>,
}

impl Rename<'_> {
    fn buf(&self, b: &mut Buf) {
        *b = self.bufs.get(b).copied().unwrap_or(*b);
    }

    fn node(&self, e: &mut Expr) {
        match e {
            Expr::Var(v) => *v = self.vars.get(v).copied().unwrap_or(*v),
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) => self.buf(b),
            _ => {}
        }
    }

    fn arg(&self, a: &mut Arg) {
        if let Arg::Data(b, _) = a {
            self.buf(b);
        }
        a.expr_mut().map(&mut |e| self.node(e));
    }

    fn stmt(&self, s: &mut Stmt) {
        if let Stmt::Call(_, args, _) | Stmt::Print(_, args, _) = s {
            args.iter_mut().for_each(|a| self.arg(a));
            return;
        }
        if let Stmt::Point(_, of, _) = s {
            self.buf(of);
        }
        s.exprs_mut().into_iter().for_each(|e| e.map(&mut |e| self.node(e)));
        s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| self.stmt(s)));
    }
}

impl Share {
    fn slot(&mut self, s: Slot) {
        let n = self.n.fresh();
        match s {
            Slot::Scalar(v) | Slot::Size(v) => drop(self.n.vars.insert(v, n)),
            Slot::Data(b) => drop(self.n.bufs.insert(b, n)),
        }
    }

    fn value(&mut self, what: &'static str, e: &Expr) -> (Vec<Token>, u32) {
        let mut text = self.n.text();
        let known = text.value(e);
        text.tokens.push(Token::Word(what));
        text.expr(e);
        let (key, odd) = (text.tokens, text.odd);
        let n = match known {
            Some(n) => n,
            None if odd => self.n.fresh(),
            None => self.n.number(key.clone()),
        };
        (if odd { vec![] } else { key }, n)
    }

    fn record(&mut self, key: Vec<Token>, made: Made) {
        self.made.insert(key.clone(), made);
        self.log.push(key);
    }

    /// Rewrites the statements of a block.
    fn block(&mut self, stmts: &mut Vec<Stmt>) {
        let (log, alive) = (self.log.len(), self.alive.len());
        stmts.retain_mut(|s| {
            let rename = Rename { vars: &self.same_var, bufs: &self.same_buf };
            rename.stmt(s);
            self.keeps(s)
        });
        for key in self.log.split_off(log) {
            self.made.remove(&key);
        }
        self.alive.truncate(alive);
    }

    /// Numbers a statement; says whether it stays.
    fn keeps(&mut self, s: &mut Stmt) -> bool {
        match s {
            Stmt::Let(v, e) => {
                let (key, n) = self.value("let", e);
                self.n.vars.insert(*v, n);
                if key.is_empty() {
                    return true;
                }
                if let Some(old) = self.made.get(&key).and_then(|m| m.vars.first()) {
                    self.same_var.insert(*v, old.0);
                    self.renamed.push(Place::Var(*v));
                    return false;
                }
                // A variable that changes later is no name for what it holds now.
                self.record(key, Made { vars: vec![(*v, n)], bufs: vec![] });
                true
            }
            Stmt::Mut(v, e) => {
                let n = self.value("let", e).1;
                self.n.vars.insert(*v, n);
                self.n.mutable.insert(*v);
                true
            }
            Stmt::Alloc(b, dims) => {
                let mut text = self.n.text();
                text.tokens.push(Token::Word("alloc"));
                dims.iter().for_each(|e| text.expr(e));
                let key = std::mem::take(&mut text.tokens);
                let n = self.n.number(key);
                self.n.bufs.insert(*b, n);
                self.alive.push(*b);
                true
            }
            Stmt::Check(ok, ..) => {
                let (key, n) = self.value("check", ok);
                if !key.is_empty() && self.made.contains_key(&key) {
                    return false;
                }
                if !key.is_empty() {
                    self.record(key, Made { vars: vec![], bufs: vec![] });
                }
                n > 0
            }
            Stmt::Mark(m) => {
                self.marks.insert(*m, self.alive.len());
                true
            }
            Stmt::Reset(m) => {
                let from = self.marks.get(m).copied().unwrap_or(0);
                self.alive.truncate(from);
                true
            }
            Stmt::Call(_, _, slots) => {
                slots.iter().for_each(|s| self.slot(*s));
                true
            }
            Stmt::Print(_, _, v) => {
                self.slot(Slot::Scalar(*v));
                true
            }
            Stmt::Leave(..) => true,
            Stmt::Set(..)
            | Stmt::SetLane(..)
            | Stmt::Store(..)
            | Stmt::MaskedStore(..)
            | Stmt::StoreLane(..)
            | Stmt::Point(..)
            | Stmt::For(_)
            | Stmt::If(..) => self.change(s),
        }
    }

    fn changes_left(&self, place: Place) -> usize {
        self.changes.get(&place).copied().unwrap_or(0)
    }

    /// A statement that changes variables and buffers.
    fn change(&mut self, s: &mut Stmt) -> bool {
        let mut text = self.n.text();
        text.stmt(s);
        let Text { tokens: key, changed: places, odd, .. } = text;
        let mut own = FxHashMap::default();
        count(std::slice::from_ref(s), &mut own);
        for (place, n) in own {
            if let Some(left) = self.changes.get_mut(&place) {
                *left = left.saturating_sub(n);
            }
        }
        if !odd && self.is_known(&key, &places) {
            self.become_known(&key, &places);
            return false;
        }
        self.inside(s, &places);
        let mut made = Made::default();
        for (k, place) in places.iter().enumerate() {
            let mut part = key.clone();
            part.extend([Token::Word("gives"), Token::Var(k as u32)]);
            let n = if odd { self.n.fresh() } else { self.n.number(part) };
            match place {
                Place::Var(v) => {
                    self.n.vars.insert(*v, n);
                    made.vars.push((*v, n));
                }
                Place::Buf(b) => {
                    self.n.bufs.insert(*b, n);
                    made.bufs.push((*b, n));
                }
            }
        }
        if !odd {
            self.record(key, made);
        }
        true
    }

    /// Whether an earlier statement made the same, which is still there, and neither changes any more.
    fn is_known(&self, key: &[Token], places: &[Place]) -> bool {
        let Some(old) = self.made.get(key) else { return false };
        let vars =
            old.vars.iter().all(|(v, n)| self.n.vars.get(v) == Some(n) && self.changes_left(Place::Var(*v)) == 0);
        let bufs = old.bufs.iter().all(|(b, n)| {
            self.n.bufs.get(b) == Some(n) && self.changes_left(Place::Buf(*b)) == 0 && self.alive.contains(b)
        });
        vars && bufs && places.iter().all(|p| self.changes_left(*p) == 0)
    }

    fn become_known(&mut self, key: &[Token], places: &[Place]) {
        let Some(old) = self.made.get(key).cloned() else { return };
        self.renamed.extend(places);
        let (mut vars, mut bufs) = (old.vars.into_iter(), old.bufs.into_iter());
        for place in places {
            match place {
                Place::Var(v) => {
                    if let Some((old, n)) = vars.next() {
                        self.same_var.insert(*v, old);
                        self.n.vars.insert(*v, n);
                    }
                }
                Place::Buf(b) => {
                    if let Some((old, n)) = bufs.next() {
                        self.same_buf.insert(*b, old);
                        self.n.bufs.insert(*b, n);
                    }
                }
            }
        }
    }

    /// Shares inside of a loop or a condition. What it changes has another value each time.
    fn inside(&mut self, s: &mut Stmt, places: &[Place]) {
        if !matches!(s, Stmt::For(_) | Stmt::If(..)) {
            return;
        }
        let before: Vec<(Place, Option<u32>)> = places.iter().map(|p| (*p, self.get(*p))).collect();
        for p in places {
            let n = self.n.fresh();
            self.put(*p, Some(n));
        }
        match s {
            Stmt::For(l) => {
                let Loop { var, body, .. } = &mut **l;
                let n = self.n.fresh();
                self.n.vars.insert(*var, n);
                self.nested(body);
            }
            Stmt::If(_, a, b) => {
                self.nested(a);
                for p in places {
                    let n = self.n.fresh();
                    self.put(*p, Some(n));
                }
                self.nested(b);
            }
            _ => {}
        }
        for (p, n) in before {
            self.put(p, n);
        }
    }

    /// A block that may run again: all it changes may change again.
    fn nested(&mut self, body: &mut Vec<Stmt>) {
        let mut inner = FxHashMap::default();
        count(body, &mut inner);
        let declared = declared(body);
        let before: Vec<(Place, Option<usize>)> = inner.keys().map(|p| (*p, self.changes.get(p).copied())).collect();
        for (p, n) in inner {
            // What the block itself declares is new each time, so only its own changes count.
            *self.changes.entry(p).or_default() += if declared.contains(&p) { n } else { 2 * n };
        }
        let renamed = self.renamed.len();
        self.block(body);
        for p in self.renamed.split_off(renamed) {
            match p {
                Place::Var(v) => drop(self.same_var.remove(&v)),
                Place::Buf(b) => drop(self.same_buf.remove(&b)),
            }
        }
        for (p, n) in before {
            self.changes.insert(p, n.unwrap_or(0));
        }
    }

    fn get(&self, p: Place) -> Option<u32> {
        match p {
            Place::Var(v) => self.n.vars.get(&v).copied(),
            Place::Buf(b) => self.n.bufs.get(&b).copied(),
        }
    }

    fn put(&mut self, p: Place, n: Option<u32>) {
        match (p, n) {
            (Place::Var(v), Some(n)) => drop(self.n.vars.insert(v, n)),
            (Place::Buf(b), Some(n)) => drop(self.n.bufs.insert(b, n)),
            (Place::Var(v), None) => drop(self.n.vars.remove(&v)),
            (Place::Buf(b), None) => drop(self.n.bufs.remove(&b)),
        }
    }
}

/// The places that a block declares, at any depth.
fn declared(stmts: &[Stmt]) -> FxHashSet<Place> {
    let mut out = FxHashSet::default();
    walk::visit(stmts, &mut |s| match s {
        Stmt::Mut(v, _) => drop(out.insert(Place::Var(*v))),
        Stmt::Alloc(b, _) => drop(out.insert(Place::Buf(*b))),
        _ => {}
    });
    out
}
