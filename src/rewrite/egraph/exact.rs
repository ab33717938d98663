//! The cheapest choice of one member a class, with a proof that none is cheaper: branch and bound.
//!
//! What counts is the cost of the term that a choice makes, as the caller finds it. The linear
//! program of `relax.rs` bounds it from below; a branch is given up where that bound reaches the best
//! cost that was seen. Limits are counts.

use super::extract::{Candidates, Choice, extracted_kids};
use super::language::ENode;
use super::relax::{Cut, Open, Relaxed, Verdict, is_bound, relax};
use egg::Id;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How far the search goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// The places of the largest linear program.
    pub places: usize,
    /// How many branches are looked at.
    pub branches: usize,
}

/// What the search found.
pub struct Exact {
    /// The cheapest choice that was seen, if cheaper than what was known before.
    pub best: Option<(f64, Choice)>,
    /// Whether no choice is cheaper than that, or than what was known.
    pub proved: bool,
    /// How many branches were looked at.
    pub branches: usize,
}

/// All choices are tried where there is no bound, and no more of them than this.
const MAX_CHOICES: usize = 500;

/// A linear program is solved again after a cycle was cut so often.
const MAX_CUTS: usize = 8;

/// Searches all choices that are acyclic and in scope. `price` is the cost that counts, `known` one
/// that was reached already.
pub fn exact(
    all: &Candidates<'_>,
    root: Id,
    effort: Effort,
    known: Option<f64>,
    price: &mut dyn FnMut(&Choice) -> Option<f64>,
    stop: &dyn Fn() -> bool,
) -> Exact {
    let root = all.graph().find(root);
    let mut search =
        Search { all, root, effort, price, best: None, least: known.unwrap_or(f64::INFINITY), cuts: vec![] };
    let Some(mut stack) = search.start() else { return Exact { best: None, proved: false, branches: 0 } };
    let bounded = stack.iter().all(|start| is_bound(all, start));
    let few = stack.iter().all(|start| start.values().fold(1usize, |n, m| n.saturating_mul(m.len())) <= MAX_CHOICES);
    let most = match (bounded, few) {
        (true, _) => effort.branches,
        // Without a bound every choice is a branch, and at most as many lead there.
        (false, true) => 2 * MAX_CHOICES,
        (false, false) => 0,
    };
    let mut branches = 0;
    while let Some(open) = stack.pop() {
        if branches == most || stop() {
            return Exact { best: search.best, proved: false, branches };
        }
        branches += 1;
        if let Some(open) = narrowed(all, root, open) {
            stack.extend(search.branch(&open, bounded));
        }
    }
    Exact { best: search.best, proved: true, branches }
}

struct Search<'a, 'p> {
    all: &'a Candidates<'a>,
    root: Id,
    effort: Effort,
    price: &'p mut dyn FnMut(&Choice) -> Option<f64>,
    best: Option<(f64, Choice)>,
    least: f64,
    cuts: Vec<Cut>,
}

impl Search<'_, '_> {
    /// All members that some acyclic choice can use, without those that only swap operands: one
    /// branch, or none where there is no choice. Nothing where the classes are too many.
    fn start(&self) -> Option<Vec<Open>> {
        let every = self.all.nodes.keys().map(|id| (*id, self.all.distinct(*id, None))).collect();
        let Some(mut open) = narrowed(self.all, self.root, every) else { return Some(vec![]) };
        if open.len() > self.effort.places {
            return None;
        }
        let needs = Needs::new(self.all, &open);
        for (at, id) in open.keys().copied().collect::<Vec<_>>().into_iter().enumerate() {
            let without = needs.possible(Some(at));
            let nodes = &self.all.nodes[&id];
            let fits = |kid: &Id| needs.places.get(kid).is_some_and(|k| without[*k]);
            if let Some(members) = open.get_mut(&id) {
                members.retain(|k| extracted_kids(&nodes[*k]).iter().all(fits));
            }
        }
        Some(narrowed(self.all, self.root, open).into_iter().collect())
    }

    /// Looks at the choices within `open`; what is left to look at, the more promising half last.
    fn branch(&mut self, open: &Open, bounded: bool) -> Vec<Open> {
        let mut taken = BTreeMap::new();
        if bounded {
            match self.bound(open) {
                Verdict::Nothing => return vec![],
                Verdict::Bound(r) if r.bound >= self.least - 1e-7 * (1.0 + self.least.abs()) => return vec![],
                Verdict::Bound(r) => taken = r.taken,
                Verdict::Unknown => {}
            }
        }
        let choice = favourite(self.all, open, &taken);
        self.offer(&choice);
        // The class about which the solution is least sure, else the one nearest to the root.
        let order = order(self.root, &choice);
        let several = |id: &&Id| open[*id].len() > 1;
        let sure = |id: &Id| taken.get(id).map_or(1.0, |t| t.iter().copied().fold(0.0, f64::max));
        let unsure = order.iter().filter(several).find(|id| sure(id) < 1.0 - 1e-6 && sure(id) > 1e-6);
        let Some(class) = unsure.or_else(|| order.iter().find(several)) else { return vec![] };
        let member = position(&self.all.nodes[class], &choice[class]);
        split(open, *class, member)
    }

    fn bound(&mut self, open: &Open) -> Verdict {
        for _ in 0..MAX_CUTS {
            let verdict = relax(self.all, self.root, open, &self.cuts, self.effort.places);
            let Verdict::Bound(r) = &verdict else { return verdict };
            let Some(cut) = self.cycle(open, r) else { return verdict };
            self.cuts.push(cut);
        }
        relax(self.all, self.root, open, &self.cuts, self.effort.places)
    }

