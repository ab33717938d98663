//! What searches of one definition taught: the states that they expanded, and the best cost within so many
//! moves of each.
//!
//! A lesson keeps its terms from search to search. A state that is met again is the same one, so what a later
//! search finds below it counts for it as well.

use super::encode::{Graph, graph};
use super::network::Network;
use super::settings::{Settings, Task};
use crate::cost::Costing;
use crate::ir::Id;
use crate::rewrite::agent::bindings;
use crate::rewrite::agent::costs::{Known, TermCost};
use crate::rewrite::agent::optimize::{self, searched};
use crate::rewrite::agent::space::{State, TermSpace};
use crate::rewrite::agent::{Agent, Bind};
use crate::rewrite::egraph::pattern::Compiled;
use crate::rewrite::inline::recursive;
use crate::search::{Algorithm, Cost, Space};
use indexmap::IndexSet;
use rand::RngExt;
use rand::rngs::StdRng;
use rustc_hash::FxBuildHasher;
use std::cell::RefCell;

/// What is learned from one definition.
pub struct Lesson<'a> {
    task: Task<'a>,
    rules: &'a [Compiled<'a>],
    settings: Settings,
    agent: Agent<'a>,
    known: Known,
    /// Terms that were expanded, in order; the root is the first.
    expanded: IndexSet<Id, FxBuildHasher>,
    /// Whether searches make moves by rules.
    rules_apply: bool,
}

/// Moves of one random walk.
const WALK: usize = 8;

/// How one search went.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Searched {
    /// The least cost that was met.
    pub best: f64,
    /// States that were evaluated.
    pub evaluations: usize,
}

