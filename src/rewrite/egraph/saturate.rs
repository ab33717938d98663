//! Rules are applied until nothing changes or a limit is reached. Limits are counts.
//!
//! The node limit is checked before each single application, so it is passed by one application at
//! most.

use super::Graph;
use super::analysis::{Facts, Step};
use super::apply::{Made, Move, moved, shifted};
use super::facts::{in_range, same_dims};
use super::language::{ENode, Label};
use super::pattern::{Compiled, Template};
use super::sizes::size_of;
use super::trace::{Tid, Traced};
use super::types::{bind, instance};
use crate::derive::axioms::Axiom;
use crate::ir::{Head, Lit, Op, Ty};
use crate::rules::{Condition, Level, Meta};
use egg::{Id, Searcher, Subst};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Limits of one search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// E-nodes.
    pub nodes: usize,
    /// Rounds in which every rule is tried.
    pub rounds: usize,
    /// Matches of one rule in one round, above which the rule is set aside for some rounds.
    pub matches: usize,
}

/// What a search did.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// How often each rule changed something.
    pub fired: std::collections::BTreeMap<String, usize>,
    /// Whether nothing more could be done.
    pub saturated: bool,
    /// Rounds that ran.
    pub rounds: usize,
    /// Nodes at the start, and after each round.
    pub growth: Vec<usize>,
}

