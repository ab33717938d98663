//! Derivatives by name: what `gdef` declares, and what a call asks for that names the derivative of a function above
//! it. Their bodies are made later.

use super::Elab;
use super::named::{KINDS, Known, Named, packed};
use super::own::is_built_in;
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::read::Form;
use crate::ir::{Body, Fun, Head, Id, Ty};

/// What a derivative takes, in the two parts that it has.
fn taken(kind: &str, of: Fun) -> Vec<Ty> {
    let (s, t) = (packed(&of.sig().params), of.sig().ret);
    match kind {
        "fwd" => vec![s, s.tangent()],
        "rev" | "sufrev" => vec![s, t.tangent()],
        "sufrevpass" => vec![t.tangent(), s],
        _ => of.sig().params.clone(),
    }
}

impl Elab<'_> {
    /// `(gdef KIND [f T])`.
    pub(super) fn gdef(&mut self, kids: &[usize]) -> Result<()> {
        let kind = self.tree.name(kids[1]).unwrap_or_default().to_string();
        let (key, of) = self.differentiated(kids[2])?;
        if !KINDS.contains(&kind.as_str()) {
            let message = format!("derivatives of the kind `{kind}` are not supported");
            let label = format!("one of {}", KINDS.map(|k| format!("`{k}`")).join(", "));
            return Err(self.error(kids[1], &message, &label).hint(nearest(&kind, KINDS)));
        }
        let made = format!("[{kind} {key}]");
        let (said, params) = (self.said.get(&of).copied(), taken(&kind, of));
        let same = |f: &Fun| f.sig().params == params && self.said.get(f).copied() == said;
        // A call above may have asked for it.
        if self.asked.iter().any(|f| same(f) && self.by_name.get(&made).is_some_and(|all| all.contains(f))) {
            return Ok(());
        }
        self.derivative(kids[2], &kind, &key, of).map(drop)
    }

    /// Declares a derivative of a function that sources call `key`.
    fn derivative(&mut self, at: usize, kind: &str, key: &str, of: Fun) -> Result<Fun> {
        let said = self.said.get(&of).copied();
        let known = Known { key: format!("[{kind} {key}]"), name: format!("[{kind} {}]", of.sig().name), said };
        let (s, t) = (packed(&of.sig().params), of.sig().ret);
        let ret = match kind {
            "fwd" => t.tangent(),
            "rev" | "sufrev" | "sufrevpass" => s.tangent(),
            "CL" => t,
            _ => return self.companion(at, known, kind, of),
        };
        let by_hand = self.by_name.get(&known.key).into_iter().flatten();
        if kind == "sufrevpass" && by_hand.clone().any(|f| self.said.get(f) == Some(&s)) {
            return Err(self.error(at, &format!("`{}` is defined twice", known.key), "again here"));
        }
        let fun = self.declare(at, known, taken(kind, of), ret)?;
        self.insert_unnamed(fun, at, Body::Derivative);
        Ok(fun)
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
        let (named, arg) = (self.fun_name(base)?, self.ty(inner)?);
        let name = named.name.clone();
        let takes = |f: &Fun| match nested {
            true if self.said.contains_key(f) => true,
            true if name.starts_with("[sufrevpass ") => f.sig().params.last() == Some(&arg),
            true => packed(&f.sig().params) == arg || f.sig().params.first() == Some(&arg),
            false => packed(&f.sig().params) == arg,
        };
        let meant = self.meant(&named);
        if let Some(fun) = meant.iter().copied().find(takes) {
            self.one_of(base, &named, &meant, fun)?;
            return Ok((name, fun));
        }
        if self.doubtful.contains(&name) {
            return Err(Diagnostic::consequence());
        }
        if let (false, Some(fun)) = (nested, self.wrapped(base, &name, arg)?) {
            return Ok((name, fun));
        }
        let message = format!("there is no function `{name}` of {arg} above this line");
        let d = self.error(base, &message, "here");
        let funs = self.by_name.get(&name).cloned().unwrap_or_default();
        if funs.is_empty() {
            return Err(d.hint(nearest(&name, self.by_name.keys().map(String::as_str))));
        }
        Err(funs.iter().fold(d, |d, f| d.note(format!("it takes {}", packed(&f.sig().params)))))
    }

    /// What a function has beside its derivatives: the shape of its result, or the result with the
    /// argument, from which `sufrevpass` goes back.
    fn companion(&mut self, at: usize, known: Known, kind: &str, of: Fun) -> Result<Fun> {
        let tys = of.sig().params.clone();
        // A call may ask for it, in the middle of a body.
        let outer = (std::mem::take(&mut self.scope), std::mem::take(&mut self.pending));
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
        (self.scope, self.pending) = outer;
        let ret = self.terms.ty(body);
        let fun = self.declare(at, known, tys, ret)?;
        self.insert_unnamed(fun, at, Body::Term(body));
        Ok(fun)
    }

    /// What a name says: which derivative, and of what; nothing where it is no name of a derivative of a function
    /// above. Older programs write `rev$f` for `[rev f]`.
    fn names_derivative<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        let structured = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.split_once(' '));
        let (kind, of) = structured.or_else(|| name.split_once('$'))?;
        let known = || self.by_name.contains_key(of) || is_built_in(of) || self.names_derivative(of).is_some();
        (KINDS.contains(&kind) && known()).then_some((kind, of))
    }

    /// Whether a name is that of a derivative that may be asked for.
    pub(super) fn is_derivative(&self, name: &str) -> bool {
        !self.generic && self.names_derivative(name).is_some()
    }

    /// The function whose derivative a name would be, where its declaration has an error.
    pub(super) fn is_doubtful_derivative(&self, name: &str) -> bool {
        self.names_derivative(name).is_some_and(|(_, of)| self.doubtful.contains(of))
    }

    /// A call of a derivative that nobody has declared: it is made, as if a `gdef` stood above the definition whose
    /// body this is.
    pub(super) fn derivative_call(&mut self, at: usize, named: &Named, ids: &[Id], tys: &[Ty]) -> Result<Option<Id>> {
        let Some((kind, of)) = self.names_derivative(&named.name).filter(|_| !self.generic) else { return Ok(None) };
        let of = Named { name: of.to_string(), arg: named.arg };
        for f in self.meant(&of) {
            if let Some(made) = self.derivative_of(at, (named, kind, &of.name), f, (ids, tys))? {
                return Ok(Some(made));
            }
        }
        let arg = match (kind, tys) {
            ("fwd" | "rev" | "sufrev", [one]) => one.as_tuple().and_then(|parts| parts.first().copied()),
            ("fwd" | "rev" | "sufrev", [first, _]) => Some(*first),
            ("fwd", many) => Some(packed(&many[..many.len() / 2])),
            ("rev" | "sufrev", [many @ .., _]) => Some(packed(many)),
            ("sufrevpass", many) => many.last().copied(),
            (_, many) => Some(packed(many)),
        };
        let Some(arg) = arg.filter(|arg| named.arg.is_none_or(|said| said == *arg)) else { return Ok(None) };
        match self.function_of(at, &of.name, arg)? {
            Some(f) => self.derivative_of(at, (named, kind, &of.name), f, (ids, tys)),
            None => Ok(None),
        }
    }

    /// A function of a name and of this argument that is built in, or a derivative that is made for the call.
    fn function_of(&mut self, at: usize, name: &str, arg: Ty) -> Result<Option<Fun>> {
        let named = Named { name: name.to_string(), arg: None };
        if let Some(f) = self.meant(&named).into_iter().find(|f| packed(&f.sig().params) == arg) {
            return Ok(Some(f).filter(|f| self.defs.contains_key(f)));
        }
        let Some((kind, of)) = self.names_derivative(name).map(|(k, o)| (k.to_string(), o.to_string())) else {
            return self.wrapped(at, name, arg);
        };
        let inner = match (kind.as_str(), arg.as_tuple()) {
            ("fwd" | "rev" | "sufrev", Some([first, _])) => *first,
            ("sufrevpass", Some([_, last])) => *last,
            _ => arg,
        };
        let Some(f) = self.function_of(at, &of, inner)? else { return Ok(None) };
        if packed(&taken(&kind, f)) != arg {
            return Ok(None);
        }
        let made = self.derivative(at, &kind, &of, f)?;
        self.asked.insert(made);
        Ok(Some(made))
    }

    /// As [`Elab::derivative_call`], of one function, where it takes that. Arguments may stand one by one before the
    /// tangents or the adjoint.
    fn derivative_of(
        &mut self,
        at: usize,
        (named, kind, key): (&Named, &str, &str),
        f: Fun,
        (ids, tys): (&[Id], &[Ty]),
    ) -> Result<Option<Id>> {
        let (own, params) = (f.sig().params.clone(), taken(kind, f));
        let n = own.len();
        let more = match kind {
            "fwd" => own.iter().map(|t| t.tangent()).collect(),
            _ => vec![f.sig().ret.tangent()],
        };
        let one_by_one = matches!(kind, "fwd" | "rev" | "sufrev") && n > 1 && tys == [own, more].concat();
        if !one_by_one && packed(tys) != packed(&params) {
            return Ok(None);
        }
        if !self.defs.contains_key(&f) {
            let message = format!("`{}` is a derivative of the function whose body this is", named.name);
            return Err(self.error(at, &message, "there is none yet"));
        }
        let whole = Named { name: format!("[{kind} {key}]"), arg: named.arg };
        let there = |g: &Fun| packed(&g.sig().params) == packed(&params) && self.said.get(g) == self.said.get(&f);
        if !self.meant(&whole).iter().any(there) {
            let made = self.derivative(at, kind, key, f)?;
            self.asked.insert(made);
        }
        let ids = match one_by_one {
            true => {
                let mut pack = |ids: &[Id]| match ids {
                    [one] => *one,
                    many => self.terms.put(Head::Tuple, many.iter().copied()),
                };
                vec![pack(&ids[..n]), pack(&ids[n..])]
            }
            false => ids.to_vec(),
        };
        let tys: Vec<Ty> = ids.iter().map(|id| self.terms.ty(*id)).collect();
        self.user_call(at, &whole, &ids, &tys, &[])
    }

    /// What derivatives that a name may mean take.
    pub(super) fn derivatives(&self, name: &str) -> Vec<String> {
        let Some((kind, of)) = self.names_derivative(name) else { return vec![] };
        let funs = self.by_name.get(of).into_iter().flatten();
        let show = |tys: Vec<Ty>| tys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        funs.map(|f| format!("([{kind} {of}] {})", show(taken(kind, *f)))).collect()
    }
}
