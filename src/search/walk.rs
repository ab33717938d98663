//! Walks that keep one state: to the best child each time, or to any.

use super::run::{Node, Run};
use super::{Cost, Found, Limits, Space};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Goes to the child with the least of cost less expected fall, for as long as that is better than
/// the state itself, or the state is no solution yet.
pub fn greedy<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>) -> Found<S> {
    let (mut run, root) = Run::begin(space, cost, limits);
    let mut at = root;
    while let Some(node) = at.take().filter(|n| !space.terminal(&n.state)) {
        if run.over() {
            break;
        }
        run.tally.held = 1;
        let mut best: Option<Node<S>> = None;
        for child in run.expand(&node) {
            if best.as_ref().is_none_or(|b| child.cost - child.value < b.cost - b.value) {
                best = Some(child);
            }
        }
        let better = |b: &Node<S>| b.cost - b.value < node.cost || !space.solution(&node.state);
        at = best.filter(better);
    }
    run.end()
}

/// Walks to a random child each time; at an end it begins again at the root, until the evaluations are
/// spent. A walk is at most `depth` moves long.
pub fn random<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>, depth: usize, seed: u64) -> Found<S> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut run, root) = Run::begin(space, cost, limits);
    let Some(root) = root else { return run.end() };
    run.tally.held = 1;
    while !run.over() {
        let (mut node, mut moved) = (root.clone(), false);
        for _ in 0..depth {
            let moves = space.moves(&node.state);
            if moves.is_empty() || run.over() {
                break;
            }
            let by = moves[rng.random_range(0..moves.len())].clone();
            match run.follow(&node, by) {
                Some(next) => (node, moved) = (next, true),
                None => break,
            }
        }
        if !moved {
            break;
        }
    }
    run.end()
}
