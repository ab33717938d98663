//! A body of any size becomes a cheaper one: it is cut into regions, each of which is searched for itself.
//!
//! A region is a part of the body with lets, and the variables in scope are its parameters, with what is known of them
//! there. Equal regions are searched once, and time grows with how many there are. What the regions became is put
//! together in blocks of lets; the whole is taken where it costs less than before. Then the body is cut at other places.
//! Where the body is no larger than elaboration takes, its lets are placed anew at the start and at the end, so that
//! regions share what they have in common, and what became invariant leaves loops.

mod block;
mod chain;
mod cut;
mod marked;
mod scope;

use super::egraph::optimize::{CROWD, Found, Settings, imported, region, survives};
use super::egraph::saturate::{Limits, Report};
use super::egraph::trial::Trials;
use super::explain::Unproved;
use super::explain::chain::Chain;
use super::explain::lemma::{self, Proved, World};
use super::inline::{Flat, Site, flatten};
use crate::cost::{Costing, Sweep};
use crate::derive::check::Rules;
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty};
use chain::free;
use cut::{New, Said, cut};
use marked::{Marked, marked};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use scope::{Region, Scope};
use std::sync::Arc;

/// Nodes of a region at most, and of the first of neighbouring lets, in each round, in thousandths of the nodes that an
/// e-graph may have: other rounds cut at other places.
const ROUNDS: [(u64, u64); 3] = [(30, 30), (30, 15), (70, 50)];
/// The share of these that the e-graph of a region may have.
const SHARE: f64 = 0.4;
/// Of so many nodes all these are shares at least, however few an e-graph may have: what is cut finer gains nothing.
const NODES: usize = 1_000;
/// So many nodes may be made on the way to a term without lets.
const FLAT: usize = 20_000;
/// Terms without lets that are larger are not elaborated: that takes longer than all regions.
const ELABORATED: usize = 5_000;
/// A round behind the first searches so many regions at least, spread over the body, and the others where these gain
/// a share of what they cost, a greater one in a crowd. Else little is left to gain, and most of the time would be spent
/// on that.
const SAMPLE: usize = 16;
const GAIN: f64 = 1e-3;
const GAIN_OF_CROWD: f64 = 1e-2;
/// The share of the time after which no more rounds begin.
const LAST_BEGIN: f64 = 0.6;
/// The share of the time after which what is not proved is given up.
const LAST_PROOF: f64 = 0.8;

/// A body that is searched by its regions.
pub struct Whole<'a> {
    /// The program.
    pub program: &'a Program,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The definition.
    pub def: &'a Def,
    /// So many nodes may be made on the way to a term without lets.
    pub most: usize,
    /// Whether what regions become is to be proved.
    pub prove: bool,
    /// Whether one thread searches all regions.
    pub alone: bool,
}

/// What came of a body.
pub struct Searched<'a> {
    /// The best body.
    pub found: Found,
    /// The steps to it, where they were asked for.
    pub chain: Option<Chain<'a>>,
    /// What is cheaper and has no proof.
    pub unproved: Option<Unproved>,
}

/// A region that is searched, and those that are equal to it.
struct Task {
    /// What it is a part of, with lets.
    terms: Terms,
    id: Id,
    /// The same without lets.
    flat: Flat,
    region: Region,
}

/// What is to become of a region.
enum Plan {
    Split,
    Search(Key),
}

/// What costs terms, at the sizes that were told and at others.
type Costs<'a, 'c> = (&'a mut Costing<'c>, &'a mut Sweep<'c>);

/// What came of a region.
#[derive(Default)]
struct Tried {
    /// A cheaper term.
    better: Option<Better>,
    /// What the region costs as it is, and by how much less the term costs.
    before: f64,
    gain: f64,
    /// What the search did.
    reports: Vec<Report>,
}

/// A cheaper term for a region.
struct Better {
    term: (Terms, Id),
    /// What proves one, where that was asked for: the best that has a proof.
    proof: Option<Arc<Proved>>,
    /// Why there is no proof of the term.
    why: Option<String>,
}

/// What tells regions apart.
type Key = (Vec<Ty>, (Id, Vec<Site>), Vec<u64>, String);

