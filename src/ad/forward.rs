//! Forward mode: a body becomes its tangent, from the tangents of its variables.
//!
//! A tangent that is zero is not made, until a place needs one in its shape.

use super::emit::Val;
use super::empty_sums::{rows_of_none, unless_none};
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::sweep::sweep;
use super::walk::Walk;
use super::{Mode, Request};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Fun, Head, Id, Monoid, Op, Scalar, Ty, deep};

impl Walk<'_, '_> {
    /// The tangent of a term of the source, zero or not.
    ///
    /// # Errors
    /// An operation without derivative, a call of a function that has none.
    pub fn tangent_or_zero(&mut self, id: Id) -> Result<Id> {
        match self.tangent(id)? {
            Some(v) => Ok(self.e.now(v)),
            None => {
                let like = self.value(id);
                let sizes = self.sizes(id);
                let like = self.e.now(like);
                let sizes: Vec<Id> = sizes.into_iter().map(|s| self.e.now(s)).collect();
                Ok(self.zero(like, &sizes))
            }
        }
    }

    /// The tangent of a term of the source, bound by a let; nothing where it is zero.
    fn tangent(&mut self, id: Id) -> Result<Option<Val>> {
        // Of a let it is asked where its body ends: a chain of lets would be looked through at each.
        if self.e.terms.head(id) != Head::Let && !self.active(id) {
            return Ok(None);
        }
        let made = deep(|| self.tangent_of(id))?;
        if let Some(value) = made.and_then(|v| self.e.bound_value(v)) {
            self.e.terms.called_derivative_of(value, id);
        }
        Ok(made)
    }

    fn bound(&mut self, id: Id) -> Result<Option<Val>> {
        Ok(Some(self.e.bind(id)))
    }

    /// Work under a let.
    fn with_let<R>(&mut self, id: Id, inside: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let value = self.e.terms.kids(id)[0];
        // Tangents come first: those of deep nests bring the values along.
        let change = if self.active_let(id) { self.tangent(value)? } else { None };
        let mut entry = self.entry(value, Active::No);
        if let Some(v) = change {
            entry.active = Active::Tangent(v);
        }
        let mark = self.mark();
        self.env.push(entry);
        let out = inside(self);
        self.env.pop();
        self.forget(mark);
        out
    }

    fn tangent_of(&mut self, id: Id) -> Result<Option<Val>> {
        let (head, kids) = (self.e.terms.head(id), self.e.terms.kids(id).to_vec());
        match head {
            Head::Var(i, _) => Ok(match self.env[self.env.len() - 1 - i as usize].active {
                Active::Tangent(v) => Some(v),
                Active::No | Active::Adjoint(_) => None,
            }),
            Head::Let => self.with_let(id, |me| me.tangent(kids[1])),
            Head::If if !self.e.ty(id).has_tensor() && self.nested.is_deep(self.e.terms, id) => {
                self.joint_if(id, &kids)
            }
            Head::If => {
                let c = self.value(kids[0]);
                let arms = [self.arm(kids[1])?, self.arm(kids[2])?];
                let c = self.e.now(c);
                let made = self.e.put(Head::If, [c, arms[0], arms[1]]);
                self.bound(made)
            }
            Head::Assert => {
                let c = self.value(kids[0]);
                let v = self.tangent_or_zero(kids[1])?;
                let v = self.e.val(v);
                let (c, v) = (self.e.now(c), self.e.now(v));
                let made = self.e.put(Head::Assert, [c, v]);
                self.bound(made)
            }
            Head::Tuple | Head::VecInit => {
                let parts = self.all(&kids)?;
                let made = self.e.put(head, parts);
                self.bound(made)
            }
            Head::Get(k, n) => {
                let of = self.tangent_or_zero(kids[0])?;
                let made = self.e.get(k, n, of);
                self.bound(made)
            }
            Head::Index(d) => self.with_values(head, &kids[..d], kids[d]),
            Head::DeltaVec(d) => self.with_values(head, &kids[..2 * d], kids[2 * d]),
            Head::Op(_) => self.op_tangent(id, &kids),
            Head::Cast(s) => {
                let of = self.tangent_or_zero(kids[0])?;
                let made = self.e.put(Head::Cast(s), [of]);
                self.bound(made)
            }
            Head::Build(d) | Head::Reduce(Monoid::Add, d) => {
                let extents: Vec<Val> = kids[..d].iter().map(|k| self.value(*k)).collect();
                let nothing = rows_of_none(self.e.terms, id);
                let nothing: Option<Vec<Val>> = nothing.map(|all| all.into_iter().map(|s| self.value(s)).collect());
                let body = self.scoped(&vec![Ty::int(); d], kids[d])?;
                let sizes: Vec<Id> = extents.iter().map(|s| self.e.now(*s)).collect();
                let mut made = self.e.put(head, sizes.into_iter().chain([body]));
                if let Some(sizes) = nothing {
                    made = unless_none(&mut self.e, &extents, made, &sizes);
                }
                self.bound(made)
            }
            Head::Reduce(m, _) => self.reduction_tangent(id, m, &kids),
            Head::Scatter(d) => self.scatter_tangent(d, &kids),
            Head::Fold => self.fold_tangent(&kids),
            Head::Scan => self.scan_tangent(&kids),
            Head::Call(f) => self.call_tangent(id, f, &kids),
            Head::Const(_) | Head::Arg(_) | Head::Size(_) | Head::Print => Ok(None),
            Head::Sum | Head::ConstVec(_) => Err(Diagnostic::bug("a form that is no loop was left")),
        }
    }

