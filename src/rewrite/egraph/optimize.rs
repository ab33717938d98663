//! One definition through the e-graph: in, saturate, extract, elaborate; the best that was seen.

use super::Graph;
use super::elaborate::elaborate;
use super::extract::{Builder, Candidates, Choice, MAX_FAMILIES, Plan, extracted_kids, families};
use super::language::{ENode, Label};
use super::pattern::Compiled;
use super::retrace::retraced;
use super::saturate::{Limits, Report, extents, graph, saturate};
use super::trace::Trace;
use crate::cost::{Costing, Model, Shape};
use crate::ir::{Def, Head, Id, Terms, Ty, deep};
use crate::rewrite::inline::{Flat, bound_extents, site};
use crate::rewrite::tabulate::{self, Known, Target};
use crate::rules::Level;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How to search.
pub struct Settings<'a> {
    /// The rules.
    pub rules: &'a [Compiled<'a>],
    /// What the rules keep.
    pub level: Level,
    /// The cost model.
    pub model: Model,
    /// Estimated sizes by name.
    pub sizes: &'a [(String, u64)],
    /// Limits of each round.
    pub limits: Limits,
    /// Makes a term over the definition's parameters let-free.
    pub flatten: &'a (dyn Fn(&Terms, Id) -> Option<Flat> + Sync),
    /// How often the best term so far starts a new e-graph.
    pub restarts: usize,
    /// How many changed choices are tried one by one after extraction.
    pub trials: usize,
    /// Whether to keep a journal.
    pub journal: bool,
}

/// What a search did, for a derivation of its result.
#[derive(Default)]
pub struct Journal {
    /// All e-graphs' terms and equations.
    pub trace: Trace,
    /// The let-free terms that e-graphs started from, in their arenas.
    pub starts: Vec<(Terms, Id)>,
    /// The best results, one after the other.
    pub bests: Vec<Candidate>,
}

/// A result.
#[derive(Clone)]
pub struct Candidate {
    /// Let-free, in its arena.
    pub flat: (Terms, Id),
    /// With lets that the search thinks safe, in its arena.
    pub shared: (Terms, Id),
    /// Its cost.
    pub cost: f64,
}

/// So many results are remembered at most.
const MAX_BESTS: usize = 24;

/// The best term found.
pub struct Found {
    /// Its arena.
    pub terms: Terms,
    /// The term, over the definition's parameters.
    pub id: Id,
    /// Its cost.
    pub cost: f64,
    /// Rules that fired, over all rounds.
    pub reports: Vec<Report>,
    /// What was done, where that was asked for.
    pub journal: Option<Journal>,
}

/// Searches from a let-free term. The result is at most as costly as `elaborate` makes the start.
pub fn optimize(def: &Def, start: Flat, costing: &mut Costing<'_>, settings: &Settings<'_>) -> Option<Found> {
    let journal = settings.journal.then(Journal::default);
    let mut search = Search { def, costing, settings, best: None, journal };
    let mut flat = start;
    let mut reports = vec![];
    for _ in 0..settings.restarts.max(1) {
        let mut g = graph(settings.level);
        if let Some(journal) = &mut search.journal {
            journal.starts.push((flat.terms.clone(), flat.id));
            g.analysis.trace = Some(std::mem::take(&mut journal.trace));
        }
        let root = Import::new(&mut g, def, settings, &flat).run();
        g.rebuild();
        let before = search.best.as_ref().map(|b| b.cost);
        search.try_all(&mut g, root, false);
        reports.push(saturate(&mut g, settings.rules, &settings.limits));
        if g.analysis.contradiction.is_some() {
            break;
        }
        search.try_all(&mut g, root, true);
        if let Some(journal) = &mut search.journal {
            journal.trace = g.analysis.trace.take().unwrap_or_default();
        }
        let best = search.best.as_ref()?;
        let settled = before.is_some_and(|b| best.cost > b - 1e-6);
        if settled || reports.last().is_some_and(|r| r.saturated) && reports.len() > 1 {
            break;
        }
        flat = (settings.flatten)(&best.terms, best.id)?;
    }
    search.tabulate();
    let (best, journal) = (search.best?, search.journal);
    Some(Found { terms: best.terms, id: best.id, cost: best.cost, reports, journal })
}

