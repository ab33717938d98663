//! A body of any size becomes a cheaper one: it is cut into regions, each of which is searched for itself.
//!
//! A region is a part of the body with lets, and the variables in scope are its parameters, with what is known of them
//! there. Equal regions are searched once, and time grows with how many there are. What the regions became is put
//! together in blocks of lets; the whole is taken where it costs less than before. Then the body is cut at other places.
//! Where the body is no larger than elaboration takes, its lets are placed anew at the start and at the end, so that
//! regions share what they have in common, and what became invariant leaves loops.

mod block;
mod cut;
mod scope;

use super::egraph::optimize::{Found, Settings, imported, region, survives};
use super::egraph::saturate::{Limits, Report};
use super::egraph::trial::Trials;
use super::inline::{Flat, flatten};
use crate::cost::{Costing, Sweep};
use crate::ir::{Body, Def, Fun, Head, Id, Program, Terms, Ty, deep};
use cut::{New, Said, cut};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use scope::{Region, Scope};
use std::collections::BTreeSet;

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
/// The share of the time after which no more rounds begin.
const LAST_BEGIN: f64 = 0.6;

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

/// A cheaper term for a region, where one was found, and what the search did.
type Searched = (Option<(Terms, Id)>, Vec<Report>);

/// What tells regions apart.
type Key = (Vec<Ty>, Id, Vec<u64>, String);

/// The best body that is found. `settings` are those of whole definitions; `from` is the body to
/// begin with.
pub fn optimize<'c>(
    whole: &Whole<'c>,
    from: (&Terms, Id),
    costs: (&mut Costing<'c>, &mut Sweep<'c>),
    settings: &Settings<'_>,
) -> Option<Found> {
    let before = costs.0.def(whole.def).ok()?;
    let mut search = Search { whole, settings, before, costs, best: None };
    search.blocks(from);
    search.elaborated(from);
    let mut done = Done::default();
    for (most, first) in ROUNDS {
        if (settings.stop)(LAST_BEGIN) {
            break;
        }
        let best = search.best.as_ref()?;
        let (terms, body) = (best.terms.clone(), best.id);
        let nodes = settings.limits.nodes.max(NODES) as u64;
        let size = (most * nodes / 1000, first * nodes / 1000);
        let made = Round { whole, settings, size, terms: &terms, body }.run(&mut done);
        search.blocks((&made.0, made.1));
    }
    let best = search.best.as_ref()?;
    let (terms, id) = (best.terms.clone(), best.id);
    search.elaborated((&terms, id));
    let Best { terms, id, cost } = search.best?;
    Some(Found { terms, id, cost, reports: done.reports, journals: vec![], proved: false })
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
    /// What the definition costs as it is.
    before: f64,
    costs: (&'a mut Costing<'c>, &'a mut Sweep<'c>),
    best: Option<Best>,
}

impl Search<'_, '_, '_> {
    fn tys(&self) -> Vec<Ty> {
        self.whole.def.params.iter().map(|p| p.ty).collect()
    }

    /// Tries a body with lets, in blocks.
    fn blocks(&mut self, body: (&Terms, Id)) {
        let Whole { program, kept, most, .. } = *self.whole;
        let Some((terms, id)) = block::blocks(program, kept, body, &self.tys(), most) else { return };
        let cost = self.costs.0.term(id, self.whole.def, &terms);
        let cost = self.costs.1.price(id, &terms, cost, self.before);
        if self.best.as_ref().is_none_or(|best| cost < best.cost - 1e-9) {
            self.best = Some(Best { terms, id, cost });
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
        if self.best.as_ref().is_none_or(|best| new.cost < best.cost - 1e-9) {
            self.best = Some(Best { terms: new.terms, id: new.id, cost: new.cost });
        }
    }
}

/// What was searched.
#[derive(Default)]
struct Done {
    /// Whether regions cost no more once their lets are placed anew.
    survives: FxHashMap<Key, bool>,
    searched: FxHashMap<Key, Option<(Terms, Id)>>,
    /// The terms that keys speak of.
    arena: Terms,
    reports: Vec<Report>,
}

/// One way to cut a body.
struct Round<'a, 's> {
    whole: &'a Whole<'a>,
    settings: &'a Settings<'s>,
    size: (u64, u64),
    terms: &'a Terms,
    body: Id,
}

