//! Names of functions: words, structured names with or without types, and the older spelling that
//! ends in the types of the arguments.

use super::{Elab, MAX_NESTING};
use crate::diag::{Diagnostic, Result};
use crate::ir::read::Form;
use crate::ir::{Scalar, Ty};

/// A function as the source names it.
pub struct Named {
    /// A word, or a structured name in its one spelling, which has no types in it.
    pub name: String,
    /// The type of the one argument of the innermost function, where it was said: `[f T]`, `[rev [f T]]`.
    pub arg: Option<Ty>,
}

impl Named {
    /// Whether a function with these parameters may be meant.
    pub fn fits(&self, params: &[Ty]) -> bool {
        self.arg.is_none_or(|arg| takes(&self.name, params, arg))
    }
}

/// One type for several parameters.
pub(super) fn packed(tys: &[Ty]) -> Ty {
    if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) }
}

/// Whether a function of this name and with these parameters is made of a function of `arg`.
fn takes(name: &str, params: &[Ty], arg: Ty) -> bool {
    let made = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.split_once(' '));
    let Some((kind, of)) = made else { return packed(params) == arg };
    match (kind, params) {
        ("fwd" | "rev" | "sufrev", [first, _]) => takes(of, &[*first], arg),
        // Arguments one by one, and what a way forwards leaves behind, do not tell.
        ("fwd" | "rev" | "sufrev" | "sufrevpass", _) => true,
        _ => takes(of, params, arg),
    }
}

impl Elab<'_> {
    /// The name of a function.
    pub(super) fn fun_name(&mut self, at: usize) -> Result<Named> {
        match &self.tree.at(at).form {
            Form::Bracket(kids) => match *kids.as_slice() {
                [of, ty] if self.is_annotation(ty) => {
                    let twice = |e: &Self| e.error(at, "expected a structured name", "the type stands here twice");
                    // A name with a type is one level, as it is without: what it is of has no type, or is refused now.
                    if self.is_annotated(of) {
                        return Err(twice(self));
                    }
                    let arg = self.ty(ty)?;
                    let Named { name, arg: inner } = self.fun_name(of)?;
                    match inner {
                        Some(_) => Err(twice(self)),
                        None => Ok(Named { name, arg: Some(arg) }),
                    }
                }
                [kind, of] => {
                    let Some(kind) = self.tree.name(kind).map(str::to_string) else {
                        return Err(self.error(kind, "expected the kind of a derivative", "such as `rev`"));
                    };
                    let Named { name, arg } = self.nest(at, |e| e.fun_name(of))?;
                    Ok(Named { name: format!("[{kind} {name}]"), arg })
                }
                _ => Err(self.error(at, "expected a structured name", "such as `[rev f]`")),
            },
            Form::Atom(_) => match self.tree.name(at) {
                Some(n) => Ok(Named { name: n.to_string(), arg: None }),
                None => Err(self.error(at, "expected the name of a function", "this is no name")),
            },
            Form::List(_) => Err(self.error(at, "expected the name of a function", "this is a list")),
        }
    }

    /// Whether a form is a name with a type, as in `[f Float]`.
    fn is_annotated(&self, at: usize) -> bool {
        match &self.tree.at(at).form {
            Form::Bracket(kids) => matches!(*kids.as_slice(), [_, ty] if self.is_annotation(ty)),
            Form::Atom(_) | Form::List(_) => false,
        }
    }

    /// Whether a form is a type rather than the name of a function.
    fn is_annotation(&self, at: usize) -> bool {
        let known = |n: &str| n == "String" || Scalar::NAMES.iter().any(|(_, s)| *s == n);
        self.tree.list(at).is_some() || self.tree.name(at).is_some_and(known)
    }

    /// The type that a structured name says is not that of what the function takes, or is given.
    pub(super) fn other_argument(&self, at: usize, named: &Named, does: &str, tys: &[Ty]) -> Box<Diagnostic> {
        let said = named.arg.map(|t| t.to_string()).unwrap_or_default();
        let label = format!("it says {said}, and the function {does} {}", packed(tys));
        self.error(at, &format!("`{}` {does} another argument than its name says", named.name), &label)
    }
}

/// The older spelling of an overloaded function: its name, and the types of its arguments as
/// letters behind a `$` or `@`, as in `add$ff`.
pub(super) fn suffixed(name: &str) -> Option<(&str, Vec<Ty>)> {
    let at = name.rfind(['$', '@']).filter(|at| *at > 0)?;
    let (base, mut codes) = (&name[..at], &name[at + 1..]);
    let mut tys = vec![];
    while !codes.is_empty() {
        let (ty, rest) = code(codes, MAX_NESTING)?;
        tys.push(ty);
        codes = rest;
    }
    (!tys.is_empty()).then_some((base, tys))
}

/// The type that a text begins with: `f i b s`, `v` and `T2` before an element, `<…>` around a tuple.
fn code(text: &str, deepest: usize) -> Option<(Ty, &str)> {
    let deepest = deepest.checked_sub(1)?;
    let mut chars = text.chars();
    let first = chars.next()?;
    let rest = chars.as_str();
    Some(match first {
        'f' => (Ty::float(), rest),
        'i' => (Ty::int(), rest),
        'b' => (Ty::bool(), rest),
        's' => (Ty::string(), rest),
        'v' => {
            let (elem, rest) = code(rest, deepest)?;
            (Ty::tensor(1, elem), rest)
        }
        'T' => {
            let rank = chars.next()?.to_digit(10).filter(|d| (1..=8).contains(d))?;
            let (elem, rest) = code(chars.as_str(), deepest)?;
            (Ty::tensor(rank as usize, elem), rest)
        }
        '<' => {
            let (mut parts, mut rest) = (vec![], rest);
            while let Some((ty, next)) = code(rest, deepest) {
                parts.push(ty);
                rest = next;
            }
            (Ty::tuple(parts), rest.strip_prefix('>')?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: every code of the older spelling, and that other names are left alone.
    #[test]
    fn older_names_say_their_types() {
        let says = |name: &str| suffixed(name).map(|(base, tys)| format!("{base} {}", packed(&tys)));
        assert_eq!(says("add$ff").as_deref(), Some("add (Tuple Float Float)"));
        assert_eq!(says("add$vfvf").as_deref(), Some("add (Tuple (Vec Float) (Vec Float))"));
        assert_eq!(says("mul@T2fvf").as_deref(), Some("mul (Tuple (Tensor 2 Float) (Vec Float))"));
        assert_eq!(says("not$b").as_deref(), Some("not Bool"));
        assert_eq!(says("eq$<if><if>").as_deref(), Some("eq (Tuple (Tuple Integer Float) (Tuple Integer Float))"));
        assert_eq!(says(&format!("f$f{}f", "v".repeat(100_000))), None);
        for other in ["add", "add$", "$f", "rev$mul", "add$ffx", "mul$Mat$Vec", "eq$<if", "add$T0f", "add$v"] {
            assert_eq!(says(other), None, "{other}");
        }
    }
}
