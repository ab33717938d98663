//! How a program is optimized, and who is told meanwhile.

use crate::cost::Model;
use crate::diag::Source;
use crate::rewrite::agent::{self, Bind};
use crate::rules::Level;
use crate::rules::assume::Assume;
use crate::search::Algorithm;
use std::sync::Arc;

/// How to optimize.
#[derive(Clone)]
pub struct Options<'a> {
    /// Names of the definitions to optimize; all where there are none.
    pub defs: Vec<String>,
    /// The cost model.
    pub cost: Model,
    /// What rules must keep.
    pub float: Level,
    /// What the rules that are read here may take for granted.
    pub assume: Vec<Assume>,
    /// Estimated sizes by name.
    pub sizes: Vec<(String, u64)>,
    /// Rule files beside the shipped ones.
    pub rules: Vec<Arc<Source>>,
    /// How rewrites are searched.
    pub engine: Engine,
    /// E-nodes at most.
    pub max_nodes: usize,
    /// Bodies of more nodes without lets are searched by regions, where they are not searched as wholes.
    pub regions: usize,
    /// States that a search of terms evaluates at most.
    pub budget: usize,
    /// Rewrites from the input that a search of terms makes at most.
    pub depth: usize,
    /// What a search of terms does with bindings.
    pub bind: Bind,
    /// Whether a search of terms makes its first half of rewrites by rules of phase 1 alone.
    pub phased: bool,
    /// The rules and moves that are used, by name, or by the name of their file or group; all where none
    /// is named.
    pub only: Vec<String>,
    /// Where chance begins.
    pub seed: u64,
    /// The network that says what a search may expect of terms.
    pub value: Option<&'a agent::value::Network>,
    /// Whether to derive every result, step by step.
    pub derive: bool,
    /// Whether extraction goes on until it is proved that no choice is cheaper, where that is in reach.
    pub exact: bool,
    /// Threads at most; as many as the machine has where it is 0. The result does not depend on it.
    pub threads: usize,
    /// What is spent, if a share of what may be spent is: then the best so far is the result.
    pub stop: &'a (dyn Fn(f64) -> Option<&'static str> + Sync),
    /// Told how far the work is.
    pub progress: &'a (dyn Fn(Told<'_>) + Sync),
    /// Seconds since some time, for the report; nothing else depends on it.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// What is told of the work while it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// So many definitions are to be optimized.
    All(usize),
    /// The search for one begins.
    Begins(&'a str),
    /// The search for one has ended.
    Ends(&'a str),
}

/// How rewrites are searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// Equality saturation.
    Egraph,
    /// A search of terms, one rewrite after another.
    Agent(Algorithm),
    /// Equality saturation; then A* goes on from its result and from the input.
    Auto,
}

impl Engine {
    /// All of them, those first that are asked for most.
    pub const ALL: [Engine; 8] = [
        Engine::Egraph,
        Engine::Auto,
        Engine::Agent(Algorithm::Astar),
        Engine::Agent(Algorithm::Mcts),
        Engine::Agent(Algorithm::Beam),
        Engine::Agent(Algorithm::Mb2fbs),
        Engine::Agent(Algorithm::Greedy),
        Engine::Agent(Algorithm::Random),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Egraph => "egraph",
            Engine::Agent(engine) => engine.name(),
            Engine::Auto => "auto",
        }
    }
}

/// The node limit where none is asked for.
pub const MAX_NODES: usize = 10_000;
/// Bodies of more nodes without lets are searched by regions, unless told otherwise.
pub const REGIONS: usize = 2_500;
/// The number of evaluations where none is asked for.
pub const BUDGET: usize = 5_000;
/// The number of rewrites in a row where none is asked for.
pub const DEPTH: usize = 60;

impl Options<'_> {
    /// The choices made where none are asked for.
    pub fn standard() -> Options<'static> {
        Options {
            defs: vec![],
            cost: Model::Analytic,
            float: Level::Real,
            assume: vec![],
            sizes: vec![],
            rules: vec![],
            engine: Engine::Egraph,
            max_nodes: MAX_NODES,
            regions: REGIONS,
            budget: BUDGET,
            depth: DEPTH,
            bind: Bind::Placed,
            phased: false,
            only: vec![],
            seed: 0,
            value: None,
            derive: false,
            exact: false,
            threads: 0,
            stop: &|_| None,
            progress: &|_| {},
            clock: &|| 0.0,
        }
    }
}
