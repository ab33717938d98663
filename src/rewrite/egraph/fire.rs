//! One match of a rule becomes nodes: the right side is made where the left one was found.

use super::Graph;
use super::apply::{Made, Move, moved, shifted};
use super::facts::{in_range, same_dims};
use super::graph::{Step, Traced};
use super::language::{ENode, Label};
use super::parts::size;
use super::pattern::{Compiled, Template};
use super::sizes::size_of;
use super::trace::Tid;
use super::types::{bind, instance};
use crate::ir::{Head, Lit, Op, Ty};
use crate::rules::{Condition, Level, Meta};
use egg::{Id, Subst};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One match: the classes of the metavariables and the types of the type variables.
struct Match<'a> {
    rule: &'a Compiled<'a>,
    subst: &'a Subst,
    types: FxHashMap<&'static str, Ty>,
    /// The metavariables of the left side that were met.
    met: SmallVec<[Met; 4]>,
    /// The nodes of the side that is walked.
    nodes: Vec<ENode>,
}

/// A metavariable where it stands on the left side.
struct Met {
    meta: Meta,
    /// The extents of the variables in scope there.
    scope: SmallVec<[Id; 4]>,
    /// Its concrete term, where a trace is kept.
    term: Tid,
}

/// Applies a rule to one match; whether anything changed. Nothing where it cannot be applied as far as is known.
pub fn fire(g: &mut Graph, rule: &Compiled<'_>, class: Id, subst: &Subst) -> Option<bool> {
    let (types, met, nodes) = Default::default();
    let mut m = Match { rule, subst, types, met, nodes };
    if !m.typed(g) || !m.agrees(g) || !rule.rule.when.iter().all(|(c, metas)| m.holds(g, *c, metas)) {
        return None;
    }
    let ((_, before_term), root) = m.left(g, &rule.sides.0, &mut vec![])?;
    let left = std::mem::take(&mut m.nodes);
    let (new, term) = m.right(g, &rule.sides.1, &mut vec![])?;
    if g[new].data.ty != g[class].data.ty {
        return None;
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
    Some(changed || g.number_of_classes() > before)
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
        Condition::Divisor => fact.range.nonzero || (fact.range.lo, fact.range.hi) != (0.0, 0.0),
        Condition::Total => fact.total,
        Condition::Defined => fact.defined,
        Condition::Valued => fact.valued,
        Condition::InRange => in_range(g, classes[0], classes[1]),
        Condition::SameSize => same_dims(g, classes[0], classes[1]),
    }
}

impl Match<'_> {
    fn class(&self, meta: Meta) -> Id {
        self.subst[self.rule.places[&meta].var]
    }

    fn met(&self, meta: Meta) -> Option<&Met> {
        self.met.iter().find(|m| m.meta == meta)
    }

    /// Whether the classes have the declared types.
    fn typed(&mut self, g: &Graph) -> bool {
        let Match { rule, subst, types, .. } = self;
        rule.places.iter().all(|(meta, place)| bind(rule.rule.meta_ty(*meta), g[subst[place.var]].data.ty, types))
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
                let known = self.met(*meta).map(|m| m.term);
                let term = known.unwrap_or_else(|| g[self.class(*meta)].data.origin);
                if known.is_none() {
                    self.met.push(Met { meta: *meta, scope: SmallVec::new(), term });
                }
                if scope.len() != place.depth {
                    let deeper = place.deeper.iter().find(|(_, depth)| *depth == scope.len())?;
                    let inside = g.analysis.trace.as_mut().map_or(0, |t| t.shifted(term, scope.len()));
                    return Some(((self.subst[deeper.0], inside), None));
                }
                if let Some(met) = self.met.iter_mut().find(|m| m.meta == *meta) {
                    met.scope = scope.iter().copied().collect();
                }
                Some(((self.class(*meta), term), None))
            }
            Template::Var(..) => Some((self.variable(g, side, scope)?, None)),
            Template::Node(head, kids) => {
                let (mut ids, mut terms): (SmallVec<[Id; 4]>, SmallVec<[Tid; 4]>) = Default::default();
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
                let (mut ids, mut terms): (SmallVec<[Id; 4]>, SmallVec<[Tid; 4]>) = Default::default();
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

    fn node(&mut self, g: &mut Graph, head: Head, ids: SmallVec<[Id; 4]>) -> Id {
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
        if place.depth == 0 && scope.is_empty() {
            return Some((self.class(meta), self.met(meta)?.term));
        }
        let (class, met) = (self.class(meta), self.met(meta)?);
        let old = &met.scope;
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
            return Some((class, met.term));
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
