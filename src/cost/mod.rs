//! What a term costs: one walk over terms, with the numbers from a [`Model`].
//!
//! The same per-node numbers serve extraction from e-graphs. Times are never measured here.

mod estimate;
mod model;
mod named;
mod reads;
mod scope;
mod setting;
mod sweep;

pub use estimate::{Est, LEAST};
pub use model::{ASSUMED, Model, Shape, assumed_trips};
pub use named::named;
pub use reads::{size_names, with_reads};
pub use scope::Scope;
pub use sweep::Sweep;

use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Fun, Head, Id, Lit, Program, Terms, Ty, TyKind, deep};
use named::Named;
use rustc_hash::FxHashMap;
use setting::Setting;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The cost of an `edef` beyond the call, where no constant `cost$f` says otherwise (Knossos).
const EXTERNAL: f64 = 7.0;

/// Recursive calls are charged so often, then as external ones.
const MAX_DEPTH: usize = 1;

/// A function is costed for so many different sizes of its arguments at most; for others it costs what it does
/// for the first.
const MAX_ARGUMENTS: usize = 32;

/// A function with what is guessed of its arguments.
type Called = (Fun, Vec<u64>);

/// Costs of the definitions of a program.
pub struct Costing<'a> {
    program: &'a Program,
    model: Model,
    /// Estimated sizes by name.
    sizes: &'a [(String, u64)],
    /// What is made of them, and what is assumed of the others.
    setting: Setting,
    /// Calls whose cost does not depend on arguments.
    calls: FxHashMap<Fun, f64>,
    /// Calls in the term that is being costed.
    called: FxHashMap<Called, (f64, Est)>,
    /// The arguments of each function that is called there, in order.
    arguments: FxHashMap<Fun, Vec<Vec<u64>>>,
    /// Which functions the bodies of functions call.
    callees: FxHashMap<Fun, Vec<Fun>>,
    open: Vec<Fun>,
    /// The named sizes of the body that is being walked.
    named: Named,
    /// What is guessed of the variables of a region; of parameters, where there is nothing.
    scope: Option<Vec<Est>>,
}