    /// A cycle of members that the solution takes too much of.
    fn cycle(&self, open: &Open, relaxed: &Relaxed) -> Option<Cut> {
        let choice = favourite(self.all, open, &relaxed.taken);
        let cut = cycle_in(self.all, self.root, &choice)?;
        let amount = |(id, k): &(Id, usize)| {
            let at = open[id].iter().position(|m| m == k);
            at.and_then(|at| relaxed.taken.get(id).map(|t| t[at])).unwrap_or_default()
        };
        let total: f64 = cut.iter().map(amount).sum();
        (total > cut.len() as f64 - 1.0 + 1e-6).then_some(cut)
    }

    fn offer(&mut self, choice: &Choice) {
        if let Some(cost) = (self.price)(choice)
            && cost < self.least - 1e-9
        {
            self.least = cost;
            self.best = Some((cost, choice.clone()));
        }
    }
}

/// One half without a member of a class, the other with no other member.
fn split(open: &Open, class: Id, member: usize) -> Vec<Open> {
    let (mut without, mut only) = (open.clone(), open.clone());
    if let Some(members) = without.get_mut(&class) {
        members.retain(|k| *k != member);
    }
    only.insert(class, vec![member]);
    vec![without, only]
}

fn position(members: &[ENode], node: &ENode) -> usize {
    members.iter().position(|n| n == node).unwrap_or_default()
}

/// What members need, by the places of their classes within a choice that is open.
struct Needs {
    places: BTreeMap<Id, usize>,
    /// For each member its class, and how many of its children are still to be had.
    members: Vec<(usize, usize)>,
    /// The members that each class is a child of, as often as it is one.
    users: Vec<Vec<usize>>,
}

impl Needs {
    fn new(all: &Candidates<'_>, open: &Open) -> Needs {
        let places: BTreeMap<Id, usize> = open.keys().enumerate().map(|(k, id)| (*id, k)).collect();
        let (mut members, mut users) = (vec![], vec![vec![]; open.len()]);
        for (at, (id, each)) in open.iter().enumerate() {
            for k in each {
                let kids = extracted_kids(&all.nodes[id][*k]);
                kids.iter().filter_map(|kid| places.get(kid)).for_each(|kid| users[*kid].push(members.len()));
                members.push((at, kids.len()));
            }
        }
        Needs { places, members, users }
    }

    /// The classes that have a term, if one of them had none.
    fn possible(&self, without: Option<usize>) -> Vec<bool> {
        let mut done = vec![false; self.users.len()];
        let mut left = self.members.clone();
        let mut todo: Vec<usize> = left.iter().filter(|(_, kids)| *kids == 0).map(|(class, _)| *class).collect();
        while let Some(class) = todo.pop() {
            if Some(class) == without || std::mem::replace(&mut done[class], true) {
                continue;
            }
            for member in &self.users[class] {
                let (of, kids) = &mut left[*member];
                *kids -= 1;
                if *kids == 0 {
                    todo.push(*of);
                }
            }
        }
        done
    }
}

/// The members that a term of the root can use. Nothing where it has none.
fn narrowed(all: &Candidates<'_>, root: Id, open: Open) -> Option<Open> {
    let needs = Needs::new(all, &open);
    let possible = needs.possible(None);
    let done = |id: &Id| needs.places.get(id).is_some_and(|k| possible[*k]);
    let mut out = Open::new();
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        if out.contains_key(&id) {
            continue;
        }
        let fits = |k: &usize| extracted_kids(&all.nodes[&id][*k]).iter().all(|kid| done(kid) && *kid != id);
        let members: Vec<usize> = open.get(&id)?.iter().copied().filter(fits).collect();
        todo.extend(members.iter().flat_map(|k| extracted_kids(&all.nodes[&id][*k])));
        out.insert(id, members);
    }
    done(&root).then_some(out)
}

/// The members that a solution takes most of; where it says nothing, the first.
fn favourite(all: &Candidates<'_>, open: &Open, taken: &BTreeMap<Id, Vec<f64>>) -> Choice {
    let mut choice: Choice = FxHashMap::default();
    for (id, members) in open {
        let amount = |at: usize| taken.get(id).and_then(|t| t.get(at)).copied().unwrap_or_default();
        let best = (0..members.len()).reduce(|a, b| if amount(b) > amount(a) + 1e-9 { b } else { a });
        if let Some(at) = best {
            choice.insert(*id, all.nodes[id][members[at]].clone());
        }
    }
    choice
}

/// The classes that a choice needs, parents first.
pub fn order(root: Id, choice: &Choice) -> Vec<Id> {
    let mut seen = BTreeSet::new();
    let (mut order, mut todo) = (vec![], vec![root]);
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            order.push(id);
            todo.extend(choice.get(&id).map(|n| extracted_kids(n).to_vec()).unwrap_or_default());
        }
    }
    order
}

/// A cycle among the members that a choice needs.
fn cycle_in(all: &Candidates<'_>, root: Id, choice: &Choice) -> Option<Cut> {
    // Depth first, with the path from the root: a class with how many of its children were seen.
    let mut path: Vec<(Id, usize)> = vec![(root, 0)];
    let mut done = BTreeSet::new();
    while let Some((id, next)) = path.last().copied() {
        let kid = choice.get(&id).and_then(|n| extracted_kids(n).get(next).copied());
        let Some(kid) = kid else {
            done.insert(id);
            path.pop();
            continue;
        };
        if let Some(last) = path.last_mut() {
            last.1 += 1;
        }
        if let Some(from) = path.iter().position(|(on, _)| *on == kid) {
            let member = |(id, _): &(Id, usize)| Some((*id, position(&all.nodes[id], choice.get(id)?)));
            return path[from..].iter().map(member).collect();
        }
        if !done.contains(&kid) {
            path.push((kid, 0));
        }
    }
    None
}
