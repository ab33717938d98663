//! One definition through a search over its terms: the best term that was met.

use super::costs::TermCost;
use super::oracle::Oracle;
use super::rewrites::Rewrites;
use super::space::TermSpace;
use super::value::{Network, Valuing};
use crate::cost::{Costing, Model};
use crate::ir::{Def, Fun, Head, Id, Program, Signature, Terms};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rules::Level;
use crate::search::{self, Astar, Cost, Found, Limits, Mb2fbs, Mcts, Space, Tally};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the searches are described where they are written")]
pub enum Engine {
    Greedy,
    Random,
    Beam,
    Astar,
    Mb2fbs,
    Mcts,
}

impl Engine {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Greedy => "greedy",
            Engine::Random => "random",
            Engine::Beam => "beam",
            Engine::Astar => "astar",
            Engine::Mb2fbs => "mb2fbs",
            Engine::Mcts => "mcts",
        }
    }
}

/// How to search.
pub struct Settings<'a> {
    /// The search.
    pub engine: Engine,
    /// The rules.
    pub rules: &'a [Compiled<'a>],
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
}

/// The best term, and the way to it.
pub struct Best {
    /// Its arena.
    pub terms: Terms,
    /// The term, over the definition's parameters.
    pub id: Id,
    /// Its cost.
    pub cost: f64,
    /// What led to it.
    pub steps: Vec<Step>,
    /// What was done.
    pub tally: Tally,
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
}

/// Closed terms that stand for the parameters of a definition: calls of functions that nothing else
/// names, so that equal subterms are one term at whatever depth they stand.
pub struct Params {
    funs: Vec<Fun>,
}

impl Params {
    fn of(def: &Def) -> Params {
        let fun = |(k, p): (usize, &crate::ir::Param)| {
            Fun::new(Signature { name: format!("parameter {k}"), params: vec![], ret: p.ty })
        };
        Params { funs: def.params.iter().enumerate().map(fun).collect() }
    }

    /// Whether a function stands for a parameter.
    pub fn is_param(&self, fun: Fun) -> bool {
        self.funs.contains(&fun)
    }

    /// The term with calls in place of the parameters.
    fn closed(&self, terms: &mut Terms, id: Id) -> Id {
        let n = self.funs.len();
        terms.map_free(id, 0, &mut |t, i, _, _| t.put(Head::Call(self.funs[n - 1 - i as usize]), []))
    }

    /// The term over the parameters again.
    pub fn restored(&self, terms: &mut Terms, id: Id) -> Id {
        self.restored_at(terms, id, 0, &mut FxHashMap::default())
    }

    fn restored_at(&self, terms: &mut Terms, id: Id, depth: usize, memo: &mut FxHashMap<(Id, usize), Id>) -> Id {
        if let Head::Call(f) = terms.head(id)
            && let Some(k) = self.funs.iter().position(|g| *g == f)
        {
            return terms.var((depth + self.funs.len() - 1 - k) as u32, f.sig().ret);
        }
        if terms.kids(id).is_empty() {
            return id;
        }
        if let Some(done) = memo.get(&(id, depth)) {
            return *done;
        }
        let node = terms.node(id).clone();
        let n = node.kids.len();
        let mut kids = vec![];
        for (k, kid) in node.kids.iter().enumerate() {
            let under = depth + node.head.binds(k, n);
            kids.push(crate::ir::deep(|| self.restored_at(terms, *kid, under, memo)));
        }
        let out = terms.put(node.head, kids);
        memo.insert((id, depth), out);
        out
    }
}

/// Searches from a term over the parameters of a definition. Nothing where the term prints: what is
/// printed, and in which order, no rule keeps.
pub fn optimize(
    program: &Program,
    def: &Def,
    start: (&Terms, Id),
    costing: &mut Costing<'_>,
    settings: &Settings<'_>,
) -> Option<Best> {
    let (params, space) = space(program, def, start, settings.rules, settings.level, settings.depth)?;
    let (known, valuing) = (FxHashMap::default(), settings.value.map(Valuing::new));
    let mut cost = TermCost { model: settings.model, costing, def, params: &params, known, valuing };
    let found = searched(&space, &mut cost, settings);
    let (state, least) = found.best?;
    let steps = told(&space, &mut cost, &found.moves);
    let mut rewrites = space.rewrites.into_inner();
    let id = params.restored(&mut rewrites.terms, state.id);
    Some(Best { terms: rewrites.terms, id, cost: least, steps, tally: found.tally })
}

/// The space of the terms that rewrites lead to, and what stands for the parameters there.
pub(super) fn space<'a>(
    program: &'a Program,
    def: &Def,
    start: (&Terms, Id),
    rules: &'a [Compiled<'a>],
    level: Level,
    depth: usize,
) -> Option<(Params, TermSpace<'a>)> {
    let mut terms = Terms::default();
    let body = terms.import(start.0, start.1);
    if terms.reachable(body).iter().any(|id| terms.head(*id) == Head::Print) {
        return None;
    }
    let params = Params::of(def);
    let root = params.closed(&mut terms, body);
    let oracle = Oracle::new(def, &params.funs, level);
    let rewrites = RefCell::new(Rewrites::new(terms, oracle, program, rules));
    Some((params, TermSpace { rewrites, root, depth }))
}

/// The moves with their names, places, and what the term costs after each.
fn told<'a>(space: &TermSpace<'a>, cost: &mut TermCost<'_, '_>, moves: &[u32]) -> Vec<Step> {
    let mut steps = vec![];
    let mut at = space.root();
    for by in moves {
        let rewrite = space.rewrites.borrow_mut().of(at.id)[*by as usize];
        let (name, place) = space.rewrites.borrow_mut().describe(at.id, &rewrite);
        at = space.apply(&at, by);
        let cost = cost.costs(space, &[at])[0];
        steps.push(Step { name, place, cost });
    }
    steps
}

/// States that wait at once, at most.
const MEMORY: usize = 1_000_000;
/// States of a beam.
const BEAM: usize = 32;

/// States that a network evaluates together at least (Knossos, Table 1).
const BATCH: usize = 16;

/// Searches a space of terms by the engine of the settings.
pub(super) fn searched<S: Space, C: Cost<S>>(space: &S, cost: &mut C, settings: &Settings<'_>) -> Found<S> {
    let (limits, depth) = (Limits::of(settings.budget), settings.depth);
    let alternate = settings.value.is_some();
    let batch = if alternate { BATCH } else { 1 };
    match settings.engine {
        Engine::Greedy => search::greedy(space, cost, &limits),
        Engine::Random => search::random(space, cost, &limits, depth, settings.seed),
        Engine::Beam => search::mb2fbs(space, cost, &limits, &Mb2fbs::beam(BEAM)),
        Engine::Astar => search::astar(space, cost, &limits, &Astar { depth, memory: MEMORY, batch, alternate }),
        Engine::Mb2fbs => search::mb2fbs(space, cost, &limits, &Mb2fbs::uncontrolled(BEAM - 2, 2)),
        Engine::Mcts => search::mcts(space, cost, &limits, &Mcts::published(depth, settings.seed)),
    }
}
