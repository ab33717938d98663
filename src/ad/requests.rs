//! Which derivatives are needed: a call in a body that is differentiated asks for one, and gets its
//! name at once. Bodies are made later.

use super::flow::{closed, has_floats};
use super::mode::Mode;
use super::written::{ByHand, Written, packed};
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::{Body, Def, Fun, Head, Id, Program, Signature, Terms};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// A derivative that may be called.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Request {
    /// Written by hand: it takes packed arguments, and a tangent or adjoint.
    Written(Fun),
    /// To be made: it takes arguments one by one, then tangents of those that matter or the adjoint.
    Made(Fun),
}

/// A derivative by some parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Of what.
    pub fun: Fun,
    /// Which way.
    pub mode: Mode,
    /// By which parameters.
    pub wrt: Vec<bool>,
    /// Whether a way forwards and one back that somebody wrote go before other derivatives that somebody wrote.
    pub passes: bool,
}

/// See the module.
pub struct Requests {
    /// Derivatives with the functions that stand for them, in the order of requests.
    pub made: IndexMap<Key, Fun>,
    /// Derivatives that the source defines.
    written: Written,
    /// See [`Key::passes`].
    passes: bool,
    /// Functions without a body.
    bodiless: FxHashSet<Fun>,
    /// Bodies of functions that call themselves.
    recursive: FxHashMap<Fun, Id>,
    names: FxHashSet<String>,
}

impl Requests {
    /// Nothing is requested of a program.
    pub fn new(program: &Program) -> Requests {
        let mut out = Requests {
            made: IndexMap::new(),
            written: Written::new(program),
            passes: false,
            bodiless: FxHashSet::default(),
            recursive: FxHashMap::default(),
            names: FxHashSet::default(),
        };
        for def in program.defs.values() {
            out.know(&program.terms, def);
        }
        out
    }

    fn know(&mut self, terms: &Terms, def: &Def) {
        self.names.insert(def.name().to_string());
        match def.body {
            Body::Term(body) => self.know_recursion(terms, def.fun, body),
            Body::External => drop(self.bodiless.insert(def.fun)),
            Body::Derivative => {}
        }
    }

    /// Notes whether a function calls itself.
    pub fn know_recursion(&mut self, terms: &Terms, fun: Fun, body: Id) {
        if terms.reachable(body).into_iter().any(|id| terms.head(id) == Head::Call(fun)) {
            self.recursive.insert(fun, body);
        }
    }

    /// The parameters by which the derivative of a function is made, for a call with derivatives by some:
    /// more where the function calls itself and changes others on the way.
    pub fn by(&self, terms: &Terms, f: Fun, wrt: &[bool]) -> Vec<bool> {
        self.recursive.get(&f).map_or_else(|| wrt.to_vec(), |body| closed(terms, f, *body, wrt))
    }

    /// From here on a way forwards and one back go before other derivatives by hand, or behind them.
    pub fn prefer(&mut self, passes: bool) {
        self.passes = passes && self.written.twofold;
    }

    /// A derivative by parameters, by what is preferred now.
    pub fn key(&self, fun: Fun, mode: Mode, wrt: &[bool]) -> Key {
        Key { fun, mode, wrt: wrt.to_vec(), passes: self.passes && mode == Mode::Reverse }
    }

    /// The derivative that the source defines itself.
    ///
    /// # Errors
    /// It is not whole.
    pub fn written(&self, f: Fun, mode: Mode) -> Result<Option<ByHand>> {
        self.written.find(f, mode, self.passes)
    }

    /// Whether the source has something to say about the derivative.
    pub fn is_written(&self, f: Fun, mode: Mode) -> bool {
        !matches!(self.written(f, mode), Ok(None))
    }

    /// A derivative of a function, for a call at a place.
    ///
    /// # Errors
    /// The function has none.
    pub fn get(&mut self, f: Fun, mode: Mode, wrt: &[bool], place: Option<Span>) -> Result<Request> {
        let at = |d: Box<Diagnostic>| match place {
            Some(span) => d.at(span, "a derivative flows through this call"),
            None => d,
        };
        let own = self.written(f, mode).map_err(at)?;
        if let Some(ByHand::Packed(g)) = own {
            return Ok(Request::Written(g));
        }
        if own.is_none() && self.bodiless.contains(&f) {
            let name = &f.sig().name;
            let message = format!("`{name}` is declared, but not defined here, so it has no derivative");
            let passes = match mode {
                Mode::Forward => "",
                Mode::Reverse => &format!(", or `[suffwdpass {name}]` and `[sufrevpass {name}]`"),
            };
            let hint = format!("hint: define `[{} {name}]`{passes}", mode.word());
            return Err(at(Diagnostic::user(message)).note(hint));
        }
        let key = self.key(f, mode, wrt);
        if let Some(g) = self.made.get(&key) {
            return Ok(Request::Made(*g));
        }
        let g = self.plain(&key);
        self.made.insert(key, g);
        Ok(Request::Made(g))
    }

    /// A new function for a derivative, of arguments one by one.
    pub fn plain(&mut self, key: &Key) -> Fun {
        let g = Fun::new(self.signature(key));
        self.names.insert(g.sig().name.clone());
        g
    }

    fn signature(&self, key: &Key) -> Signature {
        let sig = key.fun.sig();
        let chosen = || sig.params.iter().zip(&key.wrt).filter(|(_, w)| **w).map(|(t, _)| t.tangent());
        let mut params = sig.params.clone();
        let ret = match key.mode {
            Mode::Forward => {
                params.extend(chosen());
                sig.ret.tangent()
            }
            Mode::Reverse => {
                params.push(sig.ret.tangent());
                packed(&chosen().collect::<Vec<_>>())
            }
        };
        let word = if key.passes { "sufrev" } else { key.mode.word() };
        let mut name = format!("{word}{}", suffix(key.fun, &key.wrt));
        while self.names.contains(&name) {
            name += "'";
        }
        Signature { name, params, ret }
    }
}

/// What stands behind the word in the name of a derivative: the function, and a digit for each parameter where some that
/// have floats are not differentiated by.
pub fn suffix(fun: Fun, wrt: &[bool]) -> String {
    let sig = fun.sig();
    // Structured names and operators become plain ones.
    let plain: String = sig.name.chars().map(|c| if "[]() ".contains(c) { '$' } else { c }).collect();
    let floats = sig.params.iter().map(|t| has_floats(*t));
    match floats.eq(wrt.iter().copied()) {
        true => format!("${plain}"),
        false => format!("${plain}${}", wrt.iter().map(|w| if *w { '1' } else { '0' }).collect::<String>()),
    }
}
