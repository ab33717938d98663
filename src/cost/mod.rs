//! What a term costs: one walk over terms, with the numbers from a [`Model`].
//!
//! The same per-node numbers serve extraction from e-graphs. Times are never measured here.

mod estimate;
mod model;
mod named;

pub use estimate::Est;
pub use model::{ASSUMED, Model, Shape, assumed_trips};
pub use named::named;

use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Fun, Head, Id, Lit, Program, Terms, Ty, TyKind, deep};
use named::Named;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The cost of an `edef` beyond the call, where no constant `cost$f` says otherwise (Knossos).
const EXTERNAL: f64 = 7.0;

/// Recursive calls are charged so often, then as external ones.
const MAX_DEPTH: usize = 1;

/// Costs of the definitions of a program.
pub struct Costing<'a> {
    program: &'a Program,
    model: Model,
    /// Estimated sizes by name.
    sizes: &'a [(String, u64)],
    calls: FxHashMap<Fun, f64>,
    /// Which functions the bodies of functions call.
    callees: FxHashMap<Fun, Vec<Fun>>,
    open: Vec<Fun>,
    /// The named sizes of the body that is being walked.
    named: Named,
}

impl<'a> Costing<'a> {
    /// Prepares a program; `sizes` are estimates by the names that parameters give their sizes.
    pub fn new(program: &'a Program, model: Model, sizes: &'a [(String, u64)]) -> Costing<'a> {
        let (calls, callees) = Default::default();
        Costing { program, model, sizes, calls, callees, open: vec![], named: Named::default() }
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

    /// The cost of a term over the parameters of a definition, with that of the definitions that it calls.
    pub fn term(&mut self, id: Id, def: &Def, terms: &Terms) -> f64 {
        self.body(id, def, terms) + self.definitions(def, &terms.calls(id))
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

    fn body(&mut self, id: Id, def: &Def, terms: &Terms) -> f64 {
        let mut env: Vec<Est> = self.params(def);
        self.open.push(def.fun);
        let outer = std::mem::replace(&mut self.named, Named::of(def));
        let (cost, _) = self.walk(terms, id, &mut env);
        let named = std::mem::replace(&mut self.named, outer);
        self.open.pop();
        cost + named.cost(self.model)
    }

    fn params(&self, def: &Def) -> Vec<Est> {
        let known = |name: &String| self.sizes.iter().find(|(n, _)| n == name).map(|(_, v)| *v as f64);
        def.params
            .iter()
            .map(|p| {
                let dims: Vec<f64> =
                    (0..p.ty.axes()).map(|k| p.sizes.get(k).and_then(known).unwrap_or(ASSUMED)).collect();
                Est::of(p.ty, &dims).with_value(known(&p.name))
            })
            .collect()
    }

    /// The cost of a call beyond the call itself: that of the body, or the one stated for an external
    /// function.
    pub fn call(&mut self, fun: Fun) -> f64 {
        if let Some(known) = self.calls.get(&fun) {
            return *known;
        }
        let body = self.program.defs.get(&fun).filter(|d| d.term().is_some());
        let Some(def) = body.filter(|_| self.open.iter().filter(|f| **f == fun).count() < MAX_DEPTH) else {
            return self.external(fun);
        };
        let body = def.term().map(|id| deep(|| self.body(id, def, &self.program.terms)));
        // Several parameters are unpacked from one tuple.
        let unpacked = if def.params.len() > 1 { def.params.len() as f64 * self.model.definition() } else { 0.0 };
        let cost = body.map_or(EXTERNAL, |body| body + unpacked);
        if self.open.is_empty() || !self.open.contains(&fun) {
            self.calls.insert(fun, cost);
        }
        cost
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
            return (0.0, known.unwrap_or_else(|| Est::of(ty, &[])));
        }
        if let (Head::Size(axis), Head::Var(i, ty)) = (head, kids.first().map_or(head, |k| terms.head(*k)))
            && let Some(level) = env.len().checked_sub(1 + i as usize)
            && self.named.uses((level, axis))
        {
            let of = env.get(level).cloned().unwrap_or_else(|| Est::of(ty, &[]));
            return (0.0, estimate::node(head, terms.ty(id), &[of]));
        }
        let n = kids.len();
        let mut costs = Vec::with_capacity(n);
        let mut ests: Vec<Est> = Vec::with_capacity(n);
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
        let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
        let ty = terms.ty(id);
        let est = estimate::node(head, ty, &ests);
        let trips = estimate::trips(self.model, head, &ests);
        let shape = Shape {
            ty,
            kids: &tys,
            elements: self.elements(ty, &est),
            inner: kids.last().map_or(1.0, |k| self.elements(terms.ty(*k), &ests[n - 1])),
            trips,
        };
        let own = self.model.own(head, &shape);
        let extra = if let Head::Call(f) = head { self.call(f) } else { 0.0 };
        (own + extra + combine(head, &costs, trips), est)
    }

    fn elements(&self, ty: Ty, est: &Est) -> f64 {
        match self.model {
            Model::Knossos => elements(ty),
            Model::Analytic => est.elements(),
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
