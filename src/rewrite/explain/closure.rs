//! Equations become a forest of proofs: congruence closure after Nieuwenhuis and Oliveras.
//!
//! Two terms are equal if they stand in one tree; the path between them is the proof. Each edge is an
//! equation, or says that two nodes have equal labels and equal children.

use crate::rewrite::egraph::trace::{Equation, Node, Reason, Tid, Trace};
use rustc_hash::FxHashMap;

/// Why two neighbours are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// An equation, by its number.
    Equation(usize),
    /// Equal labels over equal children.
    Congruence,
}

/// The forest.
pub struct Closure {
    /// The next term on the way to the tree's root, and why it is equal.
    up: Vec<Option<(Tid, Why)>>,
    /// Union-find.
    class: Vec<Tid>,
    /// The terms that have a child in a class, by representative.
    parents: Vec<Vec<Tid>>,
    members: Vec<Vec<Tid>>,
    known: FxHashMap<Node, Tid>,
}

impl Closure {
    /// Closes equations under congruence, one after the other in an order: the earlier one of two
    /// ways is the proof.
    pub fn new(trace: &Trace, equations: &[Equation], order: &[usize]) -> Closure {
        let n = trace.len();
        let all = || (0..n as Tid).collect::<Vec<Tid>>();
        let members = (0..n as Tid).map(|id| vec![id]).collect();
        let mut out =
            Closure { up: vec![None; n], class: all(), parents: vec![vec![]; n], members, known: FxHashMap::default() };
        for id in 0..n as Tid {
            for kid in &trace.node(id).1 {
                if out.parents[*kid as usize].last() != Some(&id) {
                    out.parents[*kid as usize].push(id);
                }
            }
            out.known.insert(trace.node(id).clone(), id);
        }
        // A moved equation counts only when that which it moves is proved: else it could prove itself.
        let mut waiting: Vec<usize> = vec![];
        for k in order.iter().copied() {
            let e = &equations[k];
            match &e.reason {
                Reason::Mapped(a, b, _) if out.find(*a) != out.find(*b) => waiting.push(k),
                Reason::Mapped(..) | Reason::By(_) => out.unite(trace, e.left, e.right, Why::Equation(k)),
            }
        }
        loop {
            let before = waiting.len();
            waiting.retain(|k| match &equations[*k].reason {
                Reason::Mapped(a, b, _) if out.find(*a) == out.find(*b) => {
                    out.unite(trace, equations[*k].left, equations[*k].right, Why::Equation(*k));
                    false
                }
                _ => true,
            });
            if waiting.len() == before {
                return out;
            }
        }
    }

    /// The representative of a term's class.
    pub fn find(&self, id: Tid) -> Tid {
        self.class[id as usize]
    }

    /// The terms equal to one.
    pub fn members(&self, id: Tid) -> &[Tid] {
        &self.members[self.find(id) as usize]
    }

    fn unite(&mut self, trace: &Trace, a: Tid, b: Tid, why: Why) {
        let mut todo = vec![(a, b, why)];
        while let Some((a, b, why)) = todo.pop() {
            let (mut from, mut to) = (self.find(a), self.find(b));
            if from == to {
                continue;
            }
            let (mut low, mut high) = (a, b);
            if self.members[from as usize].len() > self.members[to as usize].len() {
                (from, to, low, high) = (to, from, high, low);
            }
            self.reroot(low);
            self.up[low as usize] = Some((high, why));
            let moved = std::mem::take(&mut self.members[from as usize]);
            for id in &moved {
                self.class[*id as usize] = to;
            }
            self.members[to as usize].extend(moved);
            for parent in std::mem::take(&mut self.parents[from as usize]) {
                let (label, kids) = trace.node(parent);
                let key = (*label, kids.iter().map(|k| self.find(*k)).collect());
                match self.known.get(&key) {
                    Some(other) if self.find(*other) != self.find(parent) => {
                        todo.push((parent, *other, Why::Congruence));
                    }
                    Some(_) => {}
                    None => drop(self.known.insert(key, parent)),
                }
                self.parents[to as usize].push(parent);
            }
        }
    }

    /// Turns the path from a term to its root round.
    fn reroot(&mut self, id: Tid) {
        let (mut at, mut before) = (id, None);
        loop {
            let next = std::mem::replace(&mut self.up[at as usize], before);
            let Some((parent, why)) = next else { return };
            before = Some((at, why));
            at = parent;
        }
    }

    /// The terms from one to another, each but the first with why it equals the one before.
    pub fn path(&self, from: Tid, to: Tid) -> Option<Vec<(Tid, Why)>> {
        let chain = |mut id: Tid| {
            let mut out = vec![(id, Why::Congruence)];
            while let Some((next, why)) = self.up[id as usize] {
                out.push((next, why));
                id = next;
            }
            out
        };
        let (up, down) = (chain(from), chain(to));
        let depth: FxHashMap<Tid, usize> = down.iter().enumerate().map(|(k, (id, _))| (*id, k)).collect();
        let meet = up.iter().position(|(id, _)| depth.contains_key(id))?;
        let mut out: Vec<(Tid, Why)> = up[1..=meet].to_vec();
        for k in (0..depth[&up[meet].0]).rev() {
            out.push((down[k].0, down[k + 1].1));
        }
        Some(out)
    }
}