    /// Tangents of several terms, where the work stands after all of them.
    fn all(&mut self, ids: &[Id]) -> Result<Vec<Id>> {
        let mut vals = vec![];
        for id in ids {
            let made = self.tangent_or_zero(*id)?;
            vals.push(self.e.val(made));
        }
        Ok(vals.into_iter().map(|v| self.e.now(v)).collect())
    }

    /// A body's tangent under new variables of the source without tangents, with its lets.
    fn scoped(&mut self, vars: &[Ty], body: Id) -> Result<Id> {
        let (outer, mark) = (self.e.depth(), self.mark());
        for ty in vars {
            let v = self.e.enter(*ty);
            self.push(v);
        }
        let joint = std::mem::take(&mut self.joint);
        let made = self.tangent_or_zero(body);
        self.joint = joint;
        self.env.truncate(self.env.len() - vars.len());
        self.forget(mark);
        let made = self.e.close(outer + vars.len(), made?);
        self.e.leave(outer);
        Ok(made)
    }

    /// A node with values in front and one tangent.
    fn with_values(&mut self, head: Head, values: &[Id], of: Id) -> Result<Option<Val>> {
        let values: Vec<Val> = values.iter().map(|k| self.value(*k)).collect();
        let of = self.tangent_or_zero(of)?;
        let mut kids: Vec<Id> = values.into_iter().map(|v| self.e.now(v)).collect();
        kids.push(of);
        let made = self.e.put(head, kids);
        self.bound(made)
    }

    fn op_tangent(&mut self, id: Id, kids: &[Id]) -> Result<Option<Val>> {
        let mut sum: Option<Val> = None;
        let mut changes = vec![];
        for kid in kids {
            changes.push(self.tangent(*kid)?);
        }
        for (k, d) in changes.into_iter().enumerate() {
            let Some(d) = d else { continue };
            let term = self.scaled_partial(id, k, d)?;
            let total = match sum {
                None => term,
                Some(s) => {
                    let s = self.e.now(s);
                    self.e.add(s, term)
                }
            };
            sum = Some(self.e.bind(total));
        }
        Ok(sum)
    }

    fn reduction_tangent(&mut self, id: Id, m: Monoid, kids: &[Id]) -> Result<Option<Val>> {
        let n = self.value(kids[0]);
        let s = self.e.ty(id).as_scalar().unwrap_or(Scalar::F64);
        let (outer, mark) = (self.e.depth(), self.mark());
        if m == Monoid::Mul {
            let others = self.products(n, kids[1], s);
            let outer = self.e.depth();
            let i = self.e.enter(Ty::int());
            self.push(i);
            let d = self.tangent_or_zero(kids[1])?;
            let d = self.e.val(d);
            self.env.pop();
            let by = self.product_of_others(n, i, others, s);
            let d = self.e.now(d);
            let term = self.e.mul(d, by);
            let term = self.e.close(outer + 1, term);
            self.e.leave(outer);
            self.forget(mark);
            let n = self.e.now(n);
            let made = self.e.sum(n, term);
            return self.bound(made);
        }
        let k = self.last_extreme(m, n, kids[1]);
        let k = self.e.bind(k);
        self.push(k);
        let d = self.tangent_or_zero(kids[1]);
        self.env.pop();
        let d = self.e.close(outer, d?);
        self.forget(mark);
        let (n, zero) = (self.e.now(n), self.e.int(0));
        let some = self.e.op(Op::Gt, [n, zero]);
        let none = self.e.float(s, 0.0);
        let made = self.e.put(Head::If, [some, d, none]);
        self.bound(made)
    }