impl Round<'_, '_> {
    /// The body with what its regions became.
    fn run(&self, done: &mut Done) -> (Terms, Id) {
        let (plans, tasks) = self.tasks(done);
        let found: Vec<Searched> = tasks.par_iter().map(|(_, t)| self.search(t)).collect();
        for ((key, _), (better, told)) in tasks.into_iter().zip(found) {
            done.searched.insert(key, better);
            done.reports.extend(told);
        }
        self.replaced(&plans, &done.searched)
    }

    fn cut(&self, act: &mut cut::Act<'_>) -> (Terms, Id) {
        let mut terms = self.terms.clone();
        let def = (self.whole.def, self.settings.sizes);
        let body = cut(&mut terms, self.body, def, self.size.0, self.size.1, act);
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
        let (depth, region) = (scope.depth(), region_of(scope, terms, id));
        let mut own = Terms::default();
        let id = own.import(terms, id);
        let levels = &region.levels;
        let place = |i: usize| levels.iter().position(|l| *l == depth - 1 - i).unwrap_or(0);
        let count = levels.len();
        let id = own.map_free(id, 0, &mut |t, i, ty, under| t.var((count - 1 - place(i as usize) + under) as u32, ty));
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
        let settings = Settings { limits, context, flatten: &flatten, journal: false, last: None, ..*self.settings };
        act(&own, before, (&mut costing, &mut sweep), &settings)
    }

    fn survives(&self, task: &Task) -> bool {
        self.on(task, |def, before, costs, settings| survives(def, before, &task.flat, costs, settings))
    }

    /// A cheaper term for a region.
    fn search(&self, task: &Task) -> Searched {
        self.on(task, |def, before, costs, settings| match region(def, before, &task.flat, costs, settings) {
            Some(found) if found.cost < before - 1e-9 => (Some((found.terms, found.id)), found.reports),
            Some(found) => (None, found.reports),
            None => (None, vec![]),
        })
    }

    /// The body with what was found.
    fn replaced(&self, plans: &[Plan], found: &FxHashMap<Key, Option<(Terms, Id)>>) -> (Terms, Id) {
        let mut plans = plans.iter();
        self.cut(&mut |scope, terms, id| {
            let key = match plans.next() {
                Some(Plan::Split) => return Said::Split,
                Some(Plan::Search(key)) => key,
                None => return Said::Stays,
            };
            let Some(Some((new, new_id))) = found.get(key) else { return Said::Stays };
            let levels = region_of(scope, terms, id).levels;
            Said::Becomes(Box::new(New { terms: new.clone(), id: *new_id, levels }))
        })
    }
}

/// What tells a region apart: equal ones have equal terms, and as much is known of their parameters.
fn key(arena: &mut Terms, task: &Task) -> Key {
    let Region { params, context, guesses, .. } = &task.region;
    let tys = params.iter().map(|p| p.ty).collect();
    let id = arena.import(&task.flat.terms, task.flat.id);
    let mut over = |id: Option<Id>| id.map(|id| arena.import(&context.terms, id));
    let mut known: Vec<String> = vec![];
    for k in &context.known {
        let dims: Vec<Option<Id>> = k.dims.iter().map(|d| over(*d)).collect();
        known.push(format!("{dims:?}{:?}{:?}{}", over(k.value), over(k.below), k.undefined));
    }
    let mut strict: Vec<String> = vec![];
    for (id, ranges) in &task.flat.strict {
        let ranges: Vec<Id> = ranges.iter().map(|r| arena.import(&task.flat.terms, *r)).collect();
        strict.push(format!("{:?}{ranges:?}", arena.import(&task.flat.terms, *id)));
    }
    strict.sort_unstable();
    (tys, id, guesses.key(), known.join(";") + &strict.join(";"))
}

/// The variables that a part of a body needs, as parameters.
fn region_of(scope: &Scope, terms: &Terms, id: Id) -> Region {
    let depth = scope.depth();
    scope.region(free(terms, id).into_iter().map(|i| depth - 1 - i).collect())
}

/// The free variables of a term, by index.
fn free(terms: &Terms, id: Id) -> BTreeSet<usize> {
    fn walk(terms: &Terms, id: Id, under: usize, seen: &mut FxHashSet<(Id, usize)>, out: &mut BTreeSet<usize>) {
        if !terms.free(id).above(under) || !seen.insert((id, under)) {
            return;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        if let Head::Var(i, _) = head {
            out.extend((i as usize).checked_sub(under));
        }
        for (k, kid) in kids.iter().enumerate() {
            deep(|| walk(terms, *kid, under + head.binds(k, kids.len()), seen, out));
        }
    }
    let mut out = BTreeSet::new();
    walk(terms, id, 0, &mut FxHashSet::default(), &mut out);
    out
}