/// The best body that is found. `settings` are those of whole definitions; `from` is the body to
/// begin with.
pub fn optimize<'c>(
    whole: &Whole<'c>,
    from: (&Terms, Id),
    costs: (&mut Costing<'c>, &mut Sweep<'c>),
    settings: &Settings<'_>,
) -> Option<Searched<'c>> {
    let Whole { program, kept, def, prove, .. } = *whole;
    let before = costs.0.def(def).ok()?;
    let rules: Rules<'_> = settings.rules.iter().map(|r| (r.rule.name.as_str(), r.rule)).collect();
    let chain = if prove { Some(Chain::new(program, def, kept).ok()?) } else { None };
    let (mut done, (costing, sweep)) = (Done::default(), costs);
    let costs = (&mut *costing, &mut *sweep);
    let mut search = Search { whole, settings, rules: &rules, before, costs, best: None, chain, refused: None };
    search.run(from, &mut done)?;
    let Search { best, chain, refused, .. } = search;
    let Best { terms, id, cost } = best?;
    // What was refused may have led to something cheaper, which is told.
    let unproved = refused.and_then(|why| {
        let costs = (costing, sweep);
        let (best, chain, refused) = (None, None, None);
        let mut search = Search { whole, settings, rules: &rules, before, costs, best, chain, refused };
        search.run(from, &mut done)?;
        search.best.filter(|best| best.cost < cost - 1e-9).map(|best| Unproved { cost: best.cost, why })
    });
    let found = Found { terms, id, cost, reports: done.reports, journals: vec![], proved: false };
    Some(Searched { found, chain, unproved })
}

/// The best body so far.
struct Best {
    terms: Terms,
    id: Id,
    /// What it costs, or counts as where it is worse at other sizes ([`Sweep::price`]).
    cost: f64,
}

/// Whole bodies are tried.
struct Search<'a, 's, 'c> {
    whole: &'a Whole<'c>,
    settings: &'a Settings<'s>,
    rules: &'a Rules<'a>,
    /// What the definition costs as it is.
    before: f64,
    costs: (&'a mut Costing<'c>, &'a mut Sweep<'c>),
    best: Option<Best>,
    /// How the best body is derived, where that is asked for.
    chain: Option<Chain<'c>>,
    /// Why something that was found is not taken: it has no proof.
    refused: Option<String>,
}

