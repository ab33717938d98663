//! Top-level declarations.

use super::scope::Meaning;
use super::{Elab, RuleSides};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::read::Form;
use crate::ir::{Body, Def, Fun, Head, Id, Op, Param, Signature, Ty, deep};
use rustc_hash::FxHashMap;

const DECLARATIONS: [&str; 4] = ["def", "edef", "gdef", "rule"];
/// What `gdef` makes.
pub const KINDS: [&str; 7] = ["fwd", "rev", "CL", "shape", "suffwdpass", "sufrevpass", "sufrev"];

/// One type for several parameters.
fn packed(tys: &[Ty]) -> Ty {
    if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) }
}

impl Elab<'_> {
    pub(super) fn declaration(&mut self, at: usize) -> Result<()> {
        let kids = self.tree.list(at).unwrap_or_default().to_vec();
        let Some(head) = kids.first().and_then(|k| self.tree.name(*k)) else {
            let label = "expected `(def …)`, `(edef …)`, `(gdef …)` or `(rule …)`";
            return Err(self.error(at, "expected a declaration", label));
        };
        match (head, kids.len()) {
            ("def", 5) => self.def(&kids),
            ("edef", 4) => self.edef(&kids),
            ("gdef", 3) => self.gdef(&kids),
            ("rule", _) => Ok(()),
            ("def", n) => Err(self.arity(at, "(def NAME TYPE (PARAM …) BODY)", 4, n - 1)),
            ("edef", n) => Err(self.arity(at, "(edef NAME TYPE (TYPE …))", 3, n - 1)),
            ("gdef", n) => Err(self.arity(at, "(gdef DERIVATIVE [f TYPE])", 2, n - 1)),
            (other, _) => {
                let message = format!("unknown declaration `{other}`");
                let label = "expected `def`, `edef`, `gdef` or `rule`";
                Err(self.error(kids[0], &message, label).hint(nearest(other, DECLARATIONS)))
            }
        }
    }

    fn arity(&self, at: usize, form: &str, expected: usize, found: usize) -> Box<Diagnostic> {
        let label = format!("expected {expected} parts after the keyword, found {found}");
        self.error(at, &format!("expected `{form}`"), &label)
    }

    fn def(&mut self, kids: &[usize]) -> Result<()> {
        let name = self.fun_name(kids[1])?;
        let ret = self.ty(kids[2])?;
        let params = self.params(kids[3])?;
        let fun = self.declare(kids[1], &name, params.iter().map(|p| p.ty).collect(), ret)?;
        for p in &params {
            self.scope.push(p.ty);
        }
        self.size_meanings(kids[3], &params)?;
        for (level, p) in params.iter().enumerate() {
            self.define(&p.name, Meaning::Level(level));
        }
        let body = self.expr(kids[4])?;
        self.scope.clear();
        self.names.clear();
        self.numbers.clear();
        if self.terms.ty(body) != ret {
            let label = format!("expected {ret}, found {}", self.terms.ty(body));
            let message = format!("the body of `{name}` has another type than declared");
            let hint = super::expr::float_hint(&ret.to_string(), &self.terms.ty(body).to_string());
            return Err(self.error(kids[4], &message, &label).hint(hint));
        }
        if self.never_ends(body, fun) {
            let message = format!("`{name}` calls itself on every path");
            return Err(self.error(kids[4], &message, "no case ends the recursion"));
        }
        let span = self.tree.at(kids[1]).span;
        self.defs.insert(fun, Def { fun, params, body: Body::Term(body), span });
        Ok(())
    }

    /// Size names mean the sizes of the first parameter that carries them.
    fn size_meanings(&mut self, at: usize, params: &[Param]) -> Result<()> {
        for (level, p) in params.iter().enumerate() {
            for (axis, name) in p.sizes.iter().enumerate() {
                if params.iter().any(|q| q.name == *name) {
                    let message = format!("`{name}` names both a size and a parameter");
                    return Err(self.error(at, &message, "rename one of them"));
                }
                if !self.names.contains_key(name) {
                    self.define(name, Meaning::Size(level, axis));
                }
            }
        }
        Ok(())
    }

    /// Registers a function; it may not exist yet, nor hide an operation.
    fn declare(&mut self, at: usize, name: &str, params: Vec<Ty>, ret: Ty) -> Result<Fun> {
        if super::expr::is_form(name) {
            return Err(self.error(at, &format!("`{name}` is a form of the language"), "choose another name"));
        }
        for other in self.by_name.get(name).into_iter().flatten() {
            if packed(&other.sig().params) == packed(&params) {
                let mut d =
                    self.error(at, &format!("`{name}` is defined twice for these parameter types"), "again here");
                if let Some(def) = self.defs.get(other) {
                    d = d.at(def.span, "first here");
                }
                if other.sig().params != params {
                    d = d.note("several arguments and one tuple of them mean the same");
                }
                return Err(d);
            }
        }
        if Op::named(name).any(|op| op.result_ty(&params).is_some()) {
            let message = format!("`{name}` on these types is a built-in operation");
            return Err(self.error(at, &message, "a definition would hide it"));
        }
        let fun = Fun::new(Signature { name: name.to_string(), params, ret });
        self.by_name.entry(name.to_string()).or_default().push(fun);
        Ok(fun)
    }

    fn edef(&mut self, kids: &[usize]) -> Result<()> {
        let name = self.fun_name(kids[1])?;
        let ret = self.ty(kids[2])?;
        let tys = self.edef_params(kids[3])?;
        let built_in = Op::named(&name).any(|op| op.result_ty(&tys) == Some(ret));
        if built_in || super::call::in_prelude(&name, &tys, ret) || super::expr::is_form(&name) {
            return Ok(());
        }
        let fun = self.declare(kids[1], &name, tys, ret)?;
        self.insert_unnamed(fun, kids[1], Body::External);
        Ok(())
    }

    /// A definition whose parameters have no names in the source.
    fn insert_unnamed(&mut self, fun: Fun, at: usize, body: Body) {
        let name = |k: usize| format!("x{}", k + 1);
        let param = |(k, ty): (usize, &Ty)| Param { name: name(k), ty: *ty, sizes: vec![] };
        let params = fun.sig().params.iter().enumerate().map(param).collect();
        self.defs.insert(fun, Def { fun, params, body, span: self.tree.at(at).span });
    }

    fn gdef(&mut self, kids: &[usize]) -> Result<()> {
        let derivative = self.tree.name(kids[1]).unwrap_or_default().to_string();
        let (name, fun) = self.differentiated(kids[2])?;
        let (s, t) = (packed(&fun.sig().params), fun.sig().ret);
        let made = format!("[{derivative} {name}]");
        let (params, ret) = match derivative.as_str() {
            "fwd" => (vec![s, s.tangent()], t.tangent()),
            "rev" | "sufrev" => (vec![s, t.tangent()], s.tangent()),
            "sufrevpass" => (vec![t.tangent(), s], s.tangent()),
            "CL" => (fun.sig().params.clone(), t),
            "shape" | "suffwdpass" => return self.companion(kids[2], &made, &derivative, fun),
            other => {
                let message = format!("derivatives of the kind `{other}` are not supported");
                let label = format!("one of {}", KINDS.map(|k| format!("`{k}`")).join(", "));
                return Err(self.error(kids[1], &message, &label).hint(nearest(other, KINDS)));
            }
        };
        let fun = self.declare(kids[2], &made, params, ret)?;
        self.insert_unnamed(fun, kids[2], Body::Derivative);
        Ok(())
    }

    /// The function that `[f T]`, or `[rev [f T]]`, stands for.
    fn differentiated(&mut self, at: usize) -> Result<(String, Fun)> {
        let expected = |e: &Self| Err(e.error(at, "expected a function and its argument type", "such as `[f Float]`"));
        let Form::Bracket(of) = &self.tree.at(at).form else { return expected(self) };
        let [first, second] = *of.as_slice() else { return expected(self) };
        // The type may stand further in, at the function whose derivative this is.
        let mut inner = second;
        while let Form::Bracket(of) = &self.tree.at(inner).form {
            let [_, next] = *of.as_slice() else { return expected(self) };
            inner = next;
        }
        let (base, nested) = if inner == second { (first, false) } else { (at, true) };
        let (name, arg) = (self.fun_name(base)?, self.ty(inner)?);
        let funs = self.by_name.get(&name).cloned().unwrap_or_default();
        let takes = |f: &Fun| match nested {
            true if name.starts_with("[sufrevpass ") => f.sig().params.last() == Some(&arg),
            true => packed(&f.sig().params) == arg || f.sig().params.first() == Some(&arg),
            false => packed(&f.sig().params) == arg,
        };
        if let Some(fun) = funs.iter().find(|f| takes(f)) {
            return Ok((name, *fun));
        }
        let message = format!("there is no function `{name}` of {arg} above this line");
        let d = self.error(base, &message, "here");
        if funs.is_empty() {
            return Err(d.hint(nearest(&name, self.by_name.keys().map(String::as_str))));
        }
        Err(funs.iter().fold(d, |d, f| d.note(format!("it takes {}", packed(&f.sig().params)))))
    }

    /// What a function has beside its derivatives: the shape of its result, or the result with the
    /// argument, from which `sufrevpass` goes back.
    fn companion(&mut self, at: usize, name: &str, kind: &str, of: Fun) -> Result<()> {
        let tys = of.sig().params.clone();
        tys.iter().for_each(|ty| self.scope.push(*ty));
        let n = tys.len();
        let args: Vec<Id> = tys.iter().enumerate().map(|(k, ty)| self.terms.var((n - 1 - k) as u32, *ty)).collect();
        let result = self.terms.put(Head::Call(of), args.iter().copied());
        let body = match (kind, args.as_slice()) {
            ("shape", _) => {
                let mark = self.opened();
                let result = self.bind(result);
                let shape = self.shape_of(result);
                self.close(mark, shape)
            }
            (_, [one]) => self.terms.put(Head::Tuple, [result, *one]),
            (_, many) => {
                let argument = self.terms.put(Head::Tuple, many.iter().copied());
                self.terms.put(Head::Tuple, [result, argument])
            }
        };
        self.scope.clear();
        let ret = self.terms.ty(body);
        let fun = self.declare(at, name, tys, ret)?;
        self.insert_unnamed(fun, at, Body::Term(body));
        Ok(())
    }

    /// The name of a function: a word, or a structured name in its one spelling.
    pub(super) fn fun_name(&mut self, at: usize) -> Result<String> {
        match &self.tree.at(at).form {
            Form::Bracket(kids) => match kids.clone().as_slice() {
                [derivative, of] => {
                    let Some(derivative) = self.tree.name(*derivative).map(str::to_string) else {
                        return Err(self.error(*derivative, "expected the kind of a derivative", "such as `rev`"));
                    };
                    let of = match &self.tree.at(*of).form {
                        // The argument type only resolves an overload, which the call's types do too.
                        Form::Bracket(inner) if inner.len() == 2 && self.is_annotation(inner[1]) => {
                            let (base, ty) = (inner[0], inner[1]);
                            self.ty(ty)?;
                            self.nest(at, |e| e.fun_name(base))?
                        }
                        Form::Bracket(_) | Form::List(_) | Form::Atom(_) => self.nest(at, |e| e.fun_name(*of))?,
                    };
                    Ok(format!("[{derivative} {of}]"))
                }
                _ => Err(self.error(at, "expected a structured name", "such as `[rev f]`")),
            },
            Form::Atom(_) => match self.tree.name(at) {
                Some(n) => Ok(n.to_string()),
                None => Err(self.error(at, "expected the name of a function", "this is no name")),
            },
            Form::List(_) => Err(self.error(at, "expected the name of a function", "this is a list")),
        }
    }

    fn is_annotation(&self, at: usize) -> bool {
        self.tree.list(at).is_some()
            || self.tree.name(at).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_uppercase()))
    }

    /// Whether every evaluation of the term calls `fun`.
    fn never_ends(&self, body: Id, fun: Fun) -> bool {
        let mut memo = FxHashMap::default();
        self.calls(body, fun, &mut memo)
    }

    fn calls(&self, id: Id, fun: Fun, memo: &mut FxHashMap<Id, bool>) -> bool {
        if let Some(known) = memo.get(&id) {
            return *known;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        let found = match head {
            Head::Call(f) if f == fun => true,
            Head::If => {
                deep(|| self.calls(kids[0], fun, memo))
                    || deep(|| self.calls(kids[1], fun, memo)) && deep(|| self.calls(kids[2], fun, memo))
            }
            _ => {
                let strict = if head.is_loop() { &kids[..kids.len() - 1] } else { kids };
                strict.iter().any(|k| deep(|| self.calls(*k, fun, memo)))
            }
        };
        memo.insert(id, found);
        found
    }

    pub(super) fn rule(&mut self, params: usize, sides: (usize, usize)) -> Result<RuleSides> {
        let kids = self.tree.list(params).unwrap_or_default().to_vec();
        let single = kids.get(1).and_then(|k| self.tree.name(*k)) == Some(":");
        let each = if single || self.tree.list(params).is_none() { vec![params] } else { kids };
        let (mut metas, mut funs) = (vec![], vec![]);
        for at in each {
            match self.lam_param(at)? {
                Some(sig) => {
                    let name = sig.name.clone();
                    let fun = Fun::new(sig);
                    self.by_name.insert(name, vec![fun]);
                    funs.push(fun);
                }
                None => {
                    let p = self.param(at)?;
                    self.define(&p.name, Meaning::Level(self.scope.len()));
                    self.scope.push(p.ty);
                    metas.push(p);
                }
            }
        }
        let left = self.expr(sides.0)?;
        let right = self.expr(sides.1)?;
        let (l, r) = (self.terms.ty(left), self.terms.ty(right));
        if l != r {
            let label = format!("expected {l}, found {r}");
            return Err(self.error(sides.1, "the sides of the rule have different types", &label));
        }
        let terms = std::mem::take(&mut self.terms);
        Ok(RuleSides { terms, params: metas, funs, sides: (left, right) })
    }

    /// `(b : (Lam Integer Float))`, where the parameter is one.
    fn lam_param(&mut self, at: usize) -> Result<Option<Signature>> {
        let kids = self.tree.list(at).unwrap_or_default().to_vec();
        let [name, _, ty] = kids.as_slice() else {
            return Ok(None);
        };
        let Some([from, to]) = self.tree.headed(*ty, "Lam") else {
            return Ok(None);
        };
        let (from, to) = (*from, *to);
        let name = self.fun_name(*name)?;
        let from = self.ty(from)?;
        let params = from.as_tuple().map_or_else(|| vec![from], <[Ty]>::to_vec);
        Ok(Some(Signature { name, params, ret: self.ty(to)? }))
    }
}
