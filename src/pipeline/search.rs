//! One definition becomes a better one, by the engine that was asked for, and derived where that is.

use super::only::names;
use super::options::{Engine, Options};
use super::outcome::Derived;
use crate::cost::{Costing, Sweep};
use crate::derive::check::Rules;
use crate::derive::lemma::Statement;
use crate::derive::pace::Pace;
use crate::derive::{Derivation, Step, UNSAID};
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::agent::{self, Agent};
use crate::rewrite::egraph::context::Context;
use crate::rewrite::egraph::exact::Effort;
use crate::rewrite::egraph::optimize::{Found, SEARCH_SHARE, Settings, optimize as saturate};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::egraph::saturate::{Limits, Report};
use crate::rewrite::explain::chain::Chain;
use crate::rewrite::explain::running::Running;
use crate::rewrite::explain::{self, Task, Unproved};
use crate::rewrite::inline::{Flat, MAX_FLAT, flatten};
use crate::rewrite::regions::{self, Whole};
use crate::search::Algorithm;
use crate::types::shape::has_shapeless;
use rustc_hash::FxHashSet;

/// Terms with more nodes than this share of the node limit are not searched as wholes.
const START_SHARE: usize = 4;

/// So many times the node limit may be made on the way to a term without lets.
const ON_THE_WAY: usize = 8;

/// The exact search where nobody asks for it: for small e-graphs it is quicker than trials.
pub const SMALL: Effort = Effort { places: 60, branches: 30 };
/// The exact search where it is asked for.
pub const EXACT: Effort = Effort { places: 600, branches: 3000 };

/// The share of the time that is for a search by regions with its proofs.
const PROVED_SHARE: f64 = 0.8;
/// The share of the time that is for the search, where its result is to be derived.
const DERIVED_SHARE: f64 = 0.4;

/// Where there is time, a search goes on from what is derived so often at most, and from no later share of the time.
const MAX_ON: usize = 8;
const LAST_BEGIN: f64 = 0.6;

/// After this share of the time it is left unsaid what the steps of a proof cost.
const TOLD_SHARE: f64 = 0.95;

/// A search that is to be derived starts again without the step that was refused, so often at most.
const MAX_REFUSED: usize = 6;

/// Why a definition is left alone of which saturation makes no term.
const PARTS: &str = "too large: it has too many parts where each counts in every loop that it stands in";
/// Why a cheaper result is not taken.
pub const WORSE: &str = "what was found costs more at other sizes";
/// Why another is not.
const SHAPELESS: &str = "in what was found a sum over nothing has no shape";

/// What saturation finds.
struct Saturated<'a> {
    found: Option<Found>,
    /// Where it was searched by its regions: the steps to it, and a cheaper one that has no proof.
    regions: Option<(Option<Chain<'a>>, Option<Unproved>)>,
}

/// What came of a search.
#[derive(Default)]
pub struct Tried {
    /// The best body, of those that are derived where that is asked for.
    pub better: Option<Better>,
    /// What has no derivation.
    pub unproved: Vec<Unproved>,
    /// Why nothing was searched, or why what was found is not taken.
    pub skipped: Option<String>,
    /// What was spent before the search was done.
    pub stopped: Option<&'static str>,
}

impl Tried {
    fn found(found: Found) -> Tried {
        Tried { better: Some(Better { found, derived: None }), ..Tried::default() }
    }

    /// Nothing, for a reason.
    pub fn skipped(why: impl Into<String>) -> Tried {
        Tried { skipped: Some(why.into()), ..Tried::default() }
    }

    /// The same once more, without derivations.
    pub fn again(&self) -> Tried {
        let better = self.better.as_ref().map(|b| Better { found: b.found.again(), derived: None });
        Tried { better, unproved: vec![], skipped: self.skipped.clone(), stopped: self.stopped }
    }

    fn cost(&self) -> f64 {
        self.better.as_ref().map_or(f64::INFINITY, |b| b.found.cost)
    }

    /// The better one of two; the first of equal ones.
    fn or(mut self, mut other: Tried) -> Tried {
        let unproved = self.unproved.drain(..).chain(other.unproved.drain(..)).collect();
        let better = if other.cost() < self.cost() - 1e-9 { other.better } else { self.better };
        let skipped = self.skipped.or(other.skipped).filter(|_| better.is_none());
        Tried { better, unproved, skipped, stopped: self.stopped.or(other.stopped) }
    }
}

