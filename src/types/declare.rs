//! Top-level declarations.

use super::meaning::Meaning;
use super::named::{Known, Named, packed};
use super::outside::Declared;
use super::own::is_operation;
use super::{Elab, RuleSides, sizes};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::read::Form;
use crate::ir::{Body, Def, Fun, Head, Id, Param, Signature, Ty, deep};
use rustc_hash::FxHashMap;

const DECLARATIONS: [&str; 4] = ["def", "edef", "gdef", "rule"];

impl Elab<'_> {
    /// Reads a declaration; an error in it does not hide those in the next.
    pub(super) fn top(&mut self, at: usize) {
        let name = self.declared_name(at);
        let count = |e: &Self| name.as_ref().and_then(|n| e.by_name.get(n)).map_or(0, Vec::len);
        let before = count(self);
        let found = self.declaration(at);
        self.leave();
        if let Err(d) = found {
            self.errors.push(*d);
            if count(self) == before {
                self.doubtful.extend(name);
            }
        }
    }

    /// A declaration in whose text an error has been found: it is declared, if its head is whole.
    pub(super) fn broken(&mut self, at: usize) {
        let (tree, name) = (self.tree, self.declared_name(at));
        let here = tree.at(at).span;
        let places = self.errors.iter().filter_map(|d| d.places.first());
        let wrong =
            places.map(|p| p.0.start).filter(|p| here.start <= *p && *p <= here.end).min().unwrap_or(here.start);
        let whole = match tree.headed(at, "def") {
            Some([name, ret, params, ..]) if tree.at(*params).span.end <= wrong => Some((*name, *ret, *params)),
            Some(_) | None => None,
        };
        let known = self.errors.len();
        let declared = whole.is_some_and(|(name, ret, params)| self.head(name, ret, params).is_ok());
        self.errors.truncate(known);
        self.leave();
        if !declared {
            self.doubtful.extend(name);
        }
    }

    /// The name that a declaration would have.
    fn declared_name(&mut self, at: usize) -> Option<String> {
        let tree = self.tree;
        let kids = tree.list(at)?;
        match (tree.headed(at, "gdef"), kids) {
            (Some([kind, of, ..]), _) => {
                let Form::Bracket(of) = &tree.at(*of).form else { return None };
                let of = self.fun_name(*of.first()?).ok()?.name;
                Some(format!("[{} {of}]", tree.name(*kind)?))
            }
            (None, [_, name, ..]) => self.fun_name(*name).ok().map(|named| named.name),
            _ => None,
        }
    }

    /// Takes everything out of scope.
    fn leave(&mut self) {
        self.scope.clear();
        self.names.clear();
        self.named.clear();
        self.numbers.clear();
        self.pending.clear();
        self.missed.clear();
        self.fits.clear();
        self.borrowed.clear();
        self.nested = 0;
    }

    fn declaration(&mut self, at: usize) -> Result<()> {
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
            ("def", 4) if self.has_names(kids[2]) || self.tree.list(kids[2]).is_some_and(<[usize]>::is_empty) => {
                let message = "expected `(def NAME TYPE (PARAM …) BODY)`";
                Err(self.error(kids[2], message, "the type of the result is missing in front of the parameters"))
            }
            ("def", n) => Err(self.arity(at, "(def NAME TYPE (PARAM …) BODY)", 4, n - 1)),
            ("edef", n) => Err(self.arity(at, "(edef NAME TYPE (TYPE …))", 3, n - 1)),
            ("gdef", n) => Err(self.arity(at, "(gdef DERIVATIVE [f TYPE])", 2, n - 1)),
            (other, _) => {
                let message = format!("unknown declaration `{other}`");
                let label = "expected `def`, `edef`, `gdef` or `rule`";
                let hint = super::foreign::declaration(other).or_else(|| nearest(other, DECLARATIONS));
                Err(self.error(kids[0], &message, label).hint(hint))
            }
        }
    }

    fn arity(&self, at: usize, form: &str, expected: usize, found: usize) -> Box<Diagnostic> {
        let label = format!("expected {expected} parts after the keyword, found {found}");
        self.error(at, &format!("expected `{form}`"), &label)
    }

    fn def(&mut self, kids: &[usize]) -> Result<()> {
        let (name, ret, params, fun) = self.head(kids[1], kids[2], kids[3])?;
        for p in &params {
            self.scope.push(p.ty);
        }
        self.size_meanings(kids[3], &params)?;
        self.params.clone_from(&params);
        for (level, p) in params.iter().enumerate() {
            self.define(&p.name, Meaning::Level(level));
        }
        let body = self.expr(kids[4])?;
        if self.terms.ty(body) != ret {
            let label = format!("expected {ret}, found {}", self.terms.ty(body));
            let message = format!("the body of `{name}` has another type than declared");
            let hint = self.conversion_hint(body, kids[4], &ret.to_string());
            return Err(self.error(kids[4], &message, &label).hint(hint));
        }
        if self.never_ends(body, fun) {
            let message = format!("`{name}` calls itself on every path");
            return Err(self.error(kids[4], &message, "no case ends the recursion"));
        }
        let (first, last) = (self.tree.at(kids[0]).span, self.tree.at(kids[4]).span);
        let wrong = sizes::check(&self.terms, &self.defs, &self.fits, (&params, body, first.to(last)));
        self.errors.extend(wrong);
        let span = self.tree.at(kids[1]).span;
        let declared = self.defs.insert(fun, Def { fun, params, body: Body::Term(body), span }).is_some();
        if declared { self.in_order(fun, kids[1]) } else { Ok(()) }
    }

    /// Name, type and parameters of a definition, which exists from here on.
    fn head(&mut self, name: usize, ret: usize, params: usize) -> Result<(String, Ty, Vec<Param>, Fun)> {
        let at = name;
        let named = self.fun_name(at)?;
        let (ret, params) = match (self.attempt(|e| e.ty(ret)), self.attempt(|e| e.params(params))) {
            (Ok(ret), Ok(params)) => (ret, params),
            (Err(d), Err(other)) => {
                self.errors.push(*other);
                return Err(d);
            }
            (Err(d), Ok(_)) | (Ok(_), Err(d)) => return Err(d),
        };
        self.as_said(at, &named, &params.iter().map(|p| p.ty).collect::<Vec<_>>())?;
        let tys: Vec<Ty> = params.iter().map(|p| p.ty).collect();
        let fun = match self.declared_before(at, &named, &tys, ret)? {
            Some(fun) if self.defs.get(&fun).is_some_and(|d| d.body == Body::External) => fun,
            _ => {
                let known = self.known(&named, &tys);
                self.declare(at, known, tys, ret)?
            }
        };
        Ok((named.name, ret, params, fun))
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

    /// Registers a function; it may not exist yet, nor hide a form.
    pub(super) fn declare(&mut self, at: usize, known: Known, params: Vec<Ty>, ret: Ty) -> Result<Fun> {
        let name = known.key.as_str();
        if super::expr::is_reserved(name) {
            return Err(self.error(at, &format!("`{name}` is a form of the language"), "choose another name"));
        }
        for other in self.by_name.get(name).into_iter().flatten() {
            if packed(&other.sig().params) == packed(&params) && self.said.get(other).copied() == known.said {
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
        let fun = Fun::new(Signature { name: known.name, params, ret });
        self.terms.unspell(&known.key);
        self.said.extend(known.said.map(|arg| (fun, arg)));
        self.by_name.entry(known.key).or_default().push(fun);
        Ok(fun)
    }

    fn edef(&mut self, kids: &[usize]) -> Result<()> {
        let named = self.fun_name(kids[1])?;
        let Some(Declared { params: tys, functions, ret }) = self.outside(&named.name, kids)? else { return Ok(()) };
        if functions.is_empty() {
            self.as_said(kids[1], &named, &tys)?;
        }
        let name = named.name.clone();
        let tys = if functions.is_empty() { self.as_defined(&name, tys) } else { tys };
        let known = super::call::is_known(&name, &tys, ret) || super::expr::is_reserved(&name);
        if known && functions.is_empty() {
            return Ok(());
        }
        if functions.is_empty() && self.declared_before(kids[1], &named, &tys, ret)?.is_some() {
            return Ok(());
        }
        if is_operation(&name, &tys) {
            let message = format!("`{name}` on these types is a built-in operation");
            return Err(self.error(kids[1], &message, "it gives another type"));
        }
        let known = self.known(&named, &tys);
        let fun = self.declare(kids[1], known, tys, ret)?;
        let body = if functions.is_empty() { self.body_outside(fun, kids[1]) } else { Body::External };
        if !functions.is_empty() {
            self.higher.insert(fun, functions);
        }
        self.insert_unnamed(fun, kids[1], body);
        Ok(())
    }

    /// The type in a name is that of the parameters.
    fn as_said(&self, at: usize, named: &Named, params: &[Ty]) -> Result<()> {
        if named.fits(params) { Ok(()) } else { Err(self.other_argument(at, named, "takes", params)) }
    }

    /// A definition whose parameters have no names in the source.
    pub(super) fn insert_unnamed(&mut self, fun: Fun, at: usize, body: Body) {
        let name = |k: usize| format!("x{}", k + 1);
        let param = |(k, ty): (usize, &Ty)| Param { name: name(k), ty: *ty, sizes: vec![] };
        let params = fun.sig().params.iter().enumerate().map(param).collect();
        self.defs.insert(fun, Def { fun, params, body, span: self.tree.at(at).span });
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
        let both = self.each(&[sides.0, sides.1], Self::expr)?;
        let (left, right) = (both[0], both[1]);
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
        let name = self.fun_name(*name)?.name;
        let from = self.ty(from)?;
        let params = from.as_tuple().map_or_else(|| vec![from], <[Ty]>::to_vec);
        Ok(Some(Signature { name, params, ret: self.ty(to)? }))
    }
}