impl Search<'_, '_, '_> {
    /// Searches from a body on.
    fn run(&mut self, from: (&Terms, Id), done: &mut Done) -> Option<()> {
        self.blocks(from);
        self.elaborated(from);
        for (k, (most, first)) in ROUNDS.into_iter().enumerate() {
            if (self.settings.stop)(LAST_BEGIN) {
                break;
            }
            let best = self.best.as_ref()?;
            let (terms, body) = (best.terms.clone(), best.id);
            let nodes = self.settings.limits.nodes.max(NODES) as u64;
            let size = (most * nodes / 1000, first * nodes / 1000);
            let Search { whole, settings, rules, .. } = *self;
            let prove = self.chain.is_some();
            let round = Round { whole, rules, prove, settings, size, terms: &terms, body };
            let plans = round.run(done, k > 0);
            if self.chain.is_some() {
                self.by_lemmas(&round.marked(&plans, &done.searched));
                let each = done.searched.values().flatten();
                self.refused = self.refused.take().or(each.filter_map(|better| better.why.as_ref()).min().cloned());
            } else {
                let (terms, id) = round.replaced(&plans, &done.searched);
                self.blocks((&terms, id));
            }
        }
        let best = self.best.as_ref()?;
        let (terms, id) = (best.terms.clone(), best.id);
        self.elaborated((&terms, id));
        Some(())
    }

    fn tys(&self) -> Vec<Ty> {
        self.whole.def.params.iter().map(|p| p.ty).collect()
    }

    /// A body with lets in blocks, and what it counts as.
    fn in_blocks(&mut self, body: (&Terms, Id)) -> Option<Best> {
        let Whole { program, kept, most, .. } = *self.whole;
        let (terms, id) = block::blocks(program, kept, body, &self.tys(), most)?;
        let cost = self.costs.0.term(id, self.whole.def, &terms);
        let cost = self.costs.1.price(id, &terms, cost, self.before);
        Some(Best { terms, id, cost })
    }

    /// Tries a body with lets, in blocks.
    fn blocks(&mut self, body: (&Terms, Id)) {
        if let Some(new) = self.in_blocks(body) {
            self.take(new);
        }
    }

    fn gains(&self, cost: f64) -> bool {
        self.best.as_ref().is_none_or(|best| cost <= best.cost - 1e-9)
    }

    fn take(&mut self, new: Best) {
        if !self.gains(new.cost) {
            return;
        }
        match self.chain.is_some() {
            true => self.derived(new),
            false => self.best = Some(new),
        }
    }

    /// Takes a body that only has other lets than the one at the end of the chain, or one where some come later.
    fn derived(&mut self, new: Best) {
        let Some(chain) = &mut self.chain else { return };
        let (mark, stop) = (chain.mark(), || (self.settings.stop)(LAST_PROOF));
        match chain.lets((&new.terms, new.id), &stop) {
            Ok(None) => self.best = Some(new),
            Ok(Some(why)) => {
                let (terms, id) = (chain.body().0.clone(), chain.body().1);
                let cost = self.costs.0.term(id, self.whole.def, &terms);
                let cost = self.costs.1.price(id, &terms, cost, self.before);
                self.refused.get_or_insert(why);
                if self.gains(cost) {
                    self.best = Some(Best { terms, id, cost });
                } else if let Some(chain) = &mut self.chain {
                    chain.back(mark);
                }
            }
            Err(why) => {
                self.refused.get_or_insert(why);
            }
        }
    }

    /// Takes what is proved of the regions of a body.
    fn by_lemmas(&mut self, marked: &Marked) {
        let Some(chain) = self.chain.as_mut().filter(|_| !marked.places.is_empty()) else { return };
        let (mark, stop) = (chain.mark(), || (self.settings.stop)(LAST_PROOF));
        let refused = match chain.lets((&marked.terms, marked.id), &stop) {
            Ok(None) => {
                let each = marked.places.iter().map(|place| {
                    let at = chain.mark();
                    chain.lemma(place.path.clone(), &place.levels, &place.proof).inspect_err(|_| chain.back(at))
                });
                each.filter_map(Result::err).fold(None, |first: Option<String>, why| first.or(Some(why)))
            }
            Ok(Some(why)) | Err(why) => Some(why),
        };
        let (terms, id) = (chain.body().0.clone(), chain.body().1);
        self.refused = self.refused.take().or(refused);
        let before = self.best.as_ref().map(|best| best.cost);
        self.blocks((&terms, id));
        if self.best.as_ref().map(|best| best.cost) == before
            && let Some(chain) = &mut self.chain
        {
            chain.back(mark);
        }
    }

    /// Tries a body with the lets that elaboration finds.
    fn elaborated(&mut self, body: (&Terms, Id)) {
        let Whole { program, kept, .. } = *self.whole;
        let flat = flatten(program, kept, body, &self.tys(), 8 * ELABORATED);
        let Some(flat) = flat.filter(|flat| flat.nodes().is_some_and(|nodes| nodes <= ELABORATED)) else { return };
        let Search { whole, settings, before, costs, .. } = self;
        let (mut g, root) = imported(whole.def, settings, &flat, None);
        let mut trials = Trials::new(whole.def, *before, (costs.0, costs.1), settings.model, settings.stop);
        trials.first(&mut g, root);
        let Some(new) = trials.best else { return };
        self.take(Best { terms: new.terms, id: new.id, cost: new.cost });
    }
}

/// What was searched.
#[derive(Default)]
struct Done {
    /// Whether regions cost no more once their lets are placed anew.
    survives: FxHashMap<Key, bool>,
    searched: FxHashMap<Key, Option<Better>>,
    /// How many regions were searched, and how many different ones a round had at most.
    count: usize,
    most: usize,
    /// The terms that keys speak of.
    arena: Terms,
    reports: Vec<Report>,
}

