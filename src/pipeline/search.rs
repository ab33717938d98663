//! One definition becomes a better one, by the engine that was asked for, and derived where that is.

use super::only::names;
use super::{Derived, Engine, Options};
use crate::cost::Costing;
use crate::derive::check::Rules;
use crate::derive::{Derivation, Step};
use crate::ir::{Def, Fun, Id, Program, Terms, Ty};
use crate::rewrite::agent::{self, Agent};
use crate::rewrite::egraph::exact::Effort;
use crate::rewrite::egraph::optimize::{Found, SEARCH_SHARE, Settings, optimize as saturate};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::egraph::saturate::{Limits, Report};
use crate::rewrite::explain::{self, Task};
use crate::rewrite::inline::flatten;
use rustc_hash::FxHashSet;

/// Terms with more nodes than this share of the node limit are left as they are.
const START_SHARE: usize = 4;

/// The exact search where nobody asks for it: for small e-graphs it is quicker than trials.
pub const SMALL: Effort = Effort { places: 60, branches: 30 };
/// The exact search where it is asked for.
pub const EXACT: Effort = Effort { places: 600, branches: 3000 };

/// A search that is to be derived starts again without the step that was refused, so often at most.
const MAX_REFUSED: usize = 6;

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
    /// The best body that the engine finds.
    pub fn best(&self) -> Option<Better> {
        let input = (&self.program.terms, self.def.term()?);
        let budget = self.options.budget;
        match self.options.engine {
            Engine::Egraph => self.saturated(),
            Engine::Agent(engine) => self.walked(input, &[], engine, budget),
            Engine::Auto => {
                let first = self.saturated();
                let half = (budget / 2).max(1);
                let on = first.as_ref().and_then(|s| {
                    let before = s.derived.as_ref().map_or(&[][..], |d| &d.derivation.steps);
                    self.walked((&s.found.terms, s.found.id), before, agent::Engine::Astar, half)
                });
                let anew = self.walked(input, &[], agent::Engine::Astar, half);
                let all = [first, on, anew].into_iter().flatten();
                // The first of equal ones.
                all.reduce(|best, other| if other.found.cost < best.found.cost - 1e-9 { other } else { best })
            }
        }
    }

    /// Equality saturation.
    fn saturated(&self) -> Option<Better> {
        let Search { program, def, kept, rules, options } = *self;
        let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let flatten = |terms: &Terms, id: Id| flatten(program, kept, terms, id, &params);
        let start = flatten(&program.terms, def.term()?)?;
        if start.terms.reachable(start.id).len() > options.max_nodes / START_SHARE {
            return None;
        }
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let limits = Limits { nodes: options.max_nodes, rounds: 30, matches: 500 };
        let stop = |share: f64| (options.stop)(share).is_some();
        let settings = Settings {
            rules,
            level: options.float,
            model: options.cost,
            sizes: &options.sizes,
            limits,
            flatten: &flatten,
            restarts: 4,
            trials: 300,
            journal: options.derive,
            effort: if options.exact { EXACT } else { SMALL },
            stop: &stop,
        };
        let found = saturate(def, start, &mut costing, &settings)?;
        if options.derive { self.derived(found) } else { Some(Better { found, derived: None }) }
    }

    /// The best result of equality saturation that can be derived.
    fn derived(&self, mut found: Found) -> Option<Better> {
        let Search { program, def, kept, options, .. } = *self;
        let by_name = self.by_name();
        let task = Task { program, def, kept, rules: &by_name, level: options.float, model: options.cost };
        let out = explain::derived(&task, found.journal.as_mut()?)?;
        Some(self.told(found, out))
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
        let derived = Derived { derivation, programs, changes: out.changes, given_up: out.given_up };
        Better { found, derived: Some(derived) }
    }

    /// Searches from a term to which the steps `before` lead.
    fn walked(&self, from: (&Terms, Id), before: &[Step], engine: agent::Engine, budget: usize) -> Option<Better> {
        let Search { program, def, kept, rules, options } = *self;
        let Options { float: level, cost: model, depth, seed, bind, phased, value, .. } = *options;
        let bindings = std::array::from_fn(|k| names(&options.only, agent::bindings::NAMES[k], agent::bindings::GROUP));
        let stop = || (options.stop)(SEARCH_SHARE).is_some();
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
        let agent = Agent::new(program, kept, def, from, &settings)?;
        let mut best = agent.search(&mut costing, &settings)?;
        if !options.derive {
            return Some(Better { found: found(best), derived: None });
        }
        let by_name = self.by_name();
        let task = Task { program, def, kept, rules: &by_name, level, model };
        let (mut count, mut given_up) = (best.steps.len(), vec![]);
        for tries in 0.. {
            match explain::moves::derived(&task, before, &best, count) {
                Ok(mut out) => {
                    out.given_up = given_up;
                    return Some(self.told(found(best), out));
                }
                Err(refused) => {
                    given_up.push(refused.why);
                    let step = refused.step?;
                    if tries < MAX_REFUSED {
                        agent.refuse(&best.steps[step]);
                        best = agent.search(&mut costing, &settings)?;
                        count = best.steps.len();
                    } else {
                        // At last the cheapest term before the step that is refused.
                        let to = (0..step).min_by(|a, b| best.steps[*a].cost.total_cmp(&best.steps[*b].cost))?;
                        count = to + 1;
                    }
                }
            }
        }
        None
    }
}

/// What a search of terms found.
fn found(best: agent::optimize::Best) -> Found {
    let mut report = Report::default();
    for step in best.steps {
        *report.fired.entry(step.name).or_default() += 1;
    }
    Found { terms: best.terms, id: best.id, cost: best.cost, reports: vec![report], journal: None, proved: false }
}
