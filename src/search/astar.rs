//! A* over states with a budget of moves (Knossos, Algorithm 2): the state goes first from which the
//! lowest cost is expected, `cost - value`. A state that was seen before is looked at again only where
//! more moves are left.

use super::frontier::Frontier;
use super::run::Run;
use super::{Cost, Found, Limits, Space};
use rustc_hash::FxHashMap;

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
}

/// Searches.
pub fn astar<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>, settings: &Astar) -> Found<S> {
    let (mut run, root) = Run::begin(space, cost, limits);
    // The least depth at which each state was met.
    let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
    let mut open = Frontier::new(settings.memory);
    if let Some(root) = root {
        seen.insert(space.key(&root.state, 0), 0);
        open.push(root.value - root.cost, root);
    }
    while !run.over() {
        let mut made = vec![];
        while made.len() < settings.batch.max(1) {
            let Some(node) = open.pop() else { break };
            if node.depth >= settings.depth || space.terminal(&node.state) {
                continue;
            }
            // A shorter way to this state was found while it waited.
            if seen.get(&space.key(&node.state, 0)).is_some_and(|d| *d < node.depth) {
                continue;
            }
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
            open.push(child.value - child.cost, child);
        }
        run.tally.held = run.tally.held.max(open.len() + seen.len());
    }
    run.end()
}
