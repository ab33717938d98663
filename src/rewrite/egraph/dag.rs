//! The cheapest choice found by a greedy search in which shared parts are paid once.

use super::extract::{Candidates, Choice, Own, extracted_kids};
use super::language::ENode;
use crate::cost::{self, Model};
use crate::ir::Head;
use egg::Id;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The search gives up after so many steps.
const MAX_STEPS: usize = 60_000;
/// It joins so many parts at most: each step joins all that its children pay for.
const MAX_PARTS: usize = 5_000_000;

impl Candidates<'_> {
    /// The cheapest choice found by a greedy search in which shared parts are paid once.
    pub fn dag(&self, stop: &dyn Fn() -> bool) -> Choice {
        let mut best: FxHashMap<Id, (f64, Parts, usize)> = FxHashMap::default();
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
            let Some(parts) = dag_cost(id, node, self.costs[&id][k], &best) else { continue };
            let weight = parts.weight();
            if best.get(&id).is_none_or(|(w, _, _)| weight < *w - 1e-9) {
                best.insert(id, (weight, parts, k));
                queue.extend(parents.get(&id).into_iter().flatten().copied());
            }
        }
        best.into_iter().map(|(id, (_, _, k))| (id, self.nodes[&id][k].clone())).collect()
    }
}

fn dag_cost(
    class: Id,
    node: &ENode,
    Own { mut cost, trips, level }: Own,
    best: &FxHashMap<Id, (f64, Parts, usize)>,
) -> Option<Parts> {
    let mut out = Parts::default();
    if let Some(head) = node.head().filter(|h| !matches!(h, Head::Var(..))) {
        let n = node.kids.len();
        let mut arms: Vec<&Parts> = vec![];
        for (k, kid) in node.kids.iter().enumerate() {
            let (_, parts, _) = best.get(kid)?;
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
            let (dear, cheap) = if a.weight() >= b.weight() { (a, b) } else { (b, a) };
            cost += Model::OTHER_ARM * cheap.weight();
            out.join(dear);
        }
    }
    out.join(&Parts(vec![Part { class, lift: 0, cost, level }]));
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

    /// Takes over parts; what both have is as in the other.
    fn join(&mut self, other: &Parts) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut out = Vec::with_capacity(self.0.len() + other.0.len());
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
