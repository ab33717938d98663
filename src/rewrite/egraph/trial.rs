//! Plans become terms, terms become costs; the best is kept. What counts is the cost of what is printed.
//!
//! Extraction is heuristic where it has to be: cheap choices first, then tensors that are kept, then
//! single changes. Where an e-graph is small enough, the exact search says that nothing is cheaper.

use super::Graph;
use super::elaborate::{Elaborated, elaborate_both};
use super::exact::{Effort, exact, order};
use super::extract::{Candidates, Choice, MAX_FAMILIES, extracted_kids, families};
use super::journal::{Candidate, Journal};
use super::memo::{Fingerprint, Memo, Verdict};
use super::plan::{Builder, Plan};
use super::retrace::retraced;
use super::tree::Trees;
use crate::cost::{Costing, Model, Sweep};
use crate::ir::{Def, Id, Terms, Ty};
use crate::rewrite::accumulate::{accumulated, over_tensors};
use crate::rewrite::tabulate::{self, Known, Target};
use crate::rules::Level;
use crate::types::shape::has_shapeless;
use std::rc::Rc;

/// The share of the time after which nothing new is tried: what is being tried has to end too.
const EXTRACT_SHARE: f64 = 0.95;

/// So often sums become elements of running sums: some stand in others.
const MAX_RUNNING: usize = 4;

/// A definition as it is has so many parts at most, or is left alone.
const MAX_PARTS: usize = 1_000_000;
/// So many tables are made at most.
const MAX_TABLES: usize = 16;
/// So many terms are tried for tables.
const MAX_TARGETS: usize = 160;

/// A term that was tried.
pub struct Best {
    /// Let-free.
    pub flat: Known,
    /// The arena of the elaborated term.
    pub terms: Terms,
    /// The elaborated term.
    pub id: Id,
    /// What it costs, or counts as where it is worse at other sizes ([`Sweep::price`]).
    pub cost: f64,
}

/// Tries terms for one definition.
pub struct Trials<'a, 'c> {
    def: &'a Def,
    costing: &'a mut Costing<'c>,
    sweep: &'a mut Sweep<'c>,
    /// What the definition costs as it is.
    before: f64,
    model: Model,
    stop: &'a (dyn Fn(f64) -> bool + Sync),
    /// So many parts the definition as it is may have.
    pub most: usize,
    /// Whether sums may have no shape where they are over nothing, as the definition's own.
    shapeless: bool,
    /// How many nodes of terms may still be tried: a trial of a large term takes longer, and there are more.
    pub left: usize,
    /// What was tried, and what came of it.
    memo: Memo,
    /// The cheapest so far.
    pub best: Option<Best>,
    /// What was done, where that was asked for.
    pub journal: Option<Journal>,
}

impl<'a, 'c> Trials<'a, 'c> {
    /// For a definition that costs so much as it is. `stop` says whether a share of what may be spent is spent.
    pub fn new(
        def: &'a Def,
        before: f64,
        (costing, sweep): (&'a mut Costing<'c>, &'a mut Sweep<'c>),
        model: Model,
        stop: &'a (dyn Fn(f64) -> bool + Sync),
    ) -> Trials<'a, 'c> {
        let (most, left, shapeless, memo) = (MAX_PARTS, usize::MAX, false, Memo::default());
        Trials { def, costing, sweep, before, model, stop, most, shapeless, left, memo, best: None, journal: None }
    }

    /// What may be chosen, for as long as there is time.
    fn candidates<'g>(&self, g: &'g Graph, families: Vec<Vec<egg::Id>>, halt: &'g dyn Fn() -> bool) -> Candidates<'g> {
        let mut out = Candidates::new(g, self.model, families);
        out.halt = halt;
        out
    }

    fn stopped(&self) -> bool {
        (self.stop)(EXTRACT_SHARE)
    }

    /// Tries the cheapest tree.
    pub fn first(&mut self, g: &mut Graph, root: egg::Id) {
        self.reading(g, |trials, g| {
            let stop = trials.stop;
            let halt = || stop(1.0);
            let candidates = trials.candidates(g, vec![], &halt);
            let tree = Trees::new(&candidates).tree(&Default::default());
            trials.plan(g, root, &Plan::plain(tree), true);
        });
    }

    /// Works on an e-graph that does not change. The journal holds its trace for as long: it grows by what
    /// is extracted.
    fn reading<R>(&mut self, g: &mut Graph, work: impl FnOnce(&mut Self, &Graph) -> R) -> R {
        if let (Some(journal), Some(trace)) = (&mut self.journal, g.analysis.trace.take()) {
            journal.trace = trace;
        }
        let out = work(self, g);
        g.analysis.trace = self.journal.as_mut().map(|j| std::mem::take(&mut j.trace));
        out
    }

    /// Tries the extractions of an e-graph; whether no choice of one member a class is cheaper than
    /// the best that was seen.
    pub fn all(&mut self, g: &mut Graph, root: egg::Id, effort: Effort, trials: usize) -> bool {
        let families = if self.stopped() { vec![] } else { families(g) };
        self.reading(g, |all, g| all.plans(g, root, families, effort, trials))
    }

