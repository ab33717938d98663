//! A rule, types, and a term for each metavariable become two terms without metavariables.
//!
//! This is the reference substitution: it says what an instance of a rule is, and shares no code
//! with the engine that applies rules. It must not know how the terms were chosen.

use crate::diag::{Source, Span};
use crate::ir::{Body, Def, Fun, Head, Id, Lit, Param, Program, Range, Scalar, Signature, Terms, Ty, TyKind, print};
use crate::rules::{Meta, Rule};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// Types for the type variables of a rule.
pub type Types = BTreeMap<&'static str, Ty>;

/// A term that stands for a metavariable.
#[derive(Clone, PartialEq, Debug)]
pub enum Tm {
    /// A free variable of the instance.
    Param(usize),
    /// What the metavariable is applied to.
    Arg(usize),
    /// A variable that the term itself binds, 0 the innermost.
    Bound(u32),
    /// A literal.
    Lit(Lit),
    /// A node.
    Node(Head, Vec<Tm>),
}

impl Tm {
    /// Number of nodes.
    pub fn size(&self) -> usize {
        match self {
            Tm::Node(_, kids) => 1 + kids.iter().map(Tm::size).sum::<usize>(),
            _ => 1,
        }
    }

    /// The free variables of the instance in it.
    pub fn params(&self, out: &mut BTreeSet<usize>) {
        match self {
            Tm::Param(k) => drop(out.insert(*k)),
            Tm::Node(_, kids) => kids.iter().for_each(|t| t.params(out)),
            _ => {}
        }
    }

    /// With its free variables renumbered.
    pub fn renumbered(&self, map: &BTreeMap<usize, usize>) -> Tm {
        match self {
            Tm::Param(k) => Tm::Param(map.get(k).copied().unwrap_or(*k)),
            Tm::Node(head, kids) => Tm::Node(*head, kids.iter().map(|t| t.renumbered(map)).collect()),
            other => other.clone(),
        }
    }
}

/// What an integer is used for: it decides which values are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The size of a tensor or the length of a loop.
    Size,
    /// An index, or a number beside sizes.
    Index,
    /// Any number.
    Free,
}

/// A free variable of an instance.
#[derive(Clone, PartialEq, Debug)]
pub struct Slot {
    /// Its type.
    pub ty: Ty,
    /// What it is used for.
    pub role: Role,
}

/// Terms for all metavariables: first the plain ones, then the applied ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Filling {
    /// Types of the type variables.
    pub types: Types,
    /// The terms.
    pub metas: Vec<Tm>,
    /// Their free variables.
    pub slots: Vec<Slot>,
}

impl Filling {
    /// Nodes of the terms put in for metavariables.
    pub fn size(&self) -> usize {
        self.metas.iter().map(Tm::size).sum()
    }
}

/// The position of a metavariable among all of them.
pub fn position(rule: &Rule, meta: Meta) -> usize {
    match meta {
        Meta::Plain(k) => k,
        Meta::Applied(k) => rule.sides.params.len() + k,
    }
}

/// Type, name and argument types of each metavariable, type variables replaced.
pub fn metas(rule: &Rule, types: &Types) -> Vec<(Ty, String, Vec<Ty>)> {
    let plain = rule.sides.params.iter().map(|p| (p.ty, p.name.clone(), vec![]));
    let applied = rule.sides.funs.iter().map(|f| (f.sig().ret, f.sig().name.clone(), f.sig().params.clone()));
    let known = |(ty, name, args): (Ty, String, Vec<Ty>)| {
        (ground(ty, types), name, args.into_iter().map(|a| ground(a, types)).collect())
    };
    plain.chain(applied).map(known).collect()
}

/// A type with its variables replaced.
pub fn ground(ty: Ty, types: &Types) -> Ty {
    match ty.kind() {
        TyKind::Var(_, name) => types.get(name).copied().unwrap_or(ty),
        TyKind::Tensor(r, e) => Ty::tensor(*r, ground(*e, types)),
        TyKind::Tuple(parts) => Ty::tuple(parts.iter().map(|p| ground(*p, types)).collect::<Vec<_>>()),
        TyKind::Scalar(_) | TyKind::String => ty,
    }
}

