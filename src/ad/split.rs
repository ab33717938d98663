//! Loops whose bodies bind what takes work become two: one makes a table of the bound values, the
//! other reads it. So the way back reads what the way forth has made, instead of making it again.
//!
//! Only tables that are not ragged are made: the extents of the loop and the sizes of the value have
//! to be known from the parameters. Lets within operands come to stand around the whole. The values stay the
//! same. It must not know what a derivative is.

use super::contribution::shift_above;
use super::emit::{Emit, Val};
use super::empty_sums::{rows_of_none, unless_none};
use super::flow::has_floats;
use super::nested::Nested;
use crate::ir::op::Class;
use crate::ir::{Fun, Head, Id, Monoid, Terms, Ty, deep};
use crate::types::shape::{lowered, shape, shape_as_made, sizes_of_parts};
use rustc_hash::FxHashMap;

/// A variable of the source.
struct Entry {
    val: Val,
    /// The sizes of its axes, where they are known.
    sizes: Vec<Val>,
}

struct Split<'t> {
    e: Emit<'t>,
    /// Normal bodies of functions of numbers, over their parameters.
    scalars: &'t FxHashMap<Fun, Id>,
    env: Vec<Entry>,
    params: usize,
    /// How many folds and scans are open.
    sequences: usize,
    /// Whether tables are made.
    tables: bool,
    /// How deep conditions are nested in terms of the source.
    nested: Nested,
    memo: FxHashMap<(Id, usize), Val>,
    /// What was noted, and what it took the place of.
    log: Vec<((Id, usize), Option<Val>)>,
}

/// A normal body over parameters of these types with its loops split. Folds and scans get the bodies of the
/// functions of numbers that they call, as far as those are known.
pub fn split(terms: &mut Terms, scalars: &FxHashMap<Fun, Id>, params: &[Ty], body: Id) -> Id {
    walked(terms, scalars, params, body, true)
}

/// A normal body with the lets within operands around the whole, and its loops as they are.
pub fn lifted(terms: &mut Terms, params: &[Ty], body: Id) -> Id {
    walked(terms, &FxHashMap::default(), params, body, false)
}

fn walked(terms: &mut Terms, scalars: &FxHashMap<Fun, Id>, params: &[Ty], body: Id, tables: bool) -> Id {
    let (env, memo, log, nested) = Default::default();
    let (e, n, sequences) = (Emit::new(terms), params.len(), 0);
    let mut s = Split { e, scalars, env, params: n, sequences, tables, nested, memo, log };
    params.iter().for_each(|ty| s.enter(*ty, vec![]));
    let made = s.value(body);
    let made = s.e.now(made);
    s.e.close(params.len(), made)
}

