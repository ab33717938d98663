//! A term becomes a graph: one node for equal subterms in equal scopes, and one for each bound variable.
//!
//! The published graph is a tree whose equal subterms are linked. Here what is equal is one node, which says
//! the same in fewer nodes: a node with several parents is shared. Terms at different depths are equal here
//! where their variables are the same ones, whatever their indices; so a variable is told by the binder
//! that it is linked to, and not by its index. Only binders at different depths are not merged.

use super::vocabulary::{self, BINDS, FEATURES, PARAMETER, edge, element, kind};
use crate::ir::{Head, Id, Lit, Terms, deep};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The greatest graph: of a larger term nothing is predicted.
const MOST: usize = 4096;

/// A graph. Nodes are numbered from 0, children before parents.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Graph {
    /// The kind of each node.
    pub kinds: Vec<u16>,
    /// What the values of each node are made of.
    pub elements: Vec<u16>,
    /// [`FEATURES`] numbers for each node.
    pub features: Vec<f32>,
    /// Edges.
    pub edges: Vec<Edge>,
}

/// An edge from a node to one of its children, or to a variable that it binds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    /// Which child.
    pub kind: u16,
    /// The node.
    pub parent: u32,
    /// Its child.
    pub child: u32,
    /// How much it counts.
    pub weight: f32,
}

impl Graph {
    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none: the term was too large.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// The graph of a term. `cost` knows what subterms cost on their own, where the cost model does. Calls
/// without arguments stand for parameters.
pub fn graph(terms: &Terms, id: Id, cost: &dyn Fn(Id) -> Option<f64>) -> Graph {
    let (known, made) = Default::default();
    let mut build = Build { terms, cost, whole: cost(id), graph: Graph::default(), known, made };
    match build.node(id, &mut vec![]) {
        Some(_) => build.finished(),
        None => Graph::default(),
    }
}

/// The nodes that stand for a list of nodes.
type Nodes = SmallVec<[u32; 4]>;

struct Build<'a> {
    terms: &'a Terms,
    cost: &'a dyn Fn(Id) -> Option<f64>,
    whole: Option<f64>,
    graph: Graph,
    /// Nodes by term, and the nodes of its free variables.
    known: FxHashMap<(Id, Nodes), u32>,
    /// Nodes without binders by head and children.
    made: FxHashMap<(Head, Nodes), u32>,
}