/// The types that are tried for a range.
fn candidates(range: Range) -> Vec<Ty> {
    let s = Ty::scalar;
    let float = Ty::float();
    match range {
        Range::Float => vec![float, s(Scalar::F32)],
        Range::Int => vec![Ty::int(), s(Scalar::U8), s(Scalar::I8), s(Scalar::I32), s(Scalar::U32)],
        Range::Number => vec![float, Ty::int(), s(Scalar::U8), s(Scalar::F32), s(Scalar::I8)],
        Range::Additive => {
            vec![float, Ty::int(), Ty::tensor(1, float), Ty::tuple([float, Ty::int()]), s(Scalar::U8)]
        }
        Range::Any => {
            let pair = Ty::tuple([float, Ty::bool()]);
            vec![float, Ty::int(), Ty::bool(), Ty::tensor(1, float), pair, Ty::tensor(2, Ty::int())]
        }
    }
}

/// All choices of types that are tried: each variable takes each type that it may.
pub fn choices(rule: &Rule) -> Vec<Types> {
    let mut vars: BTreeMap<&'static str, Range> = BTreeMap::new();
    let plain = rule.sides.params.iter().map(|p| p.ty);
    let applied = rule.sides.funs.iter().flat_map(|f| f.sig().params.iter().copied().chain([f.sig().ret]));
    plain.chain(applied).for_each(|ty| variables(ty, &mut vars));
    let most = vars.values().map(|r| candidates(*r).len()).max().unwrap_or(1);
    let choice = |k: usize| {
        let each = vars.iter().enumerate().map(|(j, (name, range))| {
            let types = candidates(*range);
            (*name, types[(k + j) % types.len()])
        });
        each.collect::<Types>()
    };
    (0..most).map(choice).collect()
}

fn variables(ty: Ty, out: &mut BTreeMap<&'static str, Range>) {
    match ty.kind() {
        TyKind::Var(range, name) => drop(out.insert(name, *range)),
        TyKind::Tensor(_, e) => variables(*e, out),
        TyKind::Tuple(parts) => parts.iter().for_each(|p| variables(*p, out)),
        TyKind::Scalar(_) | TyKind::String => {}
    }
}

/// An instance of a rule: a program with `lhs` and `rhs`, and the term of each metavariable.
pub struct Instance {
    /// Definitions `lhs` and `rhs`, and `m0`, `m1` … for the metavariables.
    pub program: Program,
    /// The two sides.
    pub sides: (Id, Id),
    /// The binders above each applied metavariable on the left, outermost first: the head, its
    /// children, and how many variables it binds; and which variables it is applied to.
    pub places: Vec<Place>,
    /// What the rule itself asks, on both sides.
    pub asks: Vec<Ask>,
    /// The definitions in order: the sides, then the metavariables.
    pub defs: Vec<Def>,
}

/// A place of an applied metavariable on the left side.
pub struct Place {
    /// Which metavariable.
    pub meta: usize,
    /// Heads and children of the binders around it, outermost first.
    pub binders: Vec<(Head, Vec<Id>)>,
    /// The variables that it is applied to, by index.
    pub args: Vec<usize>,
}

/// A truth value that a side of the rule makes of others.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its node.
    pub at: Id,
    /// The conditions under whose arms it stands, outermost first, and which arms.
    pub under: Vec<(Id, bool)>,
}

struct Builder<'a> {
    rule: &'a Rule,
    filling: &'a Filling,
    terms: Terms,
    binders: Vec<(Head, Vec<Id>)>,
    places: Vec<Place>,
    asks: Vec<Ask>,
    /// The conditions above, and which of their arms is built.
    under: Vec<(Id, bool)>,
}

/// The two sides for a filling. Nothing where an operation does not take the types.
pub fn instance(rule: &Rule, filling: &Filling) -> Option<Instance> {
    let (binders, places, asks, under) = Default::default();
    let mut builder = Builder { rule, filling, terms: Terms::default(), binders, places, asks, under };
    let left = builder.side(rule.sides.sides.0, 0)?;
    let places = std::mem::take(&mut builder.places);
    let right = builder.side(rule.sides.sides.1, 0)?;
    if builder.terms.ty(left) != builder.terms.ty(right) {
        return None;
    }
    let params: Vec<(Ty, String)> =
        filling.slots.iter().enumerate().map(|(k, s)| (s.ty, format!("x{}", k + 1))).collect();
    let metas = metas(rule, &filling.types);
    let mut bodies = vec![("lhs".to_string(), params.clone(), left), ("rhs".to_string(), params.clone(), right)];
    for (k, (ty, _, args)) in metas.iter().enumerate() {
        let n = args.len();
        let vars: Vec<Id> = args.iter().enumerate().map(|(j, t)| builder.terms.var((n - 1 - j) as u32, *t)).collect();
        let body = builder.lower(&filling.metas[k], &vars, n, 0)?;
        if builder.terms.ty(body) != *ty {
            return None;
        }
        let args = args.iter().enumerate().map(|(j, t)| (*t, format!("i{}", j + 1)));
        bodies.push((format!("m{k}"), params.iter().cloned().chain(args).collect(), body));
    }
    let mut defs = vec![];
    for (name, params, body) in bodies {
        let tys = params.iter().map(|(t, _)| *t).collect();
        let fun = Fun::new(Signature { name, params: tys, ret: builder.terms.ty(body) });
        let params = params.into_iter().map(|(ty, name)| Param { name, ty, sizes: vec![] }).collect();
        defs.push(Def { fun, params, body: Body::Term(body), span: Span::default() });
    }
    let map: IndexMap<Fun, Def> = defs.iter().map(|d| (d.fun, d.clone())).collect();
    let program = Program { terms: builder.terms, defs: map, source: Source::new("instance", "") };
    Some(Instance { program, sides: (left, right), places, asks: builder.asks, defs })
}

