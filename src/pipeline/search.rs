//! One definition becomes a better one, by the engine that was asked for, and derived where that is.

use super::only::names;
use super::options::{Engine, Options};
use super::outcome::Derived;
use crate::cost::{Costing, Sweep};
use crate::derive::check::Rules;
use crate::derive::{Derivation, Step};
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::agent::{self, Agent};
use crate::rewrite::egraph::exact::Effort;
use crate::rewrite::egraph::optimize::{Found, SEARCH_SHARE, Settings, optimize as saturate};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::egraph::saturate::{Limits, Report};
use crate::rewrite::explain::{self, Task, Unproved};
use crate::rewrite::inline::{MAX_FLAT, flatten};
use crate::search::Algorithm;
use rustc_hash::FxHashSet;

/// Terms with more nodes than this share of the node limit are left as they are.
const START_SHARE: usize = 4;

/// So many times the node limit may be made on the way to a term without lets.
const ON_THE_WAY: usize = 8;

/// The exact search where nobody asks for it: for small e-graphs it is quicker than trials.
pub const SMALL: Effort = Effort { places: 60, branches: 30 };
/// The exact search where it is asked for.
pub const EXACT: Effort = Effort { places: 600, branches: 3000 };

/// The share of the time that is for the search, where its result is to be derived.
const DERIVED_SHARE: f64 = 0.4;

/// A search that is to be derived starts again without the step that was refused, so often at most.
const MAX_REFUSED: usize = 6;

/// Why a cheaper result is not taken.
pub const WORSE: &str = "what was found costs more at other sizes";

/// What came of a search.
#[derive(Default)]
pub struct Tried {
    /// The best body, of those that are derived where that is asked for.
    pub better: Option<Better>,
    /// What has no derivation.
    pub unproved: Vec<Unproved>,
    /// Why nothing was searched, or why what was found is not taken.
    pub skipped: Option<String>,
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
        Tried { better, unproved: vec![], skipped: self.skipped.clone() }
    }

    fn cost(&self) -> f64 {
        self.better.as_ref().map_or(f64::INFINITY, |b| b.found.cost)
    }

    /// The better one of two; the first of equal ones.
    fn or(mut self, mut other: Tried) -> Tried {
        let unproved = self.unproved.drain(..).chain(other.unproved.drain(..)).collect();
        let better = if other.cost() < self.cost() - 1e-9 { other.better } else { self.better };
        let skipped = self.skipped.or(other.skipped).filter(|_| better.is_none());
        Tried { better, unproved, skipped }
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
}

