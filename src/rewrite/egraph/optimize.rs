//! One definition through the e-graph: in, saturate, extract, elaborate; the best that was seen.

use super::Graph;
use super::context::Context;
use super::exact::Effort;
use super::fire::extents;
use super::fresh::{Part, below, count_below};
use super::journal::Journal;
use super::language::ENode;
use super::names::called_like;
use super::params::parameters;
use super::pattern::Compiled;
use super::saturate::{Limits, Report, graph, saturate};
use super::trial::{Best, Trials};
use crate::cost::{Costing, Model, Sweep};
use crate::ir::{Def, Head, Id, Terms, Ty, deep};
use crate::rewrite::inline::{Flat, bound_extents, site};
use crate::rules::Level;
use rustc_hash::FxHashMap;

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
    /// What is known of the parameters.
    pub context: &'a Context,
    /// Makes a term over the definition's parameters let-free.
    pub flatten: &'a (dyn Fn(&Terms, Id) -> Option<Flat> + Sync),
    /// How often a way starts a new e-graph from its best term so far.
    pub restarts: usize,
    /// How many changed choices are tried one by one after extraction.
    pub trials: usize,
    /// Whether to keep a journal.
    pub journal: bool,
    /// How far the exact extraction goes.
    pub effort: Effort,
    /// How far it goes in the end, from the best term, where that is asked for.
    pub last: Option<Effort>,
    /// Whether a share of what may be spent is spent: then the best so far is the result.
    pub stop: &'a (dyn Fn(f64) -> bool + Sync),
}

/// The share of the time after which no more rules are applied: the rest is for extraction.
pub const SEARCH_SHARE: f64 = 0.7;

/// A way to search: how large e-graphs may become, and what is looked at.
struct Way {
    /// The nodes of an e-graph at most, or so many for each at the start, on each step; the next step is taken
    /// where nothing better is found. On the last one the term so far is as good as it gets.
    steps: &'static [(usize, usize)],
    /// The first e-graph may be as large as is allowed at all.
    large: bool,
    /// The share of what may be looked at.
    share: f64,
    /// The share of that which the first e-graph leaves for the others.
    left: f64,
    /// How many nodes of terms extraction may try.
    tried: usize,
    /// So many single choices are changed at most, on the last step alone; else as many as is allowed, on each step.
    last_changes: Option<usize>,
}

/// Many small ones.
const SMALL_FIRST: Way = Way {
    steps: &[(300, 5), (1_000, 10), (3_000, 25)],
    large: false,
    share: 0.5,
    left: 0.0,
    tried: 100_000,
    last_changes: None,
};
/// A large one, and what lies around its best term.
const LARGE_FIRST: Way =
    Way { steps: &[(3_000, 40)], large: true, share: 0.7, left: 0.25, tried: 100_000, last_changes: None };

/// The regions of a large body: there are many. What gains among their single choices is among the first.
const PART_OF_MANY: Way =
    Way { steps: &[(300, 5), (1_000, 10)], large: false, share: 0.2, left: 0.0, tried: 50_000, last_changes: Some(64) };
/// The same of a crowd: the larger e-graphs take most of the time, and find little.
const PART_OF_CROWD: Way = Way { steps: &[(300, 5)], last_changes: Some(16), ..PART_OF_MANY };
/// More regions than this that differ are a crowd.
pub const CROWD: usize = 64;
/// Regions that are searched together try so many nodes of terms, and each of them so many at least.
const TRIED_OF_MANY: usize = 1_000_000;
const LEAST_TRIED: usize = 8_000;
/// The parts of the best term.
const ONE_PART: Way =
    Way { steps: &[(600, 0)], large: false, share: 0.3, left: 0.0, tried: 50_000, last_changes: None };
/// So many nodes of terms with tables may be tried.
const TABLES: usize = 200_000;
/// So many parts are rewritten at most.
const MOST_PARTS: usize = 24;
/// A part has so many nodes at least.
const LEAST_PART: usize = 6;

/// The e-graphs of a way look at a share of so many classes and matches at most, and so many for each node.
const LOOK: usize = 500_000;
const LOOK_EACH: usize = 6_000;
/// All e-graphs of a term with fewer nodes than `FEW` look at so many at most: that takes less than half a second.
const LOOK_FEW: usize = 800_000;
const FEW: usize = 50;

