//! A set of rules becomes a verdict on the whole: members of one class must agree.
//!
//! Rules that are each plausible may together say that 1 is 2. Random programs made of the rules' own
//! left sides are saturated; members of the root's class are extracted at random and evaluated.
//! What disagrees is explained by a smallest set of rules that still makes it so.

use super::egraph::Graph;
use super::egraph::language::{ENode, Label};
use super::egraph::params::parameters;
use super::egraph::pattern::{Compiled, compile};
use super::egraph::saturate::{Limits, extents, graph, saturate};
use crate::diag::{Result, Source, Span};
use crate::eval::{Interpreter, Value};
use crate::ir::{Body, Def, Fun, Head, Id, Param, Program, Signature, Terms, Ty, deep, print};
use crate::rules::check::generate::Maker;
use crate::rules::check::instance::{Filling, Slot, Tm, choices, ground, instance, metas};
use crate::rules::check::judge::{real, same_bits};
use crate::rules::check::number::Arithmetic;
use crate::rules::check::real::{Agreement, Prepared, Real, Reals, Stop, compare};
use crate::rules::{Level, Rule};
use crate::types;
use indexmap::IndexMap;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

/// Members of a class that are evaluated.
const MEMBERS: usize = 8;
/// Choices below each other that are random; from there on members are the smallest.
const FUEL: usize = 5;
/// Values at which they are.
const ROUNDS: usize = 3;
/// Limits of the search: many small e-graphs show more than few large ones.
const LIMITS: Limits = Limits { nodes: 500, rounds: 4, matches: 40 };

/// Two members of a class that disagree.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// Rules that are all needed for it.
    pub rules: Vec<String>,
    /// The program: `start`, and the members `one` and `other` where they could be evaluated.
    pub program: String,
    /// Arguments as words of the command line.
    pub words: Vec<String>,
    /// In words.
    pub what: String,
}

/// A random program: a term over free variables, and values for them.
struct Start {
    terms: Terms,
    id: Id,
    slots: Vec<Slot>,
    values: Vec<Vec<Value>>,
}

/// Saturates the program of a seed with all rules of a level, and compares members of its class.
///
/// # Errors
/// A rule that cannot be searched for.
pub fn audit(rules: &[&Rule], level: Level, seed: u64) -> Result<Option<Disagreement>> {
    let mut compiled = vec![];
    for rule in rules.iter().filter(|r| r.level <= level) {
        compiled.extend(compile(rule)?);
    }
    if compiled.is_empty() {
        return Ok(None);
    }
    let mut rng = StdRng::seed_from_u64(seed);
    let Some(start) = start(&compiled, level, &mut rng) else { return Ok(None) };
    let all: Vec<usize> = (0..compiled.len()).collect();
    let Some((_, fired)) = disagreement(&compiled, &all, level, &start, seed) else { return Ok(None) };
    let fired: Vec<usize> = all.into_iter().filter(|k| fired.contains(&compiled[*k].rule.name)).collect();
    let fails = |set: &[usize]| disagreement(&compiled, set, level, &start, seed).is_some();
    let least = least(fired, &fails);
    let found = disagreement(&compiled, &least, level, &start, seed);
    Ok(found.map(|(mut d, _)| {
        d.rules = least.iter().map(|k| compiled[*k].rule.name.clone()).collect();
        d
    }))
}

/// A smallest set, in that nothing can be left out of it (delta debugging).
fn least(mut set: Vec<usize>, fails: &dyn Fn(&[usize]) -> bool) -> Vec<usize> {
    if !fails(&set) {
        return set;
    }
    let mut chunk = set.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        let mut changed = false;
        while at < set.len() {
            let rest: Vec<usize> =
                set.iter().enumerate().filter(|(k, _)| *k < at || *k >= at + chunk).map(|(_, r)| *r).collect();
            if !rest.is_empty() && fails(&rest) {
                (set, changed) = (rest, true);
            } else {
                at += chunk;
            }
        }
        if !changed || chunk == 1 {
            chunk = if chunk == 1 && changed { 1 } else { chunk / 2 };
        }
    }
    set
}

