//! A member is chosen for every e-class, so that the term that follows from the choice is cheap.
//!
//! Costs are loop-aware: a node runs as often as the innermost loop that it depends on, since
//! elaboration moves it there. Members that may fail where others do not are never chosen, nor
//! members whose variables may be out of scope where the class stands.

use super::Graph;
use super::elaborate::is_named;
use super::facts::node_total;
use super::graph::Traced;
use super::language::{ENode, Label};
use crate::cost::{self, Model, Shape};
use crate::ir::{Head, Ty, deep};
use egg::{Id, Language};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A member for each class that may be needed.
pub type Choice = FxHashMap<Id, ENode>;

/// What a member costs without its children.
#[derive(Clone, Copy)]
pub struct Own {
    /// The cost itself: nothing where the member can become a literal.
    pub cost: f64,
    /// How often the body of its loop runs.
    pub trips: f64,
    /// The innermost variable that it depends on.
    pub level: Option<usize>,
}

/// What extraction may choose, and the costs of the choices.
pub struct Candidates<'a> {
    g: &'a Graph,
    model: Model,
    /// Allowed members by class, in a fixed order.
    pub nodes: FxHashMap<Id, Vec<ENode>>,
    /// All classes, in a fixed order.
    pub order: Vec<Id>,
    /// The tensors worth keeping.
    pub families: Vec<Vec<Id>>,
    /// What each member costs, in the order of `nodes`.
    pub costs: FxHashMap<Id, Vec<Own>>,
    /// Classes with a member that is a literal, or becomes one.
    literals: FxHashSet<Id>,
    /// Whether all that may be spent is spent: then choices stay incomplete.
    pub halt: &'a dyn Fn() -> bool,
}

/// So many families of tensors are considered at most.
pub const MAX_FAMILIES: usize = 20;

/// Tensors that are made of something and read somewhere: those worth keeping. Tensors that differ
/// only in how deep they stand in loops are one family.
pub fn families(g: &mut Graph) -> Vec<Vec<Id>> {
    let mut read = BTreeSet::new();
    for node in g.classes().flat_map(|c| &c.nodes) {
        if let (Label::Head(Head::Index(_)), Some(tensor)) = (node.label, node.kids.last()) {
            read.insert(g.find(*tensor));
        }
    }
    let made = |n: &ENode| !matches!(n.label, Label::Param(..) | Label::Unknown | Label::Head(Head::Index(_)));
    read.retain(|id| g[*id].nodes.iter().all(made));
    let mut groups: BTreeMap<Id, Vec<Id>> = Default::default();
    for id in read {
        let normal = renumbered(g, id).unwrap_or(id);
        groups.entry(g.find(normal)).or_default().push(id);
    }
    g.rebuild();
    let mut out: Vec<Vec<Id>> = groups.into_values().collect();
    for family in &mut out {
        family.iter_mut().for_each(|id| *id = g.find(*id));
        family.sort();
        family.dedup();
    }
    out
}

/// The class with its variables numbered from 0: the same for all places it could stand at.
fn renumbered(g: &mut Graph, id: Id) -> Option<Id> {
    let free = g[id].data.free;
    let mut extents = FxHashMap::default();
    variables(g, id, 0, &mut extents, &mut FxHashSet::default());
    let n = (0..63).rev().find(|i| free.has(*i)).map_or(0, |i| i + 1);
    let mut inner = vec![None; n];
    let mut count = 0;
    for (i, slot) in inner.iter_mut().enumerate() {
        if free.has(i) {
            let (ty, extent) = *extents.get(&i)?;
            let node = ENode::new(Head::Var(count, ty), [extent]);
            let term = g.concrete(&node);
            *slot = Some((g.add(node), term));
            count += 1;
        }
    }
    super::apply::moved(g, id, &super::apply::Move { inner, depth: count as usize }).map(|(id, _)| id)
}

/// Types and extents of the free variables of a class's representative.
fn variables(g: &Graph, id: Id, under: usize, out: &mut FxHashMap<usize, (Ty, Id)>, seen: &mut FxHashSet<(Id, usize)>) {
    if g[id].data.free.outside(under).is_closed() || !seen.insert((g.find(id), under)) {
        return;
    }
    let node = &g[id].data.best;
    if let Label::Head(Head::Var(i, ty)) = node.label {
        if let Some(i) = (i as usize).checked_sub(under) {
            out.insert(i, (ty, node.kids[0]));
        }
        return;
    }
    let n = node.kids.len();
    for (k, kid) in node.kids.iter().enumerate() {
        let binds = node.head().map_or(0, |h| h.binds(k, n));
        deep(|| variables(g, *kid, under + binds, out, seen));
    }
}

