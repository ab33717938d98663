//! The names of the searches.

/// A search. How many states it keeps, and the like, is for those to say who search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the searches are described where they are written")]
pub enum Algorithm {
    Greedy,
    Random,
    Beam,
    Astar,
    Mb2fbs,
    Mcts,
}

impl Algorithm {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Greedy => "greedy",
            Algorithm::Random => "random",
            Algorithm::Beam => "beam",
            Algorithm::Astar => "astar",
            Algorithm::Mb2fbs => "mb2fbs",
            Algorithm::Mcts => "mcts",
        }
    }
}