/// A left side, with left sides of other rules in the places of some metavariables.
fn start(rules: &[Compiled<'_>], level: Level, rng: &mut StdRng) -> Option<Start> {
    for _ in 0..20 {
        let rule = rules[rng.random_range(0..rules.len())].rule;
        let types = choices(rule);
        let types = &types[rng.random_range(0..types.len())];
        let mut maker = Maker::new(rule, rng.random());
        let mut filling = maker.filling(types, rng.random_bool(0.5));
        for (k, (ty, _, args)) in metas(rule, types).into_iter().enumerate() {
            if args.is_empty()
                && rng.random_bool(0.6)
                && let Some((tm, slots)) = nested(rules, ty, filling.slots.len(), rng)
            {
                filling.metas[k] = tm;
                filling.slots.extend(slots);
            }
        }
        if let Some(made) = instance(rule, &filling) {
            let values = (0..ROUNDS).map(|_| maker.values(&filling.slots, level == Level::Real)).collect();
            let (terms, id) = (made.program.terms, made.sides.0);
            return Some(Start { terms, id, slots: filling.slots, values });
        }
    }
    None
}

/// A left side of a type, its variables counted from `from`.
fn nested(rules: &[Compiled<'_>], ty: Ty, from: usize, rng: &mut StdRng) -> Option<(Tm, Vec<Slot>)> {
    for _ in 0..12 {
        let rule = rules[rng.random_range(0..rules.len())].rule;
        let sides = &rule.sides;
        for types in choices(rule) {
            if ground(sides.terms.ty(sides.sides.0), &types) != ty {
                continue;
            }
            let filling = Maker::new(rule, rng.random()).filling(&types, true);
            let moved = (0..filling.slots.len()).map(|k| (k, k + from)).collect();
            let metas = filling.metas.iter().map(|t| t.renumbered(&moved)).collect();
            let slots = filling.slots.clone();
            if let Some(tm) = side(rule, sides.sides.0, 0, &Filling { metas, ..filling }) {
                return Some((tm, slots));
            }
        }
    }
    None
}

/// A side of a rule with terms for its metavariables; nothing where a binder binds no index.
fn side(rule: &Rule, id: Id, depth: usize, filling: &Filling) -> Option<Tm> {
    let (head, kids) = (rule.sides.terms.head(id), rule.sides.terms.kids(id));
    match head {
        Head::Var(i, ty) if (i as usize) < depth => (ty == Ty::int()).then_some(Tm::Bound(i)),
        Head::Var(i, _) => Some(filling.metas[rule.sides.params.len() - 1 - (i as usize - depth)].clone()),
        Head::Call(f) => {
            let k = rule.sides.funs.iter().position(|g| *g == f)? + rule.sides.params.len();
            let args = kids.iter().map(|a| side(rule, *a, depth, filling)).collect::<Option<Vec<_>>>()?;
            applied(&filling.metas[k], &args)
        }
        Head::Const(l) => Some(Tm::Lit(l)),
        Head::Fold | Head::Scan | Head::Let => None,
        _ => {
            let n = kids.len();
            let each = kids.iter().enumerate().map(|(k, t)| side(rule, *t, depth + head.binds(k, n), filling));
            Some(Tm::Node(head, each.collect::<Option<Vec<_>>>()?))
        }
    }
}

/// A term with what it is applied to; it must bind nothing itself.
fn applied(tm: &Tm, args: &[Tm]) -> Option<Tm> {
    match tm {
        Tm::Arg(j) => args.get(*j).cloned(),
        Tm::Bound(_) => None,
        Tm::Node(head, kids) => {
            Some(Tm::Node(*head, kids.iter().map(|t| applied(t, args)).collect::<Option<Vec<_>>>()?))
        }
        other => Some(other.clone()),
    }
}

type Found = (Disagreement, Vec<String>);

/// Saturates with some of the rules, and compares members; also gives the rules that fired.
fn disagreement(rules: &[Compiled<'_>], set: &[usize], level: Level, start: &Start, seed: u64) -> Option<Found> {
    let mut g = graph(level);
    let params: Vec<Ty> = start.slots.iter().map(|s| s.ty).collect();
    let root = import(&mut g, &start.terms, start.id, &params);
    g.rebuild();
    let mut chosen = vec![];
    for k in set {
        chosen.extend(compile(rules[*k].rule).ok().flatten());
    }
    let report = saturate(&mut g, &chosen, &LIMITS, &|| false);
    let fired: Vec<String> = report.fired.keys().cloned().collect();
    let none = |what: String, program: String, words| Disagreement { rules: vec![], program, words, what };
    if let Some(what) = &g.analysis.contradiction {
        let text = program(&start.terms, &params, &[("start", start.id)]);
        return Some((none(format!("the rules show that {what}"), printed(&text, 1), vec![]), fired));
    }
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    let extractor = Extractor::new(&g, params.len());
    let mut terms = start.terms.clone();
    let mut members = vec![("start", start.id)];
    for _ in 0..MEMBERS {
        let id = extractor.term(&mut rng, &mut terms, root, 0, FUEL)?;
        if types::verify::closed(&terms, id, &params).is_ok() && !members.iter().any(|(_, m)| *m == id) {
            members.push(("member", id));
        }
    }
    let made = program(&terms, &params, &members);
    let roots: Vec<Id> = members.iter().map(|(_, id)| *id).collect();
    for values in &start.values {
        if let Some((a, b)) = differ(&made, &roots, values, level) {
            let pair = program(&terms, &params, &[("start", start.id), ("one", roots[a]), ("other", roots[b])]);
            let words = values.iter().map(|v| v.to_json().to_string()).collect();
            return Some((none("two members of one class differ".into(), printed(&pair, 3), words), fired));
        }
    }
    None
}

fn printed(program: &Program, n: usize) -> String {
    program.defs.values().take(n).map(|d| print::def(&program.terms, d) + "\n").collect()
}

/// Members with values that differ, by position. What fails or has no value differs from nothing: a
/// class may hold such members, and they are never extracted.
fn differ(program: &Program, roots: &[Id], values: &[Value], level: Level) -> Option<(usize, usize)> {
    let (prepared, arithmetic) = (Prepared::new(&program.terms, roots), Arithmetic::new(160));
    let env: Vec<Real> = values.iter().map(real).collect();
    let eval = |id: &Id| Reals::new(&prepared, &arithmetic).eval(*id, &mut env.clone());
    if level == Level::Real {
        let each: Vec<Option<Real>> = roots.iter().map(|id| eval(id).ok()).collect();
        return pair(&each, |a, b| compare(a, b) == Agreement::Differ);
    }
    let interpreter = Interpreter::new(program);
    let run = |(def, id): (&Def, &Id)| {
        // What takes the other evaluator too long would take the interpreter too long too.
        (eval(id) != Err(Stop::Undecided)).then(|| interpreter.run(def, values).ok()).flatten()
    };
    let each: Vec<Option<Value>> = program.defs.values().zip(roots).map(run).collect();
    pair(&each, |a, b| !same_bits(a, b))
}

fn pair<T>(each: &[Option<T>], differ: impl Fn(&T, &T) -> bool) -> Option<(usize, usize)> {
    let first = each.iter().position(Option::is_some)?;
    let one = each[first].as_ref()?;
    let other = (first + 1..each.len()).find(|k| each[*k].as_ref().is_some_and(|v| differ(one, v)))?;
    Some((first, other))
}

/// Definitions over the same parameters.
fn program(terms: &Terms, params: &[Ty], bodies: &[(&str, Id)]) -> Program {
    let mut defs = IndexMap::new();
    for (k, (name, id)) in bodies.iter().enumerate() {
        let name = if *name == "member" { format!("member{k}") } else { (*name).to_string() };
        let fun = Fun::new(Signature { name, params: params.to_vec(), ret: terms.ty(*id) });
        let each = params.iter().enumerate();
        let params = each.map(|(k, ty)| Param { name: format!("x{}", k + 1), ty: *ty, sizes: vec![] }).collect();
        defs.insert(fun, Def { fun, params, body: Body::Term(*id), span: Span::default() });
    }
    let mut terms = terms.clone();
    terms.forget_names();
    Program { terms, defs, source: Source::new("audit", "") }
}

/// A let-free term over parameters becomes a class.
fn import(g: &mut Graph, terms: &Terms, id: Id, params: &[Ty]) -> egg::Id {
    let classes = parameters(g, params.iter().map(|ty| (*ty, [].as_slice())), &[]);
    class(g, terms, id, &classes, &mut vec![])
}

fn class(g: &mut Graph, terms: &Terms, id: Id, params: &[egg::Id], scope: &mut Vec<egg::Id>) -> egg::Id {
    let (head, depth) = (terms.head(id), scope.len());
    if let Head::Var(i, ty) = head {
        return match depth.checked_sub(1 + i as usize) {
            Some(level) => g.add(ENode::new(Head::Var(i, ty), [scope[level]])),
            None => params[params.len() - 1 - (i as usize - depth)],
        };
    }
    let kids = terms.kids(id);
    let mut ids = vec![];
    for (k, kid) in kids.iter().enumerate() {
        if head.binds(k, kids.len()) > 0 {
            scope.extend(extents(g, head, &ids));
        }
        ids.push(deep(|| class(g, terms, *kid, params, scope)));
        scope.truncate(depth);
    }
    g.add(ENode::new(head, ids))
}

/// Takes random members out of classes.
struct Extractor<'a> {
    g: &'a Graph,
    params: usize,
    /// The smallest size of a member, where there is one that is not part of itself.
    sizes: FxHashMap<egg::Id, u64>,
}

/// The children that a term has: extents of variables are none.
fn kids(node: &ENode) -> &[egg::Id] {
    if matches!(node.label, Label::Head(Head::Var(..))) { &[] } else { &node.kids }
}

impl<'a> Extractor<'a> {
    fn new(g: &'a Graph, params: usize) -> Extractor<'a> {
        let mut out = Extractor { g, params, sizes: FxHashMap::default() };
        loop {
            let mut changed = false;
            for class in g.classes() {
                let best = class.nodes.iter().filter_map(|n| out.size(n)).min();
                if let Some(best) = best
                    && out.sizes.get(&class.id).is_none_or(|old| best < *old)
                {
                    out.sizes.insert(class.id, best);
                    changed = true;
                }
            }
            if !changed {
                return out;
            }
        }
    }

    fn size(&self, node: &ENode) -> Option<u64> {
        kids(node).iter().try_fold(1u64, |sum, k| Some(sum.saturating_add(*self.sizes.get(&self.g.find(*k))?)))
    }

    /// A random member as a term, the smallest one where `fuel` is used up.
    fn term(&self, rng: &mut StdRng, terms: &mut Terms, id: egg::Id, depth: usize, fuel: usize) -> Option<Id> {
        let nodes = &self.g[self.g.find(id)].nodes;
        let known: Vec<(&ENode, u64)> = nodes.iter().filter_map(|n| Some((n, self.size(n)?))).collect();
        let node = match fuel {
            0 => known.iter().min_by_key(|(_, size)| *size)?.0,
            _ => known.get(rng.random_range(0..known.len().max(1)))?.0,
        };
        match node.label {
            Label::Unknown => None,
            Label::Param(k, ty) => Some(terms.var((depth + self.params - 1 - k as usize) as u32, ty)),
            Label::Head(Head::Var(i, ty)) => Some(terms.var(i, ty)),
            Label::Head(head) => {
                let n = node.kids.len();
                let mut new = vec![];
                for (k, kid) in node.kids.iter().enumerate() {
                    let inner = depth + head.binds(k, n);
                    new.push(deep(|| self.term(rng, terms, *kid, inner, fuel.saturating_sub(1)))?);
                }
                terms.add(head, new).ok()
            }
        }
    }
}