/// The best term found.
pub struct Found {
    /// Its arena.
    pub terms: Terms,
    /// The term, over the definition's parameters.
    pub id: Id,
    /// Its cost, or what it counts as where it is worse at other sizes ([`Sweep::price`]).
    pub cost: f64,
    /// Rules that fired, over all rounds.
    pub reports: Vec<Report>,
    /// What each way did, where that was asked for, that of the best term first.
    pub journals: Vec<Journal>,
    /// Whether no choice of one member a class of the last e-graph costs less.
    pub proved: bool,
}

impl Found {
    /// The same term once more, without its journals.
    pub fn again(&self) -> Found {
        let Found { id, cost, proved, .. } = *self;
        Found { terms: self.terms.clone(), id, cost, reports: self.reports.clone(), journals: vec![], proved }
    }
}

/// Searches from a let-free term. The result is at most as costly as `elaborate` makes the start.
///
/// Two ways are tried, and then parts of the better term. One way takes small e-graphs, each from the best term so
/// far, and larger ones where the small find no more: within a few hundred nodes each rule gets its turn, while a
/// large e-graph is full of reordered sums before the factor that they share is found. The other way starts with
/// the largest e-graph that may be, where what needs many steps that gain nothing is found. Each way keeps a
/// journal of its own: what one proves needs nothing of the other.
pub fn optimize<'c>(
    def: &Def,
    start: Flat,
    costs: (&mut Costing<'c>, &mut Sweep<'c>),
    settings: &Settings<'_>,
) -> Option<Found> {
    let before = costs.0.def(def).unwrap_or(f64::INFINITY);
    let search = Trials::new(def, before, costs, settings.model, settings.stop);
    let looks = if start.terms.reachable(start.id).len() < FEW { LOOK_FEW } else { usize::MAX };
    let mut walk = Walk { def, settings, effort: settings.effort, looks, search, reports: vec![], proved: false };
    let whole = walk.run(start.clone(), &SMALL_FIRST);
    let mut ends = vec![walk.end()];
    if !whole && !(settings.stop)(SEARCH_SHARE) {
        walk.run(start, &LARGE_FIRST);
        ends.push(walk.end());
    }
    // The first of equals: it took the shorter steps.
    ends.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    let mut ends = ends.into_iter();
    let End { best, journal } = ends.next()?;
    (walk.search.best, walk.search.journal) = (best, journal);
    walk.each_part();
    if let Some(effort) = settings.last {
        walk.effort = effort;
        walk.on(&SMALL_FIRST);
    }
    let Walk { mut search, reports, proved, .. } = walk;
    search.left = TABLES;
    search.accumulate(settings.level);
    search.tabulate();
    let journals = search.journal.take().into_iter().chain(ends.filter_map(|e| e.journal)).collect();
    let best = search.best?;
    Some(Found { terms: best.terms, id: best.id, cost: best.cost, reports, journals, proved })
}

/// A region has so many parts at most: what stands in several loops counts in each.
const PARTS_OF_REGION: usize = 20_000;
/// So many times what a region costs it may cost once its lets are placed anew.
const PLACED: f64 = 1.02;

/// Whether a region that costs so much with its lets costs no more once it was let-free, and its lets are placed anew:
/// what may fail leaves no loop, and a tensor that does not stays in all that read it.
pub fn survives<'c>(
    def: &Def,
    before: f64,
    start: &Flat,
    costs: (&mut Costing<'c>, &mut Sweep<'c>),
    settings: &Settings<'_>,
) -> bool {
    let mut search = Trials::new(def, before, costs, settings.model, settings.stop);
    search.most = PARTS_OF_REGION;
    let (mut g, root) = imported(def, settings, start, None);
    search.first(&mut g, root);
    search.best.is_some_and(|best| best.cost <= before * PLACED + 1e-9)
}

