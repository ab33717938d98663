//! The cheapest choice where every use pays for itself, but for tensors that are kept anyway.
//!
//! A term without lets is a tree: what it shares is paid as often as it stands. Costs go from children to parents until
//! nothing becomes cheaper.

use super::extract::{Candidates, Choice, Own, extracted_kids};
use super::language::ENode;
use crate::cost::{self, Model};
use crate::ir::Head;
use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// After so many classes it is asked whether to go on.
const LOOK: usize = 256;

/// The cheapest trees of what may be chosen.
pub struct Trees<'a> {
    /// What may be chosen.
    pub all: &'a Candidates<'a>,
    wiring: Wiring,
    /// The classes whose terms may hold a tensor, itself among them, by the tensor.
    holders: RefCell<FxHashMap<Id, Rc<FxHashSet<Id>>>>,
    /// Those that were asked for, by the tensors that are kept.
    known: RefCell<FxHashMap<BTreeSet<Id>, Rc<Choice>>>,
}

/// How classes hang together, by their places in the order.
struct Wiring {
    places: FxHashMap<Id, u32>,
    /// The children of each member that are part of its term.
    kids: Vec<Vec<SmallVec<[u32; 3]>>>,
    /// The classes that each class may be a child in.
    users: Vec<Vec<u32>>,
}

impl Wiring {
    fn new(all: &Candidates<'_>) -> Wiring {
        let places: FxHashMap<Id, u32> = (0..).zip(&all.order).map(|(k, id)| (*id, k)).collect();
        let kids = |n: &ENode| extracted_kids(n).iter().map(|kid| places[kid]).collect();
        let kids: Vec<Vec<SmallVec<[u32; 3]>>> =
            all.order.iter().map(|id| all.nodes[id].iter().map(kids).collect()).collect();
        let mut users = vec![vec![]; all.order.len()];
        for (user, members) in (0..).zip(&kids) {
            let each: BTreeSet<u32> = members.iter().flatten().copied().collect();
            each.into_iter().for_each(|kid| users[kid as usize].push(user));
        }
        Wiring { places, kids, users }
    }
}

/// The cheapest member of a class so far.
struct Best {
    weight: f64,
    split: Split,
    member: usize,
}

impl<'a> Trees<'a> {
    /// None is made yet.
    pub fn new(all: &'a Candidates<'a>) -> Trees<'a> {
        let (holders, known) = Default::default();
        Trees { all, wiring: Wiring::new(all), holders, known }
    }

    /// The classes whose terms may hold a tensor, whatever is chosen, and the tensor itself.
    pub fn holders(&self, tensor: Id) -> Rc<FxHashSet<Id>> {
        if let Some(known) = self.holders.borrow().get(&tensor) {
            return known.clone();
        }
        let mut out = FxHashSet::from_iter([tensor]);
        let mut open: Vec<u32> = self.wiring.places.get(&tensor).copied().into_iter().collect();
        while let Some(k) = open.pop() {
            let users = self.wiring.users[k as usize].iter().copied();
            open.extend(users.filter(|user| out.insert(self.all.order[*user as usize])));
        }
        let out = Rc::new(out);
        self.holders.borrow_mut().insert(tensor, out.clone());
        out
    }

    /// The cheapest choice where every use pays for itself, but for tensors that are kept anyway.
    pub fn tree(&self, kept: &BTreeSet<Id>) -> Rc<Choice> {
        if let Some(known) = self.known.borrow().get(kept) {
            return known.clone();
        }
        let choice = Rc::new(self.grow(kept));
        self.known.borrow_mut().insert(kept.clone(), choice.clone());
        choice
    }

    /// Incomplete where it was halted.
    fn grow(&self, kept: &BTreeSet<Id>) -> Choice {
        let (all, wiring) = (self.all, &self.wiring);
        let count = all.order.len();
        let mut free = vec![false; count];
        kept.iter().filter_map(|id| wiring.places.get(id)).for_each(|k| free[*k as usize] = true);
        let mut best: Vec<Option<Best>> = (0..count).map(|_| None).collect();
        // A class is looked at again where what one of its members is made of became cheaper.
        let mut open = vec![true; count];
        'all: while open.contains(&true) {
            for (k, id) in all.order.iter().enumerate() {
                if k % LOOK == 0 && (all.halt)() {
                    break 'all;
                }
                if !std::mem::take(&mut open[k]) {
                    continue;
                }
                for (member, (node, own)) in all.nodes[id].iter().zip(&all.costs[id]).enumerate() {
                    let kids = &wiring.kids[k][member];
                    let Some(split) = self.tree_cost(*own, node, kids, (&best, &free)) else { continue };
                    let weight = split.weight();
                    if best[k].as_ref().is_none_or(|b| weight < b.weight - 1e-9) {
                        best[k] = Some(Best { weight, split, member });
                        wiring.users[k].iter().for_each(|user| open[*user as usize] = true);
                    }
                }
            }
        }
        let chosen = |(id, best): (&Id, Option<Best>)| Some((*id, all.nodes[id][best?.member].clone()));
        all.order.iter().zip(best).filter_map(chosen).collect()
    }

    fn tree_cost(
        &self,
        Own { cost, trips, level }: Own,
        node: &ENode,
        kids: &[u32],
        (best, free): (&[Option<Best>], &[bool]),
    ) -> Option<Split> {
        let mut out = Split::default();
        out.pay(level, cost);
        let Some(head) = node.head() else { return Some(out) };
        let n = kids.len();
        let mut arms: SmallVec<[&Best; 2]> = SmallVec::new();
        for (k, kid) in kids.iter().enumerate() {
            if free[*kid as usize] && matches!(head, Head::Index(_)) {
                continue;
            }
            let kid = best[*kid as usize].as_ref()?;
            let binds = head.binds(k, n);
            if binds > 0 {
                let (paid, rest) = kid.split.leave(binds);
                out.pay(level, trips * paid);
                let moved = rest.weight() > 0.0;
                out.plus(&rest, 1.0);
                out.pay(level, if moved { self.all.model().binding() } else { 0.0 });
            } else if head == Head::If && k > 0 {
                arms.push(kid);
            } else {
                out.plus(&kid.split, 1.0);
            }
        }
        if let [a, b] = arms.as_slice() {
            let (costly, cheap) = if a.weight >= b.weight { (a, b) } else { (b, a) };
            out.plus(&costly.split, 1.0);
            out.plus(&cheap.split, Model::OTHER_ARM);
        }
        Some(out)
    }
}

/// Costs by where they are paid: outside all loops, and in the loop of each free variable.
#[derive(Clone, Default, Debug)]
struct Split {
    closed: f64,
    inside: SmallVec<[f64; 4]>,
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
        (paid, Split { closed: self.closed, inside: self.inside[cut..].into() })
    }

    /// One number: an outer loop's cost counts less than an inner one's.
    fn weight(&self) -> f64 {
        self.closed + self.inside.iter().fold(0.0, |outer, c| (outer + c) * cost::ASSUMED)
    }
}
