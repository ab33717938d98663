//! Memory-bounded best-first beam search (Gao et al., AAAI 2022, Algorithm 2), of which breadth-first,
//! best-first, greedy and beam searches are settings (its Table 1).
//!
//! As published, a complete state counts when its turn comes, not when it is made: one that is dropped
//! before is never returned.

use super::frontier::Frontier;
use super::run::{Node, Run};
use super::{Cost, Found, Limits, Space};

/// How states of different depth compare.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Priority {
    /// By cost.
    Cost,
    /// By the fall of cost that is still due for each move that is left, `(X - cost) / (D - depth)` with X
    /// the best known cost and D a multiple of the greatest depth that grows from pass to pass.
    Due {
        /// Moves to a complete state.
        depth: usize,
    },
}

/// Stands for the best known cost in the first pass.
const UNKNOWN: f64 = 1e9;

/// The settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mb2fbs {
    /// β1: states expanded in one iteration, which pushes the search forward.
    pub forward: usize,
    /// β2: further states kept for the next iteration, which pushes it onward.
    pub onward: usize,
    /// β: states expanded at one depth in a pass.
    pub expanded: usize,
    /// M: states held.
    pub memory: usize,
    /// How states compare.
    pub priority: Priority,
    /// How often the search runs.
    pub passes: usize,
}

/// No bound.
const ALL: usize = usize::MAX;

impl Mb2fbs {
    fn one(forward: usize, onward: usize, expanded: usize, memory: usize) -> Mb2fbs {
        Mb2fbs { forward, onward, expanded, memory, priority: Priority::Cost, passes: 1 }
    }

    /// Breadth-first search.
    pub fn breadth_first() -> Mb2fbs {
        Mb2fbs::one(ALL, 0, ALL, ALL)
    }

    /// Best-first search.
    pub fn best_first() -> Mb2fbs {
        Mb2fbs::k_best_first(1)
    }

    /// Best-first search that expands the k best states at a time (Felner, Kraus and Korf, 2003).
    pub fn k_best_first(k: usize) -> Mb2fbs {
        Mb2fbs::one(k, ALL, ALL, ALL)
    }

    /// Best-first search that holds so many states.
    pub fn bounded(memory: usize) -> Mb2fbs {
        Mb2fbs::one(1, ALL, ALL, memory)
    }

    /// Greedy search.
    pub fn greedy() -> Mb2fbs {
        Mb2fbs::one(1, 0, 1, 1)
    }

    /// Beam search.
    pub fn beam(size: usize) -> Mb2fbs {
        Mb2fbs::one(size, 0, size, size)
    }

    /// Best-first beam search (Meister, Vieira and Cotterell, 2020) of trees so deep.
    pub fn best_first_beam(size: usize, depth: usize) -> Mb2fbs {
        Mb2fbs::one(1, size.saturating_sub(1), size, depth.saturating_mul(size))
    }

    /// The search that pushes forward and onward, expanding at most `forward + onward` states of a depth.
    pub fn controlled(forward: usize, onward: usize, depth: usize) -> Mb2fbs {
        let size = forward.saturating_add(onward);
        Mb2fbs::one(forward, onward, size, depth.saturating_mul(size))
    }

    /// The search that pushes forward and onward.
    pub fn uncontrolled(forward: usize, onward: usize) -> Mb2fbs {
        Mb2fbs::one(forward, onward, ALL, forward.saturating_add(onward))
    }
}

/// Searches.
pub fn mb2fbs<S: Space, C: Cost<S>>(space: &S, cost: &mut C, limits: &Limits<'_>, settings: &Mb2fbs) -> Found<S> {
    let (mut run, root) = Run::begin(space, cost, limits);
    if let Some(root) = root {
        for pass in 1..=settings.passes {
            if run.over() {
                break;
            }
            one_pass(&mut run, &root, settings, pass);
        }
    }
    run.end()
}

fn one_pass<S: Space, C: Cost<S>>(run: &mut Run<'_, S, C>, root: &Node<S>, settings: &Mb2fbs, pass: usize) {
    let known = if pass == 1 { UNKNOWN } else { run.best().unwrap_or(UNKNOWN) };
    let rank = |n: &Node<S>| match settings.priority {
        Priority::Cost => -n.cost,
        Priority::Due { depth } => (known - n.cost) / ((pass * depth + 1) as f64 - n.depth as f64),
    };
    let mut expanded: Vec<usize> = vec![];
    let mut open = Frontier::new(settings.memory);
    open.push(rank(root), root.clone());
    while !open.is_empty() && !run.over() {
        let mut next = Frontier::new(settings.memory);
        let mut slot = 0;
        while slot < settings.forward.saturating_add(settings.onward) {
            let Some(node) = open.pop() else { break };
            slot += 1;
            if run.space.terminal(&node.state) {
                run.note(&node);
                continue;
            }
            if slot > settings.forward {
                next.push(rank(&node), node);
                continue;
            }
            if expanded.len() <= node.depth {
                expanded.resize(node.depth + 1, 0);
            }
            if expanded[node.depth] >= settings.expanded {
                continue;
            }
            expanded[node.depth] += 1;
            for child in run.children(&node) {
                if !run.space.terminal(&child.state) {
                    run.note(&child);
                }
                next.push(rank(&child), child);
            }
            run.tally.held = run.tally.held.max(open.len() + next.len());
            if run.over() {
                return;
            }
        }
        open = next;
    }
}
