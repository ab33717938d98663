//! The searches, on random trees: settings of MB2FBS are the algorithms they are named after, bounds
//! are kept, and chance comes from the seed alone.

use daedal::search::synthetic::{PathCost, Place, Tree};
use daedal::search::{Astar, Cost, Found, Limits, Mb2fbs, Mcts, Priority, Space, astar, greedy, mb2fbs, mcts, random};
use std::cell::RefCell;
use std::collections::BTreeSet;

fn trees() -> impl Iterator<Item = Tree> {
    (0..60).map(|seed| Tree {
        branching: 2 + seed % 3,
        depth: 3 + (seed % 4) as usize,
        delta: [0.0, 5.0, 20.0, 100.0][(seed / 4 % 4) as usize],
        seed,
    })
}

fn cost(tree: &Tree, at: &Place) -> f64 {
    PathCost.costs(tree, &[*at])[0]
}

fn children(tree: &Tree, at: &Place) -> Vec<Place> {
    tree.moves(at).iter().map(|by| tree.apply(at, by)).collect()
}

/// The state of least cost, the first of equal ones, taken out.
fn take_best(tree: &Tree, open: &mut Vec<Place>) -> Option<Place> {
    let best = (0..open.len()).min_by(|a, b| cost(tree, &open[*a]).total_cmp(&cost(tree, &open[*b])))?;
    Some(open.remove(best))
}

fn run(tree: &Tree, settings: &Mb2fbs) -> Found<Tree> {
    mb2fbs(tree, &mut PathCost, &Limits::of(usize::MAX), settings)
}

/// The best complete state, and how many states were expanded.
fn summary(found: &Found<Tree>) -> (Option<f64>, usize) {
    (found.best.as_ref().map(|(_, c)| *c), found.tally.expansions)
}

/// Best-first search that expands `k` at a time and holds `memory`, written down directly.
fn best_first(tree: &Tree, k: usize, memory: usize) -> (Option<f64>, usize) {
    let (mut open, mut best, mut expanded) = (vec![tree.root()], None::<f64>, 0);
    while !open.is_empty() {
        let batch: Vec<Place> = (0..k).map_while(|_| take_best(tree, &mut open)).collect();
        // What is complete leaves whenever it is looked at, and everything is looked at each time.
        let complete = |p: &Place| tree.terminal(p);
        for done in batch.iter().chain(&open).filter(|p| complete(p)) {
            best = Some(best.map_or(cost(tree, done), |b: f64| b.min(cost(tree, done))));
        }
        let mut next = vec![];
        for at in batch.iter().filter(|p| !complete(p)) {
            expanded += 1;
            next.extend(children(tree, at));
        }
        next.extend(open.iter().filter(|p| !complete(p)));
        next.sort_by(|a, b| cost(tree, a).total_cmp(&cost(tree, b)));
        next.truncate(memory);
        open = next;
    }
    (best, expanded)
}

/// Beam search, written down directly: level by level, the best of each.
fn beam(tree: &Tree, size: usize) -> (Option<f64>, usize) {
    let (mut level, mut expanded) = (vec![tree.root()], 0);
    while !tree.terminal(&level[0]) {
        expanded += level.len();
        level = level.iter().flat_map(|at| children(tree, at)).collect();
        level.sort_by(|a, b| cost(tree, a).total_cmp(&cost(tree, b)));
        level.truncate(size);
    }
    (level.first().map(|p| cost(tree, p)), expanded)
}

/// Best-first search that expands at most `size` states of a depth, written down directly.
fn best_first_beam(tree: &Tree, size: usize, depth: usize) -> (Option<f64>, usize) {
    let (mut open, mut best, mut counts) = (vec![tree.root()], None::<f64>, vec![0; depth + 1]);
    while !open.is_empty() {
        let mut next = vec![];
        for slot in 0..size {
            let Some(at) = take_best(tree, &mut open) else { break };
            if tree.terminal(&at) {
                best = Some(best.map_or(cost(tree, &at), |b: f64| b.min(cost(tree, &at))));
            } else if slot > 0 {
                next.push(at);
            } else if counts[tree.depth(&at)] < size {
                counts[tree.depth(&at)] += 1;
                next.extend(children(tree, &at));
            }
        }
        next.sort_by(|a, b| cost(tree, a).total_cmp(&cost(tree, b)));
        next.truncate(size * depth);
        open = next;
    }
    (best, counts.iter().sum())
}