impl Builder<'_> {
    fn side(&mut self, id: Id, depth: usize) -> Option<Id> {
        let rule = self.rule;
        let (head, kids) = (rule.sides.terms.head(id), rule.sides.terms.kids(id));
        match head {
            Head::Var(i, ty) if (i as usize) < depth => Some(self.terms.var(i, ground(ty, &self.filling.types))),
            Head::Var(i, _) => {
                let k = rule.sides.params.len() - 1 - (i as usize - depth);
                self.lower(&self.filling.metas[k], &[], depth, 0)
            }
            Head::Call(f) => {
                let args = kids.iter().map(|k| self.side(*k, depth)).collect::<Option<Vec<_>>>()?;
                let k = rule.sides.funs.iter().position(|g| *g == f)? + rule.sides.params.len();
                let indices = args.iter().map(|a| match self.terms.head(*a) {
                    Head::Var(i, _) if (i as usize) < depth => Some(i as usize),
                    _ => None,
                });
                if let Some(args) = indices.collect::<Option<Vec<_>>>() {
                    self.places.push(Place { meta: k, binders: self.binders.clone(), args });
                }
                self.lower(&self.filling.metas[k], &args, depth, 0)
            }
            _ => {
                let mut new: Vec<Id> = vec![];
                for (k, kid) in kids.iter().enumerate() {
                    let binds = head.binds(k, kids.len());
                    if binds > 0 {
                        self.binders.push((head, new.clone()));
                    }
                    let arm = head == Head::If && k > 0;
                    if arm {
                        self.under.push((new[0], k == 1));
                    }
                    let made = self.side(*kid, depth + binds);
                    if binds > 0 {
                        self.binders.pop();
                    }
                    if arm {
                        self.under.pop();
                    }
                    new.push(made?);
                }
                let made = self.terms.add(head, new).ok()?;
                if matches!(head, Head::Op(_)) && self.terms.ty(made) == Ty::bool() {
                    self.asks.push(Ask { at: made, under: self.under.clone() });
                }
                Some(made)
            }
        }
    }

    /// A metavariable's term under `depth` binders of the rule and `bound` binders of its own; `args`
    /// are right under the rule's binders.
    fn lower(&mut self, tm: &Tm, args: &[Id], depth: usize, bound: usize) -> Option<Id> {
        match tm {
            Tm::Param(k) => {
                let slots = &self.filling.slots;
                Some(self.terms.var((bound + depth + slots.len() - 1 - k) as u32, slots[*k].ty))
            }
            Tm::Arg(j) => args.get(*j).map(|a| self.terms.shift(*a, bound)),
            Tm::Bound(i) => Some(self.terms.var(*i, Ty::int())),
            Tm::Lit(l) => Some(self.terms.lit(*l)),
            Tm::Node(head, kids) => {
                let n = kids.len();
                let each = kids.iter().enumerate();
                let new = each.map(|(k, t)| self.lower(t, args, depth, bound + head.binds(k, n)));
                let new = new.collect::<Option<Vec<_>>>()?;
                self.terms.add(*head, new).ok()
            }
        }
    }
}

impl Instance {
    /// The two sides as a program that can be run.
    pub fn text(&self) -> String {
        let mut terms = self.program.terms.clone();
        terms.forget_names();
        format!("{}\n{}\n", print::def(&terms, &self.defs[0]), print::def(&terms, &self.defs[1]))
    }
}