/// Applies rules, phase by phase, within limits, until `stop` says that it is enough.
pub fn saturate(g: &mut Graph, rules: &[Compiled<'_>], limits: &Limits, stop: &dyn Fn() -> bool) -> Report {
    let mut report = Report { growth: vec![g.total_size()], ..Report::default() };
    let last = rules.iter().map(|r| r.rule.phase).max().unwrap_or(1);
    for phase in 1..=last {
        let active: Vec<&Compiled<'_>> = rules.iter().filter(|r| r.rule.phase <= phase).collect();
        report.saturated = rounds(g, &active, limits, stop, &mut report);
        report.growth.push(g.total_size());
        if g.total_size() >= limits.nodes || stop() {
            break;
        }
    }
    report
}

fn rounds(
    g: &mut Graph,
    rules: &[&Compiled<'_>],
    limits: &Limits,
    stop: &dyn Fn() -> bool,
    report: &mut Report,
) -> bool {
    // A rule with too many matches rests for a while, each time longer (egg's backoff).
    let mut resting = vec![(0usize, 0u32); rules.len()];
    for round in 0..limits.rounds {
        if report.rounds > 0 {
            report.growth.push(g.total_size());
        }
        report.rounds += 1;
        let mut changed = simplify(g, limits.nodes);
        let mut skipped = false;
        // All rules are searched for before any is applied, so that those at the end of the list see
        // the same terms as those at its beginning.
        let mut found = vec![];
        for (k, rule) in rules.iter().enumerate() {
            if resting[k].0 > round {
                skipped = true;
                continue;
            }
            if stop() {
                return false;
            }
            let limit = limits.matches << resting[k].1;
            let matches = rule.pattern.search_with_limit(g, limit + 1);
            let total: usize = matches.iter().map(|m| m.substs.len()).sum();
            if total > limit {
                resting[k] = (round + 2 + (1 << resting[k].1), resting[k].1 + 1);
                skipped = true;
            } else if total > 0 {
                found.push((*rule, matches));
            }
        }
        for (rule, matches) in found {
            let mut fired = 0;
            for m in &matches {
                for subst in &m.substs {
                    if g.total_size() >= limits.nodes || stop() {
                        g.rebuild();
                        return false;
                    }
                    fired += usize::from(fire(g, rule, m.eclass, subst));
                }
            }
            if fired > 0 {
                *report.fired.entry(rule.rule.name.clone()).or_default() += fired;
                changed = true;
            }
            // Even a match that came to nothing may have added nodes on its way.
            g.rebuild();
        }
        if g.analysis.contradiction.is_some() || !changed && !skipped {
            return !changed;
        }
    }
    false
}

/// One match: the classes of the metavariables and the types of the type variables.
struct Match<'a> {
    rule: &'a Compiled<'a>,
    subst: &'a Subst,
    types: FxHashMap<&'static str, Ty>,
    /// The extents of the variables in scope at each metavariable of the left side.
    scopes: FxHashMap<Meta, Vec<Id>>,
    /// The nodes of the side that is walked.
    nodes: Vec<ENode>,
    /// Concrete terms of the metavariables, where a trace is kept.
    terms: FxHashMap<Meta, Tid>,
}

/// Applies a rule to one match; whether anything changed.
fn fire(g: &mut Graph, rule: &Compiled<'_>, class: Id, subst: &Subst) -> bool {
    let (types, scopes, nodes, terms) = Default::default();
    let mut m = Match { rule, subst, types, scopes, nodes, terms };
    if !m.typed(g) || !m.agrees(g) || !rule.rule.when.iter().all(|(c, metas)| m.holds(g, *c, metas)) {
        return false;
    }
    let Some(((_, before_term), root)) = m.left(g, &rule.sides.0, &mut vec![]) else { return false };
    let left = std::mem::take(&mut m.nodes);
    let Some((new, term)) = m.right(g, &rule.sides.1, &mut vec![]) else { return false };
    if g[new].data.ty != g[class].data.ty {
        return false;
    }
    let before = g.number_of_classes();
    let changed = g.find(new) != g.find(class);
    if let Some(trace) = &mut g.analysis.trace {
        trace.by(before_term, term, &rule.rule.name);
    }
    g.union(class, new);
    if let Some(root) = root {
        let lost = rule.places.iter().filter(|(_, p)| !p.kept).map(|(meta, _)| m.class(*meta)).collect();
        g.analysis.steps.push(Step { root, left, right: m.nodes, lost });
    }
    changed || g.number_of_classes() > before
}

/// Whether a condition of a rule of a level is known to hold of classes.
pub fn holds(g: &Graph, level: Level, condition: Condition, classes: &[Id]) -> bool {
    let fact = &g[classes[0]].data;
    // Bounds are over the reals; bits are known of literals and integers only.
    let exact = level == Level::Real || fact.konst.is_some() || !fact.ty.is_linear();
    match condition {
        Condition::Nonzero => exact && fact.range.nonzero,
        Condition::Positive => exact && fact.range.lo > 0.0 || exact && fact.range.lo >= 0.0 && fact.range.nonzero,
        Condition::Nonnegative => exact && fact.range.lo >= 0.0,
        Condition::Total => fact.total,
        Condition::Defined => fact.defined,
        Condition::InRange => in_range(g, classes[0], classes[1]),
        Condition::SameSize => same_dims(g, classes[0], classes[1]),
    }
}

impl Match<'_> {
    fn class(&self, meta: Meta) -> Id {
        self.subst[self.rule.places[&meta].var]
    }

    /// Whether the classes have the declared types.
    fn typed(&mut self, g: &Graph) -> bool {
        let metas: Vec<Meta> = self.rule.places.keys().copied().collect();
        metas.into_iter().all(|meta| {
            let actual = g[self.class(meta)].data.ty;
            bind(self.rule.rule.meta_ty(meta), actual, &mut self.types)
        })
    }

    /// Whether a metavariable that stands at several depths is one term at all of them.
    fn agrees(&self, g: &mut Graph) -> bool {
        self.rule.places.values().all(|place| {
            place.deeper.iter().all(|(var, depth)| {
                let (outer, inner) = (self.subst[place.var], self.subst[*var]);
                shifted(g, outer, *depth).is_some_and(|(s, _)| g.find(s) == g.find(inner))
            })
        })
    }

    fn holds(&self, g: &Graph, condition: Condition, metas: &[Meta]) -> bool {
        let classes: SmallVec<[Id; 2]> = metas.iter().map(|m| self.class(*m)).collect();
        holds(g, self.rule.rule.level, condition, &classes)
    }

    /// Finds the left side again, for the scopes of its metavariables and its root's node.
    fn left(&mut self, g: &mut Graph, side: &Template, scope: &mut Vec<Id>) -> Option<(Made, Option<ENode>)> {
        match side {
            Template::Meta(meta, _) => {
                let place = &self.rule.places[meta];
                let origin = g[self.class(*meta)].data.origin;
                let term = *self.terms.entry(*meta).or_insert(origin);
                if scope.len() != place.depth {
                    let deeper = place.deeper.iter().find(|(_, depth)| *depth == scope.len())?;
                    let inside = g.analysis.trace.as_mut().map_or(0, |t| t.shifted(term, scope.len()));
                    return Some(((self.subst[deeper.0], inside), None));
                }
                self.scopes.insert(*meta, scope.clone());
                Some(((self.class(*meta), term), None))
            }
            Template::Var(..) => Some((self.variable(g, side, scope)?, None)),
            Template::Node(head, kids) => {
                let (mut ids, mut terms): (Vec<Id>, Vec<Tid>) = Default::default();
                for (k, kid) in kids.iter().enumerate() {
                    let depth = scope.len();
                    if head.binds(k, kids.len()) > 0 {
                        scope.extend(extents(g, *head, &ids));
                    }
                    let found = self.left(g, kid, scope);
                    scope.truncate(depth);
                    let (id, term) = found?.0;
                    ids.push(id);
                    terms.push(term);
                }
                let node = ENode::new(*head, ids);
                self.nodes.push(node.clone());
                let term = g.concrete_of(node.label, &terms);
                Some(((g.add(node.clone()), term), Some(node)))
            }
        }
    }

    fn variable(&self, g: &mut Graph, side: &Template, scope: &[Id]) -> Option<Made> {
        let Template::Var(i, ty) = side else { return None };
        let extent = *scope.get(scope.len().checked_sub(1 + *i as usize)?)?;
        let ty = instance(*ty, &self.types)?;
        let node = ENode::new(Head::Var(*i, ty), [extent]);
        let term = g.concrete(&node);
        Some((g.add(node), term))
    }

    /// Makes the right side.
    fn right(&mut self, g: &mut Graph, side: &Template, scope: &mut Vec<Id>) -> Option<Made> {
        match side {
            Template::Var(..) => self.variable(g, side, scope),
            Template::Meta(meta, args) => {
                let args = args.iter().map(|a| self.right(g, a, scope)).collect::<Option<Vec<_>>>()?;
                self.meta(g, *meta, &args, scope)
            }
            Template::Node(head, kids) => {
                let (mut ids, mut terms): (Vec<Id>, Vec<Tid>) = Default::default();
                for (k, kid) in kids.iter().enumerate() {
                    let depth = scope.len();
                    if head.binds(k, kids.len()) > 0 {
                        scope.extend(extents(g, *head, &ids));
                    }
                    let made = self.right(g, kid, scope);
                    scope.truncate(depth);
                    let (id, term) = made?;
                    ids.push(id);
                    terms.push(term);
                }
                let term = g.concrete_of(Label::Head(*head), &terms);
                Some((self.node(g, *head, ids), term))
            }
        }
    }

    fn node(&mut self, g: &mut Graph, head: Head, ids: Vec<Id>) -> Id {
        let node = ENode::new(head, ids);
        // What is known needs no node: sizes are compared as classes all the time.
        if let Head::Size(k) = head
            && g[node.kids[0]].data.total
            && let Some(size) = size(g, node.kids[0], k)
        {
            size_of(g, node.kids[0], k);
            return size;
        }
        self.nodes.push(node.clone());
        g.add(node)
    }

    /// The class of a metavariable, its variables moved to where it stands on the right.
    fn meta(&self, g: &mut Graph, meta: Meta, args: &[Made], scope: &[Id]) -> Option<Made> {
        let place = &self.rule.places[&meta];
        let (class, old) = (self.class(meta), &self.scopes[&meta]);
        let mut inner: Vec<Option<Made>> = vec![None; place.depth];
        for (arg, index) in args.iter().zip(&place.args) {
            inner[*index] = Some(*arg);
        }
        let mut same = place.depth == scope.len();
        for (index, to) in inner.iter().enumerate() {
            same &= match to {
                None => !g[class].data.free.has(index),
                Some((to, _)) => {
                    let extent = old[old.len() - 1 - index];
                    g[*to].nodes.iter().any(|n| {
                        matches!(n.label, Label::Head(Head::Var(i, _)) if i as usize == index)
                            && n.kids.first().map(|e| g.find(*e)) == Some(g.find(extent))
                    })
                }
            };
        }
        if same {
            return Some((class, self.terms.get(&meta).copied().unwrap_or_default()));
        }
        moved(g, class, &Move { inner, depth: scope.len() })
    }
}

