//! One definition through a search over its terms: the best term that was met.

use super::bindings::{self, Bindings, Moves};
use super::costs::{Known, TermCost};
use super::oracle::Oracle;
use super::params::Params;
use super::rewrites::{Described, Rewrites};
use super::space::TermSpace;
use super::value::{Network, Valuing};
use crate::cost::{Costing, Model};
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::inline::{MAX_FLAT, flatten};
use crate::rules::Level;
use crate::search::{self, Algorithm, Astar, Cost, Found, Limits, Mb2fbs, Mcts, Space, Tally};
use rustc_hash::FxHashSet;
use std::cell::RefCell;

/// What becomes of bindings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bind {
    /// States have no lets and no calls; what is shared or independent of a loop is bound where that costs
    /// least, and costs count the result.
    Placed,
    /// Lets and calls are moved by rewrites, one at a time (Knossos, Table 3).
    Searched,
}

/// How to search.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The search.
    pub engine: Algorithm,
    /// The rules.
    pub rules: &'a [Compiled<'a>],
    /// What becomes of bindings.
    pub bind: Bind,
    /// The moves that bind and unbind, where bindings are searched.
    pub bindings: Bindings,
    /// Whether the first half of the moves is by rules of phase 1 alone.
    pub phased: bool,
    /// What the rules keep.
    pub level: Level,
    /// The cost model.
    pub model: Model,
    /// States evaluated at most.
    pub budget: usize,
    /// Moves from the input at most.
    pub depth: usize,
    /// Where chance begins.
    pub seed: u64,
    /// Says what may be expected of terms; nothing is, where there is none.
    pub value: Option<&'a Network>,
    /// Whether the search is to end with the best so far.
    pub stop: &'a dyn Fn() -> bool,
}

/// The best term, and the way to it.
pub struct Best {
    /// The arena of all its terms, which are over the definition's parameters.
    pub terms: Terms,
    /// The term.
    pub id: Id,
    /// Its cost.
    pub cost: f64,
    /// The state in which the search began.
    pub start: Id,
    /// What led from there to the term, but for the bindings that were placed.
    pub steps: Vec<Step>,
    /// What was done.
    pub tally: Tally,
    /// Evaluations made and best cost then, each time that it fell.
    pub curve: Vec<(usize, f64)>,
}

/// One move.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The rule, or the move that binds or unbinds.
    pub name: String,
    /// Where: numbers of children from the root.
    pub place: Vec<usize>,
    /// The cost of the term after it.
    pub cost: f64,
    /// The term before it, with a hole ([`super::rewrites::is_hole`]) in place of what is rewritten.
    pub around: Id,
    /// The term after it.
    pub to: Id,
    redex: (u32, Id),
}

/// Terms with more nodes without lets keep them: every place where a shared part stands has moves of its
/// own, which are too many there.
const MAX_PLACED: u64 = 5_000;

/// The terms of one definition, ready to be searched.
pub struct Agent<'a> {
    space: TermSpace<'a>,
    params: Params,
    def: &'a Def,
    bind: Bind,
    model: Model,
}

