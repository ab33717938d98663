//! Names of functions: words, structured names with or without types, and the older spelling that
//! ends in the types of the arguments.

use super::{Elab, MAX_NESTING};
use crate::diag::{Diagnostic, Result};
use crate::ir::read::Form;
use crate::ir::{Fun, Scalar, Ty};

/// What `gdef` makes.
pub const KINDS: [&str; 7] = ["fwd", "rev", "CL", "shape", "suffwdpass", "sufrevpass", "sufrev"];

/// A function as the source names it.
pub struct Named {
    /// A word, or a structured name in its one spelling, which has no types in it.
    pub name: String,
    /// The type of the one argument of the innermost function, where it was said: `[f T]`, `[rev [f T]]`.
    pub arg: Option<Ty>,
}

/// A function that is about to be declared.
pub(super) struct Known {
    /// By what sources name it, without types.
    pub key: String,
    /// Its own name, with a type where its parameters do not tell of what it is made.
    pub name: String,
    /// That type.
    pub said: Option<Ty>,
}

impl Known {
    /// A function of a name in the source.
    pub fn new(named: &Named, params: &[Ty]) -> Known {
        let said = named.needed(params);
        let key = named.name.clone();
        Known { name: said.map_or_else(|| key.clone(), |arg| with_type(&key, arg)), key, said }
    }
}

impl Named {
    /// Whether a function with these parameters may be meant.
    pub fn fits(&self, params: &[Ty]) -> bool {
        self.arg.is_none_or(|arg| takes(&self.name, params, arg).unwrap_or(true))
    }

    /// The type that has to stand in the name of a function with these parameters, as they do not tell of which
    /// function it is made.
    pub(super) fn needed(&self, params: &[Ty]) -> Option<Ty> {
        self.arg.filter(|arg| takes(&self.name, params, *arg).is_none())
    }
}

/// A structured name with the type of the innermost function in it.
pub(super) fn with_type(name: &str, arg: Ty) -> String {
    with_base(name, &format!("[{} {arg}]", innermost(name)))
}

/// The innermost function of a structured name without types.
pub(super) fn innermost(name: &str) -> &str {
    let inside = name.trim_end_matches(']');
    inside.rsplit_once(' ').map_or(inside, |(_, of)| of)
}

/// A structured name without types, of another innermost function.
pub(super) fn with_base(name: &str, base: &str) -> String {
    let inside = name.trim_end_matches(']').len();
    format!("{}{base}{}", &name[..inside - innermost(name).len()], &name[inside..])
}

/// The argument of the innermost function of a structured name, from that of the whole; nothing where it does not tell.
pub(super) fn argument(name: &str, arg: Ty) -> Option<Ty> {
    let made = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.split_once(' '));
    let Some((kind, of)) = made else { return Some(arg) };
    match kind {
        "fwd" | "rev" | "sufrev" => match arg.as_tuple() {
            Some([first, _]) => argument(of, *first),
            _ => None,
        },
        "sufrevpass" => None,
        _ => argument(of, arg),
    }
}

/// One type for several parameters.
pub(super) fn packed(tys: &[Ty]) -> Ty {
    if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) }
}

/// Whether a function of this name and with these parameters is made of a function of `arg`; nothing where they do
/// not tell.
fn takes(name: &str, params: &[Ty], arg: Ty) -> Option<bool> {
    let made = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.split_once(' '));
    let Some((kind, of)) = made else { return Some(packed(params) == arg) };
    match (kind, params) {
        ("fwd" | "rev" | "sufrev", [first, _]) => takes(of, &[*first], arg),
        // Arguments one by one, and what a way forwards leaves behind, do not tell.
        ("fwd" | "rev" | "sufrev" | "sufrevpass", _) => None,
        _ => takes(of, params, arg),
    }
}

impl Elab<'_> {
    /// The functions that a name may mean; those first that it says more of.
    pub(super) fn meant(&self, named: &Named) -> Vec<Fun> {
        let all = self.by_name.get(&named.name).into_iter().flatten().filter(|f| !self.higher.contains_key(f));
        let (typed, plain): (Vec<Fun>, Vec<Fun>) = all.partition(|f| self.said.contains_key(f));
        match named.arg {
            None => [plain, typed].concat(),
            Some(arg) => typed.into_iter().filter(|f| self.said[f] == arg).chain(plain).collect(),
        }
    }

    /// Refuses a name without a type where functions of the same parameters differ in that.
    pub(super) fn one_of(&self, at: usize, named: &Named, meant: &[Fun], fun: Fun) -> Result<()> {
        let other = |f: &&Fun| **f != fun && f.sig().params == fun.sig().params;
        match meant.iter().find(other).filter(|_| named.arg.is_none() && self.said.contains_key(&fun)) {
            None => Ok(()),
            Some(other) => {
                let message = format!("`{}` may be two functions of these arguments", named.name);
                let label = format!("write `{}` or `{}`", fun.sig().name, other.sig().name);
                Err(self.error(at, &message, &label))
            }
        }
    }

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