/// Searches a region that costs so much as it is, by small e-graphs alone. It is one of `many` that are searched.
pub fn region<'c>(
    def: &Def,
    (before, many): (f64, usize),
    start: &Flat,
    costs: (&mut Costing<'c>, &mut Sweep<'c>),
    settings: &Settings<'_>,
) -> Option<Found> {
    let search = Trials::new(def, before, costs, settings.model, settings.stop);
    let (reports, proved, looks) = (vec![], false, usize::MAX);
    let mut walk = Walk { def, settings, effort: settings.effort, looks, search, reports, proved };
    let way = if many > CROWD { PART_OF_CROWD } else { PART_OF_MANY };
    let tried = (TRIED_OF_MANY / many.max(1)).clamp(LEAST_TRIED, way.tried);
    walk.run(start.clone(), &Way { tried, ..way });
    let Walk { mut search, reports, proved, .. } = walk;
    search.accumulate(settings.level);
    let journals = search.journal.take().into_iter().collect();
    let best = search.best?;
    Some(Found { terms: best.terms, id: best.id, cost: best.cost, reports, journals, proved })
}

/// Where a way ended.
struct End {
    best: Option<Best>,
    journal: Option<Journal>,
}

impl End {
    fn cost(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |b| b.cost)
    }
}

/// One e-graph after the other.
struct Walk<'a, 's, 'c> {
    def: &'a Def,
    settings: &'a Settings<'s>,
    /// How far the exact extraction goes.
    effort: Effort,
    /// How many classes and matches all e-graphs may look at together.
    looks: usize,
    search: Trials<'a, 'c>,
    reports: Vec<Report>,
    proved: bool,
}

/// What an e-graph came to.
struct Seen {
    /// Whether no rule made anything new in it.
    saturated: bool,
    /// Whether nothing in it was cheaper than the best before.
    settled: bool,
}

impl Walk<'_, '_, '_> {
    /// Whether the first e-graph already had all that the rules make of the start.
    fn run(&mut self, start: Flat, way: &Way) -> bool {
        let first = self.reports.len();
        self.search.journal = self.settings.journal.then(Journal::default);
        self.steps(start, way);
        self.reports.get(first).is_some_and(|r| r.saturated)
    }

    /// Goes a way from the best term.
    fn on(&mut self, way: &Way) {
        if let Some(flat) = self.flat() {
            self.steps(flat, way);
        }
    }

    fn steps(&mut self, start: Flat, way: &Way) {
        let (mut flat, mut step, first) = (start, 0, self.reports.len());
        self.search.left = way.tried;
        for _ in 0..self.settings.restarts.max(1) {
            let Some(Seen { saturated, settled }) = self.look(&flat, way, first, step, None) else { break };
            let only = self.reports.len() == first + 1;
            let last = step + 1 == way.steps.len() && !(way.large && only);
            if saturated && !only || settled && last || self.spent() {
                break;
            }
            step = (step + usize::from(settled)).min(way.steps.len() - 1);
            let Some(next) = self.flat() else { break };
            flat = next;
        }
    }

    /// Rewrites parts of the best term alone, the greatest first: within a part there is room for what a large
    /// e-graph has no room for.
    fn each_part(&mut self) {
        let (first, mut part) = (self.reports.len(), 0);
        self.search.left = ONE_PART.tried;
        let Some(mut flat) = self.flat() else { return };
        for _ in 0..MOST_PARTS {
            let Some(seen) = self.look(&flat, &ONE_PART, first, 0, Some(part)) else { break };
            if self.spent() {
                break;
            }
            part += 1;
            if !seen.settled {
                let Some(next) = self.flat() else { break };
                (flat, part) = (next, 0);
            }
        }
    }

    /// Saturates an e-graph of a term and extracts; with the number of a part, rules are looked for in that part
    /// only. None where there is no such part, or where the e-graph contradicts itself. The reports from `first`
    /// on are those of the way.
    fn look(&mut self, flat: &Flat, way: &Way, first: usize, step: usize, part: Option<usize>) -> Option<Seen> {
        let settings = self.settings;
        let (mut g, root) = imported(self.def, settings, flat, self.search.journal.as_mut());
        let alone = part.map(|k| parts(&g, root).get(k).map(|class| Part::below(&g, *class)));
        let missing = alone.as_ref().is_some_and(Option::is_none);
        let (mut seen, start) = (None, g.total_size());
        if !missing {
            let mut limits = way.limits(&settings.limits, start, &self.reports[first..], step);
            let looked: usize = self.reports.iter().map(|r| r.looked).sum();
            limits.looked = limits.looked.min(self.looks.saturating_sub(looked));
            if part.is_some() {
                limits.nodes = settings.limits.nodes.min(limits.nodes + start);
            }
            self.search.first(&mut g, root);
            let before = self.search.best.as_ref().map(|b| b.cost);
            let halt = || (settings.stop)(SEARCH_SHARE);
            let report = saturate(&mut g, settings.rules, &limits, alone.flatten().as_ref(), &halt);
            let saturated = report.saturated;
            self.reports.push(report);
            if g.analysis.contradiction.is_none() {
                let trials = match way.last_changes {
                    Some(_) if step + 1 < way.steps.len() => 0,
                    most => most.unwrap_or(usize::MAX).min(settings.trials),
                };
                let proved = self.search.all(&mut g, root, self.effort, trials);
                self.proved = if part.is_some() { self.proved } else { proved };
                let after = self.search.best.as_ref().map(|b| b.cost);
                let settled = before.zip(after).is_some_and(|(before, after)| after > before - 1e-6);
                seen = Some(Seen { saturated, settled });
            }
        }
        // The trace goes from one e-graph to the next, whatever came of this one.
        if let Some(journal) = &mut self.search.journal {
            journal.trace = g.analysis.trace.take().unwrap_or_default();
        }
        seen
    }

    /// The best term without lets.
    fn flat(&self) -> Option<Flat> {
        let best = self.search.best.as_ref()?;
        (self.settings.flatten)(&best.terms, best.id)
    }

    /// Whether nothing more is to be tried.
    fn spent(&self) -> bool {
        self.search.left == 0 || (self.settings.stop)(SEARCH_SHARE)
    }

    /// What a way came to; the next one knows nothing of it.
    fn end(&mut self) -> End {
        End { best: self.search.best.take(), journal: self.search.journal.take() }
    }
}

