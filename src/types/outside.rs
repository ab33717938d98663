//! Functions from outside: those that the same text defines too, those that take functions, and those that are
//! about linear maps.
//!
//! Nothing here can run them, so what is read of a function argument is only whether it fits: a call
//! fails before it would be used. Linear maps have no values at all; a program may declare functions
//! of them, but not call any.

use super::named::{Named, packed};
use super::{Elab, Foreign, Functions};
use crate::diag::Result;
use crate::ir::{Body, Def, Fun, Head, Id, Ty};
use rustc_hash::FxHashMap;

/// The types of an `edef` without those of functions.
pub(super) struct Declared {
    /// The types of the values it takes.
    pub params: Vec<Ty>,
    /// The functions among its arguments; empty where there are none.
    pub functions: Functions,
    /// What it gives.
    pub ret: Ty,
}

impl Elab<'_> {
    /// A function that an `edef` and a `def` of the same text are about, if the first of them has been read.
    ///
    /// # Errors
    /// They do not say the same types.
    pub(super) fn declared_before(&self, at: usize, named: &Named, params: &[Ty], ret: Ty) -> Result<Option<Fun>> {
        let (name, said) = (&named.name, named.needed(params));
        let same = |f: &&Fun| {
            packed(&f.sig().params) == packed(params)
                && !self.higher.contains_key(f)
                && self.said.get(f).copied() == said
        };
        let Some(fun) = self.by_name.get(name).into_iter().flatten().find(same) else { return Ok(None) };
        let Some(def) = self.defs.get(fun).filter(|d| d.body != Body::Derivative) else { return Ok(None) };
        if fun.sig().params == params && fun.sig().ret == ret {
            return Ok(Some(*fun));
        }
        if def.body != Body::External {
            return Ok(None);
        }
        let list = |tys: &[Ty]| tys.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(" ");
        let label = format!("({}) to {ret} here", list(params));
        let declared = format!("({}) to {} here", list(&fun.sig().params), fun.sig().ret);
        let message = format!("`{name}` is declared and defined with other types");
        Err(self.error(at, &message, &label).at(def.span, declared))
    }

    /// The parameters of an `edef` as the definition of the function writes them, wherever that stands: several
    /// parameters and one tuple of them take the same argument, and calls need to know which it is.
    pub(super) fn as_defined(&mut self, name: &str, params: Vec<Ty>) -> Vec<Ty> {
        let [one] = params.as_slice() else { return self.as_written(name, params) };
        match one.as_tuple() {
            Some(parts) if super::call::has_operation(name, parts) => parts.to_vec(),
            Some(_) => self.as_written(name, params),
            None => params,
        }
    }

    fn as_written(&mut self, name: &str, params: Vec<Ty>) -> Vec<Ty> {
        let same = |f: &&Fun| packed(&f.sig().params) == packed(&params) && !self.higher.contains_key(f);
        if let Some(before) = self.by_name.get(name).into_iter().flatten().find(same) {
            return before.sig().params.clone();
        }
        self.defined_as(name, &params).unwrap_or(params)
    }

    /// The parameters of the definition in the text that takes the same argument.
    fn defined_as(&mut self, name: &str, params: &[Ty]) -> Option<Vec<Ty>> {
        let known = self.errors.len();
        let mut found = None;
        for at in self.definitions(name) {
            // What is wrong with that definition is said where it is read.
            let Ok(written) = self.attempt(|e| e.params(at)) else { continue };
            let written: Vec<Ty> = written.iter().map(|p| p.ty).collect();
            if packed(&written) == packed(params) {
                found = Some(written);
                break;
            }
        }
        self.errors.truncate(known);
        found
    }

    /// What a function from outside is: the runtime of the reference has the inner product, which its programs
    /// declare as `dot`. A definition in the text goes before it.
    pub(super) fn body_outside(&mut self, fun: Fun, at: usize) -> Body {
        let (sig, vector) = (fun.sig(), Ty::tensor(1, Ty::float()));
        let inner_product = sig.name == "dot" && sig.params == [vector, vector] && sig.ret == Ty::float();
        if !inner_product || self.defined_as(&sig.name, &sig.params).is_some() {
            return Body::External;
        }
        let from = self.depth();
        self.scope.extend_from_slice(&sig.params);
        let (a, b) = (self.level(from), self.level(from + 1));
        let (a, b) = (self.val(a), self.val(b));
        let body = self.dot(a, b);
        self.terms.mark(body, self.tree.at(at).span);
        self.scope.truncate(from);
        Body::Term(body)
    }

    /// The parameter lists of all definitions of a name in the text.
    fn definitions(&mut self, name: &str) -> Vec<usize> {
        if self.written.is_none() {
            let mut all: FxHashMap<String, Vec<usize>> = FxHashMap::default();
            for at in &self.tree.top {
                let Some([name, _, params, ..]) = self.tree.headed(*at, "def") else { continue };
                if let Ok(named) = self.fun_name(*name) {
                    all.entry(named.name).or_default().push(*params);
                }
            }
            self.written = Some(all);
        }
        self.written.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or_default()
    }

    /// Puts a definition that was declared before behind what it calls, and before what calls it.
    ///
    /// # Errors
    /// It calls something that calls it.
    pub(super) fn in_order(&mut self, fun: Fun, at: usize) -> Result<()> {
        let calls = |def: &Def| def.term().map(|body| self.terms.calls(body)).unwrap_or_default();
        let (mut callers, mut rest) = (vec![], vec![]);
        for (f, def) in self.defs.iter().filter(|(f, _)| **f != fun) {
            let caller = calls(def).iter().any(|g| *g == fun || callers.contains(g));
            if caller { callers.push(*f) } else { rest.push(*f) }
        }
        let own = self.defs.get(&fun).map(calls).unwrap_or_default();
        if let Some(other) = own.iter().find(|f| callers.contains(f)) {
            let (name, other) = (&fun.sig().name, &other.sig().name);
            let message = format!("`{name}` and `{other}` call each other");
            return Err(self.error(at, &message, "a function may call itself and what stands above it"));
        }
        let order = rest.into_iter().chain([fun]).chain(callers).enumerate();
        let place: FxHashMap<Fun, usize> = order.map(|(k, f)| (f, k)).collect();
        self.defs.sort_by_key(|f, _| place.get(f).copied());
        Ok(())
    }

    /// The types of an `edef`; nothing where it is about linear maps.
    pub(super) fn outside(&mut self, name: &str, kids: &[usize]) -> Result<Option<Declared>> {
        self.foreign = Foreign { allowed: true, met: None };
        let read = self.outside_types(kids);
        let met = std::mem::take(&mut self.foreign).met;
        let declared = read?;
        if let Some(what) = met {
            self.linear.insert(name.to_string(), what);
            return Ok(None);
        }
        Ok(Some(declared))
    }

    fn outside_types(&mut self, kids: &[usize]) -> Result<Declared> {
        let ret = self.ty(kids[2])?;
        let (mut params, mut functions, mut any) = (vec![], vec![], false);
        if self.has_names(kids[3]) {
            let params = self.params(kids[3])?.into_iter().map(|p| p.ty).collect();
            return Ok(Declared { params, functions, ret });
        }
        let parts = match self.is_one_type(kids[3]) {
            true => vec![kids[3]],
            false => self.tree.list(kids[3]).unwrap_or_default().to_vec(),
        };
        for at in &parts {
            let function = self.tree.headed(*at, "Lam").map(<[usize]>::to_vec);
            match function.as_deref() {
                Some([from, to]) => {
                    functions.push(Some((self.ty(*from)?, self.ty(*to)?)));
                    any = true;
                }
                _ => {
                    params.push(self.ty(*at)?);
                    functions.push(None);
                }
            }
        }
        // One type that is a tuple stands for several.
        if let ([one], false, true) = (params.as_slice(), any, self.is_one_type(kids[3]))
            && let Some(each) = one.as_tuple()
        {
            params = each.to_vec();
        }
        Ok(Declared { params, functions: if any { functions } else { vec![] }, ret })
    }

    /// Whether the parameters have names, as those of a `def`.
    pub(super) fn has_names(&self, at: usize) -> bool {
        let named = |at: usize| {
            let colon = self.tree.list(at).and_then(|kids| kids.get(1));
            colon.and_then(|k| self.tree.name(*k)) == Some(":")
        };
        named(at) || self.tree.list(at).is_some_and(|kids| kids.first().is_some_and(|k| named(*k)))
    }

    /// A call of a function from outside that takes functions; refuses those about linear maps.
    pub(super) fn call_outside(&mut self, at: usize, head: usize, named: &Named, args: &[usize]) -> Result<Option<Id>> {
        let funs = self.by_name.get(&named.name).cloned().unwrap_or_default();
        let Some(fun) = funs.iter().copied().find(|f| self.higher.contains_key(f)) else {
            if let (Some(what), []) = (self.linear.get(&named.name), funs.as_slice()) {
                let message = format!("`{}` is about {what}, which are not supported", named.name);
                return Err(self.error(head, &message, "it may be declared, but not called"));
            }
            return Ok(None);
        };
        let functions = self.higher[&fun].clone();
        if functions.len() != args.len() {
            let label = format!("expected {}, found {}", functions.len(), args.len());
            return Err(self.error(at, &format!("wrong number of arguments of `{}`", named.name), &label));
        }
        self.with_functions(at, fun, &functions, args).map(Some)
    }

    fn with_functions(&mut self, at: usize, fun: Fun, functions: &Functions, args: &[usize]) -> Result<Id> {
        let (mut ids, mut places) = (vec![], vec![]);
        for (function, arg) in functions.iter().zip(args) {
            match function {
                Some((from, to)) => {
                    let lam = self.lambda(*arg)?;
                    let body = self.binder(&lam, &[*from])?;
                    if self.terms.ty(body) != *to {
                        let label = format!("expected {to}, found {}", self.terms.ty(body));
                        return Err(self.error(lam.body, "type mismatch", &label));
                    }
                }
                None => {
                    ids.push(self.expr(*arg)?);
                    places.push(*arg);
                }
            }
        }
        self.node(at, Head::Call(fun), &ids, &places)
    }
}
