//! Own functions in the place of built-in ones, and built-in ones as functions of the program.
//!
//! A program may define what an operation of the language does already: calls below mean its own function. Rewriting
//! knows operations by name, and printed text has to say which of both is meant, so such a function has a name of
//! its own, `not_1`. Built-in functions whose derivatives are asked for are wrapped in a function.

use super::Elab;
use super::call::{has_operation, is_prelude};
use super::expr::is_form;
use super::named::{KINDS, Known, Named, argument, innermost, packed, with_base};
use crate::diag::Result;
use crate::ir::{Body, Fun, Op, Signature, Ty};

/// Whether an operation is called by what would call a function of these parameters.
pub(super) fn is_operation(name: &str, params: &[Ty]) -> bool {
    let takes = |tys: &[Ty]| Op::named(name).any(|op| op.result_ty(tys).is_some());
    let parts = if let [one] = params { one.as_tuple() } else { None };
    takes(params) || takes(&[packed(params)]) || parts.is_some_and(takes)
}

/// Whether the language has functions of this name.
pub(super) fn is_built_in(name: &str) -> bool {
    Op::named(name).next().is_some() || is_prelude(name)
}

impl Elab<'_> {
    /// By what names a function of these parameters will be known.
    pub(super) fn known(&self, named: &Named, params: &[Ty]) -> Known {
        let mut known = Known::new(named, params);
        if !named.name.starts_with('[') && is_operation(&named.name, params) {
            known.name = self.fresh(&named.name);
        } else if let Some(own) = self.base(named, params) {
            known.name = own;
            known.name = known.said.map_or(known.name.clone(), |arg| super::named::with_type(&known.name, arg));
        }
        known
    }

    /// The name of a derivative whose function has another name than sources say.
    fn base(&self, named: &Named, params: &[Ty]) -> Option<String> {
        let renamed = |of: &str, takes: &dyn Fn(&[Ty]) -> bool| {
            let funs = self.by_name.get(of)?.iter();
            funs.map(|f| f.sig()).find(|sig| sig.name != of && takes(&sig.params)).map(|sig| sig.name.clone())
        };
        if named.name.starts_with('[') {
            let arg = named.arg.or_else(|| argument(&named.name, packed(params)))?;
            let own = renamed(innermost(&named.name), &|tys| packed(tys) == arg)?;
            return Some(with_base(&named.name, &own));
        }
        let (kind, of) = named.name.split_once('$').filter(|(kind, _)| KINDS.contains(kind))?;
        let own = renamed(of, &|tys| params.starts_with(tys) || params.first() == Some(&packed(tys)))?;
        Some(format!("{kind}${own}"))
    }

    /// A name like another that nothing in the text has.
    fn fresh(&self, name: &str) -> String {
        let declared = |n: &str| {
            self.tree.top.iter().any(|at| {
                let word = self.tree.list(*at).and_then(|kids| kids.get(1)).and_then(|k| self.tree.name(*k));
                word == Some(n)
            })
        };
        let known = |n: &str| self.by_name.contains_key(n) || self.defs.keys().any(|f| f.sig().name == n);
        let free = |n: &String| !(declared(n) || known(n) || is_form(n) || is_built_in(n));
        let mut names = (1..).map(|k| format!("{name}_{k}"));
        names.find(free).unwrap_or_default()
    }

    /// A built-in function of this argument as one of the program.
    pub(super) fn wrapped(&mut self, at: usize, name: &str, arg: Ty) -> Result<Option<Fun>> {
        let many = arg.as_tuple().filter(|parts| has_operation(name, parts)).map(<[Ty]>::to_vec);
        let tys = many.unwrap_or_else(|| vec![arg]);
        if !is_built_in(name) || !has_operation(name, &tys) {
            return Ok(None);
        }
        if let Some(known) = self.wrappers.iter().find(|(n, f)| n == name && f.sig().params == tys) {
            return Ok(Some(known.1));
        }
        // A call may ask for it, in the middle of a body.
        let outer = (std::mem::take(&mut self.scope), std::mem::take(&mut self.pending));
        self.scope.extend_from_slice(&tys);
        let args: Vec<_> = (0..tys.len()).map(|k| self.level(k)).collect();
        let body = self.known_call(at, name, &args, &tys, &[]);
        (self.scope, self.pending) = outer;
        let Some(body) = body? else { return Ok(None) };
        let fun = Fun::new(Signature { name: self.fresh(name), params: tys, ret: self.terms.ty(body) });
        self.insert_unnamed(fun, at, Body::Term(body));
        self.wrappers.push((name.to_string(), fun));
        Ok(Some(fun))
    }
}
