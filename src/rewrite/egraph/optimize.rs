//! One definition through the e-graph: in, saturate, extract, elaborate; the best that was seen.

use super::Graph;
use super::exact::Effort;
use super::fire::extents;
use super::journal::Journal;
use super::language::ENode;
use super::names::called_like;
use super::params::parameters;
use super::pattern::Compiled;
use super::saturate::{Limits, Report, graph, saturate};
use super::trial::Trials;
use crate::cost::{Costing, Model};
use crate::ir::{Def, Head, Id, Terms, deep};
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
    /// Makes a term over the definition's parameters let-free.
    pub flatten: &'a (dyn Fn(&Terms, Id) -> Option<Flat> + Sync),
    /// How often the best term so far starts a new e-graph.
    pub restarts: usize,
    /// How many changed choices are tried one by one after extraction.
    pub trials: usize,
    /// Whether to keep a journal.
    pub journal: bool,
    /// How far the exact extraction goes.
    pub effort: Effort,
    /// Whether a share of what may be spent is spent: then the best so far is the result.
    pub stop: &'a (dyn Fn(f64) -> bool + Sync),
}

/// The share of the time after which no more rules are applied: the rest is for extraction.
pub const SEARCH_SHARE: f64 = 0.7;

/// An e-graph that starts from the best term so far has so many nodes at most, or so many for each at the start.
const AGAIN: usize = 3_000;
const AGAIN_EACH: usize = 40;
/// All e-graphs of a definition look at so many classes and matches at most, and so many for each node.
const LOOK: usize = 500_000;
const LOOK_EACH: usize = 6_000;

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
    /// Whether no choice of one member a class of the last e-graph costs less.
    pub proved: bool,
}

/// Searches from a let-free term. The result is at most as costly as `elaborate` makes the start.
pub fn optimize(def: &Def, start: Flat, costing: &mut Costing<'_>, settings: &Settings<'_>) -> Option<Found> {
    let mut search = Trials::new(def, costing, settings.model, settings.stop);
    search.journal = settings.journal.then(Journal::default);
    let mut flat = start;
    let mut reports: Vec<Report> = vec![];
    let (mut proved, mut room) = (false, true);
    for _ in 0..settings.restarts.max(1) {
        let (mut g, root) = imported(def, settings, &flat, search.journal.as_mut());
        let limits = limits(&settings.limits, g.total_size(), &reports, room);
        search.first(&mut g, root);
        let before = search.best.as_ref().map(|b| b.cost);
        reports.push(saturate(&mut g, settings.rules, &limits, &|| (settings.stop)(SEARCH_SHARE)));
        if g.analysis.contradiction.is_some() {
            break;
        }
        proved = search.all(&mut g, root, settings.effort, settings.trials);
        if let Some(journal) = &mut search.journal {
            journal.trace = g.analysis.trace.take().unwrap_or_default();
        }
        let best = search.best.as_ref()?;
        let settled = before.is_some_and(|b| best.cost > b - 1e-6);
        let saturated = reports.last().is_some_and(|r| r.saturated) && reports.len() > 1;
        let whole = limits.nodes >= settings.limits.nodes;
        if settled && (room || whole) || saturated || (settings.stop)(SEARCH_SHARE) {
            break;
        }
        // Where nothing is found around the best term, a last look has room again.
        room = settled;
        flat = (settings.flatten)(&best.terms, best.id)?;
    }
    search.tabulate();
    let (best, journal) = (search.best?, search.journal);
    Some(Found { terms: best.terms, id: best.id, cost: best.cost, reports, journal, proved })
}

/// The limits of the next e-graph, which starts with so many nodes. The first one has room; one that starts from a
/// term that is good already only looks around it. All together look at so much at most that it takes no longer
/// than the size of the definition is worth, and the first leaves some of that for the others.
fn limits(all: &Limits, nodes: usize, before: &[Report], room: bool) -> Limits {
    let mut out = *all;
    if !room {
        out.nodes = out.nodes.min(AGAIN.max(AGAIN_EACH * nodes));
    }
    let most = LOOK + LOOK_EACH * nodes;
    let looked: usize = before.iter().map(|r| r.looked).sum();
    let left = if before.is_empty() { most - most / 4 } else { most.saturating_sub(looked) };
    out.looked = out.looked.min(left);
    out
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
        let like = def.params.iter().map(|p| (p.ty, p.sizes.as_slice()));
        let params = parameters(g, like, settings.sizes);
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
        let out = self.g.add(ENode::new(head, ids));
        called_like(self.g, out, body, &self.terms, id);
        if site(&mut self.terms, id, &self.extents).is_some_and(|s| self.flat.strict.contains(&s)) {
            self.strict.push(out);
        }
        self.memo.insert(key, out);
        out
    }
}
