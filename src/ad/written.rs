//! Derivatives that somebody wrote: definitions and declarations become the derivative of a function, by their
//! names and types. What was written for a function is its derivative, whatever its body says.
//!
//! It must not know how derivatives are made.

use super::flow::has_floats;
use super::mode::Mode;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Head, Id, Program, Terms, Ty};
use rustc_hash::{FxHashMap, FxHashSet};

/// How a derivative was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ByHand {
    /// It takes the argument, and a tangent or the adjoint.
    Packed(Fun),
    /// It takes arguments one by one; whether those without floats have their part in it, too.
    Flat(Fun, bool),
    /// A way forwards, which gives the result and what it leaves behind, and the way back from the adjoint and that.
    Passes(Fun, Fun),
}

/// See the module.
#[derive(Default)]
pub struct Written {
    /// All functions of the source but the derivatives that it asks for.
    named: FxHashMap<String, Vec<Fun>>,
    /// Ways forwards that leave behind nothing but the argument.
    plain: FxHashSet<Fun>,
    /// Whether a function has two derivatives of one mode that may differ.
    pub twofold: bool,
}

/// One type for several parameters.
pub fn packed(tys: &[Ty]) -> Ty {
    if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) }
}

impl Written {
    /// What a program has.
    pub fn new(program: &Program) -> Written {
        let mut out = Written::default();
        for def in program.defs.values().filter(|d| d.body != Body::Derivative) {
            out.named.entry(def.name().to_string()).or_default().push(def.fun);
            if leaves_its_argument(&program.terms, def) {
                out.plain.insert(def.fun);
            }
        }
        let differs = |f: &Fun| match (out.find(*f, Mode::Reverse, false), out.find(*f, Mode::Reverse, true)) {
            (Ok(a), Ok(b)) => a != b,
            (a, b) => a.is_ok() != b.is_ok(),
        };
        out.twofold = program.defs.keys().any(differs);
        out
    }

    /// The derivative of a function; `passes` asks for a way forwards and one back where there is a choice.
    ///
    /// # Errors
    /// What was written for the function has not the types that it should have.
    pub fn find(&self, f: Fun, mode: Mode, passes: bool) -> Result<Option<ByHand>> {
        let direct = |kind: &str| self.direct(f, mode, kind);
        let each: &[&dyn Fn() -> Result<Option<ByHand>>] = match (mode, passes) {
            (Mode::Forward, _) => &[&|| direct("fwd")],
            (Mode::Reverse, false) => &[&|| direct("rev"), &|| self.passes(f), &|| direct("sufrev")],
            (Mode::Reverse, true) => &[&|| self.passes(f), &|| direct("sufrev"), &|| direct("rev")],
        };
        for one in each {
            if let Some(found) = one()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Functions with the name of a derivative, in each of its spellings.
    fn called(&self, kind: &str, f: Fun) -> impl Iterator<Item = Fun> {
        let sig = f.sig();
        let (name, arg) = (&sig.name, packed(&sig.params));
        let names = [format!("[{kind} [{name} {arg}]]"), format!("[{kind} {name}]"), format!("{kind}${name}")];
        names.into_iter().flat_map(|n| self.named.get(&n).cloned().unwrap_or_default())
    }

    /// `[fwd f]`, `[rev f]` or `[sufrev f]`.
    fn direct(&self, f: Fun, mode: Mode, kind: &str) -> Result<Option<ByHand>> {
        let sig = f.sig();
        let s = packed(&sig.params);
        let tangents: Vec<Ty> = sig.params.iter().map(|t| t.tangent()).collect();
        let moving: Vec<Ty> = sig.params.iter().filter(|t| has_floats(**t)).map(|t| t.tangent()).collect();
        // What it takes beside the arguments, with and without those that do not move, and what it gives.
        let ways = match mode {
            Mode::Forward => [(tangents, sig.ret.tangent()), (moving, sig.ret.tangent())],
            Mode::Reverse => {
                let dr = vec![sig.ret.tangent()];
                [(dr.clone(), packed(&tangents)), (dr, packed(&moving))]
            }
        };
        for g in self.called(kind, f) {
            let (params, ret) = (&g.sig().params, g.sig().ret);
            let whole = [s, packed(&ways[0].0)];
            if *params == whole && ret == ways[0].1 {
                return Ok(Some(ByHand::Packed(g)));
            }
            let flat = ways.iter().position(|(more, gives)| {
                *params == [sig.params.as_slice(), more.as_slice()].concat() && ret == *gives
            });
            if let Some(k) = flat {
                return Ok(Some(ByHand::Flat(g, k == 0)));
            }
            if *params == whole {
                let message =
                    format!("`{}` gives {ret}, and a derivative of `{}` {}", g.sig().name, sig.name, ways[0].1);
                return Err(Diagnostic::user(message));
            }
        }
        Ok(None)
    }

    /// `[suffwdpass f]` and `[sufrevpass f]`.
    fn passes(&self, f: Fun) -> Result<Option<ByHand>> {
        let sig = f.sig();
        let s = packed(&sig.params);
        let left = |g: &Fun| match g.sig().ret.as_tuple() {
            Some([first, left]) if packed(&g.sig().params) == s && *first == sig.ret => Some(*left),
            _ => None,
        };
        let forwards = self.called("suffwdpass", f).find(|g| left(g).is_some());
        let goes_back = |g: &Fun| match packed(&g.sig().params).as_tuple() {
            Some([dr, _]) => *dr == sig.ret.tangent() && g.sig().ret == s.tangent(),
            _ => false,
        };
        let mut back = self.called("sufrevpass", f).filter(goes_back);
        let Some(there) = forwards else {
            return match back.next() {
                Some(back) => Err(unpaired(f, back, "suffwdpass")),
                None => Ok(None),
            };
        };
        let taken = |g: &Fun| packed(&g.sig().params).as_tuple().map(|parts| parts[1]);
        match back.find(|g| taken(g) == left(&there)) {
            Some(back) => Ok(Some(ByHand::Passes(there, back))),
            None if self.plain.contains(&there) && self.called("sufrevpass", f).next().is_none() => Ok(None),
            None => Err(unpaired(f, there, "sufrevpass")),
        }
    }
}

fn unpaired(f: Fun, has: Fun, lacks: &str) -> Box<Diagnostic> {
    let name = &f.sig().name;
    let message = format!("`{name}` has no derivative: no `[{lacks} {name}]` goes with `{}`", has.sig().name);
    Diagnostic::user(message).note("one of the two gives the result and what it leaves behind, the other takes that")
}

/// Whether a definition is the pair of what a function gives for its parameters and of these.
fn leaves_its_argument(terms: &Terms, def: &Def) -> bool {
    let Some(body) = def.term() else { return false };
    let n = def.params.len();
    let is_parameter = |id: Id, k: usize| matches!(terms.head(id), Head::Var(i, _) if i as usize == n - 1 - k);
    let are_parameters = |ids: &[Id]| ids.len() == n && ids.iter().enumerate().all(|(k, id)| is_parameter(*id, k));
    let (Head::Tuple, [result, left]) = (terms.head(body), terms.kids(body)) else { return false };
    let calls = matches!(terms.head(*result), Head::Call(_)) && are_parameters(terms.kids(*result));
    let leaves = match n {
        1 => is_parameter(*left, 0),
        _ => terms.head(*left) == Head::Tuple && are_parameters(terms.kids(*left)),
    };
    calls && leaves
}