impl Search<'_> {
    /// The best body that the engine finds; nothing where the definition prints: no rule keeps what is printed
    /// and how often.
    pub fn best(&self) -> Tried {
        let Some(body) = self.def.term() else { return Tried::default() };
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
                let on = first.better.as_ref().map_or_else(Tried::default, |s| {
                    let before = s.derived.as_ref().map_or(&[][..], |d| &d.derivation.steps);
                    self.walked((&s.found.terms, s.found.id), before, Algorithm::Astar, half)
                });
                first.or(on).or(self.walked(input, &[], Algorithm::Astar, half))
            }
        }
    }

    /// What is spent, if a share of what a search may spend is: its result has to be derived too.
    pub fn spent(&self, share: f64) -> Option<&'static str> {
        let whole = if self.options.derive { DERIVED_SHARE } else { 1.0 };
        (self.options.stop)(share * whole)
    }

    /// Equality saturation.
    fn saturated(&self) -> Tried {
        match self.saturate() {
            Ok(Some(found)) if self.options.derive => self.derived(found),
            Ok(Some(found)) => Tried::found(found),
            Ok(None) => Tried::default(),
            Err(why) => Tried::skipped(why),
        }
    }

    /// What saturation finds, or why it is not tried.
    fn saturate(&self) -> Result<Option<Found>, String> {
        let Search { program, def, kept, rules, options } = *self;
        let Some(body) = def.term() else { return Ok(None) };
        let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let most = options.max_nodes.saturating_mul(ON_THE_WAY).min(MAX_FLAT);
        let flatten = |terms: &Terms, id: Id| flatten(program, kept, (terms, id), &params, most);
        let start = flatten(&program.terms, body);
        let start = start.ok_or_else(|| format!("too large: more than {most} nodes without lets and calls"))?;
        let (nodes, allowed) = (start.terms.reachable(start.id).len(), options.max_nodes / START_SHARE);
        if nodes > allowed {
            return Err(format!(
                "too large: {nodes} nodes without lets and calls, and no more than {allowed} are taken"
            ));
        }
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let Ok(mut sweep) = self.sweep() else { return Ok(None) };
        let limits = Limits { nodes: options.max_nodes, rounds: 30, looked: usize::MAX, matches: 500, forget: true };
        let stop = |share: f64| self.spent(share).is_some();
        let settings = Settings {
            rules,
            level: options.float,
            model: options.cost,
            sizes: &options.sizes,
            limits,
            flatten: &flatten,
            restarts: 24,
            trials: 300,
            journal: options.derive,
            effort: if options.exact { EXACT } else { SMALL },
            stop: &stop,
        };
        Ok(saturate(def, start, (&mut costing, &mut sweep), &settings))
    }

    /// What compares bodies with this one at other sizes.
    fn sweep(&self) -> crate::diag::Result<Sweep<'_>> {
        Sweep::new(self.program, self.def, self.options.cost, &self.options.sizes)
    }

    /// The best result of equality saturation that can be derived, from the journal of either way.
    fn derived(&self, mut found: Found) -> Tried {
        let Search { program, def, kept, options, .. } = *self;
        let by_name = self.by_name();
        let stop = |share: f64| (options.stop)(share).is_some();
        let task = Task { program, def, kept, rules: &by_name, level: options.float, model: options.cost, stop: &stop };
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
        Tried { better: best.map(|out| self.told(found, out)), unproved, skipped: None }
    }

    fn by_name(&self) -> Rules<'_> {
        self.rules.iter().map(|r| (r.rule.name.as_str(), r.rule)).collect()
    }

    /// A derived result, with what the programs on the way cost.
    fn told(&self, mut found: Found, mut out: explain::Derived) -> Better {
        let Search { program, def, options, .. } = *self;
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        (found.terms, found.id) = out.candidate.shared.clone();
        found.cost = costing.term(found.id, def, &found.terms);
        let programs: Vec<(Terms, Id)> =
            out.programs.iter().map(|p| explain::running::shared(&out.terms, *p, def, options.cost)).collect();
        let costs: Vec<f64> = programs.iter().map(|(terms, id)| costing.term(*id, def, terms)).collect();
        out.steps.iter_mut().zip(&costs[1..]).for_each(|(step, cost)| step.cost = *cost);
        let derivation = Derivation {
            name: def.name().to_string(),
            params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
            steps: out.steps,
            start: costs[0],
            result: String::new(),
            cost_before: 0.0,
            cost_after: 0.0,
        };
        let derived = Derived { derivation, programs, changes: out.changes };
        Better { found, derived: Some(derived) }
    }

    /// Searches from a term to which the steps `before` lead.
    fn walked(&self, from: (&Terms, Id), before: &[Step], engine: Algorithm, budget: usize) -> Tried {
        let Search { program, def, kept, rules, options } = *self;
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
        if !options.derive {
            return Tried::found(found(best));
        }
        let by_name = self.by_name();
        let all = |share: f64| (options.stop)(share).is_some();
        let task = Task { program, def, kept, rules: &by_name, level, model, stop: &all };
        let (mut count, mut unproved) = (best.steps.len(), vec![]);
        for tries in 0.. {
            let refused = match explain::moves::derived(&task, before, &best, count) {
                Ok((out, dearer)) => {
                    unproved.extend(dearer);
                    return Tried { better: Some(self.told(found(best), out)), unproved, skipped: None };
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
        Tried { better: None, unproved, skipped: None }
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
