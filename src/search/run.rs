//! One search under way: states are expanded and evaluated within limits, and the best is kept.

use super::{Cost, Found, Limits, Space, Tally};
use std::rc::Rc;

/// The moves that led to a state, last first; states share what they have in common.
pub struct Trail<M> {
    by: M,
    before: Option<Rc<Trail<M>>>,
}

/// The way to a state; nothing for the root.
type Way<S> = Option<Rc<Trail<<S as Space>::Move>>>;

/// A state with what is known of it.
pub struct Node<S: Space> {
    /// The state.
    pub state: S::State,
    /// Its cost.
    pub cost: f64,
    /// The expected fall of the cost from here on.
    pub value: f64,
    /// Moves from the root.
    pub depth: usize,
    trail: Way<S>,
}

impl<S: Space> Clone for Node<S> {
    fn clone(&self) -> Node<S> {
        let Node { state, cost, value, depth, trail } = self;
        Node { state: state.clone(), cost: *cost, value: *value, depth: *depth, trail: trail.clone() }
    }
}

/// A state that is not evaluated yet.
pub struct Made<S: Space> {
    state: S::State,
    trail: Way<S>,
}

/// The state of a search.
pub struct Run<'a, S: Space, C: Cost<S>> {
    /// The space.
    pub space: &'a S,
    cost: &'a mut C,
    limits: &'a Limits<'a>,
    /// What was done so far.
    pub tally: Tally,
    best: Option<Node<S>>,
    curve: Vec<(usize, f64)>,
}

impl<'a, S: Space, C: Cost<S>> Run<'a, S, C> {
    /// Begins; the root is evaluated, where the limits allow one evaluation.
    pub fn begin(space: &'a S, cost: &'a mut C, limits: &'a Limits<'a>) -> (Run<'a, S, C>, Option<Node<S>>) {
        let mut run = Run { space, cost, limits, tally: Tally::default(), best: None, curve: vec![] };
        let root = run.evaluate(vec![Made { state: space.root(), trail: None }]).pop();
        root.iter().for_each(|n| run.note(n));
        (run, root)
    }

    /// Whether the search has to end.
    pub fn over(&self) -> bool {
        self.tally.evaluations >= self.limits.evaluations || (self.limits.stop)()
    }

    /// The evaluated children of a node; fewer where the limit is reached. Each counts as a solution.
    pub fn expand(&mut self, node: &Node<S>) -> Vec<Node<S>> {
        let children = self.children(node);
        children.iter().for_each(|n| self.note(n));
        children
    }

    /// The evaluated children of a node, none of which counts as a solution yet.
    pub fn children(&mut self, node: &Node<S>) -> Vec<Node<S>> {
        let left = self.left();
        let mut taken = 0;
        let children = self.children_where(node, |_| {
            taken += 1;
            taken <= left
        });
        self.evaluate(children)
    }

    /// The children of a node that are wanted, not evaluated yet.
    pub fn children_where(&mut self, node: &Node<S>, mut wanted: impl FnMut(&S::State) -> bool) -> Vec<Made<S>> {
        self.tally.expansions += 1;
        let child = |by: S::Move| {
            let state = self.space.apply(&node.state, &by);
            let trail = |by| Some(Rc::new(Trail { by, before: node.trail.clone() }));
            wanted(&state).then(|| Made { state, trail: trail(by) })
        };
        self.space.moves(&node.state).into_iter().filter_map(child).collect()
    }

    fn left(&self) -> usize {
        self.limits.evaluations.saturating_sub(self.tally.evaluations)
    }

    /// The evaluated state that one move leads to.
    pub fn follow(&mut self, node: &Node<S>, by: S::Move) -> Option<Node<S>> {
        let state = self.space.apply(&node.state, &by);
        let next =
            self.evaluate(vec![Made { state, trail: Some(Rc::new(Trail { by, before: node.trail.clone() })) }]).pop();
        next.iter().for_each(|n| self.note(n));
        next
    }

    /// Evaluates states together; fewer where the limit is reached.
    pub fn evaluate(&mut self, made: Vec<Made<S>>) -> Vec<Node<S>> {
        let (states, trails): (Vec<_>, Vec<_>) = made.into_iter().take(self.left()).map(|m| (m.state, m.trail)).unzip();
        if states.is_empty() {
            return vec![];
        }
        let costs = self.cost.costs(self.space, &states);
        let values = self.cost.values(self.space, &states);
        self.tally.evaluations += states.len();
        let parts = states.into_iter().zip(trails).zip(costs.into_iter().zip(values));
        let nodes = parts.map(|((state, trail), (cost, value))| {
            let depth = self.space.depth(&state);
            Node { state, cost, value, depth, trail }
        });
        nodes.collect()
    }

    /// Keeps a solution that is better than all before; of equal ones the first stays.
    pub fn note(&mut self, node: &Node<S>) {
        let better = self.best.as_ref().is_none_or(|b| node.cost < b.cost);
        if better && self.space.solution(&node.state) {
            self.curve.push((self.tally.evaluations, node.cost));
            self.best = Some(node.clone());
        }
    }

    /// The cost of the best solution so far.
    pub fn best(&self) -> Option<f64> {
        self.best.as_ref().map(|b| b.cost)
    }

    /// Ends the search.
    pub fn end(self) -> Found<S> {
        let mut moves = vec![];
        let mut at = self.best.as_ref().and_then(|b| b.trail.clone());
        while let Some(trail) = at {
            moves.push(trail.by.clone());
            at = trail.before.clone();
        }
        moves.reverse();
        let best = self.best.map(|b| (b.state, b.cost));
        Found { best, moves, tally: self.tally, curve: self.curve }
    }
}

impl<M> Drop for Trail<M> {
    /// Trails are long lists: dropped one by one, not by recursion.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut trail) = next.and_then(Rc::into_inner) {
            next = trail.before.take();
        }
    }
}