/// A better body, and how it is derived.
pub struct Better {
    /// The body.
    pub found: Found,
    /// The steps to it, where they were asked for.
    pub derived: Option<Derived>,
}

/// The search for a better body of one definition.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its definition.
    pub def: &'a Def,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The rules.
    pub rules: &'a [Compiled<'a>],
    /// How to search.
    pub options: &'a Options<'a>,
    /// The share of the time that was spent when it began.
    pub began: f64,
}

/// The share of the time that is spent by now, where a search has to know: what it finds is to be derived, too.
pub fn began(options: &Options<'_>) -> f64 {
    let (mut least, mut most) = (0.0, 1.0);
    if !options.derive || (options.stop)(least).is_none() {
        return least;
    }
    while most - least > 1e-3 {
        let middle = (least + most) / 2.0;
        match (options.stop)(middle) {
            Some(_) => least = middle,
            None => most = middle,
        }
    }
    least
}

impl Search<'_> {
    /// The best body that the engine finds; nothing where the definition prints: no rule keeps what is printed
    /// and how often.
    pub fn best(&self) -> Tried {
        let Some(body) = self.def.term() else { return Tried::default() };
        let mut tried = self.searched(body);
        // The checker knows that it is late, and not why.
        let told = match (self.options.stop)(f64::INFINITY) {
            Some("interrupt") => "it was interrupted",
            Some("memory") => "the memory is spent",
            Some(_) | None => explain::LATE,
        };
        tried.unproved.iter_mut().for_each(|u| u.why = u.why.replace(explain::LATE, told));
        let loses = |better: &Better| {
            let has = |terms: &Terms, id: Id| has_shapeless(&mut terms.clone(), id);
            has(&better.found.terms, better.found.id) && !has(&self.program.terms, body)
        };
        match tried.better.as_ref().is_some_and(loses) {
            true => Tried { better: None, skipped: Some(SHAPELESS.into()), ..tried },
            false => tried,
        }
    }

    fn searched(&self, body: Id) -> Tried {
        if self.program.printing().contains(&self.def.fun) {
            return Tried::skipped("it prints");
        }
        if self.kept.contains(&self.def.fun) {
            return Tried::skipped("it calls itself");
        }
        let input = (&self.program.terms, body);
        let budget = self.options.budget;
        match self.options.engine {
            Engine::Egraph => self.saturated(),
            Engine::Agent(engine) => self.walked(input, &[], engine, budget),
            Engine::Auto => {
                let first = self.saturated();
                let half = (budget / 2).max(1);
                // What follows from bodies with lets does not go on from one without.
                let flat = |s: &&Better| s.derived.as_ref().is_none_or(|d| !d.derivation.bodies);
                let on = first.better.as_ref().filter(flat).map_or_else(Tried::default, |s| {
                    let before = s.derived.as_ref().map_or(&[][..], |d| &d.derivation.steps);
                    self.now().walked((&s.found.terms, s.found.id), before, Algorithm::Astar, half)
                });
                first.or(on).or(self.now().walked(input, &[], Algorithm::Astar, half))
            }
        }
    }

    /// What is spent, if a share of what a search may spend is: its result has to be derived too, for which the
    /// greater part of the time is left that there was when the search began.
    pub fn spent(&self, share: f64) -> Option<&'static str> {
        let share = match self.options.derive {
            true => self.began + (1.0 - self.began) * share * DERIVED_SHARE,
            false => share,
        };
        (self.options.stop)(share)
    }

    /// Equality saturation. Where the time for the search was too short, and that for the proof was not used, it goes
    /// on from what is derived.
    fn saturated(&self) -> Tried {
        let program = self.program;
        let Some(body) = self.def.term() else { return Tried::default() };
        let (found, whole) = match self.saturate((&program.terms, body), true) {
            Ok(Saturated { found: Some(found), regions: Some((Some(chain), cheaper)) }) => {
                let stopped = self.spent(SEARCH_SHARE);
                return Tried { stopped, unproved: cheaper.into_iter().collect(), ..self.by_regions(found, chain) };
            }
            Ok(Saturated { found: Some(found), regions }) => (found, regions.is_none()),
            Ok(Saturated { found: None, .. }) if self.spent(SEARCH_SHARE).is_some() => return Tried::default(),
            Ok(Saturated { found: None, .. }) => return Tried::skipped(PARTS),
            Err(why) => return Tried::skipped(why),
        };
        let stopped = self.spent(SEARCH_SHARE);
        let pieces = match whole && stopped.is_none() {
            true => self.now().piecewise((&program.terms, body)),
            false => Tried::default(),
        };
        if !self.options.derive {
            return Tried { stopped, ..Tried::found(found) }.or(pieces);
        }
        // What is better and has a proof needs no other one; of equal ones the proof of the whole says more.
        if pieces.cost() < found.cost - 1e-9 {
            return Tried { stopped, ..pieces };
        }
        self.derived_on(found, stopped).or(pieces)
    }

    /// What was found, derived; where the search was stopped, and its proof left time, with what is found from there.
    fn derived_on(&self, found: Found, mut stopped: Option<&'static str>) -> Tried {
        let mut tried = self.derived(found, &[]);
        for _ in 0..MAX_ON {
            let on = self.now();
            let Some(Better { found, derived: Some(d) }) = tried.better.as_ref().filter(|_| stopped.is_some()) else {
                break;
            };
            if on.began > LAST_BEGIN {
                break;
            }
            let (steps, cost) = (d.derivation.steps.clone(), found.cost);
            let Ok(Saturated { found: Some(next), regions: None }) = on.saturate((&found.terms, found.id), true) else {
                break;
            };
            stopped = on.spent(SEARCH_SHARE);
            tried = tried.or(on.derived(next, &steps));
            if tried.cost() > cost - 1e-9 {
                break;
            }
        }
        Tried { stopped, ..tried }
    }

    /// What the regions of a body become that is searched as a whole, too: a search of less goes deeper, and a short
    /// proof is found where a long one is not.
    fn piecewise(&self, from: (&Terms, Id)) -> Tried {
        match self.saturate(from, false) {
            Ok(Saturated { found: Some(found), regions: Some((Some(chain), cheaper)) }) => {
                Tried { unproved: cheaper.into_iter().collect(), ..self.by_regions(found, chain) }
            }
            Ok(Saturated { found: Some(found), .. }) if !self.options.derive => Tried::found(found),
            _ => Tried::default(),
        }
    }

    /// The same search, from now on.
    fn now(&self) -> Self {
        Search { began: began(self.options), ..*self }
    }

    /// What saturation finds, or why it is not tried; of the whole body, where that is asked for and small enough, or of
    /// its regions.
    fn saturate(&self, from: (&Terms, Id), whole: bool) -> Result<Saturated<'_>, String> {
        let Search { program, def, kept, rules, options, .. } = *self;
        let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let most = options.max_nodes.max(options.regions).saturating_mul(ON_THE_WAY).min(MAX_FLAT);
        let flatten = |terms: &Terms, id: Id| flatten(program, kept, (terms, id), &params, most);
        let start = flatten(from.0, from.1);
        let nodes = start.as_ref().and_then(Flat::nodes);
        let allowed = options.max_nodes / START_SHARE;
        let start = start.filter(|_| whole && nodes.is_some_and(|nodes| nodes <= allowed));
        if let (None, Some(nodes)) = (&start, nodes.filter(|nodes| whole && *nodes <= options.regions)) {
            return Err(format!(
                "too large: {nodes} nodes without lets and calls, and no more than {allowed} are taken"
            ));
        }
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let Ok(mut sweep) = self.sweep() else { return Ok(Saturated { found: None, regions: None }) };
        let limits = Limits { nodes: options.max_nodes, rounds: 30, looked: usize::MAX, matches: 500, forget: true };
        let stop = |share: f64| self.spent(share).is_some();
        let context = Context::default();
        let settings = Settings {
            rules,
            level: options.float,
            model: options.cost,
            sizes: &options.sizes,
            limits,
            context: &context,
            flatten: &flatten,
            restarts: 24,
            trials: 300,
            journal: options.derive,
            effort: SMALL,
            last: options.exact.then_some(EXACT),
            stop: &stop,
        };
        let costs = (&mut costing, &mut sweep);
        Ok(match start {
            Some(start) => Saturated { found: saturate(def, start, costs, &settings), regions: None },
            None => {
                // What regions become is proved at once, so no time has to be left for that.
                let stop = |share: f64| match options.derive {
                    true => (options.stop)(self.began + (1.0 - self.began) * share * PROVED_SHARE).is_some(),
                    false => self.spent(share).is_some(),
                };
                let settings = Settings { stop: &stop, ..settings };
                let (prove, alone) = (options.derive, options.threads == 1);
                let whole = Whole { program, kept, def, most: MAX_FLAT, prove, alone };
                match regions::optimize(&whole, from, costs, &settings) {
                    Some(regions::Searched { found, chain, unproved }) => {
                        Saturated { found: Some(found), regions: Some((chain, unproved)) }
                    }
                    None => Saturated { found: None, regions: Some((None, None)) },
                }
            }
        })
    }

    /// What compares bodies with this one at other sizes.
    fn sweep(&self) -> crate::diag::Result<Sweep<'_>> {
        Sweep::new(self.program, self.def, self.options.cost, &self.options.sizes)
    }

    /// The best result of equality saturation from where the steps `before` lead that can be derived, from the
    /// journal of either way.
    fn derived(&self, mut found: Found, before: &[Step]) -> Tried {
        let Search { program, def, kept, options, .. } = *self;
        let by_name = self.by_name();
        let stop = |share: f64| (options.stop)(share).is_some();
        let (level, model, from) = (options.float, options.cost, explain::From::after(before));
        let late = || stop(explain::CHECKED_SHARE);
        let pace = &Pace::new(&late);
        let task = Task { program, def, kept, rules: &by_name, level, model, stop: &stop, pace, from, assumed: None };
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let mut cost = |terms: &Terms, id: Id| costing.term(id, def, terms);
        let (mut best, mut unproved): (Option<explain::Derived>, _) = (None, vec![]);
        for mut journal in std::mem::take(&mut found.journals) {
            let least = journal.bests.last().map_or(f64::INFINITY, |b| b.cost);
            if best.as_ref().is_some_and(|b| least > b.candidate.cost - 1e-9) {
                continue;
            }
            let (out, refused) = explain::derived(&task, &mut journal, &mut cost);
            unproved.extend(refused);
            let better = |out: &explain::Derived| best.as_ref().is_none_or(|b| out.candidate.cost < b.candidate.cost);
            if let Some(out) = out.filter(better) {
                best = Some(out);
            }
        }
        let better = best.map(|out| self.told(found, out));
        Tried { better, unproved, ..Tried::default() }
    }

    /// The best body that regions led to, with the steps to it and what they cost.
    fn by_regions(&self, found: Found, chain: Chain<'_>) -> Tried {
        let Search { program, def, options, .. } = *self;
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let Chain { mut steps, programs, changes, lemmas, .. } = chain;
        let mut costs = programs.iter().map(|(terms, id)| costing.term(*id, def, terms));
        let start = costs.next().unwrap_or_default();
        steps.iter_mut().zip(costs).for_each(|(step, cost)| step.cost = cost);
        let mut used: Vec<Statement> = lemmas.iter().map(|p| p.statement.clone()).collect();
        used.retain(|statement| steps.iter().any(|step| step.by == statement.name));
        used.sort_by(|a, b| a.name.cmp(&b.name));
        used.dedup_by(|a, b| a.name == b.name);
        let derivation = Derivation { lemmas: used, bodies: true, steps, start, ..self.derivation() };
        let programs = programs.into_iter().map(Some).collect();
        let derived = Derived { derivation, programs, changes };
        Tried { better: Some(Better { found, derived: Some(derived) }), ..Tried::default() }
    }

    /// The head of a derivation.
    fn derivation(&self) -> Derivation {
        let def = self.def;
        let (lemmas, steps, result) = Default::default();
        Derivation {
            name: def.name().to_string(),
            params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
            lemmas,
            bodies: false,
            steps,
            start: 0.0,
            result,
            cost_before: 0.0,
            cost_after: 0.0,
        }
    }

    fn by_name(&self) -> Rules<'_> {
        self.rules.iter().map(|r| (r.rule.name.as_str(), r.rule)).collect()
    }

    /// A derived result, with what the programs on the way cost, as far as the time suffices.
    fn told(&self, mut found: Found, mut out: explain::Derived) -> Better {
        let Search { program, def, options, .. } = *self;
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        (found.terms, found.id) = out.candidate.shared.clone();
        found.cost = costing.term(found.id, def, &found.terms);
        let mut running = Running::new(def, options.cost);
        let mut told = |flat: &Id| match (options.stop)(TOLD_SHARE) {
            Some(_) => None,
            None => running.shared(&out.terms, *flat),
        };
        let programs: Vec<Option<(Terms, Id)>> = out.programs.iter().map(&mut told).collect();
        let mut cost = |(terms, id): &(Terms, Id)| costing.term(*id, def, terms);
        let costs: Vec<f64> = programs.iter().map(|p| p.as_ref().map_or(UNSAID, &mut cost)).collect();
        out.steps.iter_mut().zip(&costs[1..]).for_each(|(step, cost)| step.cost = *cost);
        let derivation = Derivation { steps: out.steps, start: costs[0], ..self.derivation() };
        let derived = Derived { derivation, programs, changes: out.changes };
        Better { found, derived: Some(derived) }
    }

    /// Searches from a term to which the steps `before` lead.
    fn walked(&self, from: (&Terms, Id), before: &[Step], engine: Algorithm, budget: usize) -> Tried {
        let Search { program, def, kept, rules, options, .. } = *self;
        let Options { float: level, cost: model, depth, seed, bind, phased, value, .. } = *options;
        let bindings = std::array::from_fn(|k| names(&options.only, agent::bindings::NAMES[k], agent::bindings::GROUP));
        let stop = || self.spent(SEARCH_SHARE).is_some();
        let settings = agent::optimize::Settings {
            engine,
            rules,
            bind,
            bindings,
            phased,
            level,
            model,
            budget,
            depth,
            seed,
            value,
            stop: &stop,
        };
        let mut costing = Costing::new(program, model, &options.sizes);
        let Some(agent) = Agent::new(program, kept, def, from, &settings) else {
            return Tried::skipped(format!("too large: more than {MAX_FLAT} nodes without lets and calls"));
        };
        let Some(mut best) = agent.search(&mut costing, &settings) else { return Tried::default() };
        if self.sweep().is_ok_and(|mut sweep| sweep.worse(best.id, &best.terms) > 1.0) {
            return Tried::skipped(WORSE);
        }
        let stopped = self.spent(SEARCH_SHARE);
        if !options.derive {
            return Tried { stopped, ..Tried::found(found(best)) };
        }
        let by_name = self.by_name();
        let all = |share: f64| (options.stop)(share).is_some();
        let from = explain::From::after(before);
        let late = || all(explain::CHECKED_SHARE);
        let pace = &Pace::new(&late);
        let task = Task { program, def, kept, rules: &by_name, level, model, stop: &all, pace, from, assumed: None };
        let (mut count, mut unproved) = (best.steps.len(), vec![]);
        for tries in 0.. {
            let mut cost = |terms: &Terms, id: Id| costing.term(id, def, terms);
            let refused = match explain::moves::derived(&task, (&best, count), &mut cost) {
                Ok((out, dearer)) => {
                    unproved.extend(dearer);
                    let better = Some(self.told(found(best), out));
                    return Tried { better, unproved, skipped: None, stopped };
                }
                Err(refused) => refused,
            };
            unproved.push(Unproved { cost: best.cost, why: refused.why });
            let Some(step) = refused.step else { break };
            if tries < MAX_REFUSED && !stop() {
                agent.refuse(&best.steps[step]);
                let Some(next) = agent.search(&mut costing, &settings) else { break };
                (count, best) = (next.steps.len(), next);
            } else {
                // At last the cheapest term before the step that is refused.
                let to = (0..step).min_by(|a, b| best.steps[*a].cost.total_cmp(&best.steps[*b].cost));
                let Some(to) = to else { break };
                count = to + 1;
            }
        }
        Tried { better: None, unproved, skipped: None, stopped }
    }
}

/// What a search of terms found.
fn found(best: agent::optimize::Best) -> Found {
    let mut report = Report::default();
    for step in best.steps {
        *report.fired.entry(step.name).or_default() += 1;
    }
    Found { terms: best.terms, id: best.id, cost: best.cost, reports: vec![report], journals: vec![], proved: false }
}