    /// The tangent of an arm. Conditions right in it need no scope of their own: in a long chain each would be
    /// moved out of all those around it.
    fn arm(&mut self, id: Id) -> Result<Id> {
        if self.e.terms.head(id) != Head::If {
            return self.scoped(&[], id);
        }
        let kids = self.e.terms.kids(id).to_vec();
        let c = self.translate(kids[0]);
        let (first, second) = (deep(|| self.arm(kids[1]))?, deep(|| self.arm(kids[2]))?);
        let made = self.e.put(Head::If, [c, first, second]);
        self.e.terms.keep_hints(id, made);
        Ok(made)
    }

    /// A condition in a deep nest gives its value with its tangent: each level needs the value of the one within.
    fn joint_if(&mut self, id: Id, kids: &[Id]) -> Result<Option<Val>> {
        let c = self.value(kids[0]);
        let outer = self.e.depth();
        self.joint += 1;
        let mut arms = vec![];
        for arm in &kids[1..] {
            let mark = self.mark();
            let (value, change) = self.both(*arm)?;
            let row = [self.e.now(value), self.e.now(change)];
            let row = self.e.put(Head::Tuple, row);
            arms.push(self.e.as_nested(outer, row));
            self.e.leave(outer);
            self.forget(mark);
        }
        self.joint -= 1;
        let c = self.e.now(c);
        let mut both = self.e.put(Head::If, [c, arms[0], arms[1]]);
        if self.joint == 0 {
            both = sweep(self.e.terms, both, true);
        }
        let both = self.e.bind(both);
        let of = self.e.now(both);
        let value = self.e.get(0, 2, of);
        let value = self.e.bind(value);
        self.remember(id, Some(value));
        let of = self.e.now(both);
        let change = self.e.get(1, 2, of);
        self.bound(change)
    }

    /// Value and tangent of a term. What the lets of a deep nest bind serves both.
    pub fn both(&mut self, id: Id) -> Result<(Val, Val)> {
        let (Head::Let, [_, body]) = (self.e.terms.head(id), self.e.terms.kids(id)) else {
            let change = self.tangent_or_zero(id)?;
            let change = self.e.val(change);
            return Ok((self.value(id), change));
        };
        let body = *body;
        self.with_let(id, |me| deep(|| me.both(body)))
    }

    fn scatter_tangent(&mut self, d: usize, kids: &[Id]) -> Result<Option<Val>> {
        let sizes: Vec<Val> = kids[..=d].iter().map(|k| self.value(*k)).collect();
        let (outer, mark) = (self.e.depth(), self.mark());
        let i = self.e.enter(Ty::int());
        self.push(i);
        let change = self.tangent_or_zero(kids[d + 1])?;
        let change = self.e.val(change);
        let pair = self.value(kids[d + 1]);
        self.env.pop();
        let (pair, change) = (self.e.now(pair), self.e.now(change));
        let (at, change) = (self.e.get(0, 2, pair), self.e.get(1, 2, change));
        let body = self.e.put(Head::Tuple, [at, change]);
        let body = self.e.close(outer + 1, body);
        self.e.leave(outer);
        self.forget(mark);
        let sizes: Vec<Id> = sizes.into_iter().map(|s| self.e.now(s)).collect();
        let made = self.e.put(Head::Scatter(d), sizes.into_iter().chain([body]));
        self.bound(made)
    }

    /// A step of a loop with a state, as a step of the pair of state and tangent. `second` is the other
    /// variable: its value and tangent.
    fn pair_step(&mut self, state: Ty, body: Id, pair: Val, second: (Val, Active)) -> Result<Id> {
        let of = self.e.now(pair);
        let s = self.e.get(0, 2, of);
        let s = self.e.bind(s);
        let of = self.e.now(pair);
        let ds = self.e.get(1, 2, of);
        let ds = self.e.bind(ds);
        let active = if has_floats(state) { Active::Tangent(ds) } else { Active::No };
        self.env.push(Entry { val: s, active, sizes: vec![] });
        self.env.push(Entry { val: second.0, active: second.1, sizes: vec![] });
        let (next, change) = self.both(body)?;
        self.env.truncate(self.env.len() - 2);
        let (next, change) = (self.e.now(next), self.e.now(change));
        Ok(self.e.put(Head::Tuple, [next, change]))
    }