impl<'a> Candidates<'a> {
    /// Collects the members that may be chosen.
    pub fn new(g: &'a Graph, model: Model, families: Vec<Vec<Id>>) -> Candidates<'a> {
        let mut banned: FxHashSet<ENode> = FxHashSet::default();
        for step in g.analysis.steps.iter().filter(|s| s.removes_failure(g)) {
            banned.insert(step.root.clone().map_children(|k| g.find(k)));
        }
        let made = made(g);
        let mut nodes = FxHashMap::default();
        let mut order = vec![];
        for class in g.classes() {
            let mut allowed: Vec<ENode> = class
                .nodes
                .iter()
                .map(|n| n.clone().map_children(|k| g.find(k)))
                .filter(|n| n.label != Label::Unknown && !banned.contains(n) && free_of(g, n).within(class.data.free))
                .collect();
            allowed.sort();
            allowed.dedup();
            unswapped(&mut allowed, &made);
            order.push(class.id);
            nodes.insert(class.id, allowed);
        }
        order.sort();
        let (costs, literals) = Default::default();
        let mut out = Candidates { g, model, nodes, order, families, costs, literals, halt: &|| false };
        while out.more_literals() {}
        let cost = |id: &Id, n: &ENode| {
            let (own, trips) = out.own(*id, n);
            // Operations on literals are literals where the term is made.
            Own { cost: if out.is_literal(n) { 0.0 } else { own }, trips, level: free_of(g, n).innermost() }
        };
        let costs = out.nodes.iter().map(|(id, each)| (*id, each.iter().map(|n| cost(id, n)).collect())).collect();
        out.costs = costs;
        out
    }

    /// Whether a member is a literal, or becomes one.
    fn is_literal(&self, n: &ENode) -> bool {
        match n.head() {
            Some(Head::Const(_)) => true,
            Some(Head::Op(_) | Head::Cast(_)) => n.kids.iter().all(|k| self.literals.contains(k)),
            _ => false,
        }
    }

    fn more_literals(&mut self) -> bool {
        let new = |id: &&Id| !self.literals.contains(*id) && self.nodes[*id].iter().any(|n| self.is_literal(n));
        let found: Vec<Id> = self.order.iter().filter(new).copied().collect();
        self.literals.extend(&found);
        !found.is_empty()
    }

    /// The e-graph.
    pub fn graph(&self) -> &'a Graph {
        self.g
    }

    /// The cost model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// The cost of a member without its children, nothing where it can become a literal, and how often the body of
    /// its loop runs.
    pub fn price(&self, class: Id, member: usize) -> (f64, f64) {
        let Own { cost, trips, .. } = self.costs[&class][member];
        (cost, trips)
    }

    /// The members of a class without those that only swap operands of others, or of one that is taken: they cost the
    /// same, where they fail alike.
    pub fn distinct(&self, class: Id, taken: Option<&ENode>) -> Vec<usize> {
        let key = |n: &ENode| (unordered(n), node_total(self.g, n));
        let members = &self.nodes[&class];
        let mut seen: BTreeSet<(ENode, bool)> = taken.map(key).into_iter().collect();
        (0..members.len()).filter(|k| seen.insert(key(&members[*k]))).collect()
    }

    /// Whether elaboration gives a member a name where it is shared.
    pub fn is_named(&self, class: Id, member: usize) -> bool {
        let node = &self.nodes[&class][member];
        let tys: Vec<Ty> = node.kids.iter().map(|k| self.g[*k].data.ty).collect();
        let binds = |h: Head| node.kids.len().checked_sub(1).is_some_and(|last| h.binds(last, last + 1) > 0);
        let named = |h: Head| binds(h) || is_named(self.model, h, &tys, self.g[class].data.ty);
        node.head().filter(|h| !matches!(h, Head::Var(..))).is_some_and(named)
    }

    /// The estimate of a class as an extent. What is computed from assumed sizes may seem to be nothing.
    fn extent(&self, id: Id) -> f64 {
        let fact = &self.g[id].data;
        match fact.konst {
            Some(_) => fact.estimate.max(0.0),
            None => fact.estimate.max(cost::LEAST),
        }
    }

