//! Types and parameter lists are read from forms.

use super::Elab;
use crate::diag::Result;
use crate::ir::read::{Atom, Form};
use crate::ir::{Lit, Param, Range, Scalar, Ty, TyKind};

/// Names of types that take arguments.
const CONSTRUCTORS: [&str; 5] = ["Tuple", "Vec", "Tensor", "Lam", "LM"];

impl Elab<'_> {
    /// A type that is one form.
    pub fn ty(&mut self, at: usize) -> Result<Ty> {
        match &self.tree.at(at).form {
            Form::List(kids) => match kids.as_slice() {
                [one] if self.tree.list(*one).is_some() => self.nest(at, |e| e.ty(*one)),
                // Only the types that it is made of make a type deep, but brackets alone nest as well.
                [first, ..] if self.tree.list(*first).is_some() => {
                    self.nest(at, |e| e.ty(*first))?;
                    Err(self.error(kids[1], "the type ends before this", "unexpected"))
                }
                kids => {
                    let (ty, used) = self.ty_words(kids, at)?;
                    if used < kids.len() {
                        return Err(self.error(kids[used], "the type ends before this", "unexpected"));
                    }
                    Ok(ty)
                }
            },
            Form::Atom(Atom::Name(_)) => self.ty_words(&[at], at).map(|(ty, _)| ty),
            Form::Atom(_) | Form::Bracket(_) => Err(self.error(at, "expected a type", "this is none")),
        }
    }

    /// A type that may be spread over several forms, and how many it took.
    fn ty_words(&mut self, words: &[usize], at: usize) -> Result<(Ty, usize)> {
        let Some(first) = words.first().copied() else {
            return Err(self.error(at, "expected a type", "nothing stands here"));
        };
        let Some(name) = self.tree.name(first) else {
            return Ok((self.ty(first)?, 1));
        };
        if let Some((s, _)) = Scalar::NAMES.iter().find(|(_, n)| *n == name) {
            return Ok((Ty::scalar(*s), 1));
        }
        match name {
            "String" => Ok((Ty::string(), 1)),
            "Tuple" => {
                let parts = self.nest(first, |e| words[1..].iter().map(|w| e.ty(*w)).collect::<Result<Vec<_>>>())?;
                Ok((Ty::tuple(parts), words.len()))
            }
            "Vec" => {
                let (elem, used) = self.nest(first, |e| e.ty_words(&words[1..], at))?;
                Ok((Ty::tensor(1, elem), used + 1))
            }
            "Tensor" => {
                let rank = words.get(1).map(|w| (&self.tree.at(*w).form, *w));
                let Some((Form::Atom(Atom::Number(Lit::Int(Scalar::I64, rank @ 1..=8))), _)) = rank else {
                    let at = rank.map_or(at, |(_, w)| w);
                    return Err(self.error(at, "expected the rank of a tensor", "a number from 1 to 8"));
                };
                let rank = *rank as usize;
                let (elem, used) = self.nest(first, |e| e.ty_words(&words[2..], at))?;
                Ok((Ty::tensor(rank, elem), used + 2))
            }
            "LM" | "Lam" if self.foreign.allowed => {
                let parts = self.nest(first, |e| words[1..].iter().map(|w| e.ty(*w)).collect::<Result<Vec<_>>>())?;
                if parts.len() != 2 {
                    let label = format!("expected 2 types after `{name}`, found {}", parts.len());
                    return Err(self.error(at, "expected the type of a function", &label));
                }
                let functions = name == "Lam" && self.foreign.met.is_none();
                self.foreign.met = Some(if functions { "functions as values" } else { "linear maps" });
                Ok((Ty::tuple(parts), words.len()))
            }
            "LM" => Err(self.error(first, "linear map types (`LM`) are not supported", "here")),
            "Lam" => Err(self.error(
                first,
                "a function type may stand only at a parameter of an `edef` or of a rule",
                "here",
            )),
            "Any" => Err(self.error(first, "`Any` is no type here", "name the type")),
            _ if name.starts_with('?') && self.generic => match Range::of(name) {
                Some(range) => Ok((Ty::new(TyKind::Var(range, crate::ir::lit::intern(name))), 1)),
                None => Err(self.error(
                    first,
                    "a type variable starts with ?T (any type), ?A (additive), ?N (number), ?I (integer) or ?F (float)",
                    "unknown range",
                )),
            },
            _ => {
                let known = Scalar::NAMES.iter().map(|(_, n)| *n).chain(CONSTRUCTORS).chain(["String"]);
                let sized = words.get(1).and_then(|w| self.tree.name(*w)).filter(|n| known.clone().any(|k| k == *n));
                let sized = sized.map(|of| format!("sizes have names behind the type: `(x : (Vec {of}) {name})`"));
                let hint = super::foreign::ty(name).or(sized).or_else(|| crate::diag::nearest(name, known));
                Err(self.error(first, &format!("unknown type `{name}`"), "here").hint(hint))
            }
        }
    }

    /// Whether the form is one type rather than a list of types.
    pub(super) fn is_one_type(&self, at: usize) -> bool {
        match self.tree.list(at) {
            Some(kids) => kids.first().and_then(|k| self.tree.name(*k)).is_some_and(|n| CONSTRUCTORS.contains(&n)),
            None => true,
        }
    }

    /// A parameter list: `()`, `(x : T)`, `((x : T) …)`.
    pub fn params(&mut self, at: usize) -> Result<Vec<Param>> {
        let Some(kids) = self.tree.list(at) else {
            return Err(self.error(at, "expected a parameter list", "such as `((x : Float) (n : Integer))` or `()`"));
        };
        let kids = kids.to_vec();
        let single = kids.get(1).and_then(|k| self.tree.name(*k)) == Some(":");
        let each = if single { vec![at] } else { kids };
        let params = self.each(&each, Self::param)?;
        for (k, p) in params.iter().enumerate() {
            if params[..k].iter().any(|q| q.name == p.name) {
                return Err(self.error(each[k], &format!("two parameters are called `{}`", p.name), "again here"));
            }
        }
        Ok(params)
    }

    /// `(x : T)` or `(x : T sizes)`.
    pub fn param(&mut self, at: usize) -> Result<Param> {
        let kids = self.tree.list(at).unwrap_or_default().to_vec();
        let shape = |e: &Self| e.error(at, "expected a parameter", "such as `(x : Float)`");
        let [name, colon, rest @ ..] = kids.as_slice() else {
            return Err(shape(self));
        };
        let Some(text) = self.tree.name(*name).map(str::to_string) else {
            return Err(shape(self));
        };
        if self.tree.name(*colon) != Some(":") || rest.is_empty() {
            return Err(shape(self));
        }
        self.may_name(*name)?;
        let (ty, used) = self.ty_words(rest, at)?;
        let sizes = match &rest[used..] {
            [] => vec![],
            [sizes] => self.size_names(*sizes, ty)?,
            [_, extra, ..] => {
                return Err(self.error(*extra, "the parameter ends before this", "unexpected"));
            }
        };
        Ok(Param { name: text, ty, sizes })
    }

    /// Refuses a name that already means a value wherever it stands.
    pub(super) fn may_name(&self, at: usize) -> Result<()> {
        match self.tree.name(at) {
            Some(name @ ("true" | "false")) => {
                let message = format!("`{name}` is a value of Bool, so nothing else can have that name");
                Err(self.error(at, &message, "choose another name"))
            }
            _ => Ok(()),
        }
    }

    fn size_names(&mut self, at: usize, ty: Ty) -> Result<Vec<String>> {
        let each = self.tree.list(at).map_or_else(|| vec![at], <[usize]>::to_vec);
        let mut names = vec![];
        for k in each {
            match self.tree.name(k) {
                Some(n) => {
                    self.may_name(k)?;
                    names.push(n.to_string());
                }
                None => return Err(self.error(k, "expected the name of a size", "here")),
            }
        }
        if names.len() != ty.axes() {
            let label = format!("expected {} (the axes of {ty}), found {}", ty.axes(), names.len());
            return Err(self.error(at, "wrong number of size names", &label));
        }
        Ok(names)
    }
}