impl<'a> Costing<'a> {
    /// Prepares a program; `sizes` are estimates by the names that parameters give their sizes.
    pub fn new(program: &'a Program, model: Model, sizes: &'a [(String, u64)]) -> Costing<'a> {
        Costing::at(program, model, sizes, Setting::TOLD)
    }

    /// As [`Costing::new`], in a setting.
    fn at(program: &'a Program, model: Model, sizes: &'a [(String, u64)], setting: Setting) -> Costing<'a> {
        let (calls, called, arguments, callees) = Default::default();
        let (open, named, scope) = Default::default();
        Costing { program, model, sizes, setting, calls, called, arguments, callees, open, named, scope }
    }

    /// Costs of terms over the variables of a scope, which are parameters of no function.
    pub fn within(program: &'a Program, model: Model, sizes: &'a [(String, u64)], scope: &Scope) -> Costing<'a> {
        Costing { scope: Some(scope.told().to_vec()), ..Costing::new(program, model, sizes) }
    }

    /// The cost of one definition's body.
    ///
    /// # Errors
    /// A definition without a body.
    pub fn def(&mut self, def: &Def) -> Result<f64> {
        let Some(body) = def.term() else {
            return Err(Diagnostic::user(format!("`{}` has no body to cost", def.name())));
        };
        Ok(self.term(body, def, &self.program.terms))
    }

    /// The cost of a definition as it is written, counted as the reference implementation does before any rewrite: a
    /// definition is bound there around its own name, and each of several parameters by a let that unpacks it, which
    /// its searches delete.
    ///
    /// # Errors
    /// A definition without a body.
    pub fn written(&mut self, def: &Def) -> Result<f64> {
        Ok(self.def(def)? + self.model.definition() + self.unpacked(def))
    }

    /// What the lets cost that unpack several parameters from one tuple.
    fn unpacked(&self, def: &Def) -> f64 {
        if def.params.len() > 1 { def.params.len() as f64 * self.model.definition() } else { 0.0 }
    }

    /// The cost of a term over the parameters of a definition, with that of the definitions that it calls.
    pub fn term(&mut self, id: Id, def: &Def, terms: &Terms) -> f64 {
        // A cost is that of this term alone, whatever was costed before.
        self.called.clear();
        self.arguments.clear();
        let params = self.scope.clone().unwrap_or_else(|| self.setting.params(def, self.sizes));
        self.body(id, def, terms, params).0 + self.definitions(def, &terms.calls(id))
    }

    /// What the definitions cost that a body needs whose calls are these: each that it calls, or that one of
    /// them calls, once ([`Model::definition`]).
    pub fn definitions(&mut self, def: &Def, calls: &[Fun]) -> f64 {
        if calls.is_empty() {
            return 0.0;
        }
        // It is there anyway, also where it calls itself.
        let mut needed = BTreeSet::from([def.fun]);
        let mut open = calls.to_vec();
        while let Some(fun) = open.pop() {
            let Some(body) = self.program.defs.get(&fun).and_then(Def::term) else { continue };
            if needed.insert(fun) {
                let calls = self.callees.entry(fun).or_insert_with(|| self.program.terms.calls(body));
                open.extend(calls.iter().copied());
            }
        }
        self.model.definition() * (needed.len() - 1) as f64
    }

    fn body(&mut self, id: Id, def: &Def, terms: &Terms, mut env: Vec<Est>) -> (f64, Est) {
        self.open.push(def.fun);
        let outer = std::mem::replace(&mut self.named, Named::of(def));
        let (cost, est) = self.walk(terms, id, &mut env);
        let named = std::mem::replace(&mut self.named, outer);
        self.open.pop();
        (cost + named.cost(self.model), est)
    }

    /// The cost of a call beyond the call itself, whatever its arguments: that of the body, or the one stated for
    /// an external function.
    pub fn call(&mut self, fun: Fun) -> f64 {
        if let Some(known) = self.calls.get(&fun) {
            return *known;
        }
        let Some(def) = self.inner(fun) else { return self.external(fun) };
        let params = self.setting.params(def, self.sizes);
        let (cost, _) = self.inside(def, params);
        if self.open.is_empty() || !self.open.contains(&fun) {
            self.calls.insert(fun, cost);
        }
        cost
    }

    /// The cost of a call beyond the call itself, and what it gives: for these arguments, where the model looks
    /// at sizes. A callee costs what it does for its caller, not what it would for the sizes that it names.
    fn call_with(&mut self, fun: Fun, args: Vec<Est>) -> (f64, Est) {
        let unknown = || Est::unknown(fun.sig().ret);
        let Some(def) = self.inner(fun).filter(|_| self.model != Model::Knossos) else {
            return (self.call(fun), unknown());
        };
        let mut key = vec![];
        args.iter().for_each(|a| a.key(&mut key));
        let seen = self.arguments.entry(fun).or_default();
        let many = seen.len() >= MAX_ARGUMENTS;
        let key = if many && !seen.contains(&key) { seen[0].clone() } else { key };
        if let Some(known) = self.called.get(&(fun, key.clone())) {
            return known.clone();
        }
        let out = self.inside(def, args);
        self.arguments.entry(fun).or_default().push(key.clone());
        self.called.insert((fun, key), out.clone());
        out
    }

    /// The definition that a call of a function stands for; none where it is external, or open already.
    fn inner(&self, fun: Fun) -> Option<&'a Def> {
        let def = self.program.defs.get(&fun).filter(|d| d.term().is_some());
        def.filter(|_| self.open.iter().filter(|f| **f == fun).count() < MAX_DEPTH)
    }

    /// What a definition costs that is called with these arguments, and what it gives.
    fn inside(&mut self, def: &Def, args: Vec<Est>) -> (f64, Est) {
        let Some(id) = def.term() else { return (EXTERNAL, Est::unknown(def.fun.sig().ret)) };
        let program = self.program;
        let (body, est) = deep(|| self.body(id, def, &program.terms, args));
        (body + self.unpacked(def), est)
    }

    /// The value of `cost$f` of a function `f` without a body, where the program has one that is a constant,
    /// whatever its parameters.
    fn external(&self, fun: Fun) -> f64 {
        let name = format!("cost${}", fun.sig().name);
        let stated = self.program.defs.values().find(|d| d.fun.sig().name == name);
        let value = stated.and_then(Def::term).and_then(|body| self.program.terms.as_lit(body)).and_then(Lit::as_f64);
        value.filter(|v| v.is_finite() && *v >= 0.0).unwrap_or(EXTERNAL)
    }

    fn walk(&mut self, terms: &Terms, id: Id, env: &mut Vec<Est>) -> (f64, Est) {
        let (head, kids) = (terms.head(id), terms.kids(id));
        if let Head::Var(i, ty) = head {
            let known = env.len().checked_sub(1 + i as usize).map(|l| env[l].clone());
            return (0.0, known.unwrap_or_else(|| Est::unknown(ty)));
        }
        if let (Head::Size(axis), Head::Var(i, ty)) = (head, kids.first().map_or(head, |k| terms.head(*k)))
            && let Some(level) = env.len().checked_sub(1 + i as usize)
            && self.named.uses((level, axis))
        {
            let of = env.get(level).cloned().unwrap_or_else(|| Est::unknown(ty));
            return (0.0, estimate::node(head, terms.ty(id), &[of]));
        }
        let n = kids.len();
        let (mut costs, mut ests): (SmallVec<[f64; 3]>, SmallVec<[Est; 3]>) = Default::default();
        for (k, kid) in kids.iter().enumerate() {
            let depth = env.len();
            let looped = head.is_loop() && head.binds(k, n) > 0;
            if head.binds(k, n) > 0 {
                env.extend(estimate::bound(head, &ests));
            }
            self.named.loops += usize::from(looped);
            let (c, e) = deep(|| self.walk(terms, *kid, env));
            self.named.loops -= usize::from(looped);
            env.truncate(depth);
            costs.push(c);
            ests.push(e);
        }
        let tys: SmallVec<[Ty; 4]> = kids.iter().map(|k| terms.ty(*k)).collect();
        let ty = terms.ty(id);
        let (called, est) = match head {
            Head::Call(f) => self.call_with(f, ests.to_vec()),
            _ => (0.0, estimate::node(head, ty, &ests)),
        };
        let trips = estimate::trips(self.model, head, &ests);
        let inner = kids.last().map_or(1.0, |k| self.elements(head, terms.ty(*k), &ests[n - 1]));
        let shape = Shape { ty, kids: &tys, elements: self.elements(head, ty, &est), inner, trips };
        let own = self.model.own(head, &shape);
        (own + called + combine(head, &costs, trips), est)
    }

    /// What counts of a node or its last child. A let costs the same whatever it is of, which may be a long tuple.
    fn elements(&self, head: Head, ty: Ty, est: &Est) -> f64 {
        match self.model {
            _ if head == Head::Let => 1.0,
            Model::Knossos => elements(ty),
            Model::Analytic | Model::Stored | Model::Recomputed => est.elements(),
        }
    }
}

/// The children's part of a node's cost.
pub fn combine(head: Head, costs: &[f64], trips: f64) -> f64 {
    match (head, costs) {
        (Head::If, [c, t, e]) => c + t.max(*e) + Model::OTHER_ARM * t.min(*e),
        (_, [first @ .., last]) if head.is_loop() => first.iter().sum::<f64>() + trips * last,
        _ => costs.iter().sum(),
    }
}

/// The number of scalars of a type where every size is the assumed one.
pub fn elements(ty: Ty) -> f64 {
    match ty.kind() {
        TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => 1.0,
        TyKind::Tuple(parts) => parts.iter().map(|p| elements(*p)).sum(),
        TyKind::Tensor(rank, elem) => ASSUMED.powi(*rank as i32) * elements(*elem),
    }
}
