//! Equations become short proofs: congruence closure after Nieuwenhuis and Oliveras, whose forest tells what is
//! equal, and shortest paths through all edges that were seen, after Flatt, Coward, Willsey, Tatlock and Panchekha.
//!
//! Each edge is an equation, or says that two nodes have equal labels and equal children. The weight of an edge is
//! more than the length of any proof that it rests on, so a proof never rests on itself.

use super::shortest::{Edge, Weights, Why, rests};
use crate::derive::pace::Pace;
use crate::rewrite::egraph::trace::{Equation, Node, Reason, Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is equal, and why.
pub struct Closure {
    /// The number of the edge on the way to the tree's root.
    up: Vec<Option<usize>>,
    /// Union-find.
    class: Vec<Tid>,
    /// The terms that have a child in a class, by representative.
    parents: Vec<Vec<Tid>>,
    members: Vec<Vec<Tid>>,
    known: FxHashMap<Node, Tid>,
    /// The edges by congruence.
    congruent: FxHashSet<(Tid, Tid)>,
    weights: Weights,
}

impl Closure {
    /// Closes equations under congruence. Only parts of the equations and of `ends` are looked at: the trace also
    /// holds what other proofs passed through. An equation that is `late` is used where there is no other way. None
    /// where the time is up.
    pub fn new(
        trace: &Trace,
        equations: &[Equation],
        (order, late): (&[usize], &FxHashSet<usize>),
        ends: [Tid; 2],
        pace: &Pace<'_>,
    ) -> Option<Closure> {
        let n = trace.len();
        let members = (0..n as Tid).map(|id| vec![id]).collect();
        let mut out = Closure {
            up: vec![None; n],
            class: (0..n as Tid).collect(),
            parents: vec![vec![]; n],
            members,
            known: FxHashMap::default(),
            congruent: FxHashSet::default(),
            weights: Weights::new(n),
        };
        let reached = reachable(trace, order.iter().map(|k| &equations[*k]), ends);
        for id in (0..n as Tid).filter(|id| reached[*id as usize]) {
            for kid in &trace.node(id).1 {
                if out.parents[*kid as usize].last() != Some(&id) {
                    out.parents[*kid as usize].push(id);
                }
            }
            out.known.insert(trace.node(id).clone(), id);
        }
        out.close(trace, equations, (order, late), pace);
        let (asked, class) = (out.asked(trace, equations, ends), &out.class);
        out.weights.shorten((trace, equations), &|id| asked[class[id as usize] as usize], pace);
        (!pace.late()).then_some(out)
    }

    fn close(
        &mut self,
        trace: &Trace,
        equations: &[Equation],
        (order, late): (&[usize], &FxHashSet<usize>),
        pace: &Pace<'_>,
    ) {
        // A moved equation counts only when that which it moves is proved: else it could prove itself.
        let mut waiting: Vec<usize> = vec![];
        for k in order.iter().copied() {
            if pace.late() {
                return;
            }
            match &equations[k].reason {
                Reason::Mapped(a, b, _) if self.find(*a) != self.find(*b) => waiting.push(k),
                _ => self.equation(trace, equations, k, late.contains(&k)),
            }
        }
        loop {
            let before = waiting.len();
            waiting.retain(|k| match &equations[*k].reason {
                Reason::Mapped(a, b, _) if self.find(*a) == self.find(*b) => {
                    self.equation(trace, equations, *k, late.contains(k));
                    false
                }
                _ => true,
            });
            if waiting.len() == before || pace.late() {
                return;
            }
        }
    }

    /// The classes whose terms proofs between the ends may pass through: those of the ends, and those on which edges of
    /// such a class rest; by representative.
    fn asked(&self, trace: &Trace, equations: &[Equation], ends: [Tid; 2]) -> Vec<bool> {
        let mut edges: Vec<Vec<usize>> = vec![vec![]; trace.len()];
        for (k, edge) in self.weights.edges().iter().enumerate() {
            edges[self.find(edge.ends[0]) as usize].push(k);
        }
        let mut out = vec![false; trace.len()];
        let mut todo: Vec<Tid> = ends.iter().map(|end| self.find(*end)).collect();
        while let Some(class) = todo.pop() {
            if std::mem::replace(&mut out[class as usize], true) {
                continue;
            }
            for k in &edges[class as usize] {
                let rests = rests(&self.weights.edges()[*k], trace, equations);
                todo.extend(rests.iter().map(|(one, _)| self.find(*one)));
            }
        }
        out
    }

    /// The representative of a term's class.
    pub fn find(&self, id: Tid) -> Tid {
        self.class[id as usize]
    }

    fn equation(&mut self, trace: &Trace, equations: &[Equation], k: usize, late: bool) {
        let Equation { left, right, reason } = &equations[k];
        let moved = match reason {
            Reason::Mapped(a, b, _) => self.through(*a, *b),
            Reason::By(_) => 0,
        };
        let weight = Weights::of_equation(late, moved);
        self.unite(trace, Edge { ends: [*left, *right], why: Why::Equation(k), late }, weight);
    }

    /// The length of the proof in the forest.
    fn through(&self, a: Tid, b: Tid) -> u64 {
        let path = self.forest(a, b).unwrap_or_default();
        path.iter().fold(0, |sum: u64, k| sum.saturating_add(self.weights.of(*k)))
    }

    fn unite(&mut self, trace: &Trace, edge: Edge, weight: u64) {
        let mut todo = vec![(edge, weight)];
        while let Some((edge, weight)) = todo.pop() {
            let ([a, b], k) = (edge.ends, self.weights.push(edge, weight));
            let (mut from, mut to) = (self.find(a), self.find(b));
            if from == to {
                continue;
            }
            let mut low = a;
            if self.members[from as usize].len() > self.members[to as usize].len() {
                (from, to, low) = (to, from, b);
            }
            self.reroot(low);
            self.up[low as usize] = Some(k);
            let moved = std::mem::take(&mut self.members[from as usize]);
            for id in &moved {
                self.class[*id as usize] = to;
            }
            self.members[to as usize].extend(moved);
            for parent in std::mem::take(&mut self.parents[from as usize]) {
                let (label, kids) = trace.node(parent);
                let key = (*label, kids.iter().map(|k| self.find(*k)).collect());
                match self.known.get(&key).copied() {
                    Some(other) => todo.extend(self.congruence(trace, parent, other)),
                    None => drop(self.known.insert(key, parent)),
                }
                self.parents[to as usize].push(parent);
            }
        }
    }

    /// The edge between two nodes with equal children, where it is new.
    fn congruence(&mut self, trace: &Trace, a: Tid, b: Tid) -> Option<(Edge, u64)> {
        if a == b || !self.congruent.insert((a.min(b), a.max(b))) {
            return None;
        }
        let kids = trace.node(a).1.iter().zip(&trace.node(b).1);
        let lengths = kids.filter(|(p, q)| p != q).map(|(p, q)| self.through(*p, *q));
        let weight = Weights::of_congruence(lengths);
        Some((Edge { ends: [a, b], why: Why::Congruence, late: false }, weight))
    }

    /// Turns the path from a term to its root round.
    fn reroot(&mut self, id: Tid) {
        let (mut at, mut before) = (id, None);
        while let Some(edge) = std::mem::replace(&mut self.up[at as usize], before) {
            (at, before) = (self.weights.other(edge, at), Some(edge));
        }
    }

    /// The edges from one term to another in the forest.
    fn forest(&self, from: Tid, to: Tid) -> Option<Vec<usize>> {
        let chain = |mut id: Tid| {
            let (mut ids, mut edges) = (vec![id], vec![]);
            while let Some(edge) = self.up[id as usize] {
                id = self.weights.other(edge, id);
                ids.push(id);
                edges.push(edge);
            }
            (ids, edges)
        };
        let ((up, mut way), (down, back)) = (chain(from), chain(to));
        // From the root on both ways are one up to where they part.
        let common = up.iter().rev().zip(down.iter().rev()).take_while(|(a, b)| a == b).count();
        if common == 0 {
            return None;
        }
        way.truncate(up.len() - common);
        way.extend(back[..down.len() - common].iter().rev());
        Some(way)
    }

    /// The terms from one to another, each but the first with why it equals the one before.
    pub fn path(&self, trace: &Trace, from: Tid, to: Tid) -> Option<Vec<(Tid, Why)>> {
        if self.find(from) != self.find(to) {
            return None;
        }
        let mut at = from;
        let way = match self.weights.path(trace, from, to, &|a, b| self.find(a) == self.find(b)) {
            Some(way) if way.is_empty() && from != to => return Some(vec![(to, Why::Congruence)]),
            Some(way) => way,
            // What is longer than can be counted: the forest has no cycles either.
            None => self.forest(from, to)?,
        };
        Some(
            way.into_iter()
                .map(|k| {
                    at = self.weights.other(k, at);
                    (at, self.weights.why(k))
                })
                .collect(),
        )
    }
}

/// Which terms are parts of equations, or of the ends of a proof.
fn reachable<'a>(trace: &Trace, equations: impl Iterator<Item = &'a Equation>, ends: [Tid; 2]) -> Vec<bool> {
    let mut todo = ends.to_vec();
    for e in equations {
        todo.extend([e.left, e.right]);
        if let Reason::Mapped(a, b, _) = &e.reason {
            todo.extend([*a, *b]);
        }
    }
    let mut out = vec![false; trace.len()];
    while let Some(id) = todo.pop() {
        if !std::mem::replace(&mut out[id as usize], true) {
            todo.extend(&trace.node(id).1);
        }
    }
    out
}