/// Protects: the eight settings of the published table are the algorithms they are named after.
#[test]
fn settings_are_the_algorithms() {
    for tree in trees() {
        let least = tree.optimum();
        let inner: usize = (0..tree.depth).map(|d| (tree.branching as usize).pow(d as u32)).sum();
        assert_eq!(summary(&run(&tree, &Mb2fbs::breadth_first())), (Some(least), inner), "{tree:?}");
        assert_eq!(summary(&run(&tree, &Mb2fbs::best_first())), best_first(&tree, 1, usize::MAX), "{tree:?}");
        assert_eq!(summary(&run(&tree, &Mb2fbs::best_first())).0, Some(least), "{tree:?}");
        for k in [2, 5] {
            assert_eq!(summary(&run(&tree, &Mb2fbs::k_best_first(k))), best_first(&tree, k, usize::MAX), "{tree:?}");
            assert_eq!(summary(&run(&tree, &Mb2fbs::beam(k))), beam(&tree, k), "{tree:?}");
            let (settings, direct) = (Mb2fbs::best_first_beam(k, tree.depth), best_first_beam(&tree, k, tree.depth));
            assert_eq!(summary(&run(&tree, &settings)), direct, "{tree:?}");
        }
        for memory in [3, 9] {
            assert_eq!(summary(&run(&tree, &Mb2fbs::bounded(memory))), best_first(&tree, 1, memory), "{tree:?}");
        }
        assert_eq!(summary(&run(&tree, &Mb2fbs::greedy())), beam(&tree, 1), "{tree:?}");
    }
}

/// Protects: the controlled search expands no more states than beam search of the same size, the
/// uncontrolled one no more than its proven bound; both return what they found with the way to it.
#[test]
fn bounds_are_kept() {
    for tree in trees() {
        for (forward, onward) in [(1, 1), (3, 2), (6, 2)] {
            let size = forward + onward;
            let controlled = run(&tree, &Mb2fbs::controlled(forward, onward, tree.depth));
            assert!(controlled.tally.expansions <= run(&tree, &Mb2fbs::beam(size)).tally.expansions, "{tree:?}");
            let free = run(&tree, &Mb2fbs::uncontrolled(forward, onward));
            let bound = forward * onward.div_ceil(forward) * tree.depth * (tree.depth + 1) / 2;
            assert!(free.tally.expansions <= bound.max(tree.depth * size), "{tree:?}");
            assert!(free.tally.held <= 2 * size + tree.branching as usize, "{tree:?} held {}", free.tally.held);
            let (state, cost) = free.best.unwrap();
            let end = free.moves.iter().fold(tree.root(), |at, by| tree.apply(&at, by));
            assert_eq!((end, cost), (state, PathCost.costs(&tree, &[state])[0]));
        }
    }
}

/// Protects: a budget of evaluations is never passed, and what was found by then comes back.
#[test]
fn budgets_are_kept() {
    for tree in trees().take(12) {
        for budget in [0, 1, 7, 40] {
            let limits = Limits::of(budget);
            let deep = tree.depth;
            let all = [
                greedy(&tree, &mut PathCost, &limits),
                random(&tree, &mut PathCost, &limits, deep, 1),
                astar(
                    &tree,
                    &mut PathCost,
                    &limits,
                    &Astar { depth: deep, memory: usize::MAX, batch: 1, alternate: false },
                ),
                mb2fbs(&tree, &mut PathCost, &limits, &Mb2fbs::controlled(3, 1, deep)),
                mcts(&tree, &mut PathCost, &limits, &Mcts::published(deep, 1)),
            ];
            for found in all {
                assert!(found.tally.evaluations <= budget, "{tree:?}");
            }
        }
    }
}

/// Protects: the same seed gives the same search, another seed another one.
#[test]
fn chance_comes_from_the_seed() {
    let tree = Tree::published(3);
    let walk = |seed| random(&tree, &mut PathCost, &Limits::of(500), 8, seed).best.map(|(_, c)| c.to_bits());
    assert_eq!(walk(1), walk(1));
    assert_ne!(walk(1), walk(2));
    let tree = Tree { delta: 2.0, ..tree };
    let play = |seed| mcts(&tree, &mut PathCost, &Limits::of(900), &Mcts::published(8, seed)).curve;
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
}

/// Protects: later passes of the published priority only improve on the first, which is a beam search.
#[test]
fn passes_improve() {
    for tree in trees() {
        let due = |passes| {
            let settings =
                Mb2fbs { priority: Priority::Due { depth: tree.depth }, passes, ..Mb2fbs::uncontrolled(4, 2) };
            run(&tree, &settings)
        };
        let (one, five) = (due(1), due(5));
        assert_eq!(summary(&one).0, beam(&tree, 4).0, "{tree:?}");
        assert!(summary(&five).0.unwrap() <= summary(&one).0.unwrap(), "{tree:?}");
    }
}