/// One way to cut a body.
struct Round<'a, 's> {
    whole: &'a Whole<'a>,
    rules: &'a Rules<'a>,
    /// Whether what regions become is to be proved.
    prove: bool,
    settings: &'a Settings<'s>,
    size: (u64, u64),
    terms: &'a Terms,
    body: Id,
}

impl Round<'_, '_> {
    /// Searches the regions that were not searched yet, all of them or a sample where that gains too little; what is
    /// to become of each.
    fn run(&self, done: &mut Done, sampled: bool) -> Vec<Plan> {
        let (plans, mut tasks) = self.tasks(done);
        done.most = done.most.max(tasks.len());
        let many = if done.most > CROWD { done.most } else { tasks.len() };
        if sampled && tasks.len() > SAMPLE {
            let (sample, others) = spread(tasks, SAMPLE);
            let gains = self.all(done, sample, many);
            tasks = if gains { others } else { vec![] };
        }
        self.all(done, tasks, many);
        plans
    }

    /// Searches regions, of which there are `many` in the round, or in another where they are a crowd; whether they gain enough to go on.
    fn all(&self, done: &mut Done, tasks: Vec<(Key, Task)>, many: usize) -> bool {
        let first = done.count;
        let search = |(k, (_, task)): (usize, &(Key, Task))| self.search(task, (first + k, many));
        let found: Vec<Tried> = match self.whole.alone {
            true => tasks.iter().enumerate().map(search).collect(),
            false => tasks.par_iter().enumerate().map(search).collect(),
        };
        done.count += tasks.len();
        let (mut before, mut gain) = (0.0, 0.0);
        for ((key, _), tried) in tasks.into_iter().zip(found) {
            before += tried.before;
            gain += tried.gain;
            done.searched.insert(key, tried.better);
            done.reports.extend(tried.reports);
        }
        gain >= before * if many > CROWD { GAIN_OF_CROWD } else { GAIN }
    }

    fn cut(&self, act: &mut cut::Act<'_>) -> (Terms, Id) {
        let mut terms = self.terms.clone();
        let def = (self.whole.def, self.settings.sizes);
        let body = cut(&mut terms, self.body, def, self.size, act);
        (terms, body)
    }

    /// What is to become of each region, in order, and a task for each that is not equal to one before it.
    fn tasks(&self, done: &mut Done) -> (Vec<Plan>, Vec<(Key, Task)>) {
        let (mut plans, mut tasks): (Vec<Plan>, Vec<(Key, Task)>) = Default::default();
        self.cut(&mut |scope, terms, id| {
            let Some(task) = self.task(scope, terms, id) else {
                plans.push(Plan::Split);
                return Said::Split;
            };
            let key = key(&mut done.arena, &task);
            let known = done.survives.get(&key).copied();
            let survives = known.unwrap_or_else(|| self.survives(&task));
            if known.is_none() {
                done.survives.insert(key.clone(), survives);
                if survives {
                    tasks.push((key.clone(), task));
                }
            }
            plans.push(if survives { Plan::Search(key) } else { Plan::Split });
            if survives { Said::Stays } else { Said::Split }
        });
        (plans, tasks)
    }

    fn task(&self, scope: &Scope, terms: &Terms, id: Id) -> Option<Task> {
        let (own, id, region) = alone(scope, terms, id);
        let tys: Vec<Ty> = region.params.iter().map(|p| p.ty).collect();
        let flat = flatten(self.whole.program, self.whole.kept, (&own, id), &tys, FLAT)?;
        flat.nodes()?;
        Some(Task { terms: own, id, flat, region })
    }