impl<'a> Lesson<'a> {
    /// Nothing is known yet. Nothing at all can be where the definition has no body, or prints.
    pub fn new(task: Task<'a>, rules: &'a [Compiled<'a>], settings: &Settings) -> Option<Lesson<'a>> {
        let start = (&task.program.terms, task.def.term()?);
        let agent = Agent::new(task.program, &recursive(task.program), task.def, start, &of(settings, rules, None))?;
        let (known, expanded) = Default::default();
        Some(Lesson { task, rules, settings: *settings, agent, known, expanded, rules_apply: true })
    }

    /// What the definition costs as it is.
    pub fn input(&mut self) -> f64 {
        let root = self.agent.space().root;
        self.costing(|agent, cost| cost.one(agent.space(), root))
    }

    /// Costs terms, and keeps what was found.
    fn costing<R>(&mut self, f: impl FnOnce(&Agent<'a>, &mut TermCost<'_, '_>) -> R) -> R {
        let mut costing = Costing::new(self.task.program, self.settings.model, &[]);
        let mut cost = self.agent.cost(&mut costing, None, std::mem::take(&mut self.known));
        let out = f(&self.agent, &mut cost);
        self.known = cost.known;
        out
    }

    /// How many states were expanded.
    pub fn len(&self) -> usize {
        self.expanded.len()
    }

    /// How many terms are kept.
    pub fn terms(&self) -> usize {
        self.agent.space().rewrites.borrow().terms.len()
    }

    /// Forgets all that was learned.
    pub fn forget(&mut self) {
        if let Some(new) = Lesson::new(self.task, self.rules, &self.settings) {
            *self = new;
        }
    }

    /// Searches, and keeps what was expanded. Chance begins at the seed.
    pub fn search(&mut self, network: Option<&Network>, seed: u64) -> Searched {
        let Settings { engine, budget, depth, .. } = self.settings;
        self.searched(engine, (budget, depth), network, seed)
    }

    /// Searches by moves of bindings alone, without a network, and keeps what was expanded; how many states were
    /// evaluated.
    pub fn bind(&mut self) -> usize {
        let Settings { binding, depth, bind, .. } = self.settings;
        if binding == 0 || bind == Bind::Placed {
            return 0;
        }
        self.rules_apply = false;
        let found = self.searched(Algorithm::Astar, (binding, depth), None, 0);
        self.rules_apply = true;
        found.evaluations
    }

    /// Walks at random from the definition, from the cheapest state, and from any, and keeps what was met: a
    /// search goes only where it expects something, and would never learn that there is more elsewhere.
    pub fn explore(&mut self, rng: &mut StdRng) -> usize {
        let root = self.agent.space().root;
        let mut evaluations = 0;
        let walks = (self.settings.walks / WALK).max(usize::from(self.settings.walks > 0));
        for k in 0..walks {
            let known = self.expanded.len();
            let cheap = |id: &&Id| self.known.state(**id).unwrap_or(f64::INFINITY);
            let from = match k % 3 {
                0 => Some(root),
                1 => self.expanded.iter().min_by(|a, b| cheap(a).total_cmp(&cheap(b))).copied(),
                _ if known > 0 => self.expanded.get_index(rng.random_range(0..known)).copied(),
                _ => None,
            };
            self.agent.space_mut().root = from.unwrap_or(root);
            evaluations += self.searched(Algorithm::Random, (WALK + 1, WALK), None, rng.random()).evaluations;
        }
        self.agent.space_mut().root = root;
        evaluations
    }

    fn searched(
        &mut self,
        engine: Algorithm,
        (budget, depth): (usize, usize),
        network: Option<&Network>,
        seed: u64,
    ) -> Searched {
        let settings = optimize::Settings { engine, budget, depth, seed, ..of(&self.settings, self.rules, network) };
        let known = std::mem::take(&mut self.expanded);
        let watched = Watched { space: self.agent.space(), rules: self.rules_apply, expanded: RefCell::new(known) };
        let mut costing = Costing::new(self.task.program, settings.model, &[]);
        let mut cost = self.agent.cost(&mut costing, network, std::mem::take(&mut self.known));
        let found = searched(&watched, &mut Watching(&mut cost), &settings);
        (self.known, self.expanded) = (cost.known, watched.expanded.into_inner());
        let best = found.best.map_or(f64::INFINITY, |(_, cost)| cost);
        Searched { best, evaluations: found.tally.evaluations }
    }

    /// The least cost that was met within so many moves of each expanded state, from 0 on: what is learned.
    /// `floor` is a cost that every term can be brought to, however many moves that takes; it counts for the
    /// most moves.
    pub fn least(&mut self, floor: Option<f64>) -> Vec<Vec<f64>> {
        let steps = self.settings.steps;
        let expanded = std::mem::take(&mut self.expanded);
        let (own, below) = self.costing(|agent, cost| {
            let (mut own, mut below): (Vec<f64>, Vec<(f64, Vec<usize>)>) = Default::default();
            for id in &expanded {
                let moves = agent.space().rewrites.borrow_mut().of(*id);
                let (mut least, mut known) = (f64::INFINITY, vec![]);
                for to in moves.iter().map(|m| m.to) {
                    match expanded.get_index_of(&to) {
                        Some(k) => known.push(k),
                        None => least = least.min(cost.one(agent.space(), to)),
                    }
                }
                cost.split(&agent.space().rewrites.borrow().terms, *id);
                own.push(cost.one(agent.space(), *id));
                below.push((least, known));
            }
            (own, below)
        });
        self.expanded = expanded;
        let mut all = vec![own.clone()];
        for step in 1..=steps {
            let last = &all[step - 1];
            let least = |(k, (leaves, known)): (usize, &(f64, Vec<usize>))| {
                let least = known.iter().map(|k| last[*k]).fold(own[k].min(*leaves), f64::min);
                if step == steps { least.min(floor.unwrap_or(least)) } else { least }
            };
            all.push(below.iter().enumerate().map(least).collect());
        }
        (0..own.len()).map(|k| all.iter().map(|costs| costs[k]).collect()).collect()
    }

    /// The graph of an expanded state.
    pub fn graph(&self, state: usize) -> Graph {
        let terms = &self.agent.space().rewrites.borrow().terms;
        graph(terms, self.expanded[state], &|id| self.known.part(id))
    }

    /// How each expanded state but the root is made of one before it: which one, and by which move; and at the
    /// end whether any was expanded.
    pub fn record(&self) -> Vec<u32> {
        let mut ways: Vec<Option<(u32, u32)>> = vec![None; self.expanded.len()];
        for (at, id) in self.expanded.iter().enumerate() {
            for (by, rewrite) in self.agent.space().rewrites.borrow_mut().of(*id).iter().enumerate() {
                if let Some(to) = self.expanded.get_index_of(&rewrite.to).filter(|to| *to > at) {
                    ways[to].get_or_insert((at as u32, by as u32));
                }
            }
        }
        let steps = ways.into_iter().flatten().flat_map(|(at, by)| [at, by]);
        steps.chain([u32::from(!self.expanded.is_empty())]).collect()
    }

    /// Expands what a record says. Whether that was possible: the record may be of another program.
    pub fn replay(&mut self, record: &[u32]) -> bool {
        self.forget();
        let [steps @ .., searched] = record else { return false };
        if *searched == 0 {
            return steps.is_empty();
        }
        self.expanded.insert(self.agent.space().root);
        let mut rewrites = self.agent.space().rewrites.borrow_mut();
        rewrites.of(self.agent.space().root);
        steps.chunks(2).all(|way| {
            let [at, by] = way else { return false };
            let Some(from) = self.expanded.get_index(*at as usize) else { return false };
            let Some(rewrite) = rewrites.of(*from).get(*by as usize).copied() else { return false };
            rewrites.of(rewrite.to);
            self.expanded.insert(rewrite.to)
        })
    }
}

/// How a definition is searched. With a network its states are searched as without one.
pub(super) fn of<'a>(
    settings: &Settings,
    rules: &'a [Compiled<'a>],
    value: Option<&'a Network>,
) -> optimize::Settings<'a> {
    let Settings { engine, budget, depth, level, model, seed, bind, .. } = *settings;
    let (bindings, phased) = (bindings::ALL, false);
    optimize::Settings {
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
        stop: &|| false,
    }
}

