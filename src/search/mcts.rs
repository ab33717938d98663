//! Monte Carlo tree search with the policies of the Knossos paper (Appendix D): in the tree the child
//! with the greatest mean fall of cost plus a bonus for few visits, below it chance weighted by the
//! fall that a move brings and that is expected after it.

use super::run::{Node, Run};
use super::{Cost, Found, Limits, Space};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mcts {
    /// Moves of one trajectory.
    pub depth: usize,
    /// α: how sharply a rollout prefers what looks better.
    pub sharpness: f64,
    /// β: how much a child with few visits is preferred.
    pub bonus: f64,
    /// Where chance begins.
    pub seed: u64,
}

impl Mcts {
    /// The settings of the paper: α = 5, β = 0.5.
    pub fn published(depth: usize, seed: u64) -> Mcts {
        Mcts { depth, sharpness: 5.0, bonus: 0.5, seed }
    }
}

struct Visited<S: Space> {
    node: Node<S>,
    visits: f64,
    /// The sum of the falls of cost that trajectories through this state found.
    gain: f64,
    /// Children, once the state was visited; nothing before.
    children: Option<Vec<usize>>,
    /// Whether all trajectories through this state have been tried.
    closed: bool,
}

/// Searches until the evaluations are spent, or the whole tree is visited.
pub fn mcts<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>, settings: &Mcts) -> Found<S> {
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let (mut run, root) = Run::begin(space, cost, limits);
    let Some(root) = root else { return run.end() };
    let from = root.cost;
    let mut tree = vec![Visited { node: root, visits: 0.0, gain: 0.0, children: None, closed: false }];
    while !run.over() && !tree[0].closed {
        let path = select(&mut run, &mut tree, settings);
        let leaf = path[path.len() - 1];
        let left = settings.depth.saturating_sub(path.len() - 1);
        let reached = rollout(&mut run, &tree[leaf].node, left, settings, &mut rng);
        // A trajectory counts for a state what it reached from there on.
        let mut least = reached;
        for at in path.iter().rev() {
            least = least.min(tree[*at].node.cost);
            tree[*at].visits += 1.0;
            tree[*at].gain += from - least;
            // Below a state that ends a trajectory nothing is left to try, nor below one whose children are closed.
            let ends = space.terminal(&tree[*at].node.state) || tree[*at].node.depth >= settings.depth;
            tree[*at].closed = ends || tree[*at].children.as_ref().is_some_and(|c| c.iter().all(|k| tree[*k].closed));
        }
        run.tally.held = tree.len();
    }
    run.end()
}

/// Goes down the tree to a state that was not visited before, or that ends a trajectory.
fn select<S: Space, C: Cost<S>>(run: &mut Run<'_, S, C>, tree: &mut Vec<Visited<S>>, settings: &Mcts) -> Vec<usize> {
    let mut path = vec![0];
    loop {
        let at = path[path.len() - 1];
        if tree[at].visits == 0.0 || path.len() > settings.depth || run.space.terminal(&tree[at].node.state) {
            return path;
        }
        if tree[at].children.is_none() {
            let node = tree[at].node.clone();
            let made = run.expand(&node);
            let first = tree.len();
            tree.extend(made.into_iter().map(|node| Visited {
                node,
                visits: 0.0,
                gain: 0.0,
                children: None,
                closed: false,
            }));
            tree[at].children = Some((first..tree.len()).collect());
        }
        let total = tree[at].visits;
        let score = |k: usize| {
            let v = &tree[k];
            let mean = if v.visits > 0.0 { v.gain / v.visits } else { 0.0 };
            mean + settings.bonus * (total.ln().max(0.0) / (v.visits + 1.0)).sqrt()
        };
        let children = tree[at].children.as_deref().unwrap_or_default();
        // The last of equal children would win in `max_by`; the first shall.
        let best =
            children.iter().copied().rev().filter(|k| !tree[*k].closed).max_by(|a, b| score(*a).total_cmp(&score(*b)));
        match best {
            Some(child) => path.push(child),
            None => return path,
        }
    }
}

/// Goes on by chance; the least cost that was met.
fn rollout<S: Space, C: Cost<S>>(
    run: &mut Run<'_, S, C>,
    from: &Node<S>,
    moves: usize,
    settings: &Mcts,
    rng: &mut StdRng,
) -> f64 {
    let mut node = from.clone();
    let mut least = node.cost;
    for _ in 0..moves {
        if run.over() || run.space.terminal(&node.state) {
            break;
        }
        let mut children = run.expand(&node);
        if children.is_empty() {
            break;
        }
        let scores: Vec<f64> = children.iter().map(|c| settings.sharpness * (node.cost - c.cost + c.value)).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        node = children.swap_remove(chosen.unwrap_or(0));
        least = least.min(node.cost);
    }
    least
}
