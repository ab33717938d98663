//! A set of rules becomes a verdict on the whole: members of one class must agree.
//!
//! Rules that are each plausible may together say that 1 is 2. Random programs made of the rules' own
//! left sides are saturated; members of the root's class are extracted at random and evaluated.
//! What disagrees is explained by a smallest set of rules that still makes it so. Of a rule that never
//! fires, agreement says nothing.

use super::egraph::Graph;
use super::egraph::fire::extents;
use super::egraph::language::{ENode, Label};
use super::egraph::params::parameters;
use super::egraph::pattern::{Compiled, compile};
use super::egraph::saturate::{Limits, graph, saturate};
use crate::diag::{Result, Source, Span};
use crate::eval::{Interpreter, Value};
use crate::ir::{Body, Def, Fun, Head, Id, Param, Program, Signature, Terms, Ty, deep, print};
use crate::rules::check::generate::{Maker, Shape};
use crate::rules::check::instance::{Filling, Slot, Tm, choices, ground, instance, metas};
use crate::rules::check::judge::same_bits;
use crate::rules::check::number::Arithmetic;
use crate::rules::check::provable::provable;
use crate::rules::check::real::{Evaluator, Prepared, Stop};
use crate::rules::check::value::{Agreement, Real, compare, real};
use crate::rules::{Level, Rule};
use crate::types;
use indexmap::IndexMap;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Members of a class that are evaluated.
const MEMBERS: usize = 8;
/// Choices below each other that are random; from there on members are the smallest.
const FUEL: usize = 5;
/// Values at which they are.
const ROUNDS: usize = 3;
/// Limits of the search: many small e-graphs show more than few large ones.
const LIMITS: Limits = Limits { nodes: 500, rounds: 4, looked: usize::MAX, matches: 40, forget: false };

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
    /// What the rule of the left side makes of it.
    right: Id,
    slots: Vec<Slot>,
    values: Vec<Vec<Value>>,
}

/// What one program showed.
#[derive(Clone, Default, Debug)]
pub struct Audited {
    /// Two members that disagree.
    pub disagreement: Option<Disagreement>,
    /// Rules that fired, where members were compared after.
    pub fired: BTreeSet<String>,
}