/// A closed class that is at least the size: itself, or for the index of another loop that loop's
/// extent, which it stays below.
fn upper_bound(g: &Graph, size: Id) -> Option<Id> {
    if g[size].data.free.is_closed() {
        return Some(size);
    }
    let extent = |id: Id| {
        g[id].nodes.iter().find_map(|n| match n.label {
            Label::Head(Head::Var(..)) if g[n.kids[0]].data.ty == Ty::int() => Some(n.kids[0]),
            _ => None,
        })
    };
    let next = g[size].nodes.iter().find_map(|n| match n.label {
        Label::Head(Head::Op(Op::Add)) if g[n.kids[1]].data.konst == Some(Lit::int(1)) => extent(n.kids[0]),
        Label::Head(Head::Op(Op::Add)) if g[n.kids[0]].data.konst == Some(Lit::int(1)) => extent(n.kids[1]),
        _ => None,
    });
    extent(size).or(next)
}

/// The extents of the variables that a node binds, outermost first, from its first children.
pub fn extents(g: &mut Graph, head: Head, kids: &[Id]) -> Vec<Id> {
    let unknown = g.add(ENode::leaf(Label::Unknown));
    let closed = |g: &Graph, id: Id| upper_bound(g, id).unwrap_or(unknown);
    match head {
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| closed(g, *k)).collect(),
        Head::Arg(_) => vec![closed(g, kids[0])],
        Head::Scatter(d) => vec![closed(g, kids[d])],
        Head::Scan => vec![unknown, closed(g, kids[1])],
        Head::Fold => vec![unknown, unknown],
        _ => vec![unknown],
    }
}