    /// Does something with a region as a definition of its own, which costs so much.
    fn on<R>(&self, task: &Task, act: impl FnOnce(&Def, f64, Costs<'_, '_>, &Settings<'_>) -> R) -> R {
        let Whole { program, kept, def, .. } = *self.whole;
        let Region { params, context, guesses, .. } = &task.region;
        let own = Def { fun: def.fun, params: params.clone(), body: Body::External, span: def.span };
        let (model, sizes) = (self.settings.model, self.settings.sizes);
        let mut costing = Costing::within(program, model, sizes, guesses);
        let before = costing.term(task.id, &own, &task.terms);
        let mut sweep = Sweep::within(program, &own, (model, sizes), guesses, (&task.terms, task.id));
        let tys: Vec<Ty> = params.iter().map(|p| p.ty).collect();
        let flatten = |terms: &Terms, id: Id| flatten(program, kept, (terms, id), &tys, FLAT);
        let limits = self.settings.limits;
        let limits = Limits { nodes: (limits.nodes.max(NODES) as f64 * SHARE) as usize, ..limits };
        let settings = Settings { limits, context, flatten: &flatten, last: None, ..*self.settings };
        act(&own, before, (&mut costing, &mut sweep), &settings)
    }

    fn survives(&self, task: &Task) -> bool {
        self.on(task, |def, before, costs, settings| survives(def, before, &task.flat, costs, settings))
    }

    /// A cheaper term for a region, which is the `n`th of all, and one of `many` that are searched together.
    fn search(&self, task: &Task, (n, many): (usize, usize)) -> Tried {
        self.on(task, |def, before, costs, settings| {
            let Some(mut found) = region(def, (before, many), &task.flat, costs, settings) else {
                return Tried { before, ..Tried::default() };
            };
            let reports = std::mem::take(&mut found.reports);
            let mut out = Tried { better: None, before, gain: 0.0, reports };
            if found.cost < before - 1e-9 {
                out.gain = before - found.cost;
                let (proof, why) = self.proved(task, n, &mut found);
                out.better = Some(Better { term: (found.terms, found.id), proof, why });
            }
            out
        })
    }

    /// What proves what a search found, where that is asked for, and why nothing proves all of it.
    fn proved(&self, task: &Task, n: usize, found: &mut Found) -> (Option<Arc<Proved>>, Option<String>) {
        let Whole { program, def, .. } = *self.whole;
        if !self.prove {
            return (None, None);
        }
        let world = self.world();
        let Settings { model, sizes, .. } = *self.settings;
        let Region { params, context, guesses, .. } = &task.region;
        let tys: Vec<Ty> = params.iter().map(|p| p.ty).collect();
        let region = lemma::Region { params: &tys, context, body: (&task.terms, task.id) };
        let own = Def { fun: def.fun, params: params.clone(), body: Body::External, span: def.span };
        let mut costing = Costing::within(program, model, sizes, guesses);
        let mut cost = |terms: &Terms, id: Id| costing.term(id, &own, terms);
        let Some(mut journal) = found.journals.pop() else { return (None, Some("no steps are kept".into())) };
        let (proof, unproved) = lemma::proved(&world, &format!("region {}", n + 1), &region, &mut journal, &mut cost);
        let why = unproved.into_iter().next().map(|u| format!("what a region became is not proved: {}", u.why));
        (proof.map(Arc::new), why)
    }

    /// The body with what was found.
    fn replaced(&self, plans: &[Plan], found: &FxHashMap<Key, Option<Better>>) -> (Terms, Id) {
        let mut plans = plans.iter();
        self.cut(&mut |scope, terms, id| {
            let key = match plans.next() {
                Some(Plan::Split) => return Said::Split,
                Some(Plan::Search(key)) => key,
                None => return Said::Stays,
            };
            let Some(Some(better)) = found.get(key) else { return Said::Stays };
            let levels = region_of(scope, terms, id).levels;
            let (terms, id) = better.term.clone();
            Said::Becomes(Box::new(New { terms, id, levels }))
        })
    }

    /// The body with marks for the regions that are proved to be something cheaper.
    fn marked(&self, plans: &[Plan], found: &FxHashMap<Key, Option<Better>>) -> Marked {
        let (mut plans, mut proofs) = (plans.iter(), vec![]);
        let mut others = Others::default();
        let (terms, id) = self.cut(&mut |scope, terms, id| {
            let key = match plans.next() {
                Some(Plan::Split) => return Said::Split,
                Some(Plan::Search(key)) => key,
                None => return Said::Stays,
            };
            let Some(Some(Better { proof: Some(proof), .. })) = found.get(key) else { return Said::Stays };
            let Some(proof) = self.like(&mut others, proof, (scope, terms, id)) else { return Said::Stays };
            let levels = region_of(scope, terms, id).levels;
            let (terms, id) = marked::mark(proofs.len(), &proof.lemma);
            proofs.push(proof);
            Said::Becomes(Box::new(New { terms, id, levels }))
        });
        marked(terms, id, self.whole.def.params.len(), &proofs)
    }

    /// The lemma of an equal region as one of this region, whose lets may stand elsewhere.
    fn like(
        &self,
        others: &mut Others,
        proof: &Arc<Proved>,
        (scope, terms, id): (&Scope, &Terms, Id),
    ) -> Option<Arc<Proved>> {
        let (own, own_id, region) = alone(scope, terms, id);
        let (here, there) =
            (others.terms.import(&own, own_id), others.terms.import(&proof.lemma.terms, proof.lemma.left));
        if here == there {
            return Some(Arc::clone(proof));
        }
        let next = others.proofs.len() + 2;
        let key = (proof.statement.name.clone(), here);
        let other = others.proofs.entry(key).or_insert_with(|| {
            let tys: Vec<Ty> = region.params.iter().map(|p| p.ty).collect();
            let region = lemma::Region { params: &tys, context: &region.context, body: (&own, own_id) };
            lemma::like(&self.world(), format!("{}.{next}", proof.statement.name), &region, proof).map(Arc::new)
        });
        other.clone()
    }

    fn world(&self) -> World<'_> {
        let Whole { program, kept, .. } = *self.whole;
        let Settings { level, model, sizes, stop, .. } = *self.settings;
        World { program, kept, rules: self.rules, level, model, sizes, stop }
    }
}