impl Build<'_> {
    /// The node of a term, whose scope are the nodes of the variables around it, the innermost last.
    fn node(&mut self, id: Id, scope: &mut Vec<u32>) -> Option<u32> {
        let terms = self.terms;
        let (head, kids) = (terms.head(id), terms.kids(id));
        if let Head::Var(i, ty) = head {
            let bound = scope.len().checked_sub(1 + i as usize).map(|at| scope[at]);
            let outer = Head::Var(i - scope.len().min(i as usize) as u32, ty);
            return bound.or_else(|| self.put(outer, id, Nodes::new()));
        }
        let key = (id, self.seen(id, scope));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let (mut children, mut bound) = (Nodes::new(), Nodes::new());
        for (k, kid) in kids.iter().enumerate() {
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                let tys: SmallVec<[_; 4]> = kids.iter().map(|k| terms.ty(*k)).collect();
                for (slot, ty) in head.bound_tys(&tys).into_iter().enumerate() {
                    bound.push(self.add(
                        vocabulary::kind(Head::Var(0, ty)),
                        element(ty),
                        ty.axes(),
                        slot as f64,
                        None,
                    )?);
                }
                scope.extend(&bound);
            }
            let child = deep(|| self.node(*kid, scope));
            scope.truncate(depth);
            children.push(child?);
        }
        let at = match bound.is_empty() {
            true => self.put(head, id, children)?,
            false => self.linked(head, id, &children, &bound)?,
        };
        self.known.insert(key, at);
        Some(at)
    }

    /// The nodes of the variables that a term depends on.
    fn seen(&self, id: Id, scope: &[u32]) -> Nodes {
        let free = self.terms.free(id);
        if free.is_closed() {
            return Nodes::new();
        }
        let mut seen: Nodes = (0..scope.len()).filter(|i| free.has(*i)).map(|i| scope[scope.len() - 1 - i]).collect();
        if free.above(scope.len()) {
            // Variables that nothing binds here are counted from outside.
            seen.push(u32::MAX - scope.len() as u32);
        }
        seen
    }

    /// The node of a head without binders over its children.
    fn put(&mut self, head: Head, id: Id, children: Nodes) -> Option<u32> {
        let key = (head, children);
        if let Some(made) = self.made.get(&key) {
            return Some(*made);
        }
        let at = self.linked(head, id, &key.1, &[])?;
        self.made.insert(key, at);
        Some(at)
    }

    fn linked(&mut self, head: Head, id: Id, children: &[u32], bound: &[u32]) -> Option<u32> {
        let ty = self.terms.ty(id);
        let parameter = matches!(head, Head::Call(f) if f.sig().params.is_empty());
        let kind = if parameter { PARAMETER } else { kind(head) };
        let parent = self.add(kind, element(ty), ty.axes(), number(head), (self.cost)(id))?;
        for (position, child) in children.iter().enumerate() {
            let (kind, weight) = edge(position);
            self.graph.edges.push(Edge { kind: kind as u16, parent, child: *child, weight });
        }
        let binds = bound.iter().map(|child| Edge { kind: BINDS as u16, parent, child: *child, weight: 1.0 });
        self.graph.edges.extend(binds);
        Some(parent)
    }

    fn add(&mut self, kind: usize, element: usize, axes: usize, number: f64, cost: Option<f64>) -> Option<u32> {
        let at = self.graph.kinds.len();
        if at >= MOST {
            return None;
        }
        self.graph.kinds.push(kind as u16);
        self.graph.elements.push(element as u16);
        let cost = cost.filter(|c| c.is_finite()).unwrap_or(0.0).max(0.0);
        let whole = self.whole.filter(|c| c.is_finite()).unwrap_or(0.0).max(0.0);
        let magnitude = if number.is_nan() { 0.0 } else { number.abs().min(1e30).ln_1p() / 8.0 };
        let features: [f64; FEATURES] = [
            f64::from(number == 0.0),
            f64::from(number == 1.0),
            if number == 0.0 || number.is_nan() { 0.0 } else { number.signum() },
            f64::from(number.fract() == 0.0),
            magnitude,
            axes as f64 / 2.0,
            0.0,
            cost.ln_1p() / 8.0,
            (cost.ln_1p() - whole.ln_1p()) / 8.0,
        ];
        self.graph.features.extend(features.map(|f| f as f32));
        Some(at as u32)
    }

    /// The graph, once it is known how often each node is used.
    fn finished(self) -> Graph {
        let mut graph = self.graph;
        let mut uses = vec![0u32; graph.len()];
        graph.edges.iter().filter(|e| usize::from(e.kind) != BINDS).for_each(|e| uses[e.child as usize] += 1);
        for (node, uses) in uses.iter().enumerate() {
            graph.features[node * FEATURES + 6] = (*uses as f32).ln_1p();
        }
        graph
    }
}

/// The number that a head has beside its kind.
fn number(head: Head) -> f64 {
    match head {
        Head::Const(Lit::Bool(b)) => f64::from(b),
        Head::Const(Lit::Str(_)) => 0.0,
        Head::Const(lit) => lit.as_f64().or(lit.as_int().map(|i| i as f64)).unwrap_or_default(),
        Head::Var(i, _) | Head::Get(i, _) => i.into(),
        Head::Build(n) | Head::Reduce(_, n) | Head::Index(n) | Head::Size(n) => n as f64,
        Head::ConstVec(n) | Head::DeltaVec(n) | Head::Scatter(n) => n as f64,
        Head::Let | Head::If | Head::Assert | Head::Tuple | Head::Call(_) | Head::Op(_) | Head::Cast(_) => 0.0,
        Head::Arg(_) | Head::Sum | Head::Fold | Head::Scan | Head::VecInit | Head::Print => 0.0,
    }
}