/// All choices are tried where they are no more than this.
const MAX_EXACT: usize = 500;

/// So many tables are made at most.
const MAX_TABLES: usize = 16;
/// So many terms are tried for tables.
const MAX_TARGETS: usize = 160;

struct Best {
    flat: Known,
    terms: Terms,
    id: Id,
    cost: f64,
}

struct Search<'a, 'b, 'c> {
    def: &'a Def,
    costing: &'a mut Costing<'c>,
    settings: &'a Settings<'b>,
    best: Option<Best>,
    journal: Option<Journal>,
}

impl Search<'_, '_, '_> {
    /// Tries the extractions of an e-graph; with `refine`, also choices near the best one.
    fn try_all(&mut self, g: &mut Graph, root: egg::Id, refine: bool) {
        let families = if refine { families(g) } else { vec![] };
        // The trace grows while the e-graph is only read.
        let trace = g.analysis.trace.take();
        if let (Some(journal), Some(trace)) = (&mut self.journal, trace) {
            journal.trace = trace;
        }
        self.try_plans(g, root, families, refine);
        g.analysis.trace = self.journal.as_mut().map(|j| std::mem::take(&mut j.trace));
    }

    fn try_plans(&mut self, g: &Graph, root: egg::Id, families: Vec<Vec<egg::Id>>, refine: bool) {
        let candidates = Candidates::new(g, self.settings.model, families);
        let mut plans = vec![Plan::plain(candidates.tree(&Default::default()))];
        if refine {
            plans.push(Plan::plain(Rc::new(candidates.dag())));
        }
        let mut best: Option<(f64, Plan)> = None;
        for plan in plans {
            if let Some(cost) = self.try_plan(g, root, &plan)
                && best.as_ref().is_none_or(|(c, _)| cost < *c)
            {
                best = Some((cost, plan));
            }
        }
        if refine && self.exact(g, root, &candidates) {
            return;
        }
        if let Some((cost, plan)) = best.filter(|_| refine) {
            let mut found = self.keep(g, root, &candidates, cost, plan);
            let all = Plan::keep_all(&candidates);
            if let Some(cost) = self.try_plan(g, root, &all) {
                let other = self.keep(g, root, &candidates, cost, all);
                found = if other.0 < found.0 { other } else { found };
            }
            self.change(g, root, &candidates, found.0, found.1);
        }
    }

    /// Tries every choice, where they are few and no tensor could be kept; whether it did.
    fn exact(&mut self, g: &Graph, root: egg::Id, all: &Candidates<'_>) -> bool {
        let (mut seen, mut todo) = (std::collections::BTreeSet::new(), vec![g.find(root)]);
        let mut choices = 1usize;
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                choices = choices.saturating_mul(all.nodes[&id].len().max(1));
                todo.extend(all.nodes[&id].iter().flat_map(|n| extracted_kids(n).iter().copied()));
            }
        }
        if choices > MAX_EXACT || !all.families.is_empty() {
            return false;
        }
        self.enumerate(g, root, all, &mut Choice::default(), vec![g.find(root)]);
        true
    }

    /// Tries every completion of a choice; `open` are the classes that it still needs.
    fn enumerate(
        &mut self,
        g: &Graph,
        root: egg::Id,
        all: &Candidates<'_>,
        choice: &mut Choice,
        mut open: Vec<egg::Id>,
    ) {
        while open.last().is_some_and(|id| choice.contains_key(id)) {
            open.pop();
        }
        let Some(class) = open.pop() else {
            self.try_plan(g, root, &Plan::plain(Rc::new(choice.clone())));
            return;
        };
        for node in &all.nodes[&class] {
            choice.insert(class, node.clone());
            let next = open.iter().chain(extracted_kids(node)).copied().collect();
            deep(|| self.enumerate(g, root, all, choice, next));
        }
        choice.remove(&class);
    }

    /// Keeps tensors one by one for as long as that helps.
    fn keep(&mut self, g: &Graph, root: egg::Id, all: &Candidates<'_>, mut cost: f64, mut plan: Plan) -> (f64, Plan) {
        for _ in 0..2 {
            let before = cost;
            for family in all.families.iter().take(MAX_FAMILIES) {
                let with = plan.toggled(all, family);
                match self.try_plan(g, root, &with) {
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
    fn change(&mut self, g: &Graph, root: egg::Id, all: &Candidates<'_>, mut cost: f64, mut plan: Plan) {
        let mut trials = self.settings.trials;
        loop {
            let before = cost;
            for class in reached(g, root, &plan.top) {
                for node in &all.nodes[&class] {
                    let possible = extracted_kids(node).iter().all(|k| plan.top.contains_key(k));
                    if plan.top.get(&class) == Some(node) || !possible {
                        continue;
                    }
                    if trials == 0 {
                        return;
                    }
                    trials -= 1;
                    let old = Rc::make_mut(&mut plan.top).insert(class, node.clone());
                    match self.try_plan(g, root, &plan) {
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

    /// Turns what loops compute again and again into tables, for as long as that helps.
    fn tabulate(&mut self) {
        let Some(best) = &self.best else { return };
        let mut flat = best.flat.clone();
        let mut cost = best.cost;
        let mut tried: Vec<Target> = vec![];
        for _ in 0..MAX_TABLES {
            let mut improved = false;
            for target in tabulate::candidates(&mut flat) {
                if tried.contains(&target) {
                    continue;
                }
                if tried.len() == MAX_TARGETS {
                    return;
                }
                tried.push(target.clone());
                let with = tabulate::tabulated(&flat, &target);
                if let Some(new) = self.try_term(with.clone())
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

    /// The cost of the term that a plan makes.
    fn try_plan(&mut self, g: &Graph, root: egg::Id, plan: &Plan) -> Option<f64> {
        let mut terms = Terms::default();
        let mut builder = Builder::new(g, plan, self.def.params.len());
        let id = builder.term(&mut terms, root, 0)?;
        let total = builder.total;
        let before = self.best.as_ref().map(|b| b.cost);
        let cost = self.try_term(Known { terms, id, total });
        if let Some(journal) = self.journal.as_mut().filter(|_| self.best.as_ref().map(|b| b.cost) != before) {
            retraced(g, plan, &mut journal.trace, root);
        }
        cost
    }

    /// The cost of a let-free term after elaboration; the best one is kept.
    fn try_term(&mut self, flat: Known) -> Option<f64> {
        let mut terms = flat.terms.clone();
        let params: Vec<Ty> = self.def.params.iter().map(|p| p.ty).collect();
        let model = self.settings.model;
        let costs = |head: Head, tys: &[Ty], ty: Ty| {
            let shape = Shape { ty, kids: tys, elements: 1.0, inner: 1.0, trips: 2.0 };
            model.own(head, &shape) > model.binding()
        };
        let id = elaborate(&mut terms, flat.id, &params, &flat.total, &costs);
        crate::types::verify::closed(&terms, id, &params).ok()?;
        let cost = self.costing.term(id, self.def, &terms);
        if self.best.as_ref().is_none_or(|b| cost < b.cost - 1e-9) {
            if let Some(journal) = &mut self.journal {
                if journal.bests.len() == MAX_BESTS {
                    journal.bests.remove(1);
                }
                let (flat, shared) = ((flat.terms.clone(), flat.id), (terms.clone(), id));
                journal.bests.push(Candidate { flat, shared, cost });
            }
            self.best = Some(Best { flat, terms, id, cost });
        }
        Some(cost)
    }
}

/// The classes that a choice needs, parents first.
fn reached(g: &Graph, root: egg::Id, choice: &Choice) -> Vec<egg::Id> {
    let mut seen = rustc_hash::FxHashSet::default();
    let (mut order, mut todo) = (vec![], vec![g.find(root)]);
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            order.push(id);
            todo.extend(choice.get(&id).map(|n| extracted_kids(n).to_vec()).unwrap_or_default());
        }
    }
    order
}

/// Let-free terms become classes.
struct Import<'a> {
    g: &'a mut Graph,
    flat: &'a Flat,
    terms: Terms,
    params: Vec<egg::Id>,
    /// The variables in scope: the classes and the terms of their extents.
    scope: Vec<egg::Id>,
    extents: Vec<Option<Id>>,
    memo: FxHashMap<(Id, usize, usize), egg::Id>,
    frames: usize,
    strict: Vec<egg::Id>,
}

impl<'a> Import<'a> {
    fn new(g: &'a mut Graph, def: &Def, settings: &Settings<'_>, flat: &'a Flat) -> Import<'a> {
        let mut named: FxHashMap<&str, egg::Id> = FxHashMap::default();
        let mut params = vec![];
        for (k, p) in def.params.iter().enumerate() {
            let id = g.add(ENode::leaf(Label::Param(k as u32, p.ty)));
            params.push(id);
            let mut dims = vec![];
            for axis in 0..p.ty.axes() {
                let size = g.add(ENode::new(Head::Size(axis), [id]));
                let name = p.sizes.get(axis).map(String::as_str);
                if let Some(known) = name.and_then(|n| settings.sizes.iter().find(|(m, _)| m == n)) {
                    let mut fact = g[size].data.clone();
                    fact.estimate = known.1 as f64;
                    g.set_analysis_data(size, fact);
                }
                if let Some(first) = name.and_then(|n| named.get(n)) {
                    g.union(*first, size);
                }
                name.map(|n| named.entry(n).or_insert(size));
                dims.push(Some(size));
            }
            g.rebuild();
            let mut fact = g[id].data.clone();
            fact.dims = dims;
            g.set_analysis_data(id, fact);
        }
        g.rebuild();
        let (scope, extents, memo, strict) = Default::default();
        Import { g, flat, terms: flat.terms.clone(), params, scope, extents, memo, frames: 0, strict }
    }

    fn run(mut self) -> egg::Id {
        let root = self.class(self.flat.id, 0);
        for id in std::mem::take(&mut self.strict) {
            let mut fact = self.g[id].data.clone();
            (fact.strict, fact.total) = (true, true);
            self.g.set_analysis_data(id, fact);
        }
        root
    }

    /// The class of a term in the present scope; `frame` tells binders apart.
    fn class(&mut self, id: Id, frame: usize) -> egg::Id {
        let (head, depth) = (self.terms.head(id), self.scope.len());
        if let Head::Var(i, ty) = head {
            return match depth.checked_sub(1 + i as usize) {
                Some(level) => self.g.add(ENode::new(Head::Var(i, ty), [self.scope[level]])),
                None => self.params[self.params.len() - 1 - (i as usize - depth)],
            };
        }
        let frame_key = if self.terms.free(id).below(depth) { frame } else { 0 };
        let key = (id, frame_key, depth);
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        let kids = self.terms.kids(id).to_vec();
        let mut ids = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let mut inner = frame;
            if head.binds(k, kids.len()) > 0 {
                self.scope.extend(extents(self.g, head, &ids));
                self.extents.extend(bound_extents(&mut self.terms, head, &kids));
                self.frames += 1;
                inner = self.frames;
            }
            ids.push(deep(|| self.class(*kid, inner)));
            self.scope.truncate(depth);
            self.extents.truncate(depth);
        }
        let out = self.g.add(ENode::new(head, ids));
        if site(&mut self.terms, id, &self.extents).is_some_and(|s| self.flat.strict.contains(&s)) {
            self.strict.push(out);
        }
        self.memo.insert(key, out);
        out
    }
}