    fn plans(&mut self, g: &Graph, root: egg::Id, families: Vec<Vec<egg::Id>>, effort: Effort, trials: usize) -> bool {
        let stop = self.stop;
        let halt = || stop(1.0);
        let candidates = self.candidates(g, families, &halt);
        let trees = Trees::new(&candidates);
        let plain = Plan::plain(trees.tree(&Default::default()));
        let mut best = self.plan(g, root, &plain, true).map(|cost| (cost, plain));
        if self.stopped() {
            return false;
        }
        let dag = Plan::plain(Rc::new(candidates.dag(&|| self.stopped())));
        best = cheaper(best, self.plan(g, root, &dag, true).map(|cost| (cost, dag)));
        if let Some((cost, plan)) = best.take() {
            best = Some(self.keep(g, root, &trees, (cost, plan)));
        }
        let every = Plan::keep_all(&trees);
        if !candidates.families.is_empty()
            && let Some(cost) = self.plan(g, root, &every, true)
        {
            best = cheaper(best, Some(self.keep(g, root, &trees, (cost, every))));
        }
        let (found, proved) = self.exact(&candidates, root, effort);
        if let Some(choice) = found {
            let plan = Plan::plain(Rc::new(choice));
            best = cheaper(best, self.plan(g, root, &plan, true).map(|cost| (cost, plan)));
        }
        if let Some((cost, plan)) = best.filter(|_| !proved || !candidates.families.is_empty()) {
            self.change(g, root, &candidates, (cost, plan), trials);
        }
        proved
    }

    /// The exact search; a choice that is cheaper than all that was seen, and whether none is left.
    pub fn exact(&mut self, all: &Candidates<'_>, root: egg::Id, effort: Effort) -> (Option<Choice>, bool) {
        let (g, stop) = (all.graph(), self.stop);
        let known = self.best.as_ref().map(|b| b.cost);
        let mut price = |choice: &Choice| self.price(g, root, choice);
        let found = exact(all, root, effort, known, &mut price, &|| stop(EXTRACT_SHARE));
        (found.best.map(|(_, choice)| choice), found.proved)
    }

    /// The cost of a choice, just as it is: tensors that are copied element by element are copied.
    pub fn price(&mut self, g: &Graph, root: egg::Id, choice: &Choice) -> Option<f64> {
        self.plan(g, root, &Plan::plain(Rc::new(choice.clone())), false)
    }

    /// Keeps tensors one by one for as long as that helps.
    fn keep<'g>(
        &mut self,
        g: &Graph,
        root: egg::Id,
        trees: &'g Trees<'g>,
        (mut cost, mut plan): (f64, Plan<'g>),
    ) -> (f64, Plan<'g>) {
        for _ in 0..2 {
            let before = cost;
            for family in trees.all.families.iter().take(MAX_FAMILIES) {
                if self.left == 0 || self.stopped() {
                    return (cost, plan);
                }
                let with = plan.toggled(trees, family);
                match self.plan(g, root, &with, true) {
                    Some(new) if new < cost - 1e-9 => (cost, plan) = (new, with),
                    _ => {}
                }
            }
            if cost >= before {
                break;
            }
        }
        (cost, plan)
    }

