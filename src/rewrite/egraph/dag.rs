//! The cheapest choice found by a greedy search in which shared parts are paid once.

use super::extract::{Candidates, Choice, Own, extracted_kids};
use super::language::ENode;
use crate::cost::{self, Model};
use crate::ir::Head;
use egg::Id;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The search gives up after so many steps.
const MAX_STEPS: usize = 60_000;
/// It joins so many parts at most: each step joins all that its children pay for.
const MAX_PARTS: usize = 5_000_000;

/// The cheapest member of a class so far: what it weighs, what it pays for, and its number.
type Best = (f64, Parts, usize);

impl Candidates<'_> {
    /// The cheapest choice found by a greedy search in which shared parts are paid once.
    pub fn dag(&self, stop: &dyn Fn() -> bool) -> Choice {
        // Classes by their places in the order, which is that of their numbers.
        let places: FxHashMap<Id, usize> = self.order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut best: Vec<Option<Best>> = self.order.iter().map(|_| None).collect();
        let mut parents: Vec<Vec<(usize, usize)>> = vec![vec![]; self.order.len()];
        let mut queue: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (at, id) in self.order.iter().enumerate() {
            for (k, node) in self.nodes[id].iter().enumerate() {
                let kids = extracted_kids(node);
                kids.iter().for_each(|kid| parents[places[kid]].push((at, k)));
                if kids.is_empty() {
                    queue.insert((at, k));
                }
            }
        }
        let (mut steps, mut joined) = (0usize, 0usize);
        let mut kids: SmallVec<[usize; 3]> = SmallVec::new();
        while let Some((at, k)) = queue.pop_first() {
            let id = self.order[at];
            let node = &self.nodes[&id][k];
            kids.clear();
            kids.extend(node.kids.iter().map(|kid| places[kid]));
            steps += 1;
            joined +=
                kids.iter().filter_map(|kid| best[*kid].as_ref()).map(|(_, parts, _)| parts.0.len()).sum::<usize>();
            if steps > MAX_STEPS || joined > MAX_PARTS || stop() {
                break;
            }
            let Some(parts) = dag_cost(id, node, self.costs[&id][k], (&kids, &best)) else { continue };
            let weight = parts.weight();
            if best[at].as_ref().is_none_or(|(w, _, _)| weight < *w - 1e-9) {
                best[at] = Some((weight, parts, k));
                queue.extend(parents[at].iter().copied());
            }
        }
        let chosen = |(id, best): (&Id, Option<Best>)| Some((*id, self.nodes[id][best?.2].clone()));
        self.order.iter().zip(best).filter_map(chosen).collect()
    }
}

fn dag_cost(
    class: Id,
    node: &ENode,
    Own { mut cost, trips, level }: Own,
    (kids, best): (&[usize], &[Option<Best>]),
) -> Option<Parts> {
    let mut out = Parts::default();
    if let Some(head) = node.head().filter(|h| !matches!(h, Head::Var(..))) {
        let n = kids.len();
        let mut arms: SmallVec<[&Parts; 2]> = SmallVec::new();
        for (k, kid) in kids.iter().enumerate() {
            let (_, parts, _) = best[*kid].as_ref()?;
            if parts.has(class) {
                return None;
            }
            let binds = head.binds(k, n);
            if head == Head::If && k > 0 {
                arms.push(parts);
            } else if binds == 0 {
                out.join(parts);
            } else {
                cost += trips * out.leave(parts, binds);
            }
        }
        if let [a, b] = arms.as_slice() {
            let (costly, cheap) = if a.weight() >= b.weight() { (a, b) } else { (b, a) };
            cost += Model::OTHER_ARM * cheap.weight();
            out.join(costly);
        }
    }
    out.add(Part { class, lift: 0, cost, level });
    Some(out)
}

/// What a choice pays for: each part once, sorted by class and lift.
#[derive(Clone, Default, Debug)]
struct Parts(Vec<Part>);

/// A class, how many binders it was moved out of, and what it costs in which loop.
#[derive(Clone, Copy, Debug)]
struct Part {
    class: Id,
    lift: usize,
    cost: f64,
    level: Option<usize>,
}

impl Part {
    fn key(&self) -> (Id, usize) {
        (self.class, self.lift)
    }
}

impl Parts {
    /// Whether a class is a part that was not moved.
    fn has(&self, class: Id) -> bool {
        self.0.binary_search_by_key(&(class, 0), Part::key).is_ok()
    }

    /// Takes over a part in place of an equal one.
    fn add(&mut self, part: Part) {
        match self.0.binary_search_by_key(&part.key(), Part::key) {
            Ok(at) => self.0[at] = part,
            Err(at) => self.0.insert(at, part),
        }
    }

    /// Takes over parts; what both have is as in the other.
    fn join(&mut self, other: &Parts) {
        if self.0.is_empty() {
            // With room for the part that pays for them.
            self.0.reserve(other.0.len() + 1);
            self.0.extend_from_slice(&other.0);
            return;
        }
        let mut out = Vec::with_capacity(self.0.len() + other.0.len() + 1);
        let mut mine = self.0.iter().copied().peekable();
        for part in &other.0 {
            while let Some(own) = mine.next_if(|own| own.key() < part.key()) {
                out.push(own);
            }
            mine.next_if(|own| own.key() == part.key());
            out.push(*part);
        }
        out.extend(mine);
        self.0 = out;
    }

    /// Takes over the parts that do not depend on the innermost `n` variables; the cost of the rest.
    fn leave(&mut self, other: &Parts, n: usize) -> f64 {
        let (mut paid, mut left) = (0.0, vec![]);
        for part in &other.0 {
            match part.level {
                None => left.push(*part),
                Some(k) if k >= n => left.push(Part { lift: part.lift + n, level: Some(k - n), ..*part }),
                Some(_) => paid += part.cost,
            }
        }
        // A part that was moved may meet one of its class that was not.
        left.sort_by_key(Part::key);
        left.dedup_by_key(|part| part.key());
        self.join(&Parts(left));
        paid
    }

    /// One number: an outer loop's cost counts less than an inner one's.
    fn weight(&self) -> f64 {
        let deepest = self.0.iter().filter_map(|p| p.level).max().map_or(0, |k| k as i32 + 1);
        let each = |part: &Part| match part.level {
            None => part.cost,
            Some(k) => part.cost * cost::ASSUMED.powi(deepest - k as i32),
        };
        self.0.iter().map(each).sum()
    }
}
