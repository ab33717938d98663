//! What a term costs: one walk over terms, with the numbers from a [`Model`].
//!
//! The same per-node numbers serve extraction from e-graphs. Times are never measured here.

mod estimate;
mod sweep;
mod named;
mod setting;

pub use estimate::LEAST;
pub use named::named;
pub use sweep::Sweep;

use crate::diag::{Diagnostic, Result};
use crate::ir::op::Class;
use crate::ir::{Def, Fun, Head, Id, Lit, Op, Program, Terms, Ty, TyKind, deep};
use estimate::Est;
use named::Named;
use rustc_hash::FxHashMap;
use setting::Setting;
use std::collections::BTreeSet;

/// The size that is assumed where none is known (Knossos, `costs.py`: 16 for every dimension).
pub const ASSUMED: f64 = 16.0;

/// Which numbers to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// The published one: abstract units, every size 16.
    Knossos,
    /// Operations by class, memory traffic and allocations, with estimated sizes.
    Analytic,
}

impl Model {
    /// The model of a name.
    pub fn named(name: &str) -> Option<Model> {
        [Model::Knossos, Model::Analytic].into_iter().find(|m| m.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Model::Knossos => "knossos",
            Model::Analytic => "analytic",
        }
    }

    /// The cost of binding a value.
    pub fn binding(self) -> f64 {
        match self {
            Model::Knossos => 0.1,
            Model::Analytic => 0.01,
        }
    }

    /// The cost of a definition that is called, once however often: the published model binds each function
    /// around the expression that calls it (`rlo/sparser.py`), and a let costs. So does a let for each of
    /// several parameters, which unpacks them, in every call. The definition that is rewritten is bound there
    /// too, which adds the same to all that it may become: it is not counted, and neither are its parameters.
    pub fn definition(self) -> f64 {
        match self {
            Model::Knossos => self.binding(),
            Model::Analytic => 0.0,
        }
    }

    /// The cost of the cheaper arm of an `if`, as a part of its own.
    pub const OTHER_ARM: f64 = 1e-4;
}

/// What a model looks at in a node, apart from its label.
pub struct Shape<'a> {
    /// The result type.
    pub ty: Ty,
    /// The types of the children.
    pub kids: &'a [Ty],
    /// How many scalars the result has.
    pub elements: f64,
    /// How many scalars one element of a loop has, or the first tensor child's.
    pub inner: f64,
    /// How often the last child of a loop runs.
    pub trips: f64,
}

impl Model {
    /// The cost of a node without its children. The children of a loop's last place count
    /// [`Shape::trips`] times; an `if` counts its dearer arm.
    pub fn own(self, head: Head, shape: &Shape<'_>) -> f64 {
        match self {
            Model::Knossos => knossos(head, shape),
            Model::Analytic => analytic(head, shape),
        }
    }
}

/// The table of the reference implementation (`rlo/costs.py`); operations that it lacks cost what
/// their class costs there.
fn knossos(head: Head, s: &Shape<'_>) -> f64 {
    let class = |op: Op| match op {
        Op::Pi => 0.0,
        _ => match op.row().class {
            Class::Cheap => 1.0,
            Class::Multiply if op == Op::RanHash => 1.0,
            Class::Multiply | Class::Divide => 2.0,
            Class::Transcendental => 4.0,
        },
    };
    let tuple = 0.1 * s.kids.len() as f64;
    match head {
        Head::Const(_) | Head::Var(..) | Head::Get(..) => 0.0,
        Head::Let => Model::Knossos.binding(),
        Head::If | Head::Assert | Head::Index(_) | Head::Size(_) | Head::Cast(_) | Head::Print => 1.0,
        Head::Tuple => tuple,
        // Several arguments are one tuple there.
        Head::Call(_) => 2.0 + if s.kids.len() > 1 { tuple } else { 0.0 },
        Head::Op(op) if s.ty.has_tensor() => class(op) * s.elements + 2.0,
        Head::Op(op) => class(op) * s.elements.max(1.0),
        Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Scan => 2.0,
        Head::Reduce(m, _) => (s.trips - 1.0) * s.inner * class(m.op()),
        Head::Arg(_) => s.trips - 1.0,
        Head::Sum => (s.trips - 1.0) * s.elements,
        Head::Fold => 0.0,
        Head::Scatter(_) => 2.0 + s.trips * s.inner,
    }
}

