//! A member is chosen for every e-class, so that the term that follows from the choice is cheap.
//!
//! Costs are loop-aware: a node runs as often as the innermost loop that it depends on, since
//! elaboration moves it there. Members that may fail where others do not are never chosen, nor
//! members whose variables may be out of scope where the class stands.

use super::Graph;
use super::elaborate::is_named;
use super::graph::Traced;
use super::language::{ENode, Label};
use crate::cost::{self, Model, Shape};
use crate::ir::{Head, Ty, deep};
use egg::{Id, Language};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A member for each class that may be needed.
pub type Choice = FxHashMap<Id, ENode>;

/// What extraction may choose, and the costs of the choices.
pub struct Candidates<'a> {
    g: &'a Graph,
    model: Model,
    /// Allowed members by class, in a fixed order.
    pub nodes: FxHashMap<Id, Vec<ENode>>,
    order: Vec<Id>,
    /// The tensors worth keeping.
    pub families: Vec<Vec<Id>>,
    /// Own cost, trips and level of each member, in the order of `nodes`.
    costs: FxHashMap<Id, Vec<(f64, f64, Option<usize>)>>,
    /// Classes with a member that is a literal, or becomes one.
    literals: FxHashSet<Id>,
    /// Choices by the tensors that are kept.
    trees: RefCell<FxHashMap<BTreeSet<Id>, Rc<Choice>>>,
    /// Where classes may be children.
    users: OnceCell<Vec<Vec<u32>>>,
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

/// After so many classes it is asked whether to go on.
const LOOK: usize = 256;

/// The greedy search over shared parts gives up after so many steps.
const MAX_STEPS: usize = 60_000;
/// It joins so many parts at most: each step joins all that its children pay for.
const MAX_PARTS: usize = 5_000_000;

/// Costs by where they are paid: outside all loops, and in the loop of each free variable.
#[derive(Clone, Default, Debug)]
struct Split {
    closed: f64,
    inside: Vec<f64>,
}

impl Split {
    fn pay(&mut self, level: Option<usize>, cost: f64) {
        match level {
            None => self.closed += cost,
            Some(k) => {
                if self.inside.len() <= k {
                    self.inside.resize(k + 1, 0.0);
                }
                self.inside[k] += cost;
            }
        }
    }

    fn plus(&mut self, other: &Split, factor: f64) {
        self.closed += factor * other.closed;
        for (k, c) in other.inside.iter().enumerate() {
            self.pay(Some(k), factor * c);
        }
    }

    /// Seen from outside `n` binders: what is paid inside, and the rest.
    fn leave(&self, n: usize) -> (f64, Split) {
        let cut = n.min(self.inside.len());
        let paid = self.inside[..cut].iter().sum();
        (paid, Split { closed: self.closed, inside: self.inside[cut..].to_vec() })
    }

    /// One number: an outer loop's cost counts less than an inner one's.
    fn weight(&self) -> f64 {
        self.closed + self.inside.iter().fold(0.0, |outer, c| (outer + c) * cost::ASSUMED)
    }
}

