//! What came of an optimization: the program, what happened to each definition, and how it is derived.

use crate::derive::Derivation;
use crate::ir::{Id, Program, Terms};
use crate::rewrite::explain::Unproved;

/// What happened to one definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Cost of the input.
    pub cost_before: f64,
    /// Cost of the output.
    pub cost_after: f64,
    /// What did it.
    pub engine: &'static str,
    /// How many rule applications changed something on the way to a better result; 0 where there is none.
    pub steps: usize,
    /// How long it took.
    pub seconds: f64,
    /// Rules that fired in the search and how often, whatever came of it.
    pub fired: Vec<(String, usize)>,
    /// How many classes and matches the search looked at, which is what it takes time for.
    pub looked: usize,
    /// Nodes of the e-graph at the start and after each round, for each time the search started.
    pub growth: Vec<Vec<usize>>,
    /// Whether no choice of one member a class of the last e-graph is cheaper.
    pub proved: bool,
    /// What was spent before the search was done: `time`, `memory`, or the user's patience.
    pub stopped: Option<&'static str>,
    /// The cheapest result that was found and is not used, because no derivation of it was found.
    pub unproved: Option<Unproved>,
    /// Why the definition is as it was, where nothing was searched or what was found is not taken.
    pub skipped: Option<String>,
}

/// An optimized program.
pub struct Outcome {
    /// The program: every definition of the input, in order.
    pub program: Program,
    /// A row for each definition that was to be optimized.
    pub rows: Vec<Row>,
    /// A derivation for each row, where that was asked for.
    pub derivations: Vec<Derived>,
    /// How long all of it took by the clock: definitions are worked on side by side.
    pub seconds: f64,
}

/// A derivation with the programs on its way.
pub struct Derived {
    /// The derivation.
    pub derivation: Derivation,
    /// The program with lets at the start and after each step, each in its arena; nothing where its cost is unsaid.
    pub programs: Vec<Option<(Terms, Id)>>,
    /// The text of the part that each step changes, before and after, where it is short.
    pub changes: Vec<(String, String)>,
}
