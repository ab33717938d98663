//! Names of engines on the command line, and what is said of each.

use crate::pipeline::Engine;
use crate::search::Algorithm;
use clap::ValueEnum;
use clap::builder::PossibleValue;

impl ValueEnum for Engine {
    fn value_variants<'a>() -> &'a [Engine] {
        &Engine::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(help(*self)))
    }
}

fn help(engine: Engine) -> &'static str {
    match engine {
        Engine::Egraph => "Equality saturation",
        Engine::Auto => "Equality saturation, then A* from its result and from the input",
        Engine::Agent(Algorithm::Astar) => "The term first from which least is expected",
        Engine::Agent(Algorithm::Mcts) => "Monte Carlo tree search",
        Engine::Agent(Algorithm::Beam) => "The best 32 terms of each number of rewrites",
        Engine::Agent(Algorithm::Mb2fbs) => "Memory-bounded best-first beam search",
        Engine::Agent(Algorithm::Greedy) => "The best rewrite each time",
        Engine::Agent(Algorithm::Random) => "Any rewrite each time",
    }
}