/// What holds for any number of parts, and so is no line of a rule file: a part of a tuple, tuples
/// added and summed by part, and sizes that are known.
fn simplify(g: &mut Graph, most: usize) -> bool {
    let mut found: Vec<(Id, ENode, Simpler)> = vec![];
    for class in g.classes() {
        for node in &class.nodes {
            if let Some(made) = simpler(g, node) {
                found.push((class.id, node.clone(), made));
            }
        }
    }
    let mut changed = false;
    for (class, node, made) in found {
        if g.total_size() >= most {
            break;
        }
        let lost = match &made {
            Simpler::Class(_) => node.kids.to_vec(),
            Simpler::Parts(_) => vec![],
        };
        record(g, &node, &made);
        let to = match made {
            Simpler::Class(to) => to,
            Simpler::Parts(parts) => {
                let ids: Vec<Id> = parts.into_iter().map(|p| g.add(p)).collect();
                g.add(ENode::new(Head::Tuple, ids))
            }
        };
        if g.union(class, to) {
            changed = true;
            g.analysis.steps.push(Step { root: node, left: vec![], right: vec![], lost });
        }
    }
    g.rebuild();
    changed
}

/// Records why a node equals what is simpler.
fn record(g: &mut Graph, node: &ENode, made: &Simpler) {
    if g.analysis.trace.is_none() {
        return;
    }
    if let Label::Head(Head::Size(axis)) = node.label {
        return size_of(g, node.kids[0], axis);
    }
    let by_part = |g: &mut Graph, id: Id| match tuple_of(g, id) {
        Some(parts) => g.concrete(&ENode::new(Head::Tuple, parts)),
        None => g[id].data.origin,
    };
    let kids: Vec<Tid> = node.kids.iter().map(|k| by_part(g, *k)).collect();
    let left = g.concrete_of(node.label, &kids);
    let (right, axiom) = match made {
        Simpler::Class(to) => (g[*to].data.origin, Axiom::Part),
        Simpler::Parts(parts) => {
            let parts: Vec<Tid> = parts.iter().map(|p| g.concrete(p)).collect();
            (g.concrete_of(Label::Head(Head::Tuple), &parts), Axiom::Parts)
        }
    };
    if let Some(trace) = &mut g.analysis.trace {
        trace.by(left, right, axiom.name());
    }
}

enum Simpler {
    Class(Id),
    Parts(Vec<ENode>),
}

/// The size of an axis of the outer tensor. Sizes inside of it are 0 where it is empty, whatever its
/// elements would have.
fn size(g: &Graph, tensor: Id, axis: usize) -> Option<Id> {
    let fact = &g[tensor].data;
    let (rank, _) = fact.ty.as_tensor()?;
    fact.dims.get(axis).copied().flatten().filter(|_| axis < rank)
}

fn tuple_of(g: &Graph, id: Id) -> Option<Vec<Id>> {
    g[id].nodes.iter().find(|n| n.label == Label::Head(Head::Tuple)).map(|n| n.kids.to_vec())
}

fn simpler(g: &Graph, node: &ENode) -> Option<Simpler> {
    let head = node.head()?;
    let kids = &node.kids;
    match head {
        Head::Get(i, _) => tuple_of(g, kids[0]).map(|parts| Simpler::Class(parts[i as usize])),
        Head::Size(k) => size(g, kids[0], k).map(Simpler::Class),
        Head::Op(op) if kids.iter().any(|k| g[*k].data.ty.as_tuple().is_some_and(|p| !p.is_empty())) => {
            let parts: Vec<Option<Vec<Id>>> = kids.iter().map(|k| tuple_of(g, *k)).collect();
            let n = parts.iter().flatten().map(Vec::len).next()?;
            let whole = |k: usize| g[kids[k]].data.ty.as_tuple().is_none();
            if (0..kids.len()).any(|k| parts[k].is_none() && !whole(k)) {
                return None;
            }
            let at = |i: usize| kids.iter().zip(&parts).map(move |(k, p)| p.as_ref().map_or(*k, |p| p[i]));
            Some(Simpler::Parts((0..n).map(|i| ENode::new(Head::Op(op), at(i))).collect()))
        }
        Head::Reduce(m, d) => {
            let parts = tuple_of(g, kids[d]).filter(|p| !p.is_empty())?;
            let with = |p: &Id| ENode::new(Head::Reduce(m, d), kids[..d].iter().copied().chain([*p]));
            Some(Simpler::Parts(parts.iter().map(with).collect()))
        }
        _ => None,
    }
}

/// An empty e-graph for rules of a level.
pub fn graph(level: Level) -> Graph {
    Graph::new(Facts { rounds: level == Level::Exact, ..Facts::default() })
}