/// A space that remembers which states were expanded.
struct Watched<'s, 'a> {
    space: &'s TermSpace<'a>,
    /// Whether moves are made by rules.
    rules: bool,
    expanded: RefCell<IndexSet<Id, FxBuildHasher>>,
}

impl Space for Watched<'_, '_> {
    type State = State;
    type Move = u32;

    fn root(&self) -> State {
        self.space.root()
    }

    fn moves(&self, at: &State) -> Vec<u32> {
        let mut moves = self.space.moves(at);
        if !self.rules {
            let mut rewrites = self.space.rewrites.borrow_mut();
            let all = rewrites.of(at.id);
            moves.retain(|k| rewrites.binds(&all[*k as usize]));
        }
        if !moves.is_empty() {
            self.expanded.borrow_mut().insert(at.id);
        }
        moves
    }

    fn apply(&self, at: &State, by: &u32) -> State {
        self.space.apply(at, by)
    }

    fn terminal(&self, at: &State) -> bool {
        self.space.terminal(at)
    }

    fn depth(&self, at: &State) -> usize {
        self.space.depth(at)
    }

    fn key(&self, at: &State, level: usize) -> u64 {
        self.space.key(at, level)
    }

    fn solution(&self, at: &State) -> bool {
        self.space.solution(at)
    }
}

struct Watching<'c, 'a, 'b>(&'c mut TermCost<'a, 'b>);

impl Cost<Watched<'_, '_>> for Watching<'_, '_, '_> {
    fn costs(&mut self, space: &Watched<'_, '_>, states: &[State]) -> Vec<f64> {
        self.0.costs(space.space, states)
    }

    fn values(&mut self, space: &Watched<'_, '_>, states: &[State]) -> Vec<f64> {
        self.0.values(space.space, states)
    }
}