    fn fold_tangent(&mut self, kids: &[Id]) -> Result<Option<Val>> {
        let state = self.e.ty(kids[0]);
        let init = self.dual(kids[0])?;
        let vector = self.value(kids[1]);
        let changes = self.tangent(kids[1])?;
        let n = self.sizes(kids[1])[0];
        let (outer, mark) = (self.e.depth(), self.mark());
        // The fold runs over pairs of element and tangent.
        let i = self.e.enter(Ty::int());
        let (at, of) = (self.e.now(i), self.e.now(vector));
        let x = self.e.put(Head::Index(1), [at, of]);
        let row = match changes {
            None => x,
            Some(d) => {
                let d = self.e.now(d);
                let dx = self.e.put(Head::Index(1), [at, d]);
                self.e.put(Head::Tuple, [x, dx])
            }
        };
        self.e.leave(outer);
        let count = self.e.now(n);
        let rows = match changes {
            None => self.e.now(vector),
            Some(_) => self.e.put(Head::Build(1), [count, row]),
        };
        let pair = self.e.enter(Ty::tuple(vec![state, state.tangent()]));
        let row_ty = self.e.ty(row);
        let row = self.e.enter(row_ty);
        let second = match changes {
            None => (row, Active::No),
            Some(_) => {
                let of = self.e.now(row);
                let x = self.e.get(0, 2, of);
                let x = self.e.bind(x);
                let of = self.e.now(row);
                let dx = self.e.get(1, 2, of);
                (x, Active::Tangent(self.e.bind(dx)))
            }
        };
        let step = self.pair_step(state, kids[2], pair, second)?;
        let step = self.e.close(outer + 2, step);
        self.e.leave(outer);
        self.forget(mark);
        let init = self.e.now(init);
        let all = self.e.put(Head::Fold, [init, rows, step]);
        let made = self.e.put(Head::Get(1, 2), [all]);
        self.bound(made)
    }

    /// Value and tangent of a term as a tuple.
    fn dual(&mut self, id: Id) -> Result<Val> {
        let (value, change) = self.both(id)?;
        let (value, change) = (self.e.now(value), self.e.now(change));
        let both = self.e.put(Head::Tuple, [value, change]);
        Ok(self.e.val(both))
    }

    fn scan_tangent(&mut self, kids: &[Id]) -> Result<Option<Val>> {
        let state = self.e.ty(kids[0]);
        let init = self.dual(kids[0])?;
        let n = self.value(kids[1]);
        let (outer, mark) = (self.e.depth(), self.mark());
        let pair = self.e.enter(Ty::tuple(vec![state, state.tangent()]));
        let i = self.e.enter(Ty::int());
        let step = self.pair_step(state, kids[2], pair, (i, Active::No))?;
        let step = self.e.close(outer + 2, step);
        self.e.leave(outer);
        self.forget(mark);
        let (init, count) = (self.e.now(init), self.e.now(n));
        let all = self.e.put(Head::Scan, [init, count, step]);
        let all = self.e.bind(all);
        let outer = self.e.depth();
        let i = self.e.enter(Ty::int());
        let (at, of) = (self.e.now(i), self.e.now(all));
        let row = self.e.put(Head::Index(1), [at, of]);
        let change = self.e.put(Head::Get(1, 2), [row]);
        self.e.leave(outer);
        let count = self.e.now(n);
        let made = self.e.put(Head::Build(1), [count, change]);
        self.bound(made)
    }

    fn call_tangent(&mut self, id: Id, f: Fun, kids: &[Id]) -> Result<Option<Val>> {
        let wrt: Vec<bool> = kids.iter().map(|k| self.active(*k)).collect();
        let wrt = self.requests.by(self.e.terms, f, &wrt);
        let place = self.e.terms.spans(id).first().copied();
        let args: Vec<Val> = kids.iter().map(|k| self.value(*k)).collect();
        let made = match self.requests.get(f, Mode::Forward, &wrt, place)? {
            Request::Written(g) => {
                let changes = self.all(kids)?;
                let args: Vec<Id> = args.into_iter().map(|v| self.e.now(v)).collect();
                let pack = |e: &mut super::emit::Emit<'_>, each: Vec<Id>| match each.as_slice() {
                    [one] => *one,
                    _ => e.put(Head::Tuple, each),
                };
                let (args, changes) = (pack(&mut self.e, args), pack(&mut self.e, changes));
                self.e.put(Head::Call(g), [args, changes])
            }
            Request::Made(g) => {
                let moving: Vec<Id> = kids.iter().zip(&wrt).filter(|(_, w)| **w).map(|(k, _)| *k).collect();
                let changes = self.all(&moving)?;
                let args: Vec<Id> = args.into_iter().map(|v| self.e.now(v)).collect();
                self.e.put(Head::Call(g), args.into_iter().chain(changes))
            }
        };
        self.bound(made)
    }
}