    /// Changes single choices for as long as that helps.
    fn change(
        &mut self,
        g: &Graph,
        root: egg::Id,
        all: &Candidates<'_>,
        (mut cost, mut plan): (f64, Plan<'_>),
        mut trials: usize,
    ) {
        loop {
            let before = cost;
            for class in order(g.find(root), &plan.top) {
                for member in all.distinct(class, plan.top.get(&class)) {
                    let node = &all.nodes[&class][member];
                    if !extracted_kids(node).iter().all(|k| plan.top.contains_key(k)) {
                        continue;
                    }
                    if trials == 0 || self.left == 0 || self.stopped() {
                        return;
                    }
                    trials -= 1;
                    let old = Rc::make_mut(&mut plan.top).insert(class, node.clone());
                    match self.plan(g, root, &plan, true) {
                        Some(new) if new < cost - 1e-9 => cost = new,
                        _ => drop(old.map(|o| Rc::make_mut(&mut plan.top).insert(class, o))),
                    }
                }
            }
            if cost >= before {
                return;
            }
        }
    }

    /// Turns sums over what comes before or after into running sums, for as long as that helps.
    pub fn accumulate(&mut self, level: Level) {
        for _ in 0..MAX_RUNNING {
            let Some(best) = self.best.as_ref().filter(|_| self.left > 0 && !(self.stop)(EXTRACT_SHARE)) else {
                return;
            };
            let cost = best.cost;
            let Some(after) = accumulated(&best.flat, self.def, level) else { return };
            let between = self.journal.is_some().then(|| over_tensors(&best.flat, self.def, level));
            if self.term(after).is_none_or(|new| new > cost - 1e-9) {
                return;
            }
            if let Some(journal) = &mut self.journal {
                journal.starts.extend(between);
            }
        }
    }

    /// Turns what loops compute again and again into tables, for as long as that helps.
    pub fn tabulate(&mut self) {
        let Some(best) = &self.best else { return };
        let mut flat = best.flat.clone();
        let mut cost = best.cost;
        let mut tried: Vec<Target> = vec![];
        for _ in 0..MAX_TABLES {
            let mut improved = false;
            for target in tabulate::candidates(&mut flat) {
                // The published model has an index cost what a number does.
                let indices = self.model == Model::Analytic && target.is_of_indices(&flat.terms);
                if indices || tried.contains(&target) {
                    continue;
                }
                if tried.len() == MAX_TARGETS || self.left == 0 || self.stopped() {
                    return;
                }
                tried.push(target.clone());
                let with = tabulate::tabulated(&flat, &target);
                if let Some(new) = self.term(with.clone())
                    && new < cost - 1e-9
                {
                    (cost, flat, improved) = (new, with, true);
                    break;
                }
            }
            if !improved {
                return;
            }
        }
    }

    /// The cost of the term that a plan makes; with `copies`, a tensor that would be copied is taken
    /// as it is.
    fn plan(&mut self, g: &Graph, root: egg::Id, plan: &Plan<'_>, copies: bool) -> Option<f64> {
        let mut terms = Terms::default();
        let mut builder = Builder::new(g, plan, self.def.params.len());
        builder.copies = copies;
        let id = builder.term(&mut terms, root, 0)?;
        let total = builder.total;
        // In a loop that never runs all variables are alike, so a class may have a member whose variable
        // is bound at another type where the class stands. Such a choice makes no term.
        crate::types::verify::closed(&terms, id, &self.params()).ok()?;
        let before = self.best.as_ref().map(|b| b.cost);
        let cost = self.term(Known { terms, id, total });
        if let Some(journal) = self.journal.as_mut().filter(|_| self.best.as_ref().map(|b| b.cost) != before) {
            retraced(g, plan, &mut journal.trace, root);
        }
        cost
    }

    /// Whether a term makes a sum over nothing lose its shape. The first term is that of the definition as it is.
    fn loses_shape(&mut self, terms: &mut Terms, id: Id) -> bool {
        if self.best.is_none() {
            self.shapeless = has_shapeless(terms, id);
        }
        !self.shapeless && has_shapeless(terms, id)
    }

    fn params(&self) -> Vec<Ty> {
        self.def.params.iter().map(|p| p.ty).collect()
    }

    /// The cost of a let-free term after elaboration; the best one is kept. A term counts as often as it is tried, so
    /// that knowing it takes less time and changes nothing else.
    fn term(&mut self, flat: Known) -> Option<f64> {
        let Some(best) = self.best.as_ref().map(|b| b.cost) else { return self.elaborated(flat)?.cost };
        let fingerprint = Fingerprint::of(&flat);
        if let Some(known) = self.memo.known(fingerprint, best) {
            self.left = self.left.saturating_sub(known.parts);
            return known.cost;
        }
        let verdict = self.elaborated(flat)?;
        self.memo.keep(fingerprint, verdict);
        verdict.cost
    }

    /// What comes of a term; nothing where it has too many parts.
    fn elaborated(&mut self, flat: Known) -> Option<Verdict> {
        let mut terms = flat.terms.clone();
        let params = self.params();
        // The first term is that of the definition as it is. A later one may have many times its parts: what stands
        // in several loops counts in each.
        let most = if self.best.is_some() { self.left } else { self.most };
        let elaborated = elaborate_both(&mut terms, flat.id, &self.def.params, &flat.total, (self.model, most));
        let parts = elaborated.as_ref().map_or(most, |e| e.parts).max(flat.terms.len());
        self.left = self.left.saturating_sub(parts);
        let Elaborated { within, outside, .. } = elaborated?;
        let none = Some(Verdict { cost: None, parts });
        if crate::types::verify::closed(&terms, within, &params).is_err() {
            return none;
        }
        let least = self.best.as_ref().map_or(f64::INFINITY, |b| b.cost);
        let outside = outside.filter(|id| crate::types::verify::closed(&terms, *id, &params).is_ok());
        let (mut id, mut cost) = (within, f64::INFINITY);
        // What left arms may be cheaper at the sizes that were told alone.
        for each in [Some(within), outside].into_iter().flatten() {
            let mut own = self.costing.term(each, self.def, &terms);
            if own < least.min(cost) - 1e-9 {
                own = self.sweep.price(each, &terms, own, self.before);
            }
            if own < cost - 1e-9 {
                (id, cost) = (each, own);
            }
        }
        if self.best.is_none() || cost < least - 1e-9 {
            if self.loses_shape(&mut terms, id) {
                return none;
            }
            if let Some(journal) = &mut self.journal {
                let (flat, shared) = ((flat.terms.clone(), flat.id), (terms.clone(), id));
                journal.note(Candidate { flat, shared, cost });
            }
            self.best = Some(Best { flat, terms, id, cost });
        }
        Some(Verdict { cost: Some(cost), parts })
    }
}

fn cheaper<'a>(a: Option<(f64, Plan<'a>)>, b: Option<(f64, Plan<'a>)>) -> Option<(f64, Plan<'a>)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}