/// The classes of a term that are rewritten alone, the greatest first: no small ones, and none that is nearly the
/// whole.
fn parts(g: &Graph, root: egg::Id) -> Vec<egg::Id> {
    let whole = g.number_of_classes();
    let all = below(g, root);
    let mut all: Vec<(usize, egg::Id)> = count_below(g, &all).into_iter().zip(all).collect();
    all.retain(|(size, _)| *size >= LEAST_PART && size * 3 <= whole * 2);
    all.sort_by_key(|(size, id)| (std::cmp::Reverse(*size), *id));
    all.into_iter().map(|(_, id)| id).collect()
}

impl Way {
    /// The limits of the next e-graph, which starts with so many nodes.
    fn limits(&self, all: &Limits, nodes: usize, before: &[Report], step: usize) -> Limits {
        let mut out = *all;
        let first = before.is_empty();
        if !(first && self.large) {
            let (least, each) = self.steps[step];
            out.nodes = out.nodes.min(least.max(each * nodes));
        }
        let most = (self.share * (LOOK + LOOK_EACH * nodes) as f64) as usize;
        let looked: usize = before.iter().map(|r| r.looked).sum();
        let left = if first { most - (self.left * most as f64) as usize } else { most.saturating_sub(looked) };
        out.looked = out.looked.min(left);
        out
    }
}

/// An e-graph of a let-free term, and the term's class.
pub fn imported(def: &Def, settings: &Settings<'_>, flat: &Flat, journal: Option<&mut Journal>) -> (Graph, egg::Id) {
    let mut g = graph(settings.level);
    if let Some(journal) = journal {
        journal.starts.push((flat.terms.clone(), flat.id));
        g.analysis.trace = Some(std::mem::take(&mut journal.trace));
    }
    let root = Import::new(&mut g, def, settings, flat).run();
    g.rebuild();
    (g, root)
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
        let names = |(k, ty): (usize, Ty)| (ty, (0..ty.axes()).map(|axis| def.params[k].size(axis)).collect());
        let like = def.params.iter().map(|p| p.ty).enumerate().map(names);
        settings.context.announce(g);
        let params = parameters(g, like, settings.sizes);
        settings.context.tell(g, &params);
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
        let body = ids.last().copied();
        let node = ENode::new(head, ids);
        let out = self.g.add(node);
        called_like(self.g, out, body, &self.terms, id);
        if site(&mut self.terms, id, &self.extents).is_some_and(|s| self.flat.strict.contains(&s)) {
            self.strict.push(out);
        }
        self.memo.insert(key, out);
        out
    }
}
