//! `$check`: how far a derivative is off.

use super::Elab;
use super::lambda::Lambda;
use super::scope::Val;
use crate::diag::Result;
use crate::ir::{Head, Id, Op};

/// What `$check` calls: a lambda, or a function by its name.
enum Callee {
    Lambda(Lambda),
    Name(usize),
}

impl Elab<'_> {
    /// `|⟨f(x+dx) − f(x), dr⟩ − ⟨dx, rev(x, dr)⟩| / (|·| + |·|)`. Where six arguments stand, `f` and `rev` get the
    /// point in two forms, the first a tuple of the arguments.
    pub(super) fn form_check(&mut self, _at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (f, rev) = (self.callee(args[0])?, self.callee(args[1])?);
        let n = args.len();
        let (x, dx, dr) = (self.bound(args[2])?, self.bound(args[n - 2])?, self.bound(args[n - 1])?);
        let (x, dx) = (self.alone(&f, x), self.alone(&f, dx));
        let again = if n == 6 { self.bound(args[3])? } else { x };
        let moved = self.add_tangent(x, dx);
        let after = self.result(&f, (args[0], moved), None)?;
        let after = self.bind(after);
        let here = self.now(x);
        let before = self.result(&f, (args[0], here), None)?;
        let before = self.bind(before);
        self.linear_only(args[0], self.terms.ty(after.id))?;
        let (a, b) = (self.now(after), self.now(before));
        let change = self.op(Op::Sub, &[a, b]);
        let change = self.bind(change);
        let (x, r) = (self.now(again), self.now(dr));
        let back = self.result(&rev, (args[1], x), Some(r))?;
        let back = self.bind(back);
        for (v, w, at) in [(change, dr, args[n - 1]), (dx, back, args[1])] {
            if self.terms.ty(v.id) != self.terms.ty(w.id) {
                let label = format!("expected {}, found {}", self.terms.ty(v.id), self.terms.ty(w.id));
                return Err(self.error(at, "type mismatch", &label));
            }
        }
        let left = self.dot(change, dr);
        let left = self.bind(left);
        let right = self.dot(dx, back);
        let right = self.bind(right);
        let (l, r) = (self.now(left), self.now(right));
        let gap = self.op(Op::Sub, &[l, r]);
        let sizes = [self.op(Op::Abs, &[gap]), self.op(Op::Abs, &[l]), self.op(Op::Abs, &[r])];
        let total = self.op(Op::Add, &sizes[1..]);
        let id = self.op(Op::Div, &[sizes[0], total]);
        Ok(self.close(mark, id))
    }

    fn callee(&mut self, at: usize) -> Result<Callee> {
        match self.tree.list(at) {
            Some(_) => Ok(Callee::Lambda(self.lambda(at)?)),
            None => {
                self.fun_name(at)?;
                Ok(Callee::Name(at))
            }
        }
    }

    /// The part of a tuple of one, where the function does not take such a tuple.
    fn alone(&mut self, f: &Callee, x: Val) -> Val {
        let ty = self.terms.ty(x.id);
        let takes = match f {
            Callee::Lambda(lam) => lam.arg() == ty || lam.arg().tangent() == ty,
            Callee::Name(_) => false,
        };
        if takes || ty.as_tuple().is_none_or(|parts| parts.len() != 1) {
            return x;
        }
        let part = self.part(x, 0, 1);
        self.bind(part)
    }

    /// A function at a point, or a derivative at a point and an adjoint: `rev$f`, as the older spelling has it,
    /// takes them all one by one.
    fn result(&mut self, f: &Callee, (at, x): (usize, Id), dr: Option<Id>) -> Result<Id> {
        let both: Vec<Id> = [x].into_iter().chain(dr).collect();
        let head = match f {
            Callee::Lambda(lam) => {
                let arg = if dr.is_some() { self.terms.put(Head::Tuple, both) } else { x };
                return self.apply(lam, arg);
            }
            Callee::Name(head) => *head,
        };
        let mark = self.opened();
        let made = match self.call_values(head, &both)? {
            Some(id) => Some(id),
            None => match self.terms.ty(x).as_tuple() {
                Some(parts) => {
                    let x = self.val(x);
                    let dr = dr.map(|d| self.val(d));
                    let mut flat: Vec<Id> = (0..parts.len()).map(|k| self.part(x, k, parts.len())).collect();
                    flat.extend(dr.map(|d| self.now(d)));
                    self.call_values(head, &flat)?
                }
                None => None,
            },
        };
        match made {
            Some(id) => Ok(self.close(mark, id)),
            None => {
                let tys: Vec<_> = both.iter().map(|i| self.terms.ty(*i)).collect();
                let name = self.fun_name(at)?.name;
                if let Some(d) = self.no_such_function(at, at, &name, &[]) {
                    return Err(d);
                }
                Err(self.no_such_call(at, &name, &both, &tys, &[]))
            }
        }
    }
}