/// Saturates a program that begins with the left side of `first` with all rules of a level, and compares
/// members of its class.
///
/// # Errors
/// A rule that cannot be searched for.
pub fn audit(rules: &[&Rule], first: &Rule, level: Level, seed: u64) -> Result<Audited> {
    // Rules of early phases would use up what may be spent before it is the turn of a late one.
    let first = Rule { phase: 1, ..first.clone() };
    let each = rules.iter().map(|r| if r.name == first.name { &first } else { *r });
    let mut compiled = vec![];
    for rule in each.filter(|r| r.level <= level) {
        compiled.extend(compile(rule)?);
    }
    let mut rng = StdRng::seed_from_u64(seed);
    let Some(start) = start(&compiled, &first, level, &mut rng) else { return Ok(Audited::default()) };
    let all: Vec<usize> = (0..compiled.len()).collect();
    let Some(seen) = seen(&compiled, level, &start, seed) else { return Ok(Audited::default()) };
    let mut out = Audited::default();
    if seen.compared {
        out.fired.extend(seen.fired.iter().cloned());
        // What the engine knows without the rule is checked as well.
        out.fired.extend(seen.joined.then_some(first.name.clone()));
    }
    if seen.disagreement.is_none() {
        return Ok(out);
    }
    let fired: Vec<usize> = all.into_iter().filter(|k| seen.fired.contains(&compiled[*k].rule.name)).collect();
    let again = |set: &[usize]| {
        let chosen: Vec<Compiled<'_>> = set.iter().filter_map(|k| compile(compiled[*k].rule).ok().flatten()).collect();
        self::seen(&chosen, level, &start, seed).and_then(|s| s.disagreement)
    };
    let least = least(fired, &|set| again(set).is_some());
    let named = |mut d: Disagreement| {
        d.rules = least.iter().map(|k| compiled[*k].rule.name.clone()).collect();
        d
    };
    out.disagreement = again(&least).or(seen.disagreement).map(named);
    Ok(out)
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

/// The left side of a rule, with left sides of other rules in the places of some metavariables; or with
/// terms of which the rule's conditions can be proved.
fn start(rules: &[Compiled<'_>], rule: &Rule, level: Level, rng: &mut StdRng) -> Option<Start> {
    for _ in 0..20 {
        let types = choices(rule);
        let types = &types[rng.random_range(0..types.len())];
        let mut maker = Maker::new(rule, rng.random());
        let mut filling = maker.filling(types, if rng.random_bool(0.5) { Shape::Plain } else { Shape::Rich });
        let plain = rng.random_bool(0.5);
        if plain {
            filling = provable(rule, maker.filling(types, Shape::Plain));
        }
        for (k, (ty, _, args)) in metas(rule, types).into_iter().enumerate() {
            if !plain
                && args.is_empty()
                && rng.random_bool(0.6)
                && let Some((tm, slots)) = nested(rules, ty, filling.slots.len(), rng)
            {
                filling.metas[k] = tm;
                filling.slots.extend(slots);
            }
        }
        if let Some(made) = instance(rule, &filling) {
            let values = (0..ROUNDS).map(|_| maker.values(&filling.slots, level == Level::Real)).collect();
            let (terms, (id, right)) = (made.program.terms, made.sides);
            return Some(Start { terms, id, right, slots: filling.slots, values });
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
            let filling = Maker::new(rule, rng.random()).filling(&types, Shape::Plain);
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

/// What a saturated program shows.
struct Seen {
    fired: Vec<String>,
    /// Whether the right side is a member beside the left one.
    joined: bool,
    /// Whether two members had values at some arguments.
    compared: bool,
    disagreement: Option<Disagreement>,
}

/// Saturates with rules, and compares members.
fn seen(rules: &[Compiled<'_>], level: Level, start: &Start, seed: u64) -> Option<Seen> {
    let mut g = graph(level);
    let params: Vec<Ty> = start.slots.iter().map(|s| s.ty).collect();
    let root = import(&mut g, &start.terms, start.id, &params);
    g.rebuild();
    let report = saturate(&mut g, rules, &LIMITS, None, &|| false);
    let fired = report.fired.keys().cloned().collect();
    let mut out = Seen { fired, joined: false, compared: false, disagreement: None };
    let none = |what: String, program: String, words| Some(Disagreement { rules: vec![], program, words, what });
    if let Some(what) = &g.analysis.contradiction {
        let text = program(&start.terms, &params, &[("start", start.id)]);
        out.disagreement = none(format!("the rules show that {what}"), printed(&text, 1), vec![]);
        return Some(out);
    }
    let right = import(&mut g, &start.terms, start.right, &params);
    g.rebuild();
    out.joined = g.find(right) == g.find(root);
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    let extractor = Extractor::new(&g, params.len());
    let mut terms = start.terms.clone();
    let mut members = vec![("start", start.id)];
    if out.joined && start.right != start.id {
        members.push(("member", start.right));
    }
    for _ in 0..MEMBERS {
        let Some(id) = extractor.term(&mut rng, &mut terms, root, 0, FUEL) else { continue };
        if types::verify::closed(&terms, id, &params).is_ok() && !members.iter().any(|(_, m)| *m == id) {
            members.push(("member", id));
        }
    }
    let made = program(&terms, &params, &members);
    let roots: Vec<Id> = members.iter().map(|(_, id)| *id).collect();
    for values in &start.values {
        let compared = differ(&made, &roots, values, level);
        out.compared |= compared.known > 1;
        if let Some((a, b)) = compared.pair {
            let pair = program(&terms, &params, &[("start", start.id), ("one", roots[a]), ("other", roots[b])]);
            let words = values.iter().map(|v| v.to_json().to_string()).collect();
            out.disagreement = none("two members of one class differ".into(), printed(&pair, 3), words);
            break;
        }
    }
    Some(out)
}

fn printed(program: &Program, n: usize) -> String {
    program.defs.values().take(n).map(|d| print::def(&program.terms, d) + "\n").collect()
}

/// A comparison of members at some arguments.
struct Compared {
    /// How many had a value.
    known: usize,
    /// Two with different ones, by position.
    pair: Option<(usize, usize)>,
}

/// Compares the values of members. What fails or has no value differs from nothing: a class may hold such
/// members, and they are never extracted.
fn differ(program: &Program, roots: &[Id], values: &[Value], level: Level) -> Compared {
    let (prepared, arithmetic) = (Prepared::new(&program.terms, roots), Arithmetic::new(160));
    let env: Vec<Real> = values.iter().map(real).collect();
    let eval = |id: &Id| Evaluator::new(&prepared, &arithmetic).eval(*id, &mut env.clone());
    if level == Level::Real {
        let each: Vec<Option<Real>> = roots.iter().map(|id| eval(id).ok().filter(|v| *v != Real::Nothing)).collect();
        return compared(&each, |a, b| compare(a, b) == Agreement::Differ);
    }
    let interpreter = Interpreter::new(program);
    let run = |(def, id): (&Def, &Id)| {
        // What takes the other evaluator too long would take the interpreter too long too.
        (eval(id) != Err(Stop::Undecided)).then(|| interpreter.run(def, values).ok()).flatten()
    };
    let each: Vec<Option<Value>> = program.defs.values().zip(roots).map(run).collect();
    compared(&each, |a, b| !same_bits(a, b))
}

fn compared<T>(each: &[Option<T>], differ: impl Fn(&T, &T) -> bool) -> Compared {
    let known: Vec<(usize, &T)> = each.iter().enumerate().filter_map(|(k, v)| Some((k, v.as_ref()?))).collect();
    let pair = known.first().and_then(|(k, one)| {
        let other = known.iter().find(|(_, v)| differ(one, v))?;
        Some((*k, other.0))
    });
    Compared { known: known.len(), pair }
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
    let classes = parameters(g, params.iter().map(|ty| (*ty, vec![])), &[]);
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
