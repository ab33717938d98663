//! A* over states with a budget of moves (Knossos, Algorithm 2): the state goes first from which the
//! lowest cost is expected, `cost - value`. A state that was seen before is looked at again only where
//! more moves are left.

use super::frontier::Frontier;
use super::run::{Node, Run};
use super::{Cost, Found, Limits, Space};
use rustc_hash::{FxHashMap, FxHashSet};

/// How to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Astar {
    /// States deeper than this are not expanded.
    pub depth: usize,
    /// States that wait at once, at most.
    pub memory: usize,
    /// States that are evaluated together, at least, where so many are left: further states are expanded
    /// until there are as many.
    pub batch: usize,
    /// Whether every second state is the cheapest one, whatever is expected of it: where expectations are wrong
    /// the search then still does half of what it would do without them (as planners alternate between
    /// heuristics; Röger and Helmert, 2010).
    pub alternate: bool,
}

/// Searches.
pub fn astar<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>, settings: &Astar) -> Found<S> {
    let (mut run, root) = Run::begin(space, cost, limits);
    // The least depth at which each state was met.
    let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
    let mut taken: FxHashSet<(u64, usize)> = FxHashSet::default();
    let mut open = Open::new(settings);
    if let Some(root) = root {
        seen.insert(space.key(&root.state, 0), 0);
        open.push(root);
    }
    while !run.over() {
        let mut made = vec![];
        while made.len() < settings.batch.max(1) {
            let Some(node) = open.pop() else { break };
            if node.depth >= settings.depth || space.terminal(&node.state) {
                continue;
            }
            // A shorter way to this state was found while it waited.
            let key = space.key(&node.state, 0);
            if seen.get(&key).is_some_and(|d| *d < node.depth) {
                continue;
            }
            // It waited twice, and had its turn.
            if settings.alternate && !taken.insert((key, node.depth)) {
                continue;
            }
            open.turn += 1;
            made.extend(run.children_where(&node, |state| {
                let depth = space.depth(state);
                let at = seen.entry(space.key(state, 0)).or_insert(usize::MAX);
                let new = depth < *at;
                *at = depth.min(*at);
                new
            }));
        }
        if made.is_empty() {
            break;
        }
        for child in run.evaluate(made) {
            run.note(&child);
            open.push(child);
        }
        run.tally.held = run.tally.held.max(open.len() + seen.len());
    }
    run.end()
}

/// The states that wait, by what is expected of them, and by cost where both have their turn.
struct Open<S: Space> {
    expected: Frontier<Node<S>>,
    cheap: Option<Frontier<Node<S>>>,
    turn: usize,
}

impl<S: Space> Open<S> {
    fn new(settings: &Astar) -> Open<S> {
        let cheap = settings.alternate.then(|| Frontier::new(settings.memory));
        Open { expected: Frontier::new(settings.memory), cheap, turn: 0 }
    }

    fn push(&mut self, node: Node<S>) {
        if let Some(cheap) = &mut self.cheap {
            cheap.push(-node.cost, node.clone());
        }
        self.expected.push(node.value - node.cost, node);
    }

    fn pop(&mut self) -> Option<Node<S>> {
        let cheap = self.cheap.as_mut().filter(|_| self.turn % 2 == 1);
        cheap.and_then(Frontier::pop).or_else(|| self.expected.pop())
    }

    fn len(&self) -> usize {
        self.expected.len() + self.cheap.as_ref().map_or(0, Frontier::len)
    }
}
