//! A* over states with a budget of moves (Knossos, Algorithm 2): the state goes first from which the
//! lowest cost is expected, `cost - value`. A state that was seen before is looked at again only where
//! more moves are left.

use super::frontier::Frontier;
use super::run::Run;
use super::{Cost, Found, Limits, Space};
use rustc_hash::FxHashMap;

/// Searches; states deeper than `depth` are not expanded, and at most `memory` wait to be.
pub fn astar<S: Space, C: Cost<S>>(
    space: &S,
    cost: &mut C,
    limits: &Limits<'_>,
    depth: usize,
    memory: usize,
) -> Found<S> {
    let (mut run, root) = Run::begin(space, cost, limits);
    let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
    let mut open = Frontier::new(memory);
    if let Some(root) = root {
        seen.insert(space.key(&root.state, 0), 0);
        open.push(root.value - root.cost, root);
    }
    while let Some(node) = open.pop() {
        if run.over() {
            break;
        }
        if space.terminal(&node.state) || node.depth >= depth {
            continue;
        }
        // A shorter way to this state was found while it waited.
        if seen.get(&space.key(&node.state, 0)).is_some_and(|d| *d < node.depth) {
            continue;
        }
        for child in run.expand(&node) {
            let at = seen.entry(space.key(&child.state, 0)).or_insert(usize::MAX);
            if child.depth < *at {
                *at = child.depth;
                open.push(child.value - child.cost, child);
            }
        }
        run.tally.held = run.tally.held.max(open.len() + seen.len());
    }
    run.end()
}