/// Protects: a tree search that has tried everything ends, with the best there is.
#[test]
fn a_small_tree_is_searched_to_the_end() {
    for seed in 0..20 {
        let tree = Tree { branching: 3, depth: 3, delta: 2.0, seed };
        let found = mcts(&tree, &mut PathCost, &Limits::of(usize::MAX), &Mcts::published(3, seed));
        assert_eq!(found.best.map(|(_, c)| c), Some(tree.optimum()));
    }
}

/// A space in which several ways lead to one state: points of a grid, each with a cost of its own.
struct Grid {
    seed: u64,
    size: u64,
    /// States whose moves were asked for, in order.
    expanded: RefCell<Vec<(u64, u64)>>,
}

impl Grid {
    fn cost(&self, (x, y): (u64, u64)) -> f64 {
        let mixed = (x * 31 + y * 17 + self.seed * 101).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        100.0 + (mixed % 1000) as f64 / 10.0 - 3.0 * (x + y) as f64
    }

    /// By how much the cost can fall from a state on.
    fn fall(&self, (x, y): (u64, u64)) -> f64 {
        let all = (x..self.size).flat_map(|a| (y..self.size).map(move |b| (a, b)));
        self.cost((x, y)) - all.map(|p| self.cost(p)).fold(f64::INFINITY, f64::min)
    }
}

impl Space for Grid {
    type State = (u64, u64);
    type Move = (u64, u64);

    fn root(&self) -> (u64, u64) {
        (0, 0)
    }

    fn moves(&self, (x, y): &(u64, u64)) -> Vec<(u64, u64)> {
        self.expanded.borrow_mut().push((*x, *y));
        [(1, 0), (0, 1)].into_iter().filter(|(a, b)| x + a < self.size && y + b < self.size).collect()
    }

    fn apply(&self, (x, y): &(u64, u64), (a, b): &(u64, u64)) -> (u64, u64) {
        (x + a, y + b)
    }

    fn terminal(&self, state: &(u64, u64)) -> bool {
        *state == (self.size - 1, self.size - 1)
    }

    fn depth(&self, (x, y): &(u64, u64)) -> usize {
        (x + y) as usize
    }

    fn key(&self, (x, y): &(u64, u64), _: usize) -> u64 {
        x * 1000 + y
    }

    fn solution(&self, _: &(u64, u64)) -> bool {
        true
    }
}

/// Costs of a grid with a perfect forecast, and the states that were expanded.
struct Perfect;

impl Cost<Grid> for Perfect {
    fn costs(&mut self, grid: &Grid, states: &[(u64, u64)]) -> Vec<f64> {
        states.iter().map(|s| grid.cost(*s)).collect()
    }

    fn values(&mut self, grid: &Grid, states: &[(u64, u64)]) -> Vec<f64> {
        states.iter().map(|s| grid.fall(*s)).collect()
    }
}

/// Protects: with a perfect forecast A* goes straight to the best state, and expands no state from
/// which that cannot be reached; without one it still finds it, and looks at no state twice.
#[test]
fn a_perfect_forecast_leads_straight() {
    struct Blind(BTreeSet<(u64, u64)>);
    impl Cost<Grid> for Blind {
        fn costs(&mut self, grid: &Grid, states: &[(u64, u64)]) -> Vec<f64> {
            self.0.extend(states);
            states.iter().map(|s| grid.cost(*s)).collect()
        }
    }
    for seed in 0..40 {
        let grid = Grid { seed, size: 9, expanded: RefCell::default() };
        let least = grid.cost((0, 0)) - grid.fall((0, 0));
        let found = astar(
            &grid,
            &mut Perfect,
            &Limits::of(100_000),
            &Astar { depth: 99, memory: usize::MAX, batch: 1, alternate: false },
        );
        let ((x, y), cost) = found.best.unwrap();
        assert_eq!(cost, least);
        // Until the best state is met, only states on ways to it are expanded: each has two children at most.
        let first = found.curve.last().unwrap().0;
        assert!(first <= 1 + 2 * ((x + 1) * (y + 1)) as usize, "seed {seed}: {first} evaluations to {x}, {y}");
        for (a, b) in grid.expanded.borrow().iter().take((first - 1) / 2) {
            assert!(*a <= x && *b <= y, "seed {seed}: {a}, {b} does not lead to {x}, {y}");
        }
        let mut blind = Blind(BTreeSet::new());
        let found = astar(
            &grid,
            &mut blind,
            &Limits::of(100_000),
            &Astar { depth: 99, memory: usize::MAX, batch: 1, alternate: false },
        );
        assert_eq!(found.best.unwrap().1, least);
        assert_eq!(blind.0.len(), 81);
        assert_eq!(found.tally.expansions, 80, "each state but the last, once");
    }
}
