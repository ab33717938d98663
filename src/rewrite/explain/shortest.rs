//! The graph of all equations that were seen, and the shortest proofs in it.
//!
//! Invariant: the weight of an edge is more than the length of each proof that it rests on: that its children are
//! equal, or the terms that it moves. Lengths never grow, so the invariant stays while weights are made smaller.

use crate::derive::pace::Pace;
use crate::rewrite::egraph::trace::{Equation, Reason, Tid, Trace};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The weight of an equation, and how much more one has that was refused before.
const EQUATION: u64 = 16;
const LATE: u64 = 1 << 16;
/// What is longer is not counted.
const MAX: u64 = 1 << 60;
/// So often all weights are made smaller.
const ROUNDS: usize = 2;

/// Why two neighbours are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// An equation, by its number.
    Equation(usize),
    /// Equal labels over equal children.
    Congruence,
}

/// Why two terms are equal.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The terms.
    pub ends: [Tid; 2],
    /// Why.
    pub why: Why,
    /// Whether it is used where there is no other way.
    pub late: bool,
}

/// The graph.
pub struct Weights {
    edges: Vec<Edge>,
    weights: Vec<u64>,
    at: Vec<SmallVec<[u32; 4]>>,
    /// The paths that were asked for.
    paths: RefCell<FxHashMap<(Tid, Tid), Option<Way>>>,
}

/// Edges, one after the other; with none between two terms they are equal by congruence.
type Way = Vec<usize>;

impl Weights {
    /// For so many terms.
    pub fn new(terms: usize) -> Weights {
        let (edges, weights, paths) = Default::default();
        Weights { edges, weights, at: vec![SmallVec::new(); terms], paths }
    }

    /// The weight of an equation, which may rest on a proof.
    pub fn of_equation(late: bool, moved: u64) -> u64 {
        (EQUATION + if late { LATE } else { 0 }).saturating_add(moved).min(MAX)
    }

    /// The weight of a congruence over proofs that children are equal.
    pub fn of_congruence(lengths: impl Iterator<Item = u64>) -> u64 {
        lengths.fold(1, |sum: u64, n| sum.saturating_add(n)).min(MAX)
    }

    /// Adds an edge; its number.
    pub fn push(&mut self, edge: Edge, weight: u64) -> usize {
        let k = self.edges.len();
        for end in edge.ends {
            self.at[end as usize].push(k as u32);
        }
        self.edges.push(edge);
        self.weights.push(weight);
        k
    }

    /// The weight of an edge.
    pub fn of(&self, k: usize) -> u64 {
        self.weights[k]
    }

    /// The reason of an edge.
    pub fn why(&self, k: usize) -> Why {
        self.edges[k].why
    }

    /// The other end of an edge.
    pub fn other(&self, k: usize, end: Tid) -> Tid {
        let [a, b] = self.edges[k].ends;
        if a == end { b } else { a }
    }

    /// Weighs edges by the shortest proofs that they may rest on, for as long as there is time.
    pub fn shorten(&mut self, trace: &Trace, equations: &[Equation], pace: &Pace<'_>) {
        for _ in 0..ROUNDS {
            let mut known: FxHashMap<(Tid, Tid), u64> = FxHashMap::default();
            let mut length = |a: Tid, b: Tid| {
                let key = (a.min(b), a.max(b));
                *known.entry(key).or_insert_with(|| self.shortest(key.0, key.1).map_or(MAX, |(length, _)| length))
            };
            let weigh = |(k, edge): (usize, &Edge)| match edge.why {
                _ if pace.late() => self.weights[k],
                Why::Congruence => {
                    let kids = trace.node(edge.ends[0]).1.iter().zip(&trace.node(edge.ends[1]).1);
                    Weights::of_congruence(kids.filter(|(p, q)| p != q).map(|(p, q)| length(*p, *q)))
                }
                Why::Equation(e) => match equations[e].reason {
                    Reason::Mapped(a, b, _) => Weights::of_equation(edge.late, length(a, b)),
                    Reason::By(_) => self.weights[k],
                },
            };
            self.weights = self.edges.iter().enumerate().map(weigh).collect();
        }
    }

    /// The shortest proof that two terms of one class are equal; none where it is longer than can be counted.
    pub fn path(&self, trace: &Trace, from: Tid, to: Tid, same: &dyn Fn(Tid, Tid) -> bool) -> Option<Way> {
        if let Some(known) = self.paths.borrow().get(&(from, to)) {
            return known.clone();
        }
        let found = self.shortest(from, to);
        let (length, way) = found.map_or((MAX, None), |(length, way)| (length, Some(way)));
        let (a, b) = (trace.node(from), trace.node(to));
        let alike = from != to && a.0 == b.0 && a.1.len() == b.1.len();
        let out = match alike && a.1.iter().zip(&b.1).all(|(p, q)| same(*p, *q)) {
            true => {
                let kids = a.1.iter().zip(&b.1).filter(|(p, q)| p != q);
                let lengths = kids.map(|(p, q)| self.shortest(*p, *q).map_or(MAX, |(length, _)| length));
                let direct = Weights::of_congruence(lengths);
                if direct < MAX && direct <= length { Some(vec![]) } else { way }
            }
            false => way,
        };
        self.paths.borrow_mut().insert((from, to), out.clone());
        out
    }

    /// Dijkstra's shortest path, and its length.
    fn shortest(&self, from: Tid, to: Tid) -> Option<(u64, Way)> {
        let mut best: FxHashMap<Tid, (u64, Option<usize>)> = FxHashMap::from_iter([(from, (0, None))]);
        let mut todo = BinaryHeap::from([Reverse((0, from))]);
        while let Some(Reverse((length, at))) = todo.pop() {
            if at == to {
                break;
            }
            if best[&at].0 < length {
                continue;
            }
            for k in self.at[at as usize].iter().map(|k| *k as usize) {
                let (next, length) = (self.other(k, at), length.saturating_add(self.weights[k]));
                if length < MAX && best.get(&next).is_none_or(|(known, _)| length < *known) {
                    best.insert(next, (length, Some(k)));
                    todo.push(Reverse((length, next)));
                }
            }
        }
        let (mut way, mut at) = (vec![], to);
        let length = best.get(&to)?.0;
        while let Some(k) = best[&at].1 {
            way.push(k);
            at = self.other(k, at);
        }
        way.reverse();
        Some((length, way))
    }
}