impl Split<'_> {
    fn enter(&mut self, ty: Ty, sizes: Vec<Val>) {
        let val = self.e.enter(ty);
        self.env.push(Entry { val, sizes });
    }

    /// The values made since the mark are out of scope.
    fn forget(&mut self, mark: usize) {
        for (key, before) in self.log.drain(mark..).rev() {
            match before {
                Some(val) => self.memo.insert(key, val),
                None => self.memo.remove(&key),
            };
        }
    }

    /// Until that is forgotten, a term of the source has a value.
    fn note(&mut self, id: Id, val: Val) {
        let key = (id, self.env.len());
        let before = self.memo.insert(key, val);
        self.log.push((key, before));
    }

    /// A term of the source; the lets that it binds stay open.
    fn value(&mut self, id: Id) -> Val {
        let key = (id, self.env.len());
        if let Some(val) = self.memo.get(&key) {
            return *val;
        }
        let made = deep(|| self.made(id));
        self.e.terms.keep_hints(id, made);
        // The steps of folds and scans are not shared by rewriting, so that what is costly gets a name here.
        let val = match self.e.terms.head(made) {
            // A nest would be moved by each let that comes after it.
            Head::If if self.nested.is_deep(self.e.terms, id) => self.e.bind(made),
            Head::Op(op) if self.tables && self.sequences > 0 && op.row().class == Class::Transcendental => {
                self.e.bind_always(made)
            }
            Head::Reduce(..) if self.tables && self.sequences > 0 && has_floats(self.e.ty(made)) => {
                self.e.bind_always(made)
            }
            // A fold runs once, for its value and for the way back, where it has a name.
            Head::Fold | Head::Scan if self.tables => self.e.bind_always(made),
            _ => self.e.val(made),
        };
        self.note(id, val);
        val
    }

    fn values(&mut self, ids: &[Id]) -> Vec<Id> {
        let made: Vec<Val> = ids.iter().map(|k| self.value(*k)).collect();
        made.into_iter().map(|v| self.e.now(v)).collect()
    }

    fn made(&mut self, id: Id) -> Id {
        let (head, kids) = (self.e.terms.head(id), self.e.terms.kids(id).to_vec());
        match head {
            Head::Var(i, _) => {
                let at = self.env.len() - 1 - i as usize;
                self.e.now(self.env[at].val)
            }
            Head::Const(_) => id,
            Head::Let => self.bound(kids[0], kids[1]),
            Head::Size(k) => {
                if let Head::Var(i, _) = self.e.terms.head(kids[0]) {
                    let at = self.env.len() - 1 - i as usize;
                    if let Some(size) = self.env[at].sizes.get(k).copied() {
                        return self.e.now(size);
                    }
                }
                let kids = self.values(&kids);
                self.e.put(head, kids)
            }
            Head::If => {
                let c = self.value(kids[0]);
                let arms = [self.alone(kids[1]), self.alone(kids[2])];
                let c = self.e.now(c);
                self.e.put(head, [c, arms[0], arms[1]])
            }
            Head::Call(f) if self.sequences > 0 && self.scalars.contains_key(&f) => {
                self.called(self.scalars[&f], &kids)
            }
            _ if head.binds(kids.len().saturating_sub(1), kids.len()) > 0 => self.looped(id, head, &kids),
            _ => {
                let kids = self.values(&kids);
                self.e.put(head, kids)
            }
        }
    }

    fn bound(&mut self, value: Id, body: Id) -> Id {
        let made = self.value(value);
        let made = self.e.now(made);
        // The name of a size that is known from the parameters would hide that.
        let known = matches!(self.e.terms.head(made), Head::Size(_)) && self.known(made, self.e.depth());
        let val = if known { self.e.val(made) } else { self.e.bind(made) };
        // From here on the value has a name: a size that only the value itself can tell is read of that.
        self.note(value, val);
        let sizes = shape_as_made(self.e.terms, value);
        let mut sizes: Vec<Val> = sizes.into_iter().map(|s| self.value(s)).collect();
        self.e.only_safe(self.e.ty(value), &mut sizes);
        let mark = self.log.len();
        self.env.push(Entry { val, sizes });
        let out = self.value(body);
        self.env.pop();
        self.forget(mark);
        self.e.now(out)
    }

    /// A call as the body of its function.
    fn called(&mut self, body: Id, args: &[Id]) -> Id {
        let args: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
        let (mark, scope) = (self.log.len(), self.env.len());
        for arg in args {
            let arg = self.e.now(arg);
            let val = self.e.bind(arg);
            self.env.push(Entry { val, sizes: vec![] });
        }
        let out = self.value(body);
        self.env.truncate(scope);
        self.forget(mark);
        self.e.now(out)
    }

    /// A term with its lets, which may not be evaluated.
    fn alone(&mut self, id: Id) -> Id {
        let (outer, mark) = (self.e.depth(), self.log.len());
        let made = self.value(id);
        let made = self.e.now(made);
        self.forget(mark);
        if !self.nested.is_deep(self.e.terms, id) {
            return self.e.close(outer, made);
        }
        // What stands deep would be moved out of all that stands around it.
        let made = self.e.as_nested(outer, made);
        self.e.leave(outer);
        made
    }

    /// The sizes of the variables that a fold or scan binds: a state keeps those of the first.
    fn bound_sizes(&mut self, head: Head, kids: &[Id]) -> [Vec<Val>; 2] {
        let mut told = |of: Id, from: usize| {
            let all = shape_as_made(self.e.terms, of);
            let made = |s: &Id| self.e.terms.kids(*s).contains(&of) && !matches!(self.e.terms.head(of), Head::Var(..));
            if all.iter().any(made) {
                return vec![];
            }
            all.into_iter().skip(from).map(|s| self.value(s)).collect()
        };
        match head {
            Head::Scan => [told(kids[0], 0), vec![]],
            Head::Fold => [told(kids[0], 0), told(kids[1], 1)],
            _ => Default::default(),
        }
    }

    fn looped(&mut self, id: Id, head: Head, kids: &[Id]) -> Id {
        let nothing = rows_of_none(self.e.terms, id);
        let nothing: Option<Vec<Val>> = nothing.map(|all| all.into_iter().map(|s| self.value(s)).collect());
        let sizes = self.bound_sizes(head, kids);
        let (last, first) = (kids[kids.len() - 1], &kids[..kids.len() - 1]);
        let first = self.values(first);
        let (outer, scope) = (self.e.depth(), self.env.len());
        let tys: Vec<Ty> = first.iter().map(|k| self.e.ty(*k)).collect();
        let mut sizes = sizes.into_iter();
        head.bound_tys(&tys).into_iter().for_each(|ty| self.enter(ty, sizes.next().unwrap_or_default()));
        let inside = self.e.depth();
        let mark = self.log.len();
        let sequence = usize::from(matches!(head, Head::Fold | Head::Scan));
        self.sequences += sequence;
        let body = self.value(last);
        let mut body = self.e.now(body);
        if self.e.depth() > inside
            && matches!(self.e.terms.head(body), Head::Var(0, _))
            && let Some(value) = self.e.let_value(self.e.depth() - 1)
            && (self.sequences > 0 || matches!(self.e.terms.head(value), Head::Fold | Head::Scan))
            && !(matches!(head, Head::Reduce(Monoid::Add, _)) && self.e.ty(value).as_scalar().is_some())
        {
            // What the body comes to is known with its loop, but for the numbers that a sum adds.
            self.e.leave(self.e.depth() - 1);
            body = value;
        }
        self.sequences -= sequence;
        let body = self.e.close(inside, body);
        self.forget(mark);
        self.env.truncate(scope);
        self.e.leave(outer);
        let extents: Vec<Val> = first.iter().map(|n| self.e.val(*n)).collect();
        let made = match head {
            Head::Build(_) | Head::Reduce(Monoid::Add, _) if self.tables => self.apart(head, first, body),
            _ => self.e.put(head, first.into_iter().chain([body])),
        };
        match nothing {
            Some(sizes) => unless_none(&mut self.e, &extents, made, &sizes),
            None => made,
        }
    }

    /// The loop with tables for what its body binds; the tables are bound around it.
    fn apart(&mut self, head: Head, mut extents: Vec<Id>, mut body: Id) -> Id {
        let d = extents.len();
        // Lets of the body that stay, the outermost first.
        let mut kept: Vec<Id> = vec![];
        let known = extents.iter().all(|n| self.known(*n, self.e.depth()));
        while known && self.e.terms.head(body) == Head::Let {
            let (value, rest) = (self.e.terms.kids(body)[0], self.e.terms.kids(body)[1]);
            if !self.worth(value, self.e.depth() + d + kept.len()) {
                kept.push(value);
                body = rest;
                continue;
            }
            let each = self.with_lets(&kept, value);
            let table = self.e.put(Head::Build(d), extents.iter().copied().chain([each]));
            let table = self.e.bind(table);
            let ty = self.e.ty(table.id);
            extents.iter_mut().for_each(|n| *n = self.e.terms.shift(*n, 1));
            for (k, v) in kept.iter_mut().enumerate() {
                *v = shift_above(self.e.terms, *v, d + k, 1);
            }
            let loops = kept.len() + d;
            let mut at: Vec<Id> = (0..d).map(|k| self.e.terms.var((loops - 1 - k) as u32, Ty::int())).collect();
            at.push(self.e.terms.var(loops as u32, ty));
            let element = self.e.put(Head::Index(d), at);
            body = self.e.terms.map_free(rest, 0, &mut |t, i, ty, under| match i as usize {
                0 => t.shift(element, under),
                i if i <= loops => t.var((i - 1 + under) as u32, ty),
                i => t.var((i + under) as u32, ty),
            });
        }
        let body = self.with_lets(&kept, body);
        self.e.put(head, extents.into_iter().chain([body]))
    }

    /// A term under lets with those that it needs.
    fn with_lets(&mut self, lets: &[Id], id: Id) -> Id {
        lets.iter().rev().fold(id, |out, value| match lowered(self.e.terms, out, 1) {
            Some(out) => out,
            None => self.e.put(Head::Let, [*value, out]),
        })
    }

    /// Whether a term says a size by parameters alone.
    fn known(&self, id: Id, depth: usize) -> bool {
        !self.e.terms.variables(id).below(depth - self.params)
    }

    /// Whether a value takes work, and a table of it would not be ragged.
    fn worth(&mut self, value: Id, depth: usize) -> bool {
        let sizes = if takes_work(self.e.terms, value) {
            Some(shape(self.e.terms, value))
        } else if self.e.terms.head(value) == Head::Fold && has_floats(self.e.ty(value)) {
            // A state of several parts.
            sizes_of_parts(self.e.terms, value)
        } else {
            None
        };
        sizes.is_some_and(|all| all.into_iter().all(|s| self.known(s, depth)))
    }
}

/// Whether a value takes work, and tables of it are tables of numbers.
pub fn takes_work(terms: &Terms, value: Id) -> bool {
    let ty = terms.ty(value);
    let mut leaf = ty;
    while let Some((_, inner)) = leaf.as_tensor() {
        leaf = inner;
    }
    let costly = |id: Id| match terms.head(id) {
        Head::Op(op) => op.row().class == Class::Transcendental,
        head => matches!(head, Head::Reduce(..) | Head::Fold | Head::Scan | Head::Call(_)),
    };
    has_floats(ty) && leaf.as_scalar().is_some() && terms.reachable(value).into_iter().any(costly)
}
