//! The graph of all equations that were seen, and the shortest proofs in it.
//!
//! Invariant: the weight of an edge is more than the length of each proof that it rests on: that its children are
//! equal, or the terms that it moves. Lengths never grow, so the invariant stays while weights are made smaller.

use crate::derive::pace::Pace;
use crate::rewrite::egraph::trace::{Equation, Reason, Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
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
    /// What one search after the other is done with.
    ball: RefCell<Ball>,
}

/// What a search has reached.
#[derive(Default)]
struct Ball {
    /// By term: the length of the way, and its last edge but at the start; [`FAR`] where there is no way yet.
    best: Vec<(u64, Option<u32>)>,
    /// The terms that have one.
    reached: Vec<Tid>,
    todo: BinaryHeap<Reverse<(u64, Tid)>>,
}

/// The length of the way to a term that was not reached.
const FAR: u64 = u64::MAX;

/// Edges, one after the other; with none between two terms they are equal by congruence.
type Way = Vec<usize>;

impl Weights {
    /// For so many terms.
    pub fn new(terms: usize) -> Weights {
        let (edges, weights, paths, ball) = Default::default();
        Weights { edges, weights, at: vec![SmallVec::new(); terms], paths, ball }
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

    /// The edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
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

    /// Weighs the edges of some classes by the shortest proofs that they may rest on, for as long as there is time.
    /// Those of a class rest on others of these classes.
    pub fn shorten(&mut self, (trace, equations): (&Trace, &[Equation]), asked: &dyn Fn(Tid) -> bool, pace: &Pace<'_>) {
        for _ in 0..ROUNDS {
            let some = self.edges.iter().filter(|edge| asked(edge.ends[0]));
            let known = self.lengths(some.flat_map(|edge| rests(edge, trace, equations)), pace);
            let weigh = |(k, edge): (usize, &Edge)| {
                if !asked(edge.ends[0]) {
                    return self.weights[k];
                }
                let rests = rests(edge, trace, equations);
                let mut lengths = rests.iter().map(|(a, b)| known.get(&(*a.min(b), *a.max(b))).copied());
                match edge.why {
                    _ if lengths.clone().any(|length| length.is_none()) => self.weights[k],
                    Why::Congruence => Weights::of_congruence(lengths.flatten()),
                    Why::Equation(_) => match lengths.next().flatten() {
                        Some(moved) => Weights::of_equation(edge.late, moved),
                        None => self.weights[k],
                    },
                }
            };
            self.weights = self.edges.iter().enumerate().map(weigh).collect();
        }
    }

    /// The lengths of the shortest proofs that terms are equal, the one with the smaller number first: those that
    /// begin at one term are found together, as many as there is time for.
    fn lengths(&self, pairs: impl Iterator<Item = (Tid, Tid)>, pace: &Pace<'_>) -> FxHashMap<(Tid, Tid), u64> {
        let pairs: FxHashSet<(Tid, Tid)> = pairs.map(|(a, b)| (a.min(b), a.max(b))).collect();
        let mut asked: FxHashMap<Tid, usize> = FxHashMap::default();
        for (a, b) in &pairs {
            *asked.entry(*a).or_default() += 1;
            *asked.entry(*b).or_default() += 1;
        }
        // A search begins where the most of what is asked for does.
        let mut from: FxHashMap<Tid, Vec<Tid>> = FxHashMap::default();
        for (a, b) in &pairs {
            let (first, to) = if (asked[a], b) >= (asked[b], a) { (a, b) } else { (b, a) };
            from.entry(*first).or_default().push(*to);
        }
        let mut out = FxHashMap::default();
        let mut ball = self.ball.borrow_mut();
        for (from, all) in from {
            if pace.late() {
                break;
            }
            self.reach(&mut ball, from, &all);
            for to in all {
                let length = Some(ball.best[to as usize].0).filter(|length| *length != FAR);
                out.insert((from.min(to), from.max(to)), length.unwrap_or(MAX));
            }
        }
        out
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

    /// The shortest path, and its length.
    fn shortest(&self, from: Tid, to: Tid) -> Option<(u64, Way)> {
        let mut ball = self.ball.borrow_mut();
        self.reach(&mut ball, from, &[to]);
        let (mut way, mut at) = (vec![], to);
        let length = Some(ball.best[to as usize].0).filter(|length| *length != FAR)?;
        while let Some(k) = ball.best[at as usize].1 {
            way.push(k as usize);
            at = self.other(k as usize, at);
        }
        way.reverse();
        Some((length, way))
    }

    /// Dijkstra's shortest paths from a term to each of some others, of which none stands twice.
    fn reach(&self, ball: &mut Ball, from: Tid, all: &[Tid]) {
        let Ball { best, reached, todo } = ball;
        best.resize(self.at.len(), (FAR, None));
        reached.drain(..).for_each(|id| best[id as usize] = (FAR, None));
        todo.clear();
        best[from as usize] = (0, None);
        reached.push(from);
        todo.push(Reverse((0, from)));
        let mut wanted: FxHashSet<Tid> = all.iter().copied().collect();
        while let Some(Reverse((length, at))) = todo.pop() {
            if best[at as usize].0 < length {
                continue;
            }
            wanted.remove(&at);
            if wanted.is_empty() {
                return;
            }
            for k in &self.at[at as usize] {
                let (next, length) = (self.other(*k as usize, at), length.saturating_add(self.weights[*k as usize]));
                let known = &mut best[next as usize];
                if length < MAX && length < known.0 {
                    if known.0 == FAR {
                        reached.push(next);
                    }
                    *known = (length, Some(*k));
                    todo.push(Reverse((length, next)));
                }
            }
        }
    }
}

/// What is equal where an edge rests on that: children, or the terms that it moves.
pub fn rests(edge: &Edge, trace: &Trace, equations: &[Equation]) -> SmallVec<[(Tid, Tid); 4]> {
    match edge.why {
        Why::Congruence => {
            let kids = trace.node(edge.ends[0]).1.iter().zip(&trace.node(edge.ends[1]).1);
            kids.filter(|(p, q)| p != q).map(|(p, q)| (*p, *q)).collect()
        }
        Why::Equation(e) => match equations[e].reason {
            Reason::Mapped(a, b, _) => SmallVec::from_iter([(a, b)]),
            Reason::By(_) => SmallVec::new(),
        },
    }
}