/// Weights are rough cycles of one scalar on a current core: throughput of arithmetic, a load or
/// store a unit, an allocation a small loop.
fn analytic(head: Head, s: &Shape<'_>) -> f64 {
    let class = |op: Op| match op.row().class {
        Class::Cheap | Class::Multiply => 1.0,
        Class::Divide => 4.0,
        Class::Transcendental => 20.0,
    };
    let allocation = 50.0;
    match head {
        Head::Const(_) | Head::Var(..) | Head::Get(..) | Head::Tuple | Head::Size(_) => 0.0,
        Head::Let => 0.01,
        Head::If | Head::Assert | Head::Cast(_) | Head::Print | Head::Index(_) => 1.0,
        Head::Call(_) => 5.0,
        Head::Op(op) if s.ty.has_tensor() => allocation + s.elements * (class(op) + 3.0),
        Head::Op(op) => class(op) * s.elements.max(1.0),
        Head::Build(_) => allocation + s.elements,
        Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit => allocation + s.elements,
        Head::Scan => allocation + s.elements,
        Head::Reduce(m, _) if s.ty.has_tensor() => allocation + s.trips * s.inner * (class(m.op()) + 2.0),
        Head::Reduce(m, _) => s.trips * s.inner * class(m.op()) + 1.0,
        Head::Arg(_) => 2.0 * s.trips,
        Head::Sum => s.trips * s.elements * 2.0 + 1.0,
        Head::Fold => s.trips,
        Head::Scatter(_) => allocation + s.elements + 3.0 * s.trips * s.inner,
    }
}

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
}

impl<'a> Costing<'a> {
    /// Prepares a program; `sizes` are estimates by the names that parameters give their sizes.
    pub fn new(program: &'a Program, model: Model, sizes: &'a [(String, u64)]) -> Costing<'a> {
        Costing::at(program, model, sizes, Setting::TOLD)
    }

    /// As [`Costing::new`], in a setting.
    fn at(program: &'a Program, model: Model, sizes: &'a [(String, u64)], setting: Setting) -> Costing<'a> {
        let (calls, called, arguments, callees) = Default::default();
        let (open, named) = Default::default();
        Costing { program, model, sizes, setting, calls, called, arguments, callees, open, named }
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
        // A cost is that of this term alone, whatever was costed before.
        self.called.clear();
        self.arguments.clear();
        let params = self.setting.params(def, self.sizes);
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
        let Some(def) = self.inner(fun).filter(|_| self.model == Model::Analytic) else {
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
        // Several parameters are unpacked from one tuple.
        let unpacked = if def.params.len() > 1 { def.params.len() as f64 * self.model.definition() } else { 0.0 };
        (body + unpacked, est)
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
        let (called, est) = match head {
            Head::Call(f) => self.call_with(f, ests.clone()),
            _ => (0.0, estimate::node(head, ty, &ests)),
        };
        let trips = estimate::trips(self.model, head, &ests);
        let shape = Shape {
            ty,
            kids: &tys,
            elements: self.elements(ty, &est),
            inner: kids.last().map_or(1.0, |k| self.elements(terms.ty(*k), &ests[n - 1])),
            trips,
        };
        let own = self.model.own(head, &shape);
        (own + called + combine(head, &costs, trips), est)
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

/// How often the last child of a loop runs, where every size is the assumed one.
pub fn assumed_trips(head: Head) -> f64 {
    match head {
        Head::Build(d) | Head::Reduce(_, d) => ASSUMED.powi(d as i32),
        _ => ASSUMED,
    }
}
