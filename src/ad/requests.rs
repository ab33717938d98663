//! Which derivatives are needed: a call in a body that is differentiated asks for one, and gets its
//! name at once. Bodies are made later.

use super::flow::{closed, has_floats};
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::{Body, Def, Fun, Head, Id, Program, Signature, Terms, Ty};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// Which way derivatives flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// Tangents with the values.
    Forward,
    /// Adjoints against them.
    Reverse,
}

impl Mode {
    /// The word that names derivatives of the mode.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Forward => "fwd",
            Mode::Reverse => "rev",
        }
    }
}

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
}

/// See the module.
pub struct Requests {
    /// Derivatives with the functions that stand for them, in the order of requests.
    pub made: IndexMap<Key, Fun>,
    /// Derivatives that the source defines, by name and parameter types.
    written: FxHashMap<(String, Vec<Ty>), Fun>,
    /// Functions without a body.
    bodiless: FxHashSet<Fun>,
    /// Bodies of functions that call themselves.
    recursive: FxHashMap<Fun, Id>,
    names: FxHashSet<String>,
}

/// One type for several parameters.
pub fn packed(tys: &[Ty]) -> Ty {
    if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.to_vec()) }
}

impl Requests {
    /// Nothing is requested of a program.
    pub fn new(program: &Program) -> Requests {
        let mut out = Requests {
            made: IndexMap::new(),
            written: FxHashMap::default(),
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
            Body::Derivative => return,
        }
        let by_hand = ["[fwd ", "[rev "].iter().any(|p| def.name().starts_with(p));
        if by_hand {
            self.written.insert((def.name().to_string(), def.fun.sig().params.clone()), def.fun);
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

    /// Whether the source defines the derivative itself.
    pub fn written(&self, f: Fun, mode: Mode) -> Option<Fun> {
        let sig = f.sig();
        let s = packed(&sig.params);
        let second = match mode {
            Mode::Forward => s.tangent(),
            Mode::Reverse => sig.ret.tangent(),
        };
        self.written.get(&(format!("[{} {}]", mode.word(), sig.name), vec![s, second])).copied()
    }

    /// A derivative of a function, for a call at a place.
    ///
    /// # Errors
    /// The function has none.
    pub fn get(&mut self, f: Fun, mode: Mode, wrt: &[bool], place: Option<Span>) -> Result<Request> {
        if let Some(g) = self.written(f, mode) {
            return Ok(Request::Written(g));
        }
        let refuse = |message: String, label: &str, place: Option<Span>| {
            let d = Diagnostic::user(message);
            match place {
                Some(span) => Err(d.at(span, label)),
                None => Err(d),
            }
        };
        let sig = f.sig();
        if self.bodiless.contains(&f) {
            let message = format!("`{}` is declared, but not defined here, so it has no derivative", sig.name);
            let hint = format!("hint: define `[{} {}]`", mode.word(), sig.name);
            return refuse(message, "a derivative flows through this call", place)
                .map_err(|d: Box<Diagnostic>| d.note(hint));
        }
        let key = Key { fun: f, mode, wrt: wrt.to_vec() };
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
        // Structured names and operators become plain ones.
        let plain: String = sig.name.chars().map(|c| if "[] ".contains(c) { '$' } else { c }).collect();
        let mut name = format!("{}${plain}", key.mode.word());
        let floats = sig.params.iter().map(|t| has_floats(*t));
        if !floats.eq(key.wrt.iter().copied()) {
            name += "$";
            name.extend(key.wrt.iter().map(|w| if *w { '1' } else { '0' }));
        }
        while self.names.contains(&name) {
            name += "'";
        }
        Signature { name, params, ret }
    }
}
