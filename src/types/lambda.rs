//! Lambdas and named functions: they stand only as arguments of forms, so they become binders, lets
//! or calls at once.

use super::Elab;
use super::meaning::Meaning;
use super::named::Named;
use super::scope::Val;
use crate::diag::Result;
use crate::ir::names::Numbers;
use crate::ir::read::Form;
use crate::ir::{Head, Id, Ty};

/// A lambda as written.
pub struct Lambda {
    /// The form.
    pub at: usize,
    /// Names and types of its parameters.
    pub params: Vec<(String, Ty)>,
    /// The form of its body.
    pub body: usize,
    /// The name of a function that stands in the place of a lambda; it has no parameters here.
    pub named: Option<Named>,
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
    pub(super) fn names(&self, n: usize) -> Option<Vec<String>> {
        (self.params.len() == n).then(|| self.params.iter().map(|(n, _)| n.clone()).collect())
    }
}

/// The names of a binder's variables, to be remembered when its node is made.
#[derive(Default)]
pub struct Remembered(Option<(Vec<String>, bool)>);

impl Remembered {
    /// Adds a variable that the source gives no name, which is called what printing would call it.
    pub(super) fn extend(&mut self, elab: &Elab<'_>, head: Head) {
        if let Some((names, _)) = &mut self.0 {
            let free = |n: &str| !elab.names.contains_key(n) && !names.iter().any(|m| m == n);
            let made = Numbers::default().generated(head, names.len(), free);
            names.push(made);
        }
    }
}

impl Elab<'_> {
    /// Reads `(lam (x : T) e)`, `(lam ((x : T) (y : U)) e)`, or the name of a function.
    pub(super) fn lambda(&mut self, at: usize) -> Result<Lambda> {
        let named = self.tree.name(at).is_some() || matches!(self.tree.at(at).form, Form::Bracket(_));
        if named && !self.tree.name(at).is_some_and(|n| self.names.contains_key(n)) {
            let named = self.fun_name(at)?;
            return match self.no_such_function(at, at, &named.name, &[]) {
                Some(d) => Err(d),
                None => Ok(Lambda { at, params: vec![], body: at, named: Some(named) }),
            };
        }
        let Some([params, body]) = self.tree.headed(at, "lam") else {
            let head = self.tree.list(at).and_then(|kids| self.tree.name(*kids.first()?));
            let foreign = head.filter(|h| super::foreign::function(h) == ["lam"]);
            let d = self.error(at, "expected a function", "such as `(lam (i : Integer) …)`, or a name of one");
            return Err(d.hint(foreign.map(|_| "a function without a name is `(lam (x : T) …)`".to_string())));
        };
        let (params, body) = (*params, *body);
        let params = self.params(params)?.into_iter().map(|p| (p.name, p.ty)).collect::<Vec<_>>();
        if params.is_empty() {
            return Err(self.error(at, "a function takes at least one argument", "here"));
        }
        Ok(Lambda { at, params, body, named: None })
    }

    /// Whether the function can be applied to arguments of these types.
    pub(super) fn takes(&self, lam: &Lambda, tys: &[Ty]) -> bool {
        match &lam.named {
            Some(named) => self.accepts(&named.name, tys),
            None => lam.arg() == if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) },
        }
    }

    /// The body of a lambda under binders of these types.
    pub(super) fn binder(&mut self, lam: &Lambda, tys: &[Ty]) -> Result<Id> {
        self.binder_of(lam, tys, tys.len())
    }

    /// The body of a lambda of the first `used` variables, under binders of these types.
    pub(super) fn binder_of(&mut self, lam: &Lambda, all: &[Ty], used: usize) -> Result<Id> {
        let tys = &all[..used];
        if let Some(named) = &lam.named {
            let from = self.depth();
            self.scope.extend_from_slice(all);
            let args: Vec<Id> = (from..from + used).map(|level| self.level(level)).collect();
            let body = self.call_named(lam.at, named, &args)?;
            self.scope.truncate(from);
            return Ok(body);
        }
        let whole = if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) };
        if lam.arg() != whole {
            let label = format!("expected an argument of {whole}, found {}", lam.arg());
            return Err(self.error(lam.at, "the function takes another type", &label));
        }
        let (before, from) = (self.mark(), self.depth());
        self.scope.extend_from_slice(all);
        let mark = self.opened();
        if lam.params.len() == tys.len() {
            for (k, (name, _)) in lam.params.iter().enumerate() {
                self.define(name, Meaning::Level(from + k));
            }
        } else if lam.params.len() == 1 {
            self.define(&lam.params[0].0, Meaning::Parts((from..from + used).collect()));
        } else {
            let arg = self.level(from);
            let arg = self.val(arg);
            self.take_apart(lam, arg);
        }
        let body = self.expr(lam.body)?;
        self.forget(&before);
        let body = self.close(mark, body);
        self.scope.truncate(from);
        Ok(body)
    }

    fn take_apart(&mut self, lam: &Lambda, arg: Val) {
        for (k, (name, _)) in lam.params.iter().enumerate() {
            let part = self.part(arg, k, lam.params.len());
            self.open(part, Some(name.clone()));
            self.define(name, Meaning::Level(self.depth() - 1));
        }
    }

    /// That a lambda takes a value.
    fn takes_one(&self, lam: &Lambda, value: Id) -> Result<()> {
        let ty = self.terms.ty(value);
        if lam.arg() == ty {
            return Ok(());
        }
        let label = format!("expected an argument of {ty}, found {}", lam.arg());
        Err(self.error(lam.at, "the function takes another type", &label))
    }

    /// A lambda applied to a value: its body with the value bound by a let.
    pub(super) fn apply(&mut self, lam: &Lambda, value: Id) -> Result<Id> {
        if let Some(named) = &lam.named {
            return self.call_named(lam.at, named, &[value]);
        }
        self.takes_one(lam, value)?;
        let (before, mark) = (self.mark(), self.opened());
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
        self.forget(&before);
        Ok(self.close(mark, body))
    }

    /// A lambda applied to elements of tensors at the indices of a loop, which cannot fail.
    pub(super) fn over(&mut self, lam: &Lambda, elements: &[Id]) -> Result<Id> {
        let whole = match elements {
            [one] => *one,
            many => self.terms.put(Head::Tuple, many.iter().copied()),
        };
        if let Some(named) = &lam.named {
            return self.call_named(lam.at, named, &[whole]);
        }
        self.takes_one(lam, whole)?;
        let (before, mark) = (self.mark(), self.opened());
        let elements: Vec<Val> = elements.iter().map(|e| self.val(*e)).collect();
        let each = lam.params.len() == elements.len();
        let from = self.depth();
        for (k, element) in elements.iter().enumerate() {
            let id = self.now(*element);
            self.open(id, lam.params.get(k).filter(|_| each).map(|p| p.0.clone()));
            if each {
                self.define(&lam.params[k].0, Meaning::Level(from + k));
            }
        }
        let inner = self.opened();
        if let ([(name, _)], false) = (lam.params.as_slice(), each) {
            self.define(name, Meaning::Parts((from..self.depth()).collect()));
        } else if !each {
            let arg = self.level(from);
            let arg = self.val(arg);
            self.take_apart(lam, arg);
        }
        let body = self.expr(lam.body)?;
        self.forget(&before);
        let body = self.close(inner, body);
        Ok(self.close_elements(mark, body))
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