/// Lemmas of regions that are equal but for where their lets stand.
#[derive(Default)]
struct Others {
    /// The terms that keys speak of.
    terms: Terms,
    /// By the lemma of the first of them, and the region.
    proofs: FxHashMap<(String, Id), Option<Arc<Proved>>>,
}

/// So many of some things, spread over them, and the others.
fn spread<T>(all: Vec<T>, sample: usize) -> (Vec<T>, Vec<T>) {
    let count = all.len();
    let chosen = |k: usize| (k + 1) * sample / count > k * sample / count;
    let (some, others): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(k, _)| chosen(*k));
    let each = |of: Vec<(usize, T)>| of.into_iter().map(|(_, t)| t).collect();
    (each(some), each(others))
}

/// What tells a region apart: equal ones have equal terms, and as much is known of their parameters.
fn key(arena: &mut Terms, task: &Task) -> Key {
    let Region { params, context, guesses, .. } = &task.region;
    let tys = params.iter().map(|p| p.ty).collect();
    let flat = task.flat.key(arena);
    let mut over = |id: Option<Id>| id.map(|id| arena.import(&context.terms, id));
    let mut known: Vec<String> = vec![];
    for k in &context.known {
        let dims: Vec<Option<Id>> = k.dims.iter().map(|d| over(*d)).collect();
        known.push(format!("{dims:?}{:?}{:?}{}", over(k.value), over(k.below), k.undefined));
    }
    (tys, flat, guesses.key(), known.join(";"))
}

/// A part of a body over the variables that it needs, and these.
fn alone(scope: &Scope, terms: &Terms, id: Id) -> (Terms, Id, Region) {
    let (depth, region) = (scope.depth(), region_of(scope, terms, id));
    let mut own = Terms::default();
    let id = own.import(terms, id);
    let levels = &region.levels;
    let place: FxHashMap<usize, usize> = levels.iter().enumerate().map(|(k, l)| (depth - 1 - l, k)).collect();
    let count = levels.len();
    let id = own.map_free(id, 0, &mut |t, i, ty, under| t.var((count - 1 - place[&(i as usize)] + under) as u32, ty));
    (own, id, region)
}

/// The variables that a part of a body needs, as parameters.
fn region_of(scope: &Scope, terms: &Terms, id: Id) -> Region {
    let depth = scope.depth();
    scope.region(free(terms, id).into_iter().map(|i| depth - 1 - i).collect())
}
