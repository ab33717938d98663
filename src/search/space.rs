//! What is searched: a space says what the moves are, a cost how good states are. Each search is written once over both,
//! within limits, and says what it found.

/// A space of states that moves lead through.
pub trait Space {
    /// A state.
    type State: Clone;
    /// What leads from a state to another one.
    type Move: Clone;

    /// Where searches begin.
    fn root(&self) -> Self::State;
    /// The moves from a state, in a fixed order.
    fn moves(&self, state: &Self::State) -> Vec<Self::Move>;
    /// The state that a move leads to.
    fn apply(&self, state: &Self::State, by: &Self::Move) -> Self::State;
    /// Whether no move leads on.
    fn terminal(&self, state: &Self::State) -> bool;
    /// Moves from the root.
    fn depth(&self, state: &Self::State) -> usize;
    /// What states have in common that are one for the search. A coarser level may merge more.
    fn key(&self, state: &Self::State, level: usize) -> u64;
    /// Whether a search may return the state. In a tree of decisions only complete states are.
    fn solution(&self, state: &Self::State) -> bool {
        self.terminal(state)
    }
}

/// How good states are. Smaller is better.
pub trait Cost<S: Space> {
    /// The costs of states, evaluated together.
    fn costs(&mut self, space: &S, states: &[S::State]) -> Vec<f64>;
    /// By how much the cost is expected to fall from each state on. Nothing is known by default.
    fn values(&mut self, _: &S, states: &[S::State]) -> Vec<f64> {
        vec![0.0; states.len()]
    }
}

/// What ends a search.
pub struct Limits<'a> {
    /// States evaluated at most, the root included.
    pub evaluations: usize,
    /// Asked now and then; a search that is told to stop returns the best so far.
    pub stop: &'a dyn Fn() -> bool,
}

impl Limits<'_> {
    /// A number of evaluations, and no other limit.
    pub fn of(evaluations: usize) -> Limits<'static> {
        Limits { evaluations, stop: &|| false }
    }
}

/// What a search did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// States whose moves were tried.
    pub expansions: usize,
    /// States that were evaluated.
    pub evaluations: usize,
    /// States held at once, at most.
    pub held: usize,
}

/// The best solution, and what finding it took.
#[derive(Clone, Debug)]
pub struct Found<S: Space> {
    /// The solution with its cost; nothing where none was reached.
    pub best: Option<(S::State, f64)>,
    /// The moves from the root to it.
    pub moves: Vec<S::Move>,
    /// What was done.
    pub tally: Tally,
    /// Evaluations made and best cost then, each time that it fell.
    pub curve: Vec<(usize, f64)>,
}