impl<'a> Candidates<'a> {
    /// Collects the members that may be chosen.
    pub fn new(g: &'a Graph, model: Model, families: Vec<Vec<Id>>) -> Candidates<'a> {
        let mut banned: FxHashSet<ENode> = FxHashSet::default();
        for step in g.analysis.steps.iter().filter(|s| s.removes_failure(g)) {
            banned.insert(step.root.clone().map_children(|k| g.find(k)));
        }
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
            order.push(class.id);
            nodes.insert(class.id, allowed);
        }
        order.sort();
        let (costs, literals, trees, users) = Default::default();
        let mut out = Candidates { g, model, nodes, order, families, costs, literals, trees, users, halt: &|| false };
        while out.more_literals() {}
        let cost = |id: &Id, n: &ENode| {
            let (own, trips) = out.own(*id, n);
            // Operations on literals are literals where the term is made.
            (if out.is_literal(n) { 0.0 } else { own }, trips, free_of(g, n).innermost())
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
        let (own, trips, _) = self.costs[&class][member];
        (own, trips)
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

    /// The cheapest choice where every use pays for itself, but for tensors that are kept anyway.
    pub fn tree(&self, kept: &BTreeSet<Id>) -> Rc<Choice> {
        if let Some(known) = self.trees.borrow().get(kept) {
            return known.clone();
        }
        let choice = Rc::new(self.grow(kept));
        self.trees.borrow_mut().insert(kept.clone(), choice.clone());
        choice
    }

    fn grow(&self, kept: &BTreeSet<Id>) -> Choice {
        let users = self.users.get_or_init(|| self.users());
        let mut best: FxHashMap<Id, (f64, Split, ENode)> = FxHashMap::default();
        // A class is looked at again where what one of its members is made of became cheaper.
        let mut open = vec![true; self.order.len()];
        while open.contains(&true) {
            for (k, id) in self.order.iter().enumerate() {
                if k % LOOK == 0 && (self.halt)() {
                    return best.into_iter().map(|(id, (_, _, node))| (id, node)).collect();
                }
                if !std::mem::take(&mut open[k]) {
                    continue;
                }
                for (node, cost) in self.nodes[id].iter().zip(&self.costs[id]) {
                    let Some(split) = self.tree_cost(*cost, node, &best, kept) else { continue };
                    let weight = split.weight();
                    if best.get(id).is_none_or(|(w, _, _)| weight < *w - 1e-9) {
                        best.insert(*id, (weight, split, node.clone()));
                        users[k].iter().for_each(|user| open[*user as usize] = true);
                    }
                }
            }
        }
        best.into_iter().map(|(id, (_, _, node))| (id, node)).collect()
    }

    /// The classes that each class may be a child in, by their places in the order.
    fn users(&self) -> Vec<Vec<u32>> {
        let places: FxHashMap<Id, usize> = self.order.iter().enumerate().map(|(k, id)| (*id, k)).collect();
        let mut users = vec![vec![]; self.order.len()];
        for (user, id) in self.order.iter().enumerate() {
            let kids: BTreeSet<usize> =
                self.nodes[id].iter().flat_map(extracted_kids).filter_map(|k| places.get(k).copied()).collect();
            kids.into_iter().for_each(|k| users[k].push(user as u32));
        }
        users
    }

    fn tree_cost(
        &self,
        (own, trips, level): (f64, f64, Option<usize>),
        node: &ENode,
        best: &FxHashMap<Id, (f64, Split, ENode)>,
        kept: &BTreeSet<Id>,
    ) -> Option<Split> {
        let mut out = Split::default();
        out.pay(level, own);
        let Some(head) = node.head().filter(|h| !matches!(h, Head::Var(..))) else { return Some(out) };
        let n = node.kids.len();
        let mut arms: Vec<&Split> = vec![];
        for (k, kid) in node.kids.iter().enumerate() {
            if kept.contains(kid) && matches!(head, Head::Index(_)) {
                continue;
            }
            let (_, split, _) = best.get(kid)?;
            let binds = head.binds(k, n);
            if binds > 0 {
                let (paid, rest) = split.leave(binds);
                out.pay(level, trips * paid);
                let moved = rest.weight() > 0.0;
                out.plus(&rest, 1.0);
                out.pay(level, if moved { self.model.binding() } else { 0.0 });
            } else if head == Head::If && k > 0 {
                arms.push(split);
            } else {
                out.plus(split, 1.0);
            }
        }
        if let [a, b] = arms.as_slice() {
            let (dear, cheap) = if a.weight() >= b.weight() { (a, b) } else { (b, a) };
            out.plus(dear, 1.0);
            out.plus(cheap, Model::OTHER_ARM);
        }
        Some(out)
    }

    /// The cheapest choice found by a greedy search in which shared parts are paid once.
    pub fn dag(&self, stop: &dyn Fn() -> bool) -> Choice {
        let mut best: FxHashMap<Id, (f64, Parts, ENode)> = FxHashMap::default();
        let mut parents: FxHashMap<Id, Vec<(Id, usize)>> = FxHashMap::default();
        for id in &self.order {
            for (k, node) in self.nodes[id].iter().enumerate() {
                for kid in extracted_kids(node) {
                    parents.entry(*kid).or_default().push((*id, k));
                }
            }
        }
        let mut queue: BTreeSet<(Id, usize)> = BTreeSet::new();
        for id in &self.order {
            let leaf = |(k, n): (usize, &ENode)| extracted_kids(n).is_empty().then_some((*id, k));
            queue.extend(self.nodes[id].iter().enumerate().filter_map(leaf));
        }
        let (mut steps, mut joined) = (0usize, 0usize);
        while let Some((id, k)) = queue.pop_first() {
            let node = &self.nodes[&id][k];
            steps += 1;
            joined +=
                node.kids.iter().filter_map(|kid| best.get(kid)).map(|(_, parts, _)| parts.0.len()).sum::<usize>();
            if steps > MAX_STEPS || joined > MAX_PARTS || stop() {
                break;
            }
            let Some(parts) = self.dag_cost(id, node, self.costs[&id][k], &best) else { continue };
            let weight = parts.weight();
            if best.get(&id).is_none_or(|(w, _, _)| weight < *w - 1e-9) {
                best.insert(id, (weight, parts, node.clone()));
                queue.extend(parents.get(&id).into_iter().flatten().copied());
            }
        }
        best.into_iter().map(|(id, (_, _, node))| (id, node)).collect()
    }

    fn dag_cost(
        &self,
        class: Id,
        node: &ENode,
        (mut own, trips, level): (f64, f64, Option<usize>),
        best: &FxHashMap<Id, (f64, Parts, ENode)>,
    ) -> Option<Parts> {
        let mut out = Parts::default();
        if let Some(head) = node.head().filter(|h| !matches!(h, Head::Var(..))) {
            let n = node.kids.len();
            let mut arms: Vec<&Parts> = vec![];
            for (k, kid) in node.kids.iter().enumerate() {
                let (_, parts, _) = best.get(kid)?;
                if parts.0.contains_key(&(class, 0)) {
                    return None;
                }
                let binds = head.binds(k, n);
                if head == Head::If && k > 0 {
                    arms.push(parts);
                } else if binds == 0 {
                    out.join(parts);
                } else {
                    own += trips * out.leave(parts, binds);
                }
            }
            if let [a, b] = arms.as_slice() {
                let (dear, cheap) = if a.weight() >= b.weight() { (a, b) } else { (b, a) };
                own += Model::OTHER_ARM * cheap.weight();
                out.join(dear);
            }
        }
        out.0.insert((class, 0), (own, level));
        Some(out)
    }
}

/// What a choice pays for: each part once, with the loop that it is paid in. A part is a class and
/// how many binders it was moved out of.
#[derive(Clone, Default, Debug)]
struct Parts(FxHashMap<(Id, usize), (f64, Option<usize>)>);

impl Parts {
    fn join(&mut self, other: &Parts) {
        for (k, v) in &other.0 {
            self.0.insert(*k, *v);
        }
    }

    /// Takes over the parts that do not depend on the innermost `n` variables; the cost of the rest.
    fn leave(&mut self, other: &Parts, n: usize) -> f64 {
        let mut paid = 0.0;
        for ((id, lift), (cost, level)) in &other.0 {
            match level {
                None => drop(self.0.insert((*id, *lift), (*cost, None))),
                Some(k) if *k >= n => drop(self.0.insert((*id, lift + n), (*cost, Some(k - n)))),
                Some(_) => paid += cost,
            }
        }
        paid
    }

    fn weight(&self) -> f64 {
        let deepest = self.0.values().filter_map(|(_, l)| *l).max().map_or(0, |k| k as i32 + 1);
        let each = |(cost, level): &(f64, Option<usize>)| match level {
            None => *cost,
            Some(k) => cost * cost::ASSUMED.powi(deepest - *k as i32),
        };
        // Sums must not depend on the order of a hash map.
        let mut costs: Vec<f64> = self.0.values().map(each).collect();
        costs.sort_by(f64::total_cmp);
        costs.iter().sum()
    }
}

/// The children that are part of the term: the extent of a variable is not.
pub fn extracted_kids(node: &ENode) -> &[Id] {
    match node.label {
        Label::Head(Head::Var(..)) => &[],
        Label::Head(_) | Label::Param(..) | Label::Unknown => &node.kids,
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
