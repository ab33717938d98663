//! Lambdas: they stand only as arguments of forms, so they become binders or lets at once.

use super::Elab;
use super::scope::{Meaning, Val};
use crate::diag::Result;
use crate::ir::{Head, Id, Ty};

/// A lambda as written.
pub struct Lambda {
    /// The form.
    pub at: usize,
    /// Names and types of its parameters.
    pub params: Vec<(String, Ty)>,
    /// The form of its body.
    pub body: usize,
}

impl Lambda {
    /// The type of its one argument.
    pub fn arg(&self) -> Ty {
        match self.params.as_slice() {
            [(_, ty)] => *ty,
            many => Ty::tuple(many.iter().map(|(_, t)| *t).collect::<Vec<_>>()),
        }
    }

    /// The names of `n` variables, for remembering; nothing where a name stands for several
    /// variables or for a part of one.
    fn names(&self, n: usize) -> Option<Vec<String>> {
        (self.params.len() == n).then(|| self.params.iter().map(|(n, _)| n.clone()).collect())
    }
}

/// The names of a binder's variables, to be remembered when its node is made.
pub struct Remembered(Option<(Vec<String>, bool)>);

impl Elab<'_> {
    /// Reads `(lam (x : T) e)` or `(lam ((x : T) (y : U)) e)`.
    pub(super) fn lambda(&mut self, at: usize) -> Result<Lambda> {
        let Some([params, body]) = self.tree.headed(at, "lam") else {
            return Err(self.error(at, "expected a function", "such as `(lam (i : Integer) …)`"));
        };
        let (params, body) = (*params, *body);
        let params = self.params(params)?.into_iter().map(|p| (p.name, p.ty)).collect::<Vec<_>>();
        if params.is_empty() {
            return Err(self.error(at, "a function takes at least one argument", "here"));
        }
        Ok(Lambda { at, params, body })
    }

    /// The body of a lambda under binders of these types.
    pub(super) fn binder(&mut self, lam: &Lambda, tys: &[Ty]) -> Result<Id> {
        let whole = if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) };
        if lam.arg() != whole {
            let label = format!("expected an argument of {whole}, found {}", lam.arg());
            return Err(self.error(lam.at, "the function takes another type", &label));
        }
        let from = self.depth();
        self.scope.extend_from_slice(tys);
        let mark = self.opened();
        if lam.params.len() == tys.len() {
            for (k, (name, _)) in lam.params.iter().enumerate() {
                self.define(name, Meaning::Level(from + k));
            }
        } else if lam.params.len() == 1 {
            self.define(&lam.params[0].0, Meaning::Parts((from..self.depth()).collect()));
        } else {
            let arg = self.level(from);
            let arg = self.val(arg);
            self.take_apart(lam, arg);
        }
        let body = self.expr(lam.body);
        for (name, _) in &lam.params {
            self.forget(name);
        }
        let body = body.map(|b| self.close(mark, b));
        self.pending.truncate(mark);
        self.scope.truncate(from);
        body
    }

    fn take_apart(&mut self, lam: &Lambda, arg: Val) {
        for (k, (name, _)) in lam.params.iter().enumerate() {
            let part = self.part(arg, k, lam.params.len());
            self.open(part, Some(name.clone()));
            self.define(name, Meaning::Level(self.depth() - 1));
        }
    }

    /// A lambda applied to a value: its body with the value bound by a let.
    pub(super) fn apply(&mut self, lam: &Lambda, value: Id) -> Result<Id> {
        let ty = self.terms.ty(value);
        if lam.arg() != ty {
            let label = format!("expected an argument of {ty}, found {}", lam.arg());
            return Err(self.error(lam.at, "the function takes another type", &label));
        }
        let mark = self.opened();
        match lam.params.as_slice() {
            [(name, _)] => {
                self.open(value, Some(name.clone()));
                self.define(name, Meaning::Level(self.depth() - 1));
            }
            _ => {
                let value = self.bind(value);
                self.take_apart(lam, value);
            }
        }
        let body = self.expr(lam.body)?;
        for (name, _) in &lam.params {
            self.forget(name);
        }
        Ok(self.close(mark, body))
    }

    /// Adds a looping node with the lambda as its last child.
    pub(super) fn looped(&mut self, at: usize, head: Head, mut kids: Vec<Id>, lam: &Lambda) -> Result<Id> {
        let mut tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
        tys.push(Ty::int());
        let bound = head.bound_tys(&tys);
        let names = self.remembered(head, lam, bound.len());
        let body = self.binder(lam, &bound)?;
        kids.push(body);
        let mut places = vec![at; kids.len()];
        places[kids.len() - 1] = lam.body;
        let id = self.node(at, head, &kids, &places)?;
        self.remember(id, names);
        Ok(id)
    }

    /// What to remember of the names of a lambda that binds `n` variables, before it does so.
    pub(super) fn remembered(&mut self, head: Head, lam: &Lambda, n: usize) -> Remembered {
        Remembered(lam.names(n).map(|names| {
            let chosen = self.chosen(head, &names);
            (names, chosen)
        }))
    }

    /// Remembers the names of a binder.
    pub(super) fn remember(&mut self, id: Id, names: Remembered) {
        if let Some((names, chosen)) = names.0 {
            self.terms.name(id, names, chosen);
        }
    }
}