impl<'a> Agent<'a> {
    /// Begins at a term over the parameters of a definition; calls of `kept` stay. Nothing where the term
    /// prints: what is printed, and in which order, no rule keeps; nor where it is too large without calls.
    pub fn new(
        program: &'a Program,
        kept: &FxHashSet<Fun>,
        def: &'a Def,
        start: (&Terms, Id),
        settings: &Settings<'a>,
    ) -> Option<Agent<'a>> {
        let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let flat = flatten(program, kept, start, &tys, MAX_FLAT)?;
        if flat.terms.reachable(flat.id).iter().any(|id| flat.terms.head(*id) == Head::Print) {
            return None;
        }
        let mut terms = Terms::default();
        let large = flat.terms.size(flat.id) > MAX_PLACED;
        let bind = if large { Bind::Searched } else { settings.bind };
        let (body, bindings) = match bind {
            Bind::Placed => (terms.import(&flat.terms, flat.id), bindings::NONE),
            Bind::Searched => (terms.import(start.0, start.1), settings.bindings),
        };
        // Programs that differ in names only shall come out the same.
        terms.forget_hints();
        let params = Params::of(def);
        let root = params.closed(&mut terms, body);
        let oracle = Oracle::new(def, &params.funs, settings.level);
        let moves = Moves { program, kept: kept.clone(), rules: settings.rules, bindings };
        let rewrites = RefCell::new(Rewrites::new(terms, oracle, moves));
        let space = TermSpace { rewrites, root, depth: settings.depth, phased: settings.phased };
        Some(Agent { space, params, def, bind, model: settings.model })
    }

    /// The states and moves.
    pub fn space(&self) -> &TermSpace<'a> {
        &self.space
    }

    /// The states and moves, to be begun elsewhere.
    pub fn space_mut(&mut self) -> &mut TermSpace<'a> {
        &mut self.space
    }

    /// What states cost, and what a network expects of them.
    pub fn cost<'s, 'b>(
        &'s self,
        costing: &'s mut Costing<'b>,
        value: Option<&'s Network>,
        known: Known,
    ) -> TermCost<'s, 'b> {
        let placed = self.bind == Bind::Placed;
        let (model, def, params, valuing) = (self.model, self.def, &self.params, value.map(Valuing::new));
        TermCost { model, costing, def, params, placed, known, valuing }
    }

    /// Searches for the best term. The settings may differ from those of the space in what is no matter of
    /// it: the search, its budget, chance, and the network.
    pub fn search(&self, costing: &mut Costing<'_>, settings: &Settings<'_>) -> Option<Best> {
        let (placed, model) = (self.bind == Bind::Placed, self.model);
        let (def, params) = (self.def, &self.params);
        let mut cost = self.cost(costing, settings.value, Known::default());
        let Found { best, moves, tally, curve } = searched(&self.space, &mut cost, settings);
        let (state, cost_of_best) = best?;
        let mut best = Best {
            terms: Terms::default(),
            id: state.id,
            cost: cost_of_best,
            start: self.space.root,
            steps: self.told(&mut cost, &moves),
            tally,
            curve,
        };
        let mut rewrites = self.space.rewrites.borrow_mut();
        let mut out = |rewrites: &mut Rewrites<'_>, id: Id| {
            let id = params.restored(&mut rewrites.terms, id);
            best.terms.import(&rewrites.terms, id)
        };
        best.start = out(&mut rewrites, best.start);
        for step in &mut best.steps {
            (step.around, step.to) = (out(&mut rewrites, step.around), out(&mut rewrites, step.to));
        }
        best.id = match placed {
            true => {
                let (terms, id) = super::placed::placed(&mut rewrites, params, def, state.id, model);
                best.terms.import(&terms, id)
            }
            false => out(&mut rewrites, state.id),
        };
        let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        crate::types::verify::closed(&best.terms, best.id, &tys).ok()?;
        Some(best)
    }

    /// Searches make a step no more, wherever the same part stands.
    pub fn refuse(&self, step: &Step) {
        self.space.rewrites.borrow_mut().refuse(step.redex);
    }

    /// The moves with their names, places, and what the term costs after each.
    fn told(&self, cost: &mut TermCost<'_, '_>, moves: &[u32]) -> Vec<Step> {
        let mut steps = vec![];
        let mut at = self.space.root();
        for by in moves {
            let described = {
                let mut rewrites = self.space.rewrites.borrow_mut();
                let rewrite = rewrites.of(at.id)[*by as usize];
                rewrites.describe(at.id, &rewrite)
            };
            let before = at.id;
            at = self.space.apply(&at, by);
            self.space.rewrites.borrow_mut().name_as_before((before, at.id), &described.place);
            let Described { name, place, redex, around } = described;
            steps.push(Step { name, place, cost: cost.costs(&self.space, &[at])[0], around, to: at.id, redex });
        }
        steps
    }
}

/// States that wait at once, at most.
const MEMORY: usize = 1_000_000;
/// States of a beam.
const BEAM: usize = 32;

/// States that a network evaluates together at least (Knossos, Table 1).
const BATCH: usize = 16;

/// Searches a space of terms by the engine of the settings.
pub(super) fn searched<S: Space, C: Cost<S>>(space: &S, cost: &mut C, settings: &Settings<'_>) -> Found<S> {
    let (limits, depth) = (Limits { evaluations: settings.budget, stop: settings.stop }, settings.depth);
    let alternate = settings.value.is_some();
    let batch = if alternate { BATCH } else { 1 };
    match settings.engine {
        Algorithm::Greedy => search::greedy(space, cost, &limits),
        Algorithm::Random => search::random(space, cost, &limits, depth, settings.seed),
        Algorithm::Beam => search::mb2fbs(space, cost, &limits, &Mb2fbs::beam(BEAM)),
        Algorithm::Astar => search::astar(space, cost, &limits, &Astar { depth, memory: MEMORY, batch, alternate }),
        Algorithm::Mb2fbs => search::mb2fbs(space, cost, &limits, &Mb2fbs::uncontrolled(BEAM - 2, 2)),
        Algorithm::Mcts => search::mcts(space, cost, &limits, &Mcts::published(depth, settings.seed)),
    }
}