    /// The number of scalars of a class.
    fn elements(&self, id: Id) -> f64 {
        let fact = &self.g[id].data;
        if self.model == Model::Knossos {
            return cost::elements(fact.ty);
        }
        let of = |d: &Option<Id>| d.map_or(cost::ASSUMED, |d| self.extent(d));
        let dims: f64 = fact.dims.iter().map(of).product();
        let mut elem = fact.ty;
        while let Some((_, e)) = elem.as_tensor() {
            elem = e;
        }
        dims * cost::elements(elem)
    }

    fn trips(&self, node: &ENode, head: Head) -> f64 {
        let estimate = |k: usize| self.extent(node.kids[k]);
        let dims = |k: usize, rank: usize| -> f64 {
            let of = |d: &Option<Id>| d.map_or(cost::ASSUMED, |d| self.extent(d));
            self.g[node.kids[k]].data.dims.iter().take(rank).map(of).product()
        };
        let sum_rank = || self.g[node.kids[0]].data.ty.as_tensor().map_or(1, |(r, _)| r);
        match (self.model, head) {
            (Model::Knossos, Head::Sum) => cost::ASSUMED.powi(sum_rank() as i32),
            (Model::Knossos, _) => cost::assumed_trips(head),
            (Model::Analytic | Model::Stored | Model::Recomputed, _) => match head {
                Head::Build(d) | Head::Reduce(_, d) => (0..d).map(estimate).product(),
                Head::Arg(_) => estimate(0),
                Head::Scan => estimate(1),
                Head::Scatter(d) => estimate(d),
                Head::Fold => dims(1, 1),
                Head::Sum => dims(0, sum_rank()),
                _ => 1.0,
            },
        }
    }

    /// Own cost and trips of a member of a class.
    fn own(&self, class: Id, node: &ENode) -> (f64, f64) {
        let Label::Head(head) = node.label else { return (0.0, 1.0) };
        if matches!(head, Head::Var(..)) {
            return (0.0, 1.0);
        }
        let tys: Vec<Ty> = node.kids.iter().map(|k| self.g[*k].data.ty).collect();
        let trips = self.trips(node, head);
        let inner = node.kids.last().map_or(1.0, |k| self.elements(*k));
        let ty = self.g[class].data.ty;
        let shape = Shape { ty, kids: &tys, elements: self.elements(class), inner, trips };
        (self.model.own(head, &shape), trips)
    }
}

/// The children that are part of the term: the extent of a variable is not.
pub fn extracted_kids(node: &ENode) -> &[Id] {
    match node.label {
        Label::Head(Head::Var(..)) => &[],
        Label::Head(_) | Label::Param(..) | Label::Unknown => &node.kids,
    }
}

/// An operation without the order of its operands.
fn unordered(n: &ENode) -> ENode {
    let mut n = n.clone();
    if let Label::Head(Head::Op(_)) = n.label {
        n.kids.sort();
    }
    n
}

/// When each operation of the graph was first made.
fn made(g: &Graph) -> FxHashMap<ENode, usize> {
    let mut made = FxHashMap::default();
    for (k, n) in g.nodes().iter().enumerate().filter(|(_, n)| matches!(n.label, Label::Head(Head::Op(_)))) {
        made.entry(n.clone().map_children(|k| g.find(k))).or_insert(k);
    }
    made
}

/// Puts what was made first, as the text has it, in front of what only swaps its operands: of members that cost the same the
/// first is taken, so that equal parts of a program stay equal text.
fn unswapped(members: &mut [ENode], made: &FxHashMap<ENode, usize>) {
    for k in 0..members.len() {
        let (own, when) = (unordered(&members[k]), made.get(&members[k]));
        let later = |n: &ENode| unordered(n) == own && made.get(n) > when;
        if let Some(first) = members[..k].iter().position(later) {
            members.swap(first, k);
        }
    }
}

/// The free variables of a member, if every child is one with as few as possible.
pub fn free_of(g: &Graph, node: &ENode) -> crate::ir::Free {
    if let Label::Head(Head::Var(i, _)) = node.label {
        return crate::ir::Free::var(i);
    }
    let n = node.kids.len();
    let mut free = crate::ir::Free::default();
    for (k, kid) in node.kids.iter().enumerate() {
        let binds = node.head().map_or(0, |h| h.binds(k, n));
        free = free.union(g[*kid].data.free.outside(binds));
    }
    free
}
